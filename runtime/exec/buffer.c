/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in device memory. */
#include "runtime/exec/buffer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"

hlo_status plan_misuse(const hlo_diag_sink *sink, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hlo_diag_refuse(sink, NULL, 0, 0, "%s", text);
    return HLO_INVALID_USAGE;
}

size_t hlo_plan_input_count(const hlo_plan *plan) {
    return plan->inputs.count;
}

size_t hlo_plan_output_count(const hlo_plan *plan) {
    return plan->outputs.count;
}

size_t hlo_plan_donated_input(const hlo_plan *plan, size_t output) {
    return plan->taken && plan->taken[output] != PLAN_NONE ? plan->taken[output] : SIZE_MAX;
}

hlo_status plan_buffer_check(const hlo_plan *plan, size_t input, const hlo_diag_sink *sink) {
    if (!plan->options.resident || !plan->shared)
        return plan_misuse(sink, "the plan %s, so it does not accept buffers",
                           plan->options.target ? "is for printing only"
                                                : "was created without `resident`");
    if (input < plan->inputs.count) return HLO_OK;
    return hlo_diag_refuse(sink, NULL, 0, 0, "input %zu does not exist: the plan has %zu inputs",
                           input, plan->inputs.count);
}

/* ------------------------------------------------------------------------------ making, freeing */

/* One allocation contains the buffer, its dimensions and its layout. */
typedef struct held {
    hlo_buffer buffer;
    hlo_layout layout;
    int64_t numbers[]; /* dimensions; minor_to_major */
} held;

hlo_buffer *plan_buffer_new(const hlo_shape *shape, plan_memory *memory) {
    const uint32_t rank = shape->rank;
    held *h = memory ? calloc(1, sizeof *h + 2 * rank * sizeof *h->numbers) : NULL;
    if (!h) {
        plan_memory_drop(memory);
        return NULL;
    }
    if (rank) memcpy(h->numbers, shape->dims, rank * sizeof *h->numbers);
    if (rank && shape->layout)
        memcpy(h->numbers + rank, shape->layout->minor_to_major, rank * sizeof *h->numbers);
    h->layout.minor_to_major = h->numbers + rank;
    h->buffer.shape = (hlo_shape){.type = shape->type,
                                  .rank = rank,
                                  .dims = h->numbers,
                                  .layout = shape->layout ? &h->layout : NULL};
    h->buffer.array = (hlo_array){.type = hlo_types[shape->type].name,
                                  .rank = rank,
                                  .dims = h->numbers,
                                  .data = memory->data,
                                  .size = memory->size,
                                  .noise = {-1, -1}};
    h->buffer.memory = memory;
    return &h->buffer;
}

static hlo_status finish(const plan_device *device, const hlo_diag_sink *sink) {
    const char *why = "failed";
    const hlo_status status = device->backend->finish(device->device, &why);
    if (status != HLO_INVALID_INPUT) return status;
    return hlo_diag_refuse(sink, NULL, 0, 0, "the %s backend %s", device->backend->name, why);
}

hlo_status hlo_buffer_new(hlo_plan *plan, size_t input, const hlo_array *array,
                          const hlo_diag_sink *sink, hlo_buffer **out) {
    *out = NULL;
    hlo_status status = plan_buffer_check(plan, input, sink);
    if (status == HLO_OK && array)
        status = hlo_leaf_check(&plan->inputs, plan->module, input, array, sink);
    if (status != HLO_OK) return status;
    const hlo_shape *shape = plan->inputs.shapes[input];
    const size_t size = (size_t)hlo_shape_bytes(shape);
    const bool plain = !array || hlo_shape_is_row_major(shape);
    void *staging = plain ? NULL : malloc(size + 1);
    hlo_buffer *buffer = plan_buffer_new(shape, plan_memory_new(plan->shared, size));
    if (!buffer || (!plain && !staging)) {
        free(staging);
        hlo_buffer_free(buffer);
        return HLO_OUT_OF_MEMORY;
    }
    if (!plain) plan_to_physical(shape, hlo_types[shape->type].bytes, staging, array->data);
    plan_memory_queue(plan->shared, buffer->memory, NULL);
    if (array)
        plan->backend->copy_in(plan->device, buffer->memory->data, plain ? array->data : staging,
                               size);
    else
        plan->backend->fill(plan->device, buffer->memory->data, 0, size);
    status = finish(plan->shared, sink);
    free(staging);
    if (status != HLO_OK) {
        hlo_buffer_free(buffer);
        return status;
    }
    *out = buffer;
    return HLO_OK;
}

void hlo_buffer_free(hlo_buffer *buffer) {
    if (!buffer) return;
    plan_memory_drop(buffer->memory);
    free(buffer); /* the first member of `held` */
}

/* -------------------------------------------------------------------------------------- reading */

const hlo_array *hlo_buffer_array(const hlo_buffer *buffer) {
    return &buffer->array;
}

hlo_status plan_buffer_hand_over(const hlo_buffer *buffer, void *stream,
                                 const hlo_diag_sink *sink) {
    if (!buffer->memory) return plan_misuse(sink, "the buffer was donated to a run");
    const plan_device *device = buffer->memory->device;
    const hlo_backend *backend = device->backend;
    if (!stream || !backend->use_stream) return plan_memory_wait(buffer->memory, sink);
    const char *why = "failed";
    hlo_status status = backend->use_stream(device->device, stream, &why);
    if (status == HLO_OK) plan_memory_queue(device, buffer->memory, NULL);
    if (status == HLO_OK) status = backend->use_stream(device->device, NULL, &why);
    if (status == HLO_INVALID_USAGE)
        return plan_misuse(sink, "the %s backend %s", backend->name, why);
    if (status != HLO_OK)
        return hlo_diag_refuse(sink, NULL, 0, 0, "the %s backend %s", backend->name, why);
    return HLO_OK;
}

hlo_status hlo_buffer_read(const hlo_buffer *buffer, void *out, size_t size,
                           const hlo_diag_sink *sink) {
    hlo_status status = plan_buffer_hand_over(buffer, NULL, sink);
    if (status != HLO_OK) return status;
    if (size != buffer->array.size)
        return plan_misuse(sink, "the buffer has %zu bytes, but the destination has %zu",
                           buffer->array.size, size);
    const plan_device *device = buffer->memory->device;
    const bool plain = hlo_shape_is_row_major(&buffer->shape);
    void *staging = plain ? out : malloc(size + 1);
    if (!staging) return HLO_OUT_OF_MEMORY;
    device->backend->copy_out(device->device, staging, buffer->memory->data, size);
    status = finish(device, sink);
    if (!plain && status == HLO_OK)
        plan_to_row_major(&buffer->shape, hlo_types[buffer->shape.type].bytes, out, staging);
    if (!plain) free(staging);
    return status;
}
