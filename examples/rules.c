/* SPDX-License-Identifier: Apache-2.0 */
/* rules RULES FILE: rewrites an HLO module with the built-in rules and the custom rules in RULES,
 * reports the custom rules that did not fire, and prints the rewritten module. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/text.h>

/* Prints a diagnostic. A note reports a rule that did not fire; an error has a position in the
 * rules or in the module. */
static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

int main(int argc, char **argv) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *module = NULL;
    hlo_report *report = NULL;
    hlo_status status;

    if (argc != 3) {
        fputs("usage: rules RULES FILE\n", stderr);
        return 2;
    }
    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.rules = argv[1];
    options.verify_each = true; /* to report a wrong rule after its pass */
    status = hlo_module_parse_file(argv[2], &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    hlo_report_free(report);
    hlo_module_free(module);
    if (status != HLO_OK) fprintf(stderr, "rules: %s\n", hlo_status_name(status));
    return hlo_status_exit(status);
}
