/* SPDX-License-Identifier: Apache-2.0 */
/* The boundary between values per device and global values, in modules that are not partitioned. */
#include "ir/devices/boundary.h"

#include <string.h>

bool hlo_boundary_calls(const hlo_instr *instr, const char *name) {
    const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return instr->op == HLO_OP_CUSTOM_CALL && target && !strcmp(target, name);
}

bool hlo_manual_enters(const hlo_instr *instr) {
    return hlo_boundary_calls(instr, "xla.sdy.GlobalToLocalShape") ||
           hlo_boundary_calls(instr, "SPMDFullToShardShape");
}

bool hlo_manual_leaves(const hlo_instr *instr) {
    return hlo_boundary_calls(instr, "xla.sdy.LocalToGlobalShape") ||
           hlo_boundary_calls(instr, "SPMDShardToFullShape");
}

bool hlo_boundary_spmd(const hlo_computation *entry) {
    static const char ending[] = "_spmd";
    size_t length = strlen(entry->name), size = sizeof ending - 1;
    return length >= size && !strcmp(entry->name + length - size, ending);
}

/* ---------------------------------------------------------------------------------------- parts */

/* Returns the value of a frontend attribute; NULL if absent. */
static const char *frontend_value(hlo_arena *arena, const hlo_instr *instr, const char *name) {
    const char *entries = hlo_instr_str(instr, HLO_ATTR_FRONTEND_ATTRIBUTES);
    return entries ? hlo_value_entry(arena, entries, name) : NULL;
}

static const char *meshes_of(hlo_arena *arena, const hlo_module *module) {
    const hlo_attr *entries =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_FRONTEND_ATTRIBUTES);
    return entries ? hlo_value_entry(arena, entries->u.str, "xla.sdy.meshes") : NULL;
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
    if (sharding && hlo_boundary_calls(enters, "SPMDFullToShardShape"))
        return hlo_device_groups_of_sharding(arena, sharding, HLO_GET);
    /* Each device has the whole operand if the shape is unchanged and a part would be smaller. A
     * dimension of one element proves nothing, because one device may have all of it. */
    const hlo_shape *all = from->shape, *part = enters->shape;
    if (part->type == HLO_TYPE_TUPLE) part = index < part->rank ? part->elements[index] : part;
    if (!hlo_shape_is_array(all) || !hlo_shape_compatible(all, part)) return NULL;
    for (uint32_t i = 0; i < all->rank; i++)
        if (all->dims[i] < 2) return NULL;
    return &hlo_device_groups_whole;
}

const hlo_device_groups *hlo_manual_joined(hlo_arena *arena, const hlo_instr *leaves) {
    const char *axes = frontend_value(arena, leaves, "xla.sdy.manual_axes");
    const char *shardings = frontend_value(arena, leaves, "xla.sdy.out_shardings");
    hlo_module *module = leaves->parent->module;
    const char *meshes = meshes_of(arena, module);
    if (!axes || !shardings || !meshes) return NULL;
    return hlo_device_groups_of_axes(arena, module, meshes, shardings, axes);
}

bool hlo_manual_tiling(hlo_arena *arena, const hlo_instr *boundary, uint32_t index,
                       hlo_tiling *out) {
    const bool enters = hlo_manual_enters(boundary);
    const hlo_instr *from = hlo_instr_operand(boundary, index);
    const char *shardings =
        frontend_value(arena, boundary, enters ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
    const char *axes = frontend_value(arena, boundary, "xla.sdy.manual_axes");
    hlo_module *module = boundary->parent->module;
    const char *meshes = meshes_of(arena, module);
    if (shardings && axes && meshes)
        return hlo_tiling_of_shardy(arena, module, meshes, shardings, index, axes,
                                    from->shape->rank, out);
    const bool older = hlo_boundary_calls(boundary, "SPMDFullToShardShape") ||
                       hlo_boundary_calls(boundary, "SPMDShardToFullShape");
    const hlo_sharding *sharding = hlo_instr_sharding(enters ? from : boundary);
    return older && sharding && hlo_tiling_of_sharding(arena, sharding, from->shape->rank, out);
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
    return marked && !hlo_boundary_spmd(module->entry) && (manual || !collective);
}
