/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that a backend runs: converts instructions to jobs. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/text/diag.h"
#include "runtime/plan/build.h"

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

static uint32_t leaf_count(const hlo_instr *const *instrs, uint32_t count) {
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < count; i++) leaves += hlo_shape_leaf_count(instrs[i]->shape);
    return leaves;
}

/* Creates views of the leaves of several instructions, in order. */
static hlo_view *views_of_all(const build *b, const hlo_instr *const *instrs, uint32_t count) {
    uint32_t leaves = leaf_count(instrs, count);
    const hlo_shape **shapes = hlo_arena_array(b->plan->arena, leaves, sizeof *shapes),
                    **end = shapes;
    for (uint32_t i = 0; i < count; i++) build_leaf_shapes(instrs[i]->shape, &end);
    return views_of(b, shapes, leaves);
}

static build_value slots_of_all(const build *b, const hlo_instr *const *instrs, uint32_t count) {
    build_value v = build_new_value(b, leaf_count(instrs, count));
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const build_value *value = build_value_of(b, instrs[i]);
        memcpy(v.slots + at, value->slots, value->count * sizeof *v.slots);
        at += value->count;
    }
    return v;
}

/* Adds a step for a job whose views are set. */
static void add_step(build *b, hlo_job *job, build_value operands, build_value results) {
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
    plan_step *step = build_step(b, STEP_JOB, job->instr, operands, results);
    step->job = job;
    const hlo_status status = plan->backend->prepare(plan->device, job, plan->arena, &why);
    if (status == HLO_OUT_OF_MEMORY) hlo_arena_exhausted(plan->arena);
    if (status != HLO_OK) build_refuse(b, job->instr, "`%s` %s", name, why);
    if (job->host) build_warn(b, job->instr, "`%s` runs on the CPU: it %s", name, job->host);
    if (job->scratch_size) step->work = build_work(b, job->scratch_size);
}

/* Adds a step for a group whose results have slots. `shape` is the shape of the results if it
 * differs from that of the group, otherwise NULL. */
static void add_job(build *b, const hlo_instr *instr, hlo_group group, const hlo_shape *shape,
                    build_value results) {
    hlo_job *job = hlo_arena_zero(b->plan->arena, sizeof *job);
    build_value operands = slots_of_all(b, group.inputs, group.input_count);
    job->instr = instr;
    job->group = group;
    job->operand_count = operands.count;
    job->result_count = results.count;
    job->operands = views_of_all(b, group.inputs, group.input_count);
    job->results = shape ? views_of(b, build_leaves(b, shape), results.count)
                         : views_of_all(b, group.results, group.result_count);
    add_step(b, job, operands, results);
}

build_value build_job(build *b, const hlo_instr *instr, const hlo_shape *shape) {
    const char *why;
    build_value v = build_new_slots(b, SLOT_BUFFER, shape);
    if (!b->plan->backend->supports(b->plan->device, instr, b->plan->arena, &why)) {
        build_refuse(b, instr, "`%s` %s", hlo_ops[instr->op].name, why);
        const hlo_instr *blocker = hlo_region_blocker(instr);
        if (blocker)
            hlo_diag_emit(b->plan->module, b->sink, HLO_NOTE, blocker->offset,
                          strlen(blocker->name), "this `%s` in computation %s is the cause",
                          hlo_ops[blocker->op].name, blocker->parent->name);
        return v;
    }
    hlo_group group = {.instr_count = 1, .result_count = 1, .input_count = instr->operand_count};
    group.instrs = group.results = hlo_arena_copy(b->plan->arena, &instr, sizeof(hlo_instr *));
    group.inputs = hlo_arena_array(b->plan->arena, instr->operand_count, sizeof(hlo_instr *));
    for (uint32_t i = 0; i < instr->operand_count; i++)
        group.inputs[i] = hlo_instr_operand(instr, i);
    add_job(b, instr, group, shape, v);
    return v;
}

void build_group(build *b, const build_unit *unit) {
    const hlo_group *group = unit->group;
    for (uint32_t i = 0; i < group->result_count; i++)
        *build_value_of(b, group->results[i]) =
            build_new_slots(b, SLOT_BUFFER, group->results[i]->shape);
    add_job(b, unit->instr, *group, NULL, slots_of_all(b, group->results, group->result_count));
}

build_value build_adapt(build *b, const hlo_instr *instr, build_value value,
                        const hlo_shape *const *from, const hlo_shape *const *to) {
    build_value adapted = value;
    for (uint32_t i = 0; i < value.count; i++) {
        if (from[i] == to[i] || hlo_shape_same_memory(from[i], to[i])) continue;
        if (adapted.slots == value.slots) {
            adapted = build_new_value(b, value.count);
            memcpy(adapted.slots, value.slots, value.count * sizeof *value.slots);
        }
        build_value operand = build_new_value(b, 1), result = build_new_value(b, 1);
        operand.slots[0] = value.slots[i];
        adapted.slots[i] = result.slots[0] = build_slot(b, SLOT_BUFFER, to[i]);
        hlo_job *job = hlo_arena_zero(b->plan->arena, sizeof *job);
        job->instr = instr;
        job->operand_count = job->result_count = 1;
        job->operands = views_of(b, &from[i], 1);
        job->results = views_of(b, &to[i], 1);
        add_step(b, job, operand, result);
    }
    return adapted;
}
