/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/module_facts.h"

#include "passes/analysis/dequantize.h"
#include "passes/analysis/value.h"

#include "ir/devices/boundary.h"
#include "ir/module/known.h"
#include "passes/sharding/devices.h"

bool *hlo_facts_control_deps(const hlo_module *module, hlo_arena *arena) {
    if (!module->attrs_seen[HLO_ATTR_CONTROL_PREDECESSORS]) return NULL;
    bool *controlled = hlo_arena_zero(arena, module->next_id);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            const hlo_attr *attr = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
            if (!attr) continue;
            controlled[instr->id] = true;
            for (uint32_t i = 0; i < attr->u.instrs->count; i++)
                controlled[attr->u.instrs->v[i]->id] = true;
        }
    return controlled;
}

typedef struct called_effects {
    const bool *side, *random; /* by computation id: the computation has effects of this kind */
    bool any_side, any_random;
} called_effects;

static void visit_called(void *user, hlo_computation *called) {
    called_effects *effects = user;
    effects->any_side |= effects->side[called->id];
    effects->any_random |= effects->random[called->id];
}

static bool has_op(const hlo_module *module, unsigned flags) {
    for (unsigned op = 0; op < HLO_OP_COUNT; op++)
        if (module->op_counts[op] && hlo_op_is(op, flags)) return true;
    return false;
}

hlo_effects hlo_facts_side_effects(const hlo_module *module, hlo_arena *arena) {
    if (!has_op(module, HLO_SIDE_EFFECT | HLO_COLLECTIVE | HLO_NONDET) &&
        !module->attrs_seen[HLO_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT])
        return (hlo_effects){0};
    hlo_effects effects = {.side = hlo_arena_zero(arena, module->next_id),
                           .random = hlo_arena_zero(arena, module->next_id)};
    bool *side = hlo_arena_zero(arena, module->next_computation_id);
    bool *random = hlo_arena_zero(arena, module->next_computation_id);
    /* In a module for several partitions, or one that will be partitioned, removing a collective
     * removes it on all devices, so the collective has no side effect. In other modules, a channel
     * may connect to other programs. */
    bool together = hlo_devices_partitions(module) > 1 || !has_op(module, HLO_COLLECTIVE);
    for (const hlo_computation *comp = module->first; comp && !together; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i && !together; i = hlo_instr_next(i))
            together = hlo_manual_enters(i);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            called_effects called = {.side = side, .random = random};
            hlo_instr_visit_called(instr, visit_called, &called);
            effects.side[instr->id] =
                hlo_op_is(instr->op, HLO_SIDE_EFFECT) ||
                (hlo_op_is(instr->op, HLO_COLLECTIVE) &&
                 hlo_instr_attr(instr, HLO_ATTR_CHANNEL_ID) && !together) ||
                hlo_instr_int(instr, HLO_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, 0) || called.any_side ||
                /* a done has the effects of its start */
                (hlo_op_async_pair(HLO_OP_INVALID, instr->op) && instr->operand_count &&
                 effects.side[hlo_instr_operand(instr, 0)->id]);
            effects.random[instr->id] = hlo_op_is(instr->op, HLO_NONDET) || called.any_random;
            side[comp->id] |= effects.side[instr->id];
            random[comp->id] |= effects.random[instr->id];
        }
    return effects;
}

hlo_fp8_reach hlo_facts_fp8_reach(const hlo_module *module, hlo_arena *arena) {
    unsigned char *fp8 = hlo_arena_zero(arena, module->next_id);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            bool scaled = instr->op == HLO_OP_MULTIPLY || instr->op == HLO_OP_DIVIDE;
            bool carries = scaled || instr->op == HLO_OP_CONVERT || hlo_instr_moves(instr) ||
                           (hlo_op_is(instr->op, HLO_COLLECTIVE) && instr->operand_count);
            unsigned char *known = &fp8[instr->id];
            uint32_t index;
            *known = hlo_type_is_fp8_operand(instr->shape->type) ? HLO_FROM_FP8
                     : hlo_type_is_fp8_value(instr->shape->type) ? HLO_FROM_OTHER_FP8
                                                                 : 0;
            if (*known) continue;
            if (hlo_is_relu(instr, &index)) *known = fp8[hlo_instr_operand(instr, index)->id];
            if (carries) *known |= fp8[hlo_instr_operand(instr, 0)->id];
            if (instr->op == HLO_OP_MULTIPLY) *known |= fp8[hlo_instr_operand(instr, 1)->id];
            if (!hlo_op_is(instr->op, HLO_JOINS)) continue;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                *known |= fp8[hlo_instr_operand(instr, i)->id];
        }
    return (hlo_fp8_reach){fp8, module->next_id};
}

bool hlo_facts_from_fp8(const hlo_fp8_reach *reach, const hlo_instruction *value) {
    return value->id < reach->count ? reach->of[value->id] & HLO_FROM_FP8
                                    : hlo_type_is_fp8(value->shape->type);
}

bool *hlo_facts_reached(const hlo_module *module, hlo_arena *arena) {
    bool *reached = hlo_arena_zero(arena, module->next_computation_id);
    if (module->entry) reached[module->entry->id] = true;
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (const hlo_instruction *instr = reached[comp->id] ? comp->first : NULL; instr;
             instr = hlo_instr_next(instr))
            if (instr->attr_bits & HLO_ATTR_BIT_CALLS)
                hlo_instr_visit_called(instr, hlo_mark_called, reached);
    return reached;
}

bool *hlo_facts_live(const hlo_module *module, hlo_arena *arena) {
    hlo_effects effects = hlo_facts_side_effects(module, arena);
    bool *needed = hlo_arena_zero(arena, module->next_id);
    bool *called = hlo_arena_zero(arena, module->next_computation_id);
    if (module->entry) called[module->entry->id] = true;
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev) {
        if (!called[comp->id]) continue;
        for (const hlo_instruction *instr = comp->last; instr; instr = hlo_instr_prev(instr)) {
            if (instr == comp->root || instr->op == HLO_OP_PARAMETER ||
                hlo_facts_has(effects.side, instr->id))
                needed[instr->id] = true;
            if (!needed[instr->id]) continue;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                needed[hlo_instr_operand(instr, i)->id] = true;
            const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
            for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
                needed[control->u.instrs->v[i]->id] = true;
            hlo_instr_visit_called(instr, hlo_mark_called, called);
        }
    }
    return needed;
}

/* True if the computations that the instruction calls are part of its kernel. These computations
 * are applied to elements; in contrast, the computation of a scan is applied to arrays. */
static bool has_kernel(const hlo_instruction *instr) {
    switch (instr->op) {
    case HLO_OP_FUSION:
    case HLO_OP_SELECT_AND_SCATTER: return true;
    case HLO_OP_CALL:
    case HLO_OP_CUSTOM_CALL:
    case HLO_OP_SCAN: return false;
    default: return hlo_instr_comp(instr, HLO_ATTR_TO_APPLY) != NULL;
    }
}

bool *hlo_facts_fused(const hlo_module *module, hlo_arena *arena) {
    if (!module->op_counts[HLO_OP_FUSION] && !module->op_counts[HLO_OP_SELECT_AND_SCATTER] &&
        !module->attrs_seen[HLO_ATTR_TO_APPLY])
        return NULL;
    bool *fused = hlo_arena_zero(arena, module->next_computation_id);
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (fused[comp->id] || has_kernel(instr))
                hlo_instr_visit_called(instr, hlo_mark_called, fused);
    return fused;
}
