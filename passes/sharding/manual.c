/* SPDX-License-Identifier: Apache-2.0 */
/* Depths of values in manual regions, and the operands that enter and leave regions.
 *
 * A depth is derived from the operands: an instruction that enters a region is one deeper than its
 * operands, an instruction that leaves a region is one less deep, and any other has the same depth.
 * A computation has the depth of its callers. Sets of depths only grow: a value with several
 * possible depths is not analyzed. */
#include "passes/sharding/manual.h"

#include <string.h>

#include "passes/sharding/devices.h"

/* Bit n of a set is depth n; the bit DEEPEST also stands for every greater depth. Empty: constants
 * and other values that belong to every depth. */
enum { OUTSIDE = 1, DEEPEST = 0x40, DEPTHS = 0x7f, BY_DEVICE = 0x80, ANYWHERE = 0xff };

enum { ROUND_LIMIT = 16 };

struct hlo_manual {
    uint32_t count;   /* size of `depths` */
    uint8_t *depths;  /* by the instruction's id; BY_DEVICE: it depends on the device's number */
    uint8_t *entered; /* by the computation's id: depths of its callers' operands */
    bool *reached;    /* by the computation's id */
    bool changes, any;
};

/* --------------------------------------------------------------------------------------- depths */

/* Returns the depths outside a region. Shardy's custom call leaves one region. XLA's older custom
 * call may leave several; the sharding of its result shows whether it is still in one. */
static uint8_t less_deep(const hlo_instr *leaves, uint8_t depths) {
    const hlo_sharding *sharding = hlo_instr_sharding(leaves);
    bool older = hlo_boundary_calls(leaves, "SPMDShardToFullShape");
    if (older && sharding && !hlo_sharding_has(sharding, HLO_SHARDING_MANUAL)) return OUTSIDE;
    if (!(depths & DEPTHS)) return BY_DEVICE; /* the region has no operand */
    uint8_t left = (uint8_t)((depths & DEPTHS) >> 1 | (depths & DEEPEST));
    bool fits = left && !(depths & OUTSIDE) && !(older && left & OUTSIDE);
    return fits ? left : ANYWHERE;
}

typedef struct visit {
    hlo_manual *m;
    uint8_t depths; /* depths of the caller's operands */
} visit;

static void grow(hlo_manual *m, uint8_t *depths, uint8_t by) {
    m->changes |= (*depths | by) != *depths;
    *depths |= by;
}

/* Enters a callee at the call's depths. Its results also have these depths, or any depth if its
 * root has another one. */
static void visit_called(void *user, hlo_computation *called) {
    visit *v = user;
    hlo_manual *m = v->m;
    m->changes |= !m->reached[called->id];
    m->reached[called->id] = true;
    grow(m, &m->entered[called->id], v->depths);
    uint8_t root = m->depths[called->root->id];
    if (root & DEPTHS & ~m->entered[called->id]) v->depths = ANYWHERE;
    v->depths |= root & BY_DEVICE;
}

static uint8_t depths_of(hlo_manual *m, const hlo_instr *instr) {
    visit v = {.m = m};
    if (instr->op == HLO_OP_PARAMETER) return m->entered[instr->parent->id];
    if (instr->op == HLO_OP_PARTITION_ID || instr->op == HLO_OP_REPLICA_ID) return BY_DEVICE;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        v.depths |= m->depths[hlo_instr_operand(instr, i)->id];
    hlo_instr_visit_called(instr, visit_called, &v);
    m->any |= hlo_manual_enters(instr);
    return hlo_manual_enters(instr)
               ? (uint8_t)((v.depths << 1 & DEPTHS) | (v.depths & (DEEPEST | BY_DEVICE)))
           : hlo_manual_leaves(instr) ? less_deep(instr, v.depths)
                                      : v.depths;
}

/* True if depths were found and no collective is outside of all regions, because devices do not
 * exchange global values. */
static bool is_understood(const hlo_module *module, const hlo_manual *m) {
    if (m->changes || !m->any) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i))
            if (hlo_op_is(i->op, HLO_COLLECTIVE) && m->reached[comp->id] &&
                m->depths[i->id] & OUTSIDE)
                return false;
    return true;
}

const hlo_manual *hlo_manual_find(const hlo_module *module, hlo_arena *arena) {
    hlo_manual *m = hlo_arena_zero(arena, sizeof *m);
    /* Unless the header or a name excludes it, the partitioner, which gives each device parts of
     * the entry's values, may not have run yet. */
    if (!(hlo_devices_replicas(module) == 1 && !hlo_boundary_spmd(module->entry) &&
          module->attrs_seen[HLO_ATTR_CUSTOM_CALL_TARGET]))
        return m;
    m->depths = hlo_arena_zero(arena, module->next_id);
    m->entered = hlo_arena_zero(arena, module->next_computation_id);
    m->reached = hlo_arena_zero(arena, module->next_computation_id * sizeof *m->reached);
    m->reached[module->entry->id] = true;
    m->entered[module->entry->id] = OUTSIDE;
    m->changes = true;
    for (unsigned round = 0; m->changes && round < ROUND_LIMIT; round++) {
        m->changes = false;
        for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
            for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i))
                if (m->reached[comp->id]) grow(m, &m->depths[i->id], depths_of(m, i));
    }
    m->count = is_understood(module, m) ? module->next_id : 0;
    return m;
}

bool hlo_manual_outside(const hlo_manual *manual, const hlo_instr *value) {
    return value->id < manual->count && manual->depths[value->id] == OUTSIDE;
}
