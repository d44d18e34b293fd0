/* SPDX-License-Identifier: Apache-2.0 */
/* The gates. They check the number of FP8 matmuls, the reasons, and the remarks of an earlier
 * run. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/argument.h"
#include "hlo/suggest.h"
#include "ir/float/c_locale.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "matmul/json.h"
#include "report/format.h"

static hlo_status gate_count(const report_totals *s, const char *expect, char *why, size_t size) {
    const size_t fp8 = report_fp8_count(s);
    double number = 100;
    const char *end = strcmp(expect, "all") == 0 ? "%" : hlo_read_decimal(expect, &number);
    const bool percent = end && strcmp(end, "%") == 0;
    const bool count = end && !*end && !strchr(expect, '.');
    if (!count && (!percent || number > 100)) {
        snprintf(why, size,
                 "invalid value '%s' for --expect-fp8: expected a number, a percentage up to "
                 "100%%, or all",
                 expect);
        return HLO_INVALID_USAGE;
    }
    /* Compute the percentage as a quotient of two integers, which is rounded like the percentage
     * that strtod() reads. With the product number / 100 * total, 55 % of 100 would be more than
     * 55. */
    const double share = s->figures.count ? 100.0 * (double)fp8 / (double)s->figures.count : 100;
    if ((percent ? share : (double)fp8) >= number) return HLO_OK;
    snprintf(why, size, "expected %s%s matmuls in FP8, found %zu of %zu", expect,
             percent && number < 100 ? " of" : "", fp8, s->figures.count);
    return HLO_MISMATCH;
}

static hlo_status gate_reasons(const report_totals *s, const char *fail_on, char *why,
                               size_t size) {
    bool watched[HLO_REASON_COUNT];
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++) watched[reason] = !*fail_on;
    size_t length;
    for (const char *at = *fail_on ? fail_on : NULL, *word; (word = hlo_next_word(&at, &length));) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        hlo_reason reason = hlo_reason_find(name);
        if (reason == HLO_REASON_COUNT) {
            hlo_suggestion near = hlo_suggest(name);
            for (size_t i = 0; i < HLO_REASON_COUNT; i++)
                hlo_suggest_offer(&near, hlo_reason_name(i));
            snprintf(why, size, "unknown reason '%s'%s", name,
                     near.best ? hlo_suggest_meant(&near) : "; --explain=all lists all reasons");
            return HLO_INVALID_USAGE;
        }
        watched[reason] = true;
    }
    size_t found = 0, lints = 0;
    const char *first = NULL;
    for (int kind = 0; kind < REPORT_KINDS; kind++)
        for (int reason = 0; reason < HLO_REASON_COUNT; reason++) {
            if (!watched[reason] || !s->reasons[kind][reason]) continue;
            *(kind == HLO_VERDICT_LINT ? &lints : &found) += s->reasons[kind][reason];
            if (!first) first = hlo_reason_name((size_t)reason);
        }
    if (!found && !lints) return HLO_OK;
    char more[64] = "";
    if (lints) snprintf(more, sizeof more, " and %zu lint%s found", lints, lints == 1 ? "" : "s");
    snprintf(why, size, "%zu of %zu matmuls not fully converted%s; first reason: %s", found,
             s->figures.count, more, first);
    return HLO_MISMATCH;
}

/* Checks that there is a report and that each report has a matmul. Otherwise, returns
 * HLO_MISMATCH, with one line in `why`. */
static hlo_status gate_matmuls(const hlo_report *const *reports, size_t count, char *why,
                               size_t size) {
    size_t empty = 0;
    while (empty < count && reports[empty]->verdict_count) empty++;
    if (empty == count && count) return HLO_OK;
    const hlo_report *r = count ? reports[empty] : NULL;
    const char *file = r && r->file ? r->file : "";
    snprintf(why, size, "%s%s%s%s has no matmuls for a gate to check; --allow-empty allows this",
             r ? "module " : "the input", r ? r->module : "", *file ? " of " : "", file);
    return HLO_MISMATCH;
}

hlo_status hlo_reports_gate(const hlo_report *const *reports, size_t count, const char *expect,
                            const char *fail_on, bool allow_empty, char *why, size_t why_size) {
    HLO_IN_C_LOCALE;
    if (why_size) *why = '\0';
    if (!expect && !fail_on) return HLO_OK;
    report_totals s = report_sum_up(reports, count);
    hlo_status counts = expect ? gate_count(&s, expect, why, why_size) : HLO_OK;
    if (counts == HLO_INVALID_USAGE) return counts;
    /* Report unknown reasons even if the number of FP8 matmuls is too low. */
    char other[1024] = "";
    hlo_status reasons = fail_on ? gate_reasons(&s, fail_on, other, sizeof other) : HLO_OK;
    if (reasons == HLO_OK && !allow_empty && gate_matmuls(reports, count, why, why_size) != HLO_OK)
        return HLO_MISMATCH;
    if (counts != HLO_OK && reasons != HLO_INVALID_USAGE) return counts;
    if (reasons != HLO_OK) snprintf(why, why_size, "%s", other);
    return reasons;
}

/* The identity of a matmul across runs. */
typedef struct key {
    const char *op_name, *shape; /* op_name is "" if the matmul has no op_name */
    const char *instr;           /* name for messages if there is no op_name; not part of the key */
    bool quantized;              /* --quantize quantized the matmul; not part of the key */
} key;

typedef struct keys {
    key *v;
    size_t count;
} keys;

static int by_key(const void *a, const void *b) {
    const key *x = a, *y = b;
    int order = strcmp(x->op_name, y->op_name);
    return order ? order : strcmp(x->shape, y->shape);
}

/* Orders equal keys: matmuls that the program quantizes before those that --quantize quantized. */
static int by_key_and_origin(const void *a, const void *b) {
    const key *x = a, *y = b;
    const int order = by_key(a, b);
    return order ? order : x->quantized - y->quantized;
}

/* Reads the keys of the document's FP8 matmuls, which borrow strings of the document. */
static bool read_keys(const json_t *document, keys *out) {
    const json_t *dots = json_object_get(document, "dots"), *dot;
    size_t index;
    if (json_integer_value(json_object_get(document, "version")) != 1 || !json_is_array(dots))
        return false;
    json_array_foreach(dots, index, dot) {
        const char *verdict = json_string_value(json_object_get(dot, "verdict"));
        const char *op_name = json_string_value(json_object_get(dot, "op_name"));
        const char *shape = json_string_value(json_object_get(dot, "input_shape"));
        const json_t *name = json_object_get(dot, "input_instruction");
        if (!name) name = json_object_get(dot, "instruction"); /* in files of older versions */
        const char *instr = json_string_value(name);
        if (!verdict || !shape || !instr) return false;
        if (strcmp(verdict, "wide") != 0)
            out->v[out->count++] = (key){op_name ? op_name : "", shape, instr,
                                         json_is_object(json_object_get(dot, "quantized"))};
    }
    qsort(out->v, out->count, sizeof *out->v, by_key_and_origin);
    return true;
}

static key key_of(const hlo_verdict *v) {
    return (key){v->op_name ? v->op_name : "", v->input_shape, v->input_instr,
                 v->quantized != NULL};
}

hlo_status hlo_reports_baseline(const hlo_report *const *reports, size_t count, const char *path,
                                bool allow_empty, const hlo_diag_sink *sink, char *why,
                                size_t why_size) {
    HLO_IN_C_LOCALE;
    json_error_t error;
    keys old = {0}, now = {0};
    if (why_size) *why = '\0';
    hlo_content text;
    hlo_status status = hlo_file_read(path, sink, &text);
    bool starved = false;
    json_t *document =
        status == HLO_OK ? hlo_json_read(text.bytes, text.size, 0, &error, &starved) : NULL;
    free(text.bytes);
    if (starved) return HLO_OUT_OF_MEMORY;
    if (status != HLO_OK) return status;
    if (!document) return hlo_diag_refuse(sink, path, error.line, error.column, "%s", error.text);
    old.v = malloc((json_array_size(json_object_get(document, "dots")) + 1) * sizeof *old.v);
    size_t most = 0;
    for (size_t i = 0; i < count; i++) most += reports[i]->verdict_count;
    now.v = malloc((most + 1) * sizeof *now.v);
    if (!old.v || !now.v) status = HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == HLO_OK; i++)
        for (size_t j = 0; j < reports[i]->verdict_count; j++)
            if (reports[i]->verdicts[j].kind != HLO_VERDICT_WIDE)
                now.v[now.count++] = key_of(&reports[i]->verdicts[j]);
    if (status == HLO_OK) qsort(now.v, now.count, sizeof *now.v, by_key_and_origin);
    const json_t *summary = json_object_get(document, "summary");
    if (status == HLO_OK && !read_keys(document, &old))
        status = hlo_diag_refuse(sink, path, 0, 0,
                                 "not valid remarks: expected the output of --remarks-format=json");
    else if (status == HLO_OK && /* --remarks=missed omits some of the FP8 matmuls */
             json_integer_value(json_object_get(summary, "fp8")) +
                     json_integer_value(json_object_get(summary, "quantized")) !=
                 (json_int_t)old.count)
        status = hlo_diag_refuse(sink, path, 0, 0,
                                 "incomplete baseline: regenerate it with --remarks=all");
    const key *first = NULL;
    size_t lost = 0;
    for (size_t i = 0, j = 0; i < old.count && status == HLO_OK; i++) {
        while (j < now.count && by_key(&now.v[j], &old.v[i]) < 0) j++;
        if (j < now.count && by_key(&now.v[j], &old.v[i]) == 0 &&
            (old.v[i].quantized || !now.v[j].quantized))
            j++;
        else if (!lost++)
            first = &old.v[i];
    }
    if (status == HLO_OK && !allow_empty) status = gate_matmuls(reports, count, why, why_size);
    if (status == HLO_OK && !allow_empty &&
        json_integer_value(json_object_get(summary, "matmuls")) <= 0) {
        snprintf(why, why_size,
                 "the baseline %s has no matmuls to compare with; --allow-empty allows this", path);
        status = HLO_MISMATCH;
    }
    if (status == HLO_OK && lost) {
        const char *reason = NULL; /* reason of a wide matmul with this key */
        bool quantized = false;    /* --quantize quantized a matmul with this key */
        for (size_t i = 0; i < count && !reason; i++)
            for (size_t j = 0; j < reports[i]->verdict_count && !reason; j++) {
                const hlo_verdict *v = &reports[i]->verdicts[j];
                const key at = key_of(v);
                if (by_key(&at, first) != 0) continue;
                if (v->kind == HLO_VERDICT_WIDE) reason = v->reason;
                quantized |= v->kind != HLO_VERDICT_WIDE && v->quantized;
            }
        snprintf(why, why_size,
                 "%zu of %zu matmuls that were FP8 have regressed; first: %s %s is %s%s", lost,
                 old.count, *first->op_name ? first->op_name : first->instr, first->shape,
                 quantized ? "FP8 only because of --quantize"
                 : reason  ? "wide, reason: "
                           : "missing from the input",
                 reason && !quantized ? reason : "");
        status = HLO_MISMATCH;
    }
    free(now.v);
    free(old.v);
    json_decref(document);
    return status;
}
