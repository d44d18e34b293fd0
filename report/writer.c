/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by report formats: selection of verdicts, and totals. */
#include "report/format.h"

#include <stdio.h>
#include <string.h>

const char *const writer_kinds[] = {[HLO_VERDICT_FP8] = "fp8",
                                    [HLO_VERDICT_MISSED] = "missed",
                                    [HLO_VERDICT_WIDE] = "wide",
                                    [HLO_VERDICT_LINT] = "lint"};

static bool is_wanted(const hlo_verdict *v, hlo_remarks which) {
    switch (which) {
    case HLO_REMARKS_MISSED: return v->kind != HLO_VERDICT_FP8;
    case HLO_REMARKS_PASSED: return v->kind != HLO_VERDICT_WIDE;
    case HLO_REMARKS_ALL: return true;
    }
    return false;
}

const hlo_verdict *writer_next(const report_writer *t, writer_cursor *at) {
    for (; at->report < t->count; *at = (writer_cursor){at->report + 1, 0})
        while (at->index < t->reports[at->report]->verdict_count) {
            const hlo_verdict *v = &t->reports[at->report]->verdicts[at->index++];
            if (is_wanted(v, t->which)) return v;
        }
    return NULL;
}

const hlo_verdict *writer_next_lint(const report_writer *t, writer_cursor *at) {
    for (; at->report < t->count; *at = (writer_cursor){at->report + 1, 0})
        if (at->index < t->reports[at->report]->lint_count)
            return &t->reports[at->report]->lints[at->index++].verdict;
    return NULL;
}

const char *writer_output_name(const hlo_verdict *v) {
    return v->input_instr && strcmp(v->input_instr, v->instr) != 0 ? v->instr : NULL;
}

const char *writer_name(const hlo_verdict *v, char out[WRITER_NAME]) {
    const char *output = writer_output_name(v);
    snprintf(out, WRITER_NAME, "%s%s%s", output ? v->input_instr : v->instr, output ? " -> " : "",
             output ? output : "");
    return out;
}

int writer_by_time(const void *a, const void *b) {
    const writer_ranked *x = a, *y = b;
    double left = x->verdict->runs * x->verdict->seconds;
    double right = y->verdict->runs * y->verdict->seconds;
    if (left != right) return left > right ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Compares with two digits, the precision of times in reports. */
bool writer_is_slower(const hlo_verdict *v) {
    return v->kind != HLO_VERDICT_WIDE && v->input_seconds > 0 &&
           v->seconds > 1.005 * v->input_seconds;
}

writer_summary writer_sum_up(const hlo_report *const *reports, size_t count) {
    writer_summary s = {0};
    const report_writer all = {.reports = reports, .count = count, .which = HLO_REMARKS_ALL};
    writer_cursor at = {0}, lint_at = {0};
    for (const hlo_verdict *v; (v = writer_next(&all, &at));) {
        s.total++;
        s.kinds[v->kind]++;
        if (v->reason) s.reasons[v->kind][hlo_reason_find(v->reason)]++;
        s.slower += writer_is_slower(v);
        s.flops += v->runs * v->flops;
        if (v->kind != HLO_VERDICT_WIDE) s.fp8_flops += v->runs * v->flops;
        if (v->input_seconds == 0 || v->seconds == 0) continue;
        s.input_seconds += v->runs * v->input_seconds;
        s.seconds += v->runs * v->seconds;
    }
    for (const hlo_verdict *v; (v = writer_next_lint(&all, &lint_at));) {
        s.kinds[v->kind]++;
        s.reasons[v->kind][hlo_reason_find(v->reason)]++;
    }
    return s;
}

size_t writer_fp8_count(const writer_summary *s) {
    return s->kinds[HLO_VERDICT_FP8] + s->kinds[HLO_VERDICT_MISSED];
}
