/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of a plan's steps. */
#include <math.h>
#include <string.h>

#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "runtime/exec/run.h"

/* Sets the memory of every slot for this run. */
static void bind(const hlo_plan *plan, plan_comp *comp, char *frame, const plan_place *arguments,
                 const plan_place *results) {
    for (uint32_t i = 0; i < comp->slot_count; i++) {
        plan_slot *slot = &comp->slots[i];
        if (slot->kind == SLOT_BUFFER) {
            slot->place.data = frame + slot->offset;
            slot->place.bound =
                slot->bound_size
                    ? (float *)(void *)(frame + slot->offset + plan_align(plan, slot->size))
                    : NULL;
        } else if (slot->kind == SLOT_ARGUMENT) {
            slot->place = arguments[slot->index];
        } else if (slot->kind == SLOT_RESULT) {
            slot->place = results[slot->index];
        }
    }
}

hlo_status plan_failed(const plan_run *r, const plan_step *step, hlo_status status,
                       const char *why) {
    const hlo_module *module = r->plan->module;
    if (status != HLO_INVALID_INPUT) return status;
    if (!r->plan->failure) {
        r->plan->failed_at = step ? step->instr : NULL;
        r->plan->failure = why;
    }
    if (step)
        hlo_diag_emit(module, r->sink, HLO_ERROR, step->instr->offset, strlen(step->instr->name),
                      "`%s` %s", hlo_ops[step->instr->op].name, why);
    else
        hlo_diag_emit(module, r->sink, HLO_ERROR, module->entry->offset, 1, "the %s backend %s",
                      r->plan->backend->name, why);
    return status;
}

/* Reports that the whole run failed. Returns `status`. */
static hlo_status failed(hlo_plan *plan, const hlo_diag_sink *sink, hlo_status status,
                         const char *why) {
    const plan_run r = {.plan = plan, .sink = sink};
    return plan_failed(&r, NULL, status, why);
}

void plan_copy_leaf(const hlo_plan *plan, plan_place to, plan_place from, const plan_slot *like) {
    plan->backend->copy(plan->device, to.data, from.data, like->size);
    if (to.bound && from.bound)
        plan->backend->copy(plan->device, to.bound, from.bound, like->bound_size);
    else if (to.bound)
        plan->backend->fill(plan->device, to.bound, 0, like->bound_size);
}

/* Copies a leaf. Does nothing while jobs are bound, because no job reads its operands then. */
static void copy(const plan_run *r, plan_place to, plan_place from, const plan_slot *like) {
    if (r->mode == PLAN_BIND) return;
    if (r->mode == PLAN_RECORD) plan_command_buffer_note(r);
    plan_copy_leaf(r->plan, to, from, like);
}

bool plan_goes_on(void *user) {
    enum { PER_SECOND = 10 };
    hlo_plan *plan = user;
    plan_progress *p = &plan->progress;
    const double now = plan_trace_clock(), total = plan->entry->jobs;
    if (p->stopped || now < p->next) return !p->stopped;
    const hlo_progress progress = {now - p->start, p->done, isnan(total) ? 0 : total,
                                   p->instruction};
    p->stopped = !plan->options.progress(plan->options.progress_user, &progress);
    p->next = now + 1.0 / PER_SECOND;
    return !p->stopped;
}

/* Returns HLO_STOPPED if the run should stop before the step. */
static hlo_status check_progress(const plan_run *r, const plan_step *step) {
    hlo_plan *plan = r->plan;
    if (r->mode != PLAN_EXECUTE || !plan->options.progress) return HLO_OK;
    plan->progress.instruction = step->instr->name;
    return plan->watch.goes_on(plan->watch.user) ? HLO_OK : HLO_STOPPED;
}

static void lend(const plan_comp *comp, const plan_step *step) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        step->arguments[i] = comp->slots[step->operands[i]].place;
    for (uint32_t i = 0; i < step->result_count; i++)
        step->lent[i] =
            step->results[i] == PLAN_NONE ? (plan_place){0} : comp->slots[step->results[i]].place;
}

/* True if another execution may take another branch at this predicate or index. */
static bool is_uncertain(const hlo_plan *plan, plan_place place) {
    float sigma = 0;
    if (place.bound) plan->backend->copy_out(plan->device, &sigma, place.bound, sizeof sigma);
    return sigma != 0;
}

/* Sets the sigmas of a step's results to 3.4e38, the largest float of one repeated byte: another
 * execution may run the step differently. */
static void forget(const hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *slot = &comp->slots[step->results[i]];
        plan->backend->fill(plan->device, slot->place.bound, 0x7f, slot->bound_size);
    }
}

/* Starts timing a step, or the run. */
static hlo_status begin_span(const plan_run *r, plan_step *step, bool on_host,
                             plan_span *out_span) {
    const char *why = "failed";
    const hlo_status status = plan_span_begin(r->plan, step, on_host, out_span, &why);
    return plan_failed(r, NULL, status, why);
}

/* Begins a decision of the host about a loop or conditional, after its input is available. */
static hlo_status begin_decision(const plan_run *r, plan_step *step, plan_span *out_span) {
    const bool timed = r->plan->trace && r->plan->backend->own_clock;
    return timed ? begin_span(r, step, true, out_span) : HLO_OK;
}

static hlo_status end_decision(const plan_run *r, const plan_span *span) {
    const bool timed = r->plan->trace && r->plan->backend->own_clock;
    return timed ? plan_span_end(r->plan, span) : HLO_OK;
}

/* Decides whether the loop runs another iteration. */
static hlo_status ask(const plan_run *r, const plan_comp *comp, plan_step *step, uint64_t rounds,
                      bool *out_more, bool *uncertain) {
    const hlo_plan *plan = r->plan;
    plan_place test = comp->slots[step->predicate].place;
    *out_more = rounds < (r->mode == PLAN_BIND ? 1 : step->trip_count);
    if (step->trip_count != HLO_TRIP_COUNT_UNKNOWN && r->mode != PLAN_BIND) return HLO_OK;
    if (r->mode == PLAN_BIND && !*out_more) return HLO_OK;
    hlo_status status = plan_run_comp(r, step->called[0], comp->slots[step->work].place.data,
                                      step->arguments, &test);
    if (status != HLO_OK || r->mode == PLAN_BIND) return status;
    plan_span span;
    unsigned char more = 0;
    status = begin_decision(r, step, &span);
    if (status != HLO_OK) return status;
    plan->backend->copy_out(plan->device, &more, test.data, sizeof more);
    *uncertain |= is_uncertain(plan, test);
    *out_more = more != 0;
    return end_decision(r, &span);
}

uint32_t plan_chosen(const hlo_plan *plan, const plan_slot *selector, const void *from,
                     uint32_t count) {
    union {
        unsigned char pred;
        int32_t index;
    } chosen = {0};
    plan->backend->copy_out(plan->device, &chosen, from, selector->size);
    if (selector->type == HLO_TYPE_PRED) return !chosen.pred;
    return chosen.index >= 0 && (uint32_t)chosen.index < count ? (uint32_t)chosen.index : count - 1;
}

static hlo_status run_branch(const plan_run *r, const plan_comp *comp, const plan_step *step,
                             uint32_t branch) {
    return plan_run_comp(r, step->called[branch], comp->slots[step->work].place.data,
                         step->arguments + step->branch_operands[branch], step->lent);
}

static hlo_status run_conditional(const plan_run *r, const plan_comp *comp, plan_step *step) {
    const plan_slot *selector = &comp->slots[step->operands[0]];
    lend(comp, step);
    if (r->mode == PLAN_RECORD) return plan_command_buffer_conditional(r, comp, step);
    hlo_status status = HLO_OK;
    if (r->mode == PLAN_BIND) {
        for (uint32_t i = 0; i < step->called_count && status == HLO_OK; i++)
            status = run_branch(r, comp, step, i);
        return status;
    }
    plan_span span;
    status = begin_decision(r, step, &span);
    if (status != HLO_OK) return status;
    uint32_t branch = plan_chosen(r->plan, selector, selector->place.data, step->called_count);
    status = end_decision(r, &span);
    if (status == HLO_OK) status = run_branch(r, comp, step, branch);
    if (status == HLO_OK && is_uncertain(r->plan, selector->place)) forget(r->plan, comp, step);
    return status;
}

/* Runs a loop. The state begins in `arguments`. The body writes the next state to the free one of
 * its two slots, or in place. */
static hlo_status run_while(const plan_run *r, const plan_comp *comp, plan_step *step) {
    char *frame = comp->slots[step->work].place.data;
    bool uncertain = false, more;
    lend(comp, step);
    if (r->mode == PLAN_RECORD && !step->unrolls) return plan_command_buffer_while(r, comp, step);
    for (uint64_t rounds = 0;; rounds++) {
        hlo_status status = check_progress(r, step);
        if (status == HLO_OK) status = ask(r, comp, step, rounds, &more, &uncertain);
        if (status != HLO_OK) return status;
        if (!more) break;
        for (uint32_t i = 0; i < step->result_count; i++) {
            if (step->results[i] == PLAN_NONE) continue;
            plan_place own = comp->slots[step->results[i]].place;
            bool taken = step->spare[i] != PLAN_NONE && step->arguments[i].data == own.data;
            step->lent[i] = taken ? comp->slots[step->spare[i]].place : own;
        }
        status = plan_run_comp(r, step->called[1], frame, step->arguments, step->lent);
        if (status != HLO_OK) return status;
        for (uint32_t i = 0; i < step->result_count; i++)
            if (step->results[i] != PLAN_NONE) step->arguments[i] = step->lent[i];
    }
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *own = &comp->slots[step->results[i]];
        if (step->arguments[i].data != own->place.data)
            copy(r, own->place, step->arguments[i], own);
    }
    if (uncertain) forget(r->plan, comp, step);
    return HLO_OK;
}

static hlo_status visit_step(const plan_run *r, const plan_comp *comp, plan_step *step) {
    switch (step->kind) {
    case STEP_JOB: {
        const hlo_backend *backend = r->plan->backend;
        const char *why = "failed";
        hlo_status status = HLO_OK;
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
        if (r->mode == PLAN_BIND) {
            if (backend->bind) status = backend->bind(r->plan->device, job, &why);
            return plan_failed(r, step, status, why);
        }
        if (r->mode == PLAN_RECORD && job->host) return plan_command_buffer_job(r, step);
        if (r->mode == PLAN_RECORD) plan_command_buffer_note(r);
        status = check_progress(r, step);
        if (status != HLO_OK) return status;
        job->stream = *r->stream;
        *r->stream += job->result_count;
        status = backend->execute(r->plan->device, job, &why);
        r->plan->progress.done += 1;
        return r->plan->progress.stopped ? HLO_STOPPED : plan_failed(r, step, status, why);
    }
    case STEP_WHILE: return run_while(r, comp, step);
    case STEP_CONDITIONAL: return run_conditional(r, comp, step);
    case STEP_COPY: {
        const plan_slot *to = &comp->slots[step->results[0]];
        copy(r, to->place, comp->slots[step->operands[0]].place, to);
        return HLO_OK;
    }
    case STEP_LOOK: return r->mode == PLAN_EXECUTE ? plan_look_at(r, comp, step) : HLO_OK;
    case STEP_CALL: break;
    }
    lend(comp, step);
    return plan_run_comp(r, step->called[0], comp->slots[step->work].place.data, step->arguments,
                         step->lent);
}

/* Executes a step in a profiler's range named by the op_name. */
static hlo_status run_step(const plan_run *r, const plan_comp *comp, plan_step *step) {
    const hlo_backend *backend = r->plan->backend;
    if (r->mode != PLAN_EXECUTE || !backend->range_push) return visit_step(r, comp, step);
    const char *op_name = hlo_instr_op_name(step->instr);
    backend->range_push(r->plan->device, op_name ? op_name : step->instr->name);
    const hlo_status status = visit_step(r, comp, step);
    backend->range_pop(r->plan->device);
    return status;
}

/* Executes a step and times it; a job on the host is timed by the host's clock. */
static hlo_status run_timed(const plan_run *r, const plan_comp *comp, plan_step *step) {
    plan_span span;
    hlo_status status = begin_span(r, step, step->job && step->job->host, &span);
    if (status != HLO_OK) return status;
    status = run_step(r, comp, step);
    return status == HLO_OK ? plan_span_end(r->plan, &span) : status;
}

hlo_status plan_run_comp(const plan_run *r, plan_comp *comp, char *frame,
                         const plan_place *arguments, const plan_place *results) {
    if (r->mode ==
        PLAN_BIND) { /* once: 40 functions that each call the next one twice are 2^40 runs */
        if (comp->is_bound) return HLO_OK;
        comp->is_bound = true;
    }
    bind(r->plan, comp, frame, arguments, results);
    const bool timed = r->mode == PLAN_EXECUTE && r->plan->trace;
    for (uint32_t i = 0; i < comp->step_count; i++) {
        plan_step *step = &comp->steps[i];
        const hlo_status status =
            (timed && step->kind != STEP_LOOK ? run_timed : run_step)(r, comp, step);
        if (status != HLO_OK) return status;
    }
    for (uint32_t i = 0; i < comp->result_count; i++)
        if (results[i].data && !plan_makes_result(comp, i)) {
            const plan_slot *slot = &comp->slots[comp->results[i]];
            if (slot->place.data == results[i].data) continue; /* a donated input is the output */
            plan_slot like = *slot;
            if (results[i].bound)
                like.bound_size = slot->size / hlo_types[slot->type].bytes * sizeof(float);
            copy(r, results[i], slot->place, &like);
        }
    return HLO_OK;
}

hlo_status plan_bind(hlo_plan *plan, const hlo_diag_sink *sink) {
    plan_run r = {.plan = plan, .sink = sink, .mode = PLAN_BIND};
    hlo_status status =
        plan_run_comp(&r, plan->entry, plan->memory, plan->arguments, plan->results);
    hlo_status finished = plan_finish(plan, sink);
    return status == HLO_OK ? finished : status;
}

static hlo_status queue(hlo_plan *plan, const hlo_diag_sink *sink) {
    uint64_t stream = plan->runs++ << 40;
    const plan_run r = {.plan = plan, .sink = sink, .stream = &stream};
    const hlo_backend *backend = plan->backend;
    plan_span span;
    plan->failure = NULL;
    plan->progress.start = plan_trace_clock();
    plan->progress.done = plan->progress.next = 0;
    plan->progress.stopped = false;
    hlo_status status = plan->trace ? begin_span(&r, NULL, false, &span) : HLO_OK;
    if (status != HLO_OK) return status;
    if (backend->range_push) backend->range_push(plan->device, plan->module->name);
    status = plan->buffer
                 ? plan_command_buffer_play(&r, plan->buffer)
                 : plan_run_comp(&r, plan->entry, plan->memory, plan->arguments, plan->results);
    if (backend->range_pop) backend->range_pop(plan->device);
    return status == HLO_OK && plan->trace ? plan_span_end(plan, &span) : status;
}

/* Begin timing, if enabled, with marks from number `mark` on; read the times. */
static hlo_status begin_times(hlo_plan *plan, uint32_t mark, const hlo_diag_sink *sink) {
    const char *why = "failed";
    const hlo_status status = plan->trace ? plan_trace_begin(plan, mark, &why) : HLO_OK;
    return failed(plan, sink, status, why);
}

static hlo_status read_times(hlo_plan *plan, const hlo_diag_sink *sink) {
    const char *why = "failed";
    const hlo_status status = plan->trace ? plan_trace_read(plan, &why) : HLO_OK;
    return failed(plan, sink, status, why);
}

hlo_status plan_queue(hlo_plan *plan, const hlo_diag_sink *sink) {
    hlo_status status = begin_times(plan, 0, sink);
    if (status == HLO_OK) status = queue(plan, sink);
    return status == HLO_OK ? read_times(plan, sink) : status;
}

hlo_status plan_execute(hlo_plan *plan, size_t count, const hlo_diag_sink *sink) {
    const char *why;
    hlo_status status = begin_times(plan, (uint32_t)count + 1, sink);
    if (status == HLO_OK) plan->backend->mark(plan->device, 0);
    for (size_t i = 0; i < count && status == HLO_OK; i++) {
        status = queue(plan, sink);
        plan->backend->mark(plan->device, (uint32_t)i + 1);
    }
    if (status == HLO_OK) status = plan_finish(plan, sink);
    if (status == HLO_OK) return read_times(plan, sink);
    plan->backend->finish(plan->device, &why); /* only the first failure is reported */
    return status;
}

hlo_status plan_finish(hlo_plan *plan, const hlo_diag_sink *sink) {
    const char *why = "failed";
    const hlo_status status = plan->backend->finish(plan->device, &why);
    return failed(plan, sink, status, why);
}

hlo_status plan_seconds(hlo_plan *plan, uint32_t n, const hlo_diag_sink *sink,
                        double *out_seconds) {
    const char *why = "failed";
    const hlo_status status =
        plan->backend->seconds_between(plan->device, n, n + 1, out_seconds, &why);
    return failed(plan, sink, status, why);
}
