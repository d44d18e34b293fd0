/* Names that are used in front of their definition: where that is. Read as lines, because the text
 * there has not been parsed. */
#include <string.h>

#include "grammar/text.h"

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_.-", c));
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t");
}

/* What stands behind `name`, with or without `%`, at `at`; NULL when something else is there. */
static const char *behind_name(const char *at, const char *name) {
    size_t length = hlo_intern_length(name);
    if (*at == '%') at++;
    if (strncmp(at, name, length) != 0 || is_name_byte(at[length])) return NULL;
    return skip_blanks(at + length);
}

static const char *next_line(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline + 1 : end;
}

static bool found(const hlo_text *text, const char *at, const char *name, hlo_span *out) {
    size_t length = hlo_intern_length(name) + (*at == '%');
    *out = (hlo_span){(uint32_t)(at - text->source), (uint32_t)length};
    return true;
}

/* Only so much is looked at, as there may be many errors. */
static const char *far_enough(const hlo_text *text, uint32_t from) {
    enum { MOST = 1 << 20 };
    return text->source + (text->size - from < MOST ? text->size : from + MOST);
}

bool hlo_text_defined(const hlo_text *text, uint32_t from, const char *name, hlo_span *out) {
    const char *end = far_enough(text, from);
    for (const char *at = next_line(text->source + from, end); at < end; at = next_line(at, end)) {
        const char *word = skip_blanks(at);
        if (*word == '}') return false;
        if (strncmp(word, "ROOT ", 5) == 0) word = skip_blanks(word + 5);
        const char *behind = behind_name(word, name);
        if (behind && *behind == '=') return found(text, word, name, out);
    }
    return false;
}

bool hlo_text_defined_computation(const hlo_text *text, uint32_t from, const char *name,
                                  hlo_span *out) {
    const char *end = far_enough(text, from);
    for (const char *at = next_line(text->source + from, end); at < end; at = next_line(at, end)) {
        const char *word = at;
        if (strncmp(word, "ENTRY ", 6) == 0) word = skip_blanks(word + 6);
        const char *behind = behind_name(word, name);
        if (behind && (*behind == '{' || *behind == '(')) return found(text, word, name, out);
    }
    return false;
}
