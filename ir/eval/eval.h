/* SPDX-License-Identifier: Apache-2.0 */
/* The value of every instruction, computed on the CPU: one kernel per opcode over strided arrays.
 *
 * Used by constant folding and the CPU backend; independent of files and plans. The caller flattens
 * tuples: a kernel reads the leaves of its operands and writes the leaves of its result, each in
 * memory allocated by the caller.
 *
 * Arithmetic on floats of at most 32 bits is done in f32 and rounded to the type after every
 * instruction, f64 in f64. Sums of floats (dot, reduce) are accumulated in f32 or wider and rounded
 * once. Integers wrap. Results do not depend on the number of threads. */
#ifndef HLO_IR_EVAL_EVAL_H
#define HLO_IR_EVAL_EVAL_H

#include "ir/kernel/view.h"

/* True if the CPU supports this instruction. Otherwise `why`, which may be NULL, is set to a static
 * sentence. */
bool hlo_eval_supports(const hlo_instr *instr, const char **why);

/* Computes the result of `instr` from its operands. `operands` are the leaves of all operands in
 * order, `results` the leaves of the result. They are dense in any layout, or strided. A result may
 * equal the view of an operand for elementwise opcodes, and the view of the updated operand for
 * dynamic-update-slice and scatter. Otherwise it must not overlap an operand.
 * The caller evaluates opcodes that call computations on whole arrays (call, fusion, while,
 * conditional) and opcodes that only build or access tuples. Opcodes that call scalar computations
 * (reduce, scatter, sort, map, reduce-window) are supported.
 * `scratch` is used for working memory, which is released before the call returns; see arena.h for
 * running out of memory. HLO_OK; HLO_INVALID_INPUT, with `why` set to a static sentence, if
 * unsupported. */
hlo_status hlo_eval(const hlo_eval_env *env, const hlo_instr *instr, const hlo_view *operands,
                    const hlo_view *results, hlo_arena *scratch, const char **why);

#endif
