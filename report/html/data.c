/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the data of the HTML page as JSON. Rows are arrays, and texts are indices of the array
 * `strings`, because a page has thousands of rows with few different texts. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matmul/json.h"
#include "report/html/html.h"

const char *const html_changes[] = {[HLO_CHANGE_SAME] = "same",
                                    [HLO_CHANGE_NEWLY_FP8] = "newly FP8",
                                    [HLO_CHANGE_LOST_FP8] = "lost FP8",
                                    [HLO_CHANGE_NEW] = "new",
                                    [HLO_CHANGE_GONE] = "gone"};

typedef struct texts {
    json_t *index; /* an object: from the text to its index in `strings` */
    json_t *strings;
} texts;

/* Rows with the same keys. The values of a key that begins with `$` are texts. */
typedef struct rows {
    texts *texts;
    json_t *keys, *rows, *row; /* `row` is the last one */
} rows;

static json_t *text_value(texts *t, const char *text) {
    if (!text) text = "";
    json_t *found = json_object_get(t->index, text);
    if (found) return json_incref(found);
    found = json_integer((json_int_t)json_array_size(t->strings));
    json_array_append_new(t->strings, writer_string(text));
    json_object_set_nocheck(t->index, text, found);
    return found;
}

static void add_row(rows *r) {
    r->row = json_array();
    json_array_append_new(r->rows, r->row);
}

static void add(rows *r, const char *key, json_t *value) {
    if (json_array_size(r->rows) == 1) json_array_append_new(r->keys, json_string(key));
    json_array_append_new(r->row, value);
}

static void add_text(rows *r, const char *key, const char *text) {
    add(r, key, text_value(r->texts, text));
}

static void add_number(rows *r, const char *key, double number) {
    add(r, key, isfinite(number) ? json_real(number) : json_null());
}

static rows new_rows(texts *t) {
    return (rows){t, json_array(), json_array(), NULL};
}

static json_t *rows_value(const rows *r) {
    return json_pack("{s:o, s:o}", "keys", r->keys, "rows", r->rows);
}

static void add_source(rows *r, const hlo_verdict *v, const char *more) {
    char text[WRITER_NAME] = "";
    char place[WRITER_NAME];
    if (*writer_place(v, place)) snprintf(text, sizeof text, "%.200s%s", place, more);
    add_text(r, "$source", text);
}

/* Adds what groups and matmuls have in common. */
static void add_figures(rows *r, const report_model *m, const report_figures *f, const char *cause,
                        hlo_verdict_kind kind) {
    const writer_figures text = writer_figures_of(f, &m->totals.figures, cause != NULL);
    char before[WRITER_NUMBER];
    add_text(r, "$verdict", writer_kinds[kind]);
    add_text(r, "$reason", cause);
    add_text(r, "$saves", text.saves);
    add_text(r, "$time", text.time);
    writer_quantity(f->input_seconds, "s", before);
    add_text(r, "$before", f->seconds > 0 && strcmp(before, text.time) != 0 ? before : NULL);
    add_text(r, "$share", text.share);
    add_text(r, "$speed", text.speed);
    add_text(r, "$bound", f->seconds > 0 ? writer_bounds[report_bound_of(f)] : NULL);
    add_number(r, "saving", f->saving);
    add_number(r, "seconds", f->seconds);
    add_number(r, "rate", 1e-12 * report_rate(f)); /* short */
}

static json_t *groups_value(texts *t, const report_model *m) {
    rows r = new_rows(t);
    for (size_t i = 0; i < m->group_count; i++) {
        const report_group *g = &m->groups[i];
        add_row(&r);
        add_text(&r, "$layer", g->layer);
        add_text(&r, "$shape", g->named ? g->shape : NULL);
        add_text(&r, "$hint", g->hint);
        add_source(&r, g->first, g->one_source ? "" : ", ...");
        add_figures(&r, m, &g->figures, g->cause, g->first->kind);
        add(&r, "count", json_integer((json_int_t)g->figures.count));
    }
    return rows_value(&r);
}

static void add_fact(rows *r, json_t *facts, const char *name, const char *value) {
    if (!value || !*value) return;
    json_array_append_new(facts, text_value(r->texts, name));
    json_array_append_new(facts, text_value(r->texts, value));
}

static void add_quantization(rows *r, json_t *facts, const hlo_verdict *v) {
    char text[128];
    if (!v->quantized) return;
    snprintf(text, sizeof text, "%s, %.2fx predicted", v->quantized, v->predicted_gain);
    add_fact(r, facts, v->kind == HLO_VERDICT_WIDE ? "if quantized" : "quantized here", text);
    if (!v->measured) return;
    snprintf(text, sizeof text, "%.1f dB", v->snr_db);
    if (isfinite(v->snr_db)) add_fact(r, facts, "signal to noise", text);
    snprintf(text, sizeof text, "%.3g", v->output_distance);
    add_fact(r, facts, "change of an output", text);
}

enum { CHANGE = 3 * WRITER_NUMBER };

/* Formats a quantity before and after the rewrite, or once if both are equal. */
static void before_and_after(double before, double after, const char *unit, char out[CHANGE]) {
    char was[WRITER_NUMBER], now[WRITER_NUMBER];
    writer_quantity(before, unit, was);
    writer_quantity(after, unit, now);
    const bool equal = strcmp(was, now) == 0;
    snprintf(out, CHANGE, equal ? "%s" : "%s before, %s after", was, now);
}

static json_t *facts_value(rows *r, const report_matmul *m) {
    const hlo_verdict *v = m->verdict;
    json_t *facts = json_array();
    char text[512], number[WRITER_NUMBER], change[CHANGE];
    add_fact(r, facts, "operands", v->operands);
    add_fact(r, facts, "result", v->shape);
    add_fact(r, facts, "epilogue", v->epilogue);
    add_fact(r, facts, "scale modes", v->scale_modes);
    snprintf(text, sizeof text, "%" PRId64, v->groups);
    if (v->groups) add_fact(r, facts, "groups", text);
    add_quantization(r, facts, v);
    before_and_after(v->input_bytes, v->bytes, "B", change);
    snprintf(text, sizeof text, "%s; %s", writer_quantity(v->flops, "FLOP", number), change);
    add_fact(r, facts, "work", text);
    if (v->seconds > 0) {
        before_and_after(v->input_seconds, v->seconds, "s", change);
        int at = snprintf(text, sizeof text, "%s", change);
        if (m->fp8_seconds > 0)
            at += snprintf(text + at, sizeof text - (size_t)at, ", %s in FP8",
                           writer_quantity(m->fp8_seconds, "s", number));
        if (v->runs != 1 || v->runs_assumed)
            snprintf(text + at, sizeof text - (size_t)at, "; %g execution%s%s", v->runs,
                     v->runs == 1 ? "" : "s", v->runs_assumed ? ", assumed" : "");
        add_fact(r, facts, "time", text);
    }
    add_fact(r, facts, "op_name", v->op_name);
    add_fact(r, facts, "HLO file", v->file);
    snprintf(text, sizeof text, "%" PRIu32 ":%" PRIu32, v->line, v->column);
    if (v->line) add_fact(r, facts, "HLO line", text);
    return facts;
}

/* Returns the index of a drawing plus one, an array of instructions, or 0 if it is not recorded. */
static json_t *side_value(rows *r, const html_matmul *matmul, int side) {
    const hlo_surroundings *graph = matmul->surroundings[side];
    if (!graph || matmul->drawing[side]) return json_integer((json_int_t)matmul->drawing[side]);
    json_t *value = json_array();
    for (uint32_t i = 0; i < graph->count; i++) {
        const hlo_surrounding_instr *n = &graph->v[i];
        json_t *instr = json_pack("[b, o, o, o]", n->focus, text_value(r->texts, n->name),
                                  text_value(r->texts, n->op), text_value(r->texts, n->shape));
        for (uint32_t o = 0; o < n->operand_count; o++)
            json_array_append_new(instr, text_value(r->texts, graph->v[n->operands[o]].name));
        json_array_append_new(value, instr);
    }
    return value;
}

static json_t *matmuls_value(texts *t, const html_page *page) {
    const report_model *m = page->model;
    rows r = new_rows(t);
    for (size_t i = 0; i < m->count; i++) {
        const html_matmul *at = &page->matmuls[i];
        const hlo_verdict *v = at->matmul->verdict;
        add_row(&r);
        add(&r, "group", json_integer((json_int_t)(at->matmul->group - m->groups)));
        add_text(&r, "$name", v->input_instruction);
        add_text(&r, "$output", writer_output_name(v));
        add_text(&r, "$op_name", v->op_name);
        add_source(&r, v, "");
        add_figures(&r, m, &at->matmul->figures, at->matmul->cause, v->kind);
        const hlo_change change =
            page->baseline ? page->baseline->changes[at->index] : HLO_CHANGE_SAME;
        add_text(&r, "$change", change == HLO_CHANGE_SAME ? NULL : html_changes[change]);
        add_text(&r, "$message", v->message);
        add_text(&r, "$blocker", v->blocker);
        add(&r, "facts", facts_value(&r, at->matmul));
        add(&r, "before_graph", side_value(&r, at, 0));
        add(&r, "after_graph", side_value(&r, at, 1));
    }
    return rows_value(&r);
}

static json_t *gone_value(texts *t, const report_baseline *b) {
    rows r = new_rows(t);
    for (size_t i = 0; b && i < b->old_count; i++) {
        if (b->old[i].change != HLO_CHANGE_GONE) continue;
        add_row(&r);
        add_text(&r, "$name", *b->old[i].op_name ? b->old[i].op_name : b->old[i].instr);
        add_text(&r, "$shape", b->old[i].shape);
        add_text(&r, "$verdict", b->old[i].origin == REPORT_WIDE ? "wide" : "fp8");
    }
    return rows_value(&r);
}

/* Prints JSON in an element <script>, which a string of the JSON must not end. */
static int print_escaped(const char *text, size_t size, void *out) {
    for (const char *end = text + size; text < end;) {
        const char *next = memchr(text, '<', (size_t)(end - text));
        fwrite(text, 1, (size_t)((next ? next : end) - text), out);
        if (next) fputs("\\u003c", out);
        text = next ? next + 1 : end;
    }
    return 0;
}

hlo_status html_data(const html_page *page) {
    hlo_json_watch();
    texts t = {json_object(), json_array()};
    json_decref(text_value(&t, "")); /* The index of the most frequent text is 0. */
    /* The texts of matmuls are most frequent, and have the shortest indices. */
    json_t *matmuls = matmuls_value(&t, page), *groups = groups_value(&t, page->model),
           *gone = gone_value(&t, page->baseline);
    json_t *document = json_pack("{s:o, s:o, s:o, s:o}", "groups", groups, "matmuls", matmuls,
                                 "gone", gone, "strings", t.strings);
    json_decref(t.index);
    fputs("<script type=\"application/json\" id=\"data\">", page->out);
    const bool made = document && !hlo_json_starved();
    /* ASCII, because JSON permits line separators that JavaScript does not permit. */
    if (made)
        json_dump_callback(document, print_escaped, page->out,
                           JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(5));
    json_decref(document);
    fputs("</script>\n", page->out);
    return made && !hlo_json_starved() ? HLO_OK : HLO_OUT_OF_MEMORY;
}
