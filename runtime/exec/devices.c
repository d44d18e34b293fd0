/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of plans, for one device or for several simulated devices. */
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
#include "ir/verify/verify.h"
#include "runtime/cpu/cpu.h"
#ifdef HLO_WITH_CUDA
#include "runtime/cuda/driver/cuda.h"
#endif
#include "runtime/exec/run.h"

const hlo_backend *const hlo_backends[] = {
    &cpu_backend,
#ifdef HLO_WITH_CUDA
    &cuda_backend,
#endif
    NULL,
};

static const hlo_plan_options default_options = {
    .struct_size = sizeof default_options, .backend = "cpu", .graph = true, .devices = 1};

void hlo_plan_options_init_sized(hlo_plan_options *options, size_t struct_size) {
    hlo_options_fill(options, struct_size, &default_options, sizeof default_options);
}

static const hlo_seat alone = {.replicas = 1, .partitions = 1};

/* Returns NULL, with an error in `sink`, if the backend does not exist. */
static const hlo_backend *find_backend(const char *name, const hlo_diag_sink *sink) {
    for (const hlo_backend *const *b = hlo_backends; name && *b; b++)
        if (strcmp((*b)->name, name) == 0) return *b;
    hlo_diag_misuse(sink, HLO_DIAG_OPTION, "this build of the library has no backend '%.80s'",
                    name ? name : "");
    return NULL;
}

/* Checks the options of a plan for the backend. */
static hlo_status check_options(const hlo_plan_options *o, const hlo_backend *backend,
                                const hlo_diag_sink *sink) {
    const char *inside = o->bounds ? "bounds" : o->perturbed ? "perturbed" : NULL;
    if (inside && !backend->keeps_bounds)
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION, "the %s backend does not support %s",
                               backend->name, inside);
    if (o->devices > 1 && !backend->simulates)
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION, "the %s backend does not simulate devices",
                               backend->name);
    if (o->resident && (inside || o->devices > 1))
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION, "resident cannot be combined with %s",
                               inside ? inside : "several devices");
    if (o->resident && o->donation_count && !o->donations)
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION,
                               "donations must not be NULL, because donation_count is %zu",
                               o->donation_count);
    if (!o->devices || o->devices > HLO_MAX_DEVICES)
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION,
                               "invalid value %u for devices, expected 1 to %d", o->devices,
                               HLO_MAX_DEVICES);
    if (o->accumulate > HLO_ACCUMULATE_HOPPER)
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION, "invalid value %d for accumulate",
                               (int)o->accumulate);
    if (o->fp8_rounding > HLO_FP8_ROUNDING_VIA_F16)
        return hlo_diag_misuse(sink, HLO_DIAG_OPTION, "invalid value %d for fp8_rounding",
                               (int)o->fp8_rounding);
    return HLO_OK;
}

hlo_status hlo_backend_print(const char *name, const hlo_diag_sink *sink, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    const hlo_backend *backend = find_backend(name, sink);
    hlo_plan_options options;
    void *device;
    if (!backend) return HLO_INVALID_USAGE;
    hlo_plan_options_init(&options);
    hlo_status status = backend->open(&options, &alone, sink, &device);
    if (status != HLO_OK) return status;
    FILE *out = hlo_writer_open(&writer);
    if (out) backend->identify(device, out);
    backend->close(device);
    return out ? hlo_writer_close(out, HLO_OK) : HLO_OUT_OF_MEMORY;
}

hlo_status hlo_plan_new(const hlo_module *module, const hlo_plan_options *options,
                        const hlo_diag_sink *sink, hlo_plan **out) {
    HLO_IN_C_LOCALE;
    *out = NULL;
    hlo_plan_options own = default_options;
    if (hlo_options_take("hlo_plan_options", &own, sizeof own, options, sink) != HLO_OK)
        return HLO_INVALID_USAGE;
    const hlo_backend *backend = find_backend(own.backend, sink);
    if (!backend || check_options(&own, backend, sink) != HLO_OK) return HLO_INVALID_USAGE;
    const hlo_status verified = hlo_module_ensure_verified(module, 0, sink);
    if (verified != HLO_OK) return verified;
    if (own.devices == 1) return plan_new(module, backend, &own, &alone, sink, out);
    /* If the header has no device counts, all devices are partitions. The plans of all devices have
     * the same errors, so report only those of the first plan. */
    const uint32_t devices = own.devices;
    int64_t replicas = hlo_module_int(module, HLO_ATTR_REPLICA_COUNT, 1);
    int64_t partitions = hlo_module_int(module, HLO_ATTR_NUM_PARTITIONS, 1);
    if (replicas < 1) replicas = 1;
    if (partitions < 1) partitions = 1;
    if (replicas == 1 && partitions == 1) partitions = devices;
    if (replicas > devices || partitions > devices || replicas * partitions != devices) {
        hlo_diag_emit(
            module, sink, HLO_ERROR, HLO_DIAG_DEVICE_COUNT, module->entry->offset, 1,
            "the module requires %lld replicas of %lld partitions, but %u devices are given",
            (long long)replicas, (long long)partitions, devices);
        return HLO_INVALID_INPUT;
    }
    hlo_world *world = hlo_world_new((uint32_t)replicas, (uint32_t)partitions);
    hlo_plan **plans = hlo_calloc(devices, sizeof(hlo_plan *));
    hlo_status status = world && plans ? HLO_OK : HLO_OUT_OF_MEMORY;
    for (uint32_t d = 0; d < devices && status == HLO_OK; d++) {
        const hlo_seat seat = hlo_world_seat(world, d);
        own.profile &= d == 0;
        status = plan_new(module, backend, &own, &seat, d ? NULL : sink, &plans[d]);
    }
    if (status == HLO_OK) {
        *out = plans[0];
        plans[0]->devices = plans;
        plans[0]->device_count = devices;
        return HLO_OK;
    }
    for (uint32_t d = 0; plans && d < devices; d++)
        if (plans[d]) plan_free(plans[d]);
    hlo_free(plans);
    hlo_world_free(world);
    return status;
}

void hlo_plan_free(hlo_plan *plan) {
    if (!plan) return;
    hlo_world *world = plan->seat.world;
    for (uint32_t d = 1; d < plan->device_count; d++) plan_free(plan->devices[d]);
    if (world) hlo_free(plan->devices);
    plan_free(plan);
    hlo_world_free(world);
}

/* Returns a device's part of the inputs. Inputs for one device serve all devices. */
static hlo_arrays inputs_of(const hlo_plan *plan, const hlo_arrays *inputs, uint32_t device) {
    const size_t count = plan->inputs.count;
    if (inputs->count != count * plan->device_count) return *inputs;
    return (hlo_arrays){.items = inputs->items + device * count, .count = count};
}

hlo_status hlo_plan_check(const hlo_plan *plan, const hlo_arrays *inputs,
                          const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    hlo_status status = HLO_OK;
    for (uint32_t d = 0; d < plan->device_count && status == HLO_OK; d++) {
        const hlo_arrays own = inputs_of(plan, inputs, d);
        status = hlo_leaves_check(&plan->inputs, plan->module, &own, sink);
    }
    return status;
}

typedef struct side_by_side {
    hlo_plan *plan;
    size_t count; /* number of runs */
    hlo_status *statuses;
} side_by_side;

static void run_device(void *arg, uint32_t device) {
    const side_by_side *all = arg;
    all->statuses[device] = plan_execute(all->plan->devices[device], all->count, NULL);
}

/* Calls options.progress for the plan of device 0, on the thread that called the run. Returns false
 * if the run should stop. */
static bool watch_devices(void *arg) {
    const side_by_side *all = arg;
    hlo_plan *first = all->plan;
    return !first->progress.instruction || plan_goes_on(first);
}

static hlo_status execute(hlo_plan *plan, size_t count, const hlo_diag_sink *sink) {
    if (!plan->seat.world) return plan_execute(plan, count, sink);
    side_by_side all = {plan, count, hlo_calloc(plan->device_count, sizeof *all.statuses)};
    if (!all.statuses) return HLO_OUT_OF_MEMORY;
    hlo_status status = hlo_world_run(plan->seat.world, run_device,
                                      plan->options.progress ? watch_devices : NULL, &all);
    if (status == HLO_OK && !hlo_world_goes_on(plan->seat.world)) status = HLO_STOPPED;
    /* Report the failure of one device. Prefer other failures to deadlocks, because they may have
     * caused the deadlocks. */
    const hlo_plan *failed = NULL;
    const bool ended = status == HLO_OK;
    for (uint32_t d = 0; ended && d < plan->device_count; d++) {
        const hlo_plan *own = plan->devices[d];
        if (all.statuses[d] == HLO_OK) continue;
        if (status == HLO_OK || all.statuses[d] != HLO_INVALID_INPUT) status = all.statuses[d];
        if (all.statuses[d] == HLO_INVALID_INPUT &&
            (!failed || (failed->failure == hlo_world_stuck && own->failure != hlo_world_stuck)))
            failed = own;
    }
    hlo_free(all.statuses);
    if (status != HLO_INVALID_INPUT || !failed) return status;
    const hlo_instruction *at = failed->failed_at;
    if (at)
        hlo_diag_emit(failed->module, sink, HLO_ERROR, HLO_DIAG_RUN, at->offset, strlen(at->name),
                      "`%s` %s (device %u)", hlo_ops[at->op].name, failed->failure,
                      hlo_seat_number(&failed->seat));
    else
        hlo_diag_emit(failed->module, sink, HLO_ERROR, HLO_DIAG_DEVICE,
                      failed->module->entry->offset, 1, "the %s backend %s", failed->backend->name,
                      failed->failure);
    return status;
}

/* Writes the time of the n-th run: the maximum over all devices. */
static hlo_status seconds_of(hlo_plan *plan, uint32_t n, const hlo_diag_sink *sink,
                             double *out_seconds) {
    hlo_status status = HLO_OK;
    *out_seconds = 0;
    for (uint32_t d = 0; d < plan->device_count && status == HLO_OK; d++) {
        double seconds = 0;
        status = plan_seconds(plan->devices[d], n, sink, &seconds);
        if (seconds > *out_seconds) *out_seconds = seconds;
    }
    return status;
}

hlo_status hlo_plan_run(hlo_plan *plan, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out) {
    HLO_IN_C_LOCALE;
    *out = NULL;
    if (!plan->memory)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE,
                               "the plan was created with `target`, so it can only be printed");
    if (plan->resident)
        return hlo_diag_misuse(
            sink, HLO_DIAG_USAGE,
            "the plan was created with `resident`, so run it with hlo_plan_run_async()");
    hlo_status status = hlo_plan_check(plan, inputs, sink);
    if (status != HLO_OK) return status;
    void *staging = hlo_malloc(plan_staging_size(plan));
    if (!staging) return HLO_OUT_OF_MEMORY;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const hlo_arrays own = inputs_of(plan, inputs, d);
        plan->devices[d]->drawn = (hlo_arrays){.seed = inputs->seed, .draw = inputs->draw};
        for (size_t i = 0; i < own.count; i++)
            plan_put_input(plan->devices[d], i, &own.items[i], staging);
    }
    if (plan->look) plan_look_start(plan);
    status = execute(plan, 1, sink);
    if (status == HLO_OK) status = seconds_of(plan, 0, sink, &plan->seconds);
    if (status == HLO_OK && plan->look) status = plan_look_end(plan, sink);
    if (status == HLO_OK) status = hlo_arrays_new(out);
    for (uint32_t d = 0; d < plan->device_count && status == HLO_OK; d++)
        status = plan_fetch_outputs(plan->devices[d], sink, *out, staging);
    for (uint32_t d = 0; d < plan->device_count && status == HLO_OK; d++)
        if (!hlo_arrays_move(&plan->devices[d]->sent, *out)) status = HLO_OUT_OF_MEMORY;
    hlo_free(staging);
    if (status == HLO_OK) return HLO_OK;
    hlo_arrays_free(*out);
    *out = NULL;
    return status;
}

hlo_status hlo_plan_time(hlo_plan *plan, size_t count, const hlo_diag_sink *sink,
                         double *out_seconds) {
    HLO_IN_C_LOCALE;
    const char *fault = NULL;
    if (!plan->runs || plan->resident)
        fault = "hlo_plan_time() repeats a run of hlo_plan_run(), but there was none";
    if (plan->options.overwrites_inputs)
        fault = "the plan was created with `overwrites_inputs`, so runs cannot be repeated";
    if (fault) return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "%s", fault);
    if (count > HLO_MAX_RUNS)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "%zu runs exceed the maximum of %d", count,
                               HLO_MAX_RUNS);
    hlo_status status = execute(plan, count, sink);
    for (size_t i = 0; i < count && status == HLO_OK; i++)
        status = seconds_of(plan, (uint32_t)i, sink, &out_seconds[i]);
    return status;
}

double hlo_plan_seconds(const hlo_plan *plan) {
    return plan->seconds;
}
