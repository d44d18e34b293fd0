/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the report formats share: selection of verdicts, totals, and escaping. */
#include "report/format.h"

#include <stdio.h>
#include <string.h>

#include "ir/text/diag.h"

const char *const writer_kinds[] = {[HLO_VERDICT_FP8] = "fp8",
                                    [HLO_VERDICT_MISSED] = "missed",
                                    [HLO_VERDICT_WIDE] = "wide",
                                    [HLO_VERDICT_LINT] = "lint"};

const hlo_verdict *writer_next(const report_writer *t, writer_cursor *at) {
    for (;; *at = (writer_cursor){at->report + 1, 0, at->lints}) {
        if (at->report == t->count) {
            if (at->lints || !t->count) return NULL;
            *at = (writer_cursor){.lints = true};
        }
        const hlo_report *r = t->reports[at->report];
        if (at->lints && at->index < r->lint_count) return &r->lints[at->index++].verdict;
        while (!at->lints && at->index < r->verdict_count) {
            const hlo_verdict *v = &r->verdicts[at->index++];
            const hlo_verdict_kind hidden =
                t->which == HLO_REMARKS_MISSED ? HLO_VERDICT_FP8 : HLO_VERDICT_WIDE;
            if (t->which == HLO_REMARKS_ALL || v->kind != hidden) return v;
        }
    }
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

/* Compares times with the two digits that reports print. Ignores matmuls that --quantize quantized:
 * unlike the predicted gain, their times do not take into account that loops and other matmuls
 * share the quantization. */
bool writer_is_slower(const hlo_verdict *v) {
    return v->kind != HLO_VERDICT_WIDE && !v->quantized && v->input_seconds > 0 &&
           v->seconds > 1.005 * v->input_seconds;
}

writer_summary writer_sum_up(const hlo_report *const *reports, size_t count) {
    writer_summary s = {0};
    const report_writer all = {.reports = reports, .count = count, .which = HLO_REMARKS_ALL};
    writer_cursor at = {0};
    for (const hlo_verdict *v; (v = writer_next(&all, &at));) {
        s.kinds[v->kind]++;
        if (v->reason) s.reasons[v->kind][hlo_reason_find(v->reason)]++;
        if (v->kind == HLO_VERDICT_LINT) continue;
        s.total++;
        s.slower += writer_is_slower(v);
        s.quantized += v->kind != HLO_VERDICT_WIDE && v->quantized;
        s.flops += v->runs * v->flops;
        if (v->kind != HLO_VERDICT_WIDE) s.fp8_flops += v->runs * v->flops;
        if (v->input_seconds == 0 || v->seconds == 0) continue;
        s.input_seconds += v->runs * v->input_seconds;
        s.seconds += v->runs * v->seconds;
    }
    return s;
}

size_t writer_fp8_count(const writer_summary *s) {
    return s->kinds[HLO_VERDICT_FP8] + s->kinds[HLO_VERDICT_MISSED];
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
