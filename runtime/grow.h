/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays on the heap that grow. */
#ifndef HLO_RUNTIME_GROW_H
#define HLO_RUNTIME_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `count` elements of `size` bytes in the array whose pointer is at `array`. Returns
 * false, and changes nothing, if memory runs out. */
static inline bool hlo_heap_grow(void *array, size_t count, size_t *capacity, size_t size) {
    if (count <= *capacity) return true;
    void *items;
    memcpy(&items, array, sizeof items);
    items = realloc(items, (2 * count + 14) * size);
    if (!items) return false;
    memcpy(array, &items, sizeof items);
    *capacity = 2 * count + 14;
    return true;
}

#endif
