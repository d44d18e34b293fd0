/* Interned strings and the names in use: one entry holds both. */
#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ir/intern.h"
#include "ir/ir.h"

typedef struct entry {
    hlo_instr *meant;
    uint32_t scope; /* of `meant` */
    uint32_t length : 30;
    uint32_t taken : 2; /* a bit for each hlo_namespace */
    hlo_memo *memo;     /* NULL: not yet asked for */
    char text[];
} entry;

/* The hash stands beside the entry, so that probing does not touch the entries passed by. */
typedef struct slot {
    uint64_t hash;
    entry *entry; /* NULL: free */
} slot;

struct hlo_strings {
    slot *slots; /* open addressing, linear probing; outside the arena, so that it can be freed */
    size_t mask, count;
    hlo_pool entries;
};

enum { FIRST_SLOTS = 256, LONGEST = 1 << 30 };

static entry *entry_of(const char *interned) {
    return (entry *)(interned - offsetof(entry, text));
}

static slot *new_slots(hlo_arena *arena, size_t count) {
    slot *slots = hlo_memory_new(count * sizeof *slots);
    if (!slots) hlo_arena_exhausted(arena);
    return memset(slots, 0, count * sizeof *slots);
}

struct hlo_strings *hlo_strings_new(hlo_arena *arena) {
    struct hlo_strings *strings = hlo_arena_zero(arena, sizeof *strings);
    strings->slots = new_slots(arena, FIRST_SLOTS);
    strings->mask = FIRST_SLOTS - 1;
    return strings;
}

void hlo_strings_free(struct hlo_strings *strings) {
    if (strings) free(strings->slots);
}

static void grow(hlo_arena *arena, struct hlo_strings *strings) {
    size_t mask = strings->mask * 2 + 1;
    slot *slots = new_slots(arena, mask + 1);
    for (size_t i = 0; i <= strings->mask; i++) {
        slot s = strings->slots[i];
        if (!s.entry) continue;
        size_t at = s.hash & mask;
        while (slots[at].entry) at = (at + 1) & mask;
        slots[at] = s;
    }
    free(strings->slots);
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
    if (length >= LONGEST) hlo_arena_exhausted(module->arena);
    entry *e = hlo_pool_alloc(module->arena, &strings->entries, sizeof *e + length + 1);
    *e = (entry){.length = (uint32_t)length & (LONGEST - 1)};
    memcpy(e->text, bytes, length);
    e->text[length] = '\0';
    strings->slots[at] = (slot){hash, e};
    if (++strings->count * 4 > strings->mask * 3) grow(module->arena, strings);
    return e->text;
}

const char *hlo_intern_string(hlo_module *module, const char *text) {
    return hlo_intern(module, text, strlen(text));
}

size_t hlo_intern_length(const char *interned) {
    return entry_of(interned)->length;
}

hlo_meaning hlo_intern_meaning(const char *interned) {
    const entry *e = entry_of(interned);
    return (hlo_meaning){e->meant, e->scope};
}

void hlo_intern_set_meaning(const char *interned, hlo_meaning meaning) {
    entry *e = entry_of(interned);
    e->meant = meaning.instr;
    e->scope = meaning.scope;
}

hlo_memo *hlo_intern_memo(hlo_module *module, const char *interned) {
    entry *e = entry_of(interned);
    if (!e->memo) e->memo = hlo_arena_zero(module->arena, sizeof *e->memo);
    return e->memo;
}

/* False when something of that kind is called so already. */
static bool take(const char *interned, hlo_namespace space) {
    entry *e = entry_of(interned);
    const uint32_t bit = 1u << space;
    if (e->taken & bit) return false;
    e->taken |= bit & 3;
    return true;
}

/* The length of `name` without a `.N` ending. */
static size_t stem_length(const char *name) {
    size_t length = strlen(name), end = length;
    while (end > 1 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    return end < length && end > 1 && name[end - 1] == '.' ? end - 1 : length;
}

const char *hlo_unique_name(hlo_module *module, hlo_namespace space, const char *interned) {
    if (take(interned, space)) return interned;
    enum { SUFFIX = 12, FEW = 256 }; /* `.`, ten digits, NUL */
    const size_t length = stem_length(interned);
    hlo_memo *stem = hlo_intern_memo(module, hlo_intern(module, interned, length));
    char few[FEW], *text = few;
    if (length > FEW - SUFFIX) text = hlo_arena_alloc(module->arena, length + SUFFIX);
    memcpy(text, interned, length);
    for (;;) {
        const int more = snprintf(text + length, SUFFIX, ".%u", ++stem->suffix);
        const char *candidate = hlo_intern(module, text, length + (size_t)more);
        if (take(candidate, space)) return candidate;
    }
}
