/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite FILE: rewrites an HLO module, and prints it and the verdict on each matmul. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

int main(int argc, char **argv) {
    const hlo_diag_sink sink = {print_diagnostic, stderr};
    hlo_pass_options options;
    hlo_module *module = NULL;
    hlo_report *report = NULL;
    hlo_status status;
    size_t i;

    hlo_pass_options_init(&options); /* all passes, for sm_90 and CUDA 12.8 */
    options.sink = &sink;
    options.emit = HLO_EMIT_QDQ; /* plain HLO that XLA's GPU compiler turns into FP8 calls */
    status = hlo_module_parse_file(argc == 2 ? argv[1] : "-", &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, &report);
    for (i = 0; status == HLO_OK && i < hlo_report_count(report); i++) {
        const hlo_verdict *verdict = hlo_report_verdict(report, i);
        fprintf(stderr, "%s: %s\n", verdict->input_instruction,
                verdict->reason ? verdict->message : "FP8");
    }
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    hlo_report_free(report);
    hlo_module_free(module);
    return hlo_status_exit(status);
}
