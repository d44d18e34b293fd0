/* Binary modules: what reading, writing and printing them share.
 *
 * hlo.proto has the messages, proto.def says which field holds which attribute, and notation.def
 * how the fields of a message stand in HLO text, for the attributes whose value is kept as text.
 * All three serve both directions. Every message lives in the scratch arena. */
#ifndef HLO_GRAMMAR_PROTO_H
#define HLO_GRAMMAR_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "grammar/attr/bytes.h"
#include "hlo.pb-c.h"
#include "ir/ir.h"

/* One conversion, either way. */
typedef struct hlo_proto {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    jmp_buf *failed;            /* where hlo_proto_fail() goes */
    size_t offset;              /* in the module's source */
    const char *kind, *name;    /* what is being converted, for its messages; NULL: the module */
    const Xla__MeshProto *mesh; /* whose axes are referred to by number */
    const hlo_shape *operand;   /* of the instruction's first operand; NULL */
    const Xla__HloModuleProto *payloads; /* reading: whose payloads are numbered */
    const struct hlo_ids *ids;           /* reading: what numbers in the message stand for */
    int64_t *computations, *instrs;      /* writing: the numbers, by the ids of the IR */
    unsigned tuples;                     /* writing: that are open around a shape or a constant */
    bool unknown;          /* reading: something in the bytes is in no message of hlo.proto */
    void *owned;           /* from malloc, freed at the end of the conversion; NULL */
    struct hlo_rows *rows; /* proto.def with its fields found (rows.c) */
} hlo_proto;

/* Says `file: error: instruction 'x': ...` and does not return. */
_Noreturn void hlo_proto_fail(hlo_proto *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------- fields by their descriptors (fields.c) */

ProtobufCMessage *hlo_message_new(hlo_arena *arena, const ProtobufCMessageDescriptor *type);
/* Whether it is as a new one, bit for bit; false only tells that something may be in it. */
bool hlo_message_is_new(const ProtobufCMessage *message);
/* `name` of `size` bytes; NULL when messages of that type have no such field. */
const ProtobufCFieldDescriptor *hlo_field_find(const ProtobufCMessageDescriptor *type,
                                               const char *name, size_t size);
void *hlo_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Elements of a repeated field; of any other, whether it is there: not zero, not empty. */
size_t hlo_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The place of the value that is to be set, or of one more element. */
void *hlo_field_add(hlo_arena *arena, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field);
/* The place of element `index`, or of the value. */
void *hlo_field_element(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        size_t index);
void hlo_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* A number, truth value or enumeration; false when a value does not fit. */
int64_t hlo_field_load(const ProtobufCFieldDescriptor *field, const void *place);
bool hlo_field_store(const ProtobufCFieldDescriptor *field, void *place, int64_t value);
/* The field at the end of `path` (names with dots between them) and the message that it is of;
 * messages on the way that are missing are made when `arena` is given, else the result is NULL. */
const ProtobufCFieldDescriptor *hlo_field_walk(hlo_arena *arena, ProtobufCMessage **message,
                                               const char *path);

/* ------------------------------------------------------------ messages as HLO text (notation.c) */

/* The fields of `message` by one of the patterns: the first whose guards hold. False when none. */
bool hlo_text_pattern_print(hlo_proto *p, hlo_bytes *out, const ProtobufCMessage *message,
                            const char *const *patterns, size_t count);
/* Fills the message from the whole of `text` by the first pattern that reads it. */
bool hlo_text_pattern_read(hlo_proto *p, const char *text, ProtobufCMessage *message,
                           const char *const *patterns, size_t count);
/* ----------------------------------------------------------------- shapes, constants (values.c) */

const hlo_shape *hlo_shape_from_proto(hlo_proto *p, const Xla__ShapeProto *from);
Xla__ShapeProto *hlo_shape_to_proto(hlo_proto *p, const hlo_shape *shape);
const hlo_literal *hlo_literal_from_proto(hlo_proto *p, const Xla__LiteralProto *from,
                                          const hlo_shape *shape);
Xla__LiteralProto *hlo_literal_to_proto(hlo_proto *p, const hlo_literal *literal);
/* window={...} and dim_labels=..., which stand in text dimension by dimension. */
hlo_attr hlo_window_from_proto(hlo_proto *p, const Xla__Window *from);
Xla__Window *hlo_window_to_proto(hlo_proto *p, const hlo_attrs *window);
const char *hlo_labels_from_proto(hlo_proto *p, const Xla__ConvolutionDimensionNumbers *from);
Xla__ConvolutionDimensionNumbers *hlo_labels_to_proto(hlo_proto *p, const char *labels);

/* ------------------------------------------------------------------------- attributes (attrs.c) */

/* How an attribute is held: a row of proto.def. */
typedef struct hlo_proto_row {
    uint8_t attr; /* hlo_attr_id */
    uint8_t op;   /* hlo_op; HLO_OP_COUNT: any */
    int8_t missing;
    const char *path;
} hlo_proto_row;
enum { HLO_PROTO_ALWAYS = -1 };

/* The rows of an attribute on an opcode; *out_count of them, one behind the other (rows.c). */
const hlo_proto_row *hlo_rows_of(hlo_proto *p, hlo_attr_id attr, hlo_op op, size_t *out_count);

enum { HLO_LONGEST_PATH = 4, HLO_MOST_NAMED = 8 };

/* The fields that a row names in a message of one type. */
typedef struct hlo_row_fields {
    const ProtobufCMessageDescriptor *of;
    bool pattern; /* it is text by a pattern */
    /* Those that its path goes through; of a pattern, the path that must be there for it to fit.
     * `depth` 0: there is none. */
    uint8_t depth, named_count;
    const ProtobufCFieldDescriptor *path[HLO_LONGEST_PATH];
    const ProtobufCFieldDescriptor *named[HLO_MOST_NAMED]; /* all of the message itself */
} hlo_row_fields;
/* Valid until the row is asked for with another type. */
const hlo_row_fields *hlo_row_fields_of(hlo_proto *p, const hlo_proto_row *row,
                                        const ProtobufCMessageDescriptor *type);
/* As hlo_field_walk() with the row's path. */
const ProtobufCFieldDescriptor *hlo_row_walk(hlo_arena *arena, const hlo_row_fields *fields,
                                             ProtobufCMessage **message);
/* False when what the pattern needs is certainly not there. */
bool hlo_row_may_fit(const hlo_row_fields *fields, const ProtobufCMessage *message);

/* Attributes into `message` and back; `op` HLO_OP_COUNT for what is no instruction. `required`:
 * those attributes are there whatever the fields say. `out` has room for all of `ids`, which
 * HLO_ATTR_COUNT ends; the result is their number. */
void hlo_attrs_to_proto(hlo_proto *p, const hlo_attr *attrs, uint32_t count, hlo_op op,
                        ProtobufCMessage *message);
uint32_t hlo_attrs_from_proto(hlo_proto *p, ProtobufCMessage *message, const uint8_t *ids,
                              hlo_op op, bool required, hlo_attr *out);
/* Takes away the fields of those attributes. */
void hlo_attrs_clear(hlo_proto *p, ProtobufCMessage *message, const uint8_t *ids, hlo_op op);
/* What no attribute has taken, as HLO_ATTR_UNMAPPED; false when that is nothing. */
bool hlo_unmapped_from_proto(hlo_proto *p, const ProtobufCMessage *message, hlo_attr *out);
/* A message that has those fields already. */
ProtobufCMessage *hlo_unmapped_to_proto(hlo_proto *p, const ProtobufCMessageDescriptor *type,
                                        const hlo_attr *attrs, uint32_t count);

/* ------------------------------------------- unknown fields inside a message (unknown_fields.c) */

/* Takes them away, as HLO_ATTR_STRAYS; false when there are none. Before anything else is taken
 * away. Those of the message itself stay, and of a module the computations, of a computation the
 * instructions. */
bool hlo_unknown_fields_from_proto(hlo_proto *p, ProtobufCMessage *message, hlo_attr *out);
/* Puts them into the message, which is otherwise whole. */
void hlo_unknown_fields_to_proto(hlo_proto *p, const hlo_attr *attrs, uint32_t count,
                                 ProtobufCMessage *message);
/* ------------------------------------------ modules of origin_recovery_table (recovery_table.c) */

/* As text, in quotes. */
void hlo_recovery_print(hlo_proto *p, hlo_bytes *out, const Xla__HloModuleProto *from);
/* The module that is the text; NULL when it is none. */
Xla__HloModuleProto *hlo_recovery_read(hlo_proto *p, const char *text);

/* What an instruction's numbers stand for (read.c): computations that it calls, instructions
 * in front of it. */
hlo_computation *hlo_proto_called(hlo_proto *p, const ProtobufCMessage *message, size_t index);
const hlo_comps *hlo_proto_all_called(hlo_proto *p, const ProtobufCMessage *message);
const hlo_instrs *hlo_proto_instrs(hlo_proto *p, size_t count, const int64_t *ids);
/* ------------------------------------------------------------------------------- bytes (wire.c) */

/* Messages in messages, as in Google's readers. */
enum { HLO_WIRE_DEEPEST = 100 };
#define HLO_WIRE_TOO_DEEP "nested too deeply: readers of messages take %d in one another"

/* Whether `size` bytes are a message of that type: nothing cut off, wire types as they should be,
 * not nested too deeply. Else *out_offset says where. *out_unknown: whether it or a message in it
 * has fields that their type has not. */
bool hlo_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                    size_t *out_offset, bool *out_unknown);
/* The allocator that protobuf-c is given: memory of the arena, which does not return when there is
 * none, and takes nothing back. */
ProtobufCAllocator hlo_wire_allocator(hlo_arena *arena);

#endif
