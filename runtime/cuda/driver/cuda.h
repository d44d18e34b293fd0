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

enum { CUDA_PROCESSORS = 132 }; /* multiprocessors of an H100 SXM */

/* A device, or the description of a device that need not exist. */
typedef struct cuda_device {
    const cuda_library *lib;  /* NULL if plans are only printed */
    int sm;                   /* compute capability * 10 */
    int processors;           /* number of multiprocessors; CUDA_PROCESSORS without a device */
    const hlo_target *target; /* the device's target, or the closest older target that is known */
    int cublaslt;             /* major * 10000 + minor * 100 + patch, as cublasLtGetVersion() */
    char name[128];           /* "NVIDIA H100 80GB HBM3"; "sm_90" without a device */
    size_t l2_size;           /* bytes; 0 without a device */
    void *context;            /* CUcontext, current in the thread that runs the plan */
    void *stream;             /* CUstream of all work: own_stream or a caller's */
    void *own_stream;
    void *lt;              /* cublasLtHandle */
    cuda_program *program; /* kernels of all jobs: prepare() adds, bind() compiles */
    bool compiled;
    void *module;               /* CUmodule of the compiled program */
    const char *kernel_cache;   /* folder of compiled programs; NULL without a cache */
    size_t workspace;           /* bytes of a matmul's workspace */
    int autotune;               /* algorithms to time; 0: the heuristic's first */
    const char *autotune_cache; /* path of the cache file, or NULL */
    void *tuned;                /* cache of tuned choices in memory (autotune.c) */
    const hlo_diag_sink *sink;  /* for warnings of prepare() and bind() only */
    struct cuda_owned *owned;   /* see cuda_own() */
    /* The next members are used by device.c and cuda.c. */
    int ordinal;
    bool graph, host_fallback;
    bool tried;                /* graph.c: the next two members were determined */
    bool parallel;             /* graph nodes may run concurrently */
    bool early;                /* kernels may start before the previous kernel has ended */
    void *nothing;             /* CUfunction of an empty kernel, or NULL */
    cuda_capture *capture;     /* the innermost capture; NULL if no graph is recorded */
    cuda_branching *branching; /* NULL until branches are needed */
    struct cuda_event **marks; /* events of marks; NULL until they are created */
    size_t mark_capacity;
    int failed;        /* first nonzero CUresult since the last finish() */
    char message[256]; /* buffer for a `why` */
    void *host;        /* the cpu backend's device, with host_fallback */
} cuda_device;

/* Records the first failure, which finish() reports, for a function that returns no status. */
static inline void cuda_note(cuda_device *device, int result) {
    if (!device->failed) device->failed = result;
}

/* Returns the version of cuBLASLt in the form of hlo_cuda_is_version(). */
static inline int cuda_cublaslt_version(const cuda_device *device) {
    return device->cublaslt / 100 * 10;
}

/* A kind of jobs. If a function that returns a status returns HLO_INVALID_INPUT, it sets `why`: the
 * rest of a sentence whose subject is the instruction's opcode. */
typedef struct cuda_part {
    const char *name; /* name of the part's jobs in the plan's text */
    /* True if the part supports the instruction as a group of one. Otherwise sets `why` to a
     * reason, static or in the arena, or to NULL if the instruction belongs to another part. */
    bool (*supports)(const cuda_device *device, const hlo_instruction *instr, hlo_arena *arena,
                     const char **why);
    /* Chooses the implementation and generates code. May allocate device memory only for private
     * state. Sets the job's scratch_size, overwrites, untouched and state. */
    hlo_status (*prepare)(cuda_device *device, hlo_job *job, hlo_arena *arena, const char **why);
    /* Called once for each job, for queries, timing and a first launch. The views' data and scratch
     * have their addresses, but their contents are undefined. May write to the job's results and
     * scratch. Not called without a device. May be NULL. */
    hlo_status (*bind)(cuda_device *device, hlo_job *job, const char **why);
    /* Enqueues the job on the stream. Does not allocate, query, compile or wait. */
    hlo_status (*execute)(cuda_device *device, const hlo_job *job, const char **why);
    /* Prints the job's state, in lines that begin with four spaces. The text depends only on the
     * module and the device's description. */
    void (*print)(const cuda_device *device, const hlo_job *job, FILE *out);
} cuda_part;

extern const cuda_part cuda_matmul_part; /* matmul.c: FP8 calls, calls on wider types, dots */
extern const cuda_part cuda_kernel_part; /* kernel.c: groups of other instructions; copies */

/* kernel/kernel.c: groups live instructions, for the backend's table (backend.h). An instruction
 * outside all groups runs separately, or only forwards values. */
uint32_t cuda_kernel_group(void *device, const hlo_instruction *const *live, uint32_t count,
                           hlo_arena *arena, hlo_group **out_groups);

/* nvrtc.c: compiles and loads the device's program. Sets `why` as in cuda_part. */
hlo_status cuda_program_compile(cuda_device *device, const char **why);

/* device.c: memory, time, streams of the caller and events, for the backend's table (backend.h).
 * Here and in graph.c, functions that a thread may call first make the context current. */
hlo_status cuda_device_open(const hlo_plan_options *options, const hlo_diag_sink *sink,
                            cuda_device **out_device);
void cuda_device_close(void *device);
/* Describes the device of the current context, which another program owns. The description serves
 * calls of cuBLASLt on a stream that the caller sets. The device has a library handle that lives
 * until the process ends, but no memory or kernels. Emits errors to `sink`. */
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

/* graph.c: begins a node, i.e. calls of the driver that access these ranges of memory. Other memory
 * that the calls access must be private to the node, or read only. In a recorded graph, the node
 * waits for other nodes if the ranges require it. Returns 0 or a CUresult. */
int cuda_node_begin(cuda_device *device, const cuda_range *ranges, uint32_t count);
/* Ends the node, one launch of a generated kernel if `kernel`. Returns 0 or a CUresult. */
int cuda_node_end(cuda_device *device, bool kernel);
/* Launches a generated kernel that accesses these ranges, as a node. Returns 0 or a CUresult. */
int cuda_launch_kernel(cuda_device *device, void *function, unsigned grid, unsigned block,
                       void **arguments, const cuda_range *ranges, uint32_t count);
/* graph.c: copy and fill, which can be recorded, for the backend's table. */
void cuda_copy_within(void *device, void *to, const void *from, size_t size);
void cuda_fill(void *device, void *memory, unsigned char byte, size_t size);
/* graph.c: recording of graphs and their branches, for the backend's table. */
bool cuda_record(void *device);
hlo_status cuda_recorded(void *device, const void **out_graph, const char **why);
hlo_status cuda_replay(void *device, const void *graph, const char **why);
bool cuda_branches(void *device);
hlo_status cuda_branch_begin(void *device, const hlo_choice *choice, bool loop, const char **why);
hlo_status cuda_branch_end(void *device, const char **why);
/* ranges.c: ranges of a profiler, for the backend's table. */
void cuda_range_push(void *device, const char *name);
void cuda_range_pop(void *device);

/* Writes to `why` that `what`, e.g. "launch the kernel", failed. Returns HLO_INVALID_INPUT. */
hlo_status cuda_fails(cuda_device *device, const char *what, int result, const char **why);

/* Makes the device own `object`: when the device is closed, calls `release` for its objects in
 * reverse order. If memory runs out, releases `object` at once and returns false. */
bool cuda_own(cuda_device *device, void *object,
              void (*release)(cuda_device *device, void *object));

extern const hlo_backend cuda_backend;

#endif
