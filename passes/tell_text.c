/* Verdicts for people: tables with a line for each, or for all that are alike, and a summary. */
#include <stdlib.h>
#include <string.h>

#include "passes/tell.h"

/* Green, yellow, red, magenta. */
static const char *const kind_colours[] = {[HLO_VERDICT_FP8] = "\033[32m",
                                           [HLO_VERDICT_MISSED] = "\033[33m",
                                           [HLO_VERDICT_WIDE] = "\033[31m",
                                           [HLO_VERDICT_LINT] = "\033[35m"};
#define HINT_COLOUR "\033[36m"
#define NO_COLOUR "\033[0m"

enum { CELL = 256, COLUMNS = 12 };
typedef char cells[COLUMNS][CELL];

/* The columns that all tables begin with. */
enum { PLACE, KIND, NAME, ALIKE, FIRST_OWN };

typedef struct table {
    void (*fill)(const hlo_verdict *v, cells out); /* its own columns; `out` is empty at first */
    const char *heads[COLUMNS];                    /* NULL: none */
    unsigned numbers;                              /* a bit per column that is set right */
    unsigned names;                                /* a bit per column that holds a name */
    int widths[COLUMNS];                           /* of the cells; 0: the column is left out */
    tell_groups rows;                              /* of verdicts of one module */
} table;

static void widen(table *form, cells row) {
    for (int column = 0; column < COLUMNS; column++) {
        int width = (int)strlen(row[column]);
        if (width > form->widths[column]) form->widths[column] = width;
    }
}

static void fill_row(const table *form, const tell_group *g, cells out) {
    const hlo_verdict *v = g->first;
    for (int column = 0; column < COLUMNS; column++) out[column][0] = '\0';
    if (v->line)
        snprintf(out[PLACE], CELL, "%s:%u:%u:", v->file, v->line, v->column);
    else
        snprintf(out[PLACE], CELL, "%s", v->file);
    snprintf(out[KIND], CELL, "%s", tell_kinds[v->kind]);
    snprintf(out[NAME], CELL, "%s", v->instr);
    if (g->count > 1) snprintf(out[ALIKE], CELL, "%zu alike", g->count);
    form->fill(v, out);
}

/* `colour` of the column KIND; NULL: none. */
static void print_row(const telling *t, const table *form, cells row, const char *colour,
                      const char *end) {
    for (int column = 0; column < COLUMNS; column++) {
        int width = form->widths[column];
        if (!width) continue;
        const char *paint = colour && column == KIND ? colour : "";
        fprintf(t->out, "%s%*s%s  ", paint, form->numbers >> column & 1 ? width : -width,
                row[column], *paint ? NO_COLOUR : "");
    }
    fprintf(t->out, "%s\n", end ? end : "");
}

static hlo_status add_verdict(table *form, const hlo_verdict *v, size_t report) {
    char module[24];
    cells row;
    fill_row(form, &(tell_group){.first = v}, row);
    snprintf(module, sizeof module, "%zu", report);
    tell_groups_key(&form->rows, module, false);
    tell_groups_key(&form->rows, row[KIND], false);
    for (int column = FIRST_OWN; column < COLUMNS; column++)
        tell_groups_key(&form->rows, row[column], form->names >> column & 1);
    if (v->kind == HLO_VERDICT_LINT) tell_groups_key(&form->rows, v->message, false);
    tell_groups_key(&form->rows, v->op_name, true);
    return tell_groups_add(&form->rows, v);
}

typedef const hlo_verdict *step(const telling *, size_t *, size_t *);

/* The rows of what `steps` go through. The caller closes form->rows, whatever is returned. */
static hlo_status make_rows(table *form, const telling *t, step *const *steps, size_t step_count) {
    size_t total = 0;
    for (int kind = 0; kind < TELL_KINDS; kind++) total += t->sum.kinds[kind];
    hlo_status status = tell_groups_open(&form->rows, total);
    for (size_t i = 0; i < step_count && status == HLO_OK; i++) {
        size_t report = 0, index = 0;
        for (const hlo_verdict *v; status == HLO_OK && (v = steps[i](t, &report, &index));)
            status = add_verdict(form, v, report);
    }
    for (size_t i = 0; i < form->rows.count; i++) {
        cells row;
        fill_row(form, &form->rows.all[i], row);
        widen(form, row);
    }
    return status;
}

/* ------------------------------------------------------------------------------- the last lines */

static void fill_source(const hlo_verdict *v, char *out) {
    if (v->source_file) snprintf(out, CELL, "%s:%ld", v->source_file, v->source_line);
}

/* `; 6 wide: 5 not-quantised, 1 one-operand-wide`, reasons in the order of why.def. */
static void tell_kind(const telling *t, hlo_verdict_kind kind, const char *label) {
    if (!t->sum.kinds[kind]) return;
    fprintf(t->out, "; %zu %s", t->sum.kinds[kind], label);
    const char *lead = ":";
    for (int reason = 0; reason < HLO_WHY_COUNT; reason++) {
        if (!t->sum.reasons[kind][reason]) continue;
        fprintf(t->out, "%s %zu %s", lead, t->sum.reasons[kind][reason],
                hlo_reason_name((size_t)reason));
        lead = ",";
    }
}

static void tell_summary_line(const telling *t) {
    fprintf(t->out, "%zu of %zu matmuls in FP8", tell_fp8_count(&t->sum), t->sum.total);
    if (t->sum.flops > 0)
        fprintf(t->out, " (%.0f %% of FLOPs)", 100 * t->sum.fp8_flops / t->sum.flops);
    tell_kind(t, HLO_VERDICT_MISSED, "with something missed");
    tell_kind(t, HLO_VERDICT_WIDE, "wide");
    tell_kind(t, HLO_VERDICT_LINT, "lints");
    fputc('\n', t->out);
}

/* ----------------------------------------------------------------------------------------- text */

enum { SHAPE = FIRST_OWN, OPERANDS, OUTCOME, BLOCKER, SOURCE };

static void fill_text(const hlo_verdict *v, cells out) {
    snprintf(out[SHAPE], CELL, "%s", v->shape);
    snprintf(out[OPERANDS], CELL, "%s", v->operands);
    snprintf(out[OUTCOME], CELL, "%s%s%s", v->epilogue, *v->epilogue && v->reason ? ", " : "",
             v->reason ? v->reason : "");
    if (v->blocker) snprintf(out[BLOCKER], CELL, "at %s", v->blocker);
    fill_source(v, out[SOURCE]);
}

void tell_reasons(FILE *out, const bool has_reason[HLO_WHY_COUNT], bool coloured) {
    for (size_t reason = 0; reason < HLO_WHY_COUNT; reason++)
        if (has_reason[reason])
            fprintf(out, "%s: %s\n    %shint: %s%s\n", hlo_reason_name(reason),
                    hlo_reason_text(reason), coloured ? HINT_COLOUR : "", hlo_reason_hint(reason),
                    coloured ? NO_COLOUR : "");
}

hlo_status tell_text(const telling *t) {
    step *const steps[] = {tell_next, tell_next_lint};
    table form = {.fill = fill_text, .numbers = 1U << ALIKE, .names = 1U << BLOCKER};
    bool has_reason[HLO_WHY_COUNT] = {false};
    hlo_status status = make_rows(&form, t, steps, 2);
    for (size_t i = 0; i < form.rows.count && status == HLO_OK; i++) {
        const hlo_verdict *v = form.rows.all[i].first;
        cells row;
        fill_row(&form, &form.rows.all[i], row);
        print_row(t, &form, row, t->coloured ? kind_colours[v->kind] : NULL, v->op_name);
        if (!v->reason) continue;
        hlo_reason reason = hlo_reason_find(v->reason);
        has_reason[reason] = true;
        /* A lint has more to say than its reason does where it names values. */
        if (strcmp(v->message, hlo_reason_text(reason)) != 0)
            fprintf(t->out, "    %s\n", v->message);
    }
    tell_groups_close(&form.rows);
    if (status != HLO_OK) return status;
    tell_reasons(t->out, has_reason, t->coloured);
    tell_summary_line(t);
    return HLO_OK;
}

/* ---------------------------------------------------------------------------------------- costs */

enum {
    RUNS = FIRST_OWN,
    GFLOP,
    BYTES_WERE,
    BYTES_ARE,
    TIME_WAS,
    TIME_IS,
    GAIN,
    IN_FP8,
    COST_SOURCE
};

static void fill_time(double seconds, char *out) {
    if (seconds > 0)
        snprintf(out, CELL, "%.3g", 1e6 * seconds);
    else
        snprintf(out, CELL, "?");
}

static void fill_costs(const hlo_verdict *v, cells out) {
    if (v->runs != 1) snprintf(out[RUNS], CELL, "%g x", v->runs);
    snprintf(out[GFLOP], CELL, "%.3g", v->flops / 1e9);
    snprintf(out[BYTES_WERE], CELL, "%.3g", v->input_bytes / 1e6);
    snprintf(out[BYTES_ARE], CELL, "%.3g", v->bytes / 1e6);
    fill_time(v->input_seconds, out[TIME_WAS]);
    fill_time(v->seconds, out[TIME_IS]);
    if (v->kind != HLO_VERDICT_WIDE && v->seconds > 0)
        snprintf(out[GAIN], CELL, "%.2fx", v->input_seconds / v->seconds);
    if (v->kind == HLO_VERDICT_WIDE && v->fp8_seconds > 0 && v->seconds > 0)
        snprintf(out[IN_FP8], CELL, "%.2fx", v->seconds / v->fp8_seconds);
    fill_source(v, out[COST_SOURCE]);
}

static double time_of(const tell_group *g) {
    const hlo_verdict *v = g->first;
    return (double)g->count * v->runs * v->seconds;
}

static int by_time(const void *a, const void *b) {
    const tell_group *x = a, *y = b;
    double left = time_of(x), right = time_of(y);
    if (left != right) return left > right ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

hlo_status tell_costs(const telling *t) {
    step *const steps[] = {tell_next};
    table form = {.fill = fill_costs,
                  .heads = {[GFLOP] = "GFLOP",
                            [BYTES_WERE] = "MB",
                            [BYTES_ARE] = "MB now",
                            [TIME_WAS] = "us",
                            [TIME_IS] = "us now",
                            [GAIN] = "gain",
                            [IN_FP8] = "in FP8"},
                  .numbers = 1U << ALIKE | (((1U << COST_SOURCE) - 1) & ~((1U << RUNS) - 1))};
    hlo_status status = make_rows(&form, t, steps, 1);
    if (form.rows.count) {
        cells heads;
        for (int column = 0; column < COLUMNS; column++)
            snprintf(heads[column], CELL, "%s",
                     form.heads[column] && form.widths[column] ? form.heads[column] : "");
        widen(&form, heads);
        print_row(t, &form, heads, NULL, NULL);
        qsort(form.rows.all, form.rows.count, sizeof *form.rows.all, by_time);
    }
    for (size_t i = 0; i < form.rows.count; i++) {
        cells row;
        fill_row(&form, &form.rows.all[i], row);
        print_row(t, &form, row, NULL, ((const hlo_verdict *)form.rows.all[i].first)->op_name);
    }
    tell_groups_close(&form.rows);
    if (status != HLO_OK) return status;
    tell_summary_line(t);
    if (t->sum.seconds > 0)
        fprintf(t->out, "by roofline %.3g us, now %.3g us: %.2fx\n", 1e6 * t->sum.input_seconds,
                1e6 * t->sum.seconds, t->sum.input_seconds / t->sum.seconds);
    return HLO_OK;
}
