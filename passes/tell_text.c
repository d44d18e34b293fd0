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

/* Verdicts of one module whose rows differ only in place and name, and in numbers where those are
 * parts of names: the layers of a model. One row, the first one's, stands for all. */
typedef struct group {
    const hlo_verdict *first;
    size_t report, number; /* of its module; of the group itself, in the order of the text */
    size_t count;
} group;

typedef struct table {
    void (*fill)(const hlo_verdict *v, cells out); /* its own columns; `out` is empty at first */
    const char *heads[COLUMNS];                    /* NULL: none */
    unsigned numbers;                              /* a bit per column that is set right */
    unsigned names;                                /* a bit per column that holds a name */
    int widths[COLUMNS];                           /* of the cells; 0: the column is left out */
    group *groups;
    size_t group_count;
    uint32_t *slots; /* by hash: the number of a group, counted from 1; 0: free */
    size_t slot_mask;
} table;

static void widen(table *form, cells row) {
    for (int column = 0; column < COLUMNS; column++) {
        int width = (int)strlen(row[column]);
        if (width > form->widths[column]) form->widths[column] = width;
    }
}

static void fill_row(const table *form, const group *g, cells out) {
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

/* ------------------------------------------------------------------------------------- grouping */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* FNV-1a; a run of digits of a name counts as one character. */
static uint64_t hash_text(uint64_t hash, const char *text, bool name) {
    for (const char *c = text; c && *c; c++) {
        if (name && is_digit(*c) && is_digit(c[1])) continue;
        hash = (hash ^ (unsigned char)(name && is_digit(*c) ? '0' : *c)) * 0x100000001b3;
    }
    return hash * 0x100000001b3;
}

static bool same_text(const char *a, const char *b, bool name) {
    if (!a || !b) return a == b;
    while (*a && *b) {
        if (name && is_digit(*a) && is_digit(*b)) {
            while (is_digit(*a)) a++;
            while (is_digit(*b)) b++;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static bool is_name(const table *form, int column) {
    return form->names >> column & 1;
}

static uint64_t hash_row(const table *form, const group *g, cells row) {
    uint64_t hash = 0xcbf29ce484222325 + g->report;
    for (int column = FIRST_OWN; column < COLUMNS; column++)
        hash = hash_text(hash, row[column], is_name(form, column));
    return hash_text(hash, g->first->op_name, true);
}

static bool same_row(const table *form, const group *a, cells row, const group *b) {
    if (a->report != b->report || a->first->kind != b->first->kind) return false;
    if (!same_text(a->first->op_name, b->first->op_name, true)) return false;
    if (a->first->kind == HLO_VERDICT_LINT &&
        !same_text(a->first->message, b->first->message, false))
        return false;
    cells other;
    fill_row(form, b, other);
    for (int column = FIRST_OWN; column < COLUMNS; column++)
        if (!same_text(row[column], other[column], is_name(form, column))) return false;
    return true;
}

static void add_verdict(table *form, const hlo_verdict *v, size_t report) {
    const group alone = {v, report, form->group_count, 1};
    cells row;
    fill_row(form, &alone, row);
    size_t at = hash_row(form, &alone, row) & form->slot_mask;
    for (; form->slots[at]; at = (at + 1) & form->slot_mask) {
        group *g = &form->groups[form->slots[at] - 1];
        if (!same_row(form, &alone, row, g)) continue;
        g->count++;
        return;
    }
    form->groups[form->group_count++] = alone;
    form->slots[at] = (uint32_t)form->group_count;
}

typedef const hlo_verdict *step(const telling *, size_t *, size_t *);

/* Groups what `steps` go through. The caller frees with close_table(), whatever is returned. */
static hlo_status open_table(table *form, const telling *t, step *const *steps, size_t step_count) {
    size_t total = 0, slots = 2;
    for (int kind = 0; kind < TELL_KINDS; kind++) total += t->sum.kinds[kind];
    while (slots < 2 * total) slots *= 2;
    form->slot_mask = slots - 1;
    form->groups = malloc((total + 1) * sizeof *form->groups);
    form->slots = calloc(slots, sizeof *form->slots);
    if (!form->groups || !form->slots) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < step_count; i++) {
        size_t report = 0, index = 0;
        for (const hlo_verdict *v; (v = steps[i](t, &report, &index));)
            add_verdict(form, v, report);
    }
    for (size_t i = 0; i < form->group_count; i++) {
        cells row;
        fill_row(form, &form->groups[i], row);
        widen(form, row);
    }
    return HLO_OK;
}

static void close_table(table *form) {
    free(form->groups);
    free(form->slots);
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

static void tell_reason(const telling *t, size_t reason) {
    fprintf(t->out, "%s: %s\n    %shint: %s%s\n", hlo_reason_name(reason), hlo_reason_text(reason),
            t->coloured ? HINT_COLOUR : "", hlo_reason_hint(reason), t->coloured ? NO_COLOUR : "");
}

hlo_status tell_text(const telling *t) {
    step *const steps[] = {tell_next, tell_next_lint};
    table form = {.fill = fill_text, .numbers = 1U << ALIKE, .names = 1U << BLOCKER};
    bool has_reason[HLO_WHY_COUNT] = {false};
    hlo_status status = open_table(&form, t, steps, 2);
    for (size_t i = 0; i < form.group_count && status == HLO_OK; i++) {
        const hlo_verdict *v = form.groups[i].first;
        cells row;
        fill_row(&form, &form.groups[i], row);
        print_row(t, &form, row, t->coloured ? kind_colours[v->kind] : NULL, v->op_name);
        if (!v->reason) continue;
        hlo_reason reason = hlo_reason_find(v->reason);
        has_reason[reason] = true;
        /* A lint has more to say than its reason does where it names values. */
        if (strcmp(v->message, hlo_reason_text(reason)) != 0)
            fprintf(t->out, "    %s\n", v->message);
    }
    close_table(&form);
    if (status != HLO_OK) return status;
    for (size_t reason = 0; reason < HLO_WHY_COUNT; reason++)
        if (has_reason[reason]) tell_reason(t, reason);
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

static double time_of(const group *g) {
    return (double)g->count * g->first->runs * g->first->seconds;
}

static int by_time(const void *a, const void *b) {
    const group *x = a, *y = b;
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
    hlo_status status = open_table(&form, t, steps, 1);
    if (form.group_count) {
        cells heads;
        for (int column = 0; column < COLUMNS; column++)
            snprintf(heads[column], CELL, "%s",
                     form.heads[column] && form.widths[column] ? form.heads[column] : "");
        widen(&form, heads);
        print_row(t, &form, heads, NULL, NULL);
        qsort(form.groups, form.group_count, sizeof *form.groups, by_time);
    }
    for (size_t i = 0; i < form.group_count; i++) {
        cells row;
        fill_row(&form, &form.groups[i], row);
        print_row(t, &form, row, NULL, form.groups[i].first->op_name);
    }
    close_table(&form);
    if (status != HLO_OK) return status;
    tell_summary_line(t);
    if (t->sum.seconds > 0)
        fprintf(t->out, "by roofline %.3g us, now %.3g us: %.2fx\n", 1e6 * t->sum.input_seconds,
                1e6 * t->sum.seconds, t->sum.input_seconds / t->sum.seconds);
    return HLO_OK;
}
