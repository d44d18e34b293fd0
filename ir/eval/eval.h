/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the value of every instruction on the CPU, with one kernel per opcode over strided
 * arrays.
 *
 * Constant folding and the CPU backend use this evaluator, which depends on neither files nor
 * plans. The caller flattens tuples: a kernel reads the leaves of its operands and writes the
 * leaves of its result, each in memory allocated by the caller.
 *
 * Arithmetic on floats of at most 32 bits is done in f32 and rounded to the type after every
 * instruction. Arithmetic on f64 is done in f64. Sums of floats (dot, reduce) are accumulated in
 * f32 or wider and rounded once. Integers wrap. Results do not depend on the number of threads. */
#ifndef HLO_IR_EVAL_EVAL_H
#define HLO_IR_EVAL_EVAL_H

#include "ir/kernel/view.h"

/* True if the CPU supports this instruction. Otherwise `why`, which may be NULL, is set to a static
 * sentence. */
bool hlo_eval_supports(const hlo_instruction *instr, const char **why);

/* True if `instr` applies a computation with loops or arrays, which may take long or forever. */
bool hlo_eval_interprets(const hlo_instruction *instr);

/* Computes the result of `instr` from its operands. `operands` are the leaves of all operands in
 * order, `results` the leaves of the result. Arrays are dense in any layout, or strided. A result
 * may have the same view as an operand of an elementwise opcode, or as the updated operand of
 * dynamic-update-slice and scatter. Any other result must not overlap an operand. The caller
 * evaluates opcodes that call computations on whole arrays (call, fusion, while, conditional) and
 * opcodes that only build or access tuples. Opcodes that call scalar computations (reduce, scatter,
 * sort, map, reduce-window) are supported. `scratch` is used for working memory, which is released
 * before the call returns; see arena.h for running out of memory. Returns HLO_OK, or
 * HLO_INVALID_INPUT with `why` set to a static sentence if the instruction is not supported. */
hlo_status hlo_eval(const hlo_eval_env *env, const hlo_instruction *instr, const hlo_view *operands,
                    const hlo_view *results, hlo_arena *scratch, const char **why);

#endif
