/* SPDX-License-Identifier: Apache-2.0 */
/* Captures calls in CUDA graphs. The calls of a run are captured from one stream. Before each call,
 * its dependencies are set to the nodes whose memory it needs (order.h), so that others can run
 * concurrently. Captured calls without information about their memory depend on everything before,
 * and everything after depends on them: for example, branches and loops (branch.c). */
#include "runtime/cuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    uint32_t first, count; /* handles after which the node has no others */
    bool kernel;           /* it is one generated kernel */
} node;

typedef struct handles {
    cuda_graph_node **v;
    uint32_t count, capacity;
} handles;

struct cuda_capture {
    cuda_capture *outer; /* of the enclosing graph */
    void *outer_stream;
    uint32_t depth; /* 0: `outer` is NULL */
    cuda_order
        *order;  /* NULL: each call depends on the previous one; the members below are unused */
    node *nodes; /* by number in `order` */
    uint32_t count, capacity;
    handles all;
    handles set; /* dependencies of the next call, if it does not declare its memory */
    bool early;  /* the node that was begun may start before the previous kernel has ended */
    bool begun;  /* a node was begun, and has not ended or has failed */
};

static bool append(handles *h, cuda_graph_node *const *nodes, size_t count) {
    if (h->count + count > h->capacity) {
        const size_t capacity = 2 * (h->count + count) + 16;
        cuda_graph_node **v = realloc(h->v, capacity * sizeof(cuda_graph_node *));
        if (!v) return false;
        h->v = v;
        h->capacity = (uint32_t)capacity;
    }
    for (size_t i = 0; i < count; i++) h->v[h->count++] = nodes[i];
    return true;
}

/* ---------------------------------------------------------------------------------------- nodes */

/* Queries the dependencies of the next call; valid until the next call of the driver. */
static int ask(const cuda_device *d, cuda_graph_node *const **out_nodes, size_t *out_count) {
    cuda_graph *graph;
    int capturing = 0;
    const int result =
        d->lib->cuStreamGetCaptureInfo(d->stream, &capturing, NULL, &graph, out_nodes, out_count);
    if (!result && capturing != CUDA_CAPTURE_ACTIVE) return CUDA_CAPTURE_INVALIDATED;
    return result;
}

/* Adds the node that was last added to the order, which was captured up to `ends`. */
static int add_node(cuda_capture *c, cuda_graph_node *const *ends, size_t count, bool kernel) {
    if (c->count == c->capacity) {
        const uint32_t capacity = c->capacity ? 2 * c->capacity : 64;
        node *nodes = realloc(c->nodes, capacity * sizeof *nodes);
        if (!nodes) return CUDA_OUT_OF_MEMORY;
        c->nodes = nodes;
        c->capacity = capacity;
    }
    c->nodes[c->count++] = (node){c->all.count, (uint32_t)count, kernel && count == 1};
    return append(&c->all, ends, count) ? 0 : CUDA_OUT_OF_MEMORY;
}

/* Makes the next call depend on these nodes. */
static int set_nodes(const cuda_device *d, const uint32_t *numbers, int count) {
    cuda_capture *c = d->capture;
    c->set.count = 0;
    for (int i = 0; i < count; i++) {
        const node *n = &c->nodes[numbers[i]];
        if (!append(&c->set, c->all.v + n->first, n->count)) return CUDA_OUT_OF_MEMORY;
    }
    return d->lib->cuStreamUpdateCaptureDependencies(d->stream, c->set.v, c->set.count,
                                                     CUDA_CAPTURE_SET_DEPENDENCIES);
}

static bool is_set(const handles *set, cuda_graph_node *const *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < set->count && !found; k++) found = set->v[k] == nodes[i];
        if (!found) return false;
    }
    return count == set->count;
}

int cuda_node_begin(cuda_device *d, const cuda_range *ranges, uint32_t count) {
    cuda_capture *c = d->capture;
    if (!c || !c->order) return 0;
    if (c->begun) return CUDA_CAPTURE_INVALIDATED;
    c->begun = true;
    uint32_t before[CUDA_LANES];
    /* Calls captured since the last node become a node that is ordered after all previous nodes and
     * before all later ones. */
    cuda_graph_node *const *nodes;
    size_t captured;
    int result = ask(d, &nodes, &captured);
    if (result) return result;
    if (!is_set(&c->set, nodes, captured)) {
        if (!cuda_order_add_barrier(c->order)) return CUDA_OUT_OF_MEMORY;
        result = add_node(c, nodes, captured, false);
        if (result) return result;
    }
    const int found = cuda_order_add(c->order, ranges, count, before);
    if (found < 0) return CUDA_OUT_OF_MEMORY;
    c->early = d->early && !c->outer && found == 1 && c->nodes[before[0]].kernel;
    return set_nodes(d, before, found);
}

int cuda_node_end(cuda_device *d, bool kernel) {
    cuda_capture *c = d->capture;
    if (!c || !c->order) return 0;
    cuda_graph_node *const *nodes;
    size_t count;
    uint32_t ends[CUDA_LANES];
    c->early = false;
    int result = ask(d, &nodes, &count);
    if (!result) result = add_node(c, nodes, count, kernel);
    if (!result) result = set_nodes(d, ends, cuda_order_ends(c->order, ends));
    c->begun = result != 0;
    return result;
}

int cuda_launch_kernel(cuda_device *d, void *function, unsigned grid, unsigned block,
                       void **arguments, const cuda_range *ranges, uint32_t count) {
    int result = cuda_node_begin(d, ranges, count);
    if (result) return result;
    if (d->capture && d->capture->early) {
        /* The kernel waits for the previous kernels, by the instruction griddepcontrol.wait in each
         * of its threads, before it accesses memory. It may start as soon as each block of the one
         * kernel that it depends on, K, has executed griddepcontrol.launch_dependents, which comes
         * after K's own wait. The wait ends when K has ended and its writes are visible.
         *
         * Everything before K has then ended, too. K has ended, so its threads were past their
         * wait. If K started early itself, the kernel that K depends on had ended, and by induction
         * that kernel's dependencies. If K did not start early, its edges are full: K began after
         * its dependencies. The same holds for a node of another kind after K, whose edge is full:
         * it begins when K has ended. Therefore an edge of either kind orders memory, and edges
         * that are implied by others can be omitted. */
        cuda_launch_attribute attribute = {.id = CUDA_LAUNCH_PROGRAMMATIC, .value.allowed = 1};
        const cuda_launch_config config = {.grid = {grid, 1, 1},
                                           .block = {block, 1, 1},
                                           .stream = d->stream,
                                           .attributes = &attribute,
                                           .attribute_count = 1};
        result = d->lib->cuLaunchKernelEx(&config, function, arguments, NULL);
    } else
        result = d->lib->cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, d->stream, arguments,
                                        NULL);
    return result ? result : cuda_node_end(d, true);
}

/* ------------------------------------------------------------------------------------- captures */

/* Begins a nested capture. Returns NULL if memory runs out. */
static cuda_capture *push(cuda_device *d) {
    cuda_capture *c = calloc(1, sizeof *c);
    if (c && d->parallel && !(c->order = cuda_order_new())) {
        free(c);
        return NULL;
    }
    if (!c) return NULL;
    c->outer = d->capture;
    c->outer_stream = d->stream;
    c->depth = c->outer ? c->outer->depth + 1 : 0;
    return d->capture = c;
}

static void pop(cuda_device *d) {
    cuda_capture *c = d->capture;
    d->capture = c->outer;
    d->stream = c->outer_stream;
    cuda_order_free(c->order);
    free(c->nodes);
    free(c->all.v);
    free(c->set.v);
    free(c);
}

int cuda_capture_begin(cuda_device *d) {
    if (!push(d)) return CUDA_OUT_OF_MEMORY;
    const int result = d->lib->cuStreamBeginCapture(d->stream, CUDA_CAPTURE_THREAD_LOCAL);
    if (result) pop(d);
    return result;
}

int cuda_capture_begin_within(cuda_device *d, cuda_stream *stream, cuda_graph *graph) {
    if (!push(d)) return CUDA_OUT_OF_MEMORY;
    const int result = d->lib->cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                                           CUDA_CAPTURE_THREAD_LOCAL);
    if (result)
        pop(d);
    else
        d->stream = stream;
    return result;
}

uint32_t cuda_capture_depth(const cuda_device *d) {
    return d->capture->depth;
}

int cuda_capture_end_within(cuda_device *d) {
    cuda_graph *graph;
    const int result = d->lib->cuStreamEndCapture(d->stream, &graph);
    pop(d);
    return result;
}

int cuda_capture_end(cuda_device *d, cuda_graph_exec **out) {
    cuda_graph *graph = NULL;
    while (d->capture->outer) cuda_capture_end_within(d);
    int result = d->lib->cuStreamEndCapture(d->stream, &graph);
    pop(d);
    if (!result) result = d->failed;
    if (!result) result = d->lib->cuGraphInstantiate(out, graph, 0);
    if (graph) d->lib->cuGraphDestroy(graph);
    return result;
}
