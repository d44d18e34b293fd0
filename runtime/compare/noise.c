/* SPDX-License-Identifier: Apache-2.0 */
/* Noise: the difference of legitimate executions, measured by perturbed executions. */
#include "ir/float/c_locale.h"
#include "ir/text/options.h"
#include "runtime/io/arrays.h"

enum { FEWEST = 3, MOST = 16 };

static bool explains(const hlo_arrays *judge, const hlo_arrays *side, bool drops) {
    for (size_t i = 0; side != judge && i < judge->count && i < side->count; i++) {
        hlo_difference d = {0};
        hlo_array_compare_noise(&judge->items[i], &side->items[i], drops, &d);
        if (d.noise > d.noise_limit) return false;
    }
    return true;
}

hlo_status hlo_arrays_sample(hlo_arrays *judge, const hlo_comparison *comparison,
                             const hlo_module *module, const hlo_plan_options *options,
                             const hlo_arrays *inputs, const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    hlo_plan_options perturbed;
    hlo_plan_options_init(&perturbed);
    hlo_status status =
        hlo_options_take("hlo_plan_options", &perturbed, sizeof perturbed, options, sink);
    hlo_comparison own = {.found = NULL};
    if (status == HLO_OK)
        status = hlo_options_take("hlo_comparison", &own, sizeof own, comparison, sink);
    if (status == HLO_OK && (!own.found || !own.expected)) status = HLO_INVALID_USAGE;
    if (status != HLO_OK) return status;
    perturbed.bounds = false;
    perturbed.perturbed = true;
    hlo_plan *plan;
    status = hlo_plan_new(module, &perturbed, sink, &plan);
    if (status != HLO_OK) return status;
    for (int i = 0; i < MOST && status == HLO_OK; i++) {
        if (i >= FEWEST && explains(judge, own.found, own.last_drops) &&
            explains(judge, own.expected, own.last_drops))
            break;
        hlo_arrays *sample;
        status = hlo_plan_run(plan, inputs, sink, &sample);
        for (size_t k = 0; status == HLO_OK && k < judge->count; k++)
            hlo_array_add_sample(&judge->items[k], &sample->items[k]);
        if (status == HLO_OK) hlo_arrays_free(sample);
    }
    hlo_plan_free(plan);
    return status;
}
