/* SPDX-License-Identifier: Apache-2.0 */
/* Compares reports with the JSON remarks of an earlier run. */
#include "report/baseline.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "matmul/json.h"

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
            .instr = instr,
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

static void compare(report_baseline *b, report_entry *now, size_t count) {
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
    for (size_t i = 0; i < count; i++) {
        b->changes[now[i].index] = now[i].change;
        b->counts[now[i].change]++;
    }
}

static size_t count_matmuls(const hlo_report *const *reports, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += reports[i]->verdict_count;
    return total;
}

/* Returns the matmuls of reports, which the caller frees, or NULL if memory runs out. */
static report_entry *entries_of(const hlo_report *const *reports, size_t count, hlo_change change) {
    report_entry *entries = hlo_malloc((count_matmuls(reports, count) + 1) * sizeof *entries);
    size_t at = 0;
    for (size_t i = 0; i < count && entries; i++)
        for (size_t j = 0; j < reports[i]->verdict_count; j++, at++) {
            const hlo_verdict *v = &reports[i]->verdicts[j];
            entries[at] = (report_entry){.op_name = v->op_name ? v->op_name : "",
                                         .shape = v->input_shape,
                                         .instr = v->input_instruction,
                                         .origin = v->kind == HLO_VERDICT_WIDE ? REPORT_WIDE
                                                   : v->quantized              ? REPORT_QUANTIZE
                                                                               : REPORT_PROGRAM,
                                         .change = change,
                                         .verdict = v,
                                         .index = at};
        }
    return entries;
}

static hlo_status compare_reports(const hlo_report *const *reports, size_t count,
                                  report_baseline *b) {
    const size_t total = count_matmuls(reports, count);
    report_entry *now = entries_of(reports, count, HLO_CHANGE_NEW);
    b->changes = hlo_calloc(total + 1, sizeof *b->changes);
    const hlo_status status = now && b->changes ? HLO_OK : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) compare(b, now, total);
    hlo_free(now);
    return status;
}

hlo_status hlo_reports_compare(const hlo_report *const *before, size_t before_count,
                               const hlo_report *const *after, size_t after_count,
                               hlo_change *out_before, hlo_change *out_after) {
    report_baseline b = {.old = entries_of(before, before_count, HLO_CHANGE_GONE),
                         .old_count = count_matmuls(before, before_count)};
    const hlo_status status = b.old ? compare_reports(after, after_count, &b) : HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < b.old_count && status == HLO_OK; i++)
        out_before[b.old[i].index] = b.old[i].change;
    const size_t total = count_matmuls(after, after_count);
    if (status == HLO_OK && total) memcpy(out_after, b.changes, total * sizeof *out_after);
    report_baseline_free(&b);
    return status;
}

hlo_status report_baseline_open(const char *path, const hlo_diag_sink *sink,
                                json_t **out_document) {
    json_error_t error;
    hlo_content text;
    bool starved = false;
    const hlo_status status = hlo_file_read(path, sink, &text);
    if (status != HLO_OK) return status;
    *out_document = hlo_json_read(text.bytes, text.size, 0, &error, &starved);
    hlo_free(text.bytes);
    if (starved) return HLO_OUT_OF_MEMORY;
    return *out_document ? HLO_OK
                         : hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, error.line, error.column,
                                           "%s", error.text);
}

hlo_status report_baseline_read(const hlo_report *const *reports, size_t count, const char *path,
                                const hlo_diag_sink *sink, report_baseline *out) {
    *out = (report_baseline){0};
    const hlo_status status = report_baseline_open(path, sink, &out->document);
    if (status != HLO_OK) return status;
    const size_t most = json_array_size(json_object_get(out->document, "dots"));
    out->old = hlo_malloc((most + 1) * sizeof *out->old);
    if (!out->old) return HLO_OUT_OF_MEMORY;
    if (!read_entries(out))
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 0, 0,
                               "not valid remarks: expected the output of --remarks-format=json");
    /* --remarks=missed omits some of the FP8 matmuls. */
    if (fmax(report_baseline_total(out, "fp8"), 0) +
            fmax(report_baseline_total(out, "quantized"), 0) !=
        (double)out->old_fp8)
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 0, 0,
                               "incomplete baseline: regenerate it with --remarks=all");
    return compare_reports(reports, count, out);
}

void report_baseline_free(report_baseline *baseline) {
    hlo_free(baseline->changes);
    hlo_free(baseline->old);
    json_decref(baseline->document);
}

double report_baseline_total(const report_baseline *baseline, const char *name) {
    const json_t *value = json_object_get(json_object_get(baseline->document, "summary"), name);
    return json_is_number(value) ? json_number_value(value) : -1;
}
