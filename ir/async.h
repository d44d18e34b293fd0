/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous operations that wrap one instruction. */
#ifndef HLO_IR_ASYNC_H
#define HLO_IR_ASYNC_H

#include "ir/ir.h"

/* True for async-start, async-update and async-done, which form a chain: a start, any number of
 * updates, a done. */
bool hlo_op_is_async(hlo_op op);
/* Returns the async-start of the chain of `instr`; NULL: there is none. */
const hlo_instr *hlo_async_start(const hlo_instr *instr);
/* Returns the instruction that `comp` wraps: the only one beside its parameters, which are its
 * operands in order, without attributes beyond those of its opcode. NULL: `comp` has another form.
 * Text writes `negate-start(...)` for such an async-start and omits the computation. */
const hlo_instr *hlo_async_wrapped(const hlo_computation *comp);
/* True if the computation that a start calls can be rebuilt from the start: it wraps one
 * instruction, whose opcode has no start of its own, as all-gather has, has all of the start's
 * operands, and returns the shape in the start's result. */
bool hlo_async_tells(const hlo_instr *start, const hlo_computation *called);

#endif
