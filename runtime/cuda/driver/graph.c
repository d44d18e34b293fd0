/* Recording in CUDA graphs, with conditional nodes where the driver has them. */
#include "runtime/cuda/driver/graph.h"

#include <stdlib.h>

#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"

enum { FIRST_DRIVER = 12040 }; /* that has all of them */

/* Sets the value of a conditional handle: whether a choice holds (hlo_choice). The driver compiles
 * it: cudaGraphSetConditional is a function of the driver's alone. */
static const char program[] =
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

/* A branch being recorded: on a stream of its own, as the one around it is captured as well. */
typedef struct level {
    cuda_stream *stream;
    void *outer; /* device->stream around it */
    uint64_t handle;
    hlo_choice choice;
    bool loop;
} level;

struct cuda_branching {
    bool works;
    cuda_module *module;
    cuda_function *choose;
    uint32_t depth;
    level levels[HLO_MOST_BRANCHES];
};

/* ------------------------------------------------------------------------------------ recording */

bool cuda_record(void *device) {
    cuda_device *d = device;
    if (!d->graph) return false;
    int result = d->lib->cuCtxSetCurrent(d->context);
    if (!result) result = d->lib->cuStreamBeginCapture(d->stream, CUDA_CAPTURE_THREAD_LOCAL);
    if (!d->failed) d->failed = result;
    return d->recording = !result;
}

static void release_exec(cuda_device *device, void *exec) {
    device->lib->cuGraphExecDestroy(exec);
}

/* Ends the branches that a failure has left open. */
static void close_branches(cuda_device *d) {
    cuda_graph *graph;
    while (d->branching && d->branching->depth) {
        const level *l = &d->branching->levels[--d->branching->depth];
        d->lib->cuStreamEndCapture(l->stream, &graph);
        d->stream = l->outer;
    }
}

/* Ends the capture; 0, or a status. */
static int instantiate(cuda_device *d, cuda_graph_exec **out) {
    cuda_graph *graph = NULL;
    close_branches(d);
    d->recording = false;
    int result = d->lib->cuStreamEndCapture(d->stream, &graph);
    if (!result) result = d->failed;
    if (!result) result = d->lib->cuGraphInstantiate(out, graph, 0);
    if (graph) d->lib->cuGraphDestroy(graph);
    return result;
}

hlo_status cuda_recorded(void *device, const void **out_graph, const char **why) {
    cuda_device *d = device;
    cuda_graph_exec *exec = NULL;
    if (!d->recording) {
        *why = "is not recording";
        return HLO_INVALID_INPUT;
    }
    int result = instantiate(d, &exec);
    if (result) return cuda_fails(d, "record the run in a graph", result, why);
    *out_graph = exec;
    return cuda_own(d, exec, release_exec) ? HLO_OK : HLO_OUT_OF_MEMORY;
}

hlo_status cuda_replay(void *device, const void *graph, const char **why) {
    cuda_device *d = device;
    int result = d->lib->cuGraphLaunch((cuda_graph_exec *)graph, d->stream);
    return result ? cuda_fails(d, "launch a graph", result, why) : HLO_OK;
}

/* ------------------------------------------------------------------------------------- branches */

/* Launches the kernel that sets the level's handle. */
static int choose(const cuda_device *d, level *l) {
    void *arguments[] = {&l->handle, (void *)&l->choice.value, &l->choice.wanted, &l->choice.count};
    return d->lib->cuLaunchKernel(d->branching->choose, 1, 1, 1, 1, 1, 1, 0, d->stream, arguments,
                                  NULL);
}

static int begin(cuda_device *d, level *l) {
    const cuda_library *lib = d->lib;
    cuda_graph *graph = NULL;
    cuda_graph_node *node = NULL, *const *before = NULL;
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
    if (!result) result = lib->cuGraphAddNode(&node, graph, before, count, &parameters);
    if (!result)
        result = lib->cuStreamUpdateCaptureDependencies(d->stream, &node, 1,
                                                        CUDA_CAPTURE_SET_DEPENDENCIES);
    if (!result)
        result = lib->cuStreamBeginCaptureToGraph(l->stream, parameters.u.conditional.graphs[0],
                                                  NULL, NULL, 0, CUDA_CAPTURE_THREAD_LOCAL);
    return result;
}

static int begin_branch(cuda_device *d, const hlo_choice *choice, bool loop) {
    cuda_branching *b = d->branching;
    if (b->depth == HLO_MOST_BRANCHES) return CUDA_NOT_SUPPORTED;
    level *l = &b->levels[b->depth];
    l->outer = d->stream;
    l->choice = *choice;
    l->loop = loop;
    const int result = begin(d, l);
    if (result) return result;
    b->depth++;
    d->stream = l->stream;
    return 0;
}

static int end_branch(cuda_device *d) {
    level *l = &d->branching->levels[d->branching->depth - 1];
    cuda_graph *graph;
    int result = l->loop ? choose(d, l) : 0;
    const int ended = d->lib->cuStreamEndCapture(l->stream, &graph);
    d->branching->depth--;
    d->stream = l->outer;
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

/* Runs a graph with a loop that is not entered, in which there is a branch. */
static int try_branches(cuda_device *d, void *predicate) {
    const hlo_choice choice = {predicate, 1, 0};
    cuda_graph_exec *exec = NULL;
    cuda_fill(d, predicate, 0, 1);
    if (!cuda_record(d)) return CUDA_NOT_SUPPORTED;
    int result = begin_branch(d, &choice, true);
    if (!result) result = begin_branch(d, &choice, false);
    if (!result) cuda_fill(d, predicate, 1, 1);
    if (!result) result = end_branch(d);
    if (!result) result = end_branch(d);
    const int made = instantiate(d, &exec);
    if (!result) result = made;
    if (!result) result = d->lib->cuGraphLaunch(exec, d->stream);
    if (!result) result = d->lib->cuStreamSynchronize(d->stream);
    if (exec) d->lib->cuGraphExecDestroy(exec);
    return result;
}

static void release_branching(cuda_device *device, void *branching) {
    cuda_branching *b = branching;
    for (uint32_t i = 0; i < HLO_MOST_BRANCHES; i++)
        if (b->levels[i].stream) device->lib->cuStreamDestroy(b->levels[i].stream);
    if (b->module) device->lib->cuModuleUnload(b->module);
    free(b);
}

/* Makes what branches need, and tries them; 0, or why there are none. */
static int prepare(cuda_device *d) {
    const cuda_library *lib = d->lib;
    cuda_branching *b = d->branching;
    int version = 0, result = lib->cuCtxSetCurrent(d->context);
    if (!result) result = lib->cuDriverGetVersion(&version);
    if (!result && (version < FIRST_DRIVER || !lib->cuStreamGetCaptureInfo ||
                    !lib->cuStreamUpdateCaptureDependencies || !lib->cuStreamBeginCaptureToGraph ||
                    !lib->cuGraphConditionalHandleCreate || !lib->cuGraphAddNode))
        result = CUDA_NOT_SUPPORTED;
    if (!result) result = lib->cuModuleLoadData(&b->module, program);
    if (!result) result = lib->cuModuleGetFunction(&b->choose, b->module, "choose");
    for (uint32_t i = 0; i < HLO_MOST_BRANCHES && !result; i++)
        result = lib->cuStreamCreate(&b->levels[i].stream, CUDA_STREAM_NON_BLOCKING);
    void *predicate = result ? NULL : cuda_allocate(d, 1);
    if (!predicate) return result ? result : CUDA_NOT_SUPPORTED;
    result = try_branches(d, predicate);
    cuda_release(d, predicate);
    return result;
}

bool cuda_branches(void *device) {
    cuda_device *d = device;
    if (d->branching) return d->branching->works;
    cuda_branching *b = calloc(1, sizeof *b);
    if (!b || !cuda_own(d, b, release_branching)) return false;
    d->branching = b;
    const int before = d->failed;
    b->works = !prepare(d) && !d->failed;
    d->failed = before; /* what does not work here is done by the host */
    return b->works;
}
