/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on protobuf messages of any type, by descriptor. */
#ifndef HLO_GRAMMAR_MESSAGE_MESSAGE_H
#define HLO_GRAMMAR_MESSAGE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>

#include "ir/arena.h"

void *hlo_message_new(hlo_arena *arena, const ProtobufCMessageDescriptor *type);
/* True if the message equals a new one bit for bit: no field is set. */
bool hlo_message_is_new(const ProtobufCMessage *message);
/* Finds a field by its name of `size` bytes; NULL if not found. */
const ProtobufCFieldDescriptor *hlo_field_find(const ProtobufCMessageDescriptor *type,
                                               const char *name, size_t size);
void *hlo_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Returns the number of elements of a repeated field. For a field of a oneof, returns 1 if it is
 * set; for any other field, 1 if it is neither zero nor empty; otherwise 0. */
size_t hlo_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Returns the address at which to store a value: for a repeated field, that of a new element. */
void *hlo_field_add(hlo_arena *arena, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field);
/* Returns the address of element `index` of a repeated field, or of the value of any other field.
 */
void *hlo_field_element(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        size_t index);
void hlo_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Load or store an integer, bool or enum. The second returns false if the value does not fit. */
int64_t hlo_field_load(const ProtobufCFieldDescriptor *field, const void *place);
bool hlo_field_store(const ProtobufCFieldDescriptor *field, void *place, int64_t value);
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
/* True if the bytes are a message of `type` that is complete, has the right wire types and is not
 * nested too deeply. Otherwise *out_at is the position of the error. *out_unknown: the message, or
 * a nested message, has fields that its type does not have. */
bool hlo_wire_check(const ProtobufCMessageDescriptor *type, const hlo_wire *message,
                    const uint8_t **out_at, bool *out_unknown);
/* Returns an allocator for protobuf-c that allocates from the arena and never frees. */
ProtobufCAllocator hlo_wire_allocator(hlo_arena *arena);

/* Prints a line for each field, ordered by number. Omits fields with default values; shows unknown
 * fields by number. Returns false if writing fails. */
bool hlo_pbtxt_print(hlo_arena *scratch, const ProtobufCMessage *message, FILE *out);

#endif
