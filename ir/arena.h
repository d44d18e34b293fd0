/* SPDX-License-Identifier: Apache-2.0 */
/* Region allocation: all memory of a module is freed at once.
 *
 * Allocations from an arena never return NULL. When memory runs out, or the limit of the arena is
 * exceeded (hlo_arena_set_limit()), the arena jumps to the recovery point (`recover`), which the
 * public API function has set. That function frees its partial results and returns
 * HLO_OUT_OF_MEMORY, so the functions that it calls need not check for NULL. Memory that is
 * allocated outside an arena while an arena may grow must be reachable from the public function. */
#ifndef HLO_IR_ARENA_H
#define HLO_IR_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hlo_arena hlo_arena;

/* Creates an arena. Returns NULL if memory runs out. `recover` may be NULL until the first
 * allocation. It is borrowed, and must remain valid while the arena is used for allocation. */
hlo_arena *hlo_arena_new(jmp_buf *recover);
/* Creates an arena and returns its first allocation, `size` zero bytes. The allocation may be a
 * struct that has a pointer to the arena. */
void *hlo_arena_new_with(jmp_buf *recover, size_t size, hlo_arena **out_arena);
void hlo_arena_free(hlo_arena *arena); /* NULL is allowed */

/* Sets the recovery point and returns the previous one, which the caller restores before it
 * returns.
 */
jmp_buf *hlo_arena_set_recover(hlo_arena *arena, jmp_buf *recover);

/* Limits the total size of the arena to `bytes`; 0: no limit. */
void hlo_arena_set_limit(hlo_arena *arena, size_t bytes);

/* Allocates uninitialized memory, aligned to 8 bytes. `size` 0 returns a valid pointer. */
void *hlo_arena_alloc(hlo_arena *arena, size_t size);
void *hlo_arena_zero(hlo_arena *arena, size_t size);
/* Allocates count * size bytes, checked for overflow. */
void *hlo_arena_array(hlo_arena *arena, size_t count, size_t size);
void *hlo_arena_copy(hlo_arena *arena, const void *bytes, size_t size);
/* Makes room for one more element in the array whose pointer is at `array`. If its `count` elements
 * of `size` bytes fill `*capacity`, the array is copied to one of twice the capacity. */
void hlo_arena_grow(hlo_arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t size);
char *hlo_arena_format(hlo_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Transfers ownership of memory of hlo_malloc() to the arena, which must then not be released to an
 * earlier mark. */
void hlo_arena_adopt(hlo_arena *arena, void *memory);

/* A pool: objects of one kind, contiguous in memory, separate from other allocations of the arena.
 * Initially all zero. While it is used, the arena must not be released to an earlier mark. */
typedef struct hlo_pool {
    char *at;
    size_t capacity; /* number of free bytes at `at` */
    size_t total;    /* total bytes of all blocks */
} hlo_pool;
void *hlo_pool_alloc(hlo_arena *arena, hlo_pool *pool, size_t size);

/* Jumps to the recovery point, as if memory had run out. */
_Noreturn void hlo_arena_exhausted(hlo_arena *arena);

/* Allocates memory outside any arena, to be freed with hlo_free(); NULL if memory runs out. An
 * allocation of more than half a large page is aligned to large pages and advised to use them. */
void *hlo_memory_new(size_t size);

/* Returns the number of bytes allocated so far. */
size_t hlo_arena_used(const hlo_arena *arena);

/* A mark in the arena: hlo_arena_release() frees all allocations made after it. */
typedef struct hlo_arena_mark {
    void *block;
    size_t used, total;
} hlo_arena_mark;
hlo_arena_mark hlo_arena_here(const hlo_arena *arena);
void hlo_arena_release(hlo_arena *arena, hlo_arena_mark mark);

#endif
