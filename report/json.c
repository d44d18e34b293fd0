/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a report as JSON (docs/remarks.schema.json). */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matmul/json.h"
#include "report/format.h"

json_t *writer_string(const char *text) {
    if (!text) return json_null();
    json_t *value = json_string(text);
    if (value) return value;
    size_t length = strlen(text), at = 0;
    char *utf8 = malloc(2 * length + 1);
    if (!utf8) return NULL;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) utf8[at++] = (char)(0xc0 | c >> 6);
        utf8[at++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    }
    value = json_stringn(utf8, at);
    free(utf8);
    return value;
}

static json_t *number_value(long number) {
    return number ? json_integer(number) : json_null();
}

static json_t *seconds_value(double seconds) {
    return seconds > 0 ? json_real(seconds) : json_null();
}

static json_t *finite_value(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *quantized_value(const hlo_verdict *v) {
    if (!v->quantized) return json_null();
    json_t *value = json_pack("{s:o, s:o}", "recipe", writer_string(v->quantized), "predicted_gain",
                              v->predicted_gain > 0 ? json_real(v->predicted_gain) : json_null());
    if (!v->measured) return value;
    json_object_set_new(value, "snr_db", finite_value(v->snr_db));
    json_object_set_new(value, "output_distance", finite_value(v->output_distance));
    return value;
}

hlo_status writer_document(json_t *document, FILE *out) {
    int failed = 0;
    if (document && !hlo_json_starved())
        failed = json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    json_decref(document);
    if (!document || hlo_json_starved()) return HLO_OUT_OF_MEMORY;
    fputc('\n', out);
    return failed ? HLO_INVALID_INPUT : HLO_OK;
}

static json_t *text_or_null(const char *text, bool known) {
    return writer_string(known ? text : NULL);
}

/* Adds the figures that matmuls and groups have in common. */
static void set_figures(json_t *to, const report_figures *f, const report_figures *all) {
    const report_bound bound = report_bound_of(f);
    json_object_set_new(to, "share",
                        all->seconds > 0 ? json_real(f->seconds / all->seconds) : json_null());
    json_object_set_new(to, "bound", text_or_null(writer_bounds[bound], bound != REPORT_UNKNOWN));
    json_object_set_new(to, "flops_per_second", seconds_value(report_rate(f)));
    json_object_set_new(to, "peak_fraction", seconds_value(report_peak_fraction(f)));
    json_object_set_new(to, "saving_seconds", f->estimated ? json_real(f->saving) : json_null());
}

static json_t *dot_value(const report_writer *t, const report_matmul *m) {
    const hlo_verdict *v = m->verdict;
    json_t *value = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:f, s:b, s:f, s:f, s:f, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}",
        "verdict", writer_kinds[v->kind], "operation", writer_string(v->operation), "fusion",
        writer_string(v->fusion), "reason", writer_string(v->reason), "message",
        writer_string(v->message), "hint", writer_string(v->hint), "input_instruction",
        writer_string(v->input_instruction), "instruction", writer_string(v->instruction), "shape",
        writer_string(v->shape), "input_shape", writer_string(v->input_shape), "operands",
        writer_string(v->operands), "epilogue", writer_string(v->epilogue), "blocker",
        writer_string(v->blocker), "op_name", writer_string(v->op_name), "source_file",
        writer_string(v->source_file), "source_line", number_value(v->source_line), "file",
        writer_string(v->file), "line", number_value(v->line), "column", number_value(v->column),
        "runs", v->runs, "runs_assumed", v->runs_assumed, "flops", v->flops, "input_bytes",
        v->input_bytes, "bytes", v->bytes, "wide_seconds", seconds_value(v->wide_seconds),
        "input_seconds", seconds_value(v->input_seconds), "seconds", seconds_value(v->seconds),
        "compute_seconds", seconds_value(v->compute_seconds), "fp8_seconds",
        seconds_value(v->fp8_seconds), "groups", number_value(v->groups), "scale_modes",
        writer_string(v->scale_modes), "block_size", number_value(v->block_size), "quantized",
        quantized_value(v), "layer", writer_string(m->layer), "group",
        (json_int_t)(m->group - t->model->groups));
    set_figures(value, &m->figures, &t->model->totals.figures);
    return value;
}

static json_t *group_value(const report_writer *t, const report_group *g) {
    const report_figures *f = &g->figures;
    json_t *value = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:f, s:f, s:f, s:o, s:o, s:o, s:o}", "layer",
        writer_string(g->layer), "verdict", writer_kinds[g->first->kind], "reason",
        writer_string(g->cause), "hint", writer_string(g->hint), "shape", writer_string(g->shape),
        "matmuls", (json_int_t)f->count, "source_file", writer_string(g->first->source_file),
        "source_line", number_value(g->first->source_line), "flops", f->flops, "input_bytes",
        f->input_bytes, "bytes", f->bytes, "wide_seconds", seconds_value(f->wide_seconds),
        "input_seconds", seconds_value(f->input_seconds), "seconds", seconds_value(f->seconds),
        "compute_seconds", seconds_value(f->compute_seconds));
    set_figures(value, f, &t->model->totals.figures);
    return value;
}

hlo_status writer_json(const report_writer *t) {
    const report_model *m = t->model;
    const report_totals *totals = &m->totals;
    const report_figures *f = &totals->figures;
    json_t *dots = json_array(), *groups = json_array(), *reasons = json_object(),
           *lints = json_array();
    for (size_t i = 0; i < m->count; i++)
        if (writer_selects(t, m->matmuls[i].verdict->kind))
            json_array_append_new(dots, dot_value(t, &m->matmuls[i]));
    for (size_t i = 0; i < m->group_count; i++)
        json_array_append_new(groups, group_value(t, &m->groups[i]));
    for (size_t i = 0; i < totals->lints; i++) {
        const hlo_verdict *v = m->lints[i];
        json_array_append_new(
            lints, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reason",
                             writer_string(v->reason), "message", writer_string(v->message), "hint",
                             writer_string(v->hint), "instruction", writer_string(v->instruction),
                             "shape", writer_string(v->shape), "op_name", writer_string(v->op_name),
                             "source_file", writer_string(v->source_file), "source_line",
                             number_value(v->source_line), "file", writer_string(v->file), "line",
                             number_value(v->line), "column", number_value(v->column)));
    }
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++) {
        size_t times = 0;
        for (int kind = 0; kind < REPORT_KINDS; kind++) times += totals->reasons[kind][reason];
        if (times)
            json_object_set_new(reasons, hlo_reason_name((size_t)reason),
                                json_integer((json_int_t)times));
    }
    return writer_document(
        json_pack(
            "{s:i, s:{s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
            "s:I, s:f, s:I, "
            "s:o}, s:o, s:o, s:o}",
            "version", 1, "summary", "target",
            m->target ? json_integer(m->target->sm) : json_null(), "matmuls", (json_int_t)f->count,
            "fp8", (json_int_t)(report_fp8_count(totals) - totals->quantized), "quantized",
            (json_int_t)totals->quantized, "missed", (json_int_t)f->kinds[HLO_VERDICT_MISSED],
            "flops", f->flops, "fp8_flops", f->fp8_flops, "input_bytes", f->input_bytes, "bytes",
            f->bytes, "wide_seconds", f->wide_seconds, "input_seconds", f->input_seconds, "seconds",
            f->seconds, "compute_seconds", f->compute_seconds, "saving_seconds", f->saving,
            "launch_bound", (json_int_t)f->bounds[REPORT_LAUNCH], "launch_bound_seconds",
            f->bound_seconds[REPORT_LAUNCH], "runs_assumed", (json_int_t)f->assumed, "reasons",
            reasons, "groups", groups, "dots", dots, "lints", lints),
        t->out);
}
