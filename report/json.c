/* SPDX-License-Identifier: Apache-2.0 */
/* Prints verdicts in machine-readable formats: JSON (docs/remarks.schema.json), SARIF 2.1.0 and
 * JUnit XML. */
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

hlo_status writer_json(const report_writer *t) {
    json_t *dots = json_array(), *reasons = json_object(), *lints = json_array();
    writer_cursor at = {0};
    const hlo_verdict *v;
    while ((v = writer_next(t, &at)) && v->kind != HLO_VERDICT_LINT)
        json_array_append_new(
            dots,
            json_pack(
                "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                "s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, "
                "s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                "verdict", writer_kinds[v->kind], "operation", writer_string(v->operation),
                "fusion", writer_string(v->fusion), "reason", writer_string(v->reason), "message",
                writer_string(v->message), "hint", writer_string(v->hint), "input_instruction",
                writer_string(v->input_instr), "instruction", writer_string(v->instr), "shape",
                writer_string(v->shape), "input_shape", writer_string(v->input_shape), "operands",
                writer_string(v->operands), "epilogue", writer_string(v->epilogue), "blocker",
                writer_string(v->blocker), "op_name", writer_string(v->op_name), "source_file",
                writer_string(v->source_file), "source_line", number_value(v->source_line), "file",
                writer_string(v->file), "line", number_value(v->line), "column",
                number_value(v->column), "runs", v->runs, "flops", v->flops, "input_bytes",
                v->input_bytes, "bytes", v->bytes, "input_seconds", seconds_value(v->input_seconds),
                "seconds", seconds_value(v->seconds), "fp8_seconds", seconds_value(v->fp8_seconds),
                "groups", number_value(v->groups), "scale_modes", writer_string(v->scale_modes),
                "block_size", number_value(v->block_size), "quantized", quantized_value(v)));
    for (; v; v = writer_next(t, &at))
        json_array_append_new(
            lints, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reason",
                             writer_string(v->reason), "message", writer_string(v->message), "hint",
                             writer_string(v->hint), "instruction", writer_string(v->instr),
                             "shape", writer_string(v->shape), "op_name", writer_string(v->op_name),
                             "source_file", writer_string(v->source_file), "source_line",
                             number_value(v->source_line), "file", writer_string(v->file), "line",
                             number_value(v->line), "column", number_value(v->column)));
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++) {
        size_t times = 0;
        for (int kind = 0; kind < WRITER_KINDS; kind++) times += t->sum.reasons[kind][reason];
        if (times)
            json_object_set_new(reasons, hlo_reason_name((size_t)reason),
                                json_integer((json_int_t)times));
    }
    return writer_document(
        json_pack("{s:i, s:{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:o}, s:o, s:o}", "version", 1,
                  "summary", "matmuls", (json_int_t)t->sum.total, "fp8",
                  (json_int_t)(writer_fp8_count(&t->sum) - t->sum.quantized), "quantized",
                  (json_int_t)t->sum.quantized, "missed",
                  (json_int_t)t->sum.kinds[HLO_VERDICT_MISSED], "flops", t->sum.flops, "fp8_flops",
                  t->sum.fp8_flops, "input_seconds", t->sum.input_seconds, "seconds",
                  t->sum.seconds, "reasons", reasons, "dots", dots, "lints", lints),
        t->out);
}

static json_t *sarif_place(const char *file, long line, long column) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~/!$&'()*+,;=@";
    json_malloc_t take; /* an allocator that records failed allocations */
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    /* Escape each byte of the file name, in any encoding, to a URI reference (RFC 3986) without a
     * scheme. */
    json_t *uri = file ? NULL : json_null();
    char *text = file ? take(3 * strlen(file) + 1) : NULL, *to = text;
    for (const char *at = file; text && *at; at++)
        to += sprintf(to, strchr(plain, *at) ? "%c" : "%%%02X", (unsigned char)*at);
    if (text) {
        *to = '\0';
        uri = json_string(text);
        give(text);
    }
    json_t *region = json_object();
    if (line) json_object_set_new(region, "startLine", json_integer(line));
    if (column) json_object_set_new(region, "startColumn", json_integer(column));
    json_t *place = json_pack("{s:{s:{s:o}}}", "physicalLocation", "artifactLocation", "uri", uri);
    if (line) json_object_set(json_object_get(place, "physicalLocation"), "region", region);
    json_decref(region);
    return place;
}

hlo_status writer_sarif(const report_writer *t) {
    static const char *const says[] = {[HLO_VERDICT_MISSED] = " (FP8, but not fully converted)",
                                       [HLO_VERDICT_WIDE] = " (wide)",
                                       [HLO_VERDICT_LINT] = ""};
    json_t *rules = json_array(), *results = json_array();
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++)
        json_array_append_new(rules, json_pack("{s:s, s:{s:s}, s:{s:s}}", "id",
                                               hlo_reason_name((size_t)reason), "shortDescription",
                                               "text", hlo_reason_text((size_t)reason), "help",
                                               "text", hlo_reason_page((size_t)reason)));
    writer_cursor at = {0};
    for (const hlo_verdict *v; (v = writer_next(t, &at));) {
        if (!v->reason) continue;
        char text[1024], name[WRITER_NAME];
        snprintf(text, sizeof text, "%s %s%s: %s%s%s", writer_name(v, name), v->shape,
                 says[v->kind], v->message, v->blocker ? ", at " : "",
                 v->blocker ? v->blocker : "");
        json_t *result =
            json_pack("{s:s, s:s, s:{s:o}, s:[o]}", "ruleId", v->reason, "level",
                      v->kind == HLO_VERDICT_MISSED ? "note" : "warning", "message", "text",
                      writer_string(text), "locations", sarif_place(v->file, v->line, v->column));
        if (v->source_file && result) {
            json_t *related = sarif_place(v->source_file, v->source_line, 0);
            json_object_set_new(
                related, "message",
                json_pack("{s:o}", "text",
                          writer_string(v->op_name ? v->op_name : "source of the matmul")));
            json_object_set_new(result, "relatedLocations", json_pack("[o]", related));
        }
        json_array_append_new(results, result);
    }
    return writer_document(json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:o}}, s:s, s:o}]}", "$schema",
                                     "https://json.schemastore.org/sarif-2.1.0.json", "version",
                                     "2.1.0", "runs", "tool", "driver", "name", "hlo-fp8", "rules",
                                     rules, "columnKind", "unicodeCodePoints", "results", results),
                           t->out);
}

hlo_status writer_junit(const report_writer *t) {
    size_t told = 0, failures = 0;
    writer_cursor counted = {0}, at = {0};
    for (const hlo_verdict *v; (v = writer_next(t, &counted)); told++)
        failures += v->reason != NULL;
    fprintf(t->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n <testsuite name=\"hlo-fp8\" tests=\"%zu\" failures=\"%zu\">\n",
            told, failures);
    for (const hlo_verdict *v; (v = writer_next(t, &at));) {
        char name[WRITER_NAME];
        const char *input = v->input_instr ? v->input_instr : v->instr;
        writer_element(t->out, "  <testcase classname=\"", v->file, "\" name=\"");
        writer_markup(t->out, v->op_name ? v->op_name : input);
        fprintf(t->out, v->reason ? "\" line=\"%u\">\n" : "\" line=\"%u\"/>\n", v->line);
        if (!v->reason) continue;
        writer_element(t->out, "    <failure type=\"", v->reason, "\" message=\"");
        writer_element(t->out, "", v->message, "\">");
        writer_element(t->out, "", writer_name(v, name), " ");
        writer_markup(t->out, v->shape);
        if (v->source_file) {
            writer_element(t->out, ", from ", v->source_file, "");
            fprintf(t->out, ":%ld", v->source_line);
        }
        fputs("</failure>\n  </testcase>\n", t->out);
    }
    fputs(" </testsuite>\n</testsuites>\n", t->out);
    return HLO_OK;
}
