/* SPDX-License-Identifier: Apache-2.0 */
/* Creates histories of matmuls. Compares the verdicts of all stages to find the stage from which a
 * matmul can no longer run in FP8. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/dump.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/ir.h"
#include "ir/text/options.h"
#include "ir/verify/verify.h"
#include "passes/verdict/report.h"

typedef struct placed {
    const hlo_verdict *verdict;
    size_t place;
} placed;

typedef struct stage_verdicts {
    hlo_report *report;
    /* Sorted by key, then by place in the report. Entries with the same op_name and source line are
     * adjacent, in text order. */
    placed *entries;
    size_t count;
} stage_verdicts;

typedef struct passage {
    hlo_matmul_history matmul;  /* must be the first member, for by_first_line() */
    const hlo_verdict **stages; /* its verdict at each stage; NULL where it does not exist */
} passage;

struct hlo_history {
    hlo_arena *arena;
    stage_verdicts *stages;
    size_t stage_count;
    passage *passages;
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
    const placed *x = a, *y = b;
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

/* The entries that have the same key at one stage. */
typedef struct group {
    placed first; /* must be the first member, for by_key_and_place(): the verdict of the
                   * first entry, with the stage as place */
    const placed *entries;
    size_t count;
} group;

/* ------------------------------------------------------------------------------------- passages */

static bool is(const char *reason, const char *name) {
    return reason && strcmp(reason, name) == 0;
}

/* Describes how a matmul that was FP8 changed from verdict `then` to verdict `now` of the next
 * stage. `now` is NULL if the matmul no longer exists. */
static const char *say_how(hlo_arena *arena, const hlo_verdict *then, const hlo_verdict *now,
                           size_t were, size_t are) {
    if (!now && are) return hlo_arena_format(arena, "merged %zu matmuls into %zu", were, are);
    if (!now) return "no matmul with this op_name and source line remains";
    if (*now->epilogue) return "replaced by a cuBLASLt call on wide types";
    if (is(now->reason, "wide-library-call")) return "replaced by a library call on wide types";
    if (now->fusion && !then->fusion)
        return hlo_arena_format(arena, "now part of %s that multiplies wide types", now->fusion);
    if (is(now->reason, "not-quantized") || is(now->reason, "one-operand-wide"))
        return "its quantization was removed";
    if (are < were) return hlo_arena_format(arena, "merged %zu matmuls into %zu", were, are);
    return hlo_arena_format(arena, "%s%s%s", now->message, now->blocker ? ", at " : "",
                            now->blocker ? now->blocker : "");
}

/* Follows the matmul with index `member` in the groups of a key, from group `at` to `end`. */
static passage follow(const hlo_history *h, const hlo_dump *dump, size_t module, const group *at,
                      const group *end, size_t member) {
    const hlo_verdict *first = at->entries[member].verdict;
    const hlo_verdict **stages = hlo_arena_zero(h->arena, h->stage_count * sizeof(hlo_verdict *));
    hlo_matmul_history p = {.first = *first, .last = *first, .kept = SIZE_MAX, .lost = SIZE_MAX};
    size_t were = 0, count = 0;
    /* At the stage after the last group, the matmul no longer exists. */
    for (size_t k = at->first.place; k < h->stage_count && k <= end[-1].first.place + 1;
         k++, were = count) {
        const group *here = at < end && at->first.place == k ? at++ : NULL;
        count = here ? here->count : 0;
        const hlo_verdict *now = member < count ? here->entries[member].verdict : NULL;
        const hlo_verdict then = p.last;
        stages[k] = now;
        p.gone = !now;
        if (now) p.last = *now;
        if (now && now->kind != HLO_VERDICT_WIDE) {
            p.kept = k;
            p.lost = SIZE_MAX;
        } else if (p.kept != SIZE_MAX && p.lost == SIZE_MAX) {
            p.lost = k;
            p.pass = NULL; /* unknown unless the name of the stage contains the pass */
            /* Read the `X` in `NNNN.PIPELINE.after_X.before_Y`. */
            const char *pass = strstr(hlo_dump_stage(dump, module, k), ".after_");
            if (pass) {
                pass += strlen(".after_");
                const char *stop = strstr(pass, ".before_");
                size_t length = stop ? (size_t)(stop - pass) : strlen(pass);
                if (strncmp(pass, "pipeline-start", length) != 0)
                    p.pass = hlo_arena_format(h->arena, "%.*s", (int)length, pass);
            }
            p.how = say_how(h->arena, &then, now, were, count);
        }
    }
    if (p.lost == SIZE_MAX) p.kept = SIZE_MAX;
    return (passage){p, stages};
}

static int by_first_line(const void *a, const void *b) {
    const hlo_matmul_history *x = a, *y = b;
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
        stage_verdicts *stage = &h->stages[k];
        hlo_module *read;
        hlo_status status =
            hlo_module_parse_file(hlo_dump_path(dump, module, k), options->sink, &read);
        if (status != HLO_OK) return status;
        status = hlo_module_ensure_verified(read, options->max_errors, options->sink);
        const hlo_diag_sink errors = {.emit = emit_error, .user = (void *)options->sink};
        hlo_pass_options of_stage = *options;
        of_stage.verify_none = of_stage.wide_unmatched = true;
        of_stage.surroundings &= k + 1 == count;
        of_stage.lint &= k == 0;
        of_stage.sink = options->sink ? &errors : NULL;
        if (status == HLO_OK) status = hlo_module_optimize(read, &of_stage, &stage->report);
        hlo_module_free(read);
        if (status != HLO_OK) return status;
        stage->count = hlo_report_count(stage->report);
        stage->entries = hlo_arena_array(arena, stage->count, sizeof *stage->entries);
        for (size_t i = 0; i < stage->count; i++)
            stage->entries[i] = (placed){hlo_report_verdict(stage->report, i), i};
        if (stage->count)
            qsort(stage->entries, stage->count, sizeof *stage->entries, by_key_and_place);
    }
    /* Lints are about the program, which the first stage shows: later ones have fusions. */
    hlo_report *last = h->stages[count - 1].report;
    last->lints = h->stages[0].report->lints;
    last->lint_count = h->stages[0].report->lint_count;
    if (!options->wide_unmatched) {
        const hlo_report **reports = hlo_arena_array(arena, count, sizeof *reports);
        for (size_t k = 0; k < count; k++) reports[k] = h->stages[k].report;
        hlo_status status =
            hlo_reports_check_wide(reports, count, options->wide, NULL, options->sink);
        if (status != HLO_OK) return status;
    }
    /* A matmul begins at a stage where its group is larger than at all earlier stages. */
    size_t most = 0, total = 0;
    for (size_t k = 0; k < count; k++) most += h->stages[k].count;
    h->passages = hlo_arena_array(arena, most, sizeof *h->passages);
    group *groups = hlo_arena_array(arena, most, sizeof *groups);
    for (size_t k = 0; k < count; k++) {
        const placed *at = h->stages[k].entries, *end = at + h->stages[k].count;
        for (; at < end; at += groups[total++].count) {
            size_t alike = 1; /* number of leading entries with the same key */
            while (at + alike < end && by_key(at->verdict, at[alike].verdict) == 0) alike++;
            groups[total] = (group){{at->verdict, k}, at, alike};
        }
    }
    if (total) qsort(groups, total, sizeof *groups, by_key_and_place);
    const group *at = groups, *const stop = at + total;
    while (at < stop) {
        const group *end = at + 1;
        while (end < stop && by_key(at->first.verdict, end->first.verdict) == 0) end++;
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
    hlo_status status =
        hlo_options_take("hlo_pass_options", &own, sizeof own, options, hlo_options_sink(options));
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

const hlo_matmul_history *hlo_history_passage(const hlo_history *history, size_t index) {
    return &history->passages[index].matmul;
}

const hlo_verdict *hlo_history_verdict(const hlo_history *history, size_t index, size_t stage) {
    return history->passages[index].stages[stage];
}

const hlo_report *hlo_history_stage_report(const hlo_history *history, size_t stage) {
    return history->stages[stage].report;
}

const hlo_report *hlo_history_report(const hlo_history *history) {
    return hlo_history_stage_report(history, history->stage_count - 1);
}
