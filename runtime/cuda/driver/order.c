/* SPDX-License-Identifier: Apache-2.0 */
/* Derives dependencies between the nodes of a graph. Nodes are added in the order of a correct run.
 * For every byte, tracks the last node that wrote the byte and, for each lane, the last node that
 * has read it since. Because the nodes of a lane are ordered, a new node only needs to wait for
 * these nodes. */
#include "runtime/cuda/driver/order.h"

#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "runtime/grow.h"

/* A node's number + 1, or 0 for no node. */
typedef uint32_t mark;

typedef struct node {
    uint32_t lane;
    mark seen[CUDA_LANES]; /* by lane: the last node that is this node or is ordered before it */
} node;

typedef struct segment {
    uintptr_t begin, end;
    mark writer, readers[CUDA_LANES];
} segment;

struct cuda_order {
    node *nodes;
    uint32_t count;
    size_t capacity;
    segment *segments; /* sorted by address, without overlaps */
    size_t segment_count, segment_capacity;
    mark last[CUDA_LANES]; /* last node of each lane */
    mark barrier;          /* the last barrier; later nodes are ordered after it */
};

cuda_order *cuda_order_new(void) {
    return hlo_calloc(1, sizeof(cuda_order));
}

void cuda_order_free(cuda_order *order) {
    if (!order) return;
    hlo_free(order->nodes);
    hlo_free(order->segments);
    hlo_free(order);
}

/* Returns the first segment that ends after the address. */
static size_t find(const cuda_order *o, uintptr_t address) {
    size_t low = 0, high = o->segment_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (o->segments[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool reserve(cuda_order *o, size_t count) {
    return hlo_heap_grow(&o->segments, o->segment_count + count, &o->segment_capacity,
                         sizeof *o->segments);
}

/* Replaces the segments from `at` up to `end` by one. */
static void replace(cuda_order *o, size_t at, size_t end, segment by) {
    memmove(o->segments + at + 1, o->segments + end,
            (o->segment_count - end) * sizeof *o->segments);
    o->segment_count += at + 1;
    o->segment_count -= end;
    o->segments[at] = by;
}

/* Splits the segment that contains the address, if any. */
static void split(cuda_order *o, uintptr_t address) {
    const size_t at = find(o, address);
    if (at == o->segment_count || o->segments[at].begin >= address) return;
    replace(o, at, at, o->segments[at]);
    o->segments[at].end = o->segments[at + 1].begin = address;
}

/* Records that the node reads the bytes. Adds segments for bytes that no node has accessed. Returns
 * false if memory runs out. */
static bool note_read(cuda_order *o, uintptr_t begin, uintptr_t end, uint32_t lane, mark reader) {
    split(o, begin);
    split(o, end);
    for (size_t at = find(o, begin); begin < end; at++) {
        if (!reserve(o, 3)) return false;
        if (at == o->segment_count || o->segments[at].begin > begin) {
            segment new = {.begin = begin, .end = end};
            if (at < o->segment_count && o->segments[at].begin < end)
                new.end = o->segments[at].begin;
            replace(o, at, at, new);
        }
        o->segments[at].readers[lane] = reader;
        begin = o->segments[at].end;
    }
    return true;
}

static void raise(mark *m, mark to) {
    if (*m < to) *m = to;
}

static void need_node(const cuda_order *o, mark needed[CUDA_LANES], mark m) {
    if (m) raise(&needed[o->nodes[m - 1].lane], m);
}

/* Drops each needed node that is ordered before another needed node. Sets `seen` to the last node
 * of each lane that is a needed node or is ordered before one. */
static void reduce(const cuda_order *o, mark needed[CUDA_LANES], mark seen[CUDA_LANES]) {
    memset(seen, 0, CUDA_LANES * sizeof *seen);
    for (int l = 0; l < CUDA_LANES; l++)
        for (int k = 0; k < CUDA_LANES && needed[l]; k++)
            raise(&seen[k], o->nodes[needed[l] - 1].seen[k]);
    for (int l = 0; l < CUDA_LANES; l++) {
        bool implied = false;
        for (int k = 0; k < CUDA_LANES; k++)
            implied |= k != l && needed[k] && o->nodes[needed[k] - 1].seen[l] >= needed[l];
        if (implied) needed[l] = 0;
    }
}

static bool add_node(cuda_order *o, uint32_t lane, const mark seen[CUDA_LANES]) {
    if (!hlo_heap_grow(&o->nodes, o->count + 1, &o->capacity, sizeof *o->nodes)) return false;
    node *n = &o->nodes[o->count++];
    n->lane = lane;
    memcpy(n->seen, seen, sizeof n->seen);
    n->seen[lane] = o->last[lane] = o->count;
    return true;
}

static int list(const mark marks[CUDA_LANES], uint32_t out[CUDA_LANES]) {
    int count = 0;
    for (int l = 0; l < CUDA_LANES; l++)
        if (marks[l]) out[count++] = marks[l] - 1;
    return count;
}

int cuda_order_add(cuda_order *o, const cuda_range *ranges, uint32_t count,
                   uint32_t out_before[CUDA_LANES]) {
    mark needed[CUDA_LANES] = {0}, seen[CUDA_LANES];
    need_node(o, needed, o->barrier);
    for (uint32_t i = 0; i < count; i++) {
        /* Find the last node of each lane for which the new node must wait because of the range. */
        const uintptr_t begin = (uintptr_t)ranges[i].data, end = begin + ranges[i].size;
        for (size_t at = find(o, begin); at < o->segment_count && o->segments[at].begin < end;
             at++) {
            need_node(o, needed, o->segments[at].writer);
            for (int l = 0; l < CUDA_LANES && ranges[i].written; l++)
                raise(&needed[l], o->segments[at].readers[l]);
        }
    }
    reduce(o, needed, seen);
    /* Choose a lane. Prefer a lane whose last node is a node that the new node waits for, the
     * latest if there are several. Otherwise, prefer a lane whose last node is ordered before the
     * new node anyway. Otherwise, take the lane with the oldest last node, and wait for that
     * node. */
    uint32_t lane = CUDA_LANES;
    for (uint32_t l = 0; l < CUDA_LANES; l++)
        if (needed[l] && needed[l] == o->last[l] &&
            (lane == CUDA_LANES || needed[l] > needed[lane]))
            lane = l;
    for (uint32_t l = 0; l < CUDA_LANES && lane == CUDA_LANES; l++)
        if (o->last[l] <= seen[l]) lane = l;
    if (lane == CUDA_LANES) {
        lane = 0;
        for (uint32_t l = 1; l < CUDA_LANES; l++)
            if (o->last[l] < o->last[lane]) lane = l;
    }
    if (o->last[lane] > seen[lane]) {
        needed[lane] = o->last[lane];
        reduce(o, needed, seen);
    }
    if (!add_node(o, lane, seen)) return -1;
    for (uint32_t pass = 0; pass < 2; pass++) /* writes come second: memory may be in a read range
                                               * and in a written range */
        for (uint32_t i = 0; i < count; i++) {
            const uintptr_t begin = (uintptr_t)ranges[i].data, end = begin + ranges[i].size;
            if (ranges[i].written != (pass == 1) || begin == end) continue;
            if (!reserve(o, 3)) return -1;
            if (pass == 1) {
                split(o, begin);
                split(o, end);
                replace(o, find(o, begin), find(o, end),
                        (segment){.begin = begin, .end = end, .writer = o->count});
            } else if (!note_read(o, begin, end, lane, o->count))
                return -1;
        }
    return list(needed, out_before);
}

bool cuda_order_add_barrier(cuda_order *o) {
    if (!add_node(o, 0, o->last)) return false;
    o->barrier = o->count;
    o->segment_count = 0;
    for (int l = 1; l < CUDA_LANES; l++) o->last[l] = 0;
    return true;
}

int cuda_order_ends(const cuda_order *o, uint32_t out_ends[CUDA_LANES]) {
    mark ends[CUDA_LANES], seen[CUDA_LANES];
    memcpy(ends, o->last, sizeof ends);
    reduce(o, ends, seen);
    return list(ends, out_ends);
}
