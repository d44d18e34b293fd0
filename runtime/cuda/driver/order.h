/* SPDX-License-Identifier: Apache-2.0 */
/* The required order of graph nodes, from the memory that they read and write. */
#ifndef HLO_RUNTIME_CUDA_DRIVER_ORDER_H
#define HLO_RUNTIME_CUDA_DRIVER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_LANES = 4 }; /* maximum number of concurrent nodes */

/* A range of memory that a node reads or, if `written`, writes and may read. */
typedef struct cuda_range {
    const void *data;
    size_t size;
    bool written;
} cuda_range;

/* Nodes, numbered from 0. Each node is in a lane, after all previous nodes of the lane. */
typedef struct cuda_order cuda_order;

/* Creates an empty order; NULL if memory runs out. The caller frees it with cuda_order_free(). */
cuda_order *cuda_order_new(void);
void cuda_order_free(cuda_order *order); /* NULL is allowed */

/* Adds a node, and writes its direct predecessors: none of them is before another. Returns their
 * number, at most CUDA_LANES, or -1 if memory runs out. */
int cuda_order_add(cuda_order *order, const cuda_range *ranges, uint32_t count,
                   uint32_t out_before[CUDA_LANES]);
/* Adds a node that is after all earlier nodes and before all later ones. Returns false if memory
 * runs out. */
bool cuda_order_add_barrier(cuda_order *order);
/* Writes the nodes without successors. Returns their number. */
int cuda_order_ends(const cuda_order *order, uint32_t out_ends[CUDA_LANES]);

#endif
