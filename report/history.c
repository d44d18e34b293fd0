/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the stage from which a matmul can no longer run in FP8, by comparing the verdicts of all
 * stages. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/dump.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/ir.h"
#include "ir/text/options.h"
#include "ir/verify/verify.h"

/* A verdict of a stage. Entries with the same op_name and source line are adjacent, in text order.
 */
typedef struct entry {
    const hlo_verdict *verdict;
    size_t place; /* index in the report of the stage */
} entry;

typedef struct stage_verdicts {
    hlo_report *report;
    entry *entries; /* sorted by key, then place */
    size_t count;
} stage_verdicts;

struct hlo_history {
    hlo_arena *arena;
    stage_verdicts *stages;
    size_t stage_count;
    hlo_passage *passages;
    size_t count;
};

static int compare_text(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "");
}

/* Compares the op_name and the source line that identify a matmul across stages. */
static int by_key(const hlo_verdict *a, const hlo_verdict *b) {
    int order = compare_text(a->op_name, b->op_name);
    if (!order) order = compare_text(a->source_file, b->source_file);
    if (order) return order;
    return a->source_line < b->source_line ? -1 : a->source_line > b->source_line;
}

static int by_key_and_place(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = by_key(x->verdict, y->verdict);
    if (order) return order;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* --------------------------------------------------------------------------------------- stages */

/* Forwards errors only. Warnings and notes would be repeated for each stage. */
static void emit_error(void *sink, const hlo_diag *diag) {
    const hlo_diag_sink *to = sink;
    if (diag->severity == HLO_ERROR) to->emit(to->user, diag);
}

/* The entries of one key at one stage. */
typedef struct group {
    const entry *entries;
    size_t stage, count;
} group;

static int by_key_and_stage(const void *a, const void *b) {
    const group *x = a, *y = b;
    int order = by_key(x->entries->verdict, y->entries->verdict);
    if (order) return order;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

/* Counts the leading entries that have the key of the first one. */
static size_t count_alike(const entry *entries, size_t count) {
    size_t alike = 1;
    while (alike < count && by_key(entries->verdict, entries[alike].verdict) == 0) alike++;
    return alike;
}

/* Returns the groups of all stages, sorted by key, then stage. `most` is an upper bound on their
 * number. */
static group *find_groups(const hlo_history *h, size_t most, size_t *out_count) {
    group *groups = hlo_arena_array(h->arena, most, sizeof *groups);
    size_t count = 0;
    for (size_t k = 0; k < h->stage_count; k++) {
        const entry *at = h->stages[k].entries, *end = at + h->stages[k].count;
        for (; at < end; at += groups[count++].count)
            groups[count] = (group){at, k, count_alike(at, (size_t)(end - at))};
    }
    if (count) qsort(groups, count, sizeof *groups, by_key_and_stage);
    *out_count = count;
    return groups;
}

/* ------------------------------------------------------------------------------------- passages */

/* Returns the `X` of `NNNN.PIPELINE.after_X.before_Y`; NULL if the preceding passes were not
 * dumped.
 */
static const char *pass_before(hlo_arena *arena, const char *stage) {
    static const char after[] = ".after_";
    const char *at = strstr(stage, after);
    if (!at) return NULL;
    at += strlen(after);
    const char *end = strstr(at, ".before_");
    size_t length = end ? (size_t)(end - at) : strlen(at);
    if (strncmp(at, "pipeline-start", length) == 0) return NULL;
    return hlo_arena_format(arena, "%.*s", (int)length, at);
}

static bool is(const char *reason, const char *name) {
    return reason && strcmp(reason, name) == 0;
}

/* Describes how a matmul that was FP8 one stage before, `then`, changed; `now` is NULL if it is
 * gone. */
static const char *say_how(hlo_arena *arena, const hlo_verdict *then, const hlo_verdict *now,
                           size_t were, size_t are) {
    if (!now && are) return hlo_arena_format(arena, "merged: %zu matmuls became %zu", were, are);
    if (!now) return "no matmul with this op_name and source line remains";
    if (*now->epilogue) return "replaced by a cuBLASLt call on wide types";
    if (is(now->reason, "wide-library-call")) return "replaced by a library call on wide types";
    if (now->fusion && !then->fusion)
        return hlo_arena_format(arena, "now part of %s that multiplies wide types", now->fusion);
    if (is(now->reason, "not-quantized") || is(now->reason, "one-operand-wide"))
        return "its quantization was removed";
    if (are < were) return hlo_arena_format(arena, "merged: %zu matmuls became %zu", were, are);
    return hlo_arena_format(arena, "%s%s%s", now->message, now->blocker ? ", at " : "",
                            now->blocker ? now->blocker : "");
}

/* Follows the `member`th matmul of a key through the groups from its first one to `end`. */
static hlo_passage follow(const hlo_history *h, const hlo_dump *dump, size_t module,
                          const group *at, const group *end, size_t member) {
    const hlo_verdict *first = at->entries[member].verdict;
    hlo_passage p = {.first = *first, .last = *first, .kept = SIZE_MAX, .lost = SIZE_MAX};
    size_t were = 0, count = 0;
    /* At the stage after the last group the matmul is gone, and stays gone. */
    for (size_t k = at->stage; k < h->stage_count && k <= end[-1].stage + 1; k++, were = count) {
        const group *here = at < end && at->stage == k ? at++ : NULL;
        count = here ? here->count : 0;
        const hlo_verdict *now = member < count ? here->entries[member].verdict : NULL;
        const hlo_verdict then = p.last;
        p.gone = !now;
        if (now) p.last = *now;
        if (now && now->kind != HLO_VERDICT_WIDE) {
            p.kept = k;
            p.lost = SIZE_MAX;
        } else if (p.kept != SIZE_MAX && p.lost == SIZE_MAX) {
            p.lost = k;
            p.pass = pass_before(h->arena, hlo_dump_stage(dump, module, k));
            p.how = say_how(h->arena, &then, now, were, count);
        }
    }
    if (p.lost == SIZE_MAX) p.kept = SIZE_MAX;
    return p;
}

static int by_first_line(const void *a, const void *b) {
    const hlo_passage *x = a, *y = b;
    int order = strcmp(x->first.file, y->first.file);
    if (order) return order;
    return x->first.line < y->first.line ? -1 : x->first.line > y->first.line;
}

static hlo_status fill(hlo_history **out_history, const hlo_dump *dump, size_t module,
                       const hlo_pass_options *options) {
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_arena *arena;
    hlo_history *h = *out_history = hlo_arena_new_with(&recover, sizeof *h, &arena);
    if (!h) return HLO_OUT_OF_MEMORY;
    h->arena = arena;
    size_t count = hlo_dump_stage_count(dump, module);
    h->stages = hlo_arena_zero(arena, count * sizeof *h->stages);
    h->stage_count = count;
    for (size_t k = 0; k < count; k++) {
        const char *path = hlo_dump_path(dump, module, k);
        hlo_module *of;
        hlo_status status = hlo_module_parse_file(path, options->sink, &of);
        if (status != HLO_OK) return status;
        status = hlo_module_ensure_verified(of, options->max_errors, options->sink);
        const hlo_diag_sink errors = {.emit = emit_error, .user = (void *)options->sink};
        hlo_pass_options of_stage = *options;
        of_stage.verify_none = of_stage.wide_unmatched = true;
        of_stage.sink = options->sink ? &errors : NULL;
        if (status == HLO_OK) status = hlo_module_optimize(of, &of_stage, &h->stages[k].report);
        hlo_module_free(of);
        if (status != HLO_OK) return status;
        h->stages[k].count = hlo_report_count(h->stages[k].report);
        h->stages[k].entries =
            hlo_arena_array(h->arena, h->stages[k].count, sizeof *h->stages[k].entries);
        for (size_t i = 0; i < h->stages[k].count; i++)
            h->stages[k].entries[i] = (entry){hlo_report_verdict(h->stages[k].report, i), i};
        if (h->stages[k].count)
            qsort(h->stages[k].entries, h->stages[k].count, sizeof *h->stages[k].entries,
                  by_key_and_place);
    }
    if (!options->wide_unmatched) {
        const hlo_report **reports = hlo_arena_array(arena, count, sizeof *reports);
        for (size_t k = 0; k < count; k++) reports[k] = h->stages[k].report;
        hlo_status status =
            hlo_reports_check_wide(reports, count, options->wide, NULL, options->sink);
        if (status != HLO_OK) return status;
    }
    /* Finds the passages. A matmul begins at a stage where its group is larger than at all earlier
     * stages. */
    size_t most = 0, total;
    for (size_t k = 0; k < h->stage_count; k++) most += h->stages[k].count;
    h->passages = hlo_arena_array(h->arena, most, sizeof *h->passages);
    const group *at = find_groups(h, most, &total), *const last = at + total;
    while (at < last) {
        const group *end = at + 1;
        while (end < last && by_key(at->entries->verdict, end->entries->verdict) == 0) end++;
        for (size_t seen = 0; at < end; at++)
            for (; seen < at->count; seen++)
                h->passages[h->count++] = follow(h, dump, module, at, end, seen);
    }
    if (h->count) qsort(h->passages, h->count, sizeof *h->passages, by_first_line);
    hlo_arena_set_recover(arena, NULL);
    return HLO_OK;
}

hlo_status hlo_history_new(const hlo_dump *dump, size_t module, const hlo_pass_options *options,
                           hlo_history **out_history) {
    HLO_IN_C_LOCALE;
    *out_history = NULL;
    hlo_pass_options own;
    hlo_pass_options_init(&own);
    hlo_status status = hlo_options_take("hlo_pass_options", &own, sizeof own,
                                         offsetof(hlo_pass_options, rules_text), options,
                                         hlo_options_sink(options));
    if (status == HLO_OK) status = fill(out_history, dump, module, &own);
    if (status == HLO_OK) return status;
    hlo_history_free(*out_history);
    *out_history = NULL;
    return status;
}

void hlo_history_free(hlo_history *history) {
    if (!history) return;
    for (size_t k = 0; k < history->stage_count; k++) hlo_report_free(history->stages[k].report);
    hlo_arena_free(history->arena);
}

size_t hlo_history_count(const hlo_history *history) {
    return history->count;
}

const hlo_passage *hlo_history_passage(const hlo_history *history, size_t index) {
    return &history->passages[index];
}

const hlo_report *hlo_history_stage_report(const hlo_history *history, size_t stage) {
    return history->stages[stage].report;
}

const hlo_report *hlo_history_report(const hlo_history *history) {
    return hlo_history_stage_report(history, history->stage_count - 1);
}
