/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned instructions, which every pass leaves as and where they are.
 *
 * A pinned instruction is not replaced, removed, moved, merged, copied beside itself or put into
 * another one, and no analysis looks through it: new instructions use its result unchanged. So a
 * control dependency keeps its order, a value its memory space, an effect its place and number, and
 * another thread its code. Only a call or a loop that is pinned for an effect in its callee
 * (HLO_PIN_EFFECT) may change: calls are inlined, loops get other operands. A pinned start pins its
 * done.
 *
 * Instructions are moved toward the beginning of their computation only, and neither they nor the
 * instructions moved with them are pinned: no order of a control dependency is ever undone. */
#ifndef HLO_PASSES_ANALYSIS_PIN_H
#define HLO_PASSES_ANALYSIS_PIN_H

#include "ir/ir.h"
#include "passes/reason/reason.h"

/* Pins instructions in the whole module, when a run of passes begins. */
void hlo_pin_module(hlo_module *module, hlo_arena *scratch);

/* Returns the reason why an instruction is pinned. */
hlo_reason hlo_pin_reason(const hlo_instr *pinned);

/* Finds the pinned instruction that keeps a dot wide: the dot itself, or one on the path from the
 * fp8 values that its operands come from by movement, conversion and scaling. NULL: there is none.
 */
const hlo_instr *hlo_pin_of_dot(const hlo_instr *dot);

/* True if the call may be inlined: it is pinned by effects in the callee at most, and no attribute
 * forbids it. */
bool hlo_pin_lets_inline(const hlo_instr *call);

/* True if the module has a schedule, which fixes order and memory: no pass changes such a module.
 */
bool hlo_pin_is_scheduled(const hlo_module *module);

/* True if a loop, a branch or a tuple is pinned, and not only by an effect in its callees. */
bool hlo_pin_holds(const hlo_instr *instr);

/* True if `instr` has an attribute with an entry for each element of a tuple. */
bool hlo_pin_has_element_attrs(const hlo_instr *instr);

#endif
