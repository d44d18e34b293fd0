/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between binary modules and the IR.
 *
 * hlo.proto defines the messages, proto.def maps fields to attributes, and text_pattern.def defines
 * the HLO text of messages, for attributes that the IR keeps as text. Reading and writing use all
 * three. Every message is allocated in the scratch arena. */
#ifndef HLO_GRAMMAR_PROTO_PROTO_H
#define HLO_GRAMMAR_PROTO_PROTO_H

#include "grammar/attr/bytes.h"
#include "grammar/message/message.h"
#include "grammar/proto/convert.h"
#include "hlo.proto.h"
#include "ir/ir.h"

/* State of one conversion, in either direction. */
typedef struct hlo_proto {
    hlo_module *module;
    const hlo_module_io *io;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    jmp_buf *failed;          /* the target of hlo_proto_fail() */
    size_t offset;            /* position in the module's source */
    const char *kind, *name;  /* kind and name of the object being converted, for errors; NULL for
                               * the module */
    const hlo_shape *operand; /* shape of the instruction's first operand; NULL without operands */
    const Xla__HloModuleProto *payloads; /* reading: the module that holds the payloads */
    const struct hlo_ids *ids;           /* reading: maps the ids of the message to the IR */
    int64_t *computations, *instrs;      /* writing: maps the ids of the IR to those of the
                                          * message */
    unsigned tuples;                     /* writing: number of open tuples around a shape or a
                                          * constant */
    bool unknown;          /* reading: the bytes contain fields that hlo.proto lacks */
    void *owned;           /* malloc()ed memory that is freed at the end of the conversion; or
                            * NULL */
    struct hlo_rows *rows; /* the rows of proto.def and their fields (attrs.c) */
} hlo_proto;

/* ---------------------------------------------------------------------- errors, ids (context.c) */

/* Calls `body` with a new module of that file name and a scratch arena. Catches its errors. The
 * caller always frees p->module, p->scratch and p->owned. */
hlo_status hlo_proto_read_into(hlo_proto *p, const char *file, const hlo_diag_sink *sink,
                               hlo_status (*body)(hlo_proto *p, void *user), void *user);

/* Reports `file: error: instruction 'x': ...` and does not return. */
_Noreturn void hlo_proto_fail(hlo_proto *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An id in the message, and the IR object that it stands for; NULL until that object has been read.
 */
typedef struct hlo_proto_id {
    int64_t number;
    void *is;
} hlo_proto_id;

typedef struct hlo_proto_ids {
    hlo_proto_id *v; /* sorted by number */
    size_t count;
} hlo_proto_ids;

struct hlo_ids {
    hlo_proto_ids computations, instrs; /* in the module; in the computation being read */
    hlo_proto_ids sequences;            /* the sequences of the schedule, by the id of their
                                         * computation */
    bool *placed; /* by hlo_instruction.id: the schedule contains the instruction */
};

/* Find an id or its object; NULL if the id does not exist or the object has not been read. */
hlo_proto_id *hlo_proto_find_id(const hlo_proto_ids *in, int64_t number);
void *hlo_proto_find(const hlo_proto_ids *in, int64_t number);
/* Sorts ids; `what` names them in the error when two are equal. */
void hlo_proto_sort_ids(hlo_proto *p, hlo_proto_ids *of, const char *what);
/* Finds the computation at `index` of the list of computations that an instruction calls. */
hlo_computation *hlo_proto_called(hlo_proto *p, const hlo_pb *message, size_t index);
const hlo_comps *hlo_proto_all_called(hlo_proto *p, const hlo_pb *message);
/* Finds an instruction that has been read; `what` names its role in the error. */
hlo_instruction *hlo_proto_operand(hlo_proto *p, int64_t number, const char *what);
/* Finds the instructions that are the control predecessors of an instruction. */
const hlo_instrs *hlo_proto_instrs(hlo_proto *p, size_t count, const int64_t *numbers);

/* -------------------------------------------------------- messages as HLO text (text_pattern.c) */

/* Prints the fields of `message` by a pattern. */
void hlo_text_pattern_print(hlo_proto *p, hlo_bytes *out, const hlo_pb *message,
                            const char *pattern);
/* Fills the message from the whole of `text` by a pattern; returns false if the text does not
 * match. */
bool hlo_text_pattern_read(hlo_proto *p, const char *text, hlo_pb *message, const char *pattern);

/* ----------------------------------------------------------------- shapes, constants (values.c) */

const hlo_shape *hlo_shape_from_proto(hlo_proto *p, const Xla__ShapeProto *from);
Xla__ShapeProto *hlo_shape_to_proto(hlo_proto *p, const hlo_shape *shape);
const hlo_literal *hlo_literal_from_proto(hlo_proto *p, const Xla__LiteralProto *from,
                                          const hlo_shape *shape);
Xla__LiteralProto *hlo_literal_to_proto(hlo_proto *p, const hlo_literal *literal);
hlo_attr hlo_window_from_proto(hlo_proto *p, const Xla__Window *from);
Xla__Window *hlo_window_to_proto(hlo_proto *p, const hlo_attrs *window);
const char *hlo_labels_from_proto(hlo_proto *p, const Xla__ConvolutionDimensionNumbers *from);
Xla__ConvolutionDimensionNumbers *hlo_labels_to_proto(hlo_proto *p, const char *labels);

/* ------------------------------------------------ device groups, shardings, aliases (devices.c) */

/* REPLICA_GROUPS or SOURCE_TARGET_PAIRS. */
void hlo_groups_from_proto(hlo_proto *p, const Xla__HloInstructionProto *from, hlo_attr *out);
void hlo_groups_to_proto(hlo_proto *p, const hlo_attr *attr, Xla__HloInstructionProto *to);
/* SHARDING or DOMAIN. The first returns false if the message does not have it. */
bool hlo_sharding_from_proto(hlo_proto *p, const Xla__HloInstructionProto *from, hlo_attr *out);
void hlo_sharding_to_proto(hlo_proto *p, const hlo_attr *attr, Xla__HloInstructionProto *to);
void hlo_aliases_from_proto(hlo_proto *p, const hlo_pb *message, const hlo_pb_field *field,
                            hlo_attr *out);
void hlo_aliases_to_proto(hlo_proto *p, const hlo_aliases *aliases, hlo_pb *message,
                          const hlo_pb_field *field);

/* --------------------------------------------------------- messages around modules (envelope.c) */

/* A message that contains a module. */
typedef struct hlo_envelope {
    const hlo_pb_type *type; /* the module's own type if no message contains it */
    hlo_wire message, module;
    bool sized;    /* the file starts with the size of the message; the arguments follow it */
    hlo_wire rest; /* if `sized`: the arguments */
} hlo_envelope;

/* Finds the module in the bytes of a file, and checks all bytes. Sets p->unknown. */
hlo_envelope hlo_envelope_open(hlo_proto *p, const void *bytes, size_t size);
/* True if the message has inputs of a run. */
bool hlo_envelope_records(const hlo_envelope *envelope);
/* Writes the attributes of the header that an HloModuleConfigProto has, at most two. Returns their
 * number. */
uint32_t hlo_envelope_attrs(const hlo_envelope *envelope, hlo_attr *out);

/* ------------------------------------------------------------------------- attributes (attrs.c) */

/* Writes attributes to `message`, whose other fields must already be set, and restores the unknown
 * fields of nested messages. `op` is HLO_OP_COUNT unless the owner is an instruction. */
void hlo_attrs_to_proto(hlo_proto *p, const hlo_attr *attrs, uint32_t count, hlo_op op,
                        hlo_pb *message);
/* Reads the attributes `ids`, terminated by HLO_ATTR_COUNT, into `out`. Returns their number.
 * `required`: the attributes are present even if their fields are empty. */
uint32_t hlo_attrs_from_proto(hlo_proto *p, hlo_pb *message, const uint8_t *ids, hlo_op op,
                              bool required, hlo_attr *out);
/* Empties the fields of the attributes `ids`, terminated by HLO_ATTR_COUNT. */
void hlo_attrs_clear(hlo_proto *p, hlo_pb *message, const uint8_t *ids, hlo_op op);
/* Stores the fields that no attribute has read in an HLO_ATTR_UNMAPPED. Returns false if there are
 * none. */
bool hlo_unmapped_from_proto(hlo_proto *p, const hlo_pb *message, hlo_attr *out);
/* Creates a message with the fields of an HLO_ATTR_UNMAPPED. */
void *hlo_unmapped_to_proto(hlo_proto *p, const hlo_pb_type *type, const hlo_attr *attrs,
                            uint32_t count);
/* Moves the unknown fields of nested messages to an attribute. Returns false if there are none.
 * Must be called before any other field is emptied. Does not move the unknown fields of the message
 * itself, of a module's computations, or of a computation's instructions. */
bool hlo_unknown_fields_from_proto(hlo_proto *p, hlo_pb *message, hlo_attr *out);

#endif
