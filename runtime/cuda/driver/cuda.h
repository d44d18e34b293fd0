/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: its device, and the parts that run jobs on it.
 *
 * A job is a matmul (matmul.h), a generated kernel (kernel.h), or with --fallback=cpu an opcode
 * that runs on the host (cuda.c). Each kind is a cuda_part; the first part that supports an
 * instruction runs it. This code includes no CUDA headers: libraries are loaded when a device is
 * opened (library.h), and a plan that is only printed needs no libraries. */
#ifndef HLO_RUNTIME_CUDA_DRIVER_CUDA_H
#define HLO_RUNTIME_CUDA_DRIVER_CUDA_H

#include "matmul/call.h"
#include "runtime/backend.h"
#include "runtime/cuda/driver/order.h"

typedef struct cuda_library cuda_library; /* library.h */
typedef struct cuda_program cuda_program; /* kernel.h */
typedef struct cuda_branching cuda_branching;
typedef struct cuda_capture cuda_capture; /* graph.h */

enum { CUDA_PROCESSORS = 132 }; /* of an H100 SXM */

/* A device, or the description of one. */
typedef struct cuda_device {
    const cuda_library *lib;  /* NULL: plans are only printed; nothing is allocated,
                                 compiled or run */
    int sm;                   /* compute capability * 10 */
    int processors;           /* multiprocessors; without a device CUDA_PROCESSORS */
    const hlo_target *target; /* of the device, or the closest older one that is known */
    int cublaslt;             /* major * 10000 + minor * 100 + patch, as cublasLtGetVersion() */
    char name[128];           /* "NVIDIA H100 80GB HBM3"; "sm_90" without a device */
    size_t l2_size;           /* bytes; 0 without a device */
    void *context;            /* CUcontext, current in the thread that runs the plan */
    void *stream;             /* CUstream of all work: own_stream, or the caller's during a run on
                                 it */
    void *own_stream;
    void *lt;              /* cublasLtHandle */
    cuda_program *program; /* the kernels of all jobs: prepare() adds to it, and it is compiled
                            * before the first job is bound */
    bool compiled;
    void *module;               /* CUmodule of the compiled program */
    const char *kernel_cache;   /* folder of compiled programs; NULL: no cache */
    size_t workspace;           /* bytes of a matmul's workspace */
    int autotune;               /* number of algorithms to time; 0: use the heuristic's first */
    const char *autotune_cache; /* path; NULL: timings are not cached */
    void *tuned;                /* cache of tuned choices in memory (autotune.c) */
    const hlo_diag_sink *sink;  /* of hlo_plan_new(): for warnings of prepare() and bind(), not used
                                 * later */
    struct cuda_owned *owned;   /* see cuda_own() */
    /* used by device.c and cuda.c */
    int ordinal;
    bool graph, host_fallback;
    bool tried;                /* graph.c: tried once, whether */
    bool parallel;             /* nodes may run concurrently, */
    bool early;                /* and kernels start before the previous one has ended */
    void *nothing;             /* CUfunction of an empty kernel, or NULL */
    cuda_capture *capture;     /* the innermost capture; NULL: not recording */
    cuda_branching *branching; /* NULL: not needed yet */
    struct cuda_event **marks; /* NULL: not created yet */
    size_t mark_capacity;
    int failed;        /* first nonzero CUresult since the last finish() */
    char message[256]; /* buffer for a `why` */
    void *host;        /* the cpu backend's device, with host_fallback */
} cuda_device;

/* Records the first failure of a call without a status, for finish(). */
static inline void cuda_note(cuda_device *device, int result) {
    if (!device->failed) device->failed = result;
}

/* Returns the version of cuBLASLt as hlo_cuda_is_version() describes it. */
static inline int cuda_cublaslt_version(const cuda_device *device) {
    return device->cublaslt / 100 * 10;
}

/* A kind of jobs. If a function that returns a status returns HLO_INVALID_INPUT, it sets `why`: a
 * sentence that starts with a verb and follows the instruction's opcode. */
typedef struct cuda_part {
    const char *name; /* name of its jobs in the plan's text */
    /* True if it supports the instruction as a group of one. Otherwise `why` is static or in the
     * arena; NULL: the instruction belongs to another part. */
    bool (*supports)(const cuda_device *device, const hlo_instr *instr, hlo_arena *arena,
                     const char **why);
    /* Chooses the implementation and generates code, without allocating device memory except for
     * private state. Sets the job's scratch_size, overwrites, untouched and state. */
    hlo_status (*prepare)(cuda_device *device, hlo_job *job, hlo_arena *arena, const char **why);
    /* Runs once for each job, when the views' data and scratch have their addresses and undefined
     * contents: queries, timing, a first launch. May write to the job's results and scratch. Not
     * called without a device. May be NULL. */
    hlo_status (*bind)(cuda_device *device, hlo_job *job, const char **why);
    /* Enqueues the job on the stream, without allocation, queries, compilation or waiting. */
    hlo_status (*execute)(cuda_device *device, const hlo_job *job, const char **why);
    /* Prints the job's state, as text that depends only on the module and the device's description;
     * each line is indented by four spaces. */
    void (*print)(const cuda_device *device, const hlo_job *job, FILE *out);
} cuda_part;

extern const cuda_part cuda_matmul_part; /* matmul.c: FP8 calls, wide calls, dots */
extern const cuda_part cuda_kernel_part; /* kernel.c: groups of other instructions; copies */

/* kernel/kernel.c: groups live instructions, for the backend's table (backend.h). An instruction in
 * no group runs separately, or only forwards values. */
uint32_t cuda_kernel_group(void *device, const hlo_instr *const *live, uint32_t count,
                           hlo_arena *arena, hlo_group **out_groups);

/* nvrtc.c: compiles and loads the device's program. `why` as in cuda_part. */
hlo_status cuda_program_compile(cuda_device *device, const char **why);

/* device.c: memory, time, streams of the caller and events, for the backend's table (backend.h).
 * Here and in graph.c, functions that a thread may call first make the context current. */
hlo_status cuda_device_open(const hlo_plan_options *options, const hlo_diag_sink *sink,
                            cuda_device **out_device);
void cuda_device_close(void *device);
/* Describes the device of the current context, which belongs to another program, for calls of
 * cuBLASLt on a stream that the caller sets. It has a library handle for the lifetime of the
 * process, and no memory or kernels. Errors go to `sink`. */
hlo_status cuda_device_borrow(const cuda_library *lib, const hlo_diag_sink *sink,
                              cuda_device *out_device);
void *cuda_allocate(void *device, size_t size);
void cuda_release(void *device, void *memory);
bool cuda_available(void *device, size_t *out_bytes);
void cuda_identify(void *device, FILE *out);
const void *cuda_import(void *device, const void *bytes, size_t size);
void cuda_copy_in(void *device, void *to, const void *host, size_t size);
void cuda_copy_out(void *device, void *host, const void *from, size_t size);
void cuda_mark(void *device, uint32_t index);
hlo_status cuda_finish(void *device, const char **why);
hlo_status cuda_seconds_between(void *device, uint32_t from, uint32_t to, double *out_seconds,
                                const char **why);
hlo_status cuda_use_stream(void *device, void *stream, const char **why);
hlo_status cuda_event_new(void *device, void **out_event, const char **why);
void *cuda_event_behind(void *device, void *stream, void *after);
void cuda_event_free(void *device, void *event);
void cuda_event_queue(void *device, void *event);
hlo_status cuda_event_wait(void *device, void *event, char *why, size_t size);
bool cuda_event_done(void *device, void *event);

/* graph.c: begins calls that access these ranges of memory. Other memory that they access must
 * not be accessed by another call if one of the two writes. In a recorded graph, they wait for
 * other calls if their memory requires it. Returns 0, or a status. */
int cuda_node_begin(cuda_device *device, const cuda_range *ranges, uint32_t count);
/* Ends the calls that were begun. `kernel`: they are one launch of a kernel of codegen/. Returns 0,
 * or a status. */
int cuda_node_end(cuda_device *device, bool kernel);
/* Launches a kernel of codegen/ that accesses these ranges. Returns 0, or a status. */
int cuda_launch_kernel(cuda_device *device, void *function, unsigned grid, unsigned block,
                       void **arguments, const cuda_range *ranges, uint32_t count);
/* graph.c: copies and fills, which can be recorded, for the backend's table. */
void cuda_copy_within(void *device, void *to, const void *from, size_t size);
void cuda_fill(void *device, void *memory, unsigned char byte, size_t size);
/* graph.c: recording, and branches of what is recorded, for the backend's table. */
bool cuda_record(void *device);
hlo_status cuda_recorded(void *device, const void **out_graph, const char **why);
hlo_status cuda_replay(void *device, const void *graph, const char **why);
bool cuda_branches(void *device);
hlo_status cuda_branch_begin(void *device, const hlo_choice *choice, bool loop, const char **why);
hlo_status cuda_branch_end(void *device, const char **why);
/* ranges.c: ranges of a profiler, for the backend's table. */
void cuda_range_push(void *device, const char *name);
void cuda_range_pop(void *device);

/* Writes to `why` that `what` ("launch the kernel") failed, and how. Returns HLO_INVALID_INPUT. */
hlo_status cuda_fails(cuda_device *device, const char *what, int result, const char **why);

/* Keeps `object` until the device is closed, and then calls `release`, in reverse order. Returns
 * false if memory runs out; `object` is then released at once. */
bool cuda_own(cuda_device *device, void *object,
              void (*release)(cuda_device *device, void *object));

extern const hlo_backend cuda_backend;

#endif
