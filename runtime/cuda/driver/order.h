/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the required order of graph nodes from the memory that they read and write. */
#ifndef HLO_RUNTIME_CUDA_DRIVER_ORDER_H
#define HLO_RUNTIME_CUDA_DRIVER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_LANES = 4 }; /* maximum number of concurrent nodes */

/* A range of memory that a node reads or, if `written`, writes and possibly reads. */
typedef struct cuda_range {
    const void *data;
    size_t size;
    bool written;
} cuda_range;

/* Nodes, numbered from 0. Each is in a lane, after all previous nodes of the lane. */
typedef struct cuda_order cuda_order;

/* Creates an empty order. Returns NULL if memory runs out. See cuda_order_free(). */
cuda_order *cuda_order_new(void);
void cuda_order_free(cuda_order *order); /* NULL is allowed */

/* Adds a node and writes its direct predecessors, none of which is ordered before another. Returns
 * the number of predecessors, at most CUDA_LANES, or -1 if memory runs out. */
int cuda_order_add(cuda_order *order, const cuda_range *ranges, uint32_t count,
                   uint32_t out_before[CUDA_LANES]);
/* Adds a node after all earlier and before all later nodes. Returns false if memory runs out. */
bool cuda_order_add_barrier(cuda_order *order);
/* Writes the nodes without successors, and returns their number. */
int cuda_order_ends(const cuda_order *order, uint32_t out_ends[CUDA_LANES]);

#endif
