/* libcuda, stood in for: streams and graphs, with conditional nodes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/driver/graph.h"
#include "standin.h"

typedef struct node {
    struct node *next;
    void (*run)(void *argument);
    max_align_t argument[];
} node;

/* `unset`: a node was added to it, and is not yet what the capture goes on from. */
struct cuda_graph {
    node *first, **last;
    bool unset;
};

struct cuda_graph_exec {
    node *first;
};

struct cuda_stream {
    cuda_graph *captured; /* NULL: nothing is captured */
    bool invalid, to_graph;
    cuda_stream *outer; /* captured before it, and still */
};

static cuda_stream *capturing; /* the innermost */

int standin_uncaptured(void) {
    if (!capturing) return 0;
    capturing->invalid = true;
    return CUDA_CAPTURE_UNSUPPORTED;
}

static node *node_new(void (*run)(void *), const void *argument, size_t size) {
    node *n = calloc(1, sizeof *n + size);
    if (!n) return NULL;
    n->run = run;
    memcpy(n->argument, argument, size);
    return n;
}

int standin_enqueue(cuda_stream *stream, void (*run)(void *argument), const void *argument,
                    size_t size) {
    node *n = node_new(run, argument, size);
    if (!n) return CUDA_OUT_OF_MEMORY;
    const bool special = (uintptr_t)stream <= 2; /* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
    if (!special && stream->captured) {
        if (stream->captured->unset) standin_note("a node is not among the dependencies");
        *stream->captured->last = n;
        stream->captured->last = &n->next;
        return 0;
    }
    free(n);
    return standin_later(stream, run, argument, size);
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

/* A body that is executed if, or as long as, its handle's value is not 0. */
typedef struct conditional {
    uint64_t handle;
    int loop;
    cuda_graph *body;
} conditional;

static void run_conditional(void *argument);

static void free_nodes(node *first) {
    while (first) {
        node *next = first->next;
        if (first->run == run_conditional) {
            conditional *c = (void *)first->argument;
            free_nodes(c->body->first);
            free(c->body);
        }
        free(first);
        first = next;
    }
}

int cuStreamDestroy(cuda_stream *stream) {
    ENTER("cuStreamDestroy");
    if (stream->captured) standin_note("destroyed while it captures");
    standin_finish(standin_end_of(stream));
    if (stream->captured && !stream->to_graph) {
        free_nodes(stream->captured->first);
        free(stream->captured);
    }
    if (capturing == stream) capturing = stream->outer;
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
    stream->captured = calloc(1, sizeof *stream->captured);
    if (!stream->captured) return CUDA_OUT_OF_MEMORY;
    stream->captured->last = &stream->captured->first;
    stream->invalid = stream->to_graph = false;
    stream->outer = NULL;
    capturing = stream;
    return 0;
}

int cuStreamEndCapture(cuda_stream *stream, cuda_graph **graph) {
    *graph = NULL;
    if (!stream->captured) return CUDA_INVALID_VALUE;
    cuda_graph *captured = stream->captured;
    if (capturing != stream) standin_note("captures end in another order");
    stream->captured = NULL;
    capturing = stream->outer;
    int failed = standin_enter("cuStreamEndCapture");
    if (failed || stream->invalid) {
        if (capturing) capturing->invalid = true;
        if (!stream->to_graph) {
            free_nodes(captured->first);
            free(captured);
        }
        return failed ? failed : CUDA_CAPTURE_UNSUPPORTED + 1;
    }
    *graph = captured;
    return 0;
}

int cuGraphInstantiate(cuda_graph_exec **exec, cuda_graph *graph, unsigned long long flags) {
    long nodes = 0;
    for (const node *n = graph->first; n; n = n->next) nodes++;
    ENTER("cuGraphInstantiate %ld nodes, %llu", nodes, flags);
    *exec = calloc(1, sizeof **exec);
    if (!*exec) return CUDA_OUT_OF_MEMORY;
    (*exec)->first = graph->first;
    graph->first = NULL;
    return 0;
}

static void run_exec(void *argument) {
    const cuda_graph_exec *exec = *(cuda_graph_exec **)argument;
    for (node *n = exec->first; n; n = n->next) n->run(n->argument);
}

int cuGraphLaunch(cuda_graph_exec *exec, cuda_stream *stream) {
    ENTER("cuGraphLaunch");
    if (capturing) return standin_uncaptured();
    return standin_later(stream, run_exec, &exec, sizeof exec);
}

int cuGraphExecDestroy(cuda_graph_exec *exec) {
    standin_finish_all();
    free_nodes(exec->first);
    free(exec);
    ENTER("cuGraphExecDestroy");
    return 0;
}

int cuGraphDestroy(cuda_graph *graph) {
    free_nodes(graph->first);
    free(graph);
    ENTER("cuGraphDestroy");
    return 0;
}

/* ---------------------------------------------------------------------------- conditional nodes */

enum { HANDLES = 1 << 14 };

static struct {
    const cuda_graph *graph; /* of its node */
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
        for (node *n = c->body->first; n; n = n->next) n->run(n->argument);
        if (!c->loop) return;
    }
}

int cuStreamGetCaptureInfo(cuda_stream *stream, int *capturing_now, uint64_t *id,
                           cuda_graph **graph, cuda_graph_node *const **nodes, size_t *count) {
    ENTER("cuStreamGetCaptureInfo");
    if (id) *id = 1;
    *capturing_now = stream->captured != NULL;
    *graph = stream->captured;
    *nodes = NULL;
    *count = 0;
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
    (void)before;
    ENTER("cuGraphAddNode %d %s", parameters->type, p->type ? "while" : "if");
    if (parameters->type != CUDA_NODE_CONDITIONAL || parameters->reserved2 || count ||
        p->type < 0 || p->type > 1 || p->size != 1 || p->context != standin_context() ||
        !p->handle || p->handle > handle_count || handles[p->handle - 1].used ||
        handles[p->handle - 1].graph != graph)
        return CUDA_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (parameters->reserved0[i]) return CUDA_INVALID_VALUE;
    conditional c = {p->handle, p->type, calloc(1, sizeof *c.body)};
    node *n = c.body ? node_new(run_conditional, &c, sizeof c) : NULL;
    if (!n) return CUDA_OUT_OF_MEMORY;
    c.body->last = &c.body->first;
    conditional *kept = (void *)n->argument;
    p->graphs = &kept->body;
    handles[p->handle - 1].used = true;
    *graph->last = n;
    graph->last = &n->next;
    graph->unset = true;
    *added = (cuda_graph_node *)n;
    return 0;
}

int cuStreamUpdateCaptureDependencies(cuda_stream *stream, cuda_graph_node **nodes, size_t count,
                                      unsigned flags) {
    ENTER("cuStreamUpdateCaptureDependencies %zu, %u", count, flags);
    if (!stream->captured || count != 1 || flags != 1 || !*nodes) return CUDA_INVALID_VALUE;
    stream->captured->unset = false;
    return 0;
}

int cuStreamBeginCaptureToGraph(cuda_stream *stream, cuda_graph *graph,
                                cuda_graph_node *const *nodes, const void *edges, size_t count,
                                int mode) {
    (void)nodes;
    (void)edges;
    ENTER("cuStreamBeginCaptureToGraph %d", mode);
    if (stream->captured || graph->first || count) return CUDA_INVALID_VALUE;
    stream->captured = graph;
    stream->invalid = false;
    stream->to_graph = true;
    stream->outer = capturing;
    capturing = stream;
    return 0;
}
