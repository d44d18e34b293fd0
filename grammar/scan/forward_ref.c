/* Forward references: finds the definition behind a use, line by line, in text that has not been
 * parsed. */
#include <string.h>

#include "grammar/scan/parser.h"
#include "ir/intern.h"

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t");
}

/* Skips `name`, with or without `%`, and blanks; NULL when another name is there. */
static const char *behind_name(const char *at, const char *name) {
    size_t length = hlo_intern_length(name);
    if (*at == '%') at++;
    if (strncmp(at, name, length) != 0 || hlo_is_name_byte(at[length])) return NULL;
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

/* Returns how many of `wanted` bytes may still be searched. */
static size_t within_budget(const hlo_text *text, size_t wanted) {
    enum { MOST = 1 << 20, MOST_OF_ALL = 1 << 26 };
    size_t left = MOST_OF_ALL - text->searched, found = wanted < MOST ? wanted : MOST;
    return found < left ? found : left;
}

size_t hlo_text_offers(hlo_text *text) {
    enum { MOST = 1000, BYTES = 64 };
    size_t count = within_budget(text, MOST * BYTES) / BYTES;
    text->searched += count * BYTES;
    return count;
}

/* The part of the text behind `from` in which to look, line by line. */
typedef struct search {
    hlo_text *text;
    const char *at, *end;
} search;

static search search_behind(hlo_text *text, uint32_t from) {
    const char *at = text->source + from;
    return (search){text, at, at + within_budget(text, text->size - from)};
}

/* Goes on to the next line. */
static bool search_on(search *s) {
    const char *from = s->at;
    s->at = next_line(from, s->end);
    s->text->searched += (size_t)(s->at - from);
    return s->at < s->end;
}

bool hlo_text_defined(hlo_text *text, uint32_t from, const char *name, hlo_span *out) {
    for (search s = search_behind(text, from); search_on(&s);) {
        const char *word = skip_blanks(s.at);
        if (*word == '}') return false;
        if (strncmp(word, "ROOT ", 5) == 0) word = skip_blanks(word + 5);
        const char *behind = behind_name(word, name);
        if (behind && *behind == '=') return found(text, word, name, out);
    }
    return false;
}

bool hlo_text_defined_computation(hlo_text *text, uint32_t from, const char *name, hlo_span *out) {
    for (search s = search_behind(text, from); search_on(&s);) {
        const char *word = s.at;
        if (strncmp(word, "ENTRY ", 6) == 0) word = skip_blanks(word + 6);
        const char *behind = behind_name(word, name);
        if (behind && (*behind == '{' || *behind == '(')) return found(text, word, name, out);
    }
    return false;
}
