/* SPDX-License-Identifier: Apache-2.0 */
/* run FILE OUT.npz: executes an HLO module before and after the rewrite on the same inputs,
 * compares the outputs, and writes the outputs of the rewritten module to OUT.npz. Exits with
 * status 3 if the outputs differ by more than rounding. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/runtime.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

/* Executes `module` on the CPU. If `bounds` is true, outputs have error bounds. */
static hlo_status execute(const hlo_module *module, bool bounds, const hlo_arrays *inputs,
                          const hlo_diag_sink *sink, hlo_arrays **out) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_status status;

    hlo_plan_options_init(&options);
    options.bounds = bounds;
    options.roundings_may_be_dropped = bounds;
    status = hlo_plan_new(module, &options, sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, sink, out);
    if (status == HLO_OK) fprintf(stderr, "executed in %.3f ms\n", 1e3 * hlo_plan_seconds(plan));
    hlo_plan_free(plan);
    return status;
}

static hlo_status write_outputs(const hlo_arrays *outputs, const char *path) {
    hlo_status status;
    FILE *file = fopen(path, "wb");
    if (!file) return HLO_INVALID_INPUT;
    status = hlo_arrays_write(outputs, hlo_file_writer(file));
    return fclose(file) != 0 && status == HLO_OK ? HLO_INVALID_INPUT : status;
}

int main(int argc, char **argv) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *before = NULL, *after = NULL;
    hlo_arrays *inputs = NULL, *expected = NULL, *found = NULL;
    hlo_status status;

    if (argc != 3) {
        fputs("usage: run FILE OUT.npz\n", stderr);
        return 2;
    }
    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    status = hlo_module_parse_file(argv[1], &sink, &before);
    if (status == HLO_OK) status = hlo_module_clone(before, &after);
    if (status == HLO_OK) status = hlo_module_optimize(after, &options, NULL);
    if (status == HLO_OK) status = hlo_arrays_draw(before, 0, &sink, &inputs);
    if (status == HLO_OK) status = execute(before, true, inputs, &sink, &expected);
    if (status == HLO_OK) status = execute(after, false, inputs, &sink, &found);
    if (status == HLO_OK) status = write_outputs(found, argv[2]);
    if (status == HLO_OK) status = hlo_arrays_compare(expected, found, hlo_file_writer(stdout));
    hlo_arrays_free(inputs);
    hlo_arrays_free(expected);
    hlo_arrays_free(found);
    hlo_module_free(after);
    hlo_module_free(before);
    if (status != HLO_OK) fprintf(stderr, "run: %s\n", hlo_status_name(status));
    return hlo_status_exit(status);
}
