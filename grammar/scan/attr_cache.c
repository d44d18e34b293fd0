/* Attributes, shapes and opcodes that were read before, known by their text: a module repeats
 * a few of them on very many instructions. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "grammar/scan/parser.h"
#include "ir/intern.h"

/* Each slot of a table remembers the last item with its hash. */
enum { REMEMBERED = 1 << 9, LONGEST = 1 << 9, SHAPES = 1 << 9, OPCODES = 1 << 6 };

typedef struct known_attr {
    hlo_span at;
    uint32_t hash;
    hlo_attr attr;
} known_attr;

typedef struct known_shape {
    hlo_span at;
    const hlo_shape *shape; /* NULL: none */
} known_shape;

struct hlo_known {
    known_attr attrs[REMEMBERED];
    known_shape shapes[SHAPES];
    const char *opcodes[OPCODES]; /* interned; NULL: none */
};

struct hlo_known *hlo_attr_cache_new(hlo_arena *scratch) {
    return hlo_arena_zero(scratch, sizeof(struct hlo_known));
}

/* --------------------------------------------------------------------------------------- shapes */

/* Finds the place of the shape at `from`, by its text up to the `]`; NULL when the shape is
 * long, or near the end of the text. */
static known_shape *shape_place(const hlo_text *text, const char *from) {
    enum { WORDS = 3 };
    const uint64_t each = 0x0101010101010101, brackets = each * ']';
    uint64_t hash = 0, word;
    if (text->source + text->size - from < WORDS * (ptrdiff_t)sizeof word) return NULL;
    for (int i = 0; i < WORDS; i++, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        const uint64_t apart = word ^ brackets, found = (apart - each) & ~apart & each << 7;
        if (found) word &= (found & -found) - 1;
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        if (found) return &text->known->shapes[(hash >> 32 ^ hash >> 55) % SHAPES];
    }
    return NULL;
}

/* True if a shape that ends in front of `behind` ends there for certain: no layout follows. */
static bool shape_ends(const char *behind) {
    if (behind[-1] == '}' || *behind == ',' || *behind == ')') return true;
    const char next = *behind == ' ' ? behind[1] : '\0';
    return (next >= 'a' && next <= 'z') || (next == '{' && !hlo_text_begins_layout(behind + 1));
}

const hlo_shape *hlo_shape_cache_find(const hlo_text *text, const char **at) {
    const known_shape *place = shape_place(text, *at);
    if (!place || !place->shape || (size_t)(text->source + text->size - *at) <= place->at.length ||
        memcmp(*at, text->source + place->at.offset, place->at.length) != 0 ||
        !shape_ends(*at + place->at.length))
        return NULL;
    *at += place->at.length;
    return place->shape;
}

void hlo_shape_cache_insert(hlo_text *text, hlo_span at, const hlo_shape *shape) {
    known_shape *place = shape_place(text, text->source + at.offset);
    if (place) *place = (known_shape){at, shape};
}

/* -------------------------------------------------------------------------------------- opcodes */

const char *hlo_text_opcode(hlo_text *text, const char *from, size_t length) {
    const unsigned hash = (unsigned char)from[0] * 5u + (unsigned char)from[length / 2] * 3u +
                          (unsigned char)from[length - 1] + (unsigned)length * 7u;
    const char **place = &text->known->opcodes[hash % OPCODES];
    if (!*place || hlo_intern_length(*place) != length || memcmp(*place, from, length) != 0)
        *place = hlo_intern(text->module, from, length);
    return *place;
}

/* ----------------------------------------------------------------------------------- attributes */

/* Returns the length of `name={...}` up to the first `}`, if it is near, or of `name=` and an
 * integer; 0: it is neither. */
static uint32_t written_length(const hlo_text *text, hlo_span name) {
    const uint32_t left = (uint32_t)text->size - name.offset;
    const char *from = text->source + name.offset, *value = from + name.length + 1, *end = value;
    if (*value == '{') {
        const char *close = memchr(from, '}', left < LONGEST ? left : LONGEST);
        return close ? (uint32_t)(close - from + 1) : 0;
    }
    while ((*end >= '0' && *end <= '9') || *end == '-') end++;
    return end > value && (*end == ',' || *end == '\n') ? (uint32_t)(end - from) : 0;
}

/* Returns the cache slot of an attribute by its text, and the hash of the text. */
static known_attr *remembered(const hlo_text *text, hlo_span written, uint32_t *out_hash) {
    *out_hash = (uint32_t)XXH3_64bits(text->source + written.offset, written.length);
    return &text->known->attrs[*out_hash % REMEMBERED];
}

/* True if the value may continue behind its `}`: at once, or with a bracket or a `T` behind white
 * space. */
static bool may_go_on(const char *behind) {
    if (*behind && !strchr(", \t\r\n})]", *behind)) return true;
    behind = hlo_text_gap(behind);
    return *behind && strchr("{[<(T", *behind);
}

uint32_t hlo_attr_cache_find(const hlo_text *text, hlo_span name, hlo_attr *out) {
    const hlo_span written = {name.offset, text->errors ? 0 : written_length(text, name)};
    if (!written.length) return 0;
    uint32_t hash;
    const known_attr *known = remembered(text, written, &hash);
    const char *source = text->source;
    if (known->hash != hash || known->at.length != written.length ||
        memcmp(source + known->at.offset, source + written.offset, written.length) != 0 ||
        may_go_on(source + written.offset + written.length))
        return 0;
    *out = known->attr;
    return written.length;
}

void hlo_attr_cache_insert(hlo_text *text, hlo_span name, hlo_attr attr) {
    const hlo_span written = {name.offset, written_length(text, name)};
    const hlo_deferred_error *deferred = text->module->deferred;
    /* Attributes that depend on the opcode, that caused a message, or that have braces inside are
     * not cached. */
    if (attr.id == HLO_ATTR_SLICE_SIZES || attr.id == HLO_ATTR_SLICE_SIZE_LISTS || text->errors ||
        (deferred && deferred->offset >= name.offset) ||
        written.offset + written.length != text->end ||
        memchr(text->source + name.offset, '\n', written.length))
        return;
    uint32_t hash;
    known_attr *place = remembered(text, written, &hash);
    *place = (known_attr){.at = written, .hash = hash, .attr = attr};
}
