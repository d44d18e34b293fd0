/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the histories of the matmuls of a dump folder as text and as JSON
 * (docs/history.schema.json), and the reports of the last stages in the other formats. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/dump.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/writer.h"
#include "matmul/json.h"
#include "report/format.h"

static bool is_fp8(const hlo_matmul_history *p) {
    return !p->gone && p->last->kind != HLO_VERDICT_WIDE;
}

/* True if the last stage has a plain dot, which the passes convert to FP8. */
static bool would_be_fp8(const hlo_matmul_history *p) {
    return is_fp8(p) && !p->last->fusion && strcmp(p->last->operation, "dot") == 0;
}

static const char *reason_of(const hlo_matmul_history *p) {
    return p->gone ? NULL : p->last->reason;
}

/* Returns the name of the matmul in the last stage; NULL if it no longer exists. */
static const char *last_name(const hlo_matmul_history *p) {
    return p->gone ? NULL : p->last->input_instruction;
}

static bool is_wanted(const hlo_matmul_history *p, hlo_remarks which) {
    if (which == HLO_REMARKS_PASSED) return is_fp8(p);
    return which != HLO_REMARKS_MISSED || !is_fp8(p) || p->last->kind == HLO_VERDICT_MISSED;
}

static const char *outcome(const hlo_matmul_history *p) {
    return p->gone ? "gone" : writer_kinds[p->last->kind];
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
        const hlo_matmul_history *p = hlo_history_passage(history, i);
        double flops = p->first->runs * p->first->flops;
        const bool fp8 = is_fp8(p) && !would_be_fp8(p);
        sum.fp8 += fp8;
        sum.would_be += would_be_fp8(p);
        sum.lost += p->lost != SIZE_MAX;
        sum.flops += flops;
        if (fp8) sum.fp8_flops += flops;
    }
    return sum;
}

static void print_sums(const totals *sum, FILE *out) {
    fprintf(out, "%zu of %zu matmuls in FP8 at the last stage", sum->fp8, sum->matmuls);
    char share[WRITER_NUMBER];
    if (sum->flops > 0)
        fprintf(out, " (%s of FLOPs)", writer_share(sum->fp8_flops, sum->flops, share));
    if (sum->would_be) fprintf(out, ", %zu convertible", sum->would_be);
    fprintf(out, ", %zu lost\n", sum->lost);
}

static void print_matmul(const hlo_matmul_history *p, int indent, FILE *out) {
    hlo_print_plain(out, "%*s%-6s  %s", indent, "", outcome(p), p->first->input_instruction);
    if (last_name(p) && strcmp(last_name(p), p->first->input_instruction) != 0)
        hlo_print_plain(out, " -> %s", last_name(p));
    hlo_print_plain(out, "  %s", p->first->input_shape);
    if (reason_of(p)) fprintf(out, "  %s", reason_of(p));
    /* Print the kind of fusion if the matmul is not a fused call. */
    if (is_fp8(p) && p->last->fusion) fprintf(out, "  %s", p->last->epilogue);
    if (would_be_fp8(p)) fputs("  convertible to FP8: still a plain dot", out);
    if (p->first->source_file)
        hlo_print_plain(out, "  %s:%ld", p->first->source_file, p->first->source_line);
    if (p->first->op_name) hlo_print_plain(out, "  %s", p->first->op_name);
    fputc('\n', out);
}

/* Compares histories for qsort(): by what they lost, earliest stage first; matmuls that lost
 * nothing are last. */
static int by_loss(const void *a, const void *b) {
    const hlo_matmul_history *x = *(const hlo_matmul_history *const *)a,
                             *y = *(const hlo_matmul_history *const *)b;
    if (x->lost != y->lost) return x->lost < y->lost ? -1 : 1;
    const int order = x->lost == SIZE_MAX ? 0 : strcmp(x->how, y->how);
    return order ? order : x < y ? -1 : x > y;
}

/* Prints the matmuls of a module. Those that lost FP8 at the same stage, and in the same way, are
 * one list. */
static hlo_status print_history(const hlo_dump *dump, size_t module, const hlo_history *history,
                                hlo_remarks which, FILE *out) {
    bool has_reason[HLO_REASON_COUNT] = {false};
    const totals sum = add_up(history);
    const hlo_matmul_history **order = hlo_malloc((sum.matmuls + 1) * sizeof(hlo_matmul_history *));
    if (!order) return HLO_OUT_OF_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < sum.matmuls; i++) {
        const hlo_matmul_history *p = hlo_history_passage(history, i);
        if (is_wanted(p, which)) order[count++] = p;
    }
    if (count) qsort(order, count, sizeof(hlo_matmul_history *), by_loss);
    writer_module(dump, module, sum.matmuls, out);
    for (size_t i = 0, next; i < count && order[i]->lost != SIZE_MAX; i = next) {
        const hlo_matmul_history *p = order[i];
        for (next = i + 1;
             next < count && order[next]->lost == p->lost && strcmp(order[next]->how, p->how) == 0;)
            next++;
        fprintf(out, "  FP8 lost in %zu matmul%s\n", next - i, next - i == 1 ? "" : "s");
        hlo_print_plain(out, "    last convertible at  %s\n",
                        hlo_dump_stage(dump, module, p->kept));
        hlo_print_plain(out, "    lost at              %s\n",
                        hlo_dump_stage(dump, module, p->lost));
        hlo_print_plain(out, "    %s: %s\n",
                        p->pass ? p->pass : "between these stages (passes not dumped)", p->how);
        for (size_t j = i; j < next; j++) print_matmul(order[j], 4, out);
    }
    for (size_t i = 0; i < count; i++) {
        if (order[i]->lost != SIZE_MAX) continue;
        print_matmul(order[i], 2, out);
        if (reason_of(order[i])) has_reason[hlo_reason_find(reason_of(order[i]))] = true;
    }
    hlo_free(order);
    for (size_t reason = 0; reason < HLO_REASON_COUNT; reason++)
        if (has_reason[reason])
            fprintf(out, "%s: %s\n    hint: %s\n", hlo_reason_name(reason), hlo_reason_text(reason),
                    hlo_reason_hint(reason));
    print_sums(&sum, out);
    return HLO_OK;
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

/* Returns the modules, largest FLOPs first, which the caller frees, or NULL if memory runs out. */
static ranked *rank_modules(const hlo_dump *dump, const hlo_history *const *histories) {
    const size_t count = hlo_dump_module_count(dump);
    ranked *order = hlo_malloc((count + 1) * sizeof *order);
    for (size_t i = 0; i < count && order; i++) order[i] = (ranked){i, add_up(histories[i])};
    if (order) qsort(order, count, sizeof *order, by_flops);
    return order;
}

/* ----------------------------------------------------------------------------------------- JSON */

static json_t *json_of_passage(const hlo_dump *dump, size_t module, const hlo_matmul_history *p) {
    const hlo_verdict *first = p->first;
    return json_pack("{s:s, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "outcome", outcome(p), "reason", writer_string(reason_of(p)), "operation",
                     writer_string(first->operation), "fusion",
                     writer_string(p->gone ? NULL : p->last->fusion), "runs", first->runs, "flops",
                     first->flops, "instruction", writer_string(first->input_instruction),
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

/* ------------------------------------------------------------------------------------ documents */

static hlo_status print_text(const hlo_dump *dump, const hlo_history *const *histories,
                             const ranked *order, hlo_remarks which, FILE *out) {
    const size_t count = hlo_dump_module_count(dump);
    size_t printed = 0;
    totals all = {0};
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < count && status == HLO_OK; i++) {
        const totals *sum = &order[i].sum;
        if (!sum->matmuls) continue;
        status = print_history(dump, order[i].module, histories[order[i].module], which, out);
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
        print_sums(&all, out);
    }
    return status;
}

static hlo_status print_json(const hlo_dump *dump, const hlo_history *const *histories,
                             const ranked *order, hlo_remarks which, FILE *out) {
    hlo_json_watch();
    json_t *modules = json_array();
    for (size_t i = 0; i < hlo_dump_module_count(dump); i++) {
        const size_t module = order[i].module;
        const hlo_history *history = histories[module];
        json_t *stages = json_array(), *matmuls = json_array();
        for (size_t k = 0; k < hlo_dump_stage_count(dump, module); k++)
            json_array_append_new(stages, writer_string(hlo_dump_stage(dump, module, k)));
        for (size_t m = 0; m < hlo_history_count(history); m++) {
            const hlo_matmul_history *p = hlo_history_passage(history, m);
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
    return writer_document(json_pack("{s:i, s:o}", "version", 1, "modules", modules), out);
}

static hlo_status print_histories(const hlo_dump *dump, const hlo_history *const *histories,
                                  const hlo_remarks_options *options, FILE *out) {
    hlo_remarks_options own;
    hlo_status status = writer_take_options(options, &own);
    if (status != HLO_OK) return status;
    if (own.format == HLO_REMARKS_JSON ||
        (own.format == HLO_REMARKS_TEXT && own.which != HLO_REMARKS_SUMMARY)) {
        ranked *order = rank_modules(dump, histories);
        if (!order) return HLO_OUT_OF_MEMORY;
        status = (own.format == HLO_REMARKS_JSON ? print_json : print_text)(dump, histories, order,
                                                                            own.which, out);
        hlo_free(order);
        return status;
    }
    report_model *model;
    status = report_model_of_dump(dump, histories, &model);
    if (status == HLO_OK) status = writer_print(model, &own, out);
    report_model_free(model);
    return status;
}

hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               const hlo_remarks_options *options, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    return hlo_writer_close(out, print_histories(dump, histories, options, out));
}
