/* Attributes that were read before, known by their text: modules say the same few things of very
 * many instructions. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "grammar/text.h"

/* The last one of each hash is remembered. */
enum { REMEMBERED = 1 << 9, LONGEST = 1 << 9 };

struct hlo_known {
    hlo_span at;
    uint32_t hash;
    hlo_attr attr;
};

struct hlo_known *hlo_text_known_new(hlo_arena *scratch) {
    return hlo_arena_zero(scratch, REMEMBERED * sizeof(struct hlo_known));
}

/* The length of `name={...}` up to the first `}`, when that is near, or of `name=` and an integer;
 * 0 when it is neither. */
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

/* Its place. */
static struct hlo_known *remembered(const hlo_text *text, hlo_span written, uint32_t *out_hash) {
    *out_hash = (uint32_t)XXH3_64bits(text->source + written.offset, written.length);
    return &text->known[*out_hash % REMEMBERED];
}

/* Some values go on behind their `}`: at once, or with another bracket or a `T` behind a space. */
static bool may_go_on(const char *behind) {
    if (*behind && !strchr(", \t\r\n})]", *behind)) return true;
    behind = hlo_text_gap(behind);
    return *behind && strchr("{[<(T", *behind);
}

uint32_t hlo_text_known(const hlo_text *text, hlo_span name, hlo_attr *out) {
    const hlo_span written = {name.offset, text->errors ? 0 : written_length(text, name)};
    if (!written.length) return 0;
    uint32_t hash;
    const struct hlo_known *known = remembered(text, written, &hash);
    const char *source = text->source;
    if (known->hash != hash || known->at.length != written.length ||
        memcmp(source + known->at.offset, source + written.offset, written.length) != 0 ||
        may_go_on(source + written.offset + written.length))
        return 0;
    *out = known->attr;
    return written.length;
}

void hlo_text_learn(hlo_text *text, hlo_span name, hlo_attr attr) {
    const hlo_span written = {name.offset, written_length(text, name)};
    const hlo_doubt *doubt = text->module->doubts;
    /* What the text means depends on the opcode, or was said something about, or has braces inside.
     */
    if (attr.id == HLO_ATTR_SLICE_SIZES || attr.id == HLO_ATTR_SLICE_SIZE_LISTS || text->errors ||
        (doubt && doubt->offset >= name.offset) || written.offset + written.length != text->end ||
        memchr(text->source + name.offset, '\n', written.length))
        return;
    uint32_t hash;
    struct hlo_known *place = remembered(text, written, &hash);
    *place = (struct hlo_known){.at = written, .hash = hash, .attr = attr};
}
