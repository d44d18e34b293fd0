/* SPDX-License-Identifier: Apache-2.0 */
/* The order that nodes of a graph need among each other, by the memory that they read and write. */
#ifndef HLO_RUNTIME_CUDA_DRIVER_ORDER_H
#define HLO_RUNTIME_CUDA_DRIVER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_LANES = 4 }; /* nodes that no order is among, at most */

/* A range of memory that a node reads, or `written`: writes, and may read. */
typedef struct cuda_range {
    const void *data;
    size_t size;
    bool written;
} cuda_range;

/* Nodes that were added, numbered from 0. Each is in a lane, after all of the lane before it. */
typedef struct cuda_order cuda_order;

/* Makes an order without nodes; NULL when memory runs out. The caller frees it with
 * cuda_order_free(). */
cuda_order *cuda_order_new(void);
void cuda_order_free(cuda_order *order); /* NULL is allowed */

/* Adds a node, and writes the nodes that must be directly before it: none of them is before another
 * of them. Returns their number, CUDA_LANES at most; -1 when memory runs out. */
int cuda_order_add(cuda_order *order, const cuda_range *ranges, uint32_t count,
                   uint32_t out_before[CUDA_LANES]);
/* Adds a node that is after all earlier nodes, and before all later ones. False when memory runs
 * out. */
bool cuda_order_add_barrier(cuda_order *order);
/* Writes the nodes that no other is after; returns their number. */
int cuda_order_ends(const cuda_order *order, uint32_t out_ends[CUDA_LANES]);

#endif
