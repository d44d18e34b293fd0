/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf messages. cmake/schema.cmake compiles a schema to structs and to the tables of this
 * header, which describe the structs. */
#ifndef HLO_GRAMMAR_MESSAGE_MESSAGE_H
#define HLO_GRAMMAR_MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ir/arena.h"

/* The type of a field. */
enum {
    HLO_PB_INT32,
    HLO_PB_INT64,
    HLO_PB_UINT32,
    HLO_PB_UINT64,
    HLO_PB_BOOL,
    HLO_PB_ENUM,
    HLO_PB_FLOAT,
    HLO_PB_DOUBLE,
    HLO_PB_STRING,
    HLO_PB_BYTES,
    HLO_PB_MESSAGE
};
enum { HLO_PB_SINGLE, HLO_PB_REPEATED, HLO_PB_ONEOF };

typedef struct hlo_pb_value {
    const char *name;
    int32_t value;
} hlo_pb_value;

typedef struct hlo_pb_enum {
    const hlo_pb_value *values;
    size_t n_values;
} hlo_pb_enum;

typedef struct hlo_pb_field {
    const char *name;
    const void *descriptor; /* HLO_PB_MESSAGE: a hlo_pb_type; HLO_PB_ENUM: a hlo_pb_enum */
    size_t offset;
    size_t extra; /* offset of the number of elements, or of the number of the set oneof field */
    uint32_t id;
    uint8_t type, label;
} hlo_pb_field;

typedef struct hlo_pb_type {
    const char *name;
    const hlo_pb_field *fields; /* sorted by id */
    unsigned n_fields;
    size_t size; /* of the struct */
} hlo_pb_type;

/* A field that the type of its message does not have. */
typedef struct hlo_pb_unknown {
    uint32_t tag, wire_type;
    size_t len;
    uint8_t *data; /* the value as on the wire, with its length if it is delimited */
} hlo_pb_unknown;

/* The first member of the struct of each message. */
typedef struct hlo_pb {
    const hlo_pb_type *descriptor;
    size_t n_unknown_fields;
    hlo_pb_unknown *unknown_fields;
} hlo_pb;

typedef struct hlo_pb_bytes {
    size_t len;
    uint8_t *data;
} hlo_pb_bytes;
typedef int32_t hlo_pb_bool;

void hlo_message_init(void *message, const hlo_pb_type *type);
void *hlo_message_new(hlo_arena *arena, const hlo_pb_type *type);
/* True if no field is set. */
bool hlo_message_is_new(const hlo_pb *message);
/* Finds a field by its name of `size` bytes; NULL if not found. */
const hlo_pb_field *hlo_field_find(const hlo_pb_type *type, const char *name, size_t size);
const hlo_pb_field *hlo_field_numbered(const hlo_pb_type *type, uint32_t id); /* may return NULL */
const hlo_pb_value *hlo_enum_value(const hlo_pb_enum *type, int64_t number);  /* may return NULL */
void *hlo_field_at(const hlo_pb *message, const hlo_pb_field *field);
/* Returns the number of elements of a repeated field. For a field of a oneof, returns 1 if it is
 * set; for any other field, 1 if it is neither zero nor empty; otherwise 0. */
size_t hlo_field_count(const hlo_pb *message, const hlo_pb_field *field);
/* Returns the address at which to store a value: for a repeated field, that of a new element. */
void *hlo_field_add(hlo_arena *arena, hlo_pb *message, const hlo_pb_field *field);
/* Returns the address of element `index` of a repeated field, or of the value of any other field.
 */
void *hlo_field_element(const hlo_pb *message, const hlo_pb_field *field, size_t index);
void hlo_field_clear(hlo_pb *message, const hlo_pb_field *field);
/* Load or store an integer, bool or enum. The second returns false if the value does not fit. */
int64_t hlo_field_load(const hlo_pb_field *field, const void *place);
bool hlo_field_store(const hlo_pb_field *field, void *place, int64_t value);
/* Makes a message in the field `name`; in a repeated field, a new element. */
void *hlo_message_add(hlo_arena *arena, void *message, const char *name);

/* ---------------------------------------------------------------------------------------- bytes */

/* Maximum nesting depth of messages, as in Google's protobuf parsers. */
enum { HLO_WIRE_DEEPEST = 100 };
#define HLO_WIRE_TOO_DEEP "nested too deeply: the limit for messages is %d levels"

/* Encoded bytes: a message, or the value of a field. */
typedef struct hlo_wire {
    const uint8_t *at, *end;
    bool unknown; /* used by hlo_wire_check() */
} hlo_wire;

typedef struct hlo_wire_field {
    uint32_t number;
    bool delimited; /* the value is a message, a string, bytes or packed numbers */
    hlo_wire value;
    uint64_t varint; /* the value of an integer, or 0 */
} hlo_wire_field;

/* Reads the next field of a message. w->at must be less than w->end. Returns false if the bytes are
 * not a field. */
bool hlo_wire_next(hlo_wire *w, hlo_wire_field *out);
/* Reads a length and the bytes that follow it. Returns false if there are fewer bytes. */
bool hlo_wire_delimited(hlo_wire *w, hlo_wire *out);
/* True if the bytes are a message of `type` that is complete, has the right wire types and no
 * string with NUL, and is not nested too deeply. Otherwise *out_at is the position of the error.
 * *out_unknown: the message, or a nested message, has fields that its type does not have. */
bool hlo_wire_check(const hlo_pb_type *type, const hlo_wire *message, const uint8_t **out_at,
                    bool *out_unknown);
/* Reads a message. All memory is from the arena. Returns NULL if hlo_wire_check() returns false. */
void *hlo_message_unpack(hlo_arena *arena, const hlo_pb_type *type, const void *bytes, size_t size);
hlo_wire hlo_message_pack(hlo_arena *arena, const hlo_pb *message);

/* Prints a line for each field, ordered by number. Omits fields with default values; shows unknown
 * fields by number. Returns false if writing fails. */
bool hlo_pbtxt_print(hlo_arena *scratch, const hlo_pb *message, FILE *out);

#endif
