/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of pass.h. */
#include "reference.h"

#include <hlo/pass.h>
#include <hlo/text.h>

/* [optimize] */
/* Rewrites a module, and prints the verdict on each matmul. */
static hlo_status rewrite(hlo_module *module) {
    hlo_pass_options options;
    hlo_report *report = NULL;
    hlo_status status;
    size_t i;

    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.emit = HLO_EMIT_QDQ;
    status = hlo_module_optimize(module, &options, &report);
    for (i = 0; status == HLO_OK && i < hlo_report_count(report); i++) {
        const hlo_verdict *verdict = hlo_report_verdict(report, i);
        if (verdict->kind == HLO_VERDICT_WIDE)
            printf("%s stays wide: %s\n", verdict->input_instruction, verdict->message);
        else
            printf("%s is FP8, epilogue %s\n", verdict->input_instruction, verdict->epilogue);
    }
    hlo_report_free(report);
    return status;
}
/* [optimize] */

/* [check] */
/* Checks options from a command line before any module is read. */
static hlo_status check_passes(const char *passes) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = passes;
    options.sink = &sink;
    return hlo_pass_options_check(&options);
}
/* [check] */

/* [user-pass] */
/* A pass that counts computations. */
static hlo_status count(void *user, hlo_module *module, const hlo_diag_sink *diags) {
    (void)module;
    (void)diags;
    ++*(int *)user;
    return HLO_OK;
}

static hlo_status run_own_pass(hlo_module *module, int *calls) {
    hlo_pass_options options;
    hlo_user_pass pass;
    const hlo_user_pass *passes = &pass;

    hlo_user_pass_init(&pass);
    pass.name = "count";
    pass.help = "counts its calls";
    pass.run = count;
    pass.user = calls;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.passes = "count,default";
    options.user_passes = &passes;
    options.user_pass_count = 1;
    return hlo_module_optimize(module, &options, NULL);
}
/* [user-pass] */

/* [passes] */
/* Lists the built-in passes; a sequence also with its passes. */
static hlo_status list_passes(void) {
    size_t i;
    for (i = 0; i < hlo_pass_count(); i++) {
        const char *sequence = hlo_pass_sequence(i);
        printf("%s: %s\n", hlo_pass_name(i), sequence ? sequence : hlo_pass_help(i));
    }
    return hlo_passes_print(NULL, hlo_file_writer(stdout)); /* the same, as a table */
}
/* [passes] */

/* [extract] */
/* Reduces a module to one matmul with its quantization and epilogue. */
static hlo_status extract(const hlo_module *module, const char *matmul, hlo_module **out) {
    hlo_status status = hlo_module_clone(module, out);
    if (status == HLO_OK) status = hlo_module_extract(*out, matmul, NULL, &sink);
    return status;
}
/* [extract] */

/* [split] */
/* Moves the computations on the weight %w to a module of its own, which runs once. */
static hlo_status split(hlo_module *module, hlo_module **out_ahead) {
    return hlo_module_split(module, "w", &sink, out_ahead);
}
/* [split] */

/* [quantize] */
/* Quantizes wide matmuls. `reference` then has the quantization without FP8 calls, so that both can
 * be compared. */
static hlo_status quantize(hlo_module *module, hlo_module *reference) {
    hlo_pass_options options;
    hlo_status status;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.quantize = "current";
    options.min_gain = 0.01; /* a small matmul takes longer in FP8 */
    status = hlo_module_quantize(reference, &options);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, NULL);
    return status;
}
/* [quantize] */

/* [lints] */
/* Prints likely mistakes with scales and amaxes. */
static void print_lints(const hlo_report *report) {
    size_t i;
    for (i = 0; i < hlo_report_lint_count(report); i++) {
        const hlo_verdict *lint = hlo_report_lint(report, i);
        printf("%s: %s\n", lint->instruction, lint->message);
    }
}
/* [lints] */

/* [wide] */
/* Checks the words of an option for several modules: each word must match a matmul in one of them.
 */
static hlo_status check_words(const hlo_report *const *reports, size_t count, const char *words) {
    return hlo_reports_check_wide(reports, count, words, "command line", &sink);
}
/* [wide] */

/* [reasons] */
/* Prints each reason with its hint, and the length of its page. */
static void list_reasons(void) {
    size_t i;
    for (i = 0; i < hlo_reason_count(); i++) {
        const char *page = hlo_reason_page(i);
        printf("%s: %s; %s (%c...)\n", hlo_reason_name(i), hlo_reason_text(i), hlo_reason_hint(i),
               page[0]);
    }
}
/* [reasons] */

/* [times] */
static hlo_status print_times(hlo_module *module) {
    hlo_pass_options options;
    hlo_report *report = NULL;
    hlo_status status;
    hlo_pass_options_init_sized(&options, sizeof options); /* as hlo_pass_options_init() does */
    options.time_passes = true;
    status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK) status = hlo_report_print_times(report, hlo_file_writer(stdout));
    hlo_report_free(report);
    return status;
}
/* [times] */

/* Runs the examples that read a report. */
static hlo_status example_verdicts(hlo_module *module) {
    hlo_pass_options options;
    hlo_report *report = NULL;
    const hlo_report *reports[1];
    hlo_status status;
    hlo_pass_options_init(&options);
    options.lint = true;
    status = hlo_module_optimize(module, &options, &report);
    reports[0] = report;
    if (status == HLO_OK) print_lints(report);
    if (status == HLO_OK) status = check_words(reports, 1, "d");
    hlo_report_free(report);
    return status;
}

hlo_status example_pass(void) {
    hlo_module *modules[5] = {NULL, NULL, NULL, NULL, NULL}, *ahead = NULL, *one = NULL;
    hlo_status status = HLO_OK;
    int calls = 0, i;
    for (i = 0; i < 5 && status == HLO_OK; i++)
        status = read_text(i < 3 ? scaled : wide, &modules[i]);
    if (status == HLO_OK) status = extract(modules[0], "d", &one);
    if (status == HLO_OK) status = rewrite(modules[0]);
    if (status == HLO_OK) status = run_own_pass(modules[1], &calls);
    if (status == HLO_OK && calls != 1) status = HLO_INTERNAL;
    if (status == HLO_OK) status = example_verdicts(modules[2]);
    if (status == HLO_OK) status = quantize(modules[3], modules[4]);
    if (status == HLO_OK) status = split(modules[4], &ahead);
    if (status == HLO_OK) status = print_times(one);
    if (status == HLO_OK) status = check_passes("default,dce");
    if (status == HLO_OK) status = list_passes();
    list_reasons();
    hlo_module_free(one);
    hlo_module_free(ahead);
    for (i = 0; i < 5; i++) hlo_module_free(modules[i]);
    return status;
}
