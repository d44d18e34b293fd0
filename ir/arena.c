#include "ir/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct block block;
struct block {
    block *older;
    size_t size, used;
    max_align_t data[];
};

struct hlo_arena {
    block *newest;
    jmp_buf *recover;
    size_t total, limit;
};

/* A block or a pool's piece is an eighth of what there is, so that little is left over. From LARGE
 * on, memory comes in large pages, which are faster to get and to walk over. */
enum { ALIGN = 8, SHARE = 8, FIRST_BLOCK = 16 << 10, FIRST_PIECE = 1 << 10 };
enum { LARGE = 512 << 10, LARGE_PAGE = 2 << 20 };

hlo_arena *hlo_arena_new(jmp_buf *recover) {
    hlo_arena *arena = calloc(1, sizeof *arena);
    if (arena) arena->recover = recover;
    return arena;
}

static void free_blocks(hlo_arena *arena, const block *keep) {
    while (arena->newest != keep) {
        block *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
}

void hlo_arena_free(hlo_arena *arena) {
    if (!arena) return;
    free_blocks(arena, NULL);
    free(arena);
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
    if (size < LARGE) return malloc(size);
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    void *memory = aligned_alloc(LARGE_PAGE, size);
    if (memory) madvise(memory, size, MADV_HUGEPAGE); /* where that cannot be, as it is */
    return memory;
}

static block *new_block(const hlo_arena *arena, size_t size) {
    size_t room = arena->total / SHARE > FIRST_BLOCK ? arena->total / SHARE : FIRST_BLOCK;
    if (room < size) room = size;
    room += sizeof(block);
    if (room + arena->total >= LARGE) room = (room + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    block *b = hlo_memory_new(room);
    if (b) *b = (block){.older = arena->newest, .size = room - sizeof *b};
    return b;
}

void *hlo_arena_alloc(hlo_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2) hlo_arena_exhausted(arena);
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (arena->limit && (size > arena->limit || arena->total > arena->limit - size))
        hlo_arena_exhausted(arena);
    block *b = arena->newest;
    if (!b || b->size - b->used < size) {
        b = new_block(arena, size);
        if (!b) hlo_arena_exhausted(arena);
        arena->newest = b;
    }
    void *memory = (char *)b->data + b->used;
    b->used += size;
    arena->total += size;
    return memory;
}

void *hlo_pool_alloc(hlo_arena *arena, hlo_pool *pool, size_t size) {
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (pool->room < size) {
        size_t piece = pool->total / SHARE > FIRST_PIECE ? pool->total / SHARE : FIRST_PIECE;
        if (piece < size) piece = size;
        pool->at = hlo_arena_alloc(arena, piece);
        pool->room = piece;
        pool->total += piece;
    }
    void *memory = pool->at;
    pool->at += size;
    pool->room -= size;
    return memory;
}

void *hlo_arena_zero(hlo_arena *arena, size_t size) {
    return memset(hlo_arena_alloc(arena, size), 0, size);
}

void *hlo_arena_array(hlo_arena *arena, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) hlo_arena_exhausted(arena);
    return hlo_arena_alloc(arena, count * size);
}

void *hlo_arena_copy(hlo_arena *arena, const void *bytes, size_t size) {
    void *memory = hlo_arena_alloc(arena, size);
    if (size) memcpy(memory, bytes, size);
    return memory;
}

char *hlo_arena_format(hlo_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = hlo_arena_alloc(arena, length < 0 ? 1 : (size_t)length + 1);
    if (length < 0)
        *text = '\0';
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
    free_blocks(arena, mark.block);
    if (arena->newest) arena->newest->used = mark.used;
    arena->total = mark.total;
}
