/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a report with the JSON remarks of an earlier run. */
#include "report/baseline.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "matmul/json.h"

/* ------------------------------------------------------------------------------------ by matmul */

static int by_name(const report_entry *x, const report_entry *y) {
    const int order = strcmp(x->op_name, y->op_name);
    return order ? order : strcmp(x->shape, y->shape);
}

static int by_name_and_origin(const void *a, const void *b) {
    const report_entry *x = a, *y = b;
    const int order = by_name(x, y);
    if (order) return order;
    if (x->origin != y->origin) return (int)x->origin - (int)y->origin;
    return (x->index > y->index) - (x->index < y->index);
}

/* Reads the matmuls of the document, which own no strings. Returns false if it is not a report. */
static bool read_entries(report_baseline *b) {
    const json_t *dots = json_object_get(b->document, "dots"), *dot;
    size_t index;
    if (json_integer_value(json_object_get(b->document, "version")) != 1 || !json_is_array(dots))
        return false;
    json_array_foreach(dots, index, dot) {
        const char *verdict = json_string_value(json_object_get(dot, "verdict"));
        const char *op_name = json_string_value(json_object_get(dot, "op_name"));
        const char *shape = json_string_value(json_object_get(dot, "input_shape"));
        const json_t *name = json_object_get(dot, "input_instruction");
        if (!name) name = json_object_get(dot, "instruction"); /* in files of older versions */
        const char *instr = json_string_value(name);
        if (!verdict || !shape || !instr) return false;
        b->old[b->old_count++] = (report_entry){
            .op_name = op_name ? op_name : "",
            .shape = shape,
            .layer = json_string_value(json_object_get(dot, "layer")),
            .instr = instr,
            .seconds = json_number_value(json_object_get(dot, "runs")) *
                       json_number_value(json_object_get(dot, "seconds")),
            .reason = json_string_value(json_object_get(dot, "reason")),
            .missed = strcmp(verdict, "missed") == 0,
            .origin = strcmp(verdict, "wide") == 0                        ? REPORT_WIDE
                      : json_is_object(json_object_get(dot, "quantized")) ? REPORT_QUANTIZE
                                                                          : REPORT_PROGRAM,
            .change = HLO_CHANGE_GONE,
            .index = index};
        b->old_fp8 += b->old[b->old_count - 1].origin != REPORT_WIDE;
    }
    return true;
}

/* Pairs matmuls that are not paired yet and whose origin is in the masks, in order. */
static void pair_up(report_entry *old, size_t old_count, report_entry *now, size_t now_count,
                    unsigned from, unsigned to, hlo_change change) {
    for (size_t i = 0, j = 0; i < old_count; i++) {
        if (old[i].paired || !(from >> old[i].origin & 1)) continue;
        while (j < now_count && (now[j].paired || !(to >> now[j].origin & 1))) j++;
        if (j == now_count) return;
        old[i].paired = now[j].paired = true;
        old[i].change = now[j].change = change;
        old[i].verdict = now[j].verdict;
    }
}

/* Compares matmuls with the same name and shape, which are sorted by origin. */
static void compare_equals(report_entry *old, size_t old_count, report_entry *now,
                           size_t now_count) {
    enum {
        PROGRAM = 1 << REPORT_PROGRAM,
        QUANTIZE = 1 << REPORT_QUANTIZE,
        WIDE = 1 << REPORT_WIDE
    };
    static const struct {
        unsigned from, to;
        hlo_change change;
    } steps[] = {{PROGRAM, PROGRAM, HLO_CHANGE_SAME},
                 {QUANTIZE, PROGRAM | QUANTIZE, HLO_CHANGE_SAME},
                 {WIDE, WIDE, HLO_CHANGE_SAME},
                 {PROGRAM | QUANTIZE, QUANTIZE | WIDE, HLO_CHANGE_LOST_FP8},
                 {WIDE, PROGRAM | QUANTIZE, HLO_CHANGE_NEWLY_FP8}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        pair_up(old, old_count, now, now_count, steps[i].from, steps[i].to, steps[i].change);
}

static size_t equals(const report_entry *entries, size_t count, const report_entry *to) {
    size_t length = 0;
    while (length < count && by_name(&entries[length], to) == 0) length++;
    return length;
}

/* Finds the matmul with the longest time that lost FP8. */
static void find_lost(report_baseline *b, const report_entry *now, size_t count) {
    double most = -1;
    for (size_t i = 0; i < count; i++) {
        if (now[i].change != HLO_CHANGE_LOST_FP8 || now[i].seconds <= most) continue;
        most = now[i].seconds;
        b->lost = now[i].verdict;
        b->lost_layer = *now[i].op_name ? now[i].layer : now[i].instr;
    }
}

static void compare_matmuls(report_baseline *b, report_entry *now, size_t count) {
    if (b->old_count) qsort(b->old, b->old_count, sizeof *b->old, by_name_and_origin);
    if (count) qsort(now, count, sizeof *now, by_name_and_origin);
    for (size_t i = 0, j = 0; i < b->old_count;) {
        while (j < count && by_name(&now[j], &b->old[i]) < 0) j++;
        const size_t before = equals(&b->old[i], b->old_count - i, &b->old[i]);
        const size_t after = equals(&now[j], count - j, &b->old[i]);
        compare_equals(&b->old[i], before, &now[j], after);
        i += before;
        j += after;
    }
    for (size_t i = 0; i < b->old_count; i++) b->counts[HLO_CHANGE_GONE] += !b->old[i].paired;
    b->changes = hlo_arena_array(b->arena, count + 1, sizeof *b->changes);
    for (size_t i = 0; i < count; i++) {
        b->changes[now[i].index] = now[i].change;
        b->counts[now[i].change]++;
    }
    find_lost(b, now, count);
}

/* ------------------------------------------------------------------------------------- by layer */

/* A matmul of the baseline (side 0) or of the report (side 1). */
typedef struct keyed {
    const char *key;
    int side;
    const report_entry *entry;
} keyed;

static int by_key_and_side(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order) return order;
    if (x->side != y->side) return x->side - y->side;
    return (x->entry->index > y->entry->index) - (x->entry->index < y->entry->index);
}

static int rank_of(const report_layer_change *c) {
    return c->lost ? 0 : c->fp8[1] > c->fp8[0] ? 1 : 2;
}

static int by_difference(const void *a, const void *b) {
    const report_layer_change *x = a, *y = b;
    const int ranks[] = {rank_of(x), rank_of(y)};
    if (ranks[0] != ranks[1]) return ranks[0] - ranks[1];
    const double left = fabs(x->seconds[1] - x->seconds[0]),
                 right = fabs(y->seconds[1] - y->seconds[0]);
    if (left != right) return left > right ? -1 : 1;
    const int order = strcmp(x->layer, y->layer);
    return order ? order : strcmp(x->shape, y->shape);
}

static void compare_layers(report_baseline *b, const report_entry *now, size_t now_count) {
    const report_entry *const sides[] = {b->old, now};
    const size_t counts[] = {b->old_count, now_count};
    keyed *all = hlo_arena_array(b->arena, b->old_count + now_count + 1, sizeof *all);
    size_t count = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < counts[side]; i++) {
            const report_entry *at = &sides[side][i];
            if (!at->layer) return;
            all[count++] = (keyed){
                hlo_arena_format(b->arena, "%s\n%s", report_fold(b->arena, at->layer), at->shape),
                side, at};
        }
    b->has_layers = true;
    if (count) qsort(all, count, sizeof *all, by_key_and_side);
    b->layers = hlo_arena_array(b->arena, count + 1, sizeof *b->layers);
    for (size_t i = 0, next; i < count; i = next) {
        char *layer = hlo_arena_format(b->arena, "%s", all[i].entry->layer);
        report_layer_change change = {.layer = layer, .shape = all[i].entry->shape};
        for (next = i; next < count && strcmp(all[i].key, all[next].key) == 0; next++) {
            const keyed *at = &all[next];
            report_fold_differences(layer, at->entry->layer);
            change.count[at->side]++;
            change.fp8[at->side] += at->entry->origin != REPORT_WIDE;
            change.missed[at->side] += at->entry->missed;
            if (!change.reason[at->side]) change.reason[at->side] = at->entry->reason;
            change.seconds[at->side] += at->entry->seconds;
            if (at->side && !change.lost && at->entry->change == HLO_CHANGE_LOST_FP8)
                change.lost = at->entry;
        }
        const double *seconds = change.seconds;
        const double least = fmin(seconds[0], seconds[1]), most = fmax(seconds[0], seconds[1]);
        if (change.count[0] != change.count[1] || change.fp8[0] != change.fp8[1] ||
            most > REPORT_VISIBLE * least)
            b->layers[b->layer_count++] = change;
    }
    if (b->layer_count) qsort(b->layers, b->layer_count, sizeof *b->layers, by_difference);
}

/* ---------------------------------------------------------------------------------- comparisons */

static report_entry *entries_of(hlo_arena *arena, const report_model *m, hlo_change change) {
    report_entry *entries = hlo_arena_array(arena, m->count + 1, sizeof *entries);
    for (size_t i = 0; i < m->count; i++) {
        const hlo_verdict *v = m->matmuls[i].verdict;
        entries[i] = (report_entry){.op_name = v->op_name ? v->op_name : "",
                                    .shape = v->input_shape,
                                    .layer = m->matmuls[i].layer,
                                    .instr = v->input_instruction,
                                    .seconds = v->runs * v->seconds,
                                    .reason = v->reason,
                                    .missed = v->kind == HLO_VERDICT_MISSED,
                                    .origin = v->kind == HLO_VERDICT_WIDE ? REPORT_WIDE
                                              : v->quantized              ? REPORT_QUANTIZE
                                                                          : REPORT_PROGRAM,
                                    .change = change,
                                    .verdict = v,
                                    .index = i};
    }
    return entries;
}

/* Compares a model with `before` or, if that is NULL, with the document. Returns HLO_INVALID_INPUT
 * if the document is not a report. */
static hlo_status compare(const report_model *before, const report_model *model,
                          report_baseline *b) {
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    b->arena = hlo_arena_new(&recover);
    if (!b->arena) return HLO_OUT_OF_MEMORY;
    if (before) {
        b->old = entries_of(b->arena, before, HLO_CHANGE_GONE);
        b->old_count = before->count;
    } else {
        const size_t most = json_array_size(json_object_get(b->document, "dots"));
        b->old = hlo_arena_array(b->arena, most + 1, sizeof *b->old);
        if (!read_entries(b)) return HLO_INVALID_INPUT;
    }
    report_entry *now = entries_of(b->arena, model, HLO_CHANGE_NEW);
    compare_matmuls(b, now, model->count);
    compare_layers(b, now, model->count);
    hlo_arena_set_recover(b->arena, NULL);
    return HLO_OK;
}

hlo_status hlo_reports_compare(const hlo_report *const *before, size_t before_count,
                               const hlo_report *const *after, size_t after_count,
                               hlo_change *out_before, hlo_change *out_after) {
    report_baseline b = {0};
    report_model *models[2] = {NULL, NULL};
    hlo_status status = report_model_new(before, before_count, &models[0]);
    if (status == HLO_OK) status = report_model_new(after, after_count, &models[1]);
    if (status == HLO_OK) status = compare(models[0], models[1], &b);
    for (size_t i = 0; i < b.old_count && status == HLO_OK; i++)
        out_before[b.old[i].index] = b.old[i].change;
    for (size_t i = 0; status == HLO_OK && i < models[1]->count; i++) out_after[i] = b.changes[i];
    report_baseline_free(&b);
    for (int i = 0; i < 2; i++) report_model_free(models[i]);
    return status;
}

hlo_status report_baseline_read(const report_model *model, const char *path,
                                const hlo_diag_sink *sink, report_baseline *out) {
    json_error_t error;
    hlo_content text;
    bool starved = false;
    *out = (report_baseline){0};
    hlo_status status = hlo_file_read(path, sink, &text);
    if (status != HLO_OK) return status;
    out->document = hlo_json_read(text.bytes, text.size, 0, &error, &starved);
    hlo_free(text.bytes);
    if (starved) return HLO_OUT_OF_MEMORY;
    if (!out->document)
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, error.line, error.column, "%s",
                               error.text);
    status = compare(NULL, model, out);
    if (status == HLO_INVALID_INPUT)
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 0, 0,
                               "not valid remarks: expected the output of --remarks-format=json");
    /* --remarks=missed omits some of the FP8 matmuls. */
    if (status == HLO_OK && fmax(report_baseline_total(out, "fp8"), 0) +
                                    fmax(report_baseline_total(out, "quantized"), 0) !=
                                (double)out->old_fp8)
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 0, 0,
                               "incomplete baseline: regenerate it with --remarks=all");
    return status;
}

void report_baseline_free(report_baseline *baseline) {
    if (baseline->arena) hlo_arena_free(baseline->arena);
    json_decref(baseline->document);
}

double report_baseline_total(const report_baseline *baseline, const char *name) {
    const json_t *value = json_object_get(json_object_get(baseline->document, "summary"), name);
    return json_is_number(value) ? json_number_value(value) : -1;
}
