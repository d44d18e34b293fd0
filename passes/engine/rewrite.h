/* The parts of a rewrite: places, templates, calls. A firing is planned, checked, and then
 * committed. Until then nothing has changed: moves are only noted, new instructions have no users
 * but each other, and if a check fails they are removed again.
 *
 *   place.c     where new instructions stand, and the moves that this needs
 *   template.c  templates to instructions
 *   call.c      fused calls with some fields changed
 *   rewrite.c   the actions of a rule, all or none */
#ifndef HLO_PASSES_ENGINE_REWRITE_H
#define HLO_PASSES_ENGINE_REWRITE_H

#include "passes/engine/engine.h"

/* place.c: plans to move `value`, and its operands, before env->build->at. False: it depends on the
 * root that is replaced, or is pinned; env->reason says so. */
bool hlo_rule_hoist_before(hlo_rule_env *env, hlo_instr *value);

/* True if an array of the shape has fewer than 2^63 bytes, or unknown sizes. */
bool hlo_rule_shape_fits(hlo_rule_env *env, const hlo_shape *shape);
/* hlo_builder.admits of hlo_rule_env.build: rejects shapes that do not fit, and plans to move the
 * operands before the place. */
bool hlo_rule_admits(hlo_builder *b, const hlo_shape *shape, uint32_t count,
                     hlo_instr *const *operands);
/* Carries out the planned moves. */
void hlo_rule_move_all(hlo_rule_env *env);
/* True if `value` is computed from `from`, of the same computation, or if the search, which ends at
 * instructions before `from`, exceeds its budget. */
bool hlo_rule_depends(hlo_rule_env *env, const hlo_instr *value, const hlo_instr *from);

/* template.c: makes a template. NULL: the value is absent, or env->unbuildable is set. */
hlo_instr *hlo_rule_build(hlo_rule_env *env, uint32_t term);
/* Returns the instruction of a slot, after making its template if it has one: a template used twice
 * is made once. NULL: as in hlo_rule_build(). */
hlo_instr *hlo_rule_build_slot(hlo_rule_env *env, int16_t slot);

/* call.c: makes the fused call of an action. NULL: it is refused, env->reason may say why. */
hlo_instr *hlo_rule_build_call(hlo_rule_env *env, const hlo_rule_action *action);

#endif
