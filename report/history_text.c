/* SPDX-License-Identifier: Apache-2.0 */
/* Histories as text and as JSON (docs/history.schema.json). */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/dump.h"
#include "ir/float/c_locale.h"
#include "matmul/json.h"
#include "report/format.h"

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

/* Returns the name of the matmul in the last stage; NULL if it is gone. */
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

/* Totals of modules: counts of matmuls, and their FLOPs at the first stage that has each. */
typedef struct totals {
    size_t matmuls, fp8, would_be, lost;
    double flops, fp8_flops; /* for one execution of each module */
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
    hlo_print_plain(out, "%s: %zu stages, %zu matmuls\n", hlo_dump_module(dump, module),
                    hlo_dump_stage_count(dump, module), sum.matmuls);
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
        /* Not a fused call: name the kind of fusion. */
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

/* Returns the modules sorted by FLOPs, largest first; NULL if out of memory. */
static ranked *rank(const hlo_dump *dump, const hlo_history *const *histories) {
    size_t count = hlo_dump_module_count(dump);
    ranked *order = malloc((count + 1) * sizeof *order);
    for (size_t i = 0; order && i < count; i++) order[i] = (ranked){i, add_up(histories[i])};
    if (order) qsort(order, count, sizeof *order, by_flops);
    return order;
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

static json_t *json_of_history(const hlo_dump *dump, size_t module, const hlo_history *history,
                               hlo_remarks which) {
    json_t *stages = json_array(), *matmuls = json_array();
    for (size_t k = 0; k < hlo_dump_stage_count(dump, module); k++)
        json_array_append_new(stages, writer_string(hlo_dump_stage(dump, module, k)));
    for (size_t i = 0; i < hlo_history_count(history); i++) {
        const hlo_passage *p = hlo_history_passage(history, i);
        if (is_wanted(p, which)) json_array_append_new(matmuls, json_of_passage(dump, module, p));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "module", writer_string(hlo_dump_module(dump, module)),
                     "target", writer_string(hlo_dump_target(dump, module)), "stages", stages,
                     "matmuls", matmuls);
}

hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               hlo_remarks which, hlo_remarks_format format, FILE *out) {
    HLO_IN_C_LOCALE;
    if (format != HLO_REMARKS_TEXT && format != HLO_REMARKS_JSON) return HLO_INVALID_USAGE;
    hlo_status status = HLO_OK;
    ranked *order = rank(dump, histories);
    if (!order) return HLO_OUT_OF_MEMORY;
    if (format == HLO_REMARKS_TEXT) {
        size_t count = hlo_dump_module_count(dump), told = 0;
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
            told++;
        }
        if (told < count) fprintf(out, "%zu modules without matmuls\n", count - told);
        if (count > 1) {
            fprintf(out, "%zu modules: ", count);
            writer_totals(&all, out);
        }
    } else {
        hlo_json_watch();
        json_t *modules = json_array();
        for (size_t i = 0; i < hlo_dump_module_count(dump); i++)
            json_array_append_new(
                modules, json_of_history(dump, order[i].module, histories[order[i].module], which));
        status = writer_document(json_pack("{s:i, s:o}", "version", 1, "modules", modules), out);
    }
    free(order);
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    return status;
}
