/* Depths of values in manual regions, and the operands that enter and leave regions.
 *
 * A depth is derived from the operands: an instruction that enters a region is one deeper than
 * they are, one that leaves it one less deep, any other has their depth, and a computation has the
 * depth of its callers. Sets of depths only grow: a value with several possible depths is not
 * understood. */
#include "passes/sharding/manual.h"

#include <string.h>

#include "ir/device_list.h"
#include "passes/sharding/devices.h"

/* Bit n of a set is depth n, DEEPEST also every greater depth. Empty: constants and the like, which
 * belong to every depth. */
enum { OUTSIDE = 1, DEEPEST = 0x40, DEPTHS = 0x7f, BY_DEVICE = 0x80, ANYWHERE = 0xff };

enum { ROUND_LIMIT = 16 };

struct hlo_manual {
    uint32_t count;   /* of `depths` */
    uint8_t *depths;  /* by the instruction's id; BY_DEVICE: it depends on the device's number */
    uint8_t *entered; /* by the computation's id: depths of its callers' operands */
    bool *reached;    /* by the computation's id */
    bool changes, any;
};

static bool calls(const hlo_instr *instr, const char *name) {
    const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return instr->op == HLO_OP_CUSTOM_CALL && target && !strcmp(target, name);
}

bool hlo_manual_enters(const hlo_instr *instr) {
    return calls(instr, "xla.sdy.GlobalToLocalShape") || calls(instr, "SPMDFullToShardShape");
}

bool hlo_manual_leaves(const hlo_instr *instr) {
    return calls(instr, "xla.sdy.LocalToGlobalShape") || calls(instr, "SPMDShardToFullShape");
}

/* --------------------------------------------------------------------------------------- depths */

static uint8_t deeper(uint8_t depths) {
    return (uint8_t)((depths << 1 & DEPTHS) | (depths & (DEEPEST | BY_DEVICE)));
}

/* Returns the depths outside a region. Shardy's custom call leaves one region; XLA's older one may
 * leave several, and the sharding of its result shows whether it is still in one. */
static uint8_t less_deep(const hlo_instr *leaves, uint8_t depths) {
    const hlo_sharding *sharding = hlo_instr_sharding(leaves);
    bool older = calls(leaves, "SPMDShardToFullShape");
    if (older && sharding && !hlo_sharding_has(sharding, HLO_SHARDING_MANUAL)) return OUTSIDE;
    if (!(depths & DEPTHS)) return BY_DEVICE; /* the region has no operand */
    uint8_t left = (uint8_t)((depths & DEPTHS) >> 1 | (depths & DEEPEST));
    bool fits = left && !(depths & OUTSIDE) && !(older && left & OUTSIDE);
    return fits ? left : ANYWHERE;
}

typedef struct visit {
    hlo_manual *m;
    uint8_t depths; /* of the caller's operands */
} visit;

static void grow(hlo_manual *m, uint8_t *depths, uint8_t by) {
    m->changes |= (*depths | by) != *depths;
    *depths |= by;
}

/* Enters a callee at the call's depths. Its results have these depths too or, if its root has
 * another one, any. */
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
    return hlo_manual_enters(instr)   ? deeper(v.depths)
           : hlo_manual_leaves(instr) ? less_deep(instr, v.depths)
                                      : v.depths;
}

/* True if depths were found and no collective stands outside of all regions, as devices do not
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

/* True for the name of a partitioned module. */
static bool called_spmd(const hlo_computation *comp) {
    static const char ending[] = "_spmd";
    size_t length = strlen(comp->name), size = sizeof ending - 1;
    return length >= size && !strcmp(comp->name + length - size, ending);
}

/* True if the partitioner, which gives each device parts of the entry's values, may not have run
 * yet: neither header nor name excludes it. */
static bool may_be_global(const hlo_module *module) {
    return hlo_devices_replicas(module) == 1 && !called_spmd(module->entry) &&
           module->attrs_seen[HLO_ATTR_CUSTOM_CALL_TARGET];
}

const hlo_manual *hlo_manual_find(const hlo_module *module, hlo_arena *arena) {
    hlo_manual *m = hlo_arena_zero(arena, sizeof *m);
    if (!may_be_global(module)) return m;
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

/* ---------------------------------------------------------------------------------------- parts */

/* True if each device has the whole operand: its shape stays, and a part would be smaller. A
 * dimension of one element proves nothing: one device may have all of it. */
static bool cannot_be_parts(const hlo_instr *enters, uint32_t index) {
    const hlo_shape *all = hlo_instr_operand(enters, index)->shape, *part = enters->shape;
    if (part->type == HLO_TYPE_TUPLE) part = index < part->rank ? part->elements[index] : part;
    if (!hlo_shape_is_array(all) || !hlo_shape_compatible(all, part)) return false;
    for (uint32_t i = 0; i < all->rank; i++)
        if (all->dims[i] < 2) return false;
    return true;
}

/* Returns the value of a frontend attribute; NULL: there is none. */
static const char *frontend_value(hlo_arena *arena, const hlo_instr *instr, const char *name) {
    const char *entries = hlo_instr_str(instr, HLO_ATTR_FRONTEND_ATTRIBUTES);
    return entries ? hlo_value_entry(arena, entries, name) : NULL;
}

static const char *meshes_of(hlo_arena *arena, const hlo_module *module) {
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_FRONTEND_ATTRIBUTES)
            return hlo_value_entry(arena, module->attrs[i].u.str, "xla.sdy.meshes");
    return NULL;
}

const hlo_device_groups *hlo_manual_parts(hlo_arena *arena, const hlo_instr *enters,
                                          uint32_t index) {
    const hlo_instr *from = hlo_instr_operand(enters, index);
    const hlo_sharding *sharding = hlo_instr_sharding(from);
    const char *shardings = frontend_value(arena, enters, "xla.sdy.in_shardings");
    if (shardings) {
        hlo_module *module = enters->parent->module;
        const char *meshes = meshes_of(arena, module);
        return meshes ? hlo_device_groups_of_shardy(arena, module, meshes, shardings, index) : NULL;
    }
    if (sharding && calls(enters, "SPMDFullToShardShape"))
        return hlo_device_groups_of_sharding(arena, sharding, HLO_GET);
    return cannot_be_parts(enters, index) ? &hlo_device_groups_whole : NULL;
}

const hlo_device_groups *hlo_manual_joined(hlo_arena *arena, const hlo_instr *leaves) {
    const char *axes = frontend_value(arena, leaves, "xla.sdy.manual_axes");
    const char *shardings = frontend_value(arena, leaves, "xla.sdy.out_shardings");
    hlo_module *module = leaves->parent->module;
    const char *meshes = meshes_of(arena, module);
    if (!axes || !shardings || !meshes) return NULL;
    return hlo_device_groups_of_axes(arena, module, meshes, shardings, axes);
}

/* ------------------------------------------------------------------------------ the partitioner */

bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instr **out_marked) {
    const hlo_instr *marked = NULL;
    bool collective = false, manual = false;
    *out_marked = NULL;
    if (!module->attrs_seen[HLO_ATTR_SHARDING]) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i)) {
            const hlo_sharding *sharding = hlo_instr_sharding(i);
            collective |= hlo_op_is(i->op, HLO_COLLECTIVE);
            manual |= hlo_manual_enters(i);
            if (!marked && sharding && hlo_sharding_has(sharding, HLO_SHARDING_TILED)) marked = i;
        }
    *out_marked = marked;
    return marked && !called_spmd(module->entry) && (manual || !collective);
}
