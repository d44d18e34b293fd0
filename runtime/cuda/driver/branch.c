/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops of graphs: conditional nodes, if the driver supports them. */
#include <stdlib.h>

#include "runtime/cuda/driver/graph.h"

enum { FIRST_DRIVER = 12040 }; /* the first that has all of them */

/* Sets the value of a conditional handle: whether a choice holds (hlo_choice). The driver compiles
 * it, because only the driver has cudaGraphSetConditional. */
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

/* A branch being recorded, on a separate stream, because the branch around it is also being
 * captured. */
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
    level levels[HLO_MOST_BRANCHES];
};

/* ------------------------------------------------------------------------------------ recording */

/* Launches the kernel that sets the level's handle. */
static int choose(const cuda_device *d, level *l) {
    void *arguments[] = {&l->handle, (void *)&l->choice.value, &l->choice.wanted, &l->choice.count};
    return d->lib->cuLaunchKernel(d->branching->choose, 1, 1, 1, 1, 1, 1, 0, d->stream, arguments,
                                  NULL);
}

static int begin_branch(cuda_device *d, const hlo_choice *choice, bool loop) {
    const uint32_t depth = cuda_capture_depth(d);
    if (depth == HLO_MOST_BRANCHES) return CUDA_NOT_SUPPORTED;
    level *l = &d->branching->levels[depth];
    l->choice = *choice;
    l->loop = loop;
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
    return result ? result
                  : cuda_capture_begin_within(d, l->stream, parameters.u.conditional.graphs[0]);
}

/* Adds a node to an empty branch: the driver hangs on empty branches before CUDA 12.8. */
static int end_branch(cuda_device *d) {
    level *l = &d->branching->levels[cuda_capture_depth(d) - 1];
    cuda_graph *graph;
    cuda_graph_node *const *before;
    int capturing, result = 0;
    size_t count = 0;
    if (l->loop ||
        (!d->lib->cuStreamGetCaptureInfo(d->stream, &capturing, NULL, &graph, &before, &count) &&
         !count))
        result = choose(d, l);
    const int ended = cuda_capture_end_within(d);
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

/* Runs a graph with kernels, and a loop that is not entered, which contains a branch. */
static int try_branches(cuda_device *d, void *predicate) {
    const hlo_choice choice = {predicate, 1, 0};
    cuda_graph_exec *exec = NULL;
    cuda_fill(d, predicate, 0, 1);
    int result = cuda_capture_begin(d);
    if (result) return result;
    result = cuda_try_kernels(d, predicate);
    if (!result) result = begin_branch(d, &choice, true);
    if (!result) result = begin_branch(d, &choice, false);
    if (!result) cuda_fill(d, predicate, 1, 1);
    if (!result) result = end_branch(d);
    if (!result) result = end_branch(d);
    const int made = cuda_capture_end(d, &exec);
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

/* Creates the resources for branches, and tries them. Returns 0, or the status of the failure. */
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
    if (result && d->early) { /* possibly not both */
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
    cuda_branching *b = calloc(1, sizeof *b);
    if (!b || !cuda_own(d, b, release_branching)) return false;
    d->branching = b;
    cuda_try_parallel(d);
    const int before = d->failed;
    b->works = !prepare(d) && !d->failed;
    d->failed = before; /* unsupported features run on the host */
    return b->works;
}
