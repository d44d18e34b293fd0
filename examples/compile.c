/* SPDX-License-Identifier: Apache-2.0 */
/* compile PLUGIN TARGET FILE: rewrites an HLO module to a form that XLA accepts, compiles it with
 * XLA in a PJRT plugin, and prints the module that XLA optimized. The target GPU need not be
 * present: TARGET is a GpuTargetConfigProto in protobuf's text format that describes it. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/pjrt.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

static hlo_status compile(const hlo_module *module, char **argv, const hlo_diag_sink *sink) {
    static const char *const settings[] = {"xla_gpu_autotune_level=0"};
    hlo_pjrt_options options;
    hlo_pjrt *pjrt = NULL;
    hlo_module *made = NULL;
    hlo_status status;

    hlo_pjrt_options_init(&options);
    options.plugin = argv[1];
    options.target = argv[2];
    options.settings = settings;
    options.setting_count = 1;
    status = hlo_pjrt_new(module, &options, sink, &pjrt);
    if (status == HLO_OK) status = hlo_pjrt_optimized(pjrt, sink, &made);
    if (status == HLO_OK) status = hlo_module_print(made, NULL, hlo_file_writer(stdout));
    hlo_module_free(made);
    hlo_pjrt_free(pjrt);
    return status;
}

int main(int argc, char **argv) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *module = NULL;
    hlo_status status;

    if (argc != 4) {
        fputs("usage: compile PLUGIN TARGET FILE\n", stderr);
        return 2;
    }
    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.emit = HLO_EMIT_QDQ;
    status = hlo_module_parse_file(argv[3], &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, NULL);
    if (status == HLO_OK) status = compile(module, argv, &sink);
    hlo_module_free(module);
    if (status != HLO_OK) fprintf(stderr, "compile: %s\n", hlo_status_name(status));
    return hlo_status_exit(status);
}
