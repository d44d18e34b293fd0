/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded runs. All addresses are known once a plan has its memory, so a run is recorded once and
 * replayed. Straight-line steps form a graph of the backend (a CUDA graph). A loop that is not
 * unrolled and a conditional are branches of the graph, if the backend supports them. Otherwise
 * they, like jobs on the host, come between graphs: the host reads the predicate and replays the
 * selected graph. */
#include <string.h>

#include "ir/module/known.h"
#include "runtime/exec/run.h"

typedef enum node_kind { NODE_GRAPH, NODE_JOB, NODE_WHILE, NODE_CONDITIONAL } node_kind;

typedef struct node {
    node_kind kind;
    const plan_step *step; /* NULL: NODE_GRAPH */
    const void *graph;
    hlo_job job;               /* NODE_JOB: a copy with the views of this run */
    const plan_slot *selector; /* NODE_CONDITIONAL: type and size of the index */
    const void *choice;        /* NODE_WHILE, NODE_CONDITIONAL: address of the predicate or index */
    plan_command_buffer *conditions, *bodies; /* NODE_WHILE: two of each, for the state in either of
                                               * its slots */
    plan_command_buffer
        *back; /* NODE_WHILE: copies the state from the spare slots to its own slots */
    plan_command_buffer *branches; /* NODE_CONDITIONAL: step->called_count */
} node;

struct plan_command_buffer {
    node *nodes;
    uint32_t count, capacity;
    bool noted; /* the graph being recorded is not empty */
};

/* ------------------------------------------------------------------------------------ recording */

static node *add_node(const plan_run *r, node_kind kind, const plan_step *step) {
    plan_command_buffer *buffer = r->buffer;
    hlo_arena_grow(r->plan->arena, &buffer->nodes, buffer->count, &buffer->capacity,
                   sizeof *buffer->nodes);
    node *n = &buffer->nodes[buffer->count++];
    *n = (node){.kind = kind, .step = step};
    return n;
}

void plan_command_buffer_note(const plan_run *r) {
    r->buffer->noted = true;
}

static hlo_status begin(const plan_run *r) {
    r->buffer->noted = false;
    if (r->plan->backend->record(r->plan->device)) return HLO_OK;
    return plan_failed(r, NULL, HLO_INVALID_INPUT, "cannot continue recording");
}

/* Ends the recorded graph, and adds it unless it is empty. */
static hlo_status cut(const plan_run *r) {
    const char *why = "cannot record";
    const void *graph;
    hlo_status status = r->plan->backend->recorded(r->plan->device, &graph, &why);
    if (status != HLO_OK) return plan_failed(r, NULL, status, why);
    if (r->buffer->noted) add_node(r, NODE_GRAPH, NULL)->graph = graph;
    return HLO_OK;
}

/* Ends the recorded graph. Drops it unless its recording has the status HLO_OK. */
static hlo_status end(const plan_run *r, hlo_status status) {
    const char *why;
    const void *graph;
    if (status == HLO_OK) return cut(r);
    r->plan->backend->recorded(r->plan->device, &graph, &why); /* a failure may have ended the
                                                                * recording */
    return status;
}

/* Records a run of the computation, in a separate buffer. */
static hlo_status record_comp(const plan_run *r, plan_comp *comp, char *frame,
                              const plan_place *arguments, const plan_place *results,
                              plan_command_buffer *out) {
    plan_run own = *r;
    own.buffer = out;
    hlo_status status = begin(&own);
    if (status != HLO_OK) return status;
    return end(&own, plan_run_comp(&own, comp, frame, arguments, results));
}

/* Returns the slot of a loop's state in step->results or step->spare. A state that is written in
 * place has one slot for both. */
static const plan_slot *state_slot(const plan_comp *comp, const plan_step *step,
                                   const uint32_t *slots, uint32_t i) {
    return &comp->slots[slots[i] == PLAN_NONE ? step->results[i] : slots[i]];
}

/* Copies a loop's state to other slots: step->results or step->spare. */
static void move_state(const plan_run *r, const plan_comp *comp, const plan_step *step,
                       const uint32_t *slots) {
    for (uint32_t i = 0; i < step->result_count; i++) {
        if (step->results[i] == PLAN_NONE) continue;
        const plan_slot *to = state_slot(comp, step, slots, i);
        if (to->place.data == step->arguments[i].data) continue;
        plan_copy_leaf(r->plan, to->place, step->arguments[i], to);
        plan_command_buffer_note(r);
        step->arguments[i] = to->place;
    }
}

static void lend_state(const plan_comp *comp, const plan_step *step, plan_place *places,
                       const uint32_t *slots) {
    for (uint32_t i = 0; i < step->result_count; i++)
        if (step->results[i] != PLAN_NONE) places[i] = state_slot(comp, step, slots, i)->place;
}

static hlo_status record_back(const plan_run *r, const plan_comp *comp, const plan_step *step,
                              plan_command_buffer *out) {
    plan_run own = *r;
    own.buffer = out;
    hlo_status status = begin(&own);
    if (status != HLO_OK) return status;
    lend_state(comp, step, step->arguments, step->spare);
    move_state(&own, comp, step, step->results);
    return cut(&own);
}

/* True if a step with these callees can be a branch of the graph; `own`: the number of nested
 * branches of the step itself. */
static bool is_branch(const plan_run *r, const plan_step *step, uint32_t own) {
    for (uint32_t i = 0; i < step->called_count; i++)
        if (step->called[i]->hosted || step->called[i]->depth + own > HLO_MOST_BRANCHES)
            return false;
    return r->branches;
}

static hlo_status begin_branch(const plan_run *r, const plan_step *step, hlo_choice choice,
                               bool loop) {
    const char *why = "cannot be recorded";
    plan_command_buffer_note(r);
    const hlo_status status = r->plan->backend->branch_begin(r->plan->device, &choice, loop, &why);
    return plan_failed(r, step, status, why);
}

/* Ends a branch whose recording has `status`. */
static hlo_status end_branch(const plan_run *r, const plan_step *step, hlo_status status) {
    const char *why = "cannot be recorded";
    if (status != HLO_OK) return status;
    status = r->plan->backend->branch_end(r->plan->device, &why);
    return plan_failed(r, step, status, why);
}

/* Records the condition on the state in the slots `from`. */
static hlo_status record_test(const plan_run *r, const plan_comp *comp, const plan_step *step,
                              const uint32_t *from, plan_place test) {
    lend_state(comp, step, step->arguments, from);
    return plan_run_comp(r, step->called[0], comp->slots[step->work].place.data, step->arguments,
                         &test);
}

/* Records the body, from the state in the slots `from` to the state in `to`, and the condition. */
static hlo_status record_round(const plan_run *r, const plan_comp *comp, const plan_step *step,
                               const uint32_t *from, const uint32_t *to, plan_place test) {
    lend_state(comp, step, step->arguments, from);
    lend_state(comp, step, step->lent, to);
    hlo_status status = plan_run_comp(r, step->called[1], comp->slots[step->work].place.data,
                                      step->arguments, step->lent);
    return status == HLO_OK ? record_test(r, comp, step, to, test) : status;
}

hlo_status plan_command_buffer_while(const plan_run *r, const plan_comp *comp,
                                     const plan_step *step) {
    if (is_branch(r, step, 2)) {
        /* Each iteration goes to the spare slots and back to the loop's own slots. If the loop ends
         * in the spare slots, the state is copied back. */
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
    hlo_status status = cut(r);
    plan_command_buffer *buffers = hlo_arena_zero(arena, 5 * sizeof *buffers);
    for (int i = 0; i < 2 && status == HLO_OK; i++) {
        lend_state(comp, step, step->arguments, i ? step->spare : step->results);
        lend_state(comp, step, step->lent, i ? step->results : step->spare);
        status = record_comp(r, step->called[0], frame, step->arguments, &test, &buffers[i]);
        if (status == HLO_OK)
            status = record_comp(r, step->called[1], frame, step->arguments, step->lent,
                                 &buffers[2 + i]);
    }
    if (status == HLO_OK) status = record_back(r, comp, step, &buffers[4]);
    if (status != HLO_OK) return status;
    node *n = add_node(r, NODE_WHILE, step);
    n->choice = test.data;
    n->conditions = buffers;
    n->bodies = buffers + 2;
    n->back = buffers + 4;
    return begin(r);
}

hlo_status plan_command_buffer_conditional(const plan_run *r, const plan_comp *comp,
                                           const plan_step *step) {
    if (is_branch(r, step, 1)) {
        const plan_slot *selector = &comp->slots[step->operands[0]];
        const bool is_pred = selector->type == HLO_TYPE_PRED;
        hlo_status status = HLO_OK;
        for (uint32_t i = 0; i < step->called_count && status == HLO_OK; i++) {
            const hlo_choice choice = {selector->place.data, is_pred ? !i : i,
                                       is_pred ? 0 : step->called_count};
            status = begin_branch(r, step, choice, false);
            if (status == HLO_OK)
                status = plan_run_comp(r, step->called[i], comp->slots[step->work].place.data,
                                       step->arguments + step->branch_operands[i], step->lent);
            status = end_branch(r, step, status);
        }
        return status;
    }
    const plan_slot *selector = &comp->slots[step->operands[0]];
    hlo_status status = cut(r);
    plan_command_buffer *buffers =
        hlo_arena_zero(r->plan->arena, step->called_count * sizeof *buffers);
    for (uint32_t i = 0; i < step->called_count && status == HLO_OK; i++)
        status = record_comp(r, step->called[i], comp->slots[step->work].place.data,
                             step->arguments + step->branch_operands[i], step->lent, &buffers[i]);
    if (status != HLO_OK) return status;
    node *n = add_node(r, NODE_CONDITIONAL, step);
    n->selector = selector;
    n->choice = selector->place.data;
    n->branches = buffers;
    return begin(r);
}

static hlo_view *copy_views(const plan_run *r, const hlo_view *views, uint32_t count) {
    return hlo_arena_copy(r->plan->arena, views, count * sizeof *views);
}

hlo_status plan_command_buffer_job(const plan_run *r, const plan_step *step) {
    hlo_status status = cut(r);
    if (status != HLO_OK) return status;
    node *n = add_node(r, NODE_JOB, step);
    n->job = *step->job;
    n->job.operands = copy_views(r, n->job.operands, n->job.operand_count);
    n->job.results = copy_views(r, n->job.results, n->job.result_count);
    return begin(r);
}

hlo_status plan_record(hlo_plan *plan, const hlo_diag_sink *sink) {
    const bool observed = plan_looks(plan) || plan->options.profile || plan->options.progress;
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
        end(&r, plan_run_comp(&r, plan->entry, plan->memory, plan->arguments, plan->results));
    if (status == HLO_OK) plan->buffer = buffer;
    return status;
}

/* -------------------------------------------------------------------------------------- playing */

static hlo_status play_node(const plan_run *r, const node *n) {
    const hlo_plan *plan = r->plan;
    const char *why = "failed";
    hlo_status status = HLO_OK;
    switch (n->kind) {
    case NODE_GRAPH: status = plan->backend->replay(plan->device, n->graph, &why); break;
    case NODE_JOB: status = plan->backend->execute(plan->device, &n->job, &why); break;
    case NODE_WHILE: {
        uint64_t trip_count = n->step->trip_count, round = 0;
        for (;; round++) {
            unsigned char more = round < trip_count;
            if (trip_count == HLO_TRIP_COUNT_UNKNOWN) {
                status = plan_command_buffer_play(r, &n->conditions[round % 2]);
                more = 0;
                plan->backend->copy_out(plan->device, &more, n->choice, sizeof more);
            }
            if (status == HLO_OK && !more) break;
            if (status == HLO_OK) status = plan_command_buffer_play(r, &n->bodies[round % 2]);
            if (status != HLO_OK) return status;
        }
        return round % 2 ? plan_command_buffer_play(r, n->back) : HLO_OK;
    }
    case NODE_CONDITIONAL:
        return plan_command_buffer_play(
            r, &n->branches[plan_chosen(plan, n->selector, n->choice, n->step->called_count)]);
    }
    return plan_failed(r, n->step, status, why);
}

hlo_status plan_command_buffer_play(const plan_run *r, const plan_command_buffer *buffer) {
    for (uint32_t i = 0; i < buffer->count; i++) {
        hlo_status status = play_node(r, &buffer->nodes[i]);
        if (status != HLO_OK) return status;
    }
    return HLO_OK;
}
