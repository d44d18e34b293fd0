#include "bisect.h"

#include <math.h>
#include <stdlib.h>

#include "hlo/ir.h"
#include "options.h"

/* The distance of an execution from the original: of the output that is furthest. */
typedef struct distance {
    double size; /* norm of the difference over the norm of the original */
    size_t output;
} distance;

typedef struct row {
    const char *name; /* of the matmul in the input; borrowed from the report */
    const char *op_name;
    distance alone, without;
} row;

typedef struct search {
    const hlo_module *module;
    const hlo_pass_options *pass;
    const hlo_plan_options *plan;
    const hlo_arrays *inputs;
    const hlo_arrays *original;
    row *rows;
    size_t count;
    char *names; /* room for a list of all names */
} search;

static hlo_status execute(const search *s, const hlo_module *module, const hlo_plan_options *how,
                          hlo_arrays **out) {
    hlo_plan *plan = NULL;
    hlo_status status = hlo_plan_new(module, how, &options_sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, s->inputs, &options_sink, out);
    hlo_plan_free(plan);
    return status;
}

/* Rewrites a copy of the module but for the matmuls in `wide`; *out_report may be NULL. */
static hlo_status rewrite(const search *s, const char *wide, hlo_module **out,
                          hlo_report **out_report) {
    hlo_pass_options pass = *s->pass;
    pass.wide = wide;
    hlo_status status = hlo_module_clone(s->module, out);
    return status == HLO_OK ? hlo_module_optimize(*out, &pass, out_report) : status;
}

static hlo_status measure(const search *s, const hlo_arrays *found, distance *out) {
    *out = (distance){-1, 0};
    for (size_t i = 0; i < hlo_arrays_count(found); i++) {
        double size;
        const hlo_status status =
            hlo_array_distance(hlo_arrays_at(s->original, i), hlo_arrays_at(found, i), &size);
        if (status != HLO_OK) return status;
        if (size > out->size) *out = (distance){size, i};
    }
    return HLO_OK;
}

static hlo_status try(const search *s, const char *wide, distance *out) {
    hlo_module *module = NULL;
    hlo_arrays *found = NULL;
    hlo_status status = rewrite(s, wide, &module, NULL);
    if (status == HLO_OK) status = execute(s, module, s->plan, &found);
    if (status == HLO_OK) status = measure(s, found, out);
    hlo_arrays_free(found);
    hlo_module_free(module);
    return status;
}

/* Lists the matmuls that are rewritten, each name once. */
static hlo_status list(search *s, const hlo_report *report) {
    size_t length = 1;
    s->rows = calloc(hlo_report_count(report) + 1, sizeof *s->rows);
    if (!s->rows) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < hlo_report_count(report); i++) {
        const hlo_verdict *verdict = hlo_report_verdict(report, i);
        bool known = verdict->kind == HLO_VERDICT_WIDE;
        for (size_t k = 0; k < s->count && !known; k++)
            known = strcmp(s->rows[k].name, verdict->input_instr) == 0;
        if (known) continue;
        s->rows[s->count].name = verdict->input_instr;
        s->rows[s->count++].op_name = verdict->op_name;
        length += strlen(verdict->input_instr) + 1;
    }
    const char *given = s->pass->wide;
    s->names = malloc(length + (given ? strlen(given) + 1 : 0));
    return s->names ? HLO_OK : HLO_OUT_OF_MEMORY;
}

/* Returns the names of what stays wide: what the user names, and one row, or all others. */
static const char *but(const search *s, size_t index, bool others) {
    char *at = s->names;
    if (s->pass->wide) at = stpcpy(at, s->pass->wide);
    for (size_t i = 0; i < s->count; i++) {
        if ((i == index) == others) continue;
        if (at > s->names) *at++ = ',';
        at = stpcpy(at, s->rows[i].name);
    }
    return at > s->names ? s->names : NULL;
}

static int by_distance(const void *a, const void *b) {
    const double x = ((const row *)a)->alone.size, y = ((const row *)b)->alone.size;
    return (x < y) - (x > y);
}

static void print_line(const char *name, const distance *alone, const distance *without,
                       const char *op_name) {
    printf("%12.3g %7zu", alone->size, alone->output);
    if (without)
        printf(" %12.3g %7zu", without->size, without->output);
    else
        printf(" %20s", "");
    hlo_print_plain(stdout, "  %s", name);
    hlo_print_plain(stdout, "  %s", op_name ? op_name : "");
    putchar('\n');
}

static hlo_status search_all(search *s) {
    hlo_report *report = NULL;
    hlo_module *module = NULL;
    hlo_arrays *moved = NULL;
    hlo_plan_options how;
    distance all, rounding;
    hlo_plan_options_init(&how);
    how.perturbed = how.roundings_may_be_dropped = true;
    hlo_status status = rewrite(s, s->pass->wide, &module, &report);
    if (status == HLO_OK) status = list(s, report);
    if (status == HLO_OK) status = try(s, s->pass->wide, &all);
    if (status == HLO_OK) status = execute(s, s->module, &how, &moved);
    if (status == HLO_OK) status = measure(s, moved, &rounding);
    for (size_t i = 0; i < s->count && status == HLO_OK; i++) {
        status = try(s, but(s, i, true), &s->rows[i].alone);
        if (status == HLO_OK) status = try(s, but(s, i, false), &s->rows[i].without);
    }
    if (status == HLO_OK) {
        printf("bisect: %zu rewritten matmuls; the output that moves most, by the norm of the "
               "difference over its own\n%12s %7s %12s %7s  matmul\n",
               s->count, "alone", "output", "all but it", "output");
        qsort(s->rows, s->count, sizeof *s->rows, by_distance);
        for (size_t i = 0; i < s->count; i++)
            print_line(s->rows[i].name, &s->rows[i].alone, &s->rows[i].without, s->rows[i].op_name);
        print_line("all of them", &all, NULL, NULL);
        print_line("none, rounded another way", &rounding, NULL, NULL);
    }
    hlo_arrays_free(moved);
    hlo_module_free(module);
    free(s->rows);
    free(s->names);
    hlo_report_free(report);
    return status;
}

hlo_status bisect(const hlo_module *module, const hlo_pass_options *pass,
                  const hlo_plan_options *plan, const hlo_arrays *inputs) {
    hlo_arrays *original = NULL;
    hlo_plan_options how;
    search s = {.module = module, .pass = pass, .plan = plan, .inputs = inputs};
    hlo_plan_options_init(&how);
    hlo_status status = execute(&s, module, &how, &original);
    s.original = original;
    if (status == HLO_OK) status = search_all(&s);
    hlo_arrays_free(original);
    return status;
}
