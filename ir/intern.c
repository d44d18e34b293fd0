/* Interned strings and the names in use: one entry holds both. */
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ir/intern.h"
#include "ir/ir.h"

typedef struct entry {
    uint32_t length;
    uint32_t suffix; /* the next N to try for `name.N`; 0: not yet asked for */
    bool taken[2];   /* by hlo_namespace */
    hlo_memo memo;
    char text[];
} entry;

/* The hash stands beside the entry, so that probing does not touch the entries passed by. */
typedef struct slot {
    uint64_t hash;
    entry *entry; /* NULL: free */
} slot;

struct hlo_strings {
    slot *slots; /* open addressing, linear probing */
    size_t mask, count;
};

static entry *entry_of(const char *interned) {
    return (entry *)(interned - offsetof(entry, text));
}

struct hlo_strings *hlo_strings_new(hlo_arena *arena) {
    struct hlo_strings *strings = hlo_arena_zero(arena, sizeof *strings);
    size_t slots = 256;
    strings->slots = hlo_arena_zero(arena, slots * sizeof *strings->slots);
    strings->mask = slots - 1;
    return strings;
}

static void grow(hlo_arena *arena, struct hlo_strings *strings) {
    size_t mask = strings->mask * 2 + 1;
    slot *slots = hlo_arena_zero(arena, (mask + 1) * sizeof *slots);
    for (size_t i = 0; i <= strings->mask; i++) {
        slot s = strings->slots[i];
        if (!s.entry) continue;
        size_t at = s.hash & mask;
        while (slots[at].entry) at = (at + 1) & mask;
        slots[at] = s;
    }
    strings->slots = slots;
    strings->mask = mask;
}

const char *hlo_intern(hlo_module *module, const char *bytes, size_t length) {
    struct hlo_strings *strings = module->strings;
    uint64_t hash = XXH3_64bits(bytes, length);
    size_t at = hash & strings->mask;
    for (const slot *s; (s = &strings->slots[at])->entry; at = (at + 1) & strings->mask)
        if (s->hash == hash && s->entry->length == length &&
            memcmp(s->entry->text, bytes, length) == 0)
            return s->entry->text;
    entry *e = hlo_arena_zero(module->arena, sizeof *e + length + 1);
    e->length = (uint32_t)length;
    memcpy(e->text, bytes, length);
    strings->slots[at] = (slot){hash, e};
    if (++strings->count * 2 > strings->mask) grow(module->arena, strings);
    return e->text;
}

const char *hlo_intern_string(hlo_module *module, const char *text) {
    return hlo_intern(module, text, strlen(text));
}

size_t hlo_intern_length(const char *interned) {
    return entry_of(interned)->length;
}

hlo_memo *hlo_intern_memo(const char *interned) {
    return &entry_of(interned)->memo;
}

/* The length of `name` without a `.N` ending. */
static size_t stem_length(const char *name) {
    size_t length = strlen(name), end = length;
    while (end > 1 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    return end < length && end > 1 && name[end - 1] == '.' ? end - 1 : length;
}

const char *hlo_unique_name(hlo_module *module, hlo_namespace space, const char *interned) {
    if (!entry_of(interned)->taken[space]) {
        entry_of(interned)->taken[space] = true;
        return interned;
    }
    const char *stem = hlo_intern(module, interned, stem_length(interned));
    for (;;) {
        uint32_t number = ++entry_of(stem)->suffix;
        char *text = hlo_arena_format(module->arena, "%s.%u", stem, number);
        const char *candidate = hlo_intern_string(module, text);
        if (!entry_of(candidate)->taken[space]) {
            entry_of(candidate)->taken[space] = true;
            return candidate;
        }
    }
}
