/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the report formats share: selection of verdicts, quantities, and escaping. */
#include "report/format.h"

#include <stdio.h>
#include <string.h>

#include "ir/text/diag.h"

const char *const writer_kinds[] = {[HLO_VERDICT_FP8] = "fp8",
                                    [HLO_VERDICT_MISSED] = "missed",
                                    [HLO_VERDICT_WIDE] = "wide",
                                    [HLO_VERDICT_LINT] = "lint"};

const char *const writer_bounds[] = {[REPORT_UNKNOWN] = "?",
                                     [REPORT_COMPUTE] = "compute",
                                     [REPORT_MEMORY] = "memory",
                                     [REPORT_LAUNCH] = "launch"};

bool writer_selects(const report_writer *t, hlo_verdict_kind kind) {
    return t->options.which == HLO_REMARKS_MISSED   ? kind != HLO_VERDICT_FP8
           : t->options.which == HLO_REMARKS_PASSED ? kind != HLO_VERDICT_WIDE
                                                    : true;
}

bool writer_selects_edit(const report_writer *t, const report_edit *edit) {
    bool selects = edit->lints > 0;
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++)
        selects |= edit->figures.kinds[kind] && writer_selects(t, (hlo_verdict_kind)kind);
    return selects;
}

const char *writer_output_name(const hlo_verdict *v) {
    return v->input_instruction && strcmp(v->input_instruction, v->instruction) != 0
               ? v->instruction
               : NULL;
}

const char *writer_name(const hlo_verdict *v, char out[WRITER_NAME]) {
    const char *output = writer_output_name(v);
    snprintf(out, WRITER_NAME, "%s%s%s", output ? v->input_instruction : v->instruction,
             output ? " -> " : "", output ? output : "");
    return out;
}

const char *writer_quantity(double value, const char *unit, char out[WRITER_NUMBER]) {
    static const char *const prefixes[] = {"n", "µ", "m", "", "k", "M", "G", "T", "P", "E"};
    enum { ONE = 3, COUNT = sizeof prefixes / sizeof *prefixes };
    static const struct {
        double seconds;
        const char *name;
    } times[] = {{365.25 * 86400, "years"}, {86400, "days"}, {3600, "hours"}};
    const bool seconds = strcmp(unit, "s") == 0;
    for (size_t i = 0; i < sizeof times / sizeof *times && seconds; i++) {
        if (value < 2 * times[i].seconds) continue;
        snprintf(out, WRITER_NUMBER, "%.3g %s", value / times[i].seconds, times[i].name);
        return out;
    }
    int prefix = ONE;
    for (; value > 0 && value < 0.9995 && prefix > 0; prefix--) value *= 1000;
    /* Less than two hours are seconds. */
    for (; value >= 999.5 && prefix < (seconds ? ONE : COUNT - 1); prefix++) value /= 1000;
    snprintf(out, WRITER_NUMBER, value >= 999.5 && seconds ? "%.0f %s%s" : "%.3g %s%s", value,
             prefixes[prefix], unit);
    return out;
}

double writer_percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

writer_figures writer_figures_of(const report_figures *f, const report_figures *all, bool edited) {
    writer_figures text = {.time = "?"};
    char rate[WRITER_NUMBER];
    if (f->saving > 0)
        writer_quantity(f->saving, "s", text.saves);
    else
        snprintf(text.saves, sizeof text.saves, "%s",
                 !edited || f->estimated || f->kinds[HLO_VERDICT_FP8] ? "-" : "?");
    if (!(f->seconds > 0)) return text;
    writer_quantity(f->seconds, "s", text.time);
    snprintf(text.share, sizeof text.share, "%.1f %%", writer_percent(f->seconds, all->seconds));
    snprintf(text.speed, sizeof text.speed, "%s (%.0f %%)",
             writer_quantity(report_rate(f), "FLOP/s", rate), 100 * report_peak_fraction(f));
    return text;
}

/* Formats the comparison with stock XLA, or "" if the matmuls are visibly faster. */
static const char *than_stock(const report_figures *f, char *out, size_t size) {
    char stock[WRITER_NUMBER];
    *out = '\0';
    if (f->input_seconds < 1.05 * f->seconds)
        snprintf(out, size, ", but %s faster than stock XLA (%s)",
                 f->input_seconds > REPORT_VISIBLE * f->seconds ? "little" : "no",
                 writer_quantity(f->input_seconds, "s", stock));
    return out;
}

const char *writer_worth(const report_model *m, char *out, size_t size) {
    const report_figures *f = &m->totals.figures;
    const double launch = f->bound_seconds[REPORT_LAUNCH], least = f->seconds - f->saving,
                 wide = f->wide_seconds;
    const size_t lost = report_lost_count(m);
    const double unknown = report_plan_of(m).unknown_seconds;
    char saving[WRITER_NUMBER], stock[64];
    int at;
    if (f->seconds == 0)
        at = snprintf(out, size, "Whether FP8 is worth it is unknown");
    else if (launch > 0.5 * f->seconds)
        at = snprintf(out, size,
                      "FP8 is not worth it: most of the time, matmuls take less than a launch");
    else if (wide < 1.05 * least && 2 * f->fp8_flops > f->flops)
        at = snprintf(out, size,
                      "The matmuls are FP8 in the input, too, and little is left to save");
    else if (wide < 1.05 * least && unknown > 0.05 * f->seconds)
        at = snprintf(
            out, size,
            "Whether FP8 is worth it is unknown: matmuls with %.0f %% of the time have unknown "
            "savings",
            writer_percent(unknown, f->seconds));
    else if (wide < 1.05 * least)
        at = snprintf(out, size,
                      "FP8 is not worth it: even with all edits, less than 5 %% faster than wide "
                      "types");
    else if (wide < 1.05 * f->seconds)
        at = snprintf(out, size, "FP8 is worth it: all edits save %s (%.0f %%)",
                      writer_quantity(f->saving, "s", saving),
                      writer_percent(f->saving, f->seconds));
    else if (f->saving < 0.05 * f->seconds)
        at = snprintf(out, size,
                      "FP8 is worth it: %.2fx as fast as wide types%s, and little is left to save",
                      wide / f->seconds, than_stock(f, stock, sizeof stock));
    else
        at = snprintf(out, size,
                      "FP8 is worth it: %.2fx as fast as wide types%s; all edits save another %s "
                      "(%.0f %%)",
                      wide / f->seconds, than_stock(f, stock, sizeof stock),
                      writer_quantity(f->saving, "s", saving),
                      writer_percent(f->saving, f->seconds));
    if (lost)
        at += snprintf(out + at, size - (size_t)at,
                       "; %zu matmul%s lost FP8 between stages of the compilation", lost,
                       lost == 1 ? "" : "s");
    if (f->bounds[REPORT_LAUNCH])
        snprintf(out + at, size - (size_t)at,
                 "; %zu of %zu matmuls (%.0f %% of the time) are launch bound",
                 f->bounds[REPORT_LAUNCH], f->count, writer_percent(launch, f->seconds));
    return out;
}

const char *writer_plan(const report_model *m, char *out, size_t size) {
    const report_plan plan = report_plan_of(m);
    *out = '\0';
    if (!(m->totals.figures.seconds > 0) || !(plan.to_wide || plan.unknown || plan.slower))
        return out;
    int at = snprintf(out, size, "All edits: %zu more in FP8", plan.to_fp8);
    if (plan.to_wide)
        at += snprintf(out + at, size - (size_t)at, ", %zu wide by --min-gain=1", plan.to_wide);
    if (plan.unknown)
        at += snprintf(out + at, size - (size_t)at, "; not counted: %zu whose saving is unknown",
                       plan.unknown);
    if (plan.slower)
        snprintf(out + at, size - (size_t)at,
                 "%s %zu slower than in stock XLA, but faster than on wide types",
                 plan.unknown ? "," : "; not counted:", plan.slower);
    return out;
}

const char *writer_start(const report_model *m, char *out, size_t size) {
    const report_start *start = &m->start;
    char saving[WRITER_NUMBER];
    *out = '\0';
    if (start->group)
        snprintf(out, size, "%zu matmul%s, saves %s (%.1f %%): %s", start->count,
                 start->count == 1 ? "" : "s", writer_quantity(start->saving, "s", saving),
                 writer_percent(start->saving, m->totals.figures.seconds), start->group->hint);
    return out;
}

const char *writer_assumed(const report_model *m, char *out, size_t size) {
    *out = '\0';
    if (m->totals.figures.assumed)
        snprintf(out, size,
                 "%zu of %zu matmuls have an assumed number of executions: all branches of a "
                 "conditional count, and one iteration of a loop with an unknown trip count",
                 m->totals.figures.assumed, m->totals.figures.count);
    return out;
}

void writer_module(const hlo_dump *dump, size_t module, size_t matmuls, FILE *out) {
    const char *target = hlo_dump_target(dump, module);
    const size_t compilations = hlo_dump_compilation_count(dump, module);
    hlo_print_plain(out, "%s: %zu stages, %zu matmuls", hlo_dump_module(dump, module),
                    hlo_dump_stage_count(dump, module), matmuls);
    if (compilations > 1) fprintf(out, ", compiled %zu times", compilations);
    fputc('\n', out);
    if (target && strcmp(target, "cpu") == 0)
        fputs("  compiled for a CPU, where XLA makes no FP8 calls; \"convertible\" applies to a "
              "GPU. hlo-fp8-opt --remarks=all on the file *.before_optimizations.txt describes the "
              "program\n",
              out);
}

const char *writer_change(const report_layer_change *c, char *out, size_t size) {
    char times[2][WRITER_NUMBER];
    for (int i = 0; i < 2; i++) {
        writer_quantity(c->seconds[i], "s", times[i]);
        if (!c->count[i])
            snprintf(times[i], sizeof times[i], "none");
        else if (c->seconds[i] == 0)
            snprintf(times[i], sizeof times[i], "?");
    }
    const size_t at =
        (size_t)snprintf(out, size, "%zu of %zu -> %zu of %zu in FP8, %s -> %s", c->fp8[0],
                         c->count[0], c->fp8[1], c->count[1], times[0], times[1]);
    if (c->lost && at < size)
        snprintf(out + at, size - at, "; first lost: %s",
                 *c->lost->op_name ? c->lost->layer : c->lost->instr);
    return out;
}

void writer_markup_part(FILE *out, const char *text, size_t size) {
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end) {
        uint32_t code = 0;
        size_t character = hlo_utf8_decode((const char *)at, (size_t)(end - at), &code);
        if (code == 0xfffe || code == 0xffff) character = 0; /* not allowed in XML */
        if (character == 0 || *at == 0x7f || strchr("&<>\"", *at))
            fprintf(out, "&#%d;", *at);
        else if (*at < 0x20 && *at != '\n')
            fputc(' ', out);
        else
            fwrite(at, 1, character, out);
        at += character ? character : 1;
    }
}

void writer_markup(FILE *out, const char *text) {
    if (text) writer_markup_part(out, text, strlen(text));
}

void writer_element(FILE *out, const char *open, const char *text, const char *close) {
    fputs(open, out);
    writer_markup(out, text);
    fputs(close, out);
}
