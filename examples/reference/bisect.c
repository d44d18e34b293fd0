/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of bisect.h. */
#include "reference.h"

#include <hlo/bisect.h>

/* [bisect] */
/* Prints how much each rewritten matmul changes the outputs. */
static hlo_status bisect(const hlo_module *module, const hlo_arrays *inputs) {
    hlo_bisection *bisection = NULL;
    hlo_status status = hlo_module_bisect(module, NULL, NULL, inputs, &sink, &bisection);
    size_t i;
    if (status == HLO_OK) {
        for (i = 0; i < hlo_bisection_count(bisection); i++) {
            const hlo_matmul_effect *effect = hlo_bisection_at(bisection, i);
            printf("%s alone: %g\n", effect->matmul, effect->alone.distance);
        }
        printf("all: %g, rounding: %g\n", hlo_bisection_all(bisection)->distance,
               hlo_bisection_rounding(bisection)->distance);
        status = hlo_bisection_print(bisection, hlo_file_writer(stdout)); /* as a table */
    }
    hlo_bisection_free(bisection);
    return status;
}
/* [bisect] */

/* [budget] */
/* Quantizes as many matmuls as a limit on the change of the outputs permits. */
static hlo_status quantize_within(hlo_module *module, const hlo_arrays *inputs, double max_error) {
    hlo_pass_options options;
    hlo_bisection *bisection = NULL;
    hlo_status status;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.quantize = "current";
    options.min_gain = 0.01;
    status = hlo_module_budget(module, &options, NULL, &inputs, 1, max_error, &sink, &bisection);
    if (status == HLO_OK) {
        const hlo_budget *budget = hlo_bisection_budget(bisection);
        printf("measured change: %g\n", budget->measured.distance);
        options.wide = budget->wide; /* the matmuls that were not selected */
        status = hlo_module_optimize(module, &options, NULL);
    }
    hlo_bisection_free(bisection);
    return status;
}
/* [budget] */

/* [amaxes] */
/* Records the largest magnitudes of the operands, for hlo_pass_options.quantize "static". */
static hlo_status record(const hlo_module *module, const hlo_arrays *inputs, const char *path) {
    hlo_status status;
    FILE *file = fopen(path, "w");
    if (!file) return HLO_INVALID_INPUT;
    status = hlo_module_record_amaxes(module, &inputs, 1, &sink, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    return status;
}
/* [amaxes] */

hlo_status example_bisect(void) {
    hlo_module *module = NULL, *other = NULL;
    hlo_arrays *inputs = NULL, *others = NULL;
    hlo_status status = read_text(scaled, &module);
    if (status == HLO_OK) status = read_text(wide, &other);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 0, &sink, &inputs);
    if (status == HLO_OK) status = hlo_arrays_draw(other, 0, &sink, &others);
    if (status == HLO_OK) status = bisect(module, inputs);
    if (status == HLO_OK) status = record(other, others, "amaxes.json");
    if (status == HLO_OK) status = quantize_within(other, others, 0.1);
    hlo_arrays_free(others);
    hlo_arrays_free(inputs);
    hlo_module_free(other);
    hlo_module_free(module);
    return status;
}
