/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of resident plans on buffers: a run takes and creates buffers. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/text/diag.h"
#include "runtime/exec/buffer.h"
#include "runtime/exec/run.h"

/* A run is recorded for the addresses of its inputs and outputs. A loop that donates alternates
 * between a few sets of addresses. */
enum { RECORDINGS = 8 };

typedef struct recording {
    plan_place *places;          /* of inputs, followed by outputs; NULL: unused */
    plan_command_buffer *buffer; /* NULL: only one run has had these addresses */
} recording;

struct plan_resident {
    hlo_event *last; /* the end of the last run */
    recording recordings[RECORDINGS];
    size_t oldest; /* the next of the recordings without a buffer to replace */
};

hlo_status plan_resident_new(hlo_plan *plan) {
    plan->resident = hlo_arena_zero(plan->arena, sizeof *plan->resident);
    return HLO_OK;
}

void plan_resident_free(plan_resident *resident) {
    if (!resident) return;
    hlo_event_wait(resident->last, NULL);
    hlo_event_free(resident->last);
}

/* -------------------------------------------------------------------------------------- binding */

static size_t leaf_size(const hlo_plan *plan, const hlo_shape *shape) {
    return plan_align(plan, (size_t)hlo_shape_bytes(shape));
}

hlo_status plan_resident_bind(hlo_plan *plan, const hlo_diag_sink *sink) {
    size_t size = 0, at = 0;
    for (size_t i = 0; i < plan->inputs.count; i++) size += leaf_size(plan, plan->inputs.shapes[i]);
    for (size_t o = 0; o < plan->outputs.count; o++)
        if (!plan->in_place[o]) size += leaf_size(plan, plan->outputs.shapes[o]);
    char *memory = plan->backend->allocate(plan->device, size ? size : 1);
    if (!memory) {
        hlo_diag_refuse(sink, NULL, 0, 0,
                        "out of memory: the %s backend requires %zu bytes for inputs and outputs "
                        "in addition to %zu for temporaries",
                        plan->backend->name, size, plan->memory_size);
        return HLO_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < plan->inputs.count; i++) {
        plan->arguments[i].data = memory + at;
        at += leaf_size(plan, plan->inputs.shapes[i]);
    }
    for (size_t o = 0; o < plan->outputs.count; o++) {
        plan->results[o].data =
            plan->in_place[o] ? plan->arguments[plan->taken[o]].data : memory + at;
        if (!plan->in_place[o]) at += leaf_size(plan, plan->outputs.shapes[o]);
    }
    const hlo_status status = plan_bind(plan, sink);
    plan->backend->release(plan->device, memory);
    return status;
}

/* ------------------------------------------------------------------------------------ recording */

/* Finds the recording of the addresses of this run, and records the run if it is the second one
 * that has them; otherwise saves the addresses. */
static hlo_status find_or_record(hlo_plan *plan, const hlo_diag_sink *sink) {
    plan_resident *r = plan->resident;
    const size_t inputs = plan->inputs.count * sizeof(plan_place);
    const size_t outputs = plan->outputs.count * sizeof(plan_place);
    for (size_t i = 0; i < RECORDINGS && r->recordings[i].places; i++) {
        recording *found = &r->recordings[i];
        if (memcmp(found->places, plan->arguments, inputs) != 0 ||
            memcmp(found->places + plan->inputs.count, plan->results, outputs) != 0)
            continue;
        plan->buffer = found->buffer;
        const hlo_status status = found->buffer ? HLO_OK : plan_record(plan, sink);
        found->buffer = plan->buffer;
        return status;
    }
    for (size_t tries = 0; tries < RECORDINGS; tries++) {
        recording *free = &r->recordings[r->oldest++ % RECORDINGS];
        if (free->buffer) continue;
        if (!free->places) free->places = hlo_arena_alloc(plan->arena, inputs + outputs + 1);
        memcpy(free->places, plan->arguments, inputs);
        memcpy(free->places + plan->inputs.count, plan->results, outputs);
        break;
    }
    return HLO_OK;
}

/* Sets plan->buffer to the recorded run on these addresses, or to NULL. */
static hlo_status record(hlo_plan *plan, const hlo_diag_sink *sink) {
    jmp_buf recover;
    plan->buffer = NULL;
    if (!plan->backend->record) return HLO_OK;
    hlo_arena_set_recover(plan->arena, &recover);
    const hlo_status status = setjmp(recover) ? HLO_OUT_OF_MEMORY : find_or_record(plan, sink);
    hlo_arena_set_recover(plan->arena, NULL);
    const void *graph;
    const char *why;
    if (status == HLO_OUT_OF_MEMORY) plan->backend->recorded(plan->device, &graph, &why);
    return status;
}

/* ------------------------------------------------------------------------------------- checking */

static hlo_status check(const hlo_plan *plan, hlo_buffer *const *inputs, size_t count,
                        const hlo_diag_sink *sink) {
    if (!plan->resident) return plan_misuse(sink, "the plan was created without `resident`");
    if (count != plan->inputs.count)
        return hlo_diag_refuse(sink, NULL, 0, 0,
                               "%zu inputs are given, but the entry computation has %zu", count,
                               plan->inputs.count);
    for (size_t i = 0; i < count; i++) {
        const hlo_buffer *buffer = inputs[i];
        if (!buffer || !buffer->memory)
            return plan_misuse(sink, "input %zu %s", i,
                               buffer ? "was donated to an earlier run" : "is missing");
        const hlo_backend *backend = buffer->memory->device->backend;
        if (backend->memory_kind != plan->backend->memory_kind)
            return hlo_diag_refuse(
                sink, NULL, 0, 0,
                "input %zu is a buffer of the %s backend, but the plan uses the %s backend", i,
                backend->name, plan->backend->name);
        const hlo_status status =
            hlo_leaf_check(&plan->inputs, plan->module, i, &buffer->array, sink);
        if (status != HLO_OK) return status;
        const hlo_shape *shape = plan->inputs.shapes[i];
        if (!hlo_shape_same_memory(&buffer->shape, shape)) {
            char found[256], expected[256];
            hlo_shape_format(&buffer->shape, true, found, sizeof found);
            hlo_shape_format(shape, true, expected, sizeof expected);
            return hlo_diag_refuse(sink, NULL, 0, 0, "input %zu is %s, but its parameter is %s", i,
                                   found, expected);
        }
        if (plan->given[i] == PLAN_NONE) continue;
        const plan_memory *memory = buffer->memory;
        if (memory->read_only)
            return plan_misuse(sink, "cannot donate input %zu: it is a read-only tensor", i);
        if (atomic_load(&memory->users) > 1)
            return plan_misuse(sink, "cannot donate input %zu: a tensor shares its memory", i);
        const uintptr_t from = (uintptr_t)memory->data;
        for (size_t k = 0; k < count; k++) {
            if (k == i || !inputs[k] || !inputs[k]->memory) continue;
            const uintptr_t other = (uintptr_t)inputs[k]->memory->data;
            const size_t others = inputs[k]->memory->size;
            if (from <= other ? other - from < memory->size && others
                              : from - other < others && memory->size)
                return plan_misuse(sink, "cannot donate input %zu: input %zu shares its memory", i,
                                   k);
        }
    }
    return HLO_OK;
}

/* -------------------------------------------------------------------------------------- running */

/* Queues a run on checked buffers on the stream. */
static hlo_status run(hlo_plan *plan, hlo_buffer *const *inputs, void *stream,
                      const hlo_diag_sink *sink, hlo_buffer **outputs, hlo_event **out_event) {
    const hlo_backend *backend = plan->backend;
    const char *why = "failed";
    for (size_t o = 0; o < plan->outputs.count; o++) {
        const hlo_shape *shape = plan->outputs.shapes[o];
        const size_t size = (size_t)hlo_shape_bytes(shape);
        plan_memory *memory = plan->in_place[o] ? plan_memory_share(inputs[plan->taken[o]]->memory)
                                                : plan_memory_new(plan->shared, size);
        if (!memory)
            hlo_diag_refuse(sink, NULL, 0, 0,
                            "out of memory: the %s backend requires %zu bytes for output %zu",
                            plan->backend->name, size, o);
        outputs[o] = plan_buffer_new(shape, memory);
        if (!outputs[o]) return HLO_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < plan->inputs.count; i++)
        plan->arguments[i].data = inputs[i]->memory->data;
    for (size_t o = 0; o < plan->outputs.count; o++)
        plan->results[o].data = outputs[o]->memory->data;
    hlo_status status = record(plan, sink);
    if (status != HLO_OK) return status;
    if (backend->use_stream) status = backend->use_stream(plan->device, stream, &why);
    if (status == HLO_INVALID_USAGE)
        return plan_misuse(sink, "the %s backend %s", backend->name, why);
    if (status != HLO_OK)
        return hlo_diag_refuse(sink, NULL, 0, 0, "the %s backend %s", backend->name, why);
    why = "failed";
    const hlo_event *last = plan->resident->last;
    plan_event_queue(plan->shared, last);
    for (size_t i = 0; i < plan->inputs.count; i++)
        plan_memory_queue(plan->shared, inputs[i]->memory, last);
    for (size_t o = 0; o < plan->outputs.count; o++)
        plan_memory_queue(plan->shared, outputs[o]->memory, last);
    if (plan->look) plan_look_start(plan);
    status = plan_queue(plan, sink);
    if (status == HLO_OK) status = plan_event_new(plan->shared, out_event, &why);
    if (status == HLO_INVALID_INPUT && !plan->failure)
        hlo_diag_refuse(sink, NULL, 0, 0, "the %s backend %s", plan->backend->name, why);
    if (status != HLO_OK) plan->backend->finish(plan->device, &why);
    if (status == HLO_OK && plan->look) status = plan_look_end(plan, sink);
    if (backend->use_stream) backend->use_stream(plan->device, NULL, &why);
    /* Record the end of the run in the memory it used, and clear the donated inputs. */
    hlo_event *event = *out_event;
    for (size_t i = 0; i < plan->inputs.count; i++)
        if (event) plan_memory_use(inputs[i]->memory, event);
    for (size_t o = 0; o < plan->outputs.count; o++)
        if (event) plan_memory_use(outputs[o]->memory, event);
    for (size_t i = 0; i < plan->inputs.count; i++) {
        if (plan->given[i] == PLAN_NONE) continue;
        plan_memory *memory = inputs[i]->memory;
        inputs[i]->memory = NULL;
        inputs[i]->array.data = NULL;
        plan_memory_drop(memory);
    }
    hlo_event_free(plan->resident->last);
    plan->resident->last = plan_event_share(event);
    return status;
}

hlo_status hlo_plan_run_async(hlo_plan *plan, hlo_buffer *const *inputs, size_t input_count,
                              void *stream, const hlo_diag_sink *sink, hlo_buffer **outputs,
                              hlo_event **out_event) {
    HLO_IN_C_LOCALE;
    hlo_event *event = NULL;
    if (out_event) *out_event = NULL;
    for (size_t o = 0; o < plan->outputs.count; o++) outputs[o] = NULL;
    hlo_status status = check(plan, inputs, input_count, sink);
    if (status == HLO_OK) status = run(plan, inputs, stream, sink, outputs, &event);
    for (size_t o = 0; o < plan->outputs.count && status != HLO_OK; o++) {
        hlo_buffer_free(outputs[o]);
        outputs[o] = NULL;
    }
    if (out_event && status == HLO_OK)
        *out_event = event;
    else
        hlo_event_free(event);
    return status;
}
