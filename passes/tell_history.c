/* Histories as text and as JSON (docs/history.schema.json). */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "hlo/dump.h"
#include "passes/tell.h"

static bool is_fp8(const hlo_passage *p) {
    return !p->gone && p->last.kind != HLO_VERDICT_WIDE;
}

static const char *reason_of(const hlo_passage *p) {
    return p->gone ? NULL : p->last.reason;
}

static bool is_wanted(const hlo_passage *p, hlo_remarks which) {
    if (which == HLO_REMARKS_PASSED) return is_fp8(p);
    return which == HLO_REMARKS_ALL || !is_fp8(p) || p->last.kind == HLO_VERDICT_MISSED;
}

static const char *outcome(const hlo_passage *p) {
    return p->gone ? "gone" : tell_kinds[p->last.kind];
}

/* ----------------------------------------------------------------------------------------- text */

static void tell_loss(const hlo_dump *dump, size_t module, const hlo_passage *p, FILE *out) {
    fprintf(out, "    could be FP8 until  %s\n", hlo_dump_stage(dump, module, p->kept));
    fprintf(out, "    and no longer at    %s\n", hlo_dump_stage(dump, module, p->lost));
    fprintf(out, "    %s: %s\n", p->pass ? p->pass : "passes between the two, not dumped", p->how);
}

static void tell_one(const hlo_dump *dump, size_t module, const hlo_history *history,
                     hlo_remarks which, FILE *out) {
    size_t fp8 = 0, lost = 0, count = hlo_history_count(history);
    bool has_reason[HLO_WHY_COUNT] = {false};
    fprintf(out, "%s: %zu stages, %zu matmuls\n", hlo_dump_module(dump, module),
            hlo_dump_stage_count(dump, module), count);
    for (size_t i = 0; i < count; i++) {
        const hlo_passage *p = hlo_history_passage(history, i);
        fp8 += is_fp8(p);
        lost += p->lost != SIZE_MAX;
        if (!is_wanted(p, which)) continue;
        fprintf(out, "  %-6s  %s  %s", outcome(p), p->first.input_instr, p->first.input_shape);
        if (reason_of(p)) fprintf(out, "  %s", reason_of(p));
        if (p->first.source_file)
            fprintf(out, "  %s:%ld", p->first.source_file, p->first.source_line);
        fprintf(out, "  %s\n", p->first.op_name ? p->first.op_name : "");
        if (p->lost != SIZE_MAX)
            tell_loss(dump, module, p, out);
        else if (reason_of(p))
            has_reason[hlo_reason_find(reason_of(p))] = true;
    }
    tell_reasons(out, has_reason, false);
    fprintf(out, "%zu of %zu matmuls in FP8 at the end, %zu lost on the way\n", fp8, count, lost);
}

/* ----------------------------------------------------------------------------------------- JSON */

static json_t *json_of_loss(const hlo_dump *dump, size_t module, const hlo_passage *p) {
    if (p->lost == SIZE_MAX) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "kept",
                     tell_string(hlo_dump_stage(dump, module, p->kept)), "lost",
                     tell_string(hlo_dump_stage(dump, module, p->lost)), "pass",
                     tell_string(p->pass), "how", tell_string(p->how));
}

static json_t *json_of_passage(const hlo_dump *dump, size_t module, const hlo_passage *p) {
    const hlo_verdict *first = &p->first;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "outcome", outcome(p),
                     "reason", tell_string(reason_of(p)), "instruction",
                     tell_string(first->input_instr), "shape", tell_string(first->input_shape),
                     "op_name", tell_string(first->op_name), "source_file",
                     tell_string(first->source_file), "source_line",
                     first->source_line ? json_integer(first->source_line) : json_null(),
                     "first_file", tell_string(first->file), "loss", json_of_loss(dump, module, p));
}

static json_t *json_of_history(const hlo_dump *dump, size_t module, const hlo_history *history,
                               hlo_remarks which) {
    json_t *stages = json_array(), *matmuls = json_array();
    for (size_t k = 0; k < hlo_dump_stage_count(dump, module); k++)
        json_array_append_new(stages, tell_string(hlo_dump_stage(dump, module, k)));
    for (size_t i = 0; i < hlo_history_count(history); i++) {
        const hlo_passage *p = hlo_history_passage(history, i);
        if (is_wanted(p, which)) json_array_append_new(matmuls, json_of_passage(dump, module, p));
    }
    return json_pack("{s:o, s:o, s:o}", "module", tell_string(hlo_dump_module(dump, module)),
                     "stages", stages, "matmuls", matmuls);
}

hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               hlo_remarks which, hlo_remarks_format format, FILE *out) {
    hlo_status status = HLO_OK;
    if (format == HLO_REMARKS_TEXT) {
        for (size_t i = 0; i < hlo_dump_module_count(dump); i++)
            tell_one(dump, i, histories[i], which, out);
    } else if (format == HLO_REMARKS_JSON) {
        json_t *modules = json_array();
        for (size_t i = 0; i < hlo_dump_module_count(dump); i++)
            json_array_append_new(modules, json_of_history(dump, i, histories[i], which));
        status = tell_document(json_pack("{s:i, s:o}", "version", 1, "modules", modules), out);
    } else {
        return HLO_INVALID_USAGE;
    }
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    return status;
}
