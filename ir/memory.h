/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the library's allocator (hlo/memory.h). All of these functions return NULL if memory
 * cannot be allocated. Free the memory with hlo_free(). */
#ifndef HLO_IR_MEMORY_H
#define HLO_IR_MEMORY_H

#include "hlo/memory.h"

void *hlo_calloc(size_t count, size_t size);
/* Memory that may be resized has the alignment of max_align_t. */
void *hlo_realloc(void *memory, size_t size);
/* Allocates memory that is aligned to `alignment`, a power of two. */
void *hlo_aligned_alloc(size_t alignment, size_t size);
char *hlo_strdup(const char *text);
char *hlo_strndup(const char *text, size_t length);

#endif
