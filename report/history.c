/* SPDX-License-Identifier: Apache-2.0 */
/* Creates histories of matmuls. Compares the verdicts of all stages to find the stage from which a
 * matmul can no longer run in FP8. Prints histories as text and as JSON
 * (docs/history.schema.json). */
#include <jansson.h>
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
#include "matmul/json.h"
#include "report/format.h"

typedef struct stage_verdicts {
    hlo_report *report;
    /* Sorted by key, then by place in the report. Entries with the same op_name and source line are
     * adjacent, in text order. */
    writer_ranked *entries;
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
    const writer_ranked *x = a, *y = b;
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
    writer_ranked first; /* must be the first member, for by_key_and_place(): the verdict of the
                          * first entry, with the stage as place */
    const writer_ranked *entries;
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
static hlo_passage follow(const hlo_history *h, const hlo_dump *dump, size_t module,
                          const group *at, const group *end, size_t member) {
    const hlo_verdict *first = at->entries[member].verdict;
    hlo_passage p = {.first = *first, .last = *first, .kept = SIZE_MAX, .lost = SIZE_MAX};
    size_t were = 0, count = 0;
    /* At the stage after the last group, the matmul no longer exists. */
    for (size_t k = at->first.place; k < h->stage_count && k <= end[-1].first.place + 1;
         k++, were = count) {
        const group *here = at < end && at->first.place == k ? at++ : NULL;
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
        stage_verdicts *stage = &h->stages[k];
        hlo_module *read;
        hlo_status status =
            hlo_module_parse_file(hlo_dump_path(dump, module, k), options->sink, &read);
        if (status != HLO_OK) return status;
        status = hlo_module_ensure_verified(read, options->max_errors, options->sink);
        const hlo_diag_sink errors = {.emit = emit_error, .user = (void *)options->sink};
        hlo_pass_options of_stage = *options;
        of_stage.verify_none = of_stage.wide_unmatched = true;
        of_stage.sink = options->sink ? &errors : NULL;
        if (status == HLO_OK) status = hlo_module_optimize(read, &of_stage, &stage->report);
        hlo_module_free(read);
        if (status != HLO_OK) return status;
        stage->count = hlo_report_count(stage->report);
        stage->entries = hlo_arena_array(arena, stage->count, sizeof *stage->entries);
        for (size_t i = 0; i < stage->count; i++)
            stage->entries[i] = (writer_ranked){hlo_report_verdict(stage->report, i), i};
        if (stage->count)
            qsort(stage->entries, stage->count, sizeof *stage->entries, by_key_and_place);
    }
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
        const writer_ranked *at = h->stages[k].entries, *end = at + h->stages[k].count;
        for (; at < end; at += groups[total++].count) {
            size_t alike = 1; /* number of leading entries with the same key */
            while (at + alike < end && by_key(at->verdict, at[alike].verdict) == 0) alike++;
            groups[total] = (group){{at->verdict, k}, at, alike};
        }
    }
    if (total) qsort(groups, total, sizeof *groups, by_key_and_place);
    const group *at = groups, *const last = at + total;
    while (at < last) {
        const group *end = at + 1;
        while (end < last && by_key(at->first.verdict, end->first.verdict) == 0) end++;
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

const hlo_passage *hlo_history_passage(const hlo_history *history, size_t index) {
    return &history->passages[index];
}

const hlo_report *hlo_history_stage_report(const hlo_history *history, size_t stage) {
    return history->stages[stage].report;
}

const hlo_report *hlo_history_report(const hlo_history *history) {
    return hlo_history_stage_report(history, history->stage_count - 1);
}

static bool is_fp8(const hlo_passage *p) {
    return !p->gone && p->last.kind != HLO_VERDICT_WIDE;
}

/* True if the last stage has a plain dot, which the passes convert to FP8. */
static bool would_be_fp8(const hlo_passage *p) {
    return is_fp8(p) && !p->last.fusion && strcmp(p->last.operation, "dot") == 0;
}

static const char *reason_of(const hlo_passage *p) {
    return p->gone ? NULL : p->last.reason;
}

/* Returns the name of the matmul in the last stage; NULL if it no longer exists. */
static const char *last_name(const hlo_passage *p) {
    return p->gone ? NULL : p->last.input_instr;
}

static bool is_wanted(const hlo_passage *p, hlo_remarks which) {
    if (which == HLO_REMARKS_PASSED) return is_fp8(p);
    return which == HLO_REMARKS_ALL || !is_fp8(p) || p->last.kind == HLO_VERDICT_MISSED;
}

static const char *outcome(const hlo_passage *p) {
    return p->gone ? "gone" : writer_kinds[p->last.kind];
}

/* ----------------------------------------------------------------------------------------- text */

/* Totals of modules: counts of matmuls, and their FLOPs at the first stage of each matmul. */
typedef struct totals {
    size_t matmuls, fp8, would_be, lost;
    double flops, fp8_flops; /* FLOPs of one execution of each module */
} totals;

static totals add_up(const hlo_history *history) {
    totals sum = {.matmuls = hlo_history_count(history)};
    for (size_t i = 0; i < sum.matmuls; i++) {
        const hlo_passage *p = hlo_history_passage(history, i);
        double flops = p->first.runs * p->first.flops;
        const bool fp8 = is_fp8(p) && !would_be_fp8(p);
        sum.fp8 += fp8;
        sum.would_be += would_be_fp8(p);
        sum.lost += p->lost != SIZE_MAX;
        sum.flops += flops;
        if (fp8) sum.fp8_flops += flops;
    }
    return sum;
}

static void writer_totals(const totals *sum, FILE *out) {
    fprintf(out, "%zu of %zu matmuls in FP8 at the last stage", sum->fp8, sum->matmuls);
    if (sum->flops > 0) fprintf(out, " (%.0f %% of FLOPs)", 100 * sum->fp8_flops / sum->flops);
    if (sum->would_be) fprintf(out, ", %zu convertible", sum->would_be);
    fprintf(out, ", %zu lost\n", sum->lost);
}

static void writer_one(const hlo_dump *dump, size_t module, const hlo_history *history,
                       hlo_remarks which, FILE *out) {
    bool has_reason[HLO_REASON_COUNT] = {false};
    const totals sum = add_up(history);
    const char *target = hlo_dump_target(dump, module);
    const size_t compilations = hlo_dump_compilation_count(dump, module);
    hlo_print_plain(out, "%s: %zu stages, %zu matmuls", hlo_dump_module(dump, module),
                    hlo_dump_stage_count(dump, module), sum.matmuls);
    if (compilations > 1) fprintf(out, ", compiled %zu times", compilations);
    fputc('\n', out);
    if (target && strcmp(target, "cpu") == 0)
        fputs("  compiled for a CPU, where XLA makes no FP8 calls; \"convertible\" applies to a "
              "GPU\n",
              out);
    for (size_t i = 0; i < sum.matmuls; i++) {
        const hlo_passage *p = hlo_history_passage(history, i);
        if (!is_wanted(p, which)) continue;
        hlo_print_plain(out, "  %-6s  %s", outcome(p), p->first.input_instr);
        if (last_name(p) && strcmp(last_name(p), p->first.input_instr) != 0)
            hlo_print_plain(out, " -> %s", last_name(p));
        hlo_print_plain(out, "  %s", p->first.input_shape);
        if (reason_of(p)) fprintf(out, "  %s", reason_of(p));
        /* Print the kind of fusion if the matmul is not a fused call. */
        if (is_fp8(p) && p->last.fusion) fprintf(out, "  %s", p->last.epilogue);
        if (would_be_fp8(p)) fputs("  convertible to FP8: still a plain dot", out);
        if (p->first.source_file)
            hlo_print_plain(out, "  %s:%ld", p->first.source_file, p->first.source_line);
        hlo_print_plain(out, "  %s\n", p->first.op_name ? p->first.op_name : "");
        if (p->lost != SIZE_MAX) {
            hlo_print_plain(out, "    last convertible at  %s\n",
                            hlo_dump_stage(dump, module, p->kept));
            hlo_print_plain(out, "    lost at              %s\n",
                            hlo_dump_stage(dump, module, p->lost));
            hlo_print_plain(out, "    %s: %s\n",
                            p->pass ? p->pass : "between these stages (passes not dumped)", p->how);
        }
        if (p->lost == SIZE_MAX && reason_of(p)) has_reason[hlo_reason_find(reason_of(p))] = true;
    }
    writer_reasons(out, has_reason, false);
    writer_totals(&sum, out);
}

typedef struct ranked {
    size_t module;
    totals sum;
} ranked;

static int by_flops(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->sum.flops != y->sum.flops) return x->sum.flops > y->sum.flops ? -1 : 1;
    return x->module < y->module ? -1 : x->module > y->module;
}

/* ----------------------------------------------------------------------------------------- JSON */

static json_t *json_of_passage(const hlo_dump *dump, size_t module, const hlo_passage *p) {
    const hlo_verdict *first = &p->first;
    return json_pack("{s:s, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "outcome", outcome(p), "reason", writer_string(reason_of(p)), "operation",
                     writer_string(first->operation), "fusion",
                     writer_string(p->gone ? NULL : p->last.fusion), "runs", first->runs, "flops",
                     first->flops, "instruction", writer_string(first->input_instr),
                     "last_instruction", writer_string(last_name(p)), "shape",
                     writer_string(first->input_shape), "op_name", writer_string(first->op_name),
                     "source_file", writer_string(first->source_file), "source_line",
                     first->source_line ? json_integer(first->source_line) : json_null(),
                     "first_file", writer_string(first->file), "loss",
                     p->lost == SIZE_MAX
                         ? json_null()
                         : json_pack("{s:o, s:o, s:o, s:o}", "kept",
                                     writer_string(hlo_dump_stage(dump, module, p->kept)), "lost",
                                     writer_string(hlo_dump_stage(dump, module, p->lost)), "pass",
                                     writer_string(p->pass), "how", writer_string(p->how)));
}

hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               hlo_remarks which, hlo_remarks_format format, FILE *out) {
    HLO_IN_C_LOCALE;
    if (format != HLO_REMARKS_TEXT && format != HLO_REMARKS_JSON) return HLO_INVALID_USAGE;
    hlo_status status = HLO_OK;
    const size_t count = hlo_dump_module_count(dump);
    ranked *order = malloc((count + 1) * sizeof *order); /* largest FLOPs first */
    if (!order) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) order[i] = (ranked){i, add_up(histories[i])};
    qsort(order, count, sizeof *order, by_flops);
    if (format == HLO_REMARKS_TEXT) {
        size_t printed = 0;
        totals all = {0};
        for (size_t i = 0; i < count; i++) {
            const totals *sum = &order[i].sum;
            if (!sum->matmuls) continue;
            writer_one(dump, order[i].module, histories[order[i].module], which, out);
            all.matmuls += sum->matmuls;
            all.fp8 += sum->fp8;
            all.would_be += sum->would_be;
            all.lost += sum->lost;
            all.flops += sum->flops;
            all.fp8_flops += sum->fp8_flops;
            printed++;
        }
        if (printed < count) fprintf(out, "%zu modules without matmuls\n", count - printed);
        if (count > 1) {
            fprintf(out, "%zu modules: ", count);
            writer_totals(&all, out);
        }
    } else {
        hlo_json_watch();
        json_t *modules = json_array();
        for (size_t i = 0; i < count; i++) {
            const size_t module = order[i].module;
            const hlo_history *history = histories[module];
            json_t *stages = json_array(), *matmuls = json_array();
            for (size_t k = 0; k < hlo_dump_stage_count(dump, module); k++)
                json_array_append_new(stages, writer_string(hlo_dump_stage(dump, module, k)));
            for (size_t m = 0; m < hlo_history_count(history); m++) {
                const hlo_passage *p = hlo_history_passage(history, m);
                if (is_wanted(p, which))
                    json_array_append_new(matmuls, json_of_passage(dump, module, p));
            }
            json_array_append_new(
                modules, json_pack("{s:o, s:I, s:o, s:o, s:o}", "module",
                                   writer_string(hlo_dump_module(dump, module)), "compilations",
                                   (json_int_t)hlo_dump_compilation_count(dump, module), "target",
                                   writer_string(hlo_dump_target(dump, module)), "stages", stages,
                                   "matmuls", matmuls));
        }
        status = writer_document(json_pack("{s:i, s:o}", "version", 1, "modules", modules), out);
    }
    free(order);
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    return status;
}
