/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* All functions are NULL unless the program has set an allocator. */
static hlo_allocator own;

enum { ALIGN = _Alignof(max_align_t) };

hlo_status hlo_set_allocator(const hlo_allocator *allocator) {
    if (allocator && (!allocator->allocate || !allocator->reallocate || !allocator->release))
        return HLO_INVALID_USAGE;
    own = allocator ? *allocator : (hlo_allocator){.allocate = NULL};
    return HLO_OK;
}

void *hlo_malloc(size_t size) {
    return own.allocate ? own.allocate(own.user, size ? size : 1, ALIGN) : malloc(size);
}

void hlo_free(void *memory) {
    if (!own.release)
        free(memory);
    else if (memory)
        own.release(own.user, memory);
}

void *hlo_calloc(size_t count, size_t size) {
    size_t bytes;
    if (!own.allocate) return calloc(count, size);
    void *memory = __builtin_mul_overflow(count, size, &bytes) ? NULL : hlo_malloc(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void *hlo_realloc(void *memory, size_t size) {
    return own.reallocate ? own.reallocate(own.user, memory, size ? size : 1)
                          : realloc(memory, size);
}

void *hlo_aligned_alloc(size_t alignment, size_t size) {
    return own.allocate
               ? own.allocate(own.user, size ? size : 1, alignment > ALIGN ? alignment : ALIGN)
               : aligned_alloc(alignment, size);
}

char *hlo_strdup(const char *text) {
    return hlo_strndup(text, strlen(text));
}

char *hlo_strndup(const char *text, size_t length) {
    length = strnlen(text, length);
    char *copy = hlo_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}
