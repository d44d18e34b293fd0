/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of buffer.h. */
#include "reference.h"

#include <stdlib.h>

#include <hlo/buffer.h>

/* [plan] */
/* Creates a plan whose arrays stay on the device. */
static hlo_status new_plan(const hlo_module *module, hlo_plan **out_plan) {
    hlo_plan_options options;
    hlo_status status;
    hlo_plan_options_init(&options);
    options.resident = true;
    status = hlo_plan_new(module, &options, &sink, out_plan);
    if (status == HLO_OK)
        printf("%u inputs, %u outputs\n", (unsigned)hlo_plan_input_count(*out_plan),
               (unsigned)hlo_plan_output_count(*out_plan));
    return status;
}
/* [plan] */

/* [buffers] */
/* Copies all inputs to the device. */
static hlo_status send(hlo_plan *plan, const hlo_arrays *inputs, hlo_buffer **buffers) {
    hlo_status status = HLO_OK;
    size_t i;
    for (i = 0; status == HLO_OK && i < hlo_plan_input_count(plan); i++)
        status = hlo_buffer_new(plan, i, hlo_arrays_at(inputs, i), &sink, &buffers[i]);
    return status;
}
/* [buffers] */

/* [run] */
/* Starts a run, waits for it, and prints the first output. */
static hlo_status run(hlo_plan *plan, hlo_buffer **inputs, hlo_buffer **outputs) {
    hlo_event *event = NULL;
    hlo_status status =
        hlo_plan_run_async(plan, inputs, hlo_plan_input_count(plan), NULL, &sink, outputs, &event);
    if (status == HLO_OK && !hlo_event_is_done(event)) puts("running");
    if (status == HLO_OK) status = hlo_event_wait(event, &sink);
    if (status == HLO_OK) {
        const size_t size = hlo_buffer_array(outputs[0])->size;
        float *elements = malloc(size);
        if (!elements) status = HLO_OUT_OF_MEMORY;
        if (elements) status = hlo_buffer_read(outputs[0], elements, size, &sink);
        if (status == HLO_OK) printf("%g, ...\n", (double)elements[0]);
        free(elements);
    }
    hlo_event_free(event);
    return status;
}
/* [run] */

/* [donated] */
/* Returns whether an output reuses the memory of an input. */
static bool is_in_place(const hlo_plan *plan, size_t output) {
    return hlo_plan_donated_input(plan, output) != SIZE_MAX;
}
/* [donated] */

/* [event] */
/* Makes a stream of the caller wait for a run. `wait_for` calls cuStreamWaitEvent(). */
static void order_after(const hlo_event *event, void (*wait_for)(void *cuda_event)) {
    void *handle = hlo_event_handle(event); /* NULL if the backend is "cpu" */
    if (handle) wait_for(handle);
}
/* [event] */

/* [dlpack] */
/* Shares the memory of a buffer with another library, and the tensor of another library with a
 * plan: here, the same tensor. */
static hlo_status share(hlo_plan *plan, const hlo_buffer *buffer, hlo_buffer **out_shared) {
    struct DLManagedTensorVersioned *tensor = NULL;
    hlo_status status = hlo_buffer_to_dlpack(buffer, NULL, &sink, &tensor);
    if (status == HLO_OK) status = hlo_buffer_from_dlpack(plan, 2, tensor, &sink, out_shared);
    return status;
}
/* [dlpack] */

/* [dlpack-unversioned] */
/* The same for libraries with DLPack before 1.0. */
static hlo_status share_old(hlo_plan *plan, const hlo_buffer *buffer, hlo_buffer **out_shared) {
    struct DLManagedTensor *tensor = NULL;
    hlo_status status = hlo_buffer_to_dlpack_unversioned(buffer, NULL, &sink, &tensor);
    if (status == HLO_OK)
        status = hlo_buffer_from_dlpack_unversioned(plan, 2, tensor, &sink, out_shared);
    return status;
}
/* [dlpack-unversioned] */

/* [free] */
static void free_all(hlo_plan *plan, hlo_buffer **buffers, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) hlo_buffer_free(buffers[i]);
    hlo_plan_free(plan);
}
/* [free] */

static void never(void *cuda_event) {
    (void)cuda_event;
}

hlo_status example_buffer(void) {
    hlo_buffer *buffers[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    hlo_module *module = NULL;
    hlo_arrays *inputs = NULL;
    hlo_event *event = NULL;
    hlo_plan *plan = NULL;
    hlo_status status = read_text(scaled, &module);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 0, &sink, &inputs);
    if (status == HLO_OK) status = new_plan(module, &plan);
    if (status == HLO_OK) status = send(plan, inputs, buffers);
    if (status == HLO_OK) status = run(plan, buffers, buffers + 3);
    if (status == HLO_OK) status = share(plan, buffers[2], &buffers[5]);
    if (status == HLO_OK) status = share_old(plan, buffers[2], &buffers[6]);
    if (status == HLO_OK && is_in_place(plan, 0)) status = HLO_INTERNAL;
    if (status == HLO_OK) {
        hlo_buffer_free(buffers[3]);
        hlo_buffer_free(buffers[4]);
        buffers[3] = buffers[4] = NULL;
        status = hlo_plan_run_async(plan, buffers, 3, NULL, &sink, buffers + 3, &event);
    }
    if (status == HLO_OK) order_after(event, never);
    hlo_event_free(event);
    free_all(plan, buffers, 7);
    hlo_arrays_free(inputs);
    hlo_module_free(module);
    return status;
}
