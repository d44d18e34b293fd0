/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the fake libcuda: streams, and graphs whose nodes run in any order that edges allow. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/driver/graph.h"
#include "standin.h"

struct cuda_graph_node {
    cuda_graph_node *next; /* next node of the graph, in insertion order */
    const cuda_graph *graph;
    standin_kind kind;
    void (*run)(void *argument);
    cuda_graph_node **behind; /* the nodes that depend on this node */
    size_t behind_count;
    size_t before_count, waits; /* number of dependencies, and of those that are not complete */
    long number, depth;         /* index in the graph; length of the longest chain to this node */
    max_align_t argument[];
};

struct cuda_graph {
    cuda_graph_node *first, **last;
    long nodes, edges;
};

struct cuda_graph_exec {
    cuda_graph *graph;
};

struct cuda_stream {
    cuda_graph *captured;   /* NULL if not capturing */
    cuda_graph_node **ends; /* dependencies of the next node */
    size_t end_count;
    bool invalid, to_graph;
    cuda_stream *outer; /* the stream of the enclosing capture */
};

static _Thread_local cuda_stream *capturing; /* the innermost capture of this thread */

int standin_uncaptured(void) {
    if (!capturing) return 0;
    capturing->invalid = true;
    return CUDA_CAPTURE_UNSUPPORTED;
}

static cuda_graph *graph_new(void) {
    cuda_graph *graph = calloc(1, sizeof *graph);
    if (graph) graph->last = &graph->first;
    return graph;
}

static cuda_graph_node **copy_nodes(cuda_graph_node *const *nodes, size_t count) {
    cuda_graph_node **copy = malloc((count + 1) * sizeof *copy);
    if (copy && count) memcpy(copy, nodes, count * sizeof *copy);
    return copy;
}

static bool set_ends(cuda_stream *stream, cuda_graph_node *const *nodes, size_t count) {
    cuda_graph_node **ends = copy_nodes(nodes, count);
    if (!ends) return false;
    free(stream->ends);
    stream->ends = ends;
    stream->end_count = count;
    return true;
}

/* Adds an edge. Returns false if memory runs out. */
static bool add_edge(cuda_graph_node *from, cuda_graph_node *to) {
    cuda_graph_node **behind =
        realloc(from->behind, (from->behind_count + 1) * sizeof(cuda_graph_node *));
    if (!behind) return false;
    from->behind = behind;
    from->behind[from->behind_count++] = to;
    to->before_count++;
    if (to->depth <= from->depth) to->depth = from->depth + 1;
    return true;
}

/* Adds a node. Returns NULL if memory runs out. */
static cuda_graph_node *add_node(cuda_graph *graph, standin_kind kind, void (*run)(void *),
                                 const void *argument, size_t size, cuda_graph_node *const *before,
                                 size_t count) {
    cuda_graph_node *n = calloc(1, sizeof *n + size);
    if (!n) return NULL;
    n->graph = graph;
    n->kind = kind;
    n->run = run;
    memcpy(n->argument, argument, size);
    n->number = graph->nodes++;
    n->depth = 1;
    *graph->last = n;
    graph->last = &n->next;
    graph->edges += (long)count;
    for (size_t i = 0; i < count; i++)
        if (!add_edge(before[i], n)) return NULL;
    return n;
}

int standin_enqueue(cuda_stream *stream, standin_kind kind, void (*run)(void *argument),
                    const void *argument, size_t size) {
    const bool special = (uintptr_t)stream <= 2; /* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
    if (special || !stream->captured) return standin_later(stream, run, argument, size);
    if (kind == STANDIN_EARLY &&
        (stream->end_count != 1 || stream->ends[0]->kind == STANDIN_OTHER)) {
        standin_note("an early kernel does not depend on one kernel");
        return CUDA_INVALID_VALUE;
    }
    cuda_graph_node *n =
        add_node(stream->captured, kind, run, argument, size, stream->ends, stream->end_count);
    return n && set_ends(stream, &n, 1) ? 0 : CUDA_OUT_OF_MEMORY;
}

/* ------------------------------------------------------------------------------------ launching */

/* Chooses the next of the ready nodes according to HLO_STANDIN_ORDER. */
static size_t choose(cuda_graph_node *const *ready, size_t count) {
    static uint64_t state;
    static long seed = -1;
    size_t best = 0;
    if (seed < 0) {
        const char *chosen = getenv("HLO_STANDIN_ORDER");
        state = (uint64_t)(seed = chosen ? atol(chosen) : 1);
    }
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (seed > 1) return (state >> 33) % count;
    for (size_t i = 1; i < count; i++)
        if ((ready[i]->number > ready[best]->number) == (seed == 1)) best = i;
    return best;
}

/* Runs the nodes one after another. Kernels that may start early begin before their
 * predecessors end. */
static void run_graph(const cuda_graph *graph) {
    cuda_graph_node **ready = malloc(((size_t)graph->nodes + 1) * sizeof *ready);
    size_t count = 0;
    if (!ready) abort();
    for (cuda_graph_node *n = graph->first; n; n = n->next)
        if (!(n->waits = n->before_count)) ready[count++] = n;
    while (count) {
        const size_t chosen = choose(ready, count);
        cuda_graph_node *n = ready[chosen];
        ready[chosen] = ready[--count];
        for (size_t i = 0; i < n->behind_count; i++)
            if (n->behind[i]->kind == STANDIN_EARLY) standin_rehearse(n->behind[i]->argument);
        n->run(n->argument);
        for (size_t i = 0; i < n->behind_count; i++)
            if (!--n->behind[i]->waits) ready[count++] = n->behind[i];
    }
    free(ready);
}

int cuStreamCreate(cuda_stream **stream, unsigned flags) {
    ENTER("cuStreamCreate %u", flags);
    *stream = calloc(1, sizeof **stream);
    return *stream ? 0 : CUDA_OUT_OF_MEMORY;
}

int cuStreamGetCtx(cuda_stream *stream, cuda_context **context) {
    (void)stream;
    ENTER("cuStreamGetCtx");
    static int other;
    *context = getenv("HLO_STANDIN_CONTEXT") ? (cuda_context *)&other : standin_context();
    return 0;
}

/* A body that is executed if (or while) the value of its handle is not 0. */
typedef struct conditional {
    uint64_t handle;
    int loop;
    cuda_graph *body;
} conditional;

static void run_conditional(void *argument);

/* Returns true if a body in the graph has no nodes: before CUDA 12.8, launches of such graphs
 * hang. */
static bool hangs(const cuda_graph *graph) {
    for (const cuda_graph_node *n = graph->first; n; n = n->next) {
        const conditional *c = (const void *)n->argument;
        if (n->run == run_conditional && (!c->body->first || hangs(c->body))) return true;
    }
    return false;
}

static void free_graph(cuda_graph *graph) {
    while (graph->first) {
        cuda_graph_node *n = graph->first;
        graph->first = n->next;
        const conditional *c = (const void *)n->argument;
        if (n->run == run_conditional) free_graph(c->body);
        free(n->behind);
        free(n);
    }
    free(graph);
}

int cuStreamDestroy(cuda_stream *stream) {
    ENTER("cuStreamDestroy");
    if (stream->captured) standin_note("destroyed while it captures");
    standin_finish(standin_end_of(stream));
    if (stream->captured && !stream->to_graph) free_graph(stream->captured);
    if (capturing == stream) capturing = stream->outer;
    free(stream->ends);
    free(stream);
    return 0;
}

int cuStreamSynchronize(cuda_stream *stream) {
    ENTER("cuStreamSynchronize");
    standin_finish(standin_end_of(stream));
    standin_await();
    return standin_uncaptured();
}

int cuStreamWaitEvent(cuda_stream *stream, cuda_event *event, unsigned flags) {
    ENTER("cuStreamWaitEvent %u", flags);
    const int result = standin_uncaptured();
    return result ? result : standin_wait_later(stream, standin_place_of(event));
}

int cuStreamBeginCapture(cuda_stream *stream, int mode) {
    ENTER("cuStreamBeginCapture %d", mode);
    if (capturing) return standin_uncaptured();
    if (!set_ends(stream, NULL, 0) || !(stream->captured = graph_new())) return CUDA_OUT_OF_MEMORY;
    stream->invalid = stream->to_graph = false;
    stream->outer = NULL;
    capturing = stream;
    return 0;
}

int cuStreamEndCapture(cuda_stream *stream, cuda_graph **graph) {
    LOCK;
    *graph = NULL;
    if (!stream->captured) return CUDA_INVALID_VALUE;
    cuda_graph *captured = stream->captured;
    if (capturing != stream) standin_note("captures end in another order");
    stream->captured = NULL;
    capturing = stream->outer;
    int failed = standin_enter("cuStreamEndCapture");
    if (failed || stream->invalid) {
        if (capturing) capturing->invalid = true;
        if (!stream->to_graph) free_graph(captured);
        return failed ? failed : CUDA_CAPTURE_INVALIDATED;
    }
    *graph = captured;
    return 0;
}

int cuGraphInstantiate(cuda_graph_exec **exec, cuda_graph *graph, unsigned long long flags) {
    long early = 0, depth = 0;
    for (const cuda_graph_node *n = graph->first; n; n = n->next) {
        early += n->kind == STANDIN_EARLY;
        if (n->depth > depth) depth = n->depth;
    }
    ENTER("cuGraphInstantiate %ld nodes, %ld deep, %ld edges, %ld early, %llu", graph->nodes, depth,
          graph->edges, early, flags);
    if (hangs(graph)) return CUDA_INVALID_VALUE;
    *exec = calloc(1, sizeof **exec);
    if (!*exec || !((*exec)->graph = graph_new())) return CUDA_OUT_OF_MEMORY;
    cuda_graph *copy = (*exec)->graph, empty = *copy;
    *copy = *graph;
    *graph = empty;
    graph->last = &graph->first;
    return 0;
}

static void run_exec(void *argument) {
    const cuda_graph_exec *exec = *(cuda_graph_exec **)argument;
    run_graph(exec->graph);
}

int cuGraphLaunch(cuda_graph_exec *exec, cuda_stream *stream) {
    ENTER("cuGraphLaunch");
    if (capturing) return standin_uncaptured();
    return standin_later(stream, run_exec, &exec, sizeof exec);
}

int cuGraphExecDestroy(cuda_graph_exec *exec) {
    LOCK;
    standin_finish_all();
    free_graph(exec->graph);
    free(exec);
    ENTER("cuGraphExecDestroy");
    return 0;
}

int cuGraphDestroy(cuda_graph *graph) {
    free_graph(graph);
    ENTER("cuGraphDestroy");
    return 0;
}

/* ---------------------------------------------------------------------------- conditional nodes */

enum { HANDLES = 1 << 14 };

static struct {
    const cuda_graph *graph; /* the graph that contains the node */
    unsigned value;
    bool used;
} handles[HANDLES];
static uint64_t handle_count;

void standin_set_conditional(uint64_t handle, unsigned value) {
    if (handle == 0 || handle > handle_count)
        standin_note("a value of no handle");
    else
        handles[handle - 1].value = value;
}

static void run_conditional(void *argument) {
    const conditional *c = argument;
    while (handles[c->handle - 1].value) {
        run_graph(c->body);
        if (!c->loop) return;
    }
}

int cuStreamGetCaptureInfo(cuda_stream *stream, int *capturing_now, uint64_t *id,
                           cuda_graph **graph, cuda_graph_node *const **nodes, size_t *count) {
    ENTER("cuStreamGetCaptureInfo");
    if (id) *id = 1;
    *capturing_now = stream->captured != NULL;
    *graph = stream->captured;
    *nodes = stream->ends;
    *count = stream->end_count;
    return 0;
}

int cuGraphConditionalHandleCreate(uint64_t *handle, cuda_graph *graph, cuda_context *context,
                                   unsigned value, unsigned flags) {
    ENTER("cuGraphConditionalHandleCreate %u, %u", value, flags);
    if (context != standin_context() || flags > 1) return CUDA_INVALID_VALUE;
    if (handle_count == HANDLES) return CUDA_OUT_OF_MEMORY;
    handles[handle_count].graph = graph;
    handles[handle_count].value = 0xa5;
    *handle = ++handle_count;
    return 0;
}

int cuGraphAddNode(cuda_graph_node **added, cuda_graph *graph, cuda_graph_node *const *before,
                   size_t count, struct cuda_node_parameters *parameters) {
    cuda_conditional_parameters *p = &parameters->u.conditional;
    ENTER("cuGraphAddNode %d %s", parameters->type, p->type ? "while" : "if");
    if (parameters->type != CUDA_NODE_CONDITIONAL || parameters->reserved2 || p->type < 0 ||
        p->type > 1 || p->size != 1 || p->context != standin_context() || !p->handle ||
        p->handle > handle_count || handles[p->handle - 1].used ||
        handles[p->handle - 1].graph != graph)
        return CUDA_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (parameters->reserved0[i]) return CUDA_INVALID_VALUE;
    conditional c = {p->handle, p->type, graph_new()};
    if (!c.body) return CUDA_OUT_OF_MEMORY;
    *added = add_node(graph, STANDIN_OTHER, run_conditional, &c, sizeof c, before, count);
    if (!*added) return CUDA_OUT_OF_MEMORY;
    conditional *kept = (void *)(*added)->argument;
    p->graphs = &kept->body;
    handles[p->handle - 1].used = true;
    return 0;
}

int cuStreamUpdateCaptureDependencies(cuda_stream *stream, cuda_graph_node **nodes, size_t count,
                                      unsigned flags) {
    ENTER("cuStreamUpdateCaptureDependencies %zu, %u", count, flags);
    if (!stream->captured || flags != CUDA_CAPTURE_SET_DEPENDENCIES) return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (nodes[i]->graph != stream->captured) return CUDA_INVALID_VALUE;
    return set_ends(stream, nodes, count) ? 0 : CUDA_OUT_OF_MEMORY;
}

int cuStreamBeginCaptureToGraph(cuda_stream *stream, cuda_graph *graph,
                                cuda_graph_node *const *nodes, const void *edges, size_t count,
                                int mode) {
    (void)nodes;
    (void)edges;
    ENTER("cuStreamBeginCaptureToGraph %d", mode);
    if (stream->captured || graph->first || count) return CUDA_INVALID_VALUE;
    if (!set_ends(stream, NULL, 0)) return CUDA_OUT_OF_MEMORY;
    stream->captured = graph;
    stream->invalid = false;
    stream->to_graph = true;
    stream->outer = capturing;
    capturing = stream;
    return 0;
}
