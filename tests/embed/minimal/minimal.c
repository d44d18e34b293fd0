/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a module with the minimal library, and prints the number of FP8 matmuls. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/proto.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print((FILE *)user, diag, 100);
}

int main(int argc, char **argv) {
    const hlo_diag_sink sink = {print_diagnostic, stderr};
    hlo_module *module = NULL;
    hlo_report *report = NULL;
    hlo_status status = HLO_INVALID_USAGE;
    size_t fp8 = 0;
    if (argc == 2) status = hlo_module_parse_file(argv[1], &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, NULL, &report);
    if (status == HLO_OK) {
        for (size_t i = 0; i < hlo_report_count(report); i++)
            fp8 += hlo_report_verdict(report, i)->kind != HLO_VERDICT_WIDE;
        printf("%zu FP8\n", fp8);
        status = hlo_module_print_proto(module, HLO_PROTO_TEXT, &sink, stdout);
    }
    hlo_report_free(report);
    hlo_module_free(module);
    return status == HLO_OK ? 0 : 1;
}
