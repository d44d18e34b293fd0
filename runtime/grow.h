/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays on the heap. */
#ifndef HLO_RUNTIME_GROW_H
#define HLO_RUNTIME_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ir/memory.h"

/* Ensures that an array has room for `count` elements of `size` bytes. `array` points to the
 * pointer to the array. Returns false, without a change, if memory runs out. */
static inline bool hlo_heap_grow(void *array, size_t count, size_t *capacity, size_t size) {
    if (count <= *capacity) return true;
    void *items;
    memcpy(&items, array, sizeof items);
    items = hlo_realloc(items, (2 * count + 14) * size);
    if (!items) return false;
    memcpy(array, &items, sizeof items);
    *capacity = 2 * count + 14;
    return true;
}

#endif
