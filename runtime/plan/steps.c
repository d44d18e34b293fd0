/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the steps and slots of a computation, and the live ranges of the slots. */
#include <math.h>
#include <string.h>

#include "ir/device_list.h"
#include "ir/kernel/kernel.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"
#include "runtime/plan/build.h"

/* -------------------------------------------------------------------------------------- layouts */

/* Returns a value in the layouts of another shape: text may specify two layouts for one value. */
static build_value relaid(build *b, const hlo_instr *instr, build_value value,
                          const hlo_shape *from, const hlo_shape *to) {
    if (from == to) return value;
    return build_adapt(b, instr, value, build_leaves(b, from), build_leaves(b, to));
}

/* ------------------------------------------------------------------------------------- plumbing */

/* True if a collective sends nothing: neither the header nor its groups have a second device. */
static bool is_single_device(const hlo_instr *collective) {
    const hlo_module *module = collective->parent->module;
    for (uint32_t i = 0; i < module->attr_count; i++) {
        const hlo_attr *attr = &module->attrs[i];
        if ((attr->id == HLO_ATTR_NUM_PARTITIONS || attr->id == HLO_ATTR_REPLICA_COUNT) &&
            attr->u.i > 1)
            return false;
    }
    const hlo_groups *groups = hlo_instr_groups(collective, HLO_ATTR_REPLICA_GROUPS);
    return !groups || groups->devices == 0 || groups->devices == 1;
}

/* True if the instruction's value is its first operand, unchanged in memory or in another
 * layout. */
static bool is_alias(const build *b, const hlo_instr *instr) {
    const hlo_shape *from =
        instr->operand_count ? hlo_instr_operand(instr, 0)->shape : instr->shape;
    switch (instr->op) {
    case HLO_OP_OPT_BARRIER:
    case HLO_OP_DOMAIN:
    case HLO_OP_ALL_REDUCE_DONE:
    case HLO_OP_ASYNC_UPDATE:
    case HLO_OP_ADD_DEPENDENCY: return true;
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_START:
    case HLO_OP_REDUCE_SCATTER:
    case HLO_OP_ALL_TO_ALL:
    case HLO_OP_COLLECTIVE_BROADCAST:
        if (b->plan->seat.world || !is_single_device(instr)) return false;
        break;
    case HLO_OP_CUSTOM_CALL: {
        /* Only a call that specifies to a partitioner how its operand is divided is an alias. */
        const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
        if (instr->operand_count != 1 || !target ||
            (strcmp(target, "Sharding") != 0 && strcmp(target, "xla.sdy.FuncResultSharding") != 0))
            return false;
        if (hlo_shape_is_array(from) && instr->shape->type == from->type &&
            hlo_shape_same_dims(instr->shape, from))
            return true;
        break;
    }
    default:
        if (hlo_op_is(instr->op, HLO_REPEATS | HLO_TRANSPOSES)) {
            /* A transpose, or a broadcast that only adds dimensions of size one, may keep every
             * element at its position in memory. */
            const hlo_shape *to = instr->shape;
            hlo_index_map map;
            hlo_dims own, its;
            hlo_index x;
            if (from->type != to->type || hlo_shape_count(from) != hlo_shape_count(to))
                return false;
            hlo_shape_strides(from, own.v);
            hlo_shape_strides(to, its.v);
            hlo_index_map_first(instr, &map);
            for (uint32_t d = 0; d < from->rank; d++)
                if (!hlo_index_along(&map, d, &x) ||
                    (to->dims[x.of] != 1 && own.v[d] != its.v[x.of]))
                    return false;
            return true;
        }
        if (!hlo_op_is(instr->op, HLO_KEEPS_ORDER)) return false;
    }
    return hlo_shape_same_memory(instr->shape, from);
}

/* Forwards element `index` of the operand. */
static build_value element_of(build *b, const hlo_instr *instr, uint32_t index) {
    const hlo_instr *tuple = hlo_instr_operand(instr, 0);
    const uint32_t **starts = &b->starts[b->place[tuple->id - b->first_id]];
    if (!*starts) { /* the number of leaves before each element */
        uint32_t *made = hlo_arena_array(b->plan->arena, tuple->shape->rank, sizeof *made), at = 0;
        for (uint32_t i = 0; i < tuple->shape->rank; i++) {
            made[i] = at;
            at += hlo_shape_leaf_count(tuple->shape->elements[i]);
        }
        *starts = made;
    }
    build_value v = {build_value_of(b, tuple)->slots + (*starts)[index],
                     hlo_shape_leaf_count(instr->shape)};
    return relaid(b, instr, v, tuple->shape->elements[index], instr->shape);
}

/* Forwards the elements, each in the layout that the tuple has for it. */
static build_value tuple_value(build *b, const hlo_instr *instr) {
    build_value v = build_operands(b, instr);
    uint32_t at = 0;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *operand = hlo_instr_operand(instr, i);
        build_value part = {v.slots + at, hlo_shape_leaf_count(operand->shape)};
        part = relaid(b, instr, part, operand->shape, instr->shape->elements[i]);
        memmove(v.slots + at, part.slots, part.count * sizeof *part.slots);
        at += part.count;
    }
    return v;
}

/* Imports the bytes of a constant. */
static void set_constant(build *b, const hlo_instr *instr, uint32_t index, const void *bytes) {
    plan_slot *slot = &b->comp->slots[index];
    slot->place.data = (void *)b->plan->backend->import(b->plan->device, bytes, slot->size);
    if (!slot->place.data && slot->size) build_refuse(b, instr, "out of memory for this constant");
}

/* Creates a constant from the elements of the literal, in the layout of `shape`, which is the shape
 * of the instruction or an element of it. The layout of the literal is ignored. */
static build_value constant_value(build *b, const hlo_instr *instr, const hlo_shape *shape,
                                  const hlo_literal *literal) {
    if (shape->type == HLO_TYPE_TUPLE) {
        build_value v = build_new_value(b, hlo_shape_leaf_count(shape));
        uint32_t at = 0;
        for (uint32_t i = 0; i < shape->rank; i++) {
            build_value part = constant_value(b, instr, shape->elements[i], literal->elements[i]);
            memcpy(v.slots + at, part.slots, part.count * sizeof *v.slots);
            at += part.count;
        }
        return v;
    }
    build_value v = build_new_slots(b, SLOT_CONSTANT, shape);
    if (!v.count) return v;
    if (literal->elided) {
        build_refuse(b, instr,
                     "the values of this constant are elided (`{...}`): dump the module with "
                     "XLA_FLAGS=--xla_dump_to=DIR, or print it with print_large_constants=True");
        return v;
    }
    const void *bytes = literal->data;
    if (!hlo_shape_is_row_major(shape)) {
        void *physical = hlo_arena_alloc(b->plan->arena, b->comp->slots[v.slots[0]].size);
        plan_to_physical(shape, hlo_types[shape->type].bytes, physical, literal->data);
        bytes = physical;
    }
    set_constant(b, instr, v.slots[0], bytes);
    return v;
}

/* ---------------------------------------------------------------------------------------- steps */

static void check_called(void *user, hlo_computation *called) {
    build *b = user;
    const plan_comp *comp = b->plan->comps[called->id];
    if (comp && !comp->results) b->failed = true;
}

/* Creates the value of an asynchronous start: its operands, its results, and additional elements of
 * other devices, which have no memory here. For a copy, the results come first. */
static build_value start_value(build *b, const hlo_instr *instr) {
    const bool copies = instr->op == HLO_OP_COPY_START;
    const hlo_shape *shape = instr->shape, *from = shape->elements[copies];
    build_value v = build_new_slots(b, SLOT_NOWHERE, shape), result;
    build_value operands = build_operands(b, instr);
    const hlo_shape **given = hlo_arena_array(b->plan->arena, operands.count + 1, sizeof *given);
    const hlo_shape **end = given;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        build_leaf_shapes(hlo_instr_operand(instr, i)->shape, &end);
    const hlo_shape *const *kept = build_leaves(b, from);
    operands = build_adapt(b, instr, operands, given, kept);
    if (copies)
        result = build_adapt(b, instr, operands, kept, build_leaves(b, shape->elements[0]));
    else if (instr->op == HLO_OP_ASYNC_START)
        result = build_call(b, instr, hlo_instr_comp(instr, HLO_ATTR_CALLS), shape->elements[1]);
    else
        result = build_job(b, instr, shape->elements[1]);
    const build_value *parts[] = {copies ? &result : &operands, copies ? &operands : &result};
    uint32_t at = 0;
    for (int i = 0; i < 2; i++) {
        memcpy(v.slots + at, parts[i]->slots, parts[i]->count * sizeof *v.slots);
        at += parts[i]->count;
    }
    return v;
}

static build_value value_for(build *b, const hlo_instr *instr) {
    if (!build_is_static(instr->shape)) {
        build_refuse(b, instr, "`%s` has a shape that plans do not support",
                     hlo_ops[instr->op].name);
        return build_new_slots(b, SLOT_BUFFER, instr->shape);
    }
    /* The errors of a callee that cannot be executed were already reported. */
    const bool before = b->failed;
    b->failed = false;
    hlo_instr_visit_called(instr, check_called, b);
    const bool callee_failed = b->failed;
    b->failed |= before;
    if (callee_failed) return build_new_slots(b, SLOT_BUFFER, instr->shape);
    switch (instr->op) {
    case HLO_OP_PARAMETER: {
        const uint32_t index = b->arguments[instr->u.parameter];
        build_value v = build_new_value(b, hlo_shape_leaf_count(instr->shape));
        for (uint32_t i = 0; i < v.count; i++) {
            v.slots[i] = build_slot(b, SLOT_ARGUMENT, b->comp->argument_shapes[index + i]);
            b->comp->slots[v.slots[i]].index = index + i;
            b->comp->arguments[index + i] = v.slots[i];
        }
        return build_adapt(b, instr, v, b->comp->argument_shapes + index,
                           build_leaves(b, instr->shape));
    }
    case HLO_OP_CONSTANT: return constant_value(b, instr, instr->shape, instr->u.literal);
    case HLO_OP_TUPLE: return tuple_value(b, instr);
    case HLO_OP_AFTER_ALL: return build_new_value(b, 0);
    case HLO_OP_GET_TUPLE_ELEMENT:
        return element_of(b, instr, (uint32_t)hlo_instr_int(instr, HLO_ATTR_INDEX, 0));
    case HLO_OP_ALL_GATHER_DONE:
    case HLO_OP_COLLECTIVE_PERMUTE_DONE:
    case HLO_OP_ASYNC_DONE: return element_of(b, instr, 1);
    case HLO_OP_COPY_DONE: return element_of(b, instr, 0);
    case HLO_OP_ALL_GATHER_START:
    case HLO_OP_COLLECTIVE_PERMUTE_START:
    case HLO_OP_ASYNC_START:
    case HLO_OP_COPY_START: return start_value(b, instr);
    case HLO_OP_CALL:
        return build_call(b, instr, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), instr->shape);
    case HLO_OP_FUSION:
        return build_call(b, instr, hlo_instr_comp(instr, HLO_ATTR_CALLS), instr->shape);
    case HLO_OP_WHILE: return build_while(b, instr);
    case HLO_OP_CONDITIONAL: return build_conditional(b, instr);
    case HLO_OP_BITCAST: {
        /* Sigmas belong to elements of one type, so with sigmas a change of type is a copy. */
        const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
        if (from->type == instr->shape->type || !b->plan->options.bounds)
            return *build_value_of(b, hlo_instr_operand(instr, 0));
        build_value v = build_new_slots(b, SLOT_BUFFER, instr->shape);
        build_step(b, STEP_COPY, instr, build_operands(b, instr), v);
        return v;
    }
    case HLO_OP_GET_DIMENSION_SIZE: {
        const int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
        const int32_t size = (int32_t)hlo_instr_operand(instr, 0)->shape->dims[dim];
        build_value v = build_new_slots(b, SLOT_CONSTANT, instr->shape);
        const void *bytes = hlo_arena_copy(b->plan->arena, &size, sizeof size);
        set_constant(b, instr, v.slots[0], bytes);
        return v;
    }
    default: break;
    }
    if (!is_alias(b, instr)) return build_job(b, instr, instr->shape);
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    build_value v = *build_value_of(b, operand);
    if (hlo_op_is(instr->op, HLO_MOVES_DIMENSIONS)) return v;
    return relaid(b, instr, v, operand->shape, instr->shape);
}

/* ------------------------------------------------------------------------------------- liveness */

static void use(plan_comp *comp, uint32_t slot, uint32_t step) {
    if (slot == PLAN_NONE) return;
    plan_slot *s = &comp->slots[slot];
    if (step < s->first) s->first = step;
    if (step > s->last) s->last = step;
}

/* Sums up the steps: the weight, the jobs of a run, and whether and how deep a graph can contain
 * the computation, including its loops. */
static void sum_up(plan_comp *comp) {
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        const bool loop = step->kind == STEP_WHILE;
        uint64_t weight = 1;
        double jobs = step->kind == STEP_JOB;
        uint32_t depth = 0;
        if (step->job && step->job->host) comp->hosted = true;
        for (uint32_t i = 0; i < step->called_count; i++) {
            const plan_comp *called = step->called[i];
            weight += called->weight;
            if (!(called->jobs <= jobs)) jobs = called->jobs;
            if (called->depth > depth) depth = called->depth;
            comp->hosted |= called->hosted;
        }
        if (loop)
            jobs = step->trip_count == HLO_TRIP_COUNT_UNKNOWN
                       ? (double)NAN
                       : step->called[1]->jobs * (double)step->trip_count;
        if (step->kind == STEP_CONDITIONAL) depth += 1;
        if (loop && !step->unrolls) depth += 2;
        if (depth > comp->depth) comp->depth = depth;
        comp->weight += loop && step->unrolls ? weight * step->trip_count : weight;
        comp->jobs += jobs;
    }
}

/* Chooses the layouts of the computation's arguments and results. */
static void find_signature(build *b) {
    plan_comp *comp = b->comp;
    const hlo_computation *c = comp->comp;
    const hlo_shape *arguments = b->plan->arguments_like[c->id];
    const hlo_shape *result = b->plan->results_like[c->id];
    b->arguments = hlo_arena_array(b->plan->arena, c->parameter_count, sizeof *b->arguments);
    for (uint32_t i = 0; i < c->parameter_count; i++) {
        b->arguments[i] = comp->argument_count;
        comp->argument_count += hlo_shape_leaf_count(c->parameters[i]->shape);
    }
    comp->argument_shapes =
        hlo_arena_array(b->plan->arena, comp->argument_count + 1, sizeof *comp->argument_shapes);
    comp->arguments =
        hlo_arena_array(b->plan->arena, comp->argument_count, sizeof *comp->arguments);
    for (uint32_t i = 0; i < comp->argument_count; i++) comp->arguments[i] = PLAN_NONE;
    const hlo_shape **end = comp->argument_shapes;
    for (uint32_t i = 0; i < c->parameter_count; i++)
        build_leaf_shapes(arguments ? arguments : c->parameters[i]->shape, &end);
    comp->result_shapes = build_leaves(b, result ? result : c->root->shape);
}

bool plan_build(hlo_plan *plan, plan_comp *comp, const hlo_diag_sink *sink) {
    build b = {.plan = plan, .comp = comp, .sink = sink};
    const hlo_instr *root = comp->comp->root;
    uint32_t last_id = 0, count = 0;
    b.first_id = UINT32_MAX;
    for (const hlo_instr *i = comp->comp->first; i; i = hlo_instr_next(i)) {
        if (i->id < b.first_id) b.first_id = i->id;
        if (i->id > last_id) last_id = i->id;
        count++;
    }
    hlo_arena *arena = plan->arena;
    b.place = hlo_arena_array(arena, last_id - b.first_id + 1, sizeof *b.place);
    b.values = hlo_arena_zero(arena, count * sizeof *b.values);
    b.starts = hlo_arena_zero(arena, count * sizeof *b.starts);
    count = 0;
    for (const hlo_instr *i = comp->comp->first; i; i = hlo_instr_next(i))
        b.place[i->id - b.first_id] = count++;
    find_signature(&b);
    const build_unit *units = build_order(&b, &count);
    for (uint32_t i = 0; i < count; i++)
        if (units[i].group)
            build_group(&b, &units[i]);
        else {
            *build_value_of(&b, units[i].instr) = value_for(&b, units[i].instr);
            build_look(&b, units[i].instr);
        }
    if (b.failed) return false;
    build_value results = build_adapt(&b, root, *build_value_of(&b, root),
                                      build_leaves(&b, root->shape), comp->result_shapes);
    comp->results = results.slots;
    comp->result_count = results.count;
    /* Place the root's leaves that a step computes in memory that the caller provides. */
    for (uint32_t i = 0; i < comp->result_count; i++) {
        plan_slot *slot = &comp->slots[comp->results[i]];
        slot->results++;
        if (slot->kind != SLOT_BUFFER) continue;
        slot->kind = SLOT_RESULT;
        slot->index = i;
    }
    /* Compute the live range of each slot. */
    for (uint32_t i = 0; i < comp->slot_count; i++) {
        comp->slots[i].first = PLAN_NONE;
        comp->slots[i].last = 0;
    }
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        for (uint32_t i = 0; i < step->operand_count; i++) use(comp, step->operands[i], s);
        for (uint32_t i = 0; i < step->result_count; i++) use(comp, step->results[i], s);
        for (uint32_t i = 0; step->spare && i < step->result_count; i++)
            use(comp, step->spare[i], s);
        use(comp, step->work, s);
        use(comp, step->predicate, s);
    }
    /* Drop results that a job does not compute and that have no users. */
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        if (!step->job || step->job->untouched < 0) continue;
        plan_slot *slot = &comp->slots[step->results[step->job->untouched]];
        if (slot->kind == SLOT_BUFFER && slot->last == s) slot->kind = SLOT_NOWHERE;
    }
    sum_up(comp);
    return true;
}
