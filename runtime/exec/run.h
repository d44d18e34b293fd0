/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of creating and running plans. */
#ifndef HLO_RUNTIME_EXEC_RUN_H
#define HLO_RUNTIME_EXEC_RUN_H

#include "runtime/plan/plan.h"

/* execute.c: calls options.progress of `plan`, an hlo_plan, if due. Returns false to stop. */
bool plan_goes_on(void *plan);

/* look.c: sets plan->look. May return HLO_OUT_OF_MEMORY. */
hlo_status plan_look_new(hlo_plan *plan);
void plan_look_free(plan_look *look); /* NULL is allowed */
/* Clears the saved values of the last run, on all devices. */
void plan_look_start(hlo_plan *plan);
/* Saves or checks the values of a STEP_LOOK. May return HLO_OUT_OF_MEMORY. */
hlo_status plan_look_at(hlo_plan *plan, const plan_comp *comp, const plan_step *step);
/* Emits the warnings of all devices, and sets plan->values to the values that all devices saved.
 * May return HLO_OUT_OF_MEMORY. */
hlo_status plan_look_end(hlo_plan *plan, const hlo_diag_sink *sink);

/* A span: the time of a step that is being queued, or of the whole run. */
typedef struct plan_span {
    struct plan_span *outer; /* the enclosing span, or NULL */
    plan_step *step;         /* NULL for the whole run */
    bool on_host;            /* by the host's clock, not the device's marks */
    bool known;              /* `start` is known */
    uint32_t mark;           /* mark of the start */
    double start;            /* start, by the clock of plan_trace_clock() */
} plan_span;

/* profile.c: sets plan->trace. May return HLO_OUT_OF_MEMORY. */
hlo_status plan_trace_new(hlo_plan *plan);
void plan_trace_free(plan_trace *trace); /* NULL is allowed */
/* Returns seconds since an arbitrary time, by the host's clock. */
double plan_trace_clock(void);
/* Waits for the device, and starts timing, with marks from number `mark` on. Here and in the next
 * two functions, `why` is as in backend.h. */
hlo_status plan_trace_begin(const hlo_plan *plan, uint32_t mark, const char **why);
/* Waits for the device, and reads all marks, which can then be reused. May return
 * HLO_OUT_OF_MEMORY. */
hlo_status plan_trace_read(const hlo_plan *plan, const char **why);
/* Begins a span. *out_span must not move in memory until the span ends. If `on_host`, first waits
 * for the device. */
hlo_status plan_span_begin(const hlo_plan *plan, plan_step *step, bool on_host, plan_span *out_span,
                           const char **why);
/* Ends the innermost span. May return HLO_OUT_OF_MEMORY. */
hlo_status plan_span_end(const hlo_plan *plan, const plan_span *span);
/* plan.c: creates the plan of one device. */
hlo_status plan_new(const hlo_module *module, const hlo_backend *backend,
                    const hlo_plan_options *options, const hlo_seat *seat,
                    const hlo_diag_sink *sink, hlo_plan **out);
void plan_free(hlo_plan *plan);
/* Returns the bytes of the largest input or output, with its sigmas. */
size_t plan_staging_size(const hlo_plan *plan);
/* Copies an input to the device, through `staging` of at least plan_staging_size() bytes. */
void plan_put_input(hlo_plan *plan, size_t i, const hlo_array *array, void *staging);
/* Appends the outputs of the last run to `out`. */
hlo_status plan_fetch_outputs(hlo_plan *plan, const hlo_diag_sink *sink, hlo_arrays *out,
                              void *staging);

/* buffer.c: creates a shared handle of an open device. On failure, closes it, returns NULL. */
plan_device *plan_device_new(const hlo_backend *backend, void *device);
/* Drops the plan's reference. */
void plan_device_retire(plan_device *device);
/* Waits for the last run, and frees its event. NULL is allowed. */
void plan_resident_free(plan_resident *resident);
/* Sets plan->resident, and binds every job, with temporary inputs and outputs. */
hlo_status plan_resident_bind(hlo_plan *plan, const hlo_diag_sink *sink);

#endif
