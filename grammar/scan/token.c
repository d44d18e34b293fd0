/* SPDX-License-Identifier: Apache-2.0 */
/* Reads white space, comments, names of attributes, strings, raw text and integer lists. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/bytes.h"
#include "grammar/scan/parser.h"
#include "ir/intern.h"

const char *hlo_text_skip_gap(const char *at) {
    for (;;) {
        while (hlo_text_is_space(*at)) at++;
        const char *stop = at[0] != '/'   ? NULL
                           : at[1] == '*' ? strstr(at + 2, "*/")
                           : at[1] == '/' ? at + 2 + strcspn(at + 2, "\r\n")
                                          : NULL;
        if (!stop) return at;
        at = at[1] == '*' ? stop + 2 : stop;
    }
}

/* The first loop is fast for numbers and commas, the most common text. */
const char *hlo_text_stop(const char *at, const char *stops) {
    while ((*at >= '0' && *at <= '9') || *at == ',') at++;
    for (;;) {
        if (*at != *stops) at += strcspn(at, stops);
        if (*at != '/') return at;
        const char *after = hlo_text_skip_gap(at);
        at = after > at ? after : at + 1;
    }
}

uint32_t hlo_text_line_end(const hlo_text *text, uint32_t offset) {
    const char *from = text->source + offset;
    const char *newline = memchr(from, '\n', text->size - offset);
    return newline ? (uint32_t)(newline - text->source) : (uint32_t)text->size;
}

hlo_attr_id hlo_text_find_attr(hlo_text *text, const char *interned) {
    hlo_string_cache *cache = hlo_intern_cache(text->module, interned);
    if (!cache->attr)
        cache->attr = (uint8_t)(hlo_attr_find(interned, hlo_intern_length(interned)) + 1);
    hlo_attr_id id = (hlo_attr_id)(cache->attr - 1);
    const bool order = id == HLO_ATTR_INVALID && strcmp(interned, "order") == 0;
    if ((id != HLO_ATTR_SLICE_SIZES && !order) || !text->frames.used) return id;
    const hlo_frame *frame = hlo_text_frame(text);
    if (order)
        return frame->owner == HLO_OWNER_INSTR && frame->op == HLO_OP_COMPARE ? HLO_ATTR_TYPE : id;
    bool lists = frame->owner == HLO_OWNER_INSTR && frame->op != HLO_OP_INVALID &&
                 hlo_op_has(frame->op, HLO_ATTR_SLICE_SIZE_LISTS);
    return lists ? HLO_ATTR_SLICE_SIZE_LISTS : id;
}

/* Finds the quote that ends the string at `from`; NULL if not found. */
static const char *string_end(const char *from, const char *end, bool *out_escapes) {
    *out_escapes = false;
    for (const char *at = from + 1;;) {
        const char *quote = memchr(at, *from, (size_t)(end - at));
        const char *escape = quote ? memchr(at, '\\', (size_t)(quote - at)) : NULL;
        if (!escape) return quote;
        *out_escapes = true;
        at = escape + 2; /* at most `end`: a quote follows the backslash */
    }
}

uint32_t hlo_text_string(hlo_text *text, uint32_t offset, const char **out) {
    const char *from = text->source + offset;
    bool escapes;
    const char *quote = string_end(from, text->source + text->size, &escapes);
    *out = NULL;
    if (!quote) {
        hlo_text_error(text, (hlo_span){offset, 1}, "unterminated string");
        return hlo_text_line_end(text, offset) - offset;
    }
    size_t length = (size_t)(quote - from - 1);
    if (memchr(from, '\n', length)) text->string = (hlo_span){offset, (uint32_t)length + 2};
    if (!escapes) {
        *out = hlo_intern(text->module, from + 1, length);
        return (uint32_t)length + 2;
    }
    size_t size;
    char *plain = hlo_unquote(text->scratch, &from, quote + 1, &size);
    *out = hlo_intern(text->module, plain, size);
    return (uint32_t)length + 2;
}

/* True if a value continues after a space or a comment, as in `[2,2]<=[2,2] T(1,0)`, or, if it is a
 * mesh, after a comma, as in `mesh['a'=2], device_ids=(1,0) {'a'}`. */
static bool goes_on(const char *at, bool mesh) {
    static const char ids[] = "device_ids=";
    at = hlo_text_gap(at);
    if (*at == ',') {
        if (!mesh) return false;
        at = hlo_text_gap(at + 1);
    }
    if (mesh && strncmp(at, ids, sizeof ids - 1) == 0) return true;
    if (*at == 'T') return *hlo_text_gap(at + 1) == '(';
    return *at && strchr("{[<(", *at);
}

uint32_t hlo_text_raw(hlo_text *text, uint32_t offset, const char **out) {
    const char *from = text->source + offset, *end = text->source + text->size, *at = from;
    const char *outermost = from, *nul = NULL; /* the outermost open bracket; the first NUL */
    const char *overlong = NULL;               /* the first string that continues after its line */
    char closing = '\0';                       /* the bracket that closes the outermost one */
    size_t depth = 0;                          /* number of open brackets of that kind */
    /* The bracket depth at which comments become a part of the value. */
    const size_t verbatim = text->attr == HLO_ATTR_BACKEND_CONFIG        ? 1
                            : text->attr == HLO_ATTR_FRONTEND_ATTRIBUTES ? 2
                                                                         : SIZE_MAX;
    *out = NULL;
    for (; at < end; at++) {
        char c = *at;
        if (c == '/' && depth && depth < verbatim && hlo_text_skip_gap(at) > at) {
            at = hlo_text_skip_gap(at) - 1;
        } else if (!depth && (c == '{' || c == '[' || c == '(')) {
            outermost = at;
            closing = c == '(' ? ')' : (char)(c + 2);
            depth = 1;
        } else if (depth && c == *outermost) {
            depth++;
        } else if (depth && c == closing) {
            depth--;
        } else if (!depth && (c == '}' || c == ']' || c == ')')) {
            break;
        } else if (c == '"' || (c == '\'' && depth == 0)) {
            bool escapes;
            const char *quote = string_end(at, end, &escapes);
            if (!overlong && (!quote || memchr(at, '\n', (size_t)(quote - at)))) overlong = at;
            if (!quote) {
                uint32_t where = (uint32_t)(overlong - text->source);
                hlo_text_error(text, (hlo_span){where, 1}, "unterminated string");
                return hlo_text_line_end(text, where) - offset;
            }
            at = quote;
        } else if (c == '\0') {
            if (!nul) nul = at;
        } else if (depth == 0 && (c == ',' || hlo_text_gap(at) > at)) {
            if (!goes_on(at, *from == 'm')) break;
            if (c != ',') at = hlo_text_gap(at) - 1;
        }
    }
    if (depth) {
        uint32_t where = (uint32_t)(outermost - text->source);
        hlo_text_error(text, (hlo_span){where, 1}, "this '%c' is never closed", *outermost);
        return hlo_text_line_end(text, where) - offset;
    }
    if (nul)
        hlo_text_error(text, (hlo_span){(uint32_t)(nul - text->source), 1}, "unexpected byte 0x00");
    else
        *out = hlo_intern(text->module, from, (size_t)(at - from));
    if (memchr(from, '\n', (size_t)(at - from)))
        text->string = (hlo_span){offset, (uint32_t)(at - from)};
    return (uint32_t)(at - from);
}

/* Numbers of 2^63 or more wrap to negative ones, as in XLA's parser. */
bool hlo_text_read_int(hlo_text *text, const char **at, int64_t *out) {
    const char *from = *at, *p = from + (*from == '-');
    const char *digits = p;
    uint64_t value = 0;
    bool fits = true, negative = digits > from;
    for (; *p >= '0' && *p <= '9'; p++) /* the NUL after the text ends the loop */
        fits &= !__builtin_mul_overflow(value, 10, &value) &&
                !__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    fits &= !negative || value <= (uint64_t)INT64_MAX + 1;
    hlo_span where = {(uint32_t)(from - text->source), (uint32_t)(p > from ? p - from : 1)};
    *at = p;
    *out = (int64_t)(negative ? 0 - value : value);
    if (p == digits)
        hlo_text_error(text, where, "expected an integer, found '%s'", hlo_text_quote(text, where));
    else if (!fits)
        hlo_text_error(text, where, "the number %s does not fit in 64 bits",
                       hlo_text_quote(text, where));
    else if (!negative && value > INT64_MAX)
        hlo_text_defer_error(text, where,
                             "the number %s does not fit in 64 bits and is read as %lld",
                             hlo_text_quote(text, where), (long long)*out);
    return p > digits && fits;
}

bool hlo_text_int(hlo_text *text, hlo_span at, int64_t *out) {
    const char *from = text->source + at.offset;
    return hlo_text_read_int(text, &from, out);
}

bool hlo_text_expect(hlo_text *text, const char **at, char wanted) {
    *at = hlo_text_gap(*at);
    if (**at == wanted) {
        ++*at;
        return true;
    }
    hlo_span where = {(uint32_t)(*at - text->source), 1};
    hlo_text_error(text, where, "expected '%c', found '%s'", wanted, hlo_text_quote(text, where));
    return false;
}

static const hlo_ints *take_ints(hlo_text *text) {
    size_t count = text->ints.used / sizeof(int64_t);
    text->ints.used = 0;
    return hlo_ints_new(text->module, (uint32_t)count, (const int64_t *)text->ints.items);
}

uint32_t hlo_text_braces(const hlo_text *text, uint32_t offset) {
    const char *from = text->source + offset, *end = hlo_text_stop(from + 1, "}{\"%=/");
    return *end == '}' ? (uint32_t)(end - from) + 1 : 0;
}

const hlo_ints *hlo_text_ints(hlo_text *text, hlo_span at) {
    const char *from = text->source + at.offset + 1;
    text->ints.used = 0;
    from = hlo_text_gap(from);
    if (*from == '}') return take_ints(text);
    for (;;) {
        int64_t value;
        from = hlo_text_gap(from);
        if (!hlo_text_read_int(text, &from, &value)) return NULL;
        hlo_stack_push(text, &text->ints, &value, sizeof value);
        from = hlo_text_gap(from);
        if (*from != ',') return hlo_text_expect(text, &from, '}') ? take_ints(text) : NULL;
        from++;
    }
}

const hlo_ints *hlo_text_slices(hlo_text *text, hlo_span at) {
    const char *from = hlo_text_gap(text->source + at.offset + 1);
    text->ints.used = 0;
    if (*from == '}') return take_ints(text);
    for (;;) {
        /* Read `[start:limit]` or `[start:limit:stride]`. */
        int64_t part[3] = {0, 0, 1};
        if (!hlo_text_expect(text, &from, '[')) return NULL;
        for (int i = 0; i < 3; i++) {
            from = hlo_text_gap(from);
            if (!hlo_text_read_int(text, &from, &part[i])) return NULL;
            from = hlo_text_gap(from);
            if (i == 2 || (i == 1 && *from == ']')) break;
            if (!hlo_text_expect(text, &from, ':')) return NULL;
        }
        hlo_stack_push(text, &text->ints, part, sizeof part);
        if (!hlo_text_expect(text, &from, ']')) return NULL;
        from = hlo_text_gap(from);
        if (*from == '}') return take_ints(text);
        if (!hlo_text_expect(text, &from, ',')) return NULL;
    }
}

/* Reads `low_high` or `low_high_interior` of each dimension, with `x` between them. */
const hlo_ints *hlo_text_padding(hlo_text *text, hlo_span at) {
    const char *from = text->source + at.offset, *end = from + at.length;
    text->ints.used = 0;
    for (;;) {
        int64_t part[3] = {0};
        for (int i = 0; i < 3; i++) {
            const char *number = from;
            if (!hlo_text_read_int(text, &from, &part[i])) return NULL;
            if (i == 2 && part[i] < 0) {
                hlo_span where = {(uint32_t)(number - text->source), (uint32_t)(from - number)};
                hlo_text_error(text, where, "an interior padding must not be negative");
                return NULL;
            }
            if (i == 2 || (i == 1 && *from != '_')) break;
            if (!hlo_text_expect(text, &from, '_')) return NULL;
        }
        hlo_stack_push(text, &text->ints, part, sizeof part);
        if (from == end) return take_ints(text);
        if (!hlo_text_expect(text, &from, 'x')) return NULL;
    }
}
