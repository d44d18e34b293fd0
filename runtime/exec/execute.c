/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a plan's steps, or records them and replays the recording.
 *
 * All addresses are known once a plan has its memory, so a run is recorded once. Straight-line
 * steps form a graph of the backend (a CUDA graph). Conditionals, and loops that are not unrolled,
 * become branches of the graph if the backend supports branches. Otherwise the recording is split
 * into several graphs: the host reads the predicate and replays the selected graph. Jobs on the
 * host also run between graphs. */
#include <math.h>
#include <string.h>

#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "runtime/exec/run.h"

/* The action on each job when steps are visited. */
typedef enum plan_mode {
    PLAN_EXECUTE,
    PLAN_BIND,  /* binds all jobs once, in all branches */
    PLAN_RECORD /* records all jobs to the buffer */
} plan_mode;

typedef struct plan_run {
    hlo_plan *plan;
    const hlo_diag_sink *sink;
    plan_mode mode;
    bool branches;               /* for PLAN_RECORD: graphs may have branches */
    plan_command_buffer *buffer; /* for PLAN_RECORD: the buffer to record to */
    uint64_t *stream;            /* random stream of the next job */
} plan_run;

typedef enum node_kind { NODE_GRAPH, NODE_JOB, NODE_WHILE, NODE_CONDITIONAL } node_kind;

typedef struct node {
    node_kind kind;
    const plan_step *step; /* NULL for NODE_GRAPH */
    const void *graph;
    hlo_job job;               /* NODE_JOB: a copy with the views of this run */
    const plan_slot *selector; /* NODE_CONDITIONAL: type and size of the index */
    const void *choice;        /* NODE_WHILE, NODE_CONDITIONAL: address of the predicate or index */
    plan_command_buffer *conditions, *bodies; /* NODE_WHILE: two of each; the first reads the
                                               * state from the loop's own slots, the second
                                               * from the spare slots */
    plan_command_buffer
        *back; /* NODE_WHILE: copies the state from the spare slots to the loop's own slots */
    plan_command_buffer *branches; /* NODE_CONDITIONAL: step->called_count buffers */
} node;

struct plan_command_buffer {
    node *nodes;
    uint32_t count, capacity;
    bool noted; /* the graph that is being recorded is not empty */
};

/* Runs the computation on `arguments`, with results in `results`. */
static hlo_status run_comp(const plan_run *r, plan_comp *comp, char *frame,
                           const plan_place *arguments, const plan_place *results);

/* ---------------------------------------------------------------------------------------- steps */

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

/* If `status` is HLO_INVALID_INPUT, reports that the step failed, or the whole run if `step` is
 * NULL. Returns `status`. */
static hlo_status report_failure(const plan_run *r, const plan_step *step, hlo_status status,
                                 const char *why) {
    const hlo_module *module = r->plan->module;
    if (status != HLO_INVALID_INPUT) return status;
    if (!r->plan->failure) {
        r->plan->failed_at = step ? step->instr : NULL;
        r->plan->failure = why;
    }
    if (step)
        hlo_diag_emit(module, r->sink, HLO_ERROR, HLO_DIAG_RUN, step->instr->offset,
                      strlen(step->instr->name), "`%s` %s", hlo_ops[step->instr->op].name, why);
    else
        hlo_diag_emit(module, r->sink, HLO_ERROR, HLO_DIAG_DEVICE, module->entry->offset, 1,
                      "the %s backend %s", r->plan->backend->name, why);
    return status;
}

/* If `status` is HLO_INVALID_INPUT, reports that the whole run failed. Returns `status`. */
static hlo_status failed(hlo_plan *plan, const hlo_diag_sink *sink, hlo_status status,
                         const char *why) {
    const plan_run r = {.plan = plan, .sink = sink};
    return report_failure(&r, NULL, status, why);
}

/* Copies a leaf and its sigmas, whose sizes are those of slot `like`. */
static void copy_leaf(const hlo_plan *plan, plan_place to, plan_place from, const plan_slot *like) {
    plan->backend->copy(plan->device, to.data, from.data, like->size);
    if (to.bound && from.bound)
        plan->backend->copy(plan->device, to.bound, from.bound, like->bound_size);
    else if (to.bound)
        plan->backend->fill(plan->device, to.bound, 0, like->bound_size);
}

/* Copies a leaf like copy_leaf(), but not with PLAN_BIND, which does not read operands. */
static void copy(const plan_run *r, plan_place to, plan_place from, const plan_slot *like) {
    if (r->mode == PLAN_BIND) return;
    if (r->mode == PLAN_RECORD) r->buffer->noted = true;
    copy_leaf(r->plan, to, from, like);
}

bool plan_goes_on(void *user) {
    enum { PER_SECOND = 10 };
    hlo_plan *plan = user;
    plan_progress *p = &plan->progress;
    const double now = plan_trace_clock(), total = plan->entry->jobs;
    if (p->stopped || now < p->next) return !p->stopped;
    const hlo_progress progress = {.struct_size = sizeof progress,
                                   .seconds = now - p->start,
                                   .done = p->done,
                                   .total = isnan(total) ? 0 : total,
                                   .instruction = p->instruction};
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

/* True if other rounding errors may lead to another value of this predicate or index. */
static bool is_uncertain(const hlo_plan *plan, plan_place place) {
    float sigma = 0;
    if (place.bound) plan->backend->copy_out(plan->device, &sigma, place.bound, sizeof sigma);
    return sigma != 0;
}

/* Makes the sigmas of a step's results unknown, because an execution with other rounding errors may
 * take other branches. Sets them to 3.4e38, the largest float that consists of one repeated
 * byte. */
static void forget(const hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *slot = &comp->slots[step->results[i]];
        plan->backend->fill(plan->device, slot->place.bound, 0x7f, slot->bound_size);
    }
}

static hlo_status begin_span(const plan_run *r, plan_step *step, bool on_host,
                             plan_span *out_span) {
    const char *why = "failed";
    const hlo_status status = plan_span_begin(r->plan, step, on_host, out_span, &why);
    return report_failure(r, NULL, status, why);
}

/* Begins to time a decision of the host about a loop or conditional. */
static hlo_status begin_decision(const plan_run *r, plan_step *step, plan_span *out_span) {
    const bool timed = r->plan->trace && r->plan->backend->own_clock;
    return timed ? begin_span(r, step, true, out_span) : HLO_OK;
}

static hlo_status end_decision(const plan_run *r, const plan_span *span) {
    const bool timed = r->plan->trace && r->plan->backend->own_clock;
    return timed ? plan_span_end(r->plan, span) : HLO_OK;
}

/* Returns the index of the branch that the value at `from` selects. */
static uint32_t chosen_branch(const hlo_plan *plan, const plan_slot *selector, const void *from,
                              uint32_t count) {
    union {
        unsigned char pred;
        int32_t index;
    } chosen = {0};
    plan->backend->copy_out(plan->device, &chosen, from, selector->size);
    if (selector->type == HLO_TYPE_PRED) return !chosen.pred;
    return chosen.index >= 0 && (uint32_t)chosen.index < count ? (uint32_t)chosen.index : count - 1;
}

/* Like forget(), for the transfers of the step, which are those after the first `sent` values. */
static void forget_transfers(const plan_run *r, const plan_step *step, size_t sent) {
    for (uint32_t i = 0; i < step->called_count; i++)
        if (r->plan->effects[step->called[i]->comp->id] & PLAN_TRANSFER)
            plan_transfers_unsure(r->plan, sent);
}

static hlo_status run_branch(const plan_run *r, const plan_comp *comp, const plan_step *step,
                             uint32_t branch) {
    return run_comp(r, step->called[branch], comp->slots[step->work].place.data,
                    step->arguments + step->branch_operands[branch], step->lent);
}

/* ------------------------------------------------------------------------------------ recording */

static node *add_node(const plan_run *r, node_kind kind, const plan_step *step) {
    plan_command_buffer *buffer = r->buffer;
    hlo_arena_grow(r->plan->arena, &buffer->nodes, buffer->count, &buffer->capacity,
                   sizeof *buffer->nodes);
    node *n = &buffer->nodes[buffer->count++];
    *n = (node){.kind = kind, .step = step};
    return n;
}

static hlo_status begin_graph(const plan_run *r) {
    r->buffer->noted = false;
    if (r->plan->backend->record(r->plan->device)) return HLO_OK;
    return report_failure(r, NULL, HLO_INVALID_INPUT, "cannot continue recording");
}

/* Ends the graph that is being recorded, and adds it to the buffer unless it is empty. If `status`
 * is not HLO_OK, drops it and returns `status`: the failure may have ended the recording. */
static hlo_status end_graph(const plan_run *r, hlo_status status) {
    const char *why = "cannot record";
    const void *graph;
    const hlo_status ended = r->plan->backend->recorded(r->plan->device, &graph, &why);
    if (status != HLO_OK) return status;
    if (ended != HLO_OK) return report_failure(r, NULL, ended, why);
    if (r->buffer->noted) add_node(r, NODE_GRAPH, NULL)->graph = graph;
    return HLO_OK;
}

/* Records a run of the computation, in a separate buffer. */
static hlo_status record_comp(const plan_run *r, plan_comp *comp, char *frame,
                              const plan_place *arguments, const plan_place *results,
                              plan_command_buffer *out) {
    plan_run own = *r;
    own.buffer = out;
    hlo_status status = begin_graph(&own);
    if (status != HLO_OK) return status;
    return end_graph(&own, run_comp(&own, comp, frame, arguments, results));
}

/* Returns the slot of leaf `i` of a loop's state in `slots`, which is step->results or step->spare.
 * A leaf that is written in place has the same slot in both. */
static const plan_slot *state_slot(const plan_comp *comp, const plan_step *step,
                                   const uint32_t *slots, uint32_t i) {
    return &comp->slots[slots[i] == PLAN_NONE ? step->results[i] : slots[i]];
}

/* Copies a loop's state to `slots`, which is step->results or step->spare. */
static void move_state(const plan_run *r, const plan_comp *comp, const plan_step *step,
                       const uint32_t *slots) {
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *to = state_slot(comp, step, slots, i);
        if (to->place.data == step->arguments[i].data) continue;
        copy_leaf(r->plan, to->place, step->arguments[i], to);
        r->buffer->noted = true;
        step->arguments[i] = to->place;
    }
}

static void lend_state(const plan_comp *comp, const plan_step *step, plan_place *places,
                       const uint32_t *slots) {
    for (uint32_t i = 0; i < step->result_count; i++)
        if (step->results[i] != PLAN_NONE) places[i] = state_slot(comp, step, slots, i)->place;
}

/* True if the step can be recorded as a branch of the graph. `own` is the number of nested branches
 * that the step itself needs. */
static bool is_branch(const plan_run *r, const plan_step *step, uint32_t own) {
    for (uint32_t i = 0; i < step->called_count; i++)
        if (step->called[i]->hosted || step->called[i]->depth + own > HLO_MAX_BRANCHES)
            return false;
    return r->branches;
}

static hlo_status begin_branch(const plan_run *r, const plan_step *step, hlo_choice choice,
                               bool loop) {
    const char *why = "cannot be recorded";
    r->buffer->noted = true;
    const hlo_status status = r->plan->backend->branch_begin(r->plan->device, &choice, loop, &why);
    return report_failure(r, step, status, why);
}

/* Ends a branch unless its recording failed. Returns `status`, or the error of ending it. */
static hlo_status end_branch(const plan_run *r, const plan_step *step, hlo_status status) {
    const char *why = "cannot be recorded";
    if (status != HLO_OK) return status;
    status = r->plan->backend->branch_end(r->plan->device, &why);
    return report_failure(r, step, status, why);
}

/* Records the loop's condition, which reads the state from the slots `from`. */
static hlo_status record_test(const plan_run *r, const plan_comp *comp, const plan_step *step,
                              const uint32_t *from, plan_place test) {
    lend_state(comp, step, step->arguments, from);
    return run_comp(r, step->called[0], comp->slots[step->work].place.data, step->arguments, &test);
}

/* Records the loop's body, which reads the state from the slots `from` and writes it to `to`, and
 * then the condition. */
static hlo_status record_round(const plan_run *r, const plan_comp *comp, const plan_step *step,
                               const uint32_t *from, const uint32_t *to, plan_place test) {
    lend_state(comp, step, step->arguments, from);
    lend_state(comp, step, step->lent, to);
    hlo_status status = run_comp(r, step->called[1], comp->slots[step->work].place.data,
                                 step->arguments, step->lent);
    return status == HLO_OK ? record_test(r, comp, step, to, test) : status;
}

/* Records a loop of unknown length; step->arguments and step->lent must be set. */
static hlo_status record_while(const plan_run *r, const plan_comp *comp, const plan_step *step) {
    if (is_branch(r, step, 2)) {
        /* A recorded iteration runs the body twice: from the loop's own slots to the spare slots,
         * and back. If the loop ends after the first run, the state is copied back. */
        const plan_place test = comp->slots[step->predicate].place;
        const hlo_choice more = {test.data, 1, 0}, over = {test.data, 0, 0};
        move_state(r, comp, step, step->results);
        hlo_status status = record_test(r, comp, step, step->results, test);
        if (status == HLO_OK) status = begin_branch(r, step, more, true);
        if (status == HLO_OK)
            status = record_round(r, comp, step, step->results, step->spare, test);
        if (status == HLO_OK) status = begin_branch(r, step, over, false);
        if (status == HLO_OK) move_state(r, comp, step, step->results);
        status = end_branch(r, step, status);
        if (status == HLO_OK) status = begin_branch(r, step, more, false);
        if (status == HLO_OK)
            status = record_round(r, comp, step, step->spare, step->results, test);
        status = end_branch(r, step, status);
        status = end_branch(r, step, status);
        lend_state(comp, step, step->arguments, step->results);
        return status;
    }
    hlo_arena *arena = r->plan->arena;
    char *frame = comp->slots[step->work].place.data;
    plan_place test = comp->slots[step->predicate].place;
    move_state(r, comp, step, step->results);
    hlo_status status = end_graph(r, HLO_OK);
    plan_command_buffer *buffers = hlo_arena_zero(arena, 5 * sizeof *buffers);
    for (int i = 0; i < 2 && status == HLO_OK; i++) {
        lend_state(comp, step, step->arguments, i ? step->spare : step->results);
        lend_state(comp, step, step->lent, i ? step->results : step->spare);
        status = record_comp(r, step->called[0], frame, step->arguments, &test, &buffers[i]);
        if (status == HLO_OK)
            status = record_comp(r, step->called[1], frame, step->arguments, step->lent,
                                 &buffers[2 + i]);
    }
    if (status != HLO_OK) return status;
    plan_run back = *r; /* records the copy from the spare slots to the loop's own slots */
    back.buffer = &buffers[4];
    status = begin_graph(&back);
    if (status != HLO_OK) return status;
    lend_state(comp, step, step->arguments, step->spare);
    move_state(&back, comp, step, step->results);
    status = end_graph(&back, HLO_OK);
    if (status != HLO_OK) return status;
    node *n = add_node(r, NODE_WHILE, step);
    n->choice = test.data;
    n->conditions = buffers;
    n->bodies = buffers + 2;
    n->back = buffers + 4;
    return begin_graph(r);
}

/* --------------------------------------------------------------------------------- control flow */

/* Sets *out_more if there is another iteration, and *uncertain if that depends on rounding errors.
 */
static hlo_status ask(const plan_run *r, const plan_comp *comp, plan_step *step, uint64_t rounds,
                      bool *out_more, bool *uncertain) {
    const hlo_plan *plan = r->plan;
    plan_place test = comp->slots[step->predicate].place;
    *out_more = rounds < (r->mode == PLAN_BIND ? 1 : step->trip_count);
    if (step->trip_count != HLO_TRIP_COUNT_UNKNOWN && r->mode != PLAN_BIND) return HLO_OK;
    if (r->mode == PLAN_BIND && !*out_more) return HLO_OK;
    hlo_status status =
        run_comp(r, step->called[0], comp->slots[step->work].place.data, step->arguments, &test);
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

static hlo_status run_conditional(const plan_run *r, const plan_comp *comp, plan_step *step) {
    const plan_slot *selector = &comp->slots[step->operands[0]];
    hlo_status status = HLO_OK;
    lend(comp, step);
    if (r->mode == PLAN_RECORD && is_branch(r, step, 1)) {
        const bool is_pred = selector->type == HLO_TYPE_PRED;
        for (uint32_t i = 0; i < step->called_count && status == HLO_OK; i++) {
            const hlo_choice choice = {selector->place.data, is_pred ? !i : i,
                                       is_pred ? 0 : step->called_count};
            status = begin_branch(r, step, choice, false);
            if (status == HLO_OK) status = run_branch(r, comp, step, i);
            status = end_branch(r, step, status);
        }
        return status;
    }
    if (r->mode == PLAN_RECORD) {
        status = end_graph(r, HLO_OK);
        plan_command_buffer *buffers =
            hlo_arena_zero(r->plan->arena, step->called_count * sizeof *buffers);
        for (uint32_t i = 0; i < step->called_count && status == HLO_OK; i++)
            status =
                record_comp(r, step->called[i], comp->slots[step->work].place.data,
                            step->arguments + step->branch_operands[i], step->lent, &buffers[i]);
        if (status != HLO_OK) return status;
        node *n = add_node(r, NODE_CONDITIONAL, step);
        n->selector = selector;
        n->choice = selector->place.data;
        n->branches = buffers;
        return begin_graph(r);
    }
    if (r->mode == PLAN_BIND) {
        for (uint32_t i = 0; i < step->called_count && status == HLO_OK; i++)
            status = run_branch(r, comp, step, i);
        return status;
    }
    plan_span span;
    status = begin_decision(r, step, &span);
    if (status != HLO_OK) return status;
    uint32_t branch = chosen_branch(r->plan, selector, selector->place.data, step->called_count);
    status = end_decision(r, &span);
    const size_t sent = r->plan->sent.count;
    if (status == HLO_OK) status = run_branch(r, comp, step, branch);
    if (status != HLO_OK || !is_uncertain(r->plan, selector->place)) return status;
    forget(r->plan, comp, step);
    forget_transfers(r, step, sent);
    return HLO_OK;
}

/* Runs a loop. The first state is in `arguments`. The body writes each leaf of the next state to
 * the free one of the leaf's two slots, or in place. */
static hlo_status run_while(const plan_run *r, const plan_comp *comp, plan_step *step) {
    char *frame = comp->slots[step->work].place.data;
    const size_t sent = r->plan->sent.count;
    bool uncertain = false, more;
    lend(comp, step);
    if (r->mode == PLAN_RECORD && !step->unrolls) return record_while(r, comp, step);
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
        status = run_comp(r, step->called[1], frame, step->arguments, step->lent);
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
    if (!uncertain) return HLO_OK;
    forget(r->plan, comp, step);
    forget_transfers(r, step, sent);
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
            return report_failure(r, step, status, why);
        }
        if (r->mode == PLAN_RECORD && job->host) { /* the host executes the job between graphs */
            status = end_graph(r, HLO_OK);
            if (status != HLO_OK) return status;
            node *n = add_node(r, NODE_JOB, step);
            n->job = *job;
            n->job.operands = hlo_arena_copy(r->plan->arena, job->operands,
                                             job->operand_count * sizeof *job->operands);
            n->job.results = hlo_arena_copy(r->plan->arena, job->results,
                                            job->result_count * sizeof *job->results);
            return begin_graph(r);
        }
        if (r->mode == PLAN_RECORD) r->buffer->noted = true;
        status = check_progress(r, step);
        if (status != HLO_OK) return status;
        job->stream = *r->stream;
        *r->stream += job->result_count;
        status = backend->execute(r->plan->device, job, &why);
        r->plan->progress.done += 1;
        return r->plan->progress.stopped ? HLO_STOPPED : report_failure(r, step, status, why);
    }
    case STEP_WHILE: return run_while(r, comp, step);
    case STEP_CONDITIONAL: return run_conditional(r, comp, step);
    case STEP_COPY: {
        const plan_slot *to = &comp->slots[step->results[0]];
        copy(r, to->place, comp->slots[step->operands[0]].place, to);
        return HLO_OK;
    }
    case STEP_RECEIVE:
    case STEP_SEND: {
        if (r->mode == PLAN_BIND) return HLO_OK;
        const hlo_status status = check_progress(r, step);
        if (status != HLO_OK) return status;
        return step->kind == STEP_SEND ? plan_send(r->plan, comp, step)
                                       : plan_receive(r->plan, comp, step);
    }
    case STEP_LOOK: return r->mode == PLAN_EXECUTE ? plan_look_at(r->plan, comp, step) : HLO_OK;
    case STEP_CALL: break;
    }
    lend(comp, step);
    return run_comp(r, step->called[0], comp->slots[step->work].place.data, step->arguments,
                    step->lent);
}

static hlo_status run_comp(const plan_run *r, plan_comp *comp, char *frame,
                           const plan_place *arguments, const plan_place *results) {
    if (r->mode == PLAN_BIND) {
        /* Bind each computation once: 40 functions that each call the next function twice would be
         * visited 2^40 times. */
        if (comp->is_bound) return HLO_OK;
        comp->is_bound = true;
    }
    bind(r->plan, comp, frame, arguments, results);
    const bool timed = r->mode == PLAN_EXECUTE && r->plan->trace;
    for (uint32_t i = 0; i < comp->step_count; i++) {
        plan_step *step = &comp->steps[i];
        const bool spans = timed && step->kind != STEP_LOOK;
        plan_span span; /* a job on the host is timed by the host's clock */
        hlo_status status =
            spans ? begin_span(r, step, step->job && step->job->host, &span) : HLO_OK;
        const hlo_backend *backend = r->plan->backend;
        const bool ranges = r->mode == PLAN_EXECUTE && backend->range_push && status == HLO_OK;
        const char *op_name = hlo_instr_op_name(step->instr); /* name of the step in a profiler */
        if (ranges) backend->range_push(r->plan->device, op_name ? op_name : step->instr->name);
        if (status == HLO_OK) status = visit_step(r, comp, step);
        if (ranges) backend->range_pop(r->plan->device);
        if (status == HLO_OK && spans) status = plan_span_end(r->plan, &span);
        if (status != HLO_OK) return status;
    }
    for (uint32_t i = 0; i < comp->result_count; i++)
        if (results[i].data && !plan_makes_result(comp, i)) {
            const plan_slot *slot = &comp->slots[comp->results[i]];
            if (slot->place.data == results[i].data) continue; /* the output is a donated input */
            plan_slot like = *slot;
            if (results[i].bound)
                like.bound_size = slot->size / hlo_types[slot->type].bytes * sizeof(float);
            copy(r, results[i], slot->place, &like);
        }
    return HLO_OK;
}

hlo_status plan_bind(hlo_plan *plan, const hlo_diag_sink *sink) {
    plan_run r = {.plan = plan, .sink = sink, .mode = PLAN_BIND};
    hlo_status status = run_comp(&r, plan->entry, plan->memory, plan->arguments, plan->results);
    hlo_status finished = plan_finish(plan, sink);
    return status == HLO_OK ? finished : status;
}

/* -------------------------------------------------------------------------------------- playing */

static hlo_status play(const plan_run *r, const plan_command_buffer *buffer) {
    const hlo_plan *plan = r->plan;
    hlo_status status = HLO_OK;
    for (uint32_t i = 0; i < buffer->count && status == HLO_OK; i++) {
        const node *n = &buffer->nodes[i];
        const char *why = "failed";
        switch (n->kind) {
        case NODE_GRAPH: status = plan->backend->replay(plan->device, n->graph, &why); break;
        case NODE_JOB: status = plan->backend->execute(plan->device, &n->job, &why); break;
        case NODE_WHILE: {
            uint64_t trip_count = n->step->trip_count, round = 0;
            for (;; round++) {
                unsigned char more = round < trip_count;
                if (trip_count == HLO_TRIP_COUNT_UNKNOWN) {
                    status = play(r, &n->conditions[round % 2]);
                    more = 0;
                    plan->backend->copy_out(plan->device, &more, n->choice, sizeof more);
                }
                if (status == HLO_OK && !more) break;
                if (status == HLO_OK) status = play(r, &n->bodies[round % 2]);
                if (status != HLO_OK) return status;
            }
            if (round % 2) status = play(r, n->back);
            continue;
        }
        case NODE_CONDITIONAL: {
            const uint32_t chosen =
                chosen_branch(plan, n->selector, n->choice, n->step->called_count);
            status = play(r, &n->branches[chosen]);
            continue;
        }
        }
        status = report_failure(r, n->step, status, why);
    }
    return status;
}

/* ----------------------------------------------------------------------------------------- runs */

hlo_status plan_record(hlo_plan *plan, const hlo_diag_sink *sink) {
    const bool observed =
        plan_looks(plan) || plan->options.profile || plan->options.progress || plan->feed_count;
    const hlo_backend *backend = plan->backend;
    if (observed || !plan->options.graph || !backend->record) return HLO_OK;
    const bool branches =
        plan->entry->depth && backend->branches && backend->branches(plan->device);
    if (!backend->record(plan->device)) return HLO_OK;
    uint64_t stream = 0;
    plan_command_buffer *buffer = hlo_arena_zero(plan->arena, sizeof *buffer);
    plan_run r = {.plan = plan,
                  .sink = sink,
                  .mode = PLAN_RECORD,
                  .branches = branches,
                  .buffer = buffer,
                  .stream = &stream};
    const hlo_status status =
        end_graph(&r, run_comp(&r, plan->entry, plan->memory, plan->arguments, plan->results));
    if (status == HLO_OK) plan->buffer = buffer;
    return status;
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
    plan_transfers_begin(plan);
    hlo_status status = plan->trace ? begin_span(&r, NULL, false, &span) : HLO_OK;
    if (status != HLO_OK) return status;
    if (backend->range_push) backend->range_push(plan->device, plan->module->name);
    status = plan->buffer ? play(&r, plan->buffer)
                          : run_comp(&r, plan->entry, plan->memory, plan->arguments, plan->results);
    if (backend->range_pop) backend->range_pop(plan->device);
    return status == HLO_OK && plan->trace ? plan_span_end(plan, &span) : status;
}

/* If timing is enabled, begin_times() starts timing, with marks from number `mark` on, and
 * read_times() reads the times. */
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
    plan->backend->finish(plan->device, &why); /* the first failure was reported */
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
