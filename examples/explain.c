/* SPDX-License-Identifier: Apache-2.0 */
/* explain FILE: rewrites the matmuls of an HLO module to FP8 calls, and prints the verdict on each
 * matmul and the rewritten module. Exits with status 3 if a matmul stays wide. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

/* Prints a line for each matmul. Returns the number of wide matmuls. */
static size_t print_verdicts(const hlo_report *report) {
    size_t i, wide = 0;
    for (i = 0; i < hlo_report_count(report); i++) {
        const hlo_verdict *verdict = hlo_report_verdict(report, i);
        fprintf(stderr, "%s:%u: %s %s: ", verdict->file, (unsigned)verdict->line,
                verdict->input_instruction, verdict->input_shape);
        if (verdict->kind != HLO_VERDICT_WIDE) {
            fprintf(stderr, "FP8, epilogue %s\n", verdict->epilogue);
            continue;
        }
        fprintf(stderr, "%s\n  hint: %s\n", verdict->message, verdict->hint);
        wide++;
    }
    return wide;
}

int main(int argc, char **argv) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *module = NULL;
    hlo_report *report = NULL;
    hlo_status status;
    size_t wide = 0;

    if (argc != 2) {
        fputs("usage: explain FILE\n", stderr);
        return 2;
    }
    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    status = hlo_module_parse_file(argv[1], &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK) wide = print_verdicts(report);
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    hlo_report_free(report);
    hlo_module_free(module);
    if (status != HLO_OK) fprintf(stderr, "explain: %s\n", hlo_status_name(status));
    return status == HLO_OK && wide ? 3 : hlo_status_exit(status);
}
