/* SPDX-License-Identifier: Apache-2.0 */
/* Prints verdicts as text: a table with one line for each verdict, and a summary. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"

/* The colors are green, yellow, red and magenta. */
static const char *const kind_colors[] = {[HLO_VERDICT_FP8] = "\033[32m",
                                          [HLO_VERDICT_MISSED] = "\033[33m",
                                          [HLO_VERDICT_WIDE] = "\033[31m",
                                          [HLO_VERDICT_LINT] = "\033[35m"};
#define HINT_COLOR "\033[36m"
#define NO_COLOR "\033[0m"

/* The leading columns of all tables, followed by the specific columns of each table. */
enum { PLACE, KIND, NAME, FIRST_OWN };
enum { SHAPE = FIRST_OWN, OPERANDS, OUTCOME, BLOCKER, SOURCE };
enum {
    RUNS = FIRST_OWN,
    GFLOP,
    BYTES_WERE,
    BYTES_ARE,
    TIME_WAS,
    TIME_IS,
    GAIN,
    IN_FP8,
    COST_SOURCE,
    COLUMNS /* number of columns of the widest table */
};

enum { CELL = WRITER_NAME };
typedef char cells[COLUMNS][CELL];

typedef struct table {
    void (*fill)(const hlo_verdict *v, cells out); /* fills the columns that are specific to the
                                                    * table; all cells are empty on entry */
    const char *heads[COLUMNS];                    /* headings of the columns; NULL without a
                                                    * heading */
    unsigned numbers;                              /* bit set of right-aligned columns */
    int widths[COLUMNS];                           /* widths of the cells; 0 omits the column */
} table;

static void widen(table *form, cells row) {
    for (int column = 0; column < COLUMNS; column++) {
        int width = (int)strlen(row[column]);
        if (width > form->widths[column]) form->widths[column] = width;
    }
}

static void fill_row(const table *form, const hlo_verdict *v, cells out) {
    for (int column = 0; column < COLUMNS; column++) out[column][0] = '\0';
    if (v->line)
        snprintf(out[PLACE], CELL, "%s:%u:%u:", v->file, v->line, v->column);
    else
        snprintf(out[PLACE], CELL, "%s", v->file);
    snprintf(out[KIND], CELL, "%s", writer_kinds[v->kind]);
    writer_name(v, out[NAME]);
    form->fill(v, out);
}

/* Prints a row, with the column KIND in `color` unless that is NULL. */
static void print_row(const report_writer *t, const table *form, cells row, const char *color,
                      const char *end) {
    for (int column = 0; column < COLUMNS; column++) {
        int width = form->widths[column];
        if (!width) continue;
        const char *paint = color && column == KIND ? color : "";
        fputs(paint, t->out);
        hlo_print_plain(t->out, "%*s", form->numbers >> column & 1 ? width : -width, row[column]);
        fputs(*paint ? NO_COLOR "  " : "  ", t->out);
    }
    hlo_print_plain(t->out, "%s\n", end ? end : "");
}

static void fill_source(const hlo_verdict *v, char *out) {
    if (v->source_file) snprintf(out, CELL, "%s:%ld", v->source_file, v->source_line);
}

/* Prints the counts of a kind, such as `; 6 wide: 5 not-quantized, 1 one-operand-wide`, with
 * reasons in the order of passes/reason/reason.def. */
static void writer_kind(const report_writer *t, hlo_verdict_kind kind, const char *label) {
    if (!t->sum.kinds[kind]) return;
    fprintf(t->out, "; %zu %s", t->sum.kinds[kind], label);
    const char *lead = ":";
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++) {
        if (!t->sum.reasons[kind][reason]) continue;
        fprintf(t->out, "%s %zu %s", lead, t->sum.reasons[kind][reason],
                hlo_reason_name((size_t)reason));
        lead = ",";
    }
}

static void writer_summary_line(const report_writer *t) {
    fprintf(t->out, "%zu of %zu matmuls in FP8", writer_fp8_count(&t->sum), t->sum.total);
    if (t->sum.flops > 0)
        fprintf(t->out, " (%.0f %% of FLOPs)", 100 * t->sum.fp8_flops / t->sum.flops);
    if (t->sum.quantized)
        fprintf(t->out, "; %zu quantized here, so the module computes other results than before",
                t->sum.quantized);
    writer_kind(t, HLO_VERDICT_MISSED, "missed");
    writer_kind(t, HLO_VERDICT_WIDE, "wide");
    writer_kind(t, HLO_VERDICT_LINT, "lints");
    fputc('\n', t->out);
}

__attribute__((format(printf, 2, 3))) static void append(char *cell, const char *format, ...) {
    char text[CELL];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t used = strlen(cell);
    if (*text) snprintf(cell + used, CELL - used, "%s%s", used ? ", " : "", text);
}

static void fill_text(const hlo_verdict *v, cells out) {
    snprintf(out[SHAPE], CELL, "%s", v->shape);
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
    if (writer_is_slower(v)) append(out[OUTCOME], "slower (%.2fx)", v->input_seconds / v->seconds);
    if (v->blocker) snprintf(out[BLOCKER], CELL, "at %s", v->blocker);
    fill_source(v, out[SOURCE]);
}

void writer_reasons(FILE *out, const bool has_reason[HLO_REASON_COUNT], bool colored) {
    for (size_t reason = 0; reason < HLO_REASON_COUNT; reason++)
        if (has_reason[reason])
            fprintf(out, "%s: %s\n    %shint: %s%s\n", hlo_reason_name(reason),
                    hlo_reason_text(reason), colored ? HINT_COLOR : "", hlo_reason_hint(reason),
                    colored ? NO_COLOR : "");
}

hlo_status writer_text(const report_writer *t) {
    table form = {.fill = fill_text};
    bool has_reason[HLO_REASON_COUNT] = {false};
    cells row;
    writer_cursor sized = {0}, at = {0};
    for (const hlo_verdict *v; (v = writer_next(t, &sized));) {
        fill_row(&form, v, row);
        widen(&form, row);
        if (v->reason) has_reason[hlo_reason_find(v->reason)] = true;
    }
    for (const hlo_verdict *v; (v = writer_next(t, &at));) {
        fill_row(&form, v, row);
        print_row(t, &form, row, t->colored ? kind_colors[v->kind] : NULL, v->op_name);
        /* The message of a lint may name values, in addition to the text of its reason. */
        if (v->reason && strcmp(v->message, hlo_reason_text(hlo_reason_find(v->reason))) != 0)
            hlo_print_plain(t->out, "    %s\n", v->message);
    }
    writer_reasons(t->out, has_reason, t->colored);
    if (t->sum.slower)
        fprintf(t->out,
                "slower: FP8 is slower than the wide matmul according to the roofline model\n    "
                "%shint: --min-gain=1 keeps such matmuls wide; --remarks-format=costs prints the "
                "times%s\n",
                t->colored ? HINT_COLOR : "", t->colored ? NO_COLOR : "");
    writer_summary_line(t);
    return HLO_OK;
}

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

hlo_status writer_costs(const report_writer *t) {
    table form = {.fill = fill_costs,
                  .heads = {[GFLOP] = "GFLOP",
                            [BYTES_WERE] = "MB",
                            [BYTES_ARE] = "MB now",
                            [TIME_WAS] = "us",
                            [TIME_IS] = "us now",
                            [GAIN] = "gain",
                            [IN_FP8] = "in FP8"},
                  .numbers = ((1U << COST_SOURCE) - 1) & ~((1U << RUNS) - 1)};
    size_t count = 0;
    writer_cursor at = {0};
    writer_ranked *order = malloc((t->sum.total + 1) * sizeof *order);
    if (!order) return HLO_OUT_OF_MEMORY;
    cells row;
    for (const hlo_verdict *v; (v = writer_next(t, &at)) && v->kind != HLO_VERDICT_LINT; count++) {
        order[count] = (writer_ranked){v, count};
        fill_row(&form, v, row);
        widen(&form, row);
    }
    qsort(order, count, sizeof *order, writer_by_time);
    for (int column = 0; column < COLUMNS; column++)
        snprintf(row[column], CELL, "%s",
                 form.heads[column] && form.widths[column] ? form.heads[column] : "");
    widen(&form, row);
    if (count) {
        fputs("before: as compiled by stock XLA with default flags, without autotuning\n", t->out);
        print_row(t, &form, row, NULL, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        fill_row(&form, order[i].verdict, row);
        print_row(t, &form, row, NULL, order[i].verdict->op_name);
    }
    free(order);
    writer_summary_line(t);
    if (t->sum.seconds > 0)
        fprintf(t->out, "roofline: %.3g us before, %.3g us now: %.2fx\n",
                1e6 * t->sum.input_seconds, 1e6 * t->sum.seconds,
                t->sum.input_seconds / t->sum.seconds);
    return HLO_OK;
}
