/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constants. A single loop reads arrays of any rank. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/scan/parser.h"
#include "ir/float/float.h"
#include "ir/float/literal.h"

typedef struct reader {
    hlo_text *text;
    const char *at, *end;
} reader;

static hlo_span span(const reader *r, const char *from, const char *to) {
    return (hlo_span){(uint32_t)(from - r->text->source), (uint32_t)(to > from ? to - from : 1)};
}

/* Skips white space and comments. */
static void skip(reader *r) {
    if (r->at<r->end && * r->at> '/') return;
    for (;;) {
        while (r->at < r->end &&
               (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
            r->at++;
        if (r->end - r->at < 2 || *r->at != '/') return;
        const char *stop = r->at[1] == '*'
                               ? memmem(r->at + 2, (size_t)(r->end - r->at) - 2, "*/", 2)
                           : r->at[1] == '/' ? memchr(r->at, '\n', (size_t)(r->end - r->at))
                                             : r->at;
        if (stop == r->at) return;
        r->at = !stop ? r->end : r->at[1] == '*' ? stop + 2 : stop + 1;
    }
}

static bool next_is(reader *r, char c) {
    skip(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool fail(reader *r, const char *wanted) {
    skip(r);
    hlo_span at = span(r, r->at, r->at + 1);
    if (r->at == r->end)
        hlo_text_error(r->text, at, "the text ends inside a constant, expected %s", wanted);
    else
        hlo_text_error(r->text, at, "expected %s, found '%s'", wanted, hlo_text_quote(r->text, at));
    return false;
}

/* Finds the end of a number or word: a separator, `...`, `nan` or `inf` after a number with a point
 * or an exponent, or `-` after any number. */
static const char *word_end(const reader *r) {
    const char *at = r->at;
    bool point = false;
    for (; at < r->end && !strchr(" \t\r\n,{}()/", *at); at++) {
        if (point && r->end - at >= 3 && memcmp(at, "...", 3) == 0) break;
        const bool digit_before = at > r->at && at[-1] >= '0' && at[-1] <= '9';
        if (*at == '-' && at > r->at && (digit_before || at[-1] == '.')) break;
        if (point && (*at == 'n' || *at == 'i')) break;
        point |= *at == '.' || (digit_before && (*at == 'e' || *at == 'E'));
    }
    return at;
}

static bool bad_value(reader *r, const char *from, const char *to, const char *why, hlo_type type) {
    hlo_span at = span(r, from, to);
    hlo_text_error(r->text, at, "'%s' %s %s", hlo_text_quote(r->text, at), why,
                   hlo_types[type].name);
    return false;
}

/* ------------------------------------------------------------------- numbers, as XLA reads them */

static bool is_digits(const char *from, const char *to) {
    for (const char *at = from; at < to; at++)
        if (*at < '0' || *at > '9') return false;
    return to > from;
}

/* XLA reads integers of every type as a uint64. */
static bool parse_int(const char *from, const char *to, int64_t *out) {
    bool negative = *from == '-';
    uint64_t value = 0;
    if (!is_digits(from + negative, to)) return false;
    for (const char *at = from + negative; at < to; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (negative && value > (uint64_t)INT64_MAX + 1) return false;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

/* Reads decimal digits with at most one point and an exponent: XLA and strtod() read these alike. A
 * number of at most 15 digits times a power of ten up to 22 needs no strtod(): both are exact
 * doubles, so a single operation rounds correctly. */
static bool parse_decimal(const char *from, const char *to, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool negative = *from == '-';
    const char *at = from + negative;
    uint64_t value = 0;
    int count = 0, scale = 0;
    bool exact = true;
    if (at == to || *at < '0' || *at > '9') return false;
    for (bool point = false; at < to && ((*at >= '0' && *at <= '9') || (*at == '.' && !point));
         at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        value = value * 10 + (uint64_t)(*at - '0');
        scale -= point;
        exact &= ++count <= 15;
    }
    if (at < to && (*at == 'e' || *at == 'E')) {
        int exponent = 0;
        const bool minus = *++at == '-';
        if (at < to && (*at == '-' || *at == '+')) at++;
        if (at == to) return false;
        exact &= to - at <= 3;
        for (; at < to && *at >= '0' && *at <= '9'; at++)
            if (exact) exponent = exponent * 10 + (*at - '0');
        if (exact) scale += minus ? -exponent : exponent;
    }
    if (at != to) return false;
    if (!exact || scale < -22 || scale > 22) {
        *out = strtod(from, NULL);
        return true;
    }
    double number = (double)value;
    number = scale < 0 ? number / powers[-scale] : number * powers[scale];
    *out = negative ? -number : number;
    return true;
}

/* ---------------------------------------------------------------------------------- one element */

static bool is(const char *from, const char *to, const char *word) {
    return (size_t)(to - from) == strlen(word) && memcmp(from, word, strlen(word)) == 0;
}

static bool store_nan(hlo_type type, const char *from, const char *to, void *out) {
    bool negative = *from == '-';
    from += negative;
    uint64_t bits = hlo_float_encode(type, negative ? copysign(NAN, -1) : copysign(NAN, 1));
    if (to - from > 7 && memcmp(from, "nan(0x", 6) == 0 && to[-1] == ')') {
        char *stop;
        unsigned long long payload = strtoull(from + 4, &stop, 16);
        uint64_t with = hlo_float_nan(type, negative, payload);
        if (stop != to - 1 || !with) return false;
        bits = with;
    } else if (!is(from, to, "nan")) {
        return false;
    }
    memcpy(out, &bits, hlo_types[type].bytes);
    return true;
}

static bool store_float(reader *r, hlo_type type, const char *from, const char *to, void *out) {
    double value;
    int64_t whole;
    if (parse_int(from, to, &whole)) {
        value = (double)whole; /* `-0` is an integer and loses its sign */
    } else if (is(from, to, "inf") || is(from, to, "-inf")) {
        value = *from == '-' ? -INFINITY : INFINITY;
        uint64_t bits = hlo_float_encode(type, value);
        if (!isinf(hlo_float_decode(type, bits))) {
            hlo_span at = span(r, from, to);
            double read = hlo_float_decode(type, bits);
            const char *name = hlo_types[type].name;
            if (isnan(read))
                hlo_text_defer_error(r->text, at, "%s has no infinity: the value is read as nan",
                                     name);
            else
                hlo_text_defer_error(r->text, at, "%s has no infinity: the value is read as %g",
                                     name, read);
        }
    } else if (is_digits(from + (*from == '-'), to)) {
        return bad_value(r, from, to,
                         "has no decimal point and does not fit in 64 bits: it cannot be read as",
                         type);
    } else if (parse_decimal(from, to, &value)) {
        if (isinf(value)) return bad_value(r, from, to, "is out of the range of", type);
    } else {
        return store_nan(type, from, to, out) || bad_value(r, from, to, "is not a value of", type);
    }
    uint64_t bits = hlo_float_encode(type, value);
    if (isfinite(value) && !isfinite(hlo_float_decode(type, bits)))
        return bad_value(r, from, to, "is out of the range of", type);
    memcpy(out, &bits, hlo_types[type].bytes);
    return true;
}

static bool store_real(reader *r, hlo_type type, void *out) {
    skip(r);
    const char *from = r->at, *to = word_end(r);
    if (from == to) return fail(r, "a number");
    if (to < r->end && *to == '(' && (is(from, to, "nan") || is(from, to, "-nan"))) {
        while (to < r->end && *to != ')' && *to != '\n') to++;
        if (to < r->end) to++;
    }
    r->at = to;
    switch ((hlo_type_class)hlo_types[type].class) {
    case HLO_CLASS_PRED: {
        int64_t value;
        if (is(from, to, "true"))
            value = 1;
        else if (is(from, to, "false"))
            value = 0;
        else if (!parse_int(from, to, &value))
            return bad_value(r, from, to, "is not a value of", HLO_TYPE_PRED);
        *(uint8_t *)out = value != 0;
        return true;
    }
    case HLO_CLASS_SIGNED:
    case HLO_CLASS_UNSIGNED: {
        int64_t value;
        const hlo_type_info *info = &hlo_types[type];
        if (!parse_int(from, to, &value)) {
            bool number = is_digits(from + (*from == '-'), to);
            return bad_value(r, from, to, number ? "is out of the range of" : "is not a value of",
                             type);
        }
        bool fits = true;
        if (info->bits < 64) {
            bool has_sign = info->class == HLO_CLASS_SIGNED;
            int64_t limit = (int64_t)1 << (info->bits - has_sign);
            fits = value >= (has_sign ? -limit : 0) && value < limit;
        }
        if (!fits) return bad_value(r, from, to, "is out of the range of", type);
        memcpy(out, &value, info->bytes);
        return true;
    }
    case HLO_CLASS_FLOAT: return store_float(r, type, from, to, out);
    default: return bad_value(r, from, to, "cannot be a constant of type", type);
    }
}

static bool store_element(reader *r, hlo_type type, char *out) {
    if (hlo_types[type].class != HLO_CLASS_COMPLEX) return store_real(r, type, out);
    hlo_type part = type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64;
    if (!next_is(r, '(')) return fail(r, "'('");
    if (!store_real(r, part, out)) return false;
    if (!next_is(r, ',')) return fail(r, "','");
    if (!store_real(r, part, out + hlo_types[part].bytes)) return false;
    return next_is(r, ')') || fail(r, "')'");
}

/* --------------------------------------------------------------------------------- whole values */

static bool wrong_count(reader *r, const char *at, int64_t found, int64_t wanted) {
    hlo_text_error(r->text, span(r, at, at + 1), "%s %lld element%s here, the shape has %lld",
                   found < wanted ? "only" : "more than",
                   (long long)(found < wanted ? found : wanted), found == 1 ? "" : "s",
                   (long long)wanted);
    return false;
}

/* Reads the commas between elements or before the `}`. XLA's parser accepts any number of commas.
 */
static void read_commas(reader *r, bool first) {
    skip(r);
    const char *from = r->at;
    unsigned found = 0;
    while (next_is(r, ',')) found++;
    skip(r);
    unsigned wanted = !first && r->at < r->end && *r->at != '}';
    hlo_span at = span(r, r->at, r->at + 1);
    if (found < wanted)
        hlo_text_defer_error(r->text, at, "expected ',', found '%s'", hlo_text_quote(r->text, at));
    else if (found > wanted)
        hlo_text_defer_error(r->text, span(r, from, from + 1), "this ',' separates nothing");
}

/* Reads `...` in the outermost braces, which elides all values, also those before it. */
static bool read_dots(reader *r) {
    if (r->end - r->at < 3 || memcmp(r->at, "...", 3) != 0) return false;
    r->at += 3;
    return true;
}

/* True if `...` follows in the outermost braces. `level` braces are open at r->at. */
static bool dots_follow(reader r, uint32_t level) {
    for (skip(&r); r.at < r.end && (level || *r.at == '{'); r.at++, skip(&r)) {
        if (*r.at == '{')
            level++;
        else if (*r.at == '}')
            level--;
        else if (level == 1 && read_dots(&r))
            return true;
    }
    return false;
}

/* The state while the elements of an array are read. */
typedef struct elements {
    const hlo_shape *shape;
    char *data;       /* memory of the next element; NULL if elements are only checked */
    int64_t capacity; /* number of elements that may follow */
    bool loose;       /* elements are in the outermost braces, without inner braces */
    bool elided;      /* `...` was read */
} elements;

static bool read_element(reader *r, elements *e, const char *opened) {
    char unused[2 * sizeof(double)];
    if (!e->capacity--) {
        int64_t count = hlo_shape_count(e->shape);
        return wrong_count(r, opened, count + 1, count);
    }
    if (!store_element(r, e->shape->type, e->data ? e->data : unused)) return false;
    if (e->data) e->data += hlo_types[e->shape->type].bytes;
    return true;
}

/* True if the number at r->at may lack the inner braces of its array. XLA's parser accepts such a
 * number if the array also has a `...`. */
static bool is_loose(reader *r, elements *e) {
    if (e->shape->rank < 2 || *r->at == '{' || hlo_types[e->shape->type].class == HLO_CLASS_COMPLEX)
        return false;
    if (e->loose) return true;
    e->loose = e->elided || dots_follow(*r, 1);
    if (e->loose)
        hlo_text_defer_error(r->text, span(r, r->at, word_end(r)), "expected '{', found '%s'",
                             hlo_text_quote(r->text, span(r, r->at, word_end(r))));
    return e->loose;
}

static bool read_elements(reader *r, elements *e) {
    int64_t found[HLO_LARGEST_RANK] = {0}; /* number of elements found in each open brace */
    const char *opened[HLO_LARGEST_RANK];
    const hlo_shape *shape = e->shape;
    uint32_t level = 0, rank = shape->rank;
    bool first = true; /* no element was read after the open brace yet */
    do {
        if (level) read_commas(r, first);
        skip(r);
        if (r->at == r->end)
            return fail(r, !level ? "a number" : first ? "a number or '}'" : "',' or '}'");
        if (level && *r->at == '}') {
            level--;
            if (found[level] != shape->dims[level])
                return wrong_count(r, opened[level], found[level], shape->dims[level]);
            r->at++;
            first = false;
            continue;
        }
        if (level == 1 && read_dots(r)) {
            if (!first || e->elided)
                hlo_text_defer_error(r->text, span(r, r->at - 3, r->at),
                                     "'...' stands for all values, but other values precede it");
            found[0] = shape->dims[0];
            e->elided = true;
            first = false;
            continue;
        }
        if (level == 1 && is_loose(r, e)) {
            if (!read_element(r, e, opened[0])) return false;
            first = false;
            continue;
        }
        if (level && found[level - 1]++ == shape->dims[level - 1])
            return wrong_count(r, opened[level - 1], found[level - 1], shape->dims[level - 1]);
        if (level < rank) {
            opened[level] = r->at;
            found[level] = 0;
            if (!next_is(r, '{')) return fail(r, "'{'");
            level++;
            first = true;
        } else {
            if (!read_element(r, e, rank ? opened[0] : r->at)) return false;
            first = false;
        }
    } while (level);
    return true;
}

static const hlo_literal *read_literal(reader *r, const hlo_shape *shape) {
    skip(r);
    if (shape->type == HLO_TYPE_TUPLE) {
        hlo_literal *literal = hlo_literal_tuple(r->text->module, shape);
        if (!next_is(r, '(')) return fail(r, "'('"), NULL;
        for (uint32_t i = 0; i < shape->rank; i++) {
            if (i && shape->elements[i]->type == HLO_TYPE_TUPLE)
                next_is(r, ',');
            else if (i)
                read_commas(r, false);
            if (i && r->at < r->end && *r->at == ')') return fail(r, "','"), NULL;
            literal->elements[i] = read_literal(r, shape->elements[i]);
            if (!literal->elements[i]) return NULL;
        }
        if (!next_is(r, ')')) return fail(r, "')'"), NULL;
        return literal;
    }
    if (!hlo_shape_is_array(shape)) {
        hlo_text_error(r->text, span(r, r->at, r->at + 1), "constants of type %s are not supported",
                       hlo_types[shape->type].name);
        return NULL;
    }
    if (shape->rank) {
        const char *from = r->at;
        if (next_is(r, '{')) {
            skip(r);
            if (read_dots(r) && next_is(r, '}')) return hlo_literal_elided(r->text->module, shape);
        }
        r->at = from;
    }
    enum { MAX_FILLED = 1 << 20 };
    int64_t count = hlo_shape_count(shape);
    bool unbraced = shape->rank && count && hlo_types[shape->type].class != HLO_CLASS_COMPLEX &&
                    r->at < r->end && *r->at && strchr("-0123456789nitf", *r->at);
    bool large = count < 0 || (count > (unbraced ? MAX_FILLED : 0) && count / 2 > r->end - r->at);
    if (large && !dots_follow(*r, 0)) {
        hlo_text_error(r->text, span(r, r->at, r->at + 1),
                       "the constant's shape has more elements than the text that follows");
        return NULL;
    }
    hlo_literal *literal = large ? NULL : hlo_literal_new(r->text->module, shape);
    elements e = {.shape = shape,
                  .data = large ? NULL : literal->data,
                  .capacity = count < 0 ? INT64_MAX : count};
    if (!unbraced) {
        if (!read_elements(r, &e)) return NULL;
        return e.elided ? hlo_literal_elided(r->text->module, shape) : literal;
    }
    /* XLA's parser uses a number without braces as the first element, and 0 for the others. */
    hlo_span at = span(r, r->at, word_end(r));
    if (count > 1)
        hlo_text_warn(r->text, at, "'%s' is the first of %lld elements: the others are 0",
                      hlo_text_quote(r->text, at), (long long)count);
    memset(literal->data, 0, (size_t)count * hlo_types[shape->type].bytes);
    return store_element(r, shape->type, literal->data) ? literal : NULL;
}

/* Returns the shape of the value of a constant: `shape` without dynamic dimensions, buffer type and
 * element width. */
static const hlo_shape *value_shape(hlo_text *text, const hlo_shape *shape) {
    hlo_shape plain = *shape;
    if (shape->type == HLO_TYPE_TUPLE) {
        const hlo_shape **inner = hlo_arena_array(text->scratch, shape->rank, sizeof *inner);
        bool same = true;
        for (uint32_t i = 0; i < shape->rank; i++) {
            inner[i] = value_shape(text, shape->elements[i]);
            same &= inner[i] == shape->elements[i];
        }
        return same ? shape : hlo_shape_tuple(text->module, shape->rank, inner);
    }
    const bool wide = shape->layout && shape->layout->element_bits;
    if (!wide && !shape->dynamic && !shape->buffer) return shape;
    hlo_layout layout;
    if (wide) {
        layout = *shape->layout;
        layout.element_bits = 0;
        plain.layout = &layout;
    }
    plain.dynamic = NULL;
    plain.buffer = false;
    return hlo_shape_intern(text->module, &plain);
}

uint32_t hlo_text_literal(hlo_text *text, uint32_t offset, const hlo_shape *shape,
                          const hlo_literal **out) {
    const char *from = text->source + offset;
    reader r = {.text = text, .at = from, .end = text->source + text->size};
    *out = NULL;
    if (shape)
        *out = read_literal(&r, value_shape(text, shape));
    else
        hlo_text_error(text, span(&r, from, from + 1), "a constant needs a shape before it");
    return *out ? (uint32_t)(r.at - from) : 0;
}

const hlo_literal *hlo_text_tuple_literal(hlo_text *text, size_t from) {
    const hlo_literal **items = (const hlo_literal **)(text->literals.items + from);
    const uint32_t count = (uint32_t)((text->literals.used - from) / sizeof *items);
    const hlo_shape **shapes = hlo_arena_array(text->scratch, count, sizeof *shapes);
    for (uint32_t i = 0; i < count; i++) shapes[i] = items[i]->shape;
    hlo_literal *tuple =
        hlo_literal_tuple(text->module, hlo_shape_tuple(text->module, count, shapes));
    for (uint32_t i = 0; i < count; i++) tuple->elements[i] = items[i];
    text->literals.used = from;
    return tuple;
}
