/* What stays as it is and where it is, whatever pass runs.
 *
 * A pinned instruction is not replaced, removed, moved, merged, copied beside itself or put into
 * another one, and nothing looks through it: what is made uses its result as it is. So a control
 * dependency orders what it ordered, a value stays in its memory space, an effect happens once and
 * in its place, and what another thread runs is left to it. Only an effect that is in what is
 * called (HLO_PIN_EFFECT of a call or a loop) leaves room: calls are inlined, loops are handed
 * other values. With a start is pinned what ends it.
 *
 * Everything that stands before an instruction in its computation may be computed before it; what
 * is moved is moved toward the beginning and is not pinned, nor is anything that goes with it. So
 * no order that control dependencies ask for is ever undone. */
#ifndef HLO_PASSES_PIN_H
#define HLO_PASSES_PIN_H

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
