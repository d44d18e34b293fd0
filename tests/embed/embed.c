/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a module from memory, rewrites it, prints the verdict of each matmul and the result, and
 * runs the original and the rewritten module on the same inputs. It only uses the installed
 * library; docs/embedding.md explains it. */
#include <stdio.h>
#include <string.h>

#include <hlo/pass.h>
#include <hlo/runtime.h>
#include <hlo/text.h>

static const char text[] =
    "HloModule scaled\n"
    "\n"
    "ENTRY %main (a: f8e4m3fn[32,64], b: f8e4m3fn[64,128], sa: f32[], w: f32[128,16])\n"
    "    -> f32[32,16] {\n"
    "  %a = f8e4m3fn[32,64]{1,0} parameter(0)\n"
    "  %b = f8e4m3fn[64,128]{1,0} parameter(1)\n"
    "  %sa = f32[] parameter(2)\n"
    "  %w = f32[128,16]{1,0} parameter(3)\n"
    "  %a_wide = f32[32,64]{1,0} convert(%a)\n"
    "  %a_scale = f32[32,64]{1,0} broadcast(%sa), dimensions={}\n"
    "  %a_real = f32[32,64]{1,0} multiply(%a_wide, %a_scale)\n"
    "  %b_real = f32[64,128]{1,0} convert(%b)\n"
    "  %hidden = f32[32,128]{1,0} dot(%a_real, %b_real), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0}\n"
    "  ROOT %out = f32[32,16]{1,0} dot(%hidden, %w), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0}\n"
    "}\n";

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

static void print_verdicts(const hlo_report *report) {
    size_t i;
    for (i = 0; i < hlo_report_count(report); i++) {
        const hlo_verdict *verdict = hlo_report_verdict(report, i);
        if (verdict->kind == HLO_VERDICT_WIDE)
            printf("%u: %s %s stays wide: %s\n", (unsigned)verdict->line,
                   verdict->input_instruction, verdict->shape, verdict->reason);
        else
            printf("%u: %s %s is FP8, epilogue %s\n", (unsigned)verdict->line,
                   verdict->input_instruction, verdict->shape, verdict->epilogue);
    }
}

/* Runs `module` on `inputs` with the CPU backend. */
static hlo_status run(const hlo_module *module, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                      hlo_arrays **out_outputs) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_status status;

    hlo_plan_options_init(&options);
    options.bounds = true;
    options.roundings_may_be_dropped = true; /* the passes may drop roundings */
    status = hlo_plan_new(module, &options, sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, sink, out_outputs);
    hlo_plan_free(plan);
    return status;
}

static hlo_status compare(const hlo_module *before, const hlo_module *after,
                          const hlo_diag_sink *sink) {
    hlo_arrays *inputs = NULL, *expected = NULL, *found = NULL;
    hlo_status status = hlo_arrays_draw(before, 0, sink, &inputs);
    if (status == HLO_OK) status = run(before, inputs, sink, &expected);
    if (status == HLO_OK) status = run(after, inputs, sink, &found);
    if (status == HLO_OK) status = hlo_arrays_compare(expected, found, hlo_file_writer(stderr));
    hlo_arrays_free(inputs);
    hlo_arrays_free(expected);
    hlo_arrays_free(found);
    return status;
}

int main(void) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *module = NULL, *before = NULL;
    hlo_report *report = NULL;
    hlo_status status;

    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;

    status = hlo_module_parse(text, strlen(text), "scaled.hlo", &sink, &module);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, &sink);
    if (status == HLO_OK) status = hlo_module_clone(module, &before);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK) {
        print_verdicts(report);
        status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    }
    if (status == HLO_OK) status = compare(before, module, &sink);
    if (status != HLO_OK) fprintf(stderr, "embed: %s\n", hlo_status_name(status));

    hlo_report_free(report);
    hlo_module_free(before);
    hlo_module_free(module);
    return hlo_status_exit(status);
}
