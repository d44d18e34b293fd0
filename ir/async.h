/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous operations that wrap one instruction. */
#ifndef HLO_IR_ASYNC_H
#define HLO_IR_ASYNC_H

#include "ir/ir.h"

/* True for async-start, async-update and async-done, which form a chain: a start, any number of
 * updates, a done. */
bool hlo_op_is_async(hlo_op op);
/* Returns the async-start of the chain of `instr`, or NULL. */
const hlo_instr *hlo_async_start(const hlo_instr *instr);
/* Returns the instruction that `comp` wraps: the only one other than its parameters, which are its
 * operands in order, without attributes beyond those of its opcode. NULL: `comp` has another form.
 * In text, such an async-start is `negate-start(...)`, and the computation is omitted. */
const hlo_instr *hlo_async_wrapped(const hlo_computation *comp);
/* True if the computation that a start calls can be rebuilt from the start: it wraps one
 * instruction, which has all of the start's operands and returns the shape in the start's result,
 * and whose opcode has no separate start opcode (all-gather has one). */
bool hlo_async_tells(const hlo_instr *start, const hlo_computation *called);

#endif
