/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of the library, and memory that functions return to their callers.
 *
 * All memory of modules, reports, plans, arrays and results comes from one allocator of the
 * process. The C library and the libraries that this library uses (jansson, libzip, zlib, CUDA)
 * allocate their own memory in addition, for example for streams and JSON documents. */
#ifndef HLO_MEMORY_H
#define HLO_MEMORY_H

#include <stddef.h>

#include "hlo/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* An allocator. Its functions are called on any thread, and several threads may call them at the
 * same time. The struct has no other fields in any version of the library. */
typedef struct hlo_allocator {
    /* Returns `size` bytes, aligned to `alignment`, or NULL if memory cannot be allocated. `size`
     * is not 0. `alignment` is a power of two, and at least that of max_align_t. */
    void *(*allocate)(void *user, size_t size, size_t alignment);
    /* Changes the size of `memory`, which `allocate` returned with the alignment of max_align_t or
     * which is NULL, like realloc(). `size` is not 0. */
    void *(*reallocate)(void *user, void *memory, size_t size);
    /* Frees memory of any alignment. `memory` is not NULL. */
    void (*release)(void *user, void *memory);
    void *user; /* Passed to the functions unchanged. */
} hlo_allocator;

/* Replaces the allocator, which is copied. `allocator` may be NULL, which selects malloc(). It must
 * be called before all other functions of the library, or after all objects of the library were
 * freed, while no other thread calls the library.
 *
 * Returns HLO_INVALID_USAGE if a function of the allocator is NULL. */
hlo_status hlo_set_allocator(const hlo_allocator *allocator);

/* Allocates `size` bytes with the allocator of the library, aligned for any type. Returns NULL if
 * memory cannot be allocated. The caller must free the memory with hlo_free(). */
void *hlo_malloc(size_t size);

/* Frees memory that a function of the library returned, if the documentation of that function says
 * so. `memory` may be NULL. */
void hlo_free(void *memory);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
