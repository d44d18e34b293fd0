/* SPDX-License-Identifier: Apache-2.0 */
/* The table of interned strings and used names. An entry contains both. */
#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/memory.h"

/* The binding and the cache of a string. Most strings are only the name of one instruction and have
 * no cache. */
typedef struct cached {
    hlo_instruction *bound;
    hlo_string_cache cache;
} cached;

typedef struct entry {
    union {
        hlo_instruction *bound;
        cached *cached;
    };
    uint32_t scope : 31; /* scope of the binding */
    uint32_t has_cache : 1;
    uint32_t length : 30;
    uint32_t taken : 2; /* one bit per hlo_namespace */
    char text[];
} entry;

/* A slot stores the hash, so that probing skips entries without reading them. It stores the number
 * of the entry instead of a pointer, which is twice as large, because a table of many names exceeds
 * the CPU's cache. */
typedef struct slot {
    uint32_t hash;
    uint32_t entry; /* see entry_at(); 0: free */
} slot;

/* Entries are allocated in chunks; a large entry has a separate chunk. The number of an entry
 * combines the number of the chunk and the entry's offset in the chunk, in units of UNIT bytes. */
enum { UNIT = 8, CHUNK_UNITS = 1 << 10, CHUNK = UNIT * CHUNK_UNITS, LARGE = CHUNK / 4 };

struct hlo_strings {
    slot *slots; /* open addressing with linear probing; not in the arena, so that the slots can be
                  * freed when the table grows */
    size_t mask, count;
    char **chunks;
    uint32_t chunk_count, chunk_capacity;
    uint32_t open;      /* number of the chunk that is being filled */
    uint32_t open_used; /* number of used units of that chunk */
};

enum { FIRST_SLOTS = 256, FIRST_CHUNKS = 16, MAX_RESERVED = 1 << 17, LONGEST = 1 << 30 };

static entry *entry_of(const char *interned) {
    return (entry *)(interned - offsetof(entry, text));
}

static entry *entry_at(const struct hlo_strings *strings, uint32_t number) {
    return (entry *)(strings->chunks[number / CHUNK_UNITS] + (size_t)UNIT * (number % CHUNK_UNITS));
}

static slot *new_slots(hlo_arena *arena, size_t count) {
    slot *slots = hlo_memory_new(count * sizeof *slots);
    if (!slots) hlo_arena_exhausted(arena);
    return memset(slots, 0, count * sizeof *slots);
}

/* Allocates a chunk and returns its number. */
static uint32_t add_chunk(hlo_arena *arena, struct hlo_strings *strings, size_t size) {
    if (strings->chunk_count == strings->chunk_capacity) {
        if (strings->chunk_count > UINT32_MAX / CHUNK_UNITS / 2) hlo_arena_exhausted(arena);
        char **grown = hlo_arena_array(arena, strings->chunk_capacity * 2, sizeof *grown);
        memcpy(grown, strings->chunks, strings->chunk_count * sizeof *grown);
        strings->chunks = grown;
        strings->chunk_capacity *= 2;
    }
    strings->chunks[strings->chunk_count] = hlo_arena_alloc(arena, size);
    return strings->chunk_count++;
}

struct hlo_strings *hlo_strings_new(hlo_arena *arena) {
    struct hlo_strings *strings = hlo_arena_zero(arena, sizeof *strings);
    strings->slots = new_slots(arena, FIRST_SLOTS);
    strings->mask = FIRST_SLOTS - 1;
    strings->chunks = hlo_arena_array(arena, FIRST_CHUNKS, sizeof *strings->chunks);
    strings->chunk_capacity = FIRST_CHUNKS;
    strings->open = add_chunk(arena, strings, CHUNK);
    strings->open_used = 1; /* number 0 marks a free slot */
    return strings;
}

void hlo_strings_free(struct hlo_strings *strings) {
    if (strings) hlo_free(strings->slots);
}

static void resize(hlo_arena *arena, struct hlo_strings *strings, size_t mask) {
    slot *slots = new_slots(arena, mask + 1);
    for (size_t i = 0; i <= strings->mask; i++) {
        slot s = strings->slots[i];
        if (!s.entry) continue;
        size_t at = s.hash & mask;
        while (slots[at].entry) at = (at + 1) & mask;
        slots[at] = s;
    }
    hlo_free(strings->slots);
    strings->slots = slots;
    strings->mask = mask;
}

void hlo_strings_reserve(hlo_module *module, size_t count) {
    size_t mask = module->strings->mask;
    while (count * 2 > mask && mask < MAX_RESERVED) mask = mask * 2 + 1;
    if (mask > module->strings->mask) resize(module->arena, module->strings, mask);
}

/* Adds a string at the free slot `at`. Not inlined, because most strings are already in the table.
 */
__attribute__((noinline)) static const char *add_string(hlo_module *module, const char *bytes,
                                                        size_t length, uint32_t hash, size_t at) {
    struct hlo_strings *strings = module->strings;
    if (length >= LONGEST) hlo_arena_exhausted(module->arena);
    const size_t size = sizeof(entry) + length + 1, units = (size + UNIT - 1) / UNIT;
    uint32_t number;
    if (size > LARGE) {
        number = add_chunk(module->arena, strings, size) * CHUNK_UNITS;
    } else {
        if (strings->open_used + units > CHUNK_UNITS) {
            strings->open = add_chunk(module->arena, strings, CHUNK);
            strings->open_used = 0;
        }
        number = strings->open * CHUNK_UNITS + strings->open_used;
        strings->open_used += (uint32_t)units;
    }
    entry *e = entry_at(strings, number);
    *e = (entry){.length = (uint32_t)length & (LONGEST - 1)};
    memcpy(e->text, bytes, length);
    e->text[length] = '\0';
    strings->slots[at] = (slot){hash, number};
    if (++strings->count * 2 > strings->mask) resize(module->arena, strings, strings->mask * 2 + 1);
    return e->text;
}

const char *hlo_intern(hlo_module *module, const char *bytes, size_t length) {
    const struct hlo_strings *strings = module->strings;
    const uint32_t hash =
        length ? (uint32_t)XXH3_64bits(bytes, length - 1) + (unsigned char)bytes[length - 1] : 0;
    size_t at = hash & strings->mask;
    for (const slot *s; (s = &strings->slots[at])->entry; at = (at + 1) & strings->mask) {
        if (s->hash != hash) continue;
        const entry *e = entry_at(strings, s->entry);
        if (e->length == length && memcmp(e->text, bytes, length) == 0) return e->text;
    }
    return add_string(module, bytes, length, hash, at);
}

const char *hlo_intern_string(hlo_module *module, const char *text) {
    return hlo_intern(module, text, strlen(text));
}

size_t hlo_intern_length(const char *interned) {
    return entry_of(interned)->length;
}

hlo_symbol_binding hlo_intern_binding(const char *interned) {
    const entry *e = entry_of(interned);
    return (hlo_symbol_binding){e->has_cache ? e->cached->bound : e->bound, e->scope};
}

void hlo_intern_bind(const char *interned, hlo_symbol_binding binding) {
    entry *e = entry_of(interned);
    *(e->has_cache ? &e->cached->bound : &e->bound) = binding.instr;
    e->scope = binding.scope & INT32_MAX;
}

hlo_string_cache *hlo_intern_cache(hlo_module *module, const char *interned) {
    entry *e = entry_of(interned);
    if (!e->has_cache) {
        cached *made = hlo_arena_zero(module->arena, sizeof *made);
        made->bound = e->bound;
        e->cached = made;
        e->has_cache = true;
    }
    return &e->cached->cache;
}

void hlo_strings_free_names(struct hlo_strings *strings) {
    for (size_t i = 0; i <= strings->mask; i++) {
        if (!strings->slots[i].entry) continue;
        entry *e = entry_at(strings, strings->slots[i].entry);
        e->taken = 0;
        if (e->has_cache) e->cached->cache.suffix = 0;
    }
}

/* Reserves a name. Returns false if an object of that kind already has the name. */
static bool take(const char *interned, hlo_namespace space) {
    entry *e = entry_of(interned);
    const uint32_t bit = 1u << space;
    if (e->taken & bit) return false;
    e->taken |= bit & 3;
    return true;
}

static size_t stem_length(const char *name) {
    size_t length = strlen(name), end = length;
    while (end > 1 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    return end < length && end > 1 && name[end - 1] == '.' ? end - 1 : length;
}

void hlo_name_release(hlo_module *module, hlo_namespace space, const char *name,
                      const char *interned) {
    entry *e = entry_of(name);
    e->taken = e->taken & ~(1u << space) & 3;
    if (name == interned) return;
    const size_t length = stem_length(interned);
    hlo_intern_cache(module, hlo_intern(module, interned, length))->suffix =
        (uint32_t)strtoul(name + length + 1, NULL, 10) - 1;
}

const char *hlo_unique_name(hlo_module *module, hlo_namespace space, const char *interned) {
    if (take(interned, space)) return interned;
    enum { SUFFIX = 12, FEW = 256 }; /* `.`, ten digits, NUL */
    const size_t length = stem_length(interned);
    hlo_string_cache *stem = hlo_intern_cache(module, hlo_intern(module, interned, length));
    char few[FEW], *text = few;
    if (length > FEW - SUFFIX) text = hlo_arena_alloc(module->arena, length + SUFFIX);
    memcpy(text, interned, length);
    for (;;) {
        const int more = snprintf(text + length, SUFFIX, ".%u", ++stem->suffix);
        const char *candidate = hlo_intern(module, text, length + (size_t)more);
        if (take(candidate, space)) return candidate;
    }
}
