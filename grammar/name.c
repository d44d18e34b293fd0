/* Names behind `%`, and operands that are names and nothing else, which nearly all are: read in one
 * go, as an integer list is. What else an operand may be is left to the grammar. */
#include <string.h>

#include "grammar/text.h"

static bool in_name(char c) {
    /* A-Z a-z 0-9 _ . -, a bit each */
    static const uint64_t bits[] = {0x03ff600000000000, 0x07fffffe87fffffe};
    const unsigned char u = (unsigned char)c;
    return u < 128 && bits[u >> 6] >> (u & 63) & 1;
}

static bool begins_name(char c) {
    return in_name(c) && c > '9';
}

uint32_t hlo_text_name(hlo_text *text, uint32_t offset, const char **out, uint32_t *out_behind) {
    const char *from = text->source + offset, *end = from + 1;
    while (in_name(*end)) end++;
    *out = hlo_intern(text->module, from + 1, (size_t)(end - from - 1));
    const char *behind = hlo_text_gap(end);
    *out_behind = 0;
    if (*behind == '=') {
        behind = hlo_text_gap(behind + 1);
        *out_behind = (uint32_t)(behind - from);
    }
    return (uint32_t)(end - from);
}

typedef struct operand {
    const char *from, *end; /* `%` included */
} operand;

/* Whether a name stands at `at`, and a comma or the end of the list behind it: *out_behind. */
static bool read_name(const char *at, operand *out, const char **out_behind) {
    out->from = hlo_text_gap(at);
    out->end = out->from + (*out->from == '%');
    if (!begins_name(*out->end)) return false;
    while (in_name(*out->end)) out->end++;
    *out_behind = hlo_text_gap(out->end);
    return **out_behind == ',' || **out_behind == ')';
}

static void take(hlo_text *text, operand n) {
    const char *bare = n.from + (*n.from == '%');
    const hlo_span at = {(uint32_t)(n.from - text->source), (uint32_t)(n.end - n.from)};
    hlo_text_operand(text, at, NULL, hlo_intern(text->module, bare, (size_t)(n.end - bare)));
}

void hlo_text_operand_names(hlo_text *text) {
    const char *behind;
    operand now, next;
    if (!read_name(hlo_text_scan_place(text), &now, &behind)) return;
    /* A name is taken when it is known that the grammar need not read the comma behind it. */
    while (*behind == ',' && read_name(behind + 1, &next, &behind)) {
        take(text, now);
        now = next;
    }
    if (*behind == ')') {
        take(text, now);
        now.from = behind;
    }
    hlo_text_scan_from(text, now.from);
}

bool hlo_text_reserved(hlo_text *text, hlo_span at, const char *name, bool types_too) {
    static const char *const words[] = {
        "inf",        "nan",           "true",          "false",      "manual",
        "replicated", "maximal",       "unknown",       "unreduced",  "ROOT",
        "ENTRY",      "HloModule",     "shard_as",      "shard_like", "last_tile_dim_replicate",
        "FileNames",  "FunctionNames", "FileLocations", "StackFrames"};
    size_t length = hlo_intern_length(name);
    if (length > sizeof "last_tile_dim_replicate" - 1 || memchr(name, '.', length)) return false;
    const char *end = text->source + at.offset + at.length;
    bool plain = text->source[at.offset] != '%' && end[-1] != ':' && end[0] != ':';
    hlo_type type = hlo_type_find(name, length);
    bool reserved = type != HLO_TYPE_INVALID && type != HLO_TYPE_TUPLE && (plain || types_too);
    for (size_t i = 0; plain && !reserved && i < sizeof words / sizeof *words; i++)
        reserved = *name == *words[i] && strcmp(name, words[i]) == 0;
    if (reserved) hlo_text_error(text, at, "'%s' is a keyword, not a name", name);
    return reserved;
}
