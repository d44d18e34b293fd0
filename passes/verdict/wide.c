/* SPDX-License-Identifier: Apache-2.0 */
/* The words of hlo_pass_options.wide: instruction names, op_names, source lines, shapes, and globs.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "hlo/argument.h"
#include "hlo/suggest.h"
#include "ir/text/diag.h"
#include "passes/verdict/report.h"

enum { WORD_SIZE = 1024, SHOWN = 3 };

/* Compares the texts first: the brackets in an op_name are not a glob. */
static bool matches(const char *word, const char *name) {
    return name && (strcmp(word, name) == 0 || fnmatch(word, name, 0) == 0);
}

/* Returns the text after the first slash of a path, or NULL. */
static const char *after_slash(const char *path) {
    const char *slash = strchr(path, '/');
    return slash ? slash + 1 : NULL;
}

/* True if the word matches FOLDER/FILE:LINE, or the text after one of its slashes. */
static bool matches_source(const char *word, const hlo_verdict *v) {
    char place[WORD_SIZE];
    if (!v->source_file || !v->source_line) return false;
    snprintf(place, sizeof place, "%s:%ld", v->source_file, v->source_line);
    for (const char *at = place; at; at = after_slash(at))
        if (matches(word, at)) return true;
    return false;
}

/* True if the word matches the shape of the result in the input, written as 8192x4096xbf16: commas
 * separate words, and brackets are globs. */
static bool matches_shape(const char *word, const hlo_verdict *v) {
    const char *shape = v->input_shape ? v->input_shape : v->shape;
    const char *dims = shape ? strchr(shape, '[') : NULL;
    char text[WORD_SIZE];
    if (!dims || *shape == '(' || strlen(shape) + 1 >= sizeof text) return false;
    char *out = text;
    for (const char *at = dims + 1; *at && *at != ']'; at++) *out++ = *at == ',' ? 'x' : *at;
    if (out != text) *out++ = 'x';
    snprintf(out, sizeof text - (size_t)(out - text), "%.*s", (int)(dims - shape), shape);
    return matches(word, text);
}

/* Copies the next word of a list. Returns false at the end. */
static bool take_word(const char **list, char *out) {
    size_t length;
    const char *at = hlo_next_word(list, &length);
    if (at) snprintf(out, WORD_SIZE, "%.*s", (int)length, at);
    return at;
}

static const char *name_of(const hlo_verdict *v) {
    return v->input_instr ? v->input_instr : v->instr;
}

static bool selects(const char *word, const hlo_verdict *v) {
    return matches(word, name_of(v)) || matches(word, v->op_name) || matches_source(word, v) ||
           matches_shape(word, v);
}

bool hlo_wide_selects(const char *list, const hlo_verdict *v) {
    for (char word[WORD_SIZE]; take_word(&list, word);)
        if (selects(word, v)) return true;
    return false;
}

/* True if hlo_report_keep_outputs() has found a call with that name or glob. */
static bool names_output(const hlo_report *report, const char *word) {
    const char *list = report->output_words;
    for (char listed[WORD_SIZE]; list && take_word(&list, listed);)
        if (strcmp(listed, word) == 0) return true;
    return false;
}

void hlo_report_keep_outputs(hlo_report *report, const char *wide) {
    for (char word[WORD_SIZE]; take_word(&wide, word);) {
        bool in_input = false, in_output = false;
        for (uint32_t i = 0; i < report->count && !in_input; i++)
            in_input = selects(word, &report->slots[i].was);
        for (uint32_t i = 0; i < report->count && !in_input; i++) {
            const slot *s = &report->slots[i];
            if (!s->output || !matches(word, s->output)) continue;
            hlo_report_keep(report, s, "wide-by-option");
            in_output = true;
        }
        if (in_output)
            report->output_words =
                report->output_words
                    ? hlo_arena_format(report->arena, "%s,%s", report->output_words, word)
                    : hlo_arena_format(report->arena, "%s", word);
    }
}

hlo_status hlo_reports_check_wide(const hlo_report *const *reports, size_t count, const char *wide,
                                  const char *file, const hlo_diag_sink *sink) {
    hlo_status status = HLO_OK;
    for (char word[WORD_SIZE]; take_word(&wide, word);) {
        hlo_suggestion near = hlo_suggest(word);
        bool found = false;
        for (size_t r = 0; r < count && !found; r++) {
            found = names_output(reports[r], word);
            for (size_t i = 0; i < reports[r]->verdict_count && !found; i++) {
                const hlo_verdict *v = &reports[r]->verdicts[i];
                found = selects(word, v);
                hlo_suggest_offer(&near, name_of(v));
                hlo_suggest_offer(&near, v->instr);
                if (v->op_name) hlo_suggest_offer(&near, v->op_name);
            }
        }
        if (found) continue;
        char names[512] = "; the input has ";
        const size_t used = strlen(names);
        /* List the first matmuls by the names that wide accepts. */
        char *out = names + used;
        const size_t size = sizeof names - used;
        size_t total = 0, shown = 0;
        for (size_t r = 0; r < count; r++)
            for (size_t i = 0; i < reports[r]->verdict_count && shown < size; i++) {
                const hlo_verdict *v = &reports[r]->verdicts[i];
                if (total++ >= SHOWN) continue;
                shown += (size_t)snprintf(out + shown, size - shown, "%s%s", total > 1 ? ", " : "",
                                          name_of(v));
                if (v->source_file && v->source_line && shown < size) {
                    const char *slash = strrchr(v->source_file, '/');
                    shown += (size_t)snprintf(out + shown, size - shown, " (%s:%ld)",
                                              slash ? slash + 1 : v->source_file, v->source_line);
                }
            }
        if (!total) snprintf(out, size, "no matmuls");
        if (total > SHOWN && shown < size)
            snprintf(out + shown, size - shown, " and %zu more", total - SHOWN);
        status = hlo_diag_refuse(sink, file, 0, 0, "no matmul matches '%s' in wide%s", word,
                                 near.best ? hlo_suggest_meant(&near) : names);
    }
    return status;
}
