/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of memory.h. */
#define _POSIX_C_SOURCE 200112L
#include "reference.h"

#include <stdlib.h>

#include <hlo/memory.h>
#include <hlo/text.h>

/* [allocator] */
/* An allocator that stops after a number of allocations. With several threads, it needs a lock. */
typedef struct budget {
    int left;
} budget;

static void *allocate(void *user, size_t size, size_t alignment) {
    budget *b = (budget *)user;
    void *memory = NULL;
    if (b->left <= 0 || posix_memalign(&memory, alignment, size) != 0) return NULL;
    b->left--;
    return memory;
}

static void *reallocate(void *user, void *memory, size_t size) {
    budget *b = (budget *)user;
    if (b->left <= 0) return NULL;
    b->left--;
    return realloc(memory, size);
}

static void release(void *user, void *memory) {
    (void)user;
    free(memory);
}

/* Must be called before any other function of the library. `b` must exist until the end. */
static hlo_status limit_allocations(budget *b) {
    hlo_allocator allocator;
    allocator.allocate = allocate;
    allocator.reallocate = reallocate;
    allocator.release = release;
    allocator.user = b;
    return hlo_set_allocator(&allocator);
}
/* [allocator] */

/* [memory] */
/* Memory that the library frees, such as the result of hlo_page_options.draw, and memory that it
 * returned, such as the text of hlo_module_to_text(). */
static hlo_status copy_text(const hlo_module *module, char **out_copy) {
    char *text = NULL;
    size_t size = 0, i;
    hlo_status status = hlo_module_to_text(module, NULL, &text, &size);
    *out_copy = status == HLO_OK ? (char *)hlo_malloc(size + 1) : NULL;
    for (i = 0; *out_copy && i <= size; i++) (*out_copy)[i] = text[i];
    hlo_free(text);
    return status == HLO_OK && !*out_copy ? HLO_OUT_OF_MEMORY : status;
}
/* [memory] */

hlo_status example_memory(void) {
    budget b;
    hlo_module *module = NULL;
    char *text = NULL;
    hlo_status status;
    b.left = 0;
    status = limit_allocations(&b);
    if (status == HLO_OK && read_text(scaled, &module) != HLO_OUT_OF_MEMORY) status = HLO_INTERNAL;
    b.left = 100000;
    if (status == HLO_OK) status = read_text(scaled, &module);
    if (status == HLO_OK) status = copy_text(module, &text);
    hlo_free(text);
    hlo_module_free(module);
    if (status == HLO_OK && b.left == 100000) status = HLO_INTERNAL;
    if (status == HLO_OK) status = hlo_set_allocator(NULL);
    return status;
}
