/* SPDX-License-Identifier: Apache-2.0 */
/* The gates. They check the number of FP8 matmuls, the reasons, and the remarks of an earlier
 * run. */
#include <string.h>

#include "hlo/argument.h"
#include "hlo/suggest.h"
#include "ir/float/c_locale.h"
#include "report/baseline.h"
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

hlo_status hlo_reports_baseline(const hlo_report *const *reports, size_t count, const char *path,
                                bool allow_empty, const hlo_diag_sink *sink, char *why,
                                size_t why_size) {
    HLO_IN_C_LOCALE;
    if (why_size) *why = '\0';
    report_baseline b = {0};
    report_model *model = NULL;
    hlo_status status = report_model_new(reports, count, &model);
    if (status == HLO_OK) status = report_baseline_read(model, path, sink, &b);
    if (status == HLO_OK && !allow_empty) status = gate_matmuls(reports, count, why, why_size);
    if (status == HLO_OK && !allow_empty && report_baseline_total(&b, "matmuls") <= 0) {
        snprintf(why, why_size,
                 "the baseline %s has no matmuls to compare with; --allow-empty allows this", path);
        status = HLO_MISMATCH;
    }
    const report_entry *first = NULL;
    size_t lost = 0;
    for (size_t i = 0; i < b.old_count && status == HLO_OK; i++) {
        const report_entry *old = &b.old[i];
        if (old->origin == REPORT_WIDE || old->change == HLO_CHANGE_SAME) continue;
        if (!lost++) first = old;
    }
    if (lost) {
        const hlo_verdict *v = first->verdict;
        const bool wide = v && v->kind == HLO_VERDICT_WIDE;
        snprintf(why, why_size,
                 "%zu of %zu matmuls that were FP8 have regressed; first: %s %s is %s%s", lost,
                 b.old_fp8, *first->op_name ? first->op_name : first->instr, first->shape,
                 !v     ? "missing from the input"
                 : wide ? "wide, reason: "
                        : "FP8 only because of --quantize",
                 wide ? v->reason : "");
        status = HLO_MISMATCH;
    }
    report_baseline_free(&b);
    report_model_free(model);
    return status;
}
