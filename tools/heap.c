/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Sizes of the heap; larger allocations get blocks of large pages from the library. */
enum { LARGE_PAGE = 2 << 20, FIRST = 24 << 20, MOST = 32 << 20 };

/* Fills the space before the first large page, so that no allocation is placed there. */
__attribute__((used)) static void *lead;

void heap_use_large_pages(void) {
    mallopt(M_MMAP_THRESHOLD, MOST);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    char *capacity = malloc(FIRST);
    if (!capacity) return;
    const size_t before = LARGE_PAGE - (uintptr_t)capacity % LARGE_PAGE;
    madvise(capacity + before, (FIRST - before) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
    free(capacity);
    lead = malloc(before);
}
