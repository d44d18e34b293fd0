/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/arena.h"
#include "ir/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* AddressSanitizer reports accesses between the allocations of an arena, and after their release.
 */
#ifdef HLO_ARENA_FILL
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size) ((void)0)
#endif

typedef struct block block;
struct block {
    block *older;
    size_t size, used;
    max_align_t data[];
};

typedef struct adopted adopted;
struct adopted {
    adopted *next;
    void *memory;
};

struct hlo_arena {
    block *newest;
    block *spare; /* released blocks, for reuse: memory new to the process is slower */
    adopted *adopted;
    jmp_buf *recover;
    size_t total, limit;
};

/* A new block or pool piece is a fixed share of the memory allocated so far, so that little memory
 * is unused. Blocks of large pages are faster to allocate and to traverse. */
enum { ALIGN = 8, SHARE = 16, FIRST_BLOCK = 16 << 10, FIRST_PIECE = 1 << 10, FIRST_CAPACITY = 16 };
enum { LARGE_PAGE = 2 << 20 };
#ifdef HLO_ARENA_FILL
enum { GAP = 2 * ALIGN }; /* size of the inaccessible gap after each allocation */
#else
enum { GAP = 0 };
#endif

hlo_arena *hlo_arena_new(jmp_buf *recover) {
    hlo_arena *arena = hlo_calloc(1, sizeof *arena);
    if (arena) arena->recover = recover;
    return arena;
}

void *hlo_arena_new_with(jmp_buf *recover, size_t size, hlo_arena **out_arena) {
    jmp_buf here;
    hlo_arena *arena = *out_arena = hlo_arena_new(&here);
    if (!arena) return NULL;
    if (setjmp(here)) {
        hlo_arena_free(*out_arena);
        *out_arena = NULL;
        return NULL;
    }
    void *first = hlo_arena_zero(arena, size);
    arena->recover = recover;
    return first;
}

static void free_blocks(block *newest) {
    while (newest) {
        block *older = newest->older;
        hlo_free(newest);
        newest = older;
    }
}

void hlo_arena_free(hlo_arena *arena) {
    if (!arena) return;
    for (const adopted *a = arena->adopted; a; a = a->next) hlo_free(a->memory);
    free_blocks(arena->newest);
    free_blocks(arena->spare);
    hlo_free(arena);
}

jmp_buf *hlo_arena_set_recover(hlo_arena *arena, jmp_buf *recover) {
    jmp_buf *before = arena->recover;
    arena->recover = recover;
    return before;
}

void hlo_arena_set_limit(hlo_arena *arena, size_t bytes) {
    arena->limit = bytes;
}

size_t hlo_arena_used(const hlo_arena *arena) {
    return arena->total;
}

void hlo_arena_exhausted(hlo_arena *arena) {
    longjmp(*arena->recover, 1);
}

void *hlo_memory_new(size_t size) {
    if (size <= LARGE_PAGE / 2) return hlo_malloc(size);
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    void *memory = hlo_aligned_alloc(LARGE_PAGE, size);
    if (memory) madvise(memory, size, MADV_HUGEPAGE); /* on failure, pages stay small */
    return memory;
}

void *hlo_arena_alloc(hlo_arena *arena, size_t exact) {
    if (exact > SIZE_MAX / 2) hlo_arena_exhausted(arena);
    const size_t size = (exact + ALIGN - 1) / ALIGN * ALIGN;
    if (arena->limit && (size > arena->limit || arena->total > arena->limit - size))
        hlo_arena_exhausted(arena);
    block *b = arena->newest;
    if (!b || b->size - b->used < size + GAP) {
        block **spare = &arena->spare;
        while (*spare && (*spare)->size < size + GAP) spare = &(*spare)->older;
        b = *spare;
        if (b) {
            *spare = b->older;
        } else {
            size_t capacity =
                arena->total / SHARE > FIRST_BLOCK ? arena->total / SHARE : FIRST_BLOCK;
            if (capacity < size) capacity = size;
            capacity += sizeof *b + GAP;
            if (capacity > LARGE_PAGE / 2)
                capacity = (capacity + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
            b = hlo_memory_new(capacity);
            if (!b) hlo_arena_exhausted(arena);
            b->size = capacity - sizeof *b;
            ASAN_POISON_MEMORY_REGION(b->data, b->size);
        }
        b->older = arena->newest;
        b->used = 0;
        arena->newest = b;
    }
    void *memory = (char *)b->data + b->used;
    b->used += size + GAP;
    arena->total += size;
#ifdef HLO_ARENA_FILL
    ASAN_UNPOISON_MEMORY_REGION(memory, exact);
    memset(memory, HLO_ARENA_FILL, exact);
#endif
    return memory;
}

void *hlo_pool_alloc(hlo_arena *arena, hlo_pool *pool, size_t size) {
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (pool->capacity < size) {
        size_t piece = pool->total / SHARE > FIRST_PIECE ? pool->total / SHARE : FIRST_PIECE;
        if (piece < size) piece = size;
        pool->at = hlo_arena_alloc(arena, piece);
        pool->capacity = piece;
        pool->total += piece;
    }
    void *memory = pool->at;
    pool->at += size;
    pool->capacity -= size;
    return memory;
}

void *hlo_arena_zero(hlo_arena *arena, size_t size) {
    return memset(hlo_arena_alloc(arena, size), 0, size);
}

void *hlo_arena_array(hlo_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) hlo_arena_exhausted(arena);
    return hlo_arena_alloc(arena, bytes);
}

void *hlo_arena_copy(hlo_arena *arena, const void *bytes, size_t size) {
    void *memory = hlo_arena_alloc(arena, size);
    if (size) memcpy(memory, bytes, size);
    return memory;
}

void hlo_arena_grow(hlo_arena *arena, void *array, uint32_t count, uint32_t *capacity,
                    size_t size) {
    if (count < *capacity) return;
    *capacity = *capacity ? 2 * *capacity : FIRST_CAPACITY;
    void *old, *grown = hlo_arena_array(arena, *capacity, size);
    memcpy(&old, array, sizeof old);
    if (count) memcpy(grown, old, count * size);
    memcpy(array, &grown, sizeof grown);
}

void hlo_arena_adopt(hlo_arena *arena, void *memory) {
    const adopted a = {arena->adopted, memory};
    arena->adopted = hlo_arena_copy(arena, &a, sizeof a);
}

char *hlo_arena_format(hlo_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char few[256];
    int length = vsnprintf(few, sizeof few, format, args);
    va_end(args);
    char *text = hlo_arena_alloc(arena, length < 0 ? 1 : (size_t)length + 1);
    if (length < 0)
        *text = '\0';
    else if ((size_t)length < sizeof few)
        memcpy(text, few, (size_t)length + 1);
    else
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

hlo_arena_mark hlo_arena_here(const hlo_arena *arena) {
    block *b = arena->newest;
    return (hlo_arena_mark){.block = b, .used = b ? b->used : 0, .total = arena->total};
}

void hlo_arena_release(hlo_arena *arena, hlo_arena_mark mark) {
    while (arena->newest != mark.block) {
        block *b = arena->newest;
        arena->newest = b->older;
        b->older = arena->spare;
        arena->spare = b;
        ASAN_POISON_MEMORY_REGION(b->data, b->size);
    }
    block *b = arena->newest;
    if (b) {
        b->used = mark.used;
        ASAN_POISON_MEMORY_REGION((char *)b->data + b->used, b->size - b->used);
    }
    arena->total = mark.total;
}
