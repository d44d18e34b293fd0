/* SPDX-License-Identifier: Apache-2.0 */
/* The value of every instruction, computed on the CPU: one kernel per opcode over strided arrays.
 *
 * Constant folding and the CPU backend both use this; it knows neither files nor plans. Tuples are
 * taken apart by the caller: a kernel gets the leaves of its operands and writes the leaves of its
 * result, each in memory that the caller has allocated.
 *
 * Arithmetic on floats of at most 32 bits is done in f32 and rounded to the type after every
 * instruction, f64 in f64. Sums of floats (dot, reduce) are accumulated in f32 or wider and rounded
 * once. Integers wrap. Results do not depend on the number of threads. */
#ifndef HLO_IR_EVAL_EVAL_H
#define HLO_IR_EVAL_EVAL_H

#include "ir/kernel/view.h"

/* True if the CPU can run this instruction; false: `why`, which may be NULL, is set to a static
 * sentence. */
bool hlo_eval_supports(const hlo_instr *instr, const char **why);

/* Computes the result of `instr` from its operands. `operands` are the leaves of all operands in
 * order, `results` the leaves of the result; they are dense in any layout or strided. A result may
 * be the very view of an operand for elementwise opcodes, and that of an operand that is updated
 * for dynamic-update-slice and scatter; otherwise it overlaps no operand.
 * Opcodes that call computations on whole arrays (call, fusion, while, conditional) and tuple
 * plumbing are not evaluated here: the caller runs them. Those that call scalar ones (reduce,
 * scatter, sort, map, reduce-window) are.
 * `scratch` is used for working memory and given back before the call returns; it runs out of
 * memory as arena.h says. HLO_OK; HLO_INVALID_INPUT, with `why` set to a static sentence, for what
 * is not supported. */
hlo_status hlo_eval(const hlo_eval_env *env, const hlo_instr *instr, const hlo_view *operands,
                    const hlo_view *results, hlo_arena *scratch, const char **why);

#endif
