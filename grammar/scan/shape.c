/* SPDX-License-Identifier: Apache-2.0 */
/* Reads shapes and their layouts. A shape with its layout is one token, so that a cache can return
 * the shape by the token's text. */
#include <string.h>

#include "grammar/scan/parser.h"
#include "ir/intern.h"
#include "ir/text/suggest.h"

/* The state while a shape is read. */
typedef struct shape_reader {
    hlo_text *text;
    const char *at, *end;
    uint32_t rank;
    int64_t dims[HLO_LARGEST_RANK], order[HLO_LARGEST_RANK];
    bool dynamic[HLO_LARGEST_RANK], any_dynamic;
    hlo_layout layout;
    char *rest; /* the part of hlo_layout.rest read so far */
    size_t rest_length;
} shape_reader;

static hlo_span span(const shape_reader *r, const char *from, const char *to) {
    return (hlo_span){(uint32_t)(from - r->text->source), (uint32_t)(to > from ? to - from : 1)};
}

static char next(shape_reader *r) {
    r->at = hlo_text_gap(r->at);
    return *r->at;
}

static bool next_is(shape_reader *r, char c) {
    if (next(r) != c) return false;
    r->at++;
    return true;
}

/* Common names of types, including those of numpy, torch and MLIR. */
static const struct {
    const char *word, *type;
} spellings[] = {
    {"fp8", "f8e4m3fn"}, {"fp4", "f4e2m1fn"},  {"float8", "f8e4m3fn"}, {"f8", "f8e4m3fn"},
    {"fp16", "f16"},     {"fp32", "f32"},      {"fp64", "f64"},        {"float16", "f16"},
    {"float32", "f32"},  {"float64", "f64"},   {"bfloat16", "bf16"},   {"half", "f16"},
    {"float", "f32"},    {"double", "f64"},    {"int4", "s4"},         {"int8", "s8"},
    {"int16", "s16"},    {"int32", "s32"},     {"int64", "s64"},       {"uint4", "u4"},
    {"uint8", "u8"},     {"uint16", "u16"},    {"uint32", "u32"},      {"uint64", "u64"},
    {"i4", "s4"},        {"i8", "s8"},         {"i16", "s16"},         {"i32", "s32"},
    {"i64", "s64"},      {"complex64", "c64"}, {"complex128", "c128"}, {"bool", "pred"},
    {"i1", "pred"},
};

static void unknown_type(hlo_text *text, hlo_span at) {
    enum { SPELLINGS = sizeof spellings / sizeof *spellings };
    const char *name = hlo_text_quote(text, at);
    hlo_suggestion s = hlo_suggest(name);
    for (int type = 0; type < HLO_TYPE_COUNT; type++)
        if (type != HLO_TYPE_TUPLE) hlo_suggest_offer(&s, hlo_types[type].name);
    for (size_t i = 0; i < SPELLINGS; i++) hlo_suggest_offer(&s, spellings[i].word);
    for (size_t i = 0; i < SPELLINGS; i++)
        if (s.best == spellings[i].word) s.best = spellings[i].type;
    hlo_text_error(text, at, "unknown element type '%s'%s", name, hlo_suggest_meant(&s));
}

/* ----------------------------------------------------------------------------------- dimensions */

static bool read_dims(shape_reader *r) {
    if (next(r) != ']') do {
            next(r);
            if (r->rank == HLO_LARGEST_RANK) {
                hlo_text_error(r->text, span(r, r->at, r->at), "a shape has at most %d dimensions",
                               HLO_LARGEST_RANK);
                return false;
            }
            int64_t *dim = &r->dims[r->rank];
            bool bounded = r->at[0] == '<' && r->at[1] == '=';
            if (bounded) r->at += 2;
            if (!bounded && next_is(r, '?')) {
                *dim = -1;
            } else {
                next(r);
                const char *from = r->at;
                if (!hlo_text_read_int(r->text, &r->at, dim)) return false;
                if (*dim < 0) {
                    hlo_text_error(r->text, span(r, from, r->at),
                                   "a dimension must not be negative");
                    return false;
                }
            }
            r->dynamic[r->rank++] = bounded;
            r->any_dynamic |= bounded;
        } while (next_is(r, ','));
    return hlo_text_expect(r->text, &r->at, ']');
}

/* -------------------------------------------------------------------------------------- layouts */

static bool read_order(shape_reader *r) {
    const char *open = r->at;
    bool seen[HLO_LARGEST_RANK] = {false};
    uint32_t count = 0;
    if (next(r) != ':') do {
            int64_t dim;
            next(r);
            const char *from = r->at;
            if (!hlo_text_read_int(r->text, &r->at, &dim)) return false;
            bool there = dim >= 0 && dim < r->rank;
            if (count >= r->rank || !there)
                (count >= r->rank ? hlo_text_error : hlo_text_defer_error)(
                    r->text, span(r, from, r->at), "the shape has no dimension %lld",
                    (long long)dim);
            else if (seen[dim])
                hlo_text_defer_error(r->text, span(r, from, r->at),
                                     "dimension %lld is in the layout twice", (long long)dim);
            if (count >= r->rank) return false;
            if (there) seen[dim] = true;
            r->order[count++] = dim;
        } while (next_is(r, ','));
    if (count == r->rank || (*r->at != ':' && *r->at != '}')) return true;
    hlo_text_error(r->text, span(r, open, open), "the layout has %u dimension%s, the shape has %u",
                   count, count == 1 ? "" : "s", r->rank);
    return false;
}

static void keep(shape_reader *r, const char *from, size_t length) {
    memcpy(r->rest + r->rest_length, from, length);
    r->rest_length += length;
}

typedef bool read_item(shape_reader *r);

/* A property after the `:` of a layout. */
typedef struct property {
    const char *name;
    read_item *item; /* NULL for a number that has a field in the layout */
    bool lists;      /* the property may have several lists */
    bool empty;      /* a list may be empty */
    bool commas;     /* a list may have several items */
} property;

static bool is_later(const shape_reader *r, const property *p);

/* Reports a list that is ended by the `}` of the layout or by a later property, as XLA's parser
 * does. Returns true after such an error. */
static bool ends_early(shape_reader *r, const property *p, const char *open) {
    if (next(r) != '}' && !is_later(r, p)) return false;
    hlo_text_defer_error(r->text, span(r, open, open), "this '%c' is never closed", *open);
    return true;
}

/* Reports a property that ends before its list, as XLA's parser does. Returns true after such an
 * error. */
static bool lacks_list(shape_reader *r, const property *p) {
    if (next(r) != '}' && !is_later(r, p)) return false;
    hlo_text_defer_error(r->text, span(r, r->at, r->at), "expected '(', found '%c'", *r->at);
    return true;
}

static void keep_int(shape_reader *r, int64_t value) {
    char text[24];
    keep(r, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

static bool read_int(shape_reader *r, int64_t least, int64_t *out) {
    next(r);
    const char *from = r->at;
    if (!hlo_text_read_int(r->text, &r->at, out)) return false;
    if (*out >= least) return true;
    hlo_text_error(r->text, span(r, from, r->at), "%lld is less than the minimum of %lld",
                   (long long)*out, (long long)least);
    return false;
}

static bool read_kept_int(shape_reader *r, int64_t least) {
    int64_t value;
    if (!read_int(r, least, &value)) return false;
    keep_int(r, value);
    return true;
}

static bool read_tile_dim(shape_reader *r) {
    if (next_is(r, '*')) {
        keep(r, "*", 1);
        return true;
    }
    return read_kept_int(r, 0);
}

static bool read_level(shape_reader *r) {
    char level = next(r);
    if (!level || !strchr("DCS", level)) {
        hlo_text_error(r->text, span(r, r->at, r->at),
                       "expected 'D', 'C' or 'S', the level of a dimension");
        return false;
    }
    keep(r, r->at++, 1);
    if (next_is(r, '+')) keep(r, "+", 1);
    if (next_is(r, '~')) keep(r, "~", 1);
    return true;
}

static bool read_type(shape_reader *r) {
    next(r);
    const char *from = r->at;
    while ((*r->at >= 'a' && *r->at <= 'z') || (*r->at >= '0' && *r->at <= '9')) r->at++;
    hlo_type type = hlo_type_find(from, (size_t)(r->at - from));
    hlo_span where = span(r, from, r->at);
    if (type == HLO_TYPE_INVALID) {
        unknown_type(r->text, where);
        return false;
    }
    if (hlo_types[type].class != HLO_CLASS_UNSIGNED)
        hlo_text_defer_error(r->text, where, "%s is not an unsigned integer type",
                             hlo_types[type].name);
    keep(r, from, (size_t)(r->at - from));
    return true;
}

/* Reads `1:2` or, after a comma, only the `2`. */
static bool read_split(shape_reader *r) {
    bool first = r->rest[r->rest_length - 1] == '(';
    if (!read_kept_int(r, INT64_MIN)) return false;
    if (!first) return true;
    keep(r, ":", 1);
    if (next(r) == '}') return true;
    if (!hlo_text_expect(r->text, &r->at, ':')) return false;
    return next(r) == ')' || *r->at == '}' || read_kept_int(r, INT64_MIN);
}

/* Reads `(item,item)`. If the layout ends before the list or within it, reports an error and
 * continues as if the list were complete. */
static bool read_list(shape_reader *r, const property *p) {
    next(r);
    const char *open = r->at;
    size_t begin = r->rest_length + 1;
    keep(r, "(", 1);
    if (!lacks_list(r, p)) {
        if (!hlo_text_expect(r->text, &r->at, '(')) return false;
        bool more = next(r) != ')' || !p->empty, early = ends_early(r, p, open);
        while (more && !early) {
            if (!p->item(r)) return false;
            more = p->commas && next_is(r, ',');
            early = ends_early(r, p, open);
            if (more && !early) keep(r, ",", 1);
        }
        if (!early && !hlo_text_expect(r->text, &r->at, ')')) return false;
    }
    keep(r, ")", 1);
    /* An empty list has no effect, except for a tile. */
    if (r->rest_length == begin + 1 && p->item != read_tile_dim) r->rest_length = begin - 1;
    return true;
}

/* Reads the number of E(n) or S(n), which is not a part of hlo_layout.rest. */
static bool read_number(shape_reader *r, const property *p, int64_t *out) {
    if (lacks_list(r, p)) return true;
    const char *open = r->at;
    if (!hlo_text_expect(r->text, &r->at, '(')) return false;
    if (ends_early(r, p, open)) return true;
    next(r);
    return hlo_text_read_int(r->text, &r->at, out) &&
           (ends_early(r, p, open) || hlo_text_expect(r->text, &r->at, ')'));
}

/* Reads the tail padding. Padding to 1 element has no effect. */
static bool read_length(shape_reader *r) {
    int64_t elements;
    if (!read_int(r, 1, &elements)) return false;
    if (elements > 1) keep_int(r, elements);
    return true;
}

/* Reads the size of the prefix of a dynamic shape. 0 bytes have no effect. */
static bool read_prefix(shape_reader *r) {
    int64_t bytes;
    if (!read_int(r, INT64_MIN, &bytes)) return false;
    if (bytes > 0) keep_int(r, bytes);
    return true;
}

/* The properties of a layout, in the order in which they are written. */
static const property properties[] = {
    {"D", read_level, false, true, true},    {"T", read_tile_dim, true, true, true},
    {"L", read_length, false, false, false}, {"#", read_type, false, true, false},
    {"*", read_type, false, true, false},    {"E", NULL, false, false, false},
    {"S", NULL, false, false, false},        {"SC", read_split, true, false, true},
    {"M", read_prefix, false, false, false},
};
enum { PROPERTIES = sizeof properties / sizeof *properties };

static bool is_named(const char *at, const char *name) {
    size_t length = strlen(name);
    bool letter = *name >= 'A' && *name <= 'Z';
    return strncmp(at, name, length) == 0 && !(letter && at[length] >= 'A' && at[length] <= 'Z');
}

/* True if a property begins here that may follow `p`. The `S` of a level and the `*` of a tile do
 * not begin a property. */
static bool is_later(const shape_reader *r, const property *p) {
    if (p->item == read_level || (p->item == read_tile_dim && *r->at == '*')) return false;
    for (const property *q = p + 1; q < properties + PROPERTIES; q++)
        if (is_named(r->at, q->name)) return true;
    return false;
}

static bool read_properties(shape_reader *r) {
    /* With the missing parts added, the text is at most twice as long. */
    r->rest = hlo_arena_alloc(r->text->scratch, 2 * (size_t)(r->end - r->at) + 16);
    for (const property *p = properties; p < properties + PROPERTIES; p++) {
        next(r);
        if (!is_named(r->at, p->name)) continue;
        const size_t begin = r->rest_length, name = strlen(p->name);
        r->at += name;
        if (p->item) {
            keep(r, p->name, name);
            do {
                if (!read_list(r, p)) return false;
            } while (p->lists && next(r) == '(');
            if (r->rest_length == begin + name) r->rest_length = begin;
        } else if (*p->name == 'E') {
            if (!read_number(r, p, &r->layout.element_bits)) return false;
        } else { /* the memory space, of which XLA's parser uses the lower 8 bits */
            int64_t space = 0;
            const char *from = r->at;
            if (!read_number(r, p, &space)) return false;
            r->layout.memory_space = (int8_t)space;
            if (space != (int8_t)space)
                hlo_text_defer_error(
                    r->text, span(r, from, r->at),
                    "the memory space %lld does not fit in 8 bits and is read as %d",
                    (long long)space, (int8_t)space);
        }
    }
    if (r->rest_length) r->layout.rest = hlo_intern(r->text->module, r->rest, r->rest_length);
    if (next(r) == '}') return true;
    for (const property *p = properties; p < properties + PROPERTIES; p++)
        if (is_named(r->at, p->name)) {
            hlo_text_error(r->text, span(r, r->at, r->at + strlen(p->name)),
                           "%s(..) is repeated in this layout, or out of order", p->name);
            return false;
        }
    return hlo_text_expect(r->text, &r->at, '}');
}

/* --------------------------------------------------------------------------------------- shapes */

static const hlo_shape *read_shape(hlo_text *text, hlo_span at) {
    shape_reader r = {.text = text, .at = text->source + at.offset};
    r.end = r.at + at.length;
    size_t name = strcspn(r.at, "[ \t\r\n/");
    hlo_type type = hlo_type_find(r.at, name);
    if (type == HLO_TYPE_INVALID || type == HLO_TYPE_TUPLE) {
        unknown_type(text, (hlo_span){at.offset, (uint32_t)name});
        return NULL;
    }
    r.at += name;
    if (!hlo_text_expect(text, &r.at, '[') || !read_dims(&r)) return NULL;
    r.layout.minor_to_major = r.order;
    bool given = hlo_text_gap(r.at) < r.end;
    if (given) {
        next(&r);
        r.at++;
        if (!read_order(&r)) return NULL;
        if (next_is(&r, ':') && !read_properties(&r)) return NULL;
        if (!hlo_text_expect(r.text, &r.at, '}')) return NULL;
    } else {
        for (uint32_t i = 0; i < r.rank; i++) r.order[i] = r.rank - 1 - i;
    }
    if (!hlo_types[type].bits && (r.rank || given)) {
        hlo_text_error(text, at, "%s must not have dimensions or a layout", hlo_types[type].name);
        return NULL;
    }
    const hlo_shape shape = {
        .type = type,
        .rank = r.rank,
        .dims = r.dims,
        .dynamic = r.any_dynamic ? r.dynamic : NULL,
        .layout = given || r.rank ? &r.layout : NULL,
    };
    return hlo_shape_intern(text->module, &shape);
}

static bool begins_layout(const char *at) {
    if (*at != '{') return false;
    at = hlo_text_gap(at + 1);
    return *at == ':' || *at == '-' || (*at >= '0' && *at <= '9');
}

/* Returns the slot for the shape at `from`, by its text up to the `]`; NULL for a long shape, or
 * near the end of the text. */
static hlo_known_shape *shape_place(const hlo_text *text, const char *from) {
    enum { WORDS = 3 };
    const uint64_t each = 0x0101010101010101, brackets = each * ']';
    uint64_t hash = 0, word;
    if (text->source + text->size - from < WORDS * (ptrdiff_t)sizeof word) return NULL;
    for (int i = 0; i < WORDS; i++, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        const uint64_t apart = word ^ brackets, found = (apart - each) & ~apart & each << 7;
        if (found) word &= (found & -found) - 1;
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        if (found) return &text->known_shapes[(hash >> 32 ^ hash >> 55) % HLO_REMEMBERED];
    }
    return NULL;
}

uint32_t hlo_text_shape(hlo_text *text, hlo_span head, const hlo_shape **out) {
    *out = NULL;
    if (text->skipping) return head.length;
    const char *from = text->source + head.offset;
    hlo_known_shape *place = shape_place(text, from);
    if (place && place->shape && (size_t)(text->source + text->size - from) > place->at.length &&
        memcmp(from, text->source + place->at.offset, place->at.length) == 0) {
        /* Without a layout after it, the text denotes the known shape. */
        const char *after = from + place->at.length;
        const char next = *after == ' ' ? after[1] : '\0';
        if (after[-1] == '}' || *after == ',' || *after == ')' || (next >= 'a' && next <= 'z') ||
            (next == '{' && !begins_layout(after + 1))) {
            *out = place->shape;
            return place->at.length;
        }
    }
    const char *end = hlo_text_stop(from + head.length, "]{}()%/");
    if (*end != ']') {
        const hlo_span bracket = {head.offset + head.length - 1, 1};
        hlo_text_error(text, bracket, "this '[' is never closed");
        return head.length;
    }
    const char *brace = hlo_text_gap(++end);
    if (begins_layout(brace)) {
        const char *close = hlo_text_stop(brace + 1, "}{/");
        if (*close == '}') end = close + 1;
    }
    const hlo_span all = {head.offset, (uint32_t)(end - from)};
    const char *written = hlo_intern(text->module, from, all.length);
    hlo_string_cache *cache = hlo_intern_cache(text->module, written);
    if (!cache->shape) cache->shape = read_shape(text, all);
    *out = cache->shape;
    if (*out && place) *place = (hlo_known_shape){all, *out};
    return all.length;
}

const hlo_shape *hlo_text_buffer(hlo_text *text, hlo_span at, const hlo_shape *shape) {
    if (shape->buffer || !hlo_shape_is_array(shape)) {
        hlo_text_error(text, at, "a buffer must be of an array type");
        return shape;
    }
    hlo_shape buffer = *shape;
    buffer.buffer = true;
    return hlo_shape_intern(text->module, &buffer);
}

const hlo_shape *hlo_text_tuple(hlo_text *text, size_t from) {
    const hlo_shape **elements = (const hlo_shape **)(text->shapes.items + from);
    uint32_t count = (uint32_t)((text->shapes.used - from) / sizeof *elements);
    const hlo_shape *tuple =
        hlo_shape_tuple(text->module, count, (const hlo_shape *const *)elements);
    text->shapes.used = from;
    return tuple;
}

bool hlo_text_check_tuple(hlo_text *text, hlo_span at, const hlo_shape **shape) {
    if ((*shape)->depth > HLO_DEEPEST_SHAPE)
        hlo_text_error(text, at, "nested too deeply: a shape can have at most %d nested tuples",
                       HLO_DEEPEST_SHAPE);
    else if ((*shape)->size > HLO_LARGEST_SHAPE)
        hlo_text_error(text, at, "too large: a shape can have at most %d arrays and tuples",
                       HLO_LARGEST_SHAPE);
    else
        return true;
    *shape = hlo_shape_tuple(text->module, 0, NULL);
    return false;
}

const hlo_shapes *hlo_text_shapes(hlo_text *text, size_t from) {
    size_t size = text->shapes.used - from;
    hlo_shapes *shapes = hlo_arena_alloc(text->module->arena, sizeof *shapes + size);
    shapes->count = (uint32_t)(size / sizeof *shapes->v);
    if (size) memcpy(shapes->v, text->shapes.items + from, size);
    text->shapes.used = from;
    return shapes;
}
