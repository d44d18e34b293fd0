/* Tokens that have an inside: strings, raw text, integer lists, shapes with their layouts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/text.h"

/* ------------------------------------------------------------------------------------- strings */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One escape, behind its backslash; returns what comes after it. */
static const char *unescape(const char *from, const char *end, char *out) {
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    const char *letter = *from ? strchr(letters, *from) : NULL;
    unsigned value = 0;
    if (letter) {
        *out = values[letter - letters];
        return from + 1;
    }
    if (*from >= '0' && *from <= '7') {
        const char *stop = end - from > 3 ? from + 3 : end;
        while (from < stop && *from >= '0' && *from <= '7')
            value = value * 8 + (unsigned)(*from++ - '0');
    } else if (*from == 'x' && from + 1 < end && hex_digit(from[1]) >= 0) {
        for (from++; from < end && hex_digit(*from) >= 0; from++)
            value = value * 16 + (unsigned)hex_digit(*from);
    } else {
        value = (unsigned char)*from++;
    }
    *out = (char)value;
    return from;
}

/* The quote that ends the string at `from`, or NULL. */
static const char *string_end(const char *from, const char *end, bool *out_escapes) {
    *out_escapes = false;
    for (const char *at = from + 1;;) {
        const char *quote = memchr(at, *from, (size_t)(end - at));
        const char *escape = quote ? memchr(at, '\\', (size_t)(quote - at)) : NULL;
        if (!escape) return quote;
        *out_escapes = true;
        at = escape + 2; /* at most the end, as the quote comes after the backslash */
    }
}

uint32_t hlo_text_string(hlo_text *text, uint32_t offset, const char **out) {
    const char *from = text->source + offset;
    bool escapes;
    const char *quote = string_end(from, text->source + text->size, &escapes);
    *out = NULL;
    if (!quote) {
        hlo_text_error(text, (hlo_span){offset, 1}, "this string has no end");
        return (uint32_t)(text->size - offset);
    }
    size_t length = (size_t)(quote - from - 1);
    if (!escapes) {
        *out = hlo_intern(text->module, from + 1, length);
        return (uint32_t)length + 2;
    }
    char *plain = hlo_arena_alloc(text->scratch, length), *end = plain;
    for (const char *at = from + 1; at < quote;) {
        if (*at == '\\')
            at = unescape(at + 1, quote, end++);
        else
            *end++ = *at++;
    }
    *out = hlo_intern(text->module, plain, (size_t)(end - plain));
    return (uint32_t)length + 2;
}

/* --------------------------------------------------------------------------------------- raw text
 */

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether a value goes on behind a space: `mesh['a'=2] {'a'}`. */
static bool goes_on(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    return at < end && (*at == '{' || *at == '[' || *at == '<');
}

uint32_t hlo_text_raw(hlo_text *text, uint32_t offset, const char **out) {
    const char *from = text->source + offset, *end = text->source + text->size, *at = from;
    const char *outermost = from, *nul = NULL; /* the bracket that is open; the first NUL */
    size_t depth = 0;
    *out = NULL;
    for (; at < end; at++) {
        char c = *at;
        if (c == '{' || c == '[' || c == '(') {
            if (depth++ == 0) outermost = at;
        } else if (c == '}' || c == ']' || c == ')') {
            if (depth == 0) break;
            depth--;
        } else if (c == '"' || (c == '\'' && depth == 0)) {
            bool escapes;
            const char *quote = string_end(at, end, &escapes);
            if (!quote) {
                hlo_text_error(text, (hlo_span){(uint32_t)(at - text->source), 1},
                               "this string has no end");
                return (uint32_t)(end - from);
            }
            at = quote;
        } else if (c == '\0') {
            if (!nul) nul = at;
        } else if (depth == 0 && (c == ',' || (is_space(c) && !goes_on(at, end)))) {
            break;
        }
    }
    if (depth) {
        hlo_text_error(text, (hlo_span){(uint32_t)(outermost - text->source), 1},
                       "this '%c' is never closed", *outermost);
        return (uint32_t)(end - from);
    }
    if (nul)
        hlo_text_error(text, (hlo_span){(uint32_t)(nul - text->source), 1}, "unexpected byte 0x00");
    else
        *out = hlo_intern(text->module, from, (size_t)(at - from));
    return (uint32_t)(at - from);
}

/* ------------------------------------------------------------------------------------- integers */

/* Reads digits at *at; false and an error when they are too many. */
static bool read_int(hlo_text *text, const char **at, int64_t *out) {
    const char *from = *at, *end = text->source + text->size, *p = from;
    bool negative = p < end && *p == '-';
    if (negative) p++;
    const char *digits = p;
    int64_t value = 0;
    bool overflow = false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        overflow |= __builtin_mul_overflow(value, 10, &value) ||
                    __builtin_sub_overflow(value, *p - '0', &value);
    if (!negative) overflow |= __builtin_sub_overflow(0, value, &value);
    *at = p;
    *out = value;
    if (p > digits && !overflow) return true;
    hlo_span where = {(uint32_t)(from - text->source), (uint32_t)(p > from ? p - from : 1)};
    if (overflow)
        hlo_text_error(text, where, "the number %s does not fit in 64 bits",
                       hlo_text_quote(text, where));
    else
        hlo_text_error(text, where, "expected an integer, found '%s'", hlo_text_quote(text, where));
    return false;
}

bool hlo_text_int(hlo_text *text, hlo_span at, int64_t *out) {
    const char *from = text->source + at.offset;
    return read_int(text, &from, out);
}

static const char *skip_space(const char *at) {
    while (is_space(*at)) at++;
    return at;
}

static bool expect(hlo_text *text, const char **at, char wanted) {
    *at = skip_space(*at);
    if (**at == wanted) {
        ++*at;
        return true;
    }
    hlo_span where = {(uint32_t)(*at - text->source), 1};
    hlo_text_error(text, where, "expected '%c', found '%s'", wanted, hlo_text_quote(text, where));
    return false;
}

/* Integers separated by commas up to `close`, pushed on `stack`. */
static bool read_ints(hlo_text *text, const char **at, char close, hlo_stack *stack) {
    *at = skip_space(*at);
    if (**at == close) {
        ++*at;
        return true;
    }
    for (;;) {
        int64_t value;
        *at = skip_space(*at);
        if (!read_int(text, at, &value)) return false;
        hlo_stack_push(text, stack, &value, sizeof value);
        *at = skip_space(*at);
        if (**at != ',') return expect(text, at, close);
        ++*at;
    }
}

static const hlo_ints *take_ints(hlo_text *text, hlo_stack *stack) {
    size_t count = stack->used / sizeof(int64_t);
    stack->used = 0;
    return hlo_ints_new(text->module, (uint32_t)count, (const int64_t *)stack->items);
}

const hlo_ints *hlo_text_ints(hlo_text *text, hlo_span at) {
    const char *from = text->source + at.offset + 1;
    text->ints.used = 0;
    return read_ints(text, &from, '}', &text->ints) ? take_ints(text, &text->ints) : NULL;
}

/* `[start:limit]` or `[start:limit:stride]`. */
static bool read_slice(hlo_text *text, const char **at) {
    int64_t part[3] = {0, 0, 1};
    if (!expect(text, at, '[')) return false;
    for (int i = 0; i < 3; i++) {
        *at = skip_space(*at);
        if (!read_int(text, at, &part[i])) return false;
        *at = skip_space(*at);
        if (i == 2 || (i == 1 && **at == ']')) break;
        if (!expect(text, at, ':')) return false;
    }
    hlo_stack_push(text, &text->ints, part, sizeof part);
    return expect(text, at, ']');
}

const hlo_ints *hlo_text_slices(hlo_text *text, hlo_span at) {
    const char *from = skip_space(text->source + at.offset + 1);
    text->ints.used = 0;
    while (*from != '}') {
        if (!read_slice(text, &from)) return NULL;
        from = skip_space(from);
        if (*from == '}') break;
        if (!expect(text, &from, ',')) return NULL;
        from = skip_space(from);
    }
    return take_ints(text, &text->ints);
}

/* `low_high` or `low_high_interior`, separated by `x`. */
const hlo_ints *hlo_text_padding(hlo_text *text, hlo_span at) {
    const char *from = text->source + at.offset, *end = from + at.length;
    text->ints.used = 0;
    for (;;) {
        int64_t part[3] = {0};
        for (int i = 0; i < 3; i++) {
            if (!read_int(text, &from, &part[i])) return NULL;
            if (i == 2 || (i == 1 && *from != '_')) break;
            if (!expect(text, &from, '_')) return NULL;
        }
        hlo_stack_push(text, &text->ints, part, sizeof part);
        if (from == end) return take_ints(text, &text->ints);
        if (!expect(text, &from, 'x')) return NULL;
    }
}

/* --------------------------------------------------------------------------------------- shapes */

/* A shape while its text is being read. */
typedef struct shape_reader {
    hlo_text *text;
    const char *at, *end;
    uint32_t rank;
    int64_t dims[HLO_LARGEST_RANK], order[HLO_LARGEST_RANK];
    bool dynamic[HLO_LARGEST_RANK], any_dynamic;
    hlo_layout layout;
} shape_reader;

static hlo_span here(const shape_reader *r, size_t length) {
    return (hlo_span){(uint32_t)(r->at - r->text->source), (uint32_t)length};
}

static bool read_dim(shape_reader *r) {
    if (r->rank == HLO_LARGEST_RANK) {
        hlo_text_error(r->text, here(r, 1), "a shape has at most %d dimensions", HLO_LARGEST_RANK);
        return false;
    }
    int64_t *dim = &r->dims[r->rank];
    r->at = skip_space(r->at);
    if (*r->at == '?') {
        r->at++;
        *dim = -1;
    } else {
        bool bounded = r->at[0] == '<' && r->at[1] == '=';
        if (bounded) r->at = skip_space(r->at + 2);
        const char *from = r->at;
        if (!read_int(r->text, &r->at, dim)) return false;
        if (*dim < 0) {
            hlo_span where = {(uint32_t)(from - r->text->source), (uint32_t)(r->at - from)};
            hlo_text_error(r->text, where, "a dimension is not negative");
            return false;
        }
        r->dynamic[r->rank] = bounded;
        r->any_dynamic |= bounded;
    }
    r->rank++;
    r->at = skip_space(r->at);
    return true;
}

static bool read_dims(shape_reader *r) {
    r->at = skip_space(r->at);
    if (*r->at != ']') {
        do {
            if (!read_dim(r)) return false;
        } while (*r->at == ',' && r->at++);
    }
    return expect(r->text, &r->at, ']');
}

static bool read_order(shape_reader *r) {
    hlo_span at = here(r, 1);
    bool seen[HLO_LARGEST_RANK] = {false};
    uint32_t count = 0;
    while (*r->at != ':' && *r->at != '}') {
        int64_t dim;
        hlo_span where = here(r, 1);
        if (!read_int(r->text, &r->at, &dim)) return false;
        bool none = dim < 0 || dim >= r->rank;
        if (none || seen[dim]) {
            hlo_text_error(r->text, where,
                           none ? "the shape has no dimension %lld"
                                : "dimension %lld is in the layout twice",
                           (long long)dim);
            return false;
        }
        seen[dim] = true;
        r->order[count++] = dim;
        r->at = skip_space(r->at);
        if (*r->at == ',') r->at = skip_space(r->at + 1);
    }
    if (count == r->rank) return true;
    hlo_text_error(r->text, at, "the layout has %u dimension%s, the shape has %u", count,
                   count == 1 ? "" : "s", r->rank);
    return false;
}

static bool read_parens_int(shape_reader *r, int64_t *out) {
    return expect(r->text, &r->at, '(') && read_int(r->text, &r->at, out) &&
           expect(r->text, &r->at, ')');
}

/* What stands behind the `:`; E(n) and S(n) are taken out, the rest is kept as it is. */
static bool read_properties(shape_reader *r) {
    char *rest = hlo_arena_alloc(r->text->scratch, (size_t)(r->end - r->at) + 1);
    size_t length = 0;
    while (*r->at != '}') {
        if (r->at[0] == 'E' && r->at[1] == '(') {
            r->at++;
            if (!read_parens_int(r, &r->layout.element_bits)) return false;
        } else if (r->at[0] == 'S' && r->at[1] == '(') {
            r->at++;
            if (!read_parens_int(r, &r->layout.memory_space)) return false;
        } else if (*r->at == '(') {
            size_t group = strcspn(r->at, ")}");
            if (r->at[group] != ')') {
                hlo_text_error(r->text, here(r, 1), "this '(' is never closed");
                return false;
            }
            memcpy(rest + length, r->at, ++group);
            length += group;
            r->at += group;
        } else if (is_space(*r->at)) {
            r->at++;
        } else {
            rest[length++] = *r->at++;
        }
    }
    if (length) r->layout.rest = hlo_intern(r->text->module, rest, length);
    return true;
}

static bool read_layout(shape_reader *r) {
    r->at = skip_space(r->at + 1);
    if (!read_order(r)) return false;
    if (*r->at != ':') return true;
    r->at++;
    return read_properties(r);
}

static const hlo_shape *read_shape(hlo_text *text, hlo_span at) {
    shape_reader r = {.text = text, .at = text->source + at.offset};
    r.end = r.at + at.length;
    size_t name = strcspn(r.at, "[");
    hlo_type type = hlo_type_find(r.at, name);
    if (type == HLO_TYPE_INVALID || type == HLO_TYPE_TUPLE) {
        hlo_span where = {at.offset, (uint32_t)name};
        hlo_text_error(text, where, "there is no element type '%s'", hlo_text_quote(text, where));
        return NULL;
    }
    r.at += name + 1;
    if (!read_dims(&r)) return NULL;
    r.layout.minor_to_major = r.order;
    bool given = skip_space(r.at) < r.end;
    if (given) {
        r.at = skip_space(r.at);
        if (!read_layout(&r)) return NULL;
    } else {
        for (uint32_t i = 0; i < r.rank; i++) r.order[i] = r.rank - 1 - i;
    }
    hlo_shape shape = {
        .type = type,
        .rank = r.rank,
        .dims = r.dims,
        .dynamic = r.any_dynamic ? r.dynamic : NULL,
        .layout = given || r.rank ? &r.layout : NULL,
    };
    int64_t bytes = 1;
    for (uint32_t i = 0; i < r.rank; i++)
        if (r.dims[i] > 0 && __builtin_mul_overflow(bytes, r.dims[i], &bytes)) bytes = INT64_MAX;
    if (bytes > INT64_MAX / 16) {
        hlo_text_error(text, at, "the shape has too many elements");
        return NULL;
    }
    return hlo_shape_intern(text->module, &shape);
}

const hlo_shape *hlo_text_shape(hlo_text *text, hlo_span at) {
    const char *written = hlo_intern(text->module, text->source + at.offset, at.length);
    hlo_memo *memo = hlo_intern_memo(text->module, written);
    if (!memo->shape) memo->shape = read_shape(text, at);
    return memo->shape;
}

const hlo_shape *hlo_text_buffer(hlo_text *text, const hlo_shape *shape) {
    hlo_shape buffer = *shape;
    buffer.buffer = true;
    return hlo_shape_intern(text->module, &buffer);
}
