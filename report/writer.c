/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the report formats share: selection of verdicts, quantities, and escaping. */
#include "report/format.h"

#include <math.h>
#include <stdarg.h>
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
                 "; %zu of %zu matmuls (%s of the time) are launch bound", f->bounds[REPORT_LAUNCH],
                 f->count, writer_share(launch, f->seconds, saving));
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

/* Appends text to `out`, which has `at` bytes of `size`. Returns the new number of bytes. */
__attribute__((format(printf, 4, 5))) static size_t add(char *out, size_t size, size_t at,
                                                        const char *format, ...) {
    va_list args;
    if (at + 1 >= size) return at;
    va_start(args, format);
    const int more = vsnprintf(out + at, size - at, format, args);
    va_end(args);
    const size_t used = more > 0 ? at + (size_t)more : at;
    return used < size ? used : size - 1;
}

const char *writer_place(const hlo_verdict *v, char out[WRITER_NAME]) {
    enum { LONGEST = 64, START = 11, END = 40 }; /* START is the length of `module_0000` */
    const char *slash = v->file ? strrchr(v->file, '/') : NULL;
    const char *name = slash ? slash + 1 : v->file;
    *out = '\0';
    if (v->source_file)
        snprintf(out, WRITER_NAME, "%s:%ld", v->source_file, v->source_line);
    else if (v->file && *v->file && v->line && strlen(name) <= LONGEST)
        snprintf(out, WRITER_NAME, "%s:%u", name, v->line);
    else if (v->file && *v->file && v->line)
        snprintf(out, WRITER_NAME, "%.*s...%s:%u", START, name, name + strlen(name) - END, v->line);
    return out;
}

const char *writer_start(const report_model *m, char *out, size_t size) {
    const report_start *start = &m->start;
    char saving[WRITER_NUMBER], place[WRITER_NAME];
    *out = '\0';
    if (!start->groups) return out;
    writer_place(m->groups->first, place);
    bool one = true;
    for (size_t i = 0; i < start->groups; i++) {
        char other[WRITER_NAME];
        one &=
            m->groups[i].one_source && strcmp(writer_place(m->groups[i].first, other), place) == 0;
    }
    const bool placed = *place && !strstr(start->layer, place);
    size_t at =
        add(out, size, 0, "%s%s%s, %zu matmul%s", placed ? " at " : "", placed ? place : "",
            placed && !one ? " and other lines" : "", start->count, start->count == 1 ? "" : "s");
    if (start->groups > 1) at = add(out, size, at, " in the first %zu rows", start->groups);
    at = add(out, size, at, ", saves %s (%.1f %%): ", writer_quantity(start->saving, "s", saving),
             writer_percent(start->saving, m->totals.figures.seconds));
    bool several = false;
    for (size_t i = 1; i < start->groups; i++)
        several |= strcmp(m->groups[i].cause, m->groups->cause) != 0;
    for (size_t i = 0; i < start->groups; i++) {
        const report_group *g = &m->groups[i];
        size_t count = 0, first = 0;
        while (strcmp(m->groups[first].cause, g->cause) != 0) first++;
        if (first < i) continue;
        for (size_t j = i; j < start->groups; j++)
            if (strcmp(m->groups[j].cause, g->cause) == 0) count += m->groups[j].figures.count;
        at = add(out, size, at, "%s%s", i ? "; " : "", g->hint);
        if (several) at = add(out, size, at, " (%zu)", count);
    }
    return out;
}

const char *writer_nameless(const report_model *m) {
    return m->has_names || !m->count
               ? NULL
               : "The input has no op_names and no source lines. Lower it with metadata: in JAX "
                 "with "
                 "as_text(dialect=\"hlo\", debug_info=True), in PyTorch/XLA with XLA_HLO_DEBUG=1; "
                 "or dump it without --xla_dump_disable_metadata";
}

const char *writer_share(double part, double whole, char out[WRITER_NUMBER]) {
    const double percent = writer_percent(part, whole);
    snprintf(out, WRITER_NUMBER, percent > 0 && percent < 0.5 ? "<1 %%" : "%.0f %%", percent);
    return out;
}

/* Adds the counts of a kind, such as `; 6 wide: 5 not-quantized, 1 one-operand-wide`, with reasons
 * in the order of passes/reason/reason.def. */
static size_t add_kind(const report_model *m, hlo_verdict_kind kind, size_t count,
                       const char *label, char *text, size_t at) {
    if (!count) return at;
    at = add(text, WRITER_TOTALS, at, "%zu %s", count, label);
    const char *lead = ":";
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++) {
        const size_t times = m->totals.reasons[kind][reason];
        if (!times) continue;
        at =
            add(text, WRITER_TOTALS, at, "%s %zu %s", lead, times, hlo_reason_name((size_t)reason));
        lead = ",";
    }
    return at;
}

const char *writer_totals(const report_model *m, char text[WRITER_TOTALS]) {
    const report_totals *totals = &m->totals;
    const report_figures *f = &totals->figures;
    char share[WRITER_NUMBER];
    size_t at = add(text, WRITER_TOTALS, 0, "%zu of %zu matmuls in FP8", report_fp8_count(totals),
                    f->count);
    if (f->flops > 0)
        at = add(text, WRITER_TOTALS, at, " (%s of FLOPs)",
                 writer_share(f->fp8_flops, f->flops, share));
    if (f->kinds[HLO_VERDICT_MISSED]) at = add(text, WRITER_TOTALS, at, ", of which ");
    at = add_kind(m, HLO_VERDICT_MISSED, f->kinds[HLO_VERDICT_MISSED], "missed", text, at);
    if (totals->quantized)
        at = add(text, WRITER_TOTALS, at,
                 "; %zu quantized here, so the module computes other results than before",
                 totals->quantized);
    if (f->kinds[HLO_VERDICT_WIDE]) at = add(text, WRITER_TOTALS, at, "; ");
    at = add_kind(m, HLO_VERDICT_WIDE, f->kinds[HLO_VERDICT_WIDE], "wide", text, at);
    if (totals->lints) at = add(text, WRITER_TOTALS, at, "; ");
    at = add_kind(m, HLO_VERDICT_LINT, totals->lints, "lints", text, at);
    if (m->gone) add(text, WRITER_TOTALS, at, "; %zu not in the last stage", m->gone);
    return text;
}

const char *writer_gain(const report_model *m, char *out, size_t size) {
    const report_figures *f = &m->totals.figures;
    char wide[WRITER_NUMBER], stock[WRITER_NUMBER], now[WRITER_NUMBER], best[WRITER_NUMBER];
    *out = '\0';
    if (m->target && f->seconds > 0)
        snprintf(out, size,
                 "On sm_%d (%s) by roofline, not measured: %s on wide types, %s as stock XLA "
                 "compiles the matmuls (%.2fx), %s now (%.2fx), %s with all edits (%.2fx)",
                 m->target->sm, m->target->gpu, writer_quantity(f->wide_seconds, "s", wide),
                 writer_quantity(f->input_seconds, "s", stock), f->wide_seconds / f->input_seconds,
                 writer_quantity(f->seconds, "s", now), f->wide_seconds / f->seconds,
                 writer_quantity(f->seconds - f->saving, "s", best),
                 f->wide_seconds / (f->seconds - f->saving));
    return out;
}

const char *writer_loss(const report_model *m, const report_loss *loss, char *out, size_t size) {
    const hlo_matmul_history *p = loss->first;
    size_t at = add(out, size, 0, "%zu x ", loss->count);
    if (p->pass)
        at = add(out, size, at, "%s", p->pass);
    else
        at = add(out, size, at, "passes not dumped, between %s and %s",
                 hlo_dump_stage(m->dump, loss->module, p->kept),
                 hlo_dump_stage(m->dump, loss->module, p->lost));
    at = add(out, size, at, ": %s", p->how);
    if (hlo_dump_module_count(m->dump) > 1)
        add(out, size, at, " (%s)", hlo_dump_module(m->dump, loss->module));
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
    if (!target || strcmp(target, "cpu") != 0) return;
    fputs("  compiled for a CPU, where XLA makes no FP8 calls; \"convertible\" applies to a GPU",
          out);
    const char *file = strrchr(hlo_dump_path(dump, module, 0), '/') + 1;
    const char *stage = file + strlen(hlo_dump_module(dump, module)) + 1;
    if (strcmp(hlo_dump_stage(dump, module, 0), "before_optimizations") == 0)
        hlo_print_plain(out, ". hlo-fp8-opt --remarks=all on the file *.%s describes the program",
                        stage);
    fputc('\n', out);
}

/* Formats the times before and now, and the difference in percent. */
static void add_times(double before, double now, bool known, char out[4 * WRITER_NUMBER]) {
    char then[WRITER_NUMBER], after[WRITER_NUMBER];
    const size_t size = 4 * WRITER_NUMBER;
    const size_t at = add(out, size, 0, "%s -> %s", writer_quantity(before, "s", then),
                          writer_quantity(now, "s", after));
    const double percent = known ? 100 * (now / before - 1) : 0;
    if (known && fabs(percent) < 0.5) add(out, size, at, " (<1 %%)");
    if (known && fabs(percent) >= 0.5) add(out, size, at, " (%+.0f %%)", percent);
}

const char *writer_since(const report_baseline *b, const report_model *m, const char *path,
                         char *out, size_t size) {
    const double before = report_baseline_total(b, "seconds"), now = m->totals.figures.seconds;
    char times[4 * WRITER_NUMBER], place[WRITER_NAME];
    const char *slash = strrchr(path, '/');
    add_times(before, now, before > 0 && now > 0, times);
    size_t at = add(out, size, 0, "%s %s: %s",
                    !(before > 0 && now > 0)        ? "Since"
                    : now > REPORT_VISIBLE * before ? "Slower than"
                    : before > REPORT_VISIBLE * now ? "Faster than"
                                                    : "As fast as",
                    slash ? slash + 1 : path, times);
    const size_t lost = b->counts[HLO_CHANGE_LOST_FP8], newly = b->counts[HLO_CHANGE_NEWLY_FP8];
    if (lost) at = add(out, size, at, "; %zu matmul%s lost FP8", lost, lost == 1 ? "" : "s");
    if (lost && b->lost) {
        at = add(out, size, at, ", first %s", b->lost_layer);
        if (*writer_place(b->lost, place)) at = add(out, size, at, " at %s", place);
    }
    if (newly) at = add(out, size, at, "; %zu newly FP8", newly);
    if (b->counts[HLO_CHANGE_NEW]) at = add(out, size, at, "; %zu new", b->counts[HLO_CHANGE_NEW]);
    if (b->counts[HLO_CHANGE_GONE]) add(out, size, at, "; %zu gone", b->counts[HLO_CHANGE_GONE]);
    return out;
}

const char *writer_change(const report_layer_change *c, char *out, size_t size) {
    char times[4 * WRITER_NUMBER];
    const bool same = c->count[0] == c->count[1] && c->fp8[0] == c->fp8[1];
    size_t at = same ? add(out, size, 0, "%zu of %zu in FP8 as before", c->fp8[1], c->count[1])
                     : add(out, size, 0, "%zu of %zu -> %zu of %zu in FP8", c->fp8[0], c->count[0],
                           c->fp8[1], c->count[1]);
    if (c->seconds[0] > 0 && c->seconds[1] > 0) {
        add_times(c->seconds[0], c->seconds[1], true, times);
        at = add(out, size, at, ", %s", times);
    }
    if (c->missed[0] != c->missed[1])
        at = add(out, size, at, ", %zu -> %zu missed", c->missed[0], c->missed[1]);
    const char *before = c->reason[0] ? c->reason[0] : "no reason",
               *now = c->reason[1] ? c->reason[1] : "no reason";
    if (same && strcmp(before, now) != 0)
        at = add(out, size, at, ", %s -> %s", before, now);
    else if (same && c->missed[0] == c->missed[1])
        at = add(out, size, at, ", with the same verdicts");
    if (c->lost)
        add(out, size, at, "; first lost: %s", *c->lost->op_name ? c->lost->layer : c->lost->instr);
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

void writer_name_markup(FILE *out, const char *open, const char *name, const char *close) {
    fputs(open, out);
    for (const char *at = name; *at;) {
        size_t size = strcspn(at, "/_");
        size += strspn(at + size, "/_");
        writer_markup_part(out, at, size);
        at += size;
        if (*at) fputs("<wbr>", out);
    }
    fputs(close, out);
}
