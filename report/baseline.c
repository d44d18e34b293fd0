/* SPDX-License-Identifier: Apache-2.0 */
/* The gate that compares a run with the remarks of an earlier run. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "matmul/json.h"
#include "report/format.h"

/* Identity of a matmul across runs. */
typedef struct key {
    const char *op_name, *shape; /* op_name is "" if the matmul has none */
    const char *instr;           /* name for messages without op_name; not part of the key */
} key;

typedef struct keys {
    key *v;
    size_t count;
} keys;

static int by_key(const void *a, const void *b) {
    const key *x = a, *y = b;
    int order = strcmp(x->op_name, y->op_name);
    return order ? order : strcmp(x->shape, y->shape);
}

/* Reads the keys of the document's FP8 matmuls, which borrow its strings. */
static bool read_keys(const json_t *document, keys *out) {
    const json_t *dots = json_object_get(document, "dots"), *dot;
    size_t index;
    if (json_integer_value(json_object_get(document, "version")) != 1 || !json_is_array(dots))
        return false;
    json_array_foreach(dots, index, dot) {
        const char *verdict = json_string_value(json_object_get(dot, "verdict"));
        const char *op_name = json_string_value(json_object_get(dot, "op_name"));
        const char *shape = json_string_value(json_object_get(dot, "input_shape"));
        const json_t *name = json_object_get(dot, "input_instruction");
        if (!name) name = json_object_get(dot, "instruction"); /* written by an older hlo-fp8 */
        const char *instr = json_string_value(name);
        if (!verdict || !shape || !instr) return false;
        if (strcmp(verdict, "wide") != 0)
            out->v[out->count++] = (key){op_name ? op_name : "", shape, instr};
    }
    qsort(out->v, out->count, sizeof *out->v, by_key);
    return true;
}

static key key_of(const hlo_verdict *v) {
    return (key){v->op_name ? v->op_name : "", v->input_shape, v->input_instr};
}

static hlo_status collect(const hlo_report *const *reports, size_t count, keys *out) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += reports[i]->verdict_count;
    out->v = malloc((total + 1) * sizeof *out->v);
    if (!out->v) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < reports[i]->verdict_count; j++)
            if (reports[i]->verdicts[j].kind != HLO_VERDICT_WIDE)
                out->v[out->count++] = key_of(&reports[i]->verdicts[j]);
    qsort(out->v, out->count, sizeof *out->v, by_key);
    return HLO_OK;
}

/* Returns the reason of a wide matmul with the key `wanted`, or NULL if no matmul has it. */
static const char *find_reason(const hlo_report *const *reports, size_t count, const key *wanted) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < reports[i]->verdict_count; j++) {
            const hlo_verdict *v = &reports[i]->verdicts[j];
            const key at = key_of(v);
            if (v->kind == HLO_VERDICT_WIDE && by_key(&at, wanted) == 0) return v->reason;
        }
    return NULL;
}

static size_t count_lost(const keys *old, const keys *now, const key **out_first) {
    size_t lost = 0;
    for (size_t i = 0, j = 0; i < old->count; i++) {
        while (j < now->count && by_key(&now->v[j], &old->v[i]) < 0) j++;
        if (j < now->count && by_key(&now->v[j], &old->v[i]) == 0)
            j++;
        else if (!lost++)
            *out_first = &old->v[i];
    }
    return lost;
}

hlo_status hlo_reports_baseline(const hlo_report *const *reports, size_t count, const char *path,
                                bool allow_empty, const hlo_diag_sink *sink, char *why,
                                size_t why_size) {
    HLO_IN_C_LOCALE;
    json_error_t error;
    keys old = {0}, now = {0};
    if (why_size) *why = '\0';
    hlo_content text;
    hlo_status status = hlo_file_read(path, sink, &text);
    bool starved = false;
    json_t *document =
        status == HLO_OK ? hlo_json_read(text.bytes, text.size, 0, &error, &starved) : NULL;
    free(text.bytes);
    if (starved) return HLO_OUT_OF_MEMORY;
    if (status != HLO_OK) return status;
    if (!document) return hlo_diag_refuse(sink, path, error.line, error.column, "%s", error.text);
    old.v = malloc((json_array_size(json_object_get(document, "dots")) + 1) * sizeof *old.v);
    status = old.v ? collect(reports, count, &now) : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK && !read_keys(document, &old))
        status = hlo_diag_refuse(sink, path, 0, 0,
                                 "not valid remarks: expected the output of --remarks-format=json");
    /* True if the document lists all its FP8 matmuls. --remarks=missed omits some. */
    else if (status == HLO_OK &&
             json_integer_value(json_object_get(json_object_get(document, "summary"), "fp8")) !=
                 (json_int_t)old.count)
        status = hlo_diag_refuse(sink, path, 0, 0,
                                 "incomplete baseline: regenerate it with --remarks=all");
    const key *first = NULL;
    size_t lost = status == HLO_OK ? count_lost(&old, &now, &first) : 0;
    if (status == HLO_OK && !allow_empty) status = gate_matmuls(reports, count, why, why_size);
    /* True if the summary counts a matmul, FP8 or not. */
    if (status == HLO_OK && !allow_empty &&
        json_integer_value(json_object_get(json_object_get(document, "summary"), "matmuls")) <= 0) {
        snprintf(why, why_size,
                 "the baseline %s has no matmuls to compare with; --allow-empty allows this", path);
        status = HLO_MISMATCH;
    }
    if (status == HLO_OK && lost) {
        const char *reason = find_reason(reports, count, first);
        snprintf(why, why_size,
                 "%zu of %zu matmuls that were FP8 have regressed; first: %s %s is %s%s", lost,
                 old.count, *first->op_name ? first->op_name : first->instr, first->shape,
                 reason ? "wide, reason: " : "missing from the input", reason ? reason : "");
        status = HLO_MISMATCH;
    }
    free(now.v);
    free(old.v);
    json_decref(document);
    return status;
}
