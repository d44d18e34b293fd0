/* hlo-fp8-opt: reads HLO modules, rewrites their matmuls to fused FP8 calls, prints them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text.h"
#include "options.h"
#include "output.h"

typedef struct opt_job {
    options options;
    hlo_pass_options pass;
    hlo_module **modules; /* one per input */
    int count;
} opt_job;

static void print_remarks(const opt_job *job, const hlo_report *report) {
    const option_value *values = job->options.values;
    if (values[OPTION_REMARKS].given)
        hlo_report_print(report, (hlo_remarks)values[OPTION_REMARKS].number, stderr);
    if (values[OPTION_TIME_PASSES].given) hlo_report_print_times(report, stderr);
}

static hlo_status process(opt_job *job, const char *path) {
    const option_value *values = job->options.values;
    hlo_module *module;
    hlo_status status = hlo_module_parse_file(path, &options_sink, &module);
    if (status != HLO_OK) return status;
    job->modules[job->count++] = module;
    if (!values[OPTION_NO_VERIFY].given) status = hlo_module_verify(module, &options_sink);
    if (status != HLO_OK) return status;
    hlo_report *report;
    status = hlo_module_optimize(module, &job->pass, &report);
    if (status != HLO_OK) return status;
    print_remarks(job, report);
    hlo_report_free(report);
    if (values[OPTION_STATS].given) hlo_module_print_stats(module, stderr);
    return HLO_OK;
}

static hlo_status complain(const char *what, const char *name) {
    fprintf(stderr, "hlo-fp8-opt: error: cannot %s %s: %s\n", what, name, strerror(errno));
    return HLO_INVALID_INPUT;
}

static hlo_status print_all(const opt_job *job) {
    output out;
    const char *path = job->options.values[OPTION_OUTPUT].text;
    if (!output_open(&out, path)) return complain("open", out.name);
    hlo_status status = HLO_OK;
    for (int i = 0; i < job->count && status == HLO_OK; i++) {
        if (i) fputs("// -----\n", out.file);
        status = hlo_module_print(job->modules[i], out.file);
    }
    if (!output_close(&out, status == HLO_OK)) return complain("write", out.name);
    return status;
}

static int list_passes(void) {
    for (size_t i = 0; i < hlo_pass_count(); i++)
        printf("%-24s  %s\n", hlo_pass_name(i), hlo_pass_help(i));
    return fflush(stdout) == 0 ? 0 : hlo_status_exit(complain("write", "standard output"));
}

static hlo_status run(opt_job *job) {
    hlo_status status = HLO_OK;
    for (int i = 0; i < job->options.file_count && status == HLO_OK; i++)
        status = process(job, job->options.files[i]);
    if (status == HLO_OK) status = print_all(job);
    if (status == HLO_OUT_OF_MEMORY)
        fprintf(stderr, "hlo-fp8-opt: error: %s\n", hlo_status_name(status));
    return status;
}

int main(int argc, char **argv) {
    opt_job job = {0};
    int exit_status;
    if (!options_parse(PROGRAM_OPT, argc, argv, &job.options, &exit_status)) return exit_status;
    const option_value *values = job.options.values;
    if (values[OPTION_LIST_PASSES].given) return list_passes();
    if (job.options.file_count == 0) return options_refuse(PROGRAM_OPT, "no input file");
    if (!options_pass(PROGRAM_OPT, &job.options, &job.pass, &exit_status)) return exit_status;
    job.modules = calloc((size_t)job.options.file_count, sizeof *job.modules);
    hlo_status status = job.modules ? run(&job) : HLO_OUT_OF_MEMORY;
    for (int i = 0; i < job.count; i++) hlo_module_free(job.modules[i]);
    free(job.modules);
    return hlo_status_exit(status);
}
