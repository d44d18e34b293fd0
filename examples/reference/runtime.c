/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of runtime.h. */
#include "reference.h"

#include <stdlib.h>

#include <hlo/ir.h>
#include <hlo/pass.h>
#include <hlo/runtime.h>

/* [arrays] */
/* Creates a list with one f32[2,2] array, and prints the size of each array. */
static hlo_status make_inputs(hlo_arrays **out_arrays) {
    static const float elements[] = {1, 2, 3, 4};
    static const int64_t dims[] = {2, 2};
    size_t i;
    hlo_status status = hlo_arrays_new(out_arrays);
    if (status == HLO_OK) status = hlo_arrays_append(*out_arrays, HLO_TYPE_F32, 2, dims, elements);
    for (i = 0; status == HLO_OK && i < hlo_arrays_count(*out_arrays); i++)
        printf("array %u: %u bytes\n", (unsigned)i, (unsigned)hlo_arrays_at(*out_arrays, i)->size);
    return status;
}
/* [arrays] */

/* [array] */
/* Compares two numbers with an array that the caller owns, which needs no list. */
static hlo_status distance(float from, float to, double *out) {
    hlo_array a, b;
    hlo_array_init(&a);
    hlo_array_init(&b);
    a.type = b.type = HLO_TYPE_F32;
    a.size = b.size = sizeof(float);
    a.data = &from;
    b.data = &to;
    return hlo_array_distance(&a, &b, out);
}
/* [array] */

/* [npz] */
/* Writes arrays for numpy.load(), and reads them as the inputs of a module. */
static hlo_status write_and_read(const hlo_module *module, const hlo_arrays *arrays,
                                 const char *path, hlo_arrays **out_inputs) {
    hlo_status status;
    FILE *file = fopen(path, "wb");
    if (!file) return HLO_INVALID_INPUT;
    status = hlo_arrays_write(arrays, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    if (status == HLO_OK) status = hlo_arrays_read(path, module, HLO_INPUTS, &sink, out_inputs);
    return status;
}
/* [npz] */

/* [inputs] */
/* Returns the inputs of two devices: those that were recorded with the module, those of a file, or
 * random ones. */
static hlo_status find_inputs(const hlo_module *module, const char *path, hlo_arrays **out) {
    hlo_status status = hlo_arrays_recorded(module, HLO_INPUTS, 2, &sink, out);
    if (status != HLO_OK || *out) return status;
    if (path) return hlo_arrays_read_each(path, module, HLO_INPUTS, 2, &sink, out);
    return hlo_arrays_draw_each(module, HLO_DRAW_REALISTIC, 0, 2, &sink, out);
}
/* [inputs] */

/* [run] */
/* Executes a module once on random inputs. */
static hlo_status run_once(const hlo_module *module) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_status status;

    hlo_plan_options_init(&options);
    options.backend = "cpu";
    status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 0, &sink, &inputs);
    if (status == HLO_OK) status = hlo_plan_check(plan, inputs, &sink);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, &outputs);
    if (status == HLO_OK)
        printf("%u outputs in %g s\n", (unsigned)hlo_arrays_count(outputs), hlo_plan_seconds(plan));
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    return status;
}
/* [run] */

/* [time] */
/* Prints the shortest of ten runs. The plan was run before. */
static hlo_status print_time(hlo_plan *plan) {
    double seconds[10], best;
    int i;
    hlo_status status = hlo_plan_time(plan, 10, &sink, seconds);
    best = seconds[0];
    for (i = 1; status == HLO_OK && i < 10; i++)
        if (seconds[i] < best) best = seconds[i];
    if (status == HLO_OK) printf("%g s\n", best);
    return status;
}
/* [time] */

/* [plan-print] */
/* Prints the plan for a GPU that need not be present. */
static hlo_status print_plan(const hlo_module *module) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_status status;
    hlo_plan_options_init_sized(&options, sizeof options); /* as hlo_plan_options_init() does */
    options.backend = "cuda";
    options.target = "sm_90";
    status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_plan_print(plan, hlo_file_writer(stdout));
    hlo_plan_free(plan);
    return status;
}
/* [plan-print] */

/* [backend] */
/* Prints the device and the libraries of a backend. */
static hlo_status print_backend(const char *backend) {
    return hlo_backend_print(backend, &sink, hlo_file_writer(stdout));
}
/* [backend] */

/* [inside] */
/* Prints the values of the instructions %a*, and where the first NaN or infinity appears. */
static hlo_status inspect(const hlo_module *module, const hlo_arrays *inputs) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_arrays *outputs = NULL;
    hlo_status status;
    size_t i;

    hlo_plan_options_init(&options);
    options.values = "a*";
    options.check_finite = true;
    options.profile = true;
    status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, &outputs);
    if (status == HLO_OK) {
        const hlo_arrays *values = hlo_plan_values(plan);
        for (i = 0; i < hlo_arrays_count(values); i++)
            printf("%s: %u bytes\n", hlo_arrays_at(values, i)->name,
                   (unsigned)hlo_arrays_at(values, i)->size);
        printf("%u warnings\n", hlo_plan_nonfinite(plan));
        status = hlo_plan_print_profile(plan, hlo_file_writer(stdout));
    }
    if (status == HLO_OK) status = hlo_plan_print_trace(plan, hlo_file_writer(stdout));
    hlo_arrays_free(outputs);
    hlo_plan_free(plan);
    return status;
}
/* [inside] */

/* [bounds] */
/* Executes a module with error bounds of the outputs, for a comparison with the rewritten module.
 */
static hlo_status run_with_bounds(const hlo_module *module, const hlo_arrays *inputs,
                                  hlo_arrays **out_outputs) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_status status;
    hlo_plan_options_init(&options);
    options.bounds = true;
    options.roundings_may_be_dropped = true; /* the passes may drop roundings */
    status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, out_outputs);
    hlo_plan_free(plan);
    return status;
}
/* [bounds] */

/* [compare] */
/* Compares the outputs of two modules. `expected` has bounds. */
static hlo_status compare(hlo_arrays *expected, const hlo_arrays *found, const hlo_module *module,
                          const hlo_arrays *inputs) {
    const hlo_arrays *judges[1];
    hlo_comparison comparison;
    hlo_status status;
    judges[0] = expected;
    hlo_comparison_init(&comparison);
    comparison.expected = expected;
    comparison.found = found;
    comparison.judges = judges;
    comparison.judge_count = 1;
    comparison.inputs = inputs;
    status = hlo_arrays_sample(expected, &comparison, module, NULL, inputs, &sink);
    if (status == HLO_OK) status = hlo_arrays_compare_by(&comparison, hlo_file_writer(stdout));
    return status;
}
/* [compare] */

/* [compare-arrays] */
/* Compares the first output by hand, and all outputs. `expected` has bounds. */
static hlo_status compare_arrays(const hlo_arrays *expected, const hlo_arrays *found) {
    hlo_difference difference;
    hlo_status status;
    hlo_difference_init(&difference);
    status = hlo_array_compare(hlo_arrays_at(expected, 0), hlo_arrays_at(found, 0), &difference);
    printf("%d equal, %d within their bounds, %d differ\n", (int)difference.equal,
           (int)difference.within, (int)difference.violations);
    if (status == HLO_OK) status = hlo_arrays_compare(expected, found, hlo_file_writer(stdout));
    return status;
}
/* [compare-arrays] */

/* Compares a module with the rewritten module, and times the latter. */
static hlo_status example_compare(const hlo_module *module, const hlo_arrays *inputs) {
    hlo_module *rewritten = NULL;
    hlo_arrays *expected = NULL, *found = NULL;
    hlo_plan *plan = NULL;
    hlo_status status = hlo_module_clone(module, &rewritten);
    if (status == HLO_OK) status = hlo_module_optimize(rewritten, NULL, NULL);
    if (status == HLO_OK) status = run_with_bounds(module, inputs, &expected);
    if (status == HLO_OK) status = hlo_plan_new(rewritten, NULL, &sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, &found);
    if (status == HLO_OK) status = print_time(plan);
    if (status == HLO_OK) status = compare_arrays(expected, found);
    if (status == HLO_OK) status = compare(expected, found, module, inputs);
    hlo_plan_free(plan);
    hlo_arrays_free(found);
    hlo_arrays_free(expected);
    hlo_module_free(rewritten);
    return status;
}

hlo_status example_runtime(void) {
    hlo_module *module = NULL;
    hlo_arrays *made = NULL, *inputs = NULL, *again = NULL, *both = NULL;
    double change = 0;
    hlo_status status = read_text(scaled, &module);
    if (status == HLO_OK) status = make_inputs(&made);
    if (status == HLO_OK) status = distance(2, 3, &change);
    if (status == HLO_OK && change != 0.5) status = HLO_INTERNAL;
    if (status == HLO_OK) status = hlo_arrays_draw(module, 0, &sink, &inputs);
    if (status == HLO_OK) status = write_and_read(module, inputs, "inputs.npz", &again);
    if (status == HLO_OK) status = find_inputs(module, "inputs.npz", &both);
    if (status == HLO_OK) status = run_once(module);
    if (status == HLO_OK) status = print_plan(module);
    if (status == HLO_OK) status = print_backend("cpu");
    if (status == HLO_OK) status = inspect(module, again);
    if (status == HLO_OK) status = example_compare(module, inputs);
    hlo_arrays_free(both);
    hlo_arrays_free(again);
    hlo_arrays_free(inputs);
    hlo_arrays_free(made);
    hlo_module_free(module);
    return status;
}
