/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the steps and slots of a computation, and the live ranges of the slots. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "ir/device_list.h"
#include "ir/devices/boundary.h"
#include "ir/eval/apply.h"
#include "ir/kernel/kernel.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"
#include "ir/text/argument.h"
#include "ir/text/diag.h"
#include "ir/text/suggest.h"
#include "runtime/plan/build.h"

/* ----------------------------------------------------------------------------- values and slots */

/* Returns the instruction's value, which must have been built. */
static build_value *value_of(const build *b, const hlo_instruction *instr) {
    return &b->values[b->place[instr->id - b->first_id]];
}

/* Writes the shapes of the leaves to *out, and advances *out past them. */
static void add_leaf_shapes(const hlo_shape *shape, const hlo_shape ***out) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++) add_leaf_shapes(shape->elements[i], out);
    } else if (hlo_types[shape->type].bytes) {
        *(*out)++ = shape;
    }
}

/* Returns the shapes of the leaves of `shape`, in the plan's arena. */
static const hlo_shape **leaf_shapes(const build *b, const hlo_shape *shape) {
    const hlo_shape **shapes =
        hlo_arena_array(b->plan->arena, hlo_shape_leaf_count(shape) + 1, sizeof *shapes);
    const hlo_shape **end = shapes;
    add_leaf_shapes(shape, &end);
    return shapes;
}

/* Creates a slot for an array of `shape`, which may be NULL. */
static uint32_t new_slot(build *b, plan_slot_kind kind, const hlo_shape *shape) {
    plan_comp *comp = b->comp;
    hlo_arena_grow(b->plan->arena, &comp->slots, comp->slot_count, &comp->slot_capacity,
                   sizeof *comp->slots);
    plan_slot *slot = &comp->slots[comp->slot_count];
    *slot = (plan_slot){.kind = kind, .type = HLO_TYPE_INVALID};
    if (shape) {
        slot->type = shape->type;
        slot->size = (size_t)hlo_shape_bytes(shape);
        if (b->plan->options.bounds)
            slot->bound_size = slot->size / hlo_types[shape->type].bytes * sizeof(float);
    }
    return comp->slot_count++;
}

static uint32_t new_work(build *b, size_t size) {
    uint32_t slot = new_slot(b, SLOT_BUFFER, NULL);
    b->comp->slots[slot].size = size;
    return slot;
}

static build_value new_value(const build *b, uint32_t count) {
    return (build_value){hlo_arena_array(b->plan->arena, count, sizeof(uint32_t)), count};
}

/* Creates a slot for every leaf of the shape. */
static build_value new_slots(build *b, plan_slot_kind kind, const hlo_shape *shape) {
    const hlo_shape **shapes = leaf_shapes(b, shape);
    build_value v = new_value(b, hlo_shape_leaf_count(shape));
    for (uint32_t i = 0; i < v.count; i++) v.slots[i] = new_slot(b, kind, shapes[i]);
    return v;
}

static uint32_t leaf_count(const hlo_instruction *const *instrs, uint32_t count) {
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < count; i++) leaves += hlo_shape_leaf_count(instrs[i]->shape);
    return leaves;
}

/* Returns the shapes of the leaves of several instructions, in order. */
static const hlo_shape **shapes_of_all(const build *b, const hlo_instruction *const *instrs,
                                       uint32_t count) {
    const hlo_shape **shapes =
        hlo_arena_array(b->plan->arena, leaf_count(instrs, count) + 1, sizeof *shapes);
    const hlo_shape **end = shapes;
    for (uint32_t i = 0; i < count; i++) add_leaf_shapes(instrs[i]->shape, &end);
    return shapes;
}

/* Returns the slots of the leaves of several instructions, in order. */
static build_value slots_of_all(const build *b, const hlo_instruction *const *instrs,
                                uint32_t count) {
    build_value v = new_value(b, leaf_count(instrs, count));
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const build_value *value = value_of(b, instrs[i]);
        memcpy(v.slots + at, value->slots, value->count * sizeof *v.slots);
        at += value->count;
    }
    return v;
}

static const hlo_instruction **list_operands(const build *b, const hlo_instruction *instr) {
    const hlo_instruction **list =
        hlo_arena_array(b->plan->arena, instr->operand_count + 1, sizeof *list);
    for (uint32_t i = 0; i < instr->operand_count; i++) list[i] = hlo_instr_operand(instr, i);
    return list;
}

static build_value operands_of(const build *b, const hlo_instruction *instr) {
    return slots_of_all(b, list_operands(b, instr), instr->operand_count);
}

static plan_step *new_step(build *b, plan_step_kind kind, const hlo_instruction *instr,
                           build_value operands, build_value results) {
    plan_comp *comp = b->comp;
    hlo_arena_grow(b->plan->arena, &comp->steps, comp->step_count, &comp->step_capacity,
                   sizeof *comp->steps);
    plan_step *step = &comp->steps[comp->step_count++];
    *step = (plan_step){.kind = kind,
                        .instr = instr,
                        .operand_count = operands.count,
                        .result_count = results.count,
                        .operands = operands.slots,
                        .results = results.slots,
                        .work = PLAN_NONE,
                        .predicate = PLAN_NONE};
    return step;
}

/* ----------------------------------------------------------------------------------------- jobs */

static hlo_view *views_of(const build *b, const hlo_shape *const *shapes, uint32_t count) {
    hlo_view *views = hlo_arena_array(b->plan->arena, count, sizeof *views);
    for (uint32_t i = 0; i < count; i++) views[i] = hlo_view_in_layout(b->plan->arena, shapes[i]);
    return views;
}

static hlo_view *sigmas_of(const build *b, const hlo_view *views, uint32_t count) {
    hlo_view *sigmas = hlo_arena_copy(b->plan->arena, views, count * sizeof *views);
    for (uint32_t i = 0; i < count; i++) sigmas[i].type = HLO_TYPE_F32;
    return sigmas;
}

/* Completes a job whose views are set, prepares it, and adds its step. */
static void add_job_step(build *b, hlo_job *job, build_value operands, build_value results) {
    const hlo_plan *plan = b->plan;
    const char *name = hlo_ops[job->instr->op].name, *why = "cannot be run";
    job->bounded = plan->options.bounds;
    job->perturbed = plan->options.perturbed && !job->bounded;
    job->roundings_may_be_dropped = plan->options.roundings_may_be_dropped;
    job->accumulate = plan->options.accumulate;
    job->watch = plan->options.progress ? &plan->watch : NULL;
    job->operand_sigmas = sigmas_of(b, job->operands, job->operand_count);
    job->result_sigmas = sigmas_of(b, job->results, job->result_count);
    job->untouched = -1;
    plan_step *step = new_step(b, STEP_JOB, job->instr, operands, results);
    step->job = job;
    const hlo_status status = plan->backend->prepare(plan->device, job, plan->arena, &why);
    if (status == HLO_OUT_OF_MEMORY) hlo_arena_exhausted(plan->arena);
    if (status != HLO_OK) build_refuse(b, job->instr, "`%s` %s", name, why);
    if (job->host)
        hlo_diag_emit(plan->module, b->sink, HLO_WARNING, HLO_DIAG_UNSUPPORTED, job->instr->offset,
                      strlen(job->instr->name), "`%s` runs on the CPU: it %s", name, job->host);
    if (job->scratch_size) step->work = new_work(b, job->scratch_size);
}

/* Adds a step for a group whose results have slots. `shape` is NULL, or a shape of the results that
 * differs from the group's. */
static void add_job(build *b, const hlo_instruction *instr, hlo_group group, const hlo_shape *shape,
                    build_value results) {
    hlo_job *job = hlo_arena_zero(b->plan->arena, sizeof *job);
    build_value operands = slots_of_all(b, group.inputs, group.input_count);
    job->instr = instr;
    job->group = group;
    job->operand_count = operands.count;
    job->result_count = results.count;
    job->operands = views_of(b, shapes_of_all(b, group.inputs, group.input_count), operands.count);
    job->results = views_of(
        b, shape ? leaf_shapes(b, shape) : shapes_of_all(b, group.results, group.result_count),
        results.count);
    add_job_step(b, job, operands, results);
}

/* Creates the job of a separate instruction, with its first `operands` operands and with results of
 * the shape `shape`. */
static build_value job_of(build *b, const hlo_instruction *instr, uint32_t operands,
                          const hlo_shape *shape) {
    const char *why;
    build_value v = new_slots(b, SLOT_BUFFER, shape);
    if (!b->plan->backend->supports(b->plan->device, instr, b->plan->arena, &why)) {
        build_refuse(b, instr, "`%s` %s", hlo_ops[instr->op].name, why);
        const hlo_instruction *blocker = hlo_region_blocker(instr);
        if (blocker)
            hlo_diag_emit(b->plan->module, b->sink, HLO_NOTE, HLO_DIAG_UNSUPPORTED, blocker->offset,
                          strlen(blocker->name), "this `%s` in computation %s is the cause",
                          hlo_ops[blocker->op].name, blocker->parent->name);
        return v;
    }
    hlo_group group = {.instr_count = 1, .result_count = 1, .input_count = operands};
    group.instrs = group.results =
        hlo_arena_copy(b->plan->arena, &instr, sizeof(hlo_instruction *));
    group.inputs = list_operands(b, instr);
    add_job(b, instr, group, shape, v);
    return v;
}

static build_value separate_job(build *b, const hlo_instruction *instr, const hlo_shape *shape) {
    return job_of(b, instr, instr->operand_count, shape);
}

/* Converts the leaves of `value` from the layouts of `from` to the layouts of `to`. Adds a copy for
 * each leaf whose layouts differ. */
static build_value adapt(build *b, const hlo_instruction *instr, build_value value,
                         const hlo_shape *const *from, const hlo_shape *const *to) {
    build_value adapted = value;
    for (uint32_t i = 0; i < value.count; i++) {
        if (from[i] == to[i] || hlo_shape_same_memory(from[i], to[i])) continue;
        if (adapted.slots == value.slots) {
            adapted = new_value(b, value.count);
            memcpy(adapted.slots, value.slots, value.count * sizeof *value.slots);
        }
        build_value operand = new_value(b, 1), result = new_value(b, 1);
        operand.slots[0] = value.slots[i];
        adapted.slots[i] = result.slots[0] = new_slot(b, SLOT_BUFFER, to[i]);
        hlo_job *job = hlo_arena_zero(b->plan->arena, sizeof *job);
        job->instr = instr;
        job->operand_count = job->result_count = 1;
        job->operands = views_of(b, &from[i], 1);
        job->results = views_of(b, &to[i], 1);
        add_job_step(b, job, operand, result);
    }
    return adapted;
}

/* ---------------------------------------------------------------------------------------- calls */

/* Maximum number of jobs that an unrolled loop records. */
enum { UNROLLED = 1 << 14 };

/* Maximum nesting depth of computations. The depth is limited because a run visits computations
 * recursively, on threads with small stacks. */
enum { MAX_NESTED = 100 };

uint32_t plan_branch_count(const hlo_instruction *conditional) {
    const hlo_attr *branches = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    return branches ? branches->u.comps->count : 2;
}

hlo_computation *plan_branch(const hlo_instruction *conditional, uint32_t index) {
    const hlo_attr *branches = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    if (branches) return branches->u.comps->v[index];
    return hlo_instr_comp(conditional,
                          index ? HLO_ATTR_FALSE_COMPUTATION : HLO_ATTR_TRUE_COMPUTATION);
}

/* Completes a step that calls computations: sets its callees, and reserves working memory for the
 * largest of their frames. */
static void finish_call(build *b, plan_step *step, uint32_t count, plan_comp **called) {
    hlo_arena *arena = b->plan->arena;
    size_t frame = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (called[i]->frame_size > frame) frame = called[i]->frame_size;
        if (called[i]->nesting >= b->comp->nesting) b->comp->nesting = called[i]->nesting + 1;
    }
    if (b->comp->nesting > MAX_NESTED)
        build_refuse(b, step->instr, "`%s` nests computations %u levels deep, but the limit is %d",
                     hlo_ops[step->instr->op].name, b->comp->nesting, MAX_NESTED);
    step->called = called;
    step->called_count = count;
    step->arguments = hlo_arena_zero(arena, (step->operand_count + 1) * sizeof *step->arguments);
    step->lent = hlo_arena_zero(arena, (step->result_count + 1) * sizeof *step->lent);
    step->work = new_work(b, frame);
}

static plan_comp **callees(const build *b, uint32_t count) {
    return hlo_arena_array(b->plan->arena, count, sizeof(plan_comp *));
}

/* Returns the slots of the leaves of all operands, converted to the layouts of `to`. */
static build_value adapted_operands(build *b, const hlo_instruction *instr,
                                    const hlo_shape *const *to) {
    const hlo_shape **from = shapes_of_all(b, list_operands(b, instr), instr->operand_count);
    return adapt(b, instr, operands_of(b, instr), from, to);
}

static build_value result_slots(build *b, const plan_comp *callee) {
    build_value v = new_value(b, callee->result_count);
    for (uint32_t i = 0; i < v.count; i++)
        v.slots[i] = new_slots(b, SLOT_BUFFER, callee->result_shapes[i]).slots[0];
    return v;
}

/* Creates the results of a call, with the layouts of `shape`. Leaves that the callee only forwards
 * keep their slots. */
static build_value call_value(build *b, const hlo_instruction *instr, hlo_computation *called,
                              const hlo_shape *shape) {
    plan_comp **callee = callees(b, 1);
    callee[0] = b->plan->comps[called->id];
    build_value operands = adapted_operands(b, instr, callee[0]->argument_shapes);
    build_value v = result_slots(b, callee[0]);
    build_value own = new_value(b, v.count);
    for (uint32_t i = 0; i < v.count; i++) {
        own.slots[i] = PLAN_NONE;
        const plan_slot *slot = &callee[0]->slots[callee[0]->results[i]];
        if (plan_makes_result(callee[0], i))
            own.slots[i] = v.slots[i];
        else if (slot->kind == SLOT_ARGUMENT)
            v.slots[i] = operands.slots[slot->index];
        else if (slot->kind == SLOT_RESULT)
            v.slots[i] = v.slots[slot->index];
        else
            b->comp->slots[v.slots[i]] = *slot;
    }
    finish_call(b, new_step(b, STEP_CALL, instr, operands, own), 1, callee);
    return adapt(b, instr, v, callee[0]->result_shapes, leaf_shapes(b, shape));
}

/* Creates a loop's state. Leaves that the body only forwards, or can write in place, have one slot;
 * other leaves have two slots, because the body reads one slot while it writes the other. */
static build_value while_value(build *b, const hlo_instruction *instr) {
    plan_comp **callee = callees(b, 2);
    callee[0] = b->plan->comps[hlo_instr_comp(instr, HLO_ATTR_CONDITION)->id];
    callee[1] = b->plan->comps[hlo_instr_comp(instr, HLO_ATTR_BODY)->id];
    const plan_comp *body = callee[1];
    build_value operands = adapted_operands(b, instr, body->argument_shapes);
    build_value v = result_slots(b, body), spare = result_slots(b, body);
    build_value own = new_value(b, v.count);
    for (uint32_t i = 0; i < v.count; i++) {
        const plan_slot *slot = &body->slots[body->results[i]];
        bool constant = slot->kind == SLOT_ARGUMENT && slot->index == i;
        own.slots[i] = constant ? PLAN_NONE : v.slots[i];
        if (constant || plan_is_in_place(body, i, i)) spare.slots[i] = PLAN_NONE;
        if (constant) v.slots[i] = operands.slots[i];
    }
    plan_step *step = new_step(b, STEP_WHILE, instr, operands, own);
    step->spare = spare.slots;
    finish_call(b, step, 2, callee);
    step->predicate = result_slots(b, callee[0]).slots[0];
    /* With a known trip count, the condition would not run. If values are saved, run the condition
     * anyway, because it may compute one of them, and also if it has side effects. */
    const bool tested = b->plan->kept || b->plan->effects[callee[0]->comp->id];
    step->trip_count = tested ? HLO_TRIP_COUNT_UNKNOWN : hlo_while_trip_count(instr);
    step->unrolls = step->trip_count != HLO_TRIP_COUNT_UNKNOWN &&
                    step->trip_count * (body->weight + 1) <= UNROLLED;
    return adapt(b, instr, v, body->result_shapes, leaf_shapes(b, instr->shape));
}

static build_value conditional_value(build *b, const hlo_instruction *instr) {
    uint32_t count = plan_branch_count(instr), at = 1;
    plan_comp **callee = callees(b, count);
    uint32_t *starts = hlo_arena_array(b->plan->arena, count, sizeof *starts);
    const hlo_shape *const *wanted = leaf_shapes(b, instr->shape);
    build_value operands = operands_of(b, instr);
    for (uint32_t i = 0; i < count; i++) {
        callee[i] = b->plan->comps[plan_branch(instr, i)->id];
        bool clashes = false;
        for (uint32_t r = 0; r < callee[i]->result_count; r++)
            clashes |= callee[i]->result_shapes[r] != wanted[r];
        if (clashes)
            build_refuse(b, instr,
                         "`conditional` shares a branch with another conditional that requires a "
                         "different result layout");
        const hlo_shape *shape = hlo_instr_operand(instr, i + 1)->shape;
        build_value part = {operands.slots + at, hlo_shape_leaf_count(shape)};
        part = adapt(b, instr, part, leaf_shapes(b, shape), callee[i]->argument_shapes);
        memmove(operands.slots + at, part.slots, part.count * sizeof *part.slots);
        starts[i] = at;
        at += part.count;
    }
    build_value v = new_slots(b, SLOT_BUFFER, instr->shape);
    plan_step *step = new_step(b, STEP_CONDITIONAL, instr, operands, v);
    step->branch_operands = starts;
    finish_call(b, step, count, callee);
    return v;
}

/* ----------------------------------------------------------------------------- inspected values */

/* True if every leaf of the instruction's value has memory. */
static bool has_memory(const hlo_instruction *instr) {
    const bool starts = instr->op == HLO_OP_SEND || instr->op == HLO_OP_RECV ||
                        instr->op == HLO_OP_COPY_START || instr->op == HLO_OP_ASYNC_START ||
                        instr->op == HLO_OP_COLLECTIVE_PERMUTE_START;
    return !starts || instr->shape->rank <= 2;
}

bool plan_find_kept(hlo_plan *plan, const bool *runs, const hlo_diag_sink *sink) {
    const char *at = plan->options.values, *word;
    const hlo_module *module = plan->module;
    bool good = true;
    size_t length;
    if (at) plan->kept = hlo_arena_zero(plan->arena, module->next_id * sizeof *plan->kept);
    while ((word = hlo_next_word(&at, &length))) {
        const char *name = hlo_arena_format(plan->arena, "%.*s", (int)length, word);
        if (*name == '%') name++;
        uint32_t found = 0;
        hlo_suggestion near = hlo_suggest(name);
        /* Mark the matching instructions in computations that are executed directly. Set
         * `elsewhere` to a matching instruction that cannot be saved: it is in another computation,
         * or its value has no array. */
        const hlo_instruction *elsewhere = NULL;
        const bool glob = strpbrk(name, "*?[") != NULL;
        for (const hlo_computation *c = plan->module->first; c; c = c->next)
            for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i)) {
                if (glob ? fnmatch(name, i->name, 0) != 0 : strcmp(name, i->name) != 0) {
                    if (runs[c->id]) hlo_suggest_offer(&near, i->name);
                    continue;
                }
                if (runs[c->id] && build_is_static(i->shape) && hlo_shape_leaf_count(i->shape) &&
                    has_memory(i)) {
                    plan->kept[i->id] = true;
                    ++found;
                } else {
                    elsewhere = i;
                }
            }
        if (found) continue;
        good = false;
        if (elsewhere && !glob)
            hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_NAME, elsewhere->offset, strlen(name),
                          runs[elsewhere->parent->id]
                              ? "`%s` has no array value to save"
                              : "`%s` has no value to save: its computation runs per element, is "
                                "fused into an instruction, or never runs",
                          name);
        else
            hlo_diag_refuse(sink, HLO_DIAG_NAME, module->file, 0, 0,
                            "no executed instruction is named `%s`%s", name,
                            hlo_suggest_meant(&near));
    }
    return good;
}

/* Adds the step that inspects the value of an instruction, if requested. */
static void add_look(build *b, const hlo_instruction *instr) {
    const hlo_plan *plan = b->plan;
    const plan_comp *comp = b->comp;
    const plan_step *last = comp->step_count ? &comp->steps[comp->step_count - 1] : NULL;
    const bool keeps = plan_keeps(plan, instr);
    const bool computed = last && last->kind == STEP_JOB && last->job->instr == instr &&
                          last->job->group.instr_count == 1;
    const bool input =
        instr->op == HLO_OP_PARAMETER && instr->parent == instr->parent->module->entry;
    const bool checks = plan->options.check_finite && (computed || input);
    if (b->failed || (!keeps && !checks)) return;
    const build_value own = *value_of(b, instr);
    const build_value others = checks ? operands_of(b, instr) : new_value(b, 0);
    const int untouched = computed ? last->job->untouched : -1;
    build_value all = new_value(b, own.count + others.count);
    memcpy(all.slots, own.slots, own.count * sizeof *all.slots);
    memcpy(all.slots + own.count, others.slots, others.count * sizeof *all.slots);
    if (untouched >= 0 && !keeps) all.slots[untouched] = PLAN_NONE;
    for (uint32_t i = 0; i < all.count; i++)
        if (all.slots[i] != PLAN_NONE && comp->slots[all.slots[i]].kind == SLOT_NOWHERE)
            all.slots[i] = PLAN_NONE;
    plan_step *step = new_step(b, STEP_LOOK, instr, all, new_value(b, 0));
    const hlo_shape **end = step->shapes =
        hlo_arena_array(plan->arena, all.count + 1, sizeof *step->shapes);
    add_leaf_shapes(instr->shape, &end);
    for (uint32_t i = 0; checks && i < instr->operand_count; i++)
        add_leaf_shapes(hlo_instr_operand(instr, i)->shape, &end);
    step->own = own.count;
    step->keeps = keeps;
    step->checks = checks;
}

/* Returns a value in the layouts of another shape: a module may give one value two layouts. */
static build_value relaid(build *b, const hlo_instruction *instr, build_value value,
                          const hlo_shape *from, const hlo_shape *to) {
    if (from == to) return value;
    return adapt(b, instr, value, leaf_shapes(b, from), leaf_shapes(b, to));
}

/* ------------------------------------------------------------------------------------- plumbing */

/* True if the instruction's value is its first operand, possibly in another layout. */
static bool is_alias(const build *b, const hlo_instruction *instr) {
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
    case HLO_OP_COLLECTIVE_BROADCAST: {
        /* A collective is an alias if there is only one device, i.e. neither the header nor its
         * groups have a second device. */
        const hlo_module *module = b->plan->module;
        const hlo_groups *groups = hlo_instr_groups(instr, HLO_ATTR_REPLICA_GROUPS);
        if (b->plan->seat.world || hlo_module_int(module, HLO_ATTR_NUM_PARTITIONS, 1) > 1 ||
            hlo_module_int(module, HLO_ATTR_REPLICA_COUNT, 1) > 1 ||
            (groups && groups->devices != 0 && groups->devices != 1))
            return false;
        break;
    }
    case HLO_OP_CUSTOM_CALL:
        return hlo_instr_is_annotation(instr) && hlo_shape_compatible(instr->shape, from);
    default:
        if (hlo_op_is(instr->op, HLO_REPEATS | HLO_TRANSPOSES)) {
            /* A transpose, or a broadcast that only adds dimensions of size 1, is an alias if every
             * element stays at its position in memory. */
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

/* Returns the value of element `index` of the operand, a tuple. */
static build_value element_of(build *b, const hlo_instruction *instr, uint32_t index) {
    const hlo_instruction *tuple = hlo_instr_operand(instr, 0);
    const uint32_t **starts = &b->starts[b->place[tuple->id - b->first_id]];
    if (!*starts) { /* compute the number of leaves before each element */
        uint32_t *made = hlo_arena_array(b->plan->arena, tuple->shape->rank, sizeof *made), at = 0;
        for (uint32_t i = 0; i < tuple->shape->rank; i++) {
            made[i] = at;
            at += hlo_shape_leaf_count(tuple->shape->elements[i]);
        }
        *starts = made;
    }
    build_value v = {value_of(b, tuple)->slots + (*starts)[index],
                     hlo_shape_leaf_count(instr->shape)};
    return relaid(b, instr, v, tuple->shape->elements[index], instr->shape);
}

/* Returns the value of a tuple: its elements, in the layouts of the tuple's shape. */
static build_value tuple_value(build *b, const hlo_instruction *instr) {
    build_value v = operands_of(b, instr);
    uint32_t at = 0;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        build_value part = {v.slots + at, hlo_shape_leaf_count(operand->shape)};
        part = relaid(b, instr, part, operand->shape, instr->shape->elements[i]);
        memmove(v.slots + at, part.slots, part.count * sizeof *part.slots);
        at += part.count;
    }
    return v;
}

/* Imports the bytes of a constant to the device, for slot `index`. */
static void set_constant(build *b, const hlo_instruction *instr, uint32_t index,
                         const void *bytes) {
    plan_slot *slot = &b->comp->slots[index];
    slot->place.data = (void *)b->plan->backend->import(b->plan->device, bytes, slot->size);
    if (!slot->place.data && slot->size) build_refuse(b, instr, "out of memory for this constant");
}

/* Creates a constant from the elements of the literal, in the layout of `shape`, which is the shape
 * of the instruction or an element of it. Ignores the layout of the literal. */
static build_value constant_value(build *b, const hlo_instruction *instr, const hlo_shape *shape,
                                  const hlo_literal *literal) {
    if (shape->type == HLO_TYPE_TUPLE) {
        build_value v = new_value(b, hlo_shape_leaf_count(shape));
        uint32_t at = 0;
        for (uint32_t i = 0; i < shape->rank; i++) {
            build_value part = constant_value(b, instr, shape->elements[i], literal->elements[i]);
            memcpy(v.slots + at, part.slots, part.count * sizeof *v.slots);
            at += part.count;
        }
        return v;
    }
    build_value v = new_slots(b, SLOT_CONSTANT, shape);
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

/* Creates the value of an asynchronous start: its operands, its results, and further elements,
 * which other devices use and which have no memory here. For a copy-start, the results come
 * first. */
static build_value start_value(build *b, const hlo_instruction *instr) {
    const bool copies = instr->op == HLO_OP_COPY_START;
    const hlo_shape *shape = instr->shape, *from = shape->elements[copies];
    build_value v = new_slots(b, SLOT_NOWHERE, shape), result;
    /* A collective-permute-start of slices keeps only the first operand. */
    const hlo_instruction *const *all = list_operands(b, instr);
    const uint32_t count =
        hlo_instr_attr(instr, HLO_ATTR_SLICE_SIZE_LISTS) ? 1 : instr->operand_count;
    const hlo_shape *const *kept = leaf_shapes(b, from);
    build_value operands =
        adapt(b, instr, slots_of_all(b, all, count), shapes_of_all(b, all, count), kept);
    if (copies)
        result = adapt(b, instr, operands, kept, leaf_shapes(b, shape->elements[0]));
    else if (instr->op == HLO_OP_ASYNC_START)
        result = call_value(b, instr, hlo_instr_comp(instr, HLO_ATTR_CALLS), shape->elements[1]);
    else
        result = separate_job(b, instr, shape->elements[1]);
    const build_value *parts[] = {copies ? &result : &operands, copies ? &operands : &result};
    uint32_t at = 0;
    for (int i = 0; i < 2; i++) {
        memcpy(v.slots + at, parts[i]->slots, parts[i]->count * sizeof *v.slots);
        at += parts[i]->count;
    }
    return v;
}

static bool allocates(const hlo_instruction *instr) {
    return hlo_is_custom_call(instr, "AllocateBuffer") && hlo_shape_is_array(instr->shape) &&
           !instr->operand_count;
}

static build_value zeros(build *b, const hlo_instruction *instr) {
    build_value v = new_slots(b, SLOT_CONSTANT, instr->shape);
    const size_t size = b->comp->slots[v.slots[0]].size;
    set_constant(b, instr, v.slots[0], hlo_arena_zero(b->plan->arena, size));
    return v;
}

/* True if the instruction may transfer values between the host and the device. */
static bool transfers(build *b, const hlo_instruction *instr) {
    if (b->plan->options.resident)
        build_refuse(b, instr,
                     "`%s` transfers values between the host and the device, which a plan with "
                     "`resident` does not support: use hlo_plan_run()",
                     hlo_ops[instr->op].name);
    return !b->plan->options.resident;
}

/* Adds the step of an infeed, or of a recv-done from the host. */
static build_value received_value(build *b, const hlo_instruction *instr) {
    const hlo_plan *plan = b->plan;
    build_value v = new_slots(b, SLOT_BUFFER, instr->shape);
    if (!transfers(b, instr)) return v;
    plan_step *step = new_step(b, STEP_RECEIVE, instr, new_value(b, 0), v);
    step->feed = plan_feed_of(plan, instr);
    step->shapes = leaf_shapes(b, instr->shape);
    step->sources = hlo_arena_zero(plan->arena, (v.count + 1) * sizeof *step->sources);
    const hlo_instruction *unused;
    const hlo_sharding *sharding = hlo_instr_sharding(instr);
    if (!plan->seat.world || !sharding || hlo_devices_unpartitioned(plan->module, &unused))
        return v;
    for (uint32_t i = 0; i < v.count; i++)
        step->sources[i] = hlo_draw_source(plan->arena, sharding, i, hlo_seat_number(&plan->seat),
                                           plan->seat.replicas * plan->seat.partitions);
    return v;
}

/* Adds the step of an outfeed, or of a send to the host. */
static void send_to_host(build *b, const hlo_instruction *instr) {
    const hlo_instruction *data = hlo_instr_operand(instr, 0);
    if (!transfers(b, instr)) return;
    plan_step *step = new_step(b, STEP_SEND, instr, slots_of_all(b, &data, 1), new_value(b, 0));
    step->feed = plan_feed_of(b->plan, instr);
    step->shapes = leaf_shapes(b, data->shape);
}

/* Creates the value of a send: its operand, and further elements without memory. */
static build_value send_value(build *b, const hlo_instruction *instr) {
    build_value v = new_slots(b, SLOT_NOWHERE, instr->shape);
    if (plan_feed_of(b->plan, instr))
        send_to_host(b, instr);
    else
        job_of(b, instr, 1, hlo_instr_operand(instr, 1)->shape);
    const hlo_shape *data = instr->shape->elements[0];
    const build_value sent = adapted_operands(b, instr, leaf_shapes(b, data));
    memcpy(v.slots, sent.slots, sent.count * sizeof *v.slots);
    return v;
}

static build_value value_for(build *b, const hlo_instruction *instr) {
    if (!build_is_static(instr->shape)) {
        build_refuse(b, instr, "`%s` has a shape that plans do not support",
                     hlo_ops[instr->op].name);
        return new_slots(b, SLOT_BUFFER, instr->shape);
    }
    /* If a callee cannot be executed, its errors were already reported. */
    const bool before = b->failed;
    b->failed = false;
    hlo_instr_visit_called(instr, check_called, b);
    const bool callee_failed = b->failed;
    b->failed |= before;
    if (callee_failed) return new_slots(b, SLOT_BUFFER, instr->shape);
    switch (instr->op) {
    case HLO_OP_PARAMETER: {
        const uint32_t index = b->arguments[instr->u.parameter];
        build_value v = new_value(b, hlo_shape_leaf_count(instr->shape));
        for (uint32_t i = 0; i < v.count; i++) {
            v.slots[i] = new_slot(b, SLOT_ARGUMENT, b->comp->argument_shapes[index + i]);
            b->comp->slots[v.slots[i]].index = index + i;
            b->comp->arguments[index + i] = v.slots[i];
        }
        return adapt(b, instr, v, b->comp->argument_shapes + index, leaf_shapes(b, instr->shape));
    }
    case HLO_OP_CONSTANT: return constant_value(b, instr, instr->shape, instr->u.literal);
    case HLO_OP_TUPLE: return tuple_value(b, instr);
    case HLO_OP_SEND_DONE:
    case HLO_OP_AFTER_ALL: return new_value(b, 0);
    case HLO_OP_SEND: return send_value(b, instr);
    case HLO_OP_RECV: return new_slots(b, SLOT_NOWHERE, instr->shape);
    case HLO_OP_INFEED: return received_value(b, instr);
    case HLO_OP_RECV_DONE:
        if (plan_feed_of(b->plan, instr)) return received_value(b, instr);
        return job_of(b, instr, 0, instr->shape);
    case HLO_OP_OUTFEED: send_to_host(b, instr); return new_value(b, 0);
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
        return call_value(b, instr, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), instr->shape);
    case HLO_OP_FUSION:
        return call_value(b, instr, hlo_instr_comp(instr, HLO_ATTR_CALLS), instr->shape);
    case HLO_OP_WHILE: return while_value(b, instr);
    case HLO_OP_CONDITIONAL: return conditional_value(b, instr);
    case HLO_OP_BITCAST: {
        /* With sigmas, which belong to elements of one type, a change of the type needs a copy. */
        const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
        if (from->type == instr->shape->type || !b->plan->options.bounds)
            return *value_of(b, hlo_instr_operand(instr, 0));
        build_value v = new_slots(b, SLOT_BUFFER, instr->shape);
        new_step(b, STEP_COPY, instr, operands_of(b, instr), v);
        return v;
    }
    case HLO_OP_GET_DIMENSION_SIZE: {
        const int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
        const int32_t size = (int32_t)hlo_instr_operand(instr, 0)->shape->dims[dim];
        build_value v = new_slots(b, SLOT_CONSTANT, instr->shape);
        const void *bytes = hlo_arena_copy(b->plan->arena, &size, sizeof size);
        set_constant(b, instr, v.slots[0], bytes);
        return v;
    }
    case HLO_OP_CUSTOM_CALL:
        if (allocates(instr)) return zeros(b, instr);
        break;
    default: break;
    }
    if (!is_alias(b, instr)) return separate_job(b, instr, instr->shape);
    const hlo_instruction *operand = hlo_instr_operand(instr, 0);
    build_value v = *value_of(b, operand);
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

/* Sets the members that summarize the computation's steps. */
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

/* Sets the shapes of the computation's arguments and results, including layouts. */
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
        add_leaf_shapes(arguments ? arguments : c->parameters[i]->shape, &end);
    comp->result_shapes = leaf_shapes(b, result ? result : c->root->shape);
}

bool plan_build(hlo_plan *plan, plan_comp *comp, const hlo_diag_sink *sink) {
    build b = {.plan = plan, .comp = comp, .sink = sink};
    const hlo_instruction *root = comp->comp->root;
    uint32_t last_id = 0, count = 0;
    b.first_id = UINT32_MAX;
    for (const hlo_instruction *i = comp->comp->first; i; i = hlo_instr_next(i)) {
        if (i->id < b.first_id) b.first_id = i->id;
        if (i->id > last_id) last_id = i->id;
        count++;
    }
    hlo_arena *arena = plan->arena;
    b.place = hlo_arena_array(arena, last_id - b.first_id + 1, sizeof *b.place);
    b.values = hlo_arena_zero(arena, count * sizeof *b.values);
    b.starts = hlo_arena_zero(arena, count * sizeof *b.starts);
    count = 0;
    for (const hlo_instruction *i = comp->comp->first; i; i = hlo_instr_next(i))
        b.place[i->id - b.first_id] = count++;
    find_signature(&b);
    const build_unit *units = build_order(&b, &count);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_group *group = units[i].group;
        for (uint32_t r = 0; group && r < group->result_count; r++)
            *value_of(&b, group->results[r]) = new_slots(&b, SLOT_BUFFER, group->results[r]->shape);
        if (group) {
            add_job(&b, units[i].instr, *group, NULL,
                    slots_of_all(&b, group->results, group->result_count));
        } else {
            *value_of(&b, units[i].instr) = value_for(&b, units[i].instr);
            add_look(&b, units[i].instr);
        }
    }
    if (b.failed) return false;
    build_value results =
        adapt(&b, root, *value_of(&b, root), leaf_shapes(&b, root->shape), comp->result_shapes);
    comp->results = results.slots;
    comp->result_count = results.count;
    /* Use the caller's memory for those leaves of the root that a step computes. */
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
