/* Attributes, shapes and opcodes that were read before, known by their text: a module repeats
 * a few of them on very many instructions. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "grammar/scan/parser.h"
#include "ir/intern.h"

enum { LONGEST = 1 << 9 };

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
static hlo_known_attr *remembered(const hlo_text *text, hlo_span written, uint32_t *out_hash) {
    *out_hash = (uint32_t)XXH3_64bits(text->source + written.offset, written.length);
    return &text->known_attrs[*out_hash % HLO_REMEMBERED];
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
    const hlo_known_attr *known = remembered(text, written, &hash);
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
    hlo_known_attr *place = remembered(text, written, &hash);
    *place = (hlo_known_attr){.at = written, .hash = hash, .attr = attr};
}
