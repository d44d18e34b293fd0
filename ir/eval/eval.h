/* The value of every instruction, computed on the CPU: one kernel per opcode over strided arrays.
 *
 * Constant folding and the CPU backend both use this; it knows neither files nor plans. Tuples are
 * taken apart by the caller: a kernel gets the leaves of its operands and writes the leaves of its
 * result, each in memory that the caller has allocated. */
#ifndef HLO_IR_EVAL_EVAL_H
#define HLO_IR_EVAL_EVAL_H

#include "ir/ir.h"

/* An array in memory: element (i0, i1, ...) is at data + (i0*strides[0] + i1*strides[1] + ...) *
 * hlo_types[type].bytes. Elements are held as in hlo_literal. Owns nothing. */
typedef struct hlo_view {
    hlo_type type;
    uint32_t rank;
    const int64_t *dims;
    const int64_t *strides; /* in elements; 0 repeats an element */
    void *data;
} hlo_view;

/* Whether the CPU runs this opcode (op.def names an evaluator). */
bool hlo_eval_supports(const hlo_instr *instr);

/* Computes the result of `instr` from its operands. `operands` are the leaves of all operands in
 * order, `results` the leaves of the result; both are dense in any layout or strided. A result never
 * overlaps an operand.
 * Opcodes that call computations on whole arrays (call, fusion, while, conditional) are not
 * evaluated here: the caller runs the computation. Those that call scalar ones (reduce, scatter,
 * sort, map, reduce-window) are.
 * `scratch` is used for working memory and given back before the call returns.
 * HLO_OK; HLO_INVALID_INPUT, with `why` set to a static sentence, for what is not supported. */
hlo_status hlo_eval(const hlo_instr *instr, const hlo_view *operands, const hlo_view *results,
                    hlo_arena *scratch, const char **why);

#endif
