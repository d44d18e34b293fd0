/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that call other computations: call, fusion, while, conditional. */
#include <string.h>

#include "ir/module/known.h"
#include "runtime/plan/build.h"

/* Maximum number of jobs that an unrolled loop records. */
enum { UNROLLED = 1 << 14 };

/* Maximum nesting of computations: a run visits them recursively, on threads with small stacks. */
enum { MOST_NESTED = 100 };

uint32_t plan_branch_count(const hlo_instr *conditional) {
    const hlo_attr *branches = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    return branches ? branches->u.comps->count : 2;
}

hlo_computation *plan_branch(const hlo_instr *conditional, uint32_t index) {
    const hlo_attr *branches = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    if (branches) return branches->u.comps->v[index];
    return hlo_instr_comp(conditional,
                          index ? HLO_ATTR_FALSE_COMPUTATION : HLO_ATTR_TRUE_COMPUTATION);
}

/* Reserves working memory for the slots of the callees and for the largest frame among them. */
static void finish(build *b, plan_step *step, uint32_t count, plan_comp **called) {
    hlo_arena *arena = b->plan->arena;
    size_t frame = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (called[i]->frame_size > frame) frame = called[i]->frame_size;
        if (called[i]->nesting >= b->comp->nesting) b->comp->nesting = called[i]->nesting + 1;
    }
    if (b->comp->nesting > MOST_NESTED)
        build_refuse(b, step->instr, "`%s` nests computations %u levels deep, but the limit is %d",
                     hlo_ops[step->instr->op].name, b->comp->nesting, MOST_NESTED);
    step->called = called;
    step->called_count = count;
    step->arguments = hlo_arena_zero(arena, (step->operand_count + 1) * sizeof *step->arguments);
    step->lent = hlo_arena_zero(arena, (step->result_count + 1) * sizeof *step->lent);
    step->work = build_work(b, frame);
}

static plan_comp **callees(const build *b, uint32_t count) {
    return hlo_arena_array(b->plan->arena, count, sizeof(plan_comp *));
}

/* Returns the leaves of all operands, in the layouts of a callee's arguments. */
static build_value arguments(build *b, const hlo_instr *instr, const plan_comp *callee) {
    build_value v = build_operands(b, instr);
    const hlo_shape **shapes = hlo_arena_array(b->plan->arena, v.count + 1, sizeof *shapes);
    const hlo_shape **end = shapes;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        build_leaf_shapes(hlo_instr_operand(instr, i)->shape, &end);
    return build_adapt(b, instr, v, shapes, callee->argument_shapes);
}

/* Creates slots for a callee's results. */
static build_value result_slots(build *b, const plan_comp *callee) {
    build_value v = build_new_value(b, callee->result_count);
    for (uint32_t i = 0; i < v.count; i++)
        v.slots[i] = build_new_slots(b, SLOT_BUFFER, callee->result_shapes[i]).slots[0];
    return v;
}

/* Creates a call's results with a shape; leaves that the callee only forwards keep their slots. */
build_value build_call(build *b, const hlo_instr *instr, hlo_computation *called,
                       const hlo_shape *shape) {
    plan_comp **callee = callees(b, 1);
    callee[0] = b->plan->comps[called->id];
    build_value operands = arguments(b, instr, callee[0]);
    build_value v = result_slots(b, callee[0]);
    build_value own = build_new_value(b, v.count);
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
    finish(b, build_step(b, STEP_CALL, instr, operands, own), 1, callee);
    return build_adapt(b, instr, v, callee[0]->result_shapes, build_leaves(b, shape));
}

/* Creates a loop's state. Leaves that the body only forwards, or can write in place, have one slot;
 * other leaves have two, because the body reads one while it writes the other. */
build_value build_while(build *b, const hlo_instr *instr) {
    plan_comp **callee = callees(b, 2);
    callee[0] = b->plan->comps[hlo_instr_comp(instr, HLO_ATTR_CONDITION)->id];
    callee[1] = b->plan->comps[hlo_instr_comp(instr, HLO_ATTR_BODY)->id];
    const plan_comp *body = callee[1];
    build_value operands = arguments(b, instr, body);
    build_value v = result_slots(b, body), spare = result_slots(b, body);
    build_value own = build_new_value(b, v.count);
    for (uint32_t i = 0; i < v.count; i++) {
        const plan_slot *slot = &body->slots[body->results[i]];
        bool constant = slot->kind == SLOT_ARGUMENT && slot->index == i;
        own.slots[i] = constant ? PLAN_NONE : v.slots[i];
        if (constant || plan_is_in_place(body, i, i)) spare.slots[i] = PLAN_NONE;
        if (constant) v.slots[i] = operands.slots[i];
    }
    plan_step *step = build_step(b, STEP_WHILE, instr, operands, own);
    step->spare = spare.slots;
    finish(b, step, 2, callee);
    step->predicate = result_slots(b, callee[0]).slots[0];
    /* With a known trip count, the condition is not run; but it may have a value to save. */
    step->trip_count = b->plan->kept ? HLO_TRIP_COUNT_UNKNOWN : hlo_while_trip_count(instr);
    step->unrolls = step->trip_count != HLO_TRIP_COUNT_UNKNOWN &&
                    step->trip_count * (body->weight + 1) <= UNROLLED;
    return build_adapt(b, instr, v, body->result_shapes, build_leaves(b, instr->shape));
}

build_value build_conditional(build *b, const hlo_instr *instr) {
    uint32_t count = plan_branch_count(instr), at = 1;
    plan_comp **callee = callees(b, count);
    uint32_t *starts = hlo_arena_array(b->plan->arena, count, sizeof *starts);
    const hlo_shape *const *wanted = build_leaves(b, instr->shape);
    build_value operands = build_operands(b, instr);
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
        part = build_adapt(b, instr, part, build_leaves(b, shape), callee[i]->argument_shapes);
        memmove(operands.slots + at, part.slots, part.count * sizeof *part.slots);
        starts[i] = at;
        at += part.count;
    }
    build_value v = build_new_slots(b, SLOT_BUFFER, instr->shape);
    plan_step *step = build_step(b, STEP_CONDITIONAL, instr, operands, v);
    step->branch_operands = starts;
    finish(b, step, count, callee);
    return v;
}
