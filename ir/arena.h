/* SPDX-License-Identifier: Apache-2.0 */
/* Region allocation: everything that belongs to a module dies with it, in one call.
 *
 * An arena never returns NULL. When memory runs out, or more than `limit` bytes were asked for, it
 * jumps to the recovery point that the API entry point at the bottom of the stack has set
 * (`recover`), which frees what it was making and returns HLO_OUT_OF_MEMORY. So no code between
 * them checks. What is allocated outside an arena while one may grow must be reachable from that
 * entry point. */
#ifndef HLO_IR_ARENA_H
#define HLO_IR_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hlo_arena hlo_arena;

/* Makes an arena; NULL when memory runs out. `recover` may be NULL until the first allocation; it
 * is borrowed and must stay valid while the arena is allocated from. */
hlo_arena *hlo_arena_new(jmp_buf *recover);
/* Makes an arena and returns a first allocation of `size` zero bytes: for a struct that holds its
 * own arena. */
void *hlo_arena_new_with(jmp_buf *recover, size_t size, hlo_arena **out_arena);
void hlo_arena_free(hlo_arena *arena); /* NULL is allowed */

/* Sets the recovery point and returns the previous one, which the caller restores before it
 * returns.
 */
jmp_buf *hlo_arena_set_recover(hlo_arena *arena, jmp_buf *recover);

/* Limits the arena to `bytes` in all; 0: no limit. */
void hlo_arena_set_limit(hlo_arena *arena, size_t bytes);

/* Allocates uninitialized memory, aligned to 8 bytes. `size` 0 gives a valid pointer. */
void *hlo_arena_alloc(hlo_arena *arena, size_t size);
void *hlo_arena_zero(hlo_arena *arena, size_t size);
/* Allocates count * size bytes, checked for overflow. */
void *hlo_arena_array(hlo_arena *arena, size_t count, size_t size);
void *hlo_arena_copy(hlo_arena *arena, const void *bytes, size_t size);
/* Makes room for another element in the array whose pointer is at `array`: an array of `count`
 * elements of `size` bytes that fills `*capacity` is copied to one of twice the capacity. */
void hlo_arena_grow(hlo_arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t size);
char *hlo_arena_format(hlo_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes the arena the owner of malloc()ed memory. Not to be used across hlo_arena_release(). */
void hlo_arena_adopt(hlo_arena *arena, void *memory);

/* A pool: objects of one kind, contiguous in memory, apart from other allocations of the arena. All
 * zero at first; not to be used across hlo_arena_release(). */
typedef struct hlo_pool {
    char *at;
    size_t capacity; /* bytes from `at` on */
    size_t total;    /* bytes of all blocks */
} hlo_pool;
void *hlo_pool_alloc(hlo_arena *arena, hlo_pool *pool, size_t size);

/* Jumps to the recovery point, as an allocation does when memory runs out. */
_Noreturn void hlo_arena_exhausted(hlo_arena *arena);

/* Allocates memory outside any arena, to be freed with free(); NULL when memory runs out. An
 * allocation of more than half a large page is aligned to large pages and advised to use them. */
void *hlo_memory_new(size_t size);

/* Returns the bytes allocated so far. */
size_t hlo_arena_used(const hlo_arena *arena);

/* A mark in the arena: hlo_arena_release() frees all allocations made after it. */
typedef struct hlo_arena_mark {
    void *block;
    size_t used, total;
} hlo_arena_mark;
hlo_arena_mark hlo_arena_here(const hlo_arena *arena);
void hlo_arena_release(hlo_arena *arena, hlo_arena_mark mark);

#endif
