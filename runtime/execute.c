/* Running the steps of a plan. */
#include <string.h>

#include "runtime/plan.h"

/* What stays the same through a run. */
typedef struct run {
    hlo_plan *plan;
    const hlo_diag_sink *sink;
    uint64_t *stream; /* the next job's */
} run;

static hlo_status execute(const run *r, plan_comp *comp, char *frame, const plan_place *arguments,
                          const plan_place *results);

/* Where every slot is this time. */
static void bind(plan_comp *comp, char *frame, const plan_place *arguments,
                 const plan_place *results) {
    for (uint32_t i = 0; i < comp->slot_count; i++) {
        plan_slot *slot = &comp->slots[i];
        if (slot->kind == SLOT_BUFFER) {
            slot->place.data = frame + slot->offset;
            slot->place.bound =
                slot->bound_size ? (float *)(void *)(frame + slot->offset + plan_align(slot->size))
                                 : NULL;
        } else if (slot->kind == SLOT_ARGUMENT) {
            slot->place = arguments[slot->index];
        } else if (slot->kind == SLOT_RESULT) {
            slot->place = results[slot->index];
        }
    }
}

static void copy_leaf(const hlo_plan *plan, plan_place to, plan_place from, const plan_slot *like) {
    plan->backend->copy(plan->device, to.data, from.data, like->size);
    if (to.bound && from.bound)
        plan->backend->copy(plan->device, to.bound, from.bound, like->bound_size);
    else if (to.bound)
        plan->backend->fill(plan->device, to.bound, 0, like->bound_size);
}

static void run_copy(const hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    const plan_slot *from = &comp->slots[step->operands[0]], *to = &comp->slots[step->results[0]];
    if (!step->views) {
        copy_leaf(plan, to->place, from->place, to);
        return;
    }
    hlo_view in = step->views[0], out = step->views[1];
    in.data = from->place.data;
    out.data = to->place.data;
    plan->backend->relayout(plan->device, &in, &out);
    if (to->place.bound && !from->place.bound)
        plan->backend->fill(plan->device, to->place.bound, 0, to->bound_size);
    if (!to->place.bound || !from->place.bound) return;
    in.type = out.type = HLO_TYPE_F32;
    in.data = from->place.bound;
    out.data = to->place.bound;
    plan->backend->relayout(plan->device, &in, &out);
}

static hlo_status run_job(const run *r, const plan_comp *comp, const plan_step *step) {
    hlo_job *job = step->job;
    for (uint32_t i = 0; i < step->operand_count; i++) {
        plan_place place = comp->slots[step->operands[i]].place;
        job->operands[i].data = place.data;
        job->operand_sigmas[i].data = place.bound;
    }
    for (uint32_t i = 0; i < step->result_count; i++) {
        plan_place place = comp->slots[step->results[i]].place;
        job->results[i].data = place.data;
        job->result_sigmas[i].data = place.bound;
    }
    job->scratch = step->work == PLAN_NONE ? NULL : comp->slots[step->work].place.data;
    job->stream = *r->stream;
    *r->stream += job->result_count;
    const char *why = "failed";
    hlo_status status = r->plan->backend->execute(r->plan->device, job, &why);
    if (status == HLO_INVALID_INPUT)
        hlo_diag_emit(r->plan->module, r->sink, HLO_ERROR, step->instr->offset,
                      strlen(step->instr->name), "`%s` %s", hlo_ops[step->instr->op].name, why);
    return status;
}

static void lend(const plan_comp *comp, const plan_step *step) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        step->arguments[i] = comp->slots[step->operands[i]].place;
    for (uint32_t i = 0; i < step->result_count; i++)
        step->lent[i] =
            step->results[i] == PLAN_NONE ? (plan_place){0} : comp->slots[step->results[i]].place;
}

/* Whether another execution may have taken another way at this predicate or index. */
static bool is_uncertain(const hlo_plan *plan, plan_place place) {
    float sigma = 0;
    if (place.bound) plan->backend->copy_out(plan->device, &sigma, place.bound, sizeof sigma);
    return sigma != 0;
}

/* Nothing is known of the results of a step that another execution may have run otherwise: bounds
 * are as large as a float of one repeated byte can be, 3.4e38. */
static void forget(const hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *slot = &comp->slots[step->results[i]];
        plan->backend->fill(plan->device, slot->place.bound, 0x7f, slot->bound_size);
    }
}

/* The state is where `arguments` says; the body writes the next one to whichever of its two slots
 * the state is not in. */
static hlo_status run_while(const run *r, const plan_comp *comp, const plan_step *step) {
    const hlo_plan *plan = r->plan;
    char *frame = comp->slots[step->work].place.data;
    plan_place test = comp->slots[step->predicate].place;
    bool uncertain = false;
    lend(comp, step);
    for (;;) {
        hlo_status status = execute(r, step->called[0], frame, step->arguments, &test);
        if (status != HLO_OK) return status;
        unsigned char more;
        plan->backend->copy_out(plan->device, &more, test.data, sizeof more);
        uncertain |= is_uncertain(plan, test);
        if (!more) break;
        for (uint32_t i = 0; i < step->result_count; i++) {
            if (step->results[i] == PLAN_NONE) continue;
            plan_place own = comp->slots[step->results[i]].place;
            bool taken = step->arguments[i].data == own.data;
            step->lent[i] = taken ? comp->slots[step->spare[i]].place : own;
        }
        status = execute(r, step->called[1], frame, step->arguments, step->lent);
        if (status != HLO_OK) return status;
        for (uint32_t i = 0; i < step->result_count; i++)
            if (step->results[i] != PLAN_NONE) step->arguments[i] = step->lent[i];
    }
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *own = &comp->slots[step->results[i]];
        if (step->arguments[i].data != own->place.data)
            copy_leaf(plan, own->place, step->arguments[i], own);
    }
    if (uncertain) forget(plan, comp, step);
    return HLO_OK;
}

static hlo_status run_conditional(const run *r, const plan_comp *comp, const plan_step *step) {
    const plan_slot *selector = &comp->slots[step->operands[0]];
    union {
        unsigned char pred;
        int32_t index;
    } chosen = {0};
    r->plan->backend->copy_out(r->plan->device, &chosen, selector->place.data, selector->size);
    uint32_t branch = step->called_count - 1;
    if (selector->type == HLO_TYPE_PRED)
        branch = !chosen.pred;
    else if (chosen.index >= 0 && (uint32_t)chosen.index < branch)
        branch = (uint32_t)chosen.index;
    lend(comp, step);
    hlo_status status = execute(r, step->called[branch], comp->slots[step->work].place.data,
                                step->arguments + step->branch_operands[branch], step->lent);
    if (status == HLO_OK && is_uncertain(r->plan, selector->place)) forget(r->plan, comp, step);
    return status;
}

static hlo_status run_step(const run *r, const plan_comp *comp, const plan_step *step) {
    switch (step->kind) {
    case STEP_JOB: return run_job(r, comp, step);
    case STEP_WHILE: return run_while(r, comp, step);
    case STEP_CONDITIONAL: return run_conditional(r, comp, step);
    case STEP_COPY: run_copy(r->plan, comp, step); return HLO_OK;
    case STEP_CALL: break;
    }
    lend(comp, step);
    return execute(r, step->called[0], comp->slots[step->work].place.data, step->arguments,
                   step->lent);
}

static hlo_status execute(const run *r, plan_comp *comp, char *frame, const plan_place *arguments,
                          const plan_place *results) {
    bind(comp, frame, arguments, results);
    for (uint32_t i = 0; i < comp->step_count; i++) {
        hlo_status status = run_step(r, comp, &comp->steps[i]);
        if (status != HLO_OK) return status;
    }
    for (uint32_t i = 0; i < comp->result_count; i++)
        if (results[i].data && !plan_makes_result(comp, i)) {
            const plan_slot *slot = &comp->slots[comp->results[i]];
            plan_slot like = *slot;
            if (results[i].bound)
                like.bound_size = slot->size / hlo_types[slot->type].bytes * sizeof(float);
            copy_leaf(r->plan, results[i], slot->place, &like);
        }
    return HLO_OK;
}

hlo_status plan_execute(hlo_plan *plan, const hlo_diag_sink *sink) {
    uint64_t stream = plan->runs++ << 40;
    run r = {plan, sink, &stream};
    return execute(&r, plan->entry, plan->memory, plan->arguments, plan->results);
}
