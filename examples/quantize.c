/* SPDX-License-Identifier: Apache-2.0 */
/* quantize FILE MAX_ERROR: quantizes matmuls of an HLO module without FP8 values, so that no output
 * changes by more than MAX_ERROR, relative to its norm. Prints the measured changes on standard
 * error, and the module with FP8 calls. The inputs are random; a program that knows real inputs
 * passes them instead. */
#include <stdio.h>
#include <stdlib.h>

#include <hlo/bisect.h>
#include <hlo/pass.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

/* Selects the matmuls to quantize, and rewrites the module. */
static hlo_status quantize(hlo_module *module, hlo_pass_options *options, double max_error) {
    hlo_arrays *inputs = NULL;
    hlo_bisection *measured = NULL;
    hlo_status status =
        hlo_arrays_draw_each(module, HLO_DRAW_REALISTIC, 0, 1, options->sink, &inputs);
    if (status == HLO_OK) {
        const hlo_arrays *const sets[] = {inputs};
        status =
            hlo_module_budget(module, options, NULL, sets, 1, max_error, options->sink, &measured);
    }
    if (status == HLO_OK) {
        hlo_bisection_print(measured, hlo_file_writer(stderr));
        options->wide = hlo_bisection_budget(measured)->wide;
        status = hlo_module_optimize(module, options, NULL);
    }
    hlo_bisection_free(measured);
    hlo_arrays_free(inputs);
    return status;
}

int main(int argc, char **argv) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *module = NULL;
    hlo_status status;
    char *end = NULL;
    const double max_error = argc == 3 ? strtod(argv[2], &end) : 0;

    if (!end || end == argv[2] || *end) {
        fputs("usage: quantize FILE MAX_ERROR\n", stderr);
        return 2;
    }
    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.quantize = "current";
    options.min_gain = 0.001; /* also quantize matmuls that are too small to become faster */
    status = hlo_module_parse_file(argv[1], &sink, &module);
    if (status == HLO_OK) status = quantize(module, &options, max_error);
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    hlo_module_free(module);
    if (status != HLO_OK) fprintf(stderr, "quantize: %s\n", hlo_status_name(status));
    return hlo_status_exit(status);
}
