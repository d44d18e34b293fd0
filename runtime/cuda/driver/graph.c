/* SPDX-License-Identifier: Apache-2.0 */
/* Records a run in CUDA graphs: the whole run, as straight-line code or with branches.
 *
 * The calls of a run are captured from one stream. Before each call, its dependencies are set to
 * the nodes whose memory it needs (order.h), so that other nodes can run concurrently. Captured
 * calls that do not declare their memory, for example branches and loops, are ordered after all
 * previous calls and before all later calls. */
#include "runtime/cuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "runtime/grow.h"

typedef struct node {
    uint32_t first, count; /* range in `all`: the driver's nodes that end this node */
    bool kernel;           /* the node is one generated kernel */
} node;

typedef struct handles {
    cuda_graph_node **v;
    uint32_t count;
    size_t capacity;
} handles;

struct cuda_capture {
    cuda_capture *outer; /* capture of the enclosing graph */
    void *outer_stream;
    uint32_t depth;    /* nesting depth; 0 if `outer` is NULL */
    cuda_order *order; /* NULL if each call depends on the previous call; the members below are then
                        * unused */
    node *nodes;       /* indexed by the node's number in `order` */
    uint32_t count;
    size_t capacity;
    handles all;
    handles set; /* the dependencies that were set for the next call */
    bool early;  /* the current node may start before the previous kernel has ended */
    bool begun;  /* a node has begun and has not ended, or has failed */
};

static bool append(handles *h, cuda_graph_node *const *nodes, size_t count) {
    if (!hlo_heap_grow(&h->v, h->count + count, &h->capacity, sizeof(cuda_graph_node *)))
        return false;
    for (size_t i = 0; i < count; i++) h->v[h->count++] = nodes[i];
    return true;
}

/* ---------------------------------------------------------------------------------------- nodes */

/* Queries the dependencies of the next call. *out_nodes is valid until the next driver call. */
static int ask(const cuda_device *d, cuda_graph_node *const **out_nodes, size_t *out_count) {
    cuda_graph *graph;
    int capturing = 0;
    const int result =
        d->lib->cuStreamGetCaptureInfo(d->stream, &capturing, NULL, &graph, out_nodes, out_count);
    if (!result && capturing != CUDA_CAPTURE_ACTIVE) return CUDA_CAPTURE_INVALIDATED;
    return result;
}

/* Adds the node that was last added to the order. The driver's nodes `ends` end it. */
static int add_node(cuda_capture *c, cuda_graph_node *const *ends, size_t count, bool kernel) {
    if (!hlo_heap_grow(&c->nodes, c->count + 1, &c->capacity, sizeof *c->nodes))
        return CUDA_OUT_OF_MEMORY;
    c->nodes[c->count++] = (node){c->all.count, (uint32_t)count, kernel && count == 1};
    return append(&c->all, ends, count) ? 0 : CUDA_OUT_OF_MEMORY;
}

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

int cuda_node_begin(cuda_device *d, const cuda_range *ranges, uint32_t count) {
    cuda_capture *c = d->capture;
    if (!c || !c->order) return 0;
    if (c->begun) return CUDA_CAPTURE_INVALIDATED;
    c->begun = true;
    uint32_t before[CUDA_LANES];
    /* If calls were captured since the last node, add a node for them that is ordered after all
     * previous nodes and before all later nodes. */
    cuda_graph_node *const *nodes;
    size_t captured;
    int result = ask(d, &nodes, &captured);
    if (result) return result;
    bool set = captured == c->set.count; /* true if the dependencies are still those that the last
                                          * node set */
    for (size_t i = 0; i < captured && set; i++) {
        set = false;
        for (uint32_t k = 0; k < c->set.count && !set; k++) set = c->set.v[k] == nodes[i];
    }
    if (!set) {
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
        /* The new kernel depends on only one kernel, K. Before the new kernel accesses memory, each
         * of its threads executes the instruction griddepcontrol.wait. The kernel may start as soon
         * as each block of K has executed griddepcontrol.launch_dependents, which comes after K's
         * own wait. The wait ends when K has ended and its writes are visible.
         *
         * At that time, all nodes that K depends on have ended, too: K's threads were past their
         * own wait. If K started early, the kernel that K depends on had ended when that wait ended
         * and, by induction, so had that kernel's dependencies. If K did not start early, its edges
         * are full, and K began after its dependencies. If a node of another kind follows K, its
         * edge is full, so it begins when K has ended. Therefore both kinds of edges order memory
         * accesses, and edges that other edges imply can be omitted. */
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

void cuda_copy_within(void *device, void *to, const void *from, size_t size) {
    cuda_device *d = device;
    const cuda_range ranges[] = {{from, size, false}, {to, size, true}};
    if (!size) return;
    int result = cuda_node_begin(d, ranges, 2);
    if (!result)
        result =
            d->lib->cuMemcpyDtoDAsync(cuda_address_of(to), cuda_address_of(from), size, d->stream);
    cuda_note(d, result ? result : cuda_node_end(d, false));
}

void cuda_fill(void *device, void *memory, unsigned char byte, size_t size) {
    cuda_device *d = device;
    const cuda_range range = {memory, size, true};
    cuda_note(d, d->lib->cuCtxSetCurrent(d->context));
    if (!size) return;
    int result = cuda_node_begin(d, &range, 1);
    if (!result) result = d->lib->cuMemsetD8Async(cuda_address_of(memory), byte, size, d->stream);
    cuda_note(d, result ? result : cuda_node_end(d, false));
}

/* ------------------------------------------------------------------------------------- captures */

static void pop(cuda_device *d) {
    cuda_capture *c = d->capture;
    d->capture = c->outer;
    d->stream = c->outer_stream;
    cuda_order_free(c->order);
    hlo_free(c->nodes);
    hlo_free(c->all.v);
    hlo_free(c->set.v);
    hlo_free(c);
}

/* Begins to capture `stream`, which becomes the device's stream. Captures into `graph`, the graph
 * of a conditional node of the current capture, or into a new graph if `graph` is NULL. Returns 0
 * or a CUresult. */
static int begin_capture(cuda_device *d, cuda_stream *stream, cuda_graph *graph) {
    cuda_capture *c = hlo_calloc(1, sizeof *c);
    if (!c) return CUDA_OUT_OF_MEMORY;
    if (d->parallel && !(c->order = cuda_order_new())) {
        hlo_free(c);
        return CUDA_OUT_OF_MEMORY;
    }
    c->outer = d->capture;
    c->outer_stream = d->stream;
    c->depth = c->outer ? c->outer->depth + 1 : 0;
    d->capture = c;
    d->stream = stream;
    const int result = graph ? d->lib->cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                                                   CUDA_CAPTURE_THREAD_LOCAL)
                             : d->lib->cuStreamBeginCapture(stream, CUDA_CAPTURE_THREAD_LOCAL);
    if (result) pop(d);
    return result;
}

/* Ends the innermost capture, which must be nested. Returns 0 or a CUresult. */
static int end_capture_within(cuda_device *d) {
    cuda_graph *graph;
    const int result = d->lib->cuStreamEndCapture(d->stream, &graph);
    pop(d);
    return result;
}

/* Ends all captures and creates the executable graph. Returns 0 or a CUresult. */
static int end_capture(cuda_device *d, cuda_graph_exec **out) {
    cuda_graph *graph = NULL;
    while (d->capture->outer) end_capture_within(d);
    int result = d->lib->cuStreamEndCapture(d->stream, &graph);
    pop(d);
    if (!result) result = d->failed;
    if (!result) result = d->lib->cuGraphInstantiate(out, graph, 0);
    if (graph) d->lib->cuGraphDestroy(graph);
    return result;
}

/* ------------------------------------------------------------------------------------ recording */

enum {
    FIRST_EARLY_SM = 90,       /* the first architecture that can start a kernel before the previous
                                * kernel has ended */
    FIRST_EARLY_DRIVER = 12030 /* the first driver version whose graphs support this */
};

/* An empty kernel, for testing graphs. */
static const char empty_program[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                                    ".visible .entry nothing() { ret; }\n";

static void release_module(cuda_device *device, void *module) {
    device->lib->cuModuleUnload(module);
}

/* Launches empty kernels, each of which depends on the previous kernel. Returns 0 or a CUresult. */
static int try_kernels(cuda_device *d, void *memory) {
    const cuda_range range = {memory, 1, true};
    int result = 0;
    for (int i = 0; i < 2 && !result && d->nothing; i++)
        result = cuda_launch_kernel(d, d->nothing, 1, 1, NULL, &range, 1);
    return result;
}

/* On the first call, tests graph features, and sets the device's `parallel` and `early`. */
static void try_parallel(cuda_device *d) {
    const cuda_library *lib = d->lib;
    const int before = d->failed;
    int version = 0;
    if (d->tried) return;
    d->tried = true;
    if (!lib->cuStreamGetCaptureInfo || !lib->cuStreamUpdateCaptureDependencies) return;
    unsigned char *memory = cuda_allocate(d, 4);
    if (!memory) return;
    cuda_module *module = NULL;
    cuda_function *nothing = NULL;
    const bool loaded = !lib->cuModuleLoadData(&module, empty_program) &&
                        cuda_own(d, module, release_module) &&
                        !lib->cuModuleGetFunction(&nothing, module, "nothing");
    if (loaded) d->nothing = nothing;
    const bool early = loaded && d->sm >= FIRST_EARLY_SM && lib->cuLaunchKernelEx &&
                       !lib->cuDriverGetVersion(&version) && version >= FIRST_EARLY_DRIVER;
    for (int i = early; i >= 0 && !d->parallel; i--) {
        d->failed = 0;
        d->parallel = true;
        d->early = i;
        /* Run a graph with two concurrent nodes, one after both, and kernels after that. */
        static const unsigned char wanted[4] = {1, 2, 1, 2};
        unsigned char found[4] = {0};
        cuda_graph_exec *exec = NULL;
        int result = begin_capture(d, d->stream, NULL);
        if (!result) {
            cuda_fill(d, memory, 1, 1);
            cuda_fill(d, memory + 1, 2, 1);
            cuda_copy_within(d, memory + 2, memory, 2);
            result = try_kernels(d, memory);
            const int made = end_capture(d, &exec);
            if (!result) result = made;
        }
        if (!result) result = lib->cuGraphLaunch(exec, d->stream);
        if (!result) cuda_copy_out(d, found, memory, sizeof found);
        if (!result) result = d->failed;
        if (exec) lib->cuGraphExecDestroy(exec);
        if (result || memcmp(found, wanted, sizeof found) != 0) d->parallel = d->early = false;
    }
    cuda_release(d, memory);
    d->failed = before; /* a failed test only means that the feature is not used */
}

bool cuda_record(void *device) {
    cuda_device *d = device;
    if (!d->graph) return false;
    int result = d->lib->cuCtxSetCurrent(d->context);
    if (!result) try_parallel(d);
    if (!result) result = begin_capture(d, d->stream, NULL);
    cuda_note(d, result);
    return !result;
}

static void release_exec(cuda_device *device, void *exec) {
    device->lib->cuGraphExecDestroy(exec);
}

hlo_status cuda_recorded(void *device, const void **out_graph, const char **why) {
    cuda_device *d = device;
    cuda_graph_exec *exec = NULL;
    if (!d->capture) {
        *why = "is not recording";
        return HLO_INVALID_INPUT;
    }
    int result = end_capture(d, &exec);
    if (result) d->failed = 0; /* the error is reported by this function */
    if (result) return cuda_fails(d, "record the run in a graph", result, why);
    *out_graph = exec;
    return cuda_own(d, exec, release_exec) ? HLO_OK : HLO_OUT_OF_MEMORY;
}

hlo_status cuda_replay(void *device, const void *graph, const char **why) {
    cuda_device *d = device;
    int result = d->lib->cuGraphLaunch((cuda_graph_exec *)graph, d->stream);
    return result ? cuda_fails(d, "launch a graph", result, why) : HLO_OK;
}

enum { FIRST_DRIVER = 12040 }; /* the first driver version that supports conditional nodes */

/* PTX of a kernel that sets the value of a conditional handle to 1 if a choice (hlo_choice) holds,
 * otherwise to 0. The driver compiles the PTX, because only the driver has
 * cudaGraphSetConditional. */
static const char choose_program[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry choose(.param .u64 handle, .param .u64 value, .param .u32 wanted,\n"
    "                       .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %chosen, %wanted, %count, %last, %holds;\n"
    "    .reg .b64 %handle, %value;\n"
    "    .param .b64 to;\n"
    "    .param .b32 set;\n"
    "    ld.param.u64 %handle, [handle];\n"
    "    ld.param.u64 %value, [value];\n"
    "    ld.param.u32 %wanted, [wanted];\n"
    "    ld.param.u32 %count, [count];\n"
    "    cvta.to.global.u64 %value, %value;\n"
    "    setp.eq.u32 %p, %count, 0;\n"
    "    @%p bra PREDICATE;\n"
    "    ld.global.u32 %chosen, [%value];\n"
    "    sub.u32 %last, %count, 1;\n"
    "    min.u32 %chosen, %chosen, %last;\n"
    "    bra.uni SET;\n"
    "PREDICATE:\n"
    "    ld.global.u8 %chosen, [%value];\n"
    "    setp.ne.u32 %p, %chosen, 0;\n"
    "    selp.u32 %chosen, 1, 0, %p;\n"
    "SET:\n"
    "    setp.eq.u32 %p, %chosen, %wanted;\n"
    "    selp.u32 %holds, 1, 0, %p;\n"
    "    st.param.b64 [to], %handle;\n"
    "    st.param.b32 [set], %holds;\n"
    "    call.uni cudaGraphSetConditional, (to, set);\n"
    "    ret;\n"
    "}\n";

/* A branch that is being recorded, on another stream than the enclosing branch. */
typedef struct level {
    cuda_stream *stream;
    uint64_t handle;
    hlo_choice choice;
    bool loop;
} level;

struct cuda_branching {
    bool works;
    cuda_module *module;
    cuda_function *choose;
    level levels[HLO_MAX_BRANCHES];
};

/* ------------------------------------------------------------------------------------- branches */

/* Launches the kernel that sets the level's handle. */
static int choose(const cuda_device *d, level *l) {
    void *arguments[] = {&l->handle, (void *)&l->choice.value, &l->choice.wanted, &l->choice.count};
    return d->lib->cuLaunchKernel(d->branching->choose, 1, 1, 1, 1, 1, 1, 0, d->stream, arguments,
                                  NULL);
}

static int begin_branch(cuda_device *d, const hlo_choice *choice, bool loop) {
    const uint32_t depth = d->capture->depth;
    if (depth == HLO_MAX_BRANCHES) return CUDA_NOT_SUPPORTED;
    level *l = &d->branching->levels[depth];
    l->choice = *choice;
    l->loop = loop;
    const cuda_library *lib = d->lib;
    cuda_graph *graph = NULL;
    cuda_graph_node *added = NULL, *const *before = NULL;
    int capturing = 0;
    size_t count = 0;
    cuda_node_parameters parameters = {.type = CUDA_NODE_CONDITIONAL};
    int result = lib->cuStreamGetCaptureInfo(d->stream, &capturing, NULL, &graph, &before, &count);
    if (!result) result = lib->cuGraphConditionalHandleCreate(&l->handle, graph, d->context, 0, 0);
    if (!result) result = choose(d, l);
    if (!result)
        result = lib->cuStreamGetCaptureInfo(d->stream, &capturing, NULL, &graph, &before, &count);
    parameters.u.conditional = (cuda_conditional_parameters){
        .handle = l->handle,
        .type = l->loop ? CUDA_CONDITIONAL_WHILE : CUDA_CONDITIONAL_IF,
        .size = 1,
        .context = d->context};
    if (!result) result = lib->cuGraphAddNode(&added, graph, before, count, &parameters);
    if (!result)
        result = lib->cuStreamUpdateCaptureDependencies(d->stream, &added, 1,
                                                        CUDA_CAPTURE_SET_DEPENDENCIES);
    return result ? result : begin_capture(d, l->stream, parameters.u.conditional.graphs[0]);
}

/* Ends the innermost branch. At the end of a loop, sets its handle again. Also does so in an empty
 * branch, because the driver hangs on empty branches before CUDA 12.8. */
static int end_branch(cuda_device *d) {
    level *l = &d->branching->levels[d->capture->depth - 1];
    cuda_graph *graph;
    cuda_graph_node *const *before;
    int capturing, result = 0;
    size_t count = 0;
    if (l->loop ||
        (!d->lib->cuStreamGetCaptureInfo(d->stream, &capturing, NULL, &graph, &before, &count) &&
         !count))
        result = choose(d, l);
    const int ended = end_capture_within(d);
    return result ? result : ended;
}

hlo_status cuda_branch_begin(void *device, const hlo_choice *choice, bool loop, const char **why) {
    const int result = begin_branch(device, choice, loop);
    return result ? cuda_fails(device, "record a branch", result, why) : HLO_OK;
}

hlo_status cuda_branch_end(void *device, const char **why) {
    const int result = end_branch(device);
    return result ? cuda_fails(device, "record a branch", result, why) : HLO_OK;
}

/* Runs a graph with kernels and a loop of zero iterations with a branch. Returns a CUresult. */
static int try_branches(cuda_device *d, void *predicate) {
    const hlo_choice choice = {predicate, 1, 0};
    cuda_graph_exec *exec = NULL;
    cuda_fill(d, predicate, 0, 1);
    int result = begin_capture(d, d->stream, NULL);
    if (result) return result;
    result = try_kernels(d, predicate);
    if (!result) result = begin_branch(d, &choice, true);
    if (!result) result = begin_branch(d, &choice, false);
    if (!result) cuda_fill(d, predicate, 1, 1);
    if (!result) result = end_branch(d);
    if (!result) result = end_branch(d);
    const int made = end_capture(d, &exec);
    if (!result) result = made;
    if (!result) result = d->lib->cuGraphLaunch(exec, d->stream);
    if (!result) result = d->lib->cuStreamSynchronize(d->stream);
    if (exec) d->lib->cuGraphExecDestroy(exec);
    return result;
}

static void release_branching(cuda_device *device, void *branching) {
    cuda_branching *b = branching;
    for (uint32_t i = 0; i < HLO_MAX_BRANCHES; i++)
        if (b->levels[i].stream) device->lib->cuStreamDestroy(b->levels[i].stream);
    if (b->module) device->lib->cuModuleUnload(b->module);
    hlo_free(b);
}

/* Creates the resources for branches, and tests branches. Returns 0 or a CUresult. */
static int prepare(cuda_device *d) {
    const cuda_library *lib = d->lib;
    cuda_branching *b = d->branching;
    int version = 0, result = lib->cuCtxSetCurrent(d->context);
    if (!result) result = lib->cuDriverGetVersion(&version);
    if (!result && (version < FIRST_DRIVER || !lib->cuStreamGetCaptureInfo ||
                    !lib->cuStreamUpdateCaptureDependencies || !lib->cuStreamBeginCaptureToGraph ||
                    !lib->cuGraphConditionalHandleCreate || !lib->cuGraphAddNode))
        result = CUDA_NOT_SUPPORTED;
    if (!result) result = lib->cuModuleLoadData(&b->module, choose_program);
    if (!result) result = lib->cuModuleGetFunction(&b->choose, b->module, "choose");
    for (uint32_t i = 0; i < HLO_MAX_BRANCHES && !result; i++)
        result = lib->cuStreamCreate(&b->levels[i].stream, CUDA_STREAM_NON_BLOCKING);
    void *predicate = result ? NULL : cuda_allocate(d, 1);
    if (!predicate) return result ? result : CUDA_NOT_SUPPORTED;
    result = try_branches(d, predicate);
    if (result && d->early) { /* branches and early starts may work only separately */
        d->failed = 0;
        d->early = false;
        result = try_branches(d, predicate);
        d->early = result != 0;
    }
    cuda_release(d, predicate);
    return result;
}

bool cuda_branches(void *device) {
    cuda_device *d = device;
    if (d->branching) return d->branching->works;
    cuda_branching *b = hlo_calloc(1, sizeof *b);
    if (!b || !cuda_own(d, b, release_branching)) return false;
    d->branching = b;
    try_parallel(d);
    const int before = d->failed;
    b->works = !prepare(d) && !d->failed;
    d->failed = before; /* without branches, the host runs the control flow */
    return b->works;
}
