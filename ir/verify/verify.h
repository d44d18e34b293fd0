/* Inside the verifier: verify.c looks at instructions and computations one by one, module.c
 * at what holds between them and of the header. */
#ifndef HLO_IR_VERIFY_H
#define HLO_IR_VERIFY_H

#include "ir/ir.h"

enum { HLO_VERIFY_SOUND = 64 };

typedef struct verifier {
    const hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    hlo_error_budget errors;
    bool *passed; /* by instruction id: was met, and in its own computation */
    const hlo_shape *sound[HLO_VERIFY_SOUND]; /* the last of each hash that has no fault */
    /* What was met on the walk over all instructions, so that another one can be spared: */
    size_t *calls;         /* by computation id: how many computations its instructions name */
    size_t host_transfers; /* sends and receives */
} verifier;

enum { HLO_VERIFY_TEXT = 640 };

/* One error, about the word at `offset` of the source. */
void hlo_verify_error(verifier *v, uint32_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* One error, about `length` bytes of the source. */
void hlo_verify_error_about(verifier *v, uint32_t offset, uint32_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Another place that the last error is about. */
void hlo_verify_note(verifier *v, uint32_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The text of a shape without layout, in v->scratch. */
const char *hlo_verify_text(verifier *v, const hlo_shape *shape);
/* What is wrong with a shape in itself, its size or its layout; NULL (shape.c). */
const char *hlo_verify_shape_fault(hlo_arena *scratch, const hlo_shape *shape);
/* That is an error. */
void hlo_verify_shape(verifier *v, uint32_t offset, const hlo_shape *shape, const char *what);

/* Where the attribute's name stands in the source, behind `from` and, `within_line`, in its line;
 * `from` when it does not. */
uint32_t hlo_verify_attr_offset(const verifier *v, uint32_t from, hlo_attr_id id, bool within_line);

/* What the attributes of an instruction say of it, besides words and shapes (attr.c). */
void hlo_verify_attrs(verifier *v, const hlo_instr *instr);
/* A send or receive between the host and a device. */
bool hlo_verify_is_host_transfer(const hlo_instr *instr);
/* Names, calls, channels, the header's attributes; once the walk over all instructions is done, on
 * which each has left itself as the meaning of its name. */
void hlo_verify_module(verifier *v);

#endif
