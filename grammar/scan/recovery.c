/* SPDX-License-Identifier: Apache-2.0 */
/* Error recovery: decides where parsing can resume. It reads the characters of text that has not
 * been parsed, whose braces may not match. */
#include <string.h>

#include "grammar/scan/parser.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static const char *past_name(const char *at) {
    if (*at == '%') at++;
    while (hlo_text_in_name(*at)) at++;
    return at;
}

static bool is_word(const char *at, const char *word) {
    size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && !hlo_text_in_name(at[length]);
}

/* True for `name {`, `name (a: f32[]) ->` or `ENTRY`, but not for `ENTRY:`, the name of a
 * parameter.
 */
static bool is_computation(hlo_text *text, const char *at) {
    if (is_word(at, "ENTRY") && at[sizeof "ENTRY" - 1] != ':') return true;
    const char *after = past_name(at);
    if (after == at) return false;
    after = hlo_text_gap(after);
    if (*after == '(') {
        const char *open = after;
        const size_t left = HLO_MAX_SEARCHED - text->searched;
        unsigned depth = 0;
        do {
            if (*after == '(') depth++;
            if (*after == ')') depth--;
            const size_t read = (size_t)(after - open);
            if (!left || !*after || *after == '=') {
                /* Count these bytes: if every line begins with an unclosed parenthesis, the
                 * searches would take quadratic time. */
                text->searched += read < left ? read : left;
                return false;
            }
            after = hlo_text_gap(after + 1);
        } while (depth);
    }
    return *after == '{' || strncmp(after, "->", 2) == 0;
}

/* True for `ROOT` or `name =`. */
static bool is_definition(const char *at) {
    const char *after = past_name(at);
    return is_word(at, "ROOT") || (after > at && *hlo_text_gap(after) == '=');
}

bool hlo_text_begins_computation(hlo_text *text, uint32_t offset) {
    return hlo_text_at_line(text, offset) && is_computation(text, text->source + offset);
}

bool hlo_text_begins_signature(const hlo_text *text, uint32_t offset) {
    const char *before = text->source + offset;
    while (before > text->source && strchr(" \t\r\n", before[-1])) before--;
    return !text->depth && (before == text->source || !strchr("(:,>", before[-1]));
}

bool hlo_text_begins_line(const hlo_text *text, uint32_t offset) {
    while (offset && is_blank(text->source[offset - 1])) offset--;
    return hlo_text_at_line(text, offset);
}

bool hlo_text_begins_body(const hlo_text *text, uint32_t offset) {
    const char *from = text->source + offset + 1, *at = hlo_text_gap(from);
    return *at == '}' || is_definition(at) || memchr(from, '\n', (size_t)(at - from));
}

bool hlo_text_ends_body(hlo_text *text, uint32_t offset) {
    const char *at = hlo_text_gap(text->source + offset + 1);
    if (!*at) return true;
    if (is_definition(at) || *at == ')') return false;
    if (*at == ',' && strncmp(hlo_text_gap(at + 1), "execution_thread", 16) == 0) return true;
    return hlo_text_at_line(text, offset) || is_blank(text->source[offset - 1]) ||
           is_computation(text, at);
}

bool hlo_text_lacks_equals(const hlo_text *text, hlo_span at) {
    const char *from = text->source + at.offset, *after = hlo_text_gap(from + at.length);
    bool first = hlo_text_begins_line(text, at.offset) ||
                 (at.offset > 5 && memcmp(from - 5, "ROOT ", 5) == 0);
    return first && ((*after >= 'a' && *after <= 'z') || *after == '(');
}

bool hlo_text_ends(const hlo_text *text, hlo_span at) {
    const char *after = text->source + at.offset + at.length;
    while (is_blank(*after)) after++;
    return after == text->source + text->size;
}

bool hlo_text_is_cut(hlo_text *text, hlo_span at) {
    return hlo_text_ends(text, at) && hlo_text_open_bodies(text);
}

hlo_span hlo_text_cut(const hlo_text *text, hlo_span at) {
    const char *from = hlo_text_gap(text->source + at.offset + at.length);
    const hlo_span word = {(uint32_t)(from - text->source), (uint32_t)(past_name(from) - from)};
    return text->source[at.offset] == ',' && word.length && hlo_text_ends(text, word) ? word : at;
}

size_t hlo_text_open_bodies(hlo_text *text) {
    size_t count = text->bodies.used / sizeof(hlo_body);
    if (!count || ((const hlo_body *)text->bodies.items)->bare) return 0;
    if (!text->frames.used) return count;
    const hlo_frame *frame = hlo_text_frame(text);
    return count - (frame->owner == HLO_OWNER_COMPUTATION);
}

void hlo_text_unclosed(hlo_text *text, hlo_span at) {
    hlo_body *bodies = (hlo_body *)text->bodies.items;
    size_t count = hlo_text_open_bodies(text);
    if (text->string.offset > bodies->at.offset) {
        hlo_text_error(text, (hlo_span){text->string.offset, 1},
                       "this value does not end on its line");
    } else {
        hlo_text_error(text, at, "expected '}' before this, computation '%s' has not ended",
                       bodies->comp->name);
        hlo_text_note(text, bodies->at, "it begins here");
    }
    for (size_t i = 0; i < count; i++) bodies[i].broken = true;
    text->lacks_close = count;
    text->closed = at.offset;
    text->quiet = true;
}
