/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the verifier, and functions that all its checks use, such as error reporting. */
#ifndef HLO_IR_VERIFY_CONTEXT_H
#define HLO_IR_VERIFY_CONTEXT_H

#include "ir/ir.h"
#include "ir/text/diag.h"

enum { HLO_VERIFY_SOUND = 64 };

typedef struct verifier {
    const hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    hlo_error_budget errors;
    bool *passed; /* by instruction id: the instruction was visited in the list of its own
                   * computation */
    const hlo_shape *sound[HLO_VERIFY_SOUND]; /* the last valid shape with a given hash modulo
                                               * HLO_VERIFY_SOUND */
    /* The loop over all instructions counts the next two members for check_module(). */
    size_t *calls;         /* by computation id: number of computations that the computation's
                            * instructions name */
    size_t host_transfers; /* number of sends and receives */
} verifier;

enum { HLO_VERIFY_TEXT = 640 };

/* Reports an error about `length` bytes of the source, from `offset` on. */
void hlo_verify_error_about(verifier *v, uint32_t offset, uint32_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define hlo_verify_error(v, offset, ...) hlo_verify_error_about(v, offset, 1, __VA_ARGS__)
/* Emits a note about another location of the last error. */
void hlo_verify_note(verifier *v, uint32_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints a shape without layout, in v->scratch. */
const char *hlo_verify_text(verifier *v, const hlo_shape *shape);
/* Replaces *shape by its element `index`. Returns false if *out_missing is not an element. */
bool hlo_verify_step(const hlo_shape **shape, const hlo_ints *index, int64_t *out_missing);
/* Reports the error of a shape, if the shape has one. The message names the shape `what`. */
void hlo_verify_shape(verifier *v, uint32_t offset, const hlo_shape *shape, const char *what);

/* Returns the offset of the attribute's name in the source after `from`, and on the same line if
 * `within_line`. Returns `from` if the name is not found. */
uint32_t hlo_verify_attr_offset(const verifier *v, uint32_t from, hlo_attr_id id, bool within_line);

#endif
