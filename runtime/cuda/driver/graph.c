/* SPDX-License-Identifier: Apache-2.0 */
/* Records a run in CUDA graphs: the whole run, as straight-line code or with branches
 * (branch.c). */
#include "runtime/cuda/driver/graph.h"

#include <string.h>

enum {
    FIRST_EARLY_SM = 90,       /* the first that can start a kernel before the previous one has
                                * ended */
    FIRST_EARLY_DRIVER = 12030 /* the first whose graphs have edges for that */
};

/* A kernel to try graphs with. */
static const char program[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry nothing() { ret; }\n";

static void release_module(cuda_device *device, void *module) {
    device->lib->cuModuleUnload(module);
}

int cuda_try_kernels(cuda_device *d, void *memory) {
    const cuda_range range = {memory, 1, true};
    int result = 0;
    for (int i = 0; i < 2 && !result && d->nothing; i++)
        result = cuda_launch_kernel(d, d->nothing, 1, 1, NULL, &range, 1);
    return result;
}

/* Runs a graph with two concurrent nodes, one node after both, and kernels after that. */
static int try_graph(cuda_device *d, unsigned char *memory) {
    static const unsigned char wanted[4] = {1, 2, 1, 2};
    unsigned char found[4] = {0};
    cuda_graph_exec *exec = NULL;
    int result = cuda_capture_begin(d);
    if (result) return result;
    cuda_fill(d, memory, 1, 1);
    cuda_fill(d, memory + 1, 2, 1);
    cuda_copy_within(d, memory + 2, memory, 2);
    result = cuda_try_kernels(d, memory);
    const int made = cuda_capture_end(d, &exec);
    if (!result) result = made;
    if (!result) result = d->lib->cuGraphLaunch(exec, d->stream);
    if (!result) cuda_copy_out(d, found, memory, sizeof found);
    if (!result) result = d->failed;
    if (exec) d->lib->cuGraphExecDestroy(exec);
    return result || memcmp(found, wanted, sizeof found) == 0 ? result : CUDA_NOT_SUPPORTED;
}

void cuda_try_parallel(cuda_device *d) {
    const cuda_library *lib = d->lib;
    const int before = d->failed;
    int version = 0;
    if (d->tried) return;
    d->tried = true;
    if (!lib->cuStreamGetCaptureInfo || !lib->cuStreamUpdateCaptureDependencies) return;
    void *memory = cuda_allocate(d, 4);
    if (!memory) return;
    cuda_module *module = NULL;
    cuda_function *nothing = NULL;
    const bool loaded = !lib->cuModuleLoadData(&module, program) &&
                        cuda_own(d, module, release_module) &&
                        !lib->cuModuleGetFunction(&nothing, module, "nothing");
    if (loaded) d->nothing = nothing;
    const bool early = loaded && d->sm >= FIRST_EARLY_SM && lib->cuLaunchKernelEx &&
                       !lib->cuDriverGetVersion(&version) && version >= FIRST_EARLY_DRIVER;
    for (int i = early; i >= 0 && !d->parallel; i--) {
        d->failed = 0;
        d->parallel = true;
        d->early = i;
        if (try_graph(d, memory)) d->parallel = d->early = false;
    }
    cuda_release(d, memory);
    d->failed = before; /* unsupported features are not used */
}

bool cuda_record(void *device) {
    cuda_device *d = device;
    if (!d->graph) return false;
    int result = d->lib->cuCtxSetCurrent(d->context);
    if (!result) cuda_try_parallel(d);
    if (!result) result = cuda_capture_begin(d);
    if (!d->failed) d->failed = result;
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
    int result = cuda_capture_end(d, &exec);
    if (result) d->failed = 0; /* it is reported now */
    if (result) return cuda_fails(d, "record the run in a graph", result, why);
    *out_graph = exec;
    return cuda_own(d, exec, release_exec) ? HLO_OK : HLO_OUT_OF_MEMORY;
}

hlo_status cuda_replay(void *device, const void *graph, const char **why) {
    cuda_device *d = device;
    int result = d->lib->cuGraphLaunch((cuda_graph_exec *)graph, d->stream);
    return result ? cuda_fails(d, "launch a graph", result, why) : HLO_OK;
}
