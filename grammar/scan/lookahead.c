/* Lookahead over bare text: gaps, ends of lines, the brace of a layout. */
#include <string.h>

#include "grammar/scan/parser.h"

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

const char *hlo_text_behind_gap(const char *at) {
    for (;;) {
        while (is_space(*at)) at++;
        const char *stop = at[0] != '/'   ? NULL
                           : at[1] == '*' ? strstr(at + 2, "*/")
                           : at[1] == '/' ? at + 2 + strcspn(at + 2, "\r\n")
                                          : NULL;
        if (!stop) return at;
        at = at[1] == '*' ? stop + 2 : stop;
    }
}

/* Finds the first stop. Fast for the usual text: numbers and commas. */
const char *hlo_text_stop(const char *at, const char *stops) {
    while ((*at >= '0' && *at <= '9') || *at == ',') at++;
    for (;;) {
        if (*at != *stops) at += strcspn(at, stops);
        if (*at != '/') return at;
        const char *behind = hlo_text_behind_gap(at);
        at = behind > at ? behind : at + 1;
    }
}

uint32_t hlo_text_line_end(const hlo_text *text, uint32_t offset) {
    const char *from = text->source + offset;
    const char *newline = memchr(from, '\n', text->size - offset);
    return newline ? (uint32_t)(newline - text->source) : (uint32_t)text->size;
}

bool hlo_text_begins_layout(const char *at) {
    if (*at != '{') return false;
    at = hlo_text_gap(at + 1);
    return *at == ':' || *at == '-' || (*at >= '0' && *at <= '9');
}
