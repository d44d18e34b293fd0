/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a report as text: a summary with the matmuls by layer, or one line for each matmul. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"
#include "report/format.h"

/* The colors are green, yellow, red and magenta. */
static const char *const kind_colors[] = {[HLO_VERDICT_FP8] = "\033[32m",
                                          [HLO_VERDICT_MISSED] = "\033[33m",
                                          [HLO_VERDICT_WIDE] = "\033[31m",
                                          [HLO_VERDICT_LINT] = "\033[35m"};
#define HINT_COLOR "\033[36m"
#define NO_COLOR "\033[0m"

/* --------------------------------------------------------------------------------------- tables */

enum { CELL = WRITER_NAME, MAX_COLUMNS = 12, GAP = 2 };
typedef char cells[MAX_COLUMNS][CELL];

typedef struct column {
    const char *head; /* heading, or NULL */
    bool number;      /* right-aligned */
    int rank;         /* on a narrow terminal, the columns with the highest rank are omitted first,
                       * and the column with rank 0 is shortened last */
} column;

typedef struct table {
    const column *columns;
    int count;
    int kind;                                 /* the colored column */
    int widths[MAX_COLUMNS];                  /* 0 omits the column */
    void (*fill)(const void *row, cells out); /* all cells are empty on entry */
} table;

__attribute__((format(printf, 2, 3))) static void append(char *cell, const char *format, ...) {
    char text[CELL];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t used = strlen(cell);
    if (*text) snprintf(cell + used, CELL - used, "%s%s", used ? ", " : "", text);
}

/* Returns the number of characters. */
static int width_of(const char *text) {
    int width = 0;
    uint32_t code;
    for (size_t size = strlen(text), used; size; size -= used, text += used, width++) {
        used = hlo_utf8_decode(text, size, &code);
        if (!used) used = 1;
    }
    return width;
}

static void fill_row(const table *form, const void *row, cells out) {
    for (int i = 0; i < form->count; i++) out[i][0] = '\0';
    form->fill(row, out);
}

static void measure_row(table *form, const void *row) {
    cells out;
    fill_row(form, row, out);
    for (int i = 0; i < form->count; i++) {
        const int width = width_of(out[i]);
        if (width > form->widths[i]) form->widths[i] = width;
    }
}

/* Makes the table fit in `width` columns, unless that is 0. */
static void fit_table(table *form, unsigned width) {
    enum { SHORT = 32, SHORTEST = 12 };
    int total = -GAP, first = 0;
    for (int i = 0; i < form->count; i++) {
        const char *head = form->columns[i].head;
        if (head && form->widths[i] && form->widths[i] < (int)strlen(head))
            form->widths[i] = (int)strlen(head);
        if (form->widths[i]) total += form->widths[i] + GAP;
        if (form->columns[i].rank == 0) first = i;
    }
    int excess = width ? total - (int)width : 0, omitted[MAX_COLUMNS] = {0};
    const int cut = form->widths[first] - SHORT; /* what shortening the names makes free */
    while (excess > (cut > 0 ? cut : 0)) {
        int last = first;
        for (int i = 0; i < form->count; i++)
            if (form->widths[i] && form->columns[i].rank > form->columns[last].rank) last = i;
        if (last == first) break;
        excess -= form->widths[last] + GAP;
        omitted[last] = form->widths[last];
        form->widths[last] = 0;
    }
    /* Columns that are narrower than the last omitted one may fit. */
    for (int rank = 1, i; rank < MAX_COLUMNS; rank++) {
        for (i = 0; i < form->count && !(omitted[i] && form->columns[i].rank == rank); i++)
            continue;
        if (i == form->count || excess + omitted[i] + GAP > (cut > 0 ? cut : 0)) continue;
        excess += omitted[i] + GAP;
        form->widths[i] = omitted[i];
    }
    if (excess <= 0) return;
    form->widths[first] -= excess;
    if (form->widths[first] < SHORTEST) form->widths[first] = SHORTEST;
}

/* Prints a row, with the column form->kind in `color` unless that is NULL. A text that is wider
 * than its column is cut at its beginning: the end of a path or of a name says most. */
static void print_row(FILE *out, const table *form, cells row, const char *color) {
    int gap = 0;
    for (int i = 0; i < form->count; i++) {
        if (!form->widths[i]) continue;
        const char *text = row[i], *paint = color && i == form->kind ? color : "";
        int width = width_of(text);
        const bool cut = width > form->widths[i];
        for (uint32_t code; cut && width > form->widths[i] - 3; width--) {
            const size_t used = hlo_utf8_decode(text, strlen(text), &code);
            text += used ? used : 1;
        }
        if (cut) width += 3;
        const int pad = form->widths[i] - width;
        if (width) fprintf(out, "%*s", gap, "");
        if (width) gap = 0;
        if (form->columns[i].number && width) fprintf(out, "%*s", pad, "");
        fputs(paint, out);
        hlo_print_plain(out, "%s%s", cut ? "..." : "", text);
        if (*paint) fputs(NO_COLOR, out);
        gap += GAP + (form->columns[i].number && width ? 0 : width ? pad : form->widths[i]);
    }
    fputc('\n', out);
}

static void print_head(FILE *out, const table *form) {
    cells row;
    for (int i = 0; i < form->count; i++)
        snprintf(row[i], CELL, "%s", form->columns[i].head ? form->columns[i].head : "");
    print_row(out, form, row, NULL);
}

/* Prints text in lines that fit the terminal, which all begin with `indent` spaces. */
static void put_words(const report_writer *t, int indent, const char *text) {
    int used = 0;
    for (const char *at = text; *at;) {
        int size = (int)strcspn(at, " ");
        if (at[size] && at[size + 1] == '%') size += 1 + (int)strcspn(at + size + 1, " ");
        const bool breaks =
            t->options.width && used > indent && used + 1 + size > (int)t->options.width;
        if (breaks) fputc('\n', t->out);
        if (breaks) used = 0;
        used += fprintf(t->out, "%*s", used ? 1 : indent, "") + size;
        hlo_print_plain(t->out, "%.*s", size, at);
        at += size + (at[size] == ' ');
    }
    fputc('\n', t->out);
}

__attribute__((format(printf, 3, 4))) static void print_words(const report_writer *t, int indent,
                                                              const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_words(t, indent, text);
}

static void fill_source(const hlo_verdict *v, char *out) {
    if (v->source_file) snprintf(out, CELL, "%s:%ld", v->source_file, v->source_line);
}

/* --------------------------------------------------------------------------------------- totals */

static void print_totals(const report_writer *t) {
    char text[WRITER_TOTALS];
    put_words(t, 0, writer_totals(t->model, text));
}

/* Prints what FP8 gains, and whether that is worth the effort. */
static void print_gain(const report_writer *t) {
    const report_model *m = t->model;
    char why[1024];
    if (!m->target) return;
    if (*writer_gain(m, why, sizeof why)) print_words(t, 0, "%s", why);
    print_words(t, 0, "%s", writer_worth(m, why, sizeof why));
    if (*writer_plan(m, why, sizeof why)) print_words(t, 0, "%s", why);
    if (m->start.groups)
        print_words(t, 0, "Fix first: %s%s", m->start.layer, writer_start(m, why, sizeof why));
    if (writer_nameless(m)) print_words(t, 0, "%s", writer_nameless(m));
    if (*writer_assumed(m, why, sizeof why)) print_words(t, 0, "%s", why);
}

/* Prints each reason of the selected verdicts once, with its hint. */
static void print_edits(const report_writer *t) {
    char saving[WRITER_NUMBER];
    for (size_t i = 0; i < t->model->edit_count; i++) {
        const report_edit *edit = &t->model->edits[i];
        if (!writer_selects_edit(t, edit)) continue;
        char counts[CELL] = "";
        if (edit->figures.count)
            append(counts, "%zu matmul%s", edit->figures.count,
                   edit->figures.count == 1 ? "" : "s");
        if (edit->figures.saving > 0)
            append(counts, "saves %s", writer_quantity(edit->figures.saving, "s", saving));
        if (edit->lints) append(counts, "%zu lint%s", edit->lints, edit->lints == 1 ? "" : "s");
        print_words(t, 0, "%s: %s (%s)", edit->cause, edit->text, counts);
        if (t->options.colored) fputs(HINT_COLOR, t->out);
        print_words(t, 4, "hint: %s", edit->hint);
        if (t->options.colored) fputs(NO_COLOR, t->out);
    }
}

/* ---------------------------------------------------------------------------- one line a matmul */

enum {
    PLACE,
    KIND,
    NAME,
    RESULT,
    OPERANDS,
    OUTCOME,
    BLOCKER,
    SOURCE,
    NAME_OF_LAYER,
    FLOPS,
    BYTES,
    TIMES,
    MATMUL_COLUMNS
};

static const column matmul_columns[] = {
    [PLACE] = {NULL, false, 8},    [KIND] = {NULL, false, 1},
    [NAME] = {NULL, false, 2},     [RESULT] = {NULL, false, 5},
    [OPERANDS] = {NULL, false, 9}, [OUTCOME] = {NULL, false, 4},
    [BLOCKER] = {NULL, false, 7},  [SOURCE] = {NULL, false, 3},
    [FLOPS] = {NULL, true, 10},    [BYTES] = {NULL, false, 11},
    [TIMES] = {NULL, false, 6},    [NAME_OF_LAYER] = {NULL, false, 0}};

static void fill_matmul(const void *row, cells out) {
    const report_matmul *m = row;
    const hlo_verdict *v = m->verdict;
    char before[WRITER_NUMBER], now[WRITER_NUMBER];
    if (v->line) snprintf(out[PLACE], CELL, "%u:%u:", v->line, v->column);
    snprintf(out[KIND], CELL, "%s", writer_kinds[v->kind]);
    writer_name(v, out[NAME]);
    snprintf(out[RESULT], CELL, "%s", v->shape);
    snprintf(out[OPERANDS], CELL, "%s", v->operands);
    append(out[OUTCOME], "%s", v->epilogue);
    if (v->reason) append(out[OUTCOME], "%s", v->reason);
    if (v->quantized) {
        if (v->kind != HLO_VERDICT_WIDE) append(out[OUTCOME], "quantized here (%s)", v->quantized);
        if (v->predicted_gain > 0) append(out[OUTCOME], "%.2fx predicted", v->predicted_gain);
        if (v->measured && isfinite(v->snr_db)) append(out[OUTCOME], "%.1f dB", v->snr_db);
        if (v->measured) append(out[OUTCOME], "changes an output by %.2g", v->output_distance);
    }
    if (v->groups) append(out[OUTCOME], "%" PRId64 " groups", v->groups);
    if (report_is_slower(v)) append(out[OUTCOME], "slower (%.2fx)", v->input_seconds / v->seconds);
    if (v->blocker) snprintf(out[BLOCKER], CELL, "at %s", v->blocker);
    fill_source(v, out[SOURCE]);
    if (m->named) snprintf(out[NAME_OF_LAYER], CELL, "%s", m->layer);
    if (v->kind == HLO_VERDICT_LINT) return;
    if (v->flops > 0) snprintf(out[FLOPS], CELL, "%s", writer_quantity(v->flops, "FLOP", now));
    writer_quantity(v->input_bytes, "B", before);
    writer_quantity(v->bytes, "B", now);
    if (v->bytes > 0)
        snprintf(out[BYTES], CELL, strcmp(before, now) ? "%s -> %s" : "%s", before, now);
    char *times = out[TIMES];
    if (v->seconds == 0 || v->input_seconds == 0) {
        snprintf(times, CELL, "?");
        return;
    }
    if (v->runs != 1 || v->runs_assumed)
        times += snprintf(times, CELL, "%g%s x ", v->runs, v->runs_assumed ? "?" : "");
    writer_quantity(v->input_seconds, "s", before);
    writer_quantity(v->seconds, "s", now);
    times +=
        snprintf(times, WRITER_NUMBER * 3, strcmp(before, now) ? "%s -> %s" : "%s", before, now);
    if (v->kind != HLO_VERDICT_WIDE)
        snprintf(times, WRITER_NUMBER, " (%.2fx)", v->input_seconds / v->seconds);
    else if (v->fp8_seconds > 0)
        snprintf(times, WRITER_NUMBER, " (%.2fx in FP8)", v->seconds / v->fp8_seconds);
}

static void print_verdict(const report_writer *t, const table *form, const report_matmul *m,
                          const char **file) {
    const hlo_verdict *v = m->verdict;
    const char *in = v->file ? v->file : "";
    if (strcmp(*file, in) != 0) hlo_print_plain(t->out, "%s:\n", in);
    *file = in;
    cells row;
    fill_row(form, m, row);
    print_row(t->out, form, row, t->options.colored ? kind_colors[v->kind] : NULL);
    /* The message of a lint may name values, in addition to the text of its reason. */
    if (v->reason && strcmp(v->message, hlo_reason_text(hlo_reason_find(v->reason))) != 0)
        hlo_print_plain(t->out, "    %s\n", v->message);
}

/* A lint has the row of a matmul. */
static report_matmul row_of_lint(const hlo_verdict *v) {
    return (report_matmul){.verdict = v, .layer = v->op_name, .named = v->op_name != NULL};
}

/* Prints the selected ones of the first `count` matmuls, and the first `lints` lints. */
static void print_list(const report_writer *t, size_t count, size_t lints) {
    const report_model *m = t->model;
    table form = {
        .columns = matmul_columns, .count = MATMUL_COLUMNS, .kind = KIND, .fill = fill_matmul};
    for (size_t i = 0; i < count; i++)
        if (writer_selects(t, m->matmuls[i].verdict->kind)) measure_row(&form, &m->matmuls[i]);
    for (size_t i = 0; i < lints; i++)
        measure_row(&form, (report_matmul[]){row_of_lint(m->lints[i])});
    fit_table(&form, t->options.width);
    const char *file = "";
    for (size_t i = 0; i < count; i++)
        if (writer_selects(t, m->matmuls[i].verdict->kind))
            print_verdict(t, &form, &m->matmuls[i], &file);
    for (size_t i = 0; i < lints; i++)
        print_verdict(t, &form, (report_matmul[]){row_of_lint(m->lints[i])}, &file);
}

/* -------------------------------------------------------------------------------------- summary */

enum { SAVES, TIME, SHARE, MATMULS, BOUND, RATE, WHY, GROUP_SOURCE, SHAPE, LAYER, GROUP_COLUMNS };

static const column group_columns[] = {
    [SAVES] = {"saves", true, 1},     [TIME] = {"time", true, 5},
    [SHARE] = {"share", true, 3},     [MATMULS] = {"matmuls", true, 4},
    [BOUND] = {"bound by", false, 8}, [RATE] = {"speed (of peak)", true, 9},
    [WHY] = {"reason", false, 2},     [GROUP_SOURCE] = {"source", false, 6},
    [SHAPE] = {"result", false, 7},   [LAYER] = {"layer", false, 0}};

/* A group with the totals that its share refers to. */
typedef struct group_row {
    const report_group *group;
    const report_figures *all;
    bool whole; /* the name of the layer includes the shape */
} group_row;

static void fill_group(const void *row, cells out) {
    const report_group *g = ((const group_row *)row)->group;
    const report_figures *f = &g->figures, *all = ((const group_row *)row)->all;
    const writer_figures text = writer_figures_of(f, all, g->cause != NULL);
    snprintf(out[SAVES], CELL, "%s", text.saves);
    snprintf(out[SHARE], CELL, "%s", text.share);
    snprintf(out[TIME], CELL, "%s", text.time);
    snprintf(out[RATE], CELL, "%s", text.speed);
    snprintf(out[MATMULS], CELL, "%zu %s", f->count, writer_kinds[g->first->kind]);
    if (f->seconds > 0) snprintf(out[BOUND], CELL, "%s", writer_bounds[report_bound_of(f)]);
    snprintf(out[WHY], CELL, "%s", g->cause ? g->cause : "");
    writer_place(g->first, out[GROUP_SOURCE]);
    if (!g->one_source && *out[GROUP_SOURCE]) append(out[GROUP_SOURCE], "...");
    snprintf(out[SHAPE], CELL, "%s", g->named ? g->shape : "");
    snprintf(out[LAYER], CELL, "%s", g->layer);
    if (((const group_row *)row)->whole && g->named)
        snprintf(out[LAYER], CELL, "%s %s", g->layer, g->shape);
}

/* True if another row differs in nothing but its shape and its figures. */
static bool has_twin(const report_model *m, size_t index, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (i != index && m->groups[i].first->kind == m->groups[index].first->kind &&
            strcmp(m->groups[i].layer, m->groups[index].layer) == 0)
            return true;
    return false;
}

/* Prints the first groups, largest saving first. */
static void print_groups(const report_writer *t, size_t shown) {
    const report_model *m = t->model;
    table form = {
        .columns = group_columns, .count = GROUP_COLUMNS, .kind = MATMULS, .fill = fill_group};
    for (size_t i = 0; i < shown; i++)
        measure_row(&form, &(group_row){&m->groups[i], &m->totals.figures, false});
    fit_table(&form, t->options.width);
    const bool hidden = !form.widths[SHAPE];
    if (hidden) memset(form.widths, 0, sizeof form.widths);
    for (size_t i = 0; hidden && i < shown; i++)
        measure_row(&form, &(group_row){&m->groups[i], &m->totals.figures, has_twin(m, i, shown)});
    if (hidden) form.widths[SHAPE] = 0;
    if (hidden) fit_table(&form, t->options.width);
    if (shown) {
        fputc('\n', t->out);
        print_head(t->out, &form);
    }
    for (size_t i = 0; i < shown; i++) {
        const group_row row = {&m->groups[i], &m->totals.figures, hidden && has_twin(m, i, shown)};
        cells out;
        fill_row(&form, &row, out);
        print_row(t->out, &form, out,
                  t->options.colored ? kind_colors[m->groups[i].first->kind] : NULL);
    }
}

/* Prints the sums of the groups that are not shown, and what the columns mean. */
static void print_rest(const report_writer *t, size_t shown) {
    const report_model *m = t->model;
    char saving[WRITER_NUMBER], unknown[64] = "";
    report_figures rest = {0};
    size_t open = 0;
    for (size_t i = shown; i < m->group_count; i++) {
        const report_group *g = &m->groups[i];
        rest.count += g->figures.count;
        rest.seconds += g->figures.seconds;
        rest.saving += g->figures.saving;
        if (g->cause) open += g->figures.count - g->figures.estimated;
    }
    if (open)
        snprintf(unknown, sizeof unknown, ", unknown savings of %zu matmul%s", open,
                 open == 1 ? "" : "s");
    if (rest.count)
        print_words(t, 0, "and %zu more groups: %zu matmuls, %.1f %% of the time%s%s%s",
                    m->group_count - shown, rest.count,
                    writer_percent(rest.seconds, m->totals.figures.seconds),
                    rest.saving > 0 ? ", saves " : "",
                    rest.saving > 0 ? writer_quantity(rest.saving, "s", saving)
                    : open          ? ""
                                    : ", nothing to save",
                    unknown);
    if (shown)
        print_words(t, 0, "saves: \"-\" nothing, \"?\" unknown; share: of the time of all matmuls");
}

static void print_changes(const report_writer *t) {
    enum { MAX_CHANGES = 10 };
    const report_baseline *b = t->baseline;
    char change[512];
    if (!b) return;
    fputc('\n', t->out);
    if (!b->has_layers) {
        print_words(t, 0, "%s has no layers to compare: write it again", t->options.baseline);
        return;
    }
    print_words(t, 0, "%s since %s%s", b->layer_count ? "Changed layers" : "No layer changed",
                t->options.baseline, b->layer_count ? ":" : "");
    for (size_t i = 0; i < b->layer_count && i < MAX_CHANGES; i++)
        print_words(t, 2, "- %s %s: %s", b->layers[i].layer, b->layers[i].shape,
                    writer_change(&b->layers[i], change, sizeof change));
    if (b->layer_count > MAX_CHANGES)
        print_words(t, 2, "and %zu more layers", b->layer_count - MAX_CHANGES);
}

/* Prints what made the matmuls of a dump folder lose FP8. */
static void print_losses(const report_writer *t) {
    enum { MAX_LOSSES = 20 };
    const report_model *m = t->model;
    const size_t lost = report_lost_count(m);
    if (lost) fprintf(t->out, "\nFP8 lost in %zu matmul%s, by:\n", lost, lost == 1 ? "" : "s");
    for (size_t i = 0; i < m->loss_count && i < MAX_LOSSES; i++) {
        char text[1024];
        print_words(t, 2, "%s", writer_loss(m, &m->losses[i], text, sizeof text));
    }
    if (m->loss_count > MAX_LOSSES)
        fprintf(t->out, "  and %zu more; --remarks=all lists all\n", m->loss_count - MAX_LOSSES);
}

static void print_summary(const report_writer *t) {
    enum { MAX_GROUPS = 20 };
    const report_model *m = t->model;
    const size_t shown = m->group_count > MAX_GROUPS ? MAX_GROUPS : m->group_count;
    for (size_t i = 0; m->dump && i < hlo_dump_module_count(m->dump); i++)
        if (hlo_history_count(m->histories[i]))
            writer_module(m->dump, i, hlo_history_count(m->histories[i]), t->out);
    char since[1024];
    if (t->baseline)
        print_words(t, 0, "%s",
                    writer_since(t->baseline, m, t->options.baseline, since, sizeof since));
    print_totals(t);
    print_gain(t);
    print_groups(t, shown);
    print_rest(t, shown);
    print_changes(t);
    if (m->totals.lints) fputc('\n', t->out);
    print_list(t, 0, m->totals.lints > MAX_GROUPS ? MAX_GROUPS : m->totals.lints);
    if (m->totals.lints > MAX_GROUPS)
        fprintf(t->out, "and %zu more lints\n", m->totals.lints - MAX_GROUPS);
    if (m->edit_count) fputc('\n', t->out);
    print_edits(t);
    if (m->edit_count)
        print_words(
            t, 0,
            "hlo-fp8-opt --explain=REASON describes a reason; --remarks=all lists all matmuls");
    print_losses(t);
}

hlo_status writer_text(const report_writer *t) {
    if (t->options.which == HLO_REMARKS_SUMMARY) {
        print_summary(t);
        return HLO_OK;
    }
    print_list(t, t->model->count, t->model->totals.lints);
    print_edits(t);
    print_totals(t);
    return HLO_OK;
}
