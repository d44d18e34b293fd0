/* SPDX-License-Identifier: Apache-2.0 */
/* The gates on the number of FP8 matmuls and on reasons. */
#include <stdlib.h>
#include <string.h>

#include "hlo/argument.h"
#include "hlo/suggest.h"
#include "ir/float/c_locale.h"
#include "report/format.h"

static hlo_status gate_count(const writer_summary *s, const char *expect, char *why, size_t size) {
    size_t fp8 = writer_fp8_count(s);
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
    /* The quotient of two whole numbers rounds as strtod() rounds the percentage. The product
     * number / 100 * total does not: 55 % of 100 would be more than 55. */
    const double share = s->total ? 100.0 * (double)fp8 / (double)s->total : 100;
    if ((percent ? share : (double)fp8) >= number) return HLO_OK;
    snprintf(why, size, "expected %s%s matmuls in FP8, found %zu of %zu", expect,
             percent && number < 100 ? " of" : "", fp8, s->total);
    return HLO_MISMATCH;
}

static hlo_status gate_reasons(const writer_summary *s, const char *fail_on, char *why,
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
    for (int kind = 0; kind < WRITER_KINDS; kind++)
        for (int reason = 0; reason < HLO_REASON_COUNT; reason++) {
            if (!watched[reason] || !s->reasons[kind][reason]) continue;
            *(kind == HLO_VERDICT_LINT ? &lints : &found) += s->reasons[kind][reason];
            if (!first) first = hlo_reason_name((size_t)reason);
        }
    if (!found && !lints) return HLO_OK;
    char more[64] = "";
    if (lints) snprintf(more, sizeof more, " and %zu lint%s found", lints, lints == 1 ? "" : "s");
    snprintf(why, size, "%zu of %zu matmuls not fully converted%s; first reason: %s", found,
             s->total, more, first);
    return HLO_MISMATCH;
}

hlo_status gate_matmuls(const hlo_report *const *reports, size_t count, char *why, size_t size) {
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
    writer_summary s = writer_sum_up(reports, count);
    hlo_status counts = expect ? gate_count(&s, expect, why, why_size) : HLO_OK;
    if (counts == HLO_INVALID_USAGE) return counts;
    /* Report unknown reasons even if the count is too low. */
    char other[1024] = "";
    hlo_status reasons = fail_on ? gate_reasons(&s, fail_on, other, sizeof other) : HLO_OK;
    if (reasons == HLO_OK && !allow_empty && gate_matmuls(reports, count, why, why_size) != HLO_OK)
        return HLO_MISMATCH;
    if (counts != HLO_OK && reasons != HLO_INVALID_USAGE) return counts;
    if (reasons != HLO_OK) snprintf(why, why_size, "%s", other);
    return reasons;
}
