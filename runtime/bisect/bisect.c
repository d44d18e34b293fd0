/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the original module with modules in which only one matmul, or all matmuls but one, are
 * rewritten. */
#include <stdlib.h>

#include "hlo/bisect.h"
#include "hlo/ir.h"
#include "ir/float/c_locale.h"

struct hlo_bisection {
    hlo_bisected *rows;
    size_t count;
    hlo_moved all, rounding;
    hlo_report *report; /* owns the names of rows */
    /* The members below are used only during construction. */
    const hlo_module *module;
    const hlo_pass_options *pass;
    const hlo_arrays *inputs;
    const hlo_diag_sink *sink;
    hlo_arrays *original;
    char *names; /* buffer for a list of all names */
};

static hlo_status execute(const hlo_bisection *s, const hlo_module *module,
                          const hlo_plan_options *how, hlo_arrays **out) {
    hlo_plan *plan = NULL;
    hlo_status status = hlo_plan_new(module, how, s->sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, s->inputs, s->sink, out);
    hlo_plan_free(plan);
    return status;
}

/* Rewrites a copy of the module; matmuls in `wide` stay wide. `out_report` may be NULL. */
static hlo_status rewrite(const hlo_bisection *s, const char *wide, hlo_module **out,
                          hlo_report **out_report) {
    hlo_pass_options pass = *s->pass;
    pass.wide = wide;
    hlo_status status = hlo_module_clone(s->module, out);
    return status == HLO_OK ? hlo_module_optimize(*out, &pass, out_report) : status;
}

static hlo_status measure(const hlo_bisection *s, const hlo_arrays *found, hlo_moved *out) {
    *out = (hlo_moved){-1, 0};
    for (size_t i = 0; i < hlo_arrays_count(found); i++) {
        double size;
        const hlo_status status =
            hlo_array_distance(hlo_arrays_at(s->original, i), hlo_arrays_at(found, i), &size);
        if (status != HLO_OK) return status;
        if (size > out->distance) *out = (hlo_moved){size, i};
    }
    return HLO_OK;
}

static hlo_status try(const hlo_bisection *s, const hlo_plan_options *plan, const char *wide,
                      hlo_moved *out) {
    hlo_module *module = NULL;
    hlo_arrays *found = NULL;
    hlo_status status = rewrite(s, wide, &module, NULL);
    if (status == HLO_OK) status = execute(s, module, plan, &found);
    if (status == HLO_OK) status = measure(s, found, out);
    hlo_arrays_free(found);
    hlo_module_free(module);
    return status;
}

/* Lists the matmuls that are rewritten, each name once. */
static hlo_status list(hlo_bisection *s) {
    size_t length = 1;
    const size_t most = hlo_report_count(s->report);
    s->rows = calloc(most + 1, sizeof *s->rows);
    if (!s->rows) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < most; i++) {
        const hlo_verdict *verdict = hlo_report_verdict(s->report, i);
        length += strlen(verdict->input_instr) + 1;
        bool known = verdict->kind == HLO_VERDICT_WIDE;
        for (size_t k = 0; k < s->count && !known; k++)
            known = strcmp(s->rows[k].matmul, verdict->input_instr) == 0;
        if (known) continue;
        s->rows[s->count].matmul = verdict->input_instr;
        s->rows[s->count++].op_name = verdict->op_name;
    }
    s->names = malloc(length);
    return s->names ? HLO_OK : HLO_OUT_OF_MEMORY;
}

/* Returns the names of the matmuls that are not converted to FP8: those that pass->wide selects,
 * and either row `index` or, with `others`, all other rows. Lists names of the input module instead
 * of the patterns of pass->wide, because another rewrite may assign other names to its FP8
 * calls. */
static const char *but(const hlo_bisection *s, size_t index, bool others) {
    char *at = s->names;
    for (size_t i = 0; s->pass->wide && i < hlo_report_count(s->report); i++) {
        const hlo_verdict *verdict = hlo_report_verdict(s->report, i);
        if (!verdict->reason || strcmp(verdict->reason, "wide-by-option") != 0) continue;
        if (at > s->names) *at++ = ',';
        at = stpcpy(at, verdict->input_instr);
    }
    for (size_t i = 0; i < s->count; i++) {
        if ((i == index) == others) continue;
        if (at > s->names) *at++ = ',';
        at = stpcpy(at, s->rows[i].matmul);
    }
    return at > s->names ? s->names : NULL;
}

static int by_distance(const void *a, const void *b) {
    const double x = ((const hlo_bisected *)a)->alone.distance,
                 y = ((const hlo_bisected *)b)->alone.distance;
    return (x < y) - (x > y);
}

hlo_status hlo_module_bisect(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *inputs,
                             const hlo_diag_sink *sink, hlo_bisection **out) {
    HLO_IN_C_LOCALE;
    hlo_pass_options defaults;
    hlo_pass_options_init(&defaults);
    defaults.sink = sink;
    *out = NULL;
    hlo_bisection *s = calloc(1, sizeof *s);
    if (!s) return HLO_OUT_OF_MEMORY;
    s->module = module;
    s->pass = pass ? pass : &defaults;
    s->inputs = inputs;
    s->sink = sink;
    hlo_module *rewritten = NULL;
    hlo_arrays *moved = NULL;
    hlo_plan_options how;
    hlo_plan_options_init(&how);
    if (plan) {
        how.devices = plan->devices;
        how.progress = plan->progress;
        how.progress_user = plan->progress_user;
    }
    hlo_status status = execute(s, module, &how, &s->original);
    how.perturbed = how.roundings_may_be_dropped = true;
    if (status == HLO_OK) status = rewrite(s, s->pass->wide, &rewritten, &s->report);
    if (status == HLO_OK) status = list(s);
    if (status == HLO_OK) status = try(s, plan, s->pass->wide, &s->all);
    if (status == HLO_OK) status = execute(s, module, &how, &moved);
    if (status == HLO_OK) status = measure(s, moved, &s->rounding);
    for (size_t i = 0; i < s->count && status == HLO_OK; i++) {
        status = try(s, plan, but(s, i, true), &s->rows[i].alone);
        if (status == HLO_OK) status = try(s, plan, but(s, i, false), &s->rows[i].without);
    }
    if (status == HLO_OK) qsort(s->rows, s->count, sizeof *s->rows, by_distance);
    hlo_arrays_free(moved);
    hlo_module_free(rewritten);
    hlo_arrays_free(s->original);
    free(s->names);
    if (status == HLO_OK)
        *out = s;
    else
        hlo_bisection_free(s);
    return status;
}

void hlo_bisection_free(hlo_bisection *bisection) {
    if (!bisection) return;
    hlo_report_free(bisection->report);
    free(bisection->rows);
    free(bisection);
}

size_t hlo_bisection_count(const hlo_bisection *bisection) {
    return bisection->count;
}

const hlo_bisected *hlo_bisection_at(const hlo_bisection *bisection, size_t index) {
    return &bisection->rows[index];
}

hlo_moved hlo_bisection_all(const hlo_bisection *bisection) {
    return bisection->all;
}

hlo_moved hlo_bisection_rounding(const hlo_bisection *bisection) {
    return bisection->rounding;
}

static void print_line(const char *name, const hlo_moved *alone, const hlo_moved *without,
                       const char *op_name, FILE *out) {
    fprintf(out, "%12.3g %7zu", alone->distance, alone->output);
    if (without)
        fprintf(out, " %12.3g %7zu", without->distance, without->output);
    else
        fprintf(out, " %20s", "");
    hlo_print_plain(out, "  %s", name);
    hlo_print_plain(out, "  %s", op_name ? op_name : "");
    fputc('\n', out);
}

void hlo_bisection_print(const hlo_bisection *b, FILE *out) {
    HLO_IN_C_LOCALE;
    fprintf(
        out,
        "bisect: %zu rewritten matmuls; relative change of the most affected output (norm of the "
        "difference / norm of the output)\n%12s %7s %12s %7s  matmul\n",
        b->count, "alone", "output", "all others", "output");
    for (size_t i = 0; i < b->count; i++)
        print_line(b->rows[i].matmul, &b->rows[i].alone, &b->rows[i].without, b->rows[i].op_name,
                   out);
    print_line("all matmuls", &b->all, NULL, NULL, out);
    print_line("none (different rounding)", &b->rounding, NULL, NULL, out);
}
