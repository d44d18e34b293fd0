/* SPDX-License-Identifier: Apache-2.0 */
/* See devices.h. */
#include "tests/random/check/devices.h"

#include <string.h>

#include "ir/device_list.h"
#include "ir/devices/boundary.h"
#include "ir/eval/apply.h"
#include "passes/sharding/devices.h"

enum { MAX_DEVICES = 8, MAX_RESULTS = 512 };

typedef struct spread {
    hlo_module *module;
    hlo_computation *comp;
    int64_t devices;
    bool regions; /* true if the entry passes parts of its parameters to manual regions */
    bool swapped; /* true for regions of a mesh with reordered devices */
    hlo_instruction **copies; /* by the id of the original instruction and the device */
} spread;

/* The devices of an exchange, in order. */
typedef struct members {
    int64_t count, self; /* `self` is the index in `v` of the device whose group this is */
    int64_t v[MAX_DEVICES];
} members;

static hlo_instruction *copy_of(const spread *s, const hlo_instruction *instr, int64_t device) {
    return s->copies[(int64_t)instr->id * s->devices + device];
}

static hlo_instruction *operand_of(const spread *s, const hlo_instruction *instr, int64_t device) {
    return copy_of(s, hlo_instr_operand(instr, 0), device);
}

static hlo_instruction *emit(const spread *s, hlo_op op, const hlo_shape *shape, uint32_t count,
                             hlo_instruction *const *operands) {
    return hlo_instr_new(s->comp, NULL, op, shape, count, operands, NULL);
}

/* --------------------------------------------------------------------------------------- groups */

/* Finds the device's group in listed groups, or iotas (`[2,2]<=[4]`). Returns false for another
 * form, or if no group contains the device. */
static bool group_of(const hlo_groups *groups, int64_t device, members *out) {
    const hlo_device_array *of = &groups->mesh.devices;
    bool in_order = !groups->sizes && !groups->mesh.names && !of->order;
    if (!(groups->sizes || in_order) || groups->size < 1 || groups->size > MAX_DEVICES)
        return false;
    for (int64_t g = 0; g < groups->count; g++) {
        *out = (members){.count = groups->size, .self = -1};
        for (int64_t i = 0; i < groups->size; i++) {
            int64_t at = g * groups->size + i;
            out->v[i] = of->listed ? of->listed->v[at] : at;
            if (out->v[i] == device) out->self = i;
        }
        if (out->self >= 0) return true;
    }
    return false;
}

/* With global ids, and for an all-to-all over partitions, groups contain devices. Otherwise they
 * contain replicas. With a channel, a replica represents all its partitions; without a channel, a
 * group is within each partition. */
static bool members_of(const spread *s, const hlo_instruction *instr, int64_t device,
                       members *out) {
    const hlo_groups *groups = hlo_instr_groups(instr, HLO_ATTR_REPLICA_GROUPS);
    bool partitions = hlo_devices_partitions(s->module) > 1;
    bool channel = hlo_instr_attr(instr, HLO_ATTR_CHANNEL_ID);
    bool global = hlo_instr_int(instr, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0) ||
                  (channel && instr->op == HLO_OP_ALL_TO_ALL);
    bool some = groups && groups->count > 0;
    if (some && (global || !partitions)) return group_of(groups, device, out);
    if (partitions && !channel) {
        *out = (members){.count = 1, .v = {device}};
        return true;
    }
    *out = (members){.count = s->devices, .self = device};
    for (int64_t i = 0; i < s->devices; i++) out->v[i] = i;
    return true;
}

/* ---------------------------------------------------------------------------------- collectives */

static hlo_instruction *join(const spread *s, const hlo_instruction *instr, int64_t dim,
                             uint32_t count, hlo_instruction *const *parts) {
    hlo_instruction *all = emit(s, HLO_OP_CONCATENATE, instr->shape, count, parts);
    hlo_instr_set_ints(all, HLO_ATTR_DIMENSIONS, 1, &dim);
    return all;
}

static hlo_instruction *gather(const spread *s, const hlo_instruction *instr, const members *m) {
    hlo_instruction *parts[MAX_DEVICES];
    int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
    for (int64_t i = 0; i < m->count; i++) parts[i] = operand_of(s, instr, m->v[i]);
    return join(s, instr, dim, (uint32_t)m->count, parts);
}

/* Returns part `index` of `count` along a dimension. */
static hlo_instruction *part(const spread *s, hlo_instruction *of, int64_t dim, int64_t index,
                             int64_t count) {
    int64_t ranges[3 * HLO_EVAL_MAX_RANK], dims[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < of->shape->rank; d++) {
        int64_t size = of->shape->dims[d], each = d == dim ? size / count : size;
        ranges[3 * d] = d == dim ? index * each : 0;
        ranges[3 * d + 1] = ranges[3 * d] + each;
        ranges[3 * d + 2] = 1;
        dims[d] = each;
    }
    const hlo_shape *shape = hlo_shape_array(s->module, of->shape->type, of->shape->rank, dims);
    hlo_instruction *slice = emit(s, HLO_OP_SLICE, shape, 1, &of);
    hlo_instr_set_ints(slice, HLO_ATTR_SLICE, 3 * of->shape->rank, ranges);
    return slice;
}

static hlo_instruction *exchange(const spread *s, const hlo_instruction *instr, const members *m) {
    hlo_instruction *parts[MAX_DEVICES];
    int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
    for (int64_t i = 0; i < m->count; i++)
        parts[i] = part(s, operand_of(s, instr, m->v[i]), dim, m->self, m->count);
    return join(s, instr, dim, (uint32_t)m->count, parts);
}

/* Returns the value that the device receives. Zeros for devices without a source are the result of
 * a mask, because other executions may scale them. */
static hlo_instruction *permute(const spread *s, const hlo_instruction *instr, int64_t device) {
    const hlo_groups *pairs = hlo_instr_groups(instr, HLO_ATTR_SOURCE_TARGET_PAIRS);
    const int64_t *at = pairs->mesh.devices.listed->v;
    for (int64_t i = 0; i < pairs->count; i++)
        if (at[2 * i + 1] == device) return operand_of(s, instr, at[2 * i]);
    const hlo_shape *mask = hlo_shape_retype(s->module, instr->shape, HLO_TYPE_PRED);
    hlo_instruction *none = hlo_constant_scalar(s->comp, NULL, HLO_TYPE_PRED, 0);
    hlo_instruction *zero = hlo_constant_scalar(s->comp, NULL, instr->shape->type, 0);
    hlo_instruction *operands[] = {emit(s, HLO_OP_BROADCAST, mask, 1, &none),
                                   operand_of(s, instr, device),
                                   emit(s, HLO_OP_BROADCAST, instr->shape, 1, &zero)};
    return emit(s, HLO_OP_SELECT, instr->shape, 3, operands);
}

static hlo_instruction *reduce(const spread *s, const hlo_instruction *instr, const members *m) {
    hlo_op op = hlo_region_simple(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    hlo_instruction *all = operand_of(s, instr, m->v[0]);
    for (int64_t i = 1; i < m->count; i++) {
        hlo_instruction *both[] = {all, operand_of(s, instr, m->v[i])};
        all = emit(s, op, instr->shape, 2, both);
    }
    return all;
}

/* Returns true if a parameter is equal on some devices, and different on others. */
static bool shared_by_some(const hlo_instruction *parameter) {
    const char *sharding = hlo_instr_str(parameter, HLO_ATTR_SHARDING);
    return sharding && strstr(sharding, "last_tile");
}

/* Returns true if this file supports the instruction. */
static bool is_known(const hlo_module *module, const hlo_instruction *instr) {
    bool list = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->count == 1;
    bool one = instr->operand_count == 1 && hlo_shape_is_array(instr->shape);
    hlo_computation *apply = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
    switch (instr->op) {
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_TO_ALL: return one && list;
    case HLO_OP_ALL_REDUCE: {
        hlo_op op = hlo_region_simple(apply);
        return one && (op == HLO_OP_MAXIMUM || op == HLO_OP_MINIMUM || op == HLO_OP_ADD);
    }
    case HLO_OP_COLLECTIVE_PERMUTE:
        return one &&
               (hlo_devices_partitions(module) == 1 || hlo_instr_attr(instr, HLO_ATTR_CHANNEL_ID));
    case HLO_OP_PARAMETER: return hlo_shape_is_array(instr->shape) && !shared_by_some(instr);
    case HLO_OP_PARTITION_ID:
    case HLO_OP_REPLICA_ID: return true;
    default: return !hlo_op_is(instr->op, HLO_COLLECTIVE);
    }
}

/* Returns the device's value of an instruction, or NULL. */
static hlo_instruction *received(const spread *s, const hlo_instruction *instr, int64_t device) {
    members m;
    if (instr->op == HLO_OP_COLLECTIVE_PERMUTE) return permute(s, instr, device);
    if (!members_of(s, instr, device, &m)) return NULL;
    return instr->op == HLO_OP_ALL_GATHER   ? gather(s, instr, &m)
           : instr->op == HLO_OP_ALL_TO_ALL ? exchange(s, instr, &m)
                                            : reduce(s, instr, &m);
}

/* Returns the device's partition id or replica id. */
static hlo_instruction *number(const spread *s, const hlo_instruction *instr, int64_t device) {
    bool differs = (instr->op == HLO_OP_PARTITION_ID) == (hlo_devices_partitions(s->module) > 1);
    return hlo_constant_scalar(s->comp, NULL, instr->shape->type, differs ? (double)device : 0);
}

/* -------------------------------------------------------------------------------------- regions */

static bool is_mark(const hlo_instruction *instr) {
    const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return target && !strcmp(target, "Sharding");
}

/* Returns true if a region's axis is 'x'; otherwise the axis is 'y', that of the inner region. */
static bool is_outer(const hlo_instruction *handed) {
    const char *frontend = hlo_instr_str(handed, HLO_ATTR_FRONTEND_ATTRIBUTES);
    const char *sharding = hlo_instr_str(handed, HLO_ATTR_SHARDING);
    if (frontend) return strstr(frontend, "manual_axes{\\\"x\\\"}");
    return hlo_manual_enters(handed) && strcmp(sharding, "{manual}") != 0;
}

/* Returns the dimension that a sharding splits into two parts, or -1. */
static int64_t halved(const hlo_shape *whole, const hlo_shape *part) {
    for (uint32_t i = 0; i < whole->rank; i++)
        if (whole->dims[i] != part->dims[i]) return i;
    return -1;
}

/* Returns the difference of neighbors' device numbers along an axis: devices are numbered along 'x'
 * or 'y' first. */
static int64_t step_along(const spread *s, bool outer) {
    return outer != s->swapped ? 2 : 1;
}

static hlo_instruction *handed(const spread *s, const hlo_instruction *instr, int64_t device) {
    if (instr->operand_count != 1 || !hlo_shape_is_array(instr->shape)) return NULL;
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape, *to = instr->shape;
    int64_t step = step_along(s, is_outer(instr)), place = device / step % 2;
    int64_t dim = hlo_manual_enters(instr) ? halved(from, to) : halved(to, from);
    if (dim < 0) return operand_of(s, instr, device);
    if (hlo_manual_enters(instr)) return part(s, operand_of(s, instr, device), dim, place, 2);
    hlo_instruction *parts[] = {operand_of(s, instr, device - place * step),
                                operand_of(s, instr, device - place * step + step)};
    return join(s, instr, dim, 2, parts);
}

/* ------------------------------------------------------------------------------------ all of it */

static hlo_instruction *parameter(const spread *s, hlo_instruction *instr, int64_t device) {
    const char *sharding = hlo_instr_str(instr, HLO_ATTR_SHARDING);
    if (device == 0 || s->regions || (sharding && !strcmp(sharding, "{replicated}"))) return instr;
    hlo_instruction *p =
        hlo_instr_new(s->comp, NULL, HLO_OP_PARAMETER, instr->shape, 0, NULL, instr->name);
    hlo_instr_set_parameter(p, s->comp->parameter_count);
    return p;
}

static hlo_instruction *copied(const spread *s, const hlo_instruction *instr, int64_t device) {
    hlo_instruction **operands =
        hlo_arena_array(s->module->arena, instr->operand_count + 1, sizeof *operands);
    for (uint32_t o = 0; o < instr->operand_count; o++)
        operands[o] = copy_of(s, hlo_instr_operand(instr, o), device);
    return hlo_instr_copy(s->comp, NULL, instr, operands);
}

static hlo_instruction *value_on(const spread *s, hlo_instruction *instr, int64_t device) {
    if (hlo_op_is(instr->op, HLO_COLLECTIVE)) return received(s, instr, device);
    if (hlo_manual_enters(instr) || hlo_manual_leaves(instr)) return handed(s, instr, device);
    if (is_mark(instr)) return operand_of(s, instr, device);
    switch (instr->op) {
    case HLO_OP_PARAMETER: return parameter(s, instr, device);
    case HLO_OP_PARTITION_ID:
    case HLO_OP_REPLICA_ID: return number(s, instr, device);
    default: return copied(s, instr, device);
    }
}

/* Returns the device's value in the instruction's layout, since a typed call also contains the
 * layout. */
static hlo_instruction *made(const spread *s, hlo_instruction *instr, int64_t device) {
    hlo_instruction *value = value_on(s, instr, device);
    bool moved = value && hlo_shape_is_array(instr->shape) && value->shape != instr->shape;
    return moved ? emit(s, HLO_OP_COPY, instr->shape, 1, &value) : value;
}

static bool spread_out(const spread *s, hlo_instruction *last) {
    for (hlo_instruction *i = s->comp->first;; i = i->next) {
        for (int64_t d = 0; d < s->devices; d++) {
            hlo_instruction *copy = made(s, i, d);
            if (!copy) return false;
            s->copies[(int64_t)i->id * s->devices + d] = copy;
        }
        if (i == last) return true;
    }
}

/* Collects the results of all devices in one tuple. */
static bool collect(const spread *s, hlo_instruction *last) {
    hlo_instruction *root = s->comp->root, *results[MAX_RESULTS];
    const hlo_shape *shapes[MAX_RESULTS];
    bool tuple = root->op == HLO_OP_TUPLE;
    uint32_t each = tuple ? root->operand_count : 1, count = 0;
    if (each * s->devices > MAX_RESULTS) return false;
    for (int64_t d = 0; d < s->devices; d++)
        for (uint32_t i = 0; i < each; i++) {
            results[count] = copy_of(s, tuple ? hlo_instr_operand(root, i) : root, d);
            shapes[count] = results[count]->shape;
            count++;
        }
    hlo_comp_set_root(
        s->comp, emit(s, HLO_OP_TUPLE, hlo_shape_tuple(s->module, count, shapes), count, results));
    for (hlo_instruction *i = last, *before; i; i = before) {
        before = i->prev;
        if (i->op != HLO_OP_PARAMETER) hlo_instr_remove(i);
    }
    return true;
}

static bool all_known(const hlo_module *module) {
    for (const hlo_computation *c = module->first; c; c = c->next)
        for (const hlo_instruction *i = c->first; i; i = i->next)
            if (c == module->entry ? !is_known(module, i)
                                   : i->op == HLO_OP_PARTITION_ID || i->op == HLO_OP_REPLICA_ID ||
                                         hlo_op_is(i->op, HLO_COLLECTIVE))
                return false;
    return true;
}

hlo_module *on_one_device(const hlo_module *module) {
    int64_t devices = hlo_devices_partitions(module) * hlo_devices_replicas(module);
    bool both = hlo_devices_partitions(module) > 1 && hlo_devices_replicas(module) > 1;
    spread s = {.devices = devices};
    if (devices < 2 || devices > MAX_DEVICES || both || !all_known(module)) return NULL;
    if (hlo_module_clone(module, &s.module) != HLO_OK) return NULL;
    s.comp = s.module->entry;
    for (const hlo_instruction *i = s.comp->first; i; i = i->next)
        s.regions |= hlo_manual_enters(i);
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_FRONTEND_ATTRIBUTES)
            s.swapped = strstr(module->attrs[i].u.str, "device_ids");
    s.copies =
        hlo_arena_array(s.module->arena, (size_t)(s.module->next_id * devices), sizeof *s.copies);
    hlo_instruction *last = s.comp->last;
    bool done = spread_out(&s, last) && collect(&s, last);
    s.module->attr_count = 0;
    if (done && hlo_module_verify(s.module, NULL, NULL) == HLO_OK) return s.module;
    hlo_module_free(s.module);
    return NULL;
}
