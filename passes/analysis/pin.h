/* SPDX-License-Identifier: Apache-2.0 */
/* Marks instructions as pinned: no pass changes or moves a pinned instruction.
 *
 * A pinned instruction is not replaced, removed, moved, merged, duplicated or put into another
 * instruction, and no analysis looks through it. New instructions use its result unchanged. This
 * preserves the order of control dependencies, the memory space of values, the position and number
 * of effects, and the code of other threads. The only exception is a call or a loop that is pinned
 * because of an effect in its callee (HLO_PIN_EFFECT): calls may be inlined, and the operands of
 * loops may change. A pinned start pins its done.
 *
 * Passes move instructions only toward the beginning of their computation, and move no pinned
 * instruction. So the order of control dependencies is preserved. */
#ifndef HLO_PASSES_ANALYSIS_PIN_H
#define HLO_PASSES_ANALYSIS_PIN_H

#include "ir/ir.h"
#include "passes/reason/reason.h"

/* Pins instructions in the whole module, at the start of a run of passes. */
void hlo_pin_module(hlo_module *module, hlo_arena *scratch);

hlo_reason hlo_pin_reason(const hlo_instruction *pinned);

/* Finds the pinned instruction that prevents a dot from becoming FP8: the dot itself, or an
 * instruction on a path of movement, conversion and scaling from an fp8 value to an operand.
 * Returns NULL if there is no such instruction. */
const hlo_instruction *hlo_pin_of_dot(const hlo_instruction *dot);

/* True if the call may be inlined: it is not pinned or is pinned only because of effects in the
 * callee, and its attributes allow inlining. */
bool hlo_pin_lets_inline(const hlo_instruction *call);

/* True if the module has a schedule, which fixes order and memory: passes do not change it. */
bool hlo_pin_is_scheduled(const hlo_module *module);

/* True if `instr` is pinned, except for a loop or conditional pinned only for an effect in its
 * callees. */
bool hlo_pin_holds(const hlo_instruction *instr);

/* True if `instr` has an attribute with an entry for each element of a tuple. */
bool hlo_pin_has_element_attrs(const hlo_instruction *instr);

#endif
