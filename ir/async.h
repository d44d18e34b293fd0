/* Asynchronous operations that wrap one instruction. */
#ifndef HLO_IR_ASYNC_H
#define HLO_IR_ASYNC_H

#include "ir/ir.h"

/* An asynchronous operation is a chain: async-start, any number of async-update, async-done. */
bool hlo_op_is_async(hlo_op op);
/* The async-start of the chain of `instr`; NULL when there is none. */
const hlo_instr *hlo_async_start(const hlo_instr *instr);
/* The only instruction of `comp` beside its parameters, which are its operands in their order, and
 * which has no attributes but its opcode's own; NULL when `comp` has another form. Text then writes
 * `negate-start(...)` for async-start and omits the computation. */
const hlo_instr *hlo_async_wrapped(const hlo_computation *comp);
/* True if the computation that a start calls can be rebuilt from the start: it wraps one
 * instruction, has all of the start's operands, and returns the shape in the start's result. */
bool hlo_async_tells(const hlo_instr *start, const hlo_computation *called);

#endif
