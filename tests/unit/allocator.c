/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into every unit test: an allocator of the library whose memory is not the start of an
 * allocation. A test that passes it to free() instead of hlo_free() therefore aborts. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/memory.h"

/* The header before each block. */
typedef struct header {
    _Alignas(max_align_t) void *start;
    size_t size;
} header;

static void *allocate(void *user, size_t size, size_t alignment) {
    (void)user;
    const size_t lead = alignment > sizeof(header) ? alignment : sizeof(header);
    char *start = size > PTRDIFF_MAX - 2 * lead
                      ? NULL
                      : aligned_alloc(alignment, (size + lead + alignment - 1) & ~(alignment - 1));
    if (!start) return NULL;
    ((header *)(void *)(start + lead))[-1] = (header){start, size};
    return start + lead;
}

static void release(void *user, void *memory) {
    (void)user;
    free(((header *)memory)[-1].start);
}

static void *reallocate(void *user, void *memory, size_t size) {
    void *grown = allocate(user, size, _Alignof(max_align_t));
    if (grown && memory) {
        const size_t old = ((header *)memory)[-1].size;
        memcpy(grown, memory, old < size ? old : size);
        release(user, memory);
    }
    return grown;
}

__attribute__((constructor)) static void set_allocator(void) {
    const hlo_allocator allocator = {allocate, reallocate, release, NULL};
    (void)hlo_set_allocator(&allocator);
}
