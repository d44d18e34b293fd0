/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the model of a report: figures of each matmul, layers, groups and edits. */
#include "report/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------- figures */

/* Ignores matmuls that --quantize quantized: unlike the predicted gain, their times do not take
 * into account that loops and other matmuls share the quantization. */
bool report_is_slower(const hlo_verdict *v) {
    return v->kind != HLO_VERDICT_WIDE && !v->quantized && v->input_seconds > 0 &&
           v->seconds > REPORT_VISIBLE * v->input_seconds;
}

/* Returns the seconds that become free if a matmul takes `after` instead of `before`; 0 if the
 * difference is not visible. A matmul takes at least the time of a launch. */
static double saved(double before, double after) {
    before = fmax(before, HLO_LAUNCH_SECONDS);
    after = fmax(after, HLO_LAUNCH_SECONDS);
    return before > REPORT_VISIBLE * after ? before - after : 0;
}

/* Returns the seconds of one execution after the edit, or 0 if they are unknown: in FP8 if the
 * matmul is wide, and on wide types, which --min-gain=1 selects, if it is slower and has no reason.
 */
static double edited_seconds(const hlo_verdict *v, double fp8_seconds) {
    if (v->kind == HLO_VERDICT_WIDE) return fp8_seconds;
    return report_is_slower(v) && !v->reason ? v->wide_seconds : 0;
}

/* `fp8_seconds` replaces v->fp8_seconds. */
static report_figures figures_of(const hlo_verdict *v, double fp8_seconds,
                                 const hlo_target *target) {
    const bool wide = v->kind == HLO_VERDICT_WIDE;
    const double edited = edited_seconds(v, fp8_seconds);
    /* XLA removes an unused matmul, too, so the edit saves nothing. */
    const bool unused = v->reason && hlo_reason_find(v->reason) == HLO_REASON_UNUSED;
    report_figures f = {.count = 1,
                        .estimated = unused,
                        .flops = v->runs * v->flops,
                        .input_bytes = v->runs * v->input_bytes,
                        .bytes = v->runs * v->bytes};
    f.kinds[v->kind] = 1;
    f.assumed = v->runs_assumed;
    if (!wide) f.fp8_flops = f.flops;
    report_bound bound = REPORT_UNKNOWN;
    if (v->seconds > 0 && v->input_seconds > 0) {
        bound = v->seconds < HLO_LAUNCH_SECONDS                               ? REPORT_LAUNCH
                : v->compute_seconds >= v->bytes / (1e9 * target->memory_gbs) ? REPORT_COMPUTE
                                                                              : REPORT_MEMORY;
        f.input_seconds = v->runs * v->input_seconds;
        f.wide_seconds = v->runs * v->wide_seconds;
        f.seconds = f.bound_seconds[bound] = v->runs * v->seconds;
        f.compute_seconds = v->runs * v->compute_seconds;
        f.timed_flops = f.flops;
        f.estimated = edited > 0;
        if (f.estimated) f.saving = v->runs * saved(v->seconds, edited);
    }
    f.bounds[bound] = 1;
    return f;
}

static void add_figures(report_figures *sum, const report_figures *f) {
    sum->count += f->count;
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++) sum->kinds[kind] += f->kinds[kind];
    sum->flops += f->flops;
    sum->fp8_flops += f->fp8_flops;
    sum->input_bytes += f->input_bytes;
    sum->bytes += f->bytes;
    sum->wide_seconds += f->wide_seconds;
    sum->input_seconds += f->input_seconds;
    sum->seconds += f->seconds;
    sum->compute_seconds += f->compute_seconds;
    sum->timed_flops += f->timed_flops;
    for (int bound = 0; bound < REPORT_BOUNDS; bound++) {
        sum->bound_seconds[bound] += f->bound_seconds[bound];
        sum->bounds[bound] += f->bounds[bound];
    }
    sum->saving += f->saving;
    sum->estimated += f->estimated;
    sum->assumed += f->assumed;
}

report_bound report_bound_of(const report_figures *f) {
    report_bound most = REPORT_UNKNOWN;
    for (int bound = 0; bound < REPORT_BOUNDS; bound++)
        if (f->bound_seconds[bound] > f->bound_seconds[most]) most = (report_bound)bound;
    return most;
}

double report_rate(const report_figures *f) {
    return f->seconds > 0 ? f->timed_flops / f->seconds : 0;
}

double report_peak_fraction(const report_figures *f) {
    return f->seconds > 0 ? f->compute_seconds / f->seconds : 0;
}

static void count_verdict(report_totals *totals, const hlo_verdict *v, const report_figures *f) {
    if (v->reason) totals->reasons[v->kind][hlo_reason_find(v->reason)]++;
    if (v->kind == HLO_VERDICT_LINT) {
        totals->lints++;
        return;
    }
    totals->slower += report_is_slower(v);
    totals->quantized += v->kind != HLO_VERDICT_WIDE && v->quantized;
    add_figures(&totals->figures, f);
}

report_totals report_sum_up(const hlo_report *const *reports, size_t count) {
    report_totals totals = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < reports[i]->verdict_count; j++) {
            const hlo_verdict *v = &reports[i]->verdicts[j];
            const report_figures f = figures_of(v, v->fp8_seconds, reports[i]->target);
            count_verdict(&totals, v, &f);
        }
        for (size_t j = 0; j < reports[i]->lint_count; j++)
            count_verdict(&totals, &reports[i]->lints[j].verdict, NULL);
    }
    return totals;
}

size_t report_fp8_count(const report_totals *totals) {
    const size_t *kinds = totals->figures.kinds;
    return kinds[HLO_VERDICT_FP8] + kinds[HLO_VERDICT_MISSED];
}

/* ---------------------------------------------------------------------------------------- model */

/* A matmul with the text that it shares with the other matmuls of its group. */
typedef struct keyed {
    const char *key;
    report_matmul *matmul;
} keyed;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order) return order;
    return x->matmul < y->matmul ? -1 : x->matmul > y->matmul;
}

typedef struct ranked {
    report_group group;
    report_matmul *first; /* in text order */
    report_matmul **matmuls;
    size_t count;
    const char *layer; /* without its direction; "" if no edit saves time */
    double saving;     /* of all groups of `layer` */
} ranked;

static int by_figures(const report_figures *x, const report_figures *y) {
    if (x->saving != y->saving) return x->saving > y->saving ? -1 : 1;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static int by_saving(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->saving != y->saving) return x->saving > y->saving ? -1 : 1;
    int order = strcmp(x->layer, y->layer);
    if (!order) order = by_figures(&x->group.figures, &y->group.figures);
    if (order) return order;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_edit(const void *a, const void *b) {
    const report_edit *x = a, *y = b;
    const int order = by_figures(&x->figures, &y->figures);
    if (order) return order;
    return (int)hlo_reason_find(x->cause) - (int)hlo_reason_find(y->cause);
}

static const char slower_text[] =
    "the FP8 matmul is slower than the original as stock XLA compiles it, by the roofline model",
                  slower_hint[] =
                      "pass --min-gain=1, which keeps a matmul wide unless FP8 is faster";

static void add_matmul(report_model *m, const hlo_verdict *v, const hlo_report *report,
                       size_t index, const hlo_matmul_history *history, double fp8_seconds) {
    report_matmul *made = &m->matmuls[m->count++];
    *made = (report_matmul){.verdict = v,
                            .report = report,
                            .index = index,
                            .history = history,
                            .cause = v->reason             ? v->reason
                                     : report_is_slower(v) ? "slower"
                                                           : NULL,
                            .fp8_seconds = fp8_seconds,
                            .figures = figures_of(v, fp8_seconds, report->target)};
    count_verdict(&m->totals, v, &made->figures);
}

/* True if both have the same source line or, without source lines, the same line of HLO. */
static bool same_place(const hlo_verdict *a, const hlo_verdict *b) {
    const char *file = a->source_file ? a->source_file : a->file,
               *other = b->source_file ? b->source_file : b->file;
    if (!a->source_file != !b->source_file || !file != !other) return false;
    if (a->source_file ? a->source_line != b->source_line : a->line != b->line) return false;
    return !file || strcmp(file, other) == 0;
}

static char *layer_without_direction(hlo_arena *arena, const char *layer) {
    return hlo_arena_format(arena, "%.*s", (int)report_layer_length(layer), layer);
}

static int by_layer(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    const int order = strcmp(x->layer, y->layer);
    if (order) return order;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts the groups. The directions of a layer are one edit of the program, so they are adjacent. */
static void sort_groups(report_model *m, ranked *groups, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ranked *at = &groups[i];
        at->layer = "";
        if (!(at->group.figures.saving > 0)) continue;
        at->layer = layer_without_direction(m->arena, at->group.layer);
        if (at->first->named) at->layer = report_fold(m->arena, at->layer);
    }
    qsort(groups, count, sizeof *groups, by_layer);
    for (size_t i = 0, next; i < count; i = next) {
        double saving = 0;
        for (next = i; next < count && strcmp(groups[i].layer, groups[next].layer) == 0; next++)
            saving += groups[next].group.figures.saving;
        for (size_t j = i; j < next; j++) groups[j].saving = saving;
    }
    qsort(groups, count, sizeof *groups, by_saving);
    report_start *start = &m->start;
    for (size_t i = 0; i < count && *groups[i].layer; i++) {
        if (strcmp(groups[i].layer, groups[0].layer) != 0) break;
        char *layer = layer_without_direction(m->arena, groups[i].group.layer);
        if (i) report_fold_differences((char *)start->layer, layer);
        if (!i) start->layer = layer;
        start->groups++;
        start->count += groups[i].group.figures.count;
        start->saving += groups[i].group.figures.saving;
    }
}

static void group_matmuls(report_model *m) {
    hlo_arena *arena = m->arena;
    keyed *keys = hlo_arena_array(arena, m->count, sizeof *keys);
    report_matmul **members = hlo_arena_array(arena, m->count, sizeof *members);
    for (size_t i = 0; i < m->count; i++) {
        report_matmul *at = &m->matmuls[i];
        at->layer = report_layer_of(arena, at->verdict, &at->named);
        keys[i] = (keyed){hlo_arena_format(arena, "%s\n%d %s\n%s",
                                           at->named ? report_fold(arena, at->layer) : at->layer,
                                           at->verdict->kind, at->cause ? at->cause : "",
                                           report_shape_of(arena, at->verdict)),
                          at};
    }
    if (m->count) qsort(keys, m->count, sizeof *keys, by_key);
    ranked *groups = hlo_arena_zero(arena, (m->count + 1) * sizeof *groups);
    for (size_t i = 0; i < m->count; i++) {
        report_matmul *at = members[i] = keys[i].matmul;
        const hlo_verdict *v = at->verdict;
        const bool first = !i || strcmp(keys[i - 1].key, keys[i].key) != 0;
        ranked *open = &groups[first ? m->group_count++ : m->group_count - 1];
        if (first)
            *open = (ranked){.group = {.layer = hlo_arena_format(arena, "%s", at->layer),
                                       .cause = at->cause,
                                       .shape = report_shape_of(arena, v),
                                       .named = !strstr(at->layer, report_shape_of(arena, v)),
                                       .hint = v->reason   ? v->hint
                                               : at->cause ? slower_hint
                                                           : NULL,
                                       .first = v,
                                       .one_source = true},
                             .first = at,
                             .matmuls = &members[i]};
        report_group *group = &open->group;
        /* Layers that are not names are equal to each other, and are not changed. */
        report_fold_differences((char *)group->layer, at->layer);
        group->one_source &= same_place(group->first, v);
        m->has_names |= v->op_name || v->source_file;
        if (v->runs * v->seconds > group->first->runs * group->first->seconds) group->first = v;
        add_figures(&group->figures, &at->figures);
        open->count++;
    }
    if (m->group_count) sort_groups(m, groups, m->group_count);
    m->groups = hlo_arena_array(arena, m->group_count, sizeof *m->groups);
    for (size_t i = 0; i < m->group_count; i++) {
        m->groups[i] = groups[i].group;
        for (size_t j = 0; j < groups[i].count; j++) groups[i].matmuls[j]->group = &m->groups[i];
    }
}

static void list_edits(report_model *m) {
    report_edit *all = hlo_arena_zero(m->arena, (HLO_REASON_COUNT + 1) * sizeof *all);
    for (size_t i = 0; i < m->count; i++)
        if (m->matmuls[i].cause) {
            const hlo_verdict *v = m->matmuls[i].verdict;
            add_figures(&all[v->reason ? hlo_reason_find(v->reason) : HLO_REASON_COUNT].figures,
                        &m->matmuls[i].figures);
        }
    m->edits = all;
    for (size_t i = 0; i <= HLO_REASON_COUNT; i++) {
        report_edit edit = all[i];
        const bool reason = i < HLO_REASON_COUNT;
        edit.lints = reason ? m->totals.reasons[HLO_VERDICT_LINT][i] : 0;
        if (!edit.lints && !edit.figures.count) continue;
        edit.cause = reason ? hlo_reason_name(i) : "slower";
        edit.text = reason ? hlo_reason_text(i) : slower_text;
        edit.hint = reason ? hlo_reason_hint(i) : slower_hint;
        edit.page = reason ? hlo_reason_page(i) : NULL;
        m->edits[m->edit_count++] = edit;
    }
    if (m->edit_count) qsort(m->edits, m->edit_count, sizeof *m->edits, by_edit);
}

/* ------------------------------------------------------------------------------------ histories */

static int by_flops(double x, double y) {
    return (x < y) - (x > y);
}

static int by_loss(const void *a, const void *b) {
    const report_loss *x = a, *y = b;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    if (x->first->lost != y->first->lost) return x->first->lost < y->first->lost ? -1 : 1;
    const int order = strcmp(x->first->how, y->first->how);
    if (order) return order;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_lost_flops(const void *a, const void *b) {
    const report_loss *x = a, *y = b;
    const int order = by_flops(x->flops, y->flops);
    return order ? order : by_loss(a, b);
}

/* A history with the text that it shares with the other histories of its timeline. */
typedef struct keyed_history {
    const char *key;
    report_timeline timeline;
} keyed_history;

static int by_history_key(const void *a, const void *b) {
    const keyed_history *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order) return order;
    return x->timeline.first < y->timeline.first ? -1 : x->timeline.first > y->timeline.first;
}

static int by_timeline(const void *a, const void *b) {
    const report_timeline *x = a, *y = b;
    const int order = by_flops(x->flops, y->flops);
    if (order) return order;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Groups the histories of all modules by what they lost, and by layer and verdicts. */
static void group_histories(report_model *m) {
    hlo_arena *arena = m->arena;
    const size_t modules = hlo_dump_module_count(m->dump);
    size_t total = 0, count = 0, lost = 0;
    for (size_t i = 0; i < modules; i++) total += hlo_history_count(m->histories[i]);
    report_loss *losses = hlo_arena_array(arena, total, sizeof *losses);
    keyed_history *keys = hlo_arena_array(arena, total, sizeof *keys);
    for (size_t i = 0; i < modules; i++) {
        const hlo_history *h = m->histories[i];
        const size_t stages = hlo_dump_stage_count(m->dump, i);
        char *kinds = hlo_arena_alloc(arena, stages + 1);
        for (size_t j = 0; j < hlo_history_count(h); j++) {
            const hlo_matmul_history *p = hlo_history_passage(h, j);
            const double flops = p->first->runs * p->first->flops;
            bool named;
            const char *layer = report_layer_of(arena, p->first, &named);
            const char *shape = report_shape_of(arena, p->first);
            for (size_t k = 0; k < stages; k++) {
                const hlo_verdict *at = hlo_history_verdict(h, j, k);
                kinds[k] = at ? (char)('a' + at->kind) : '-';
            }
            kinds[stages] = '\0';
            const char *folded = named ? report_fold(arena, layer) : layer;
            keys[count++] =
                (keyed_history){hlo_arena_format(arena, "%zu\n%s\n%s\n%s", i, folded, shape, kinds),
                                {i, layer, named ? shape : "", j, 1, flops}};
            if (p->lost != SIZE_MAX) losses[lost++] = (report_loss){i, p, 1, flops};
        }
    }
    if (count) qsort(keys, count, sizeof *keys, by_history_key);
    m->timelines = hlo_arena_array(arena, count, sizeof *m->timelines);
    for (size_t i = 0; i < count; i++) {
        report_timeline *last = m->timelines + m->timeline_count - 1, *one = &keys[i].timeline;
        if (!i || strcmp(keys[i - 1].key, keys[i].key) != 0) {
            one->layer = hlo_arena_format(arena, "%s", one->layer);
            m->timelines[m->timeline_count++] = *one;
            continue;
        }
        report_fold_differences((char *)last->layer, one->layer);
        last->count++;
        last->flops += one->flops;
    }
    if (m->timeline_count)
        qsort(m->timelines, m->timeline_count, sizeof *m->timelines, by_timeline);
    if (lost) qsort(losses, lost, sizeof *losses, by_loss);
    m->losses = losses;
    for (size_t i = 0; i < lost; i++) {
        report_loss *last = losses + m->loss_count - 1;
        if (i && losses[i].module == last->module && losses[i].first->lost == last->first->lost &&
            strcmp(losses[i].first->how, last->first->how) == 0) {
            last->count++;
            last->flops += losses[i].flops;
        } else {
            losses[m->loss_count++] = losses[i];
        }
    }
    if (m->loss_count) qsort(losses, m->loss_count, sizeof *losses, by_lost_flops);
}

/* --------------------------------------------------------------------------------------- models */

/* Returns the time that a matmul of the last stage would take in FP8. If it lost FP8, it is as much
 * faster as at the last stage at which it was FP8, because its operands are quantized already. The
 * time is unknown if the matmul was a different one there. */
static double fp8_seconds_of(const hlo_history *h, size_t index, const hlo_verdict *v) {
    const hlo_matmul_history *p = hlo_history_passage(h, index);
    if (p->lost == SIZE_MAX) return v->fp8_seconds;
    const hlo_verdict *kept = hlo_history_verdict(h, index, p->kept);
    if (!kept || kept->flops != v->flops || !(kept->wide_seconds > 0)) return 0;
    return v->seconds * kept->seconds / kept->wide_seconds;
}

/* Adds the matmuls of the last stage of a module. */
static void add_history(report_model *m, const hlo_history *h, size_t last_stage) {
    const hlo_report *r = hlo_history_report(h);
    for (size_t j = 0; j < hlo_history_count(h); j++) {
        const hlo_verdict *v = hlo_history_verdict(h, j, last_stage);
        if (v)
            add_matmul(m, v, r, (size_t)(v - r->verdicts), hlo_history_passage(h, j),
                       fp8_seconds_of(h, j, v));
        else
            m->gone++;
    }
}

static hlo_status fill(report_model **out, const hlo_report *const *reports, const hlo_dump *dump,
                       const hlo_history *const *histories, size_t count) {
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_arena *arena;
    report_model *m = *out = hlo_arena_new_with(&recover, sizeof *m, &arena);
    if (!m) return HLO_OUT_OF_MEMORY;
    m->arena = arena;
    m->dump = dump;
    m->histories = histories;
    size_t matmuls = 0, lints = 0;
    for (size_t i = 0; i < count; i++) {
        const hlo_report *r = dump ? hlo_history_report(histories[i]) : reports[i];
        matmuls += r->verdict_count;
        lints += r->lint_count;
        if (i) continue;
        m->target = r->target;
        m->cuda = r->cuda;
    }
    m->matmuls = hlo_arena_array(arena, matmuls, sizeof *m->matmuls);
    m->lints = hlo_arena_array(arena, lints, sizeof(hlo_verdict *));
    for (size_t i = 0; i < count; i++) {
        const hlo_report *r = dump ? hlo_history_report(histories[i]) : reports[i];
        if (dump) add_history(m, histories[i], hlo_dump_stage_count(dump, i) - 1);
        for (size_t j = 0; !dump && j < r->verdict_count; j++)
            add_matmul(m, &r->verdicts[j], r, j, NULL, r->verdicts[j].fp8_seconds);
        for (size_t j = 0; j < r->lint_count; j++) {
            m->lints[m->totals.lints] = &r->lints[j].verdict;
            count_verdict(&m->totals, &r->lints[j].verdict, NULL);
        }
    }
    group_matmuls(m);
    list_edits(m);
    if (dump) group_histories(m);
    hlo_arena_set_recover(arena, NULL);
    return HLO_OK;
}

static hlo_status make(const hlo_report *const *reports, const hlo_dump *dump,
                       const hlo_history *const *histories, size_t count,
                       report_model **out_model) {
    *out_model = NULL;
    const hlo_status status = fill(out_model, reports, dump, histories, count);
    if (status == HLO_OK) return HLO_OK;
    report_model_free(*out_model);
    *out_model = NULL;
    return status;
}

hlo_status report_model_new(const hlo_report *const *reports, size_t count,
                            report_model **out_model) {
    return make(reports, NULL, NULL, count, out_model);
}

hlo_status report_model_of_dump(const hlo_dump *dump, const hlo_history *const *histories,
                                report_model **out_model) {
    return make(NULL, dump, histories, hlo_dump_module_count(dump), out_model);
}

void report_model_free(report_model *model) {
    if (model) hlo_arena_free(model->arena);
}

report_plan report_plan_of(const report_model *m) {
    report_plan plan = {0};
    for (size_t i = 0; i < m->count; i++) {
        const report_matmul *at = &m->matmuls[i];
        const bool wide = at->verdict->kind == HLO_VERDICT_WIDE;
        if (!at->cause) continue;
        plan.to_fp8 += wide && at->figures.saving > 0;
        plan.to_wide += !wide && at->figures.saving > 0;
        plan.unknown += !at->figures.estimated;
        if (!at->figures.estimated) plan.unknown_seconds += at->figures.seconds;
        plan.slower += !wide && at->figures.estimated && !(at->figures.saving > 0);
    }
    return plan;
}

size_t report_lost_count(const report_model *m) {
    size_t lost = 0;
    for (size_t i = 0; i < m->loss_count; i++) lost += m->losses[i].count;
    return lost;
}
