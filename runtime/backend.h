/* SPDX-License-Identifier: Apache-2.0 */
/* A device that runs plans, as a table of functions. A function may be NULL only if its comment
 * says so.
 *
 * The plan (plan.h) decides order and memory. A backend runs one job at a time on arrays in memory
 * that it has allocated. A job is an instruction, or a group of instructions that the backend can
 * run as one. A backend never sees control flow or tuples. */
#ifndef HLO_RUNTIME_BACKEND_H
#define HLO_RUNTIME_BACKEND_H

#include "hlo/runtime.h"
#include "ir/eval/eval.h"
#include "ir/ir.h"
#include "runtime/world.h"

/* Instructions of one computation that run as one job. */
typedef struct hlo_group {
    uint32_t instr_count, result_count, input_count;
    /* The members, in the computation's order. A group without members is a copy of the operand to
     * the result in another memory order. In a backend's internal jobs, the copy may also convert
     * or pack elements. */
    const hlo_instruction **instrs;
    const hlo_instruction *
        *results; /* members that instructions outside the group read, in any order */
    /* Operands of members that are not members themselves. A group of one lists all operands of its
     * member; a larger group lists each input once, in the order of first use. */
    const hlo_instruction **inputs;
} hlo_group;

/* Pairs of a result leaf and an operand leaf. The result may reuse the operand's memory if the
 * operand is not read after the job. Several pairs may be used together if they share no leaf. */
typedef struct hlo_overwrites {
    struct {
        uint32_t result, operand;
    } * v;
    uint32_t count, capacity;
} hlo_overwrites;

static inline void hlo_overwrites_add(hlo_overwrites *o, hlo_arena *arena, uint32_t result,
                                      uint32_t operand) {
    hlo_arena_grow(arena, &o->v, o->count, &o->capacity, sizeof *o->v);
    o->v[o->count].result = result;
    o->v[o->count++].operand = operand;
}

/* A job, ready to run. At its creation, the plan sets all members except those that prepare() sets.
 * Before each run, the plan sets `scratch` and the views' `data`. */
typedef struct hlo_job {
    const hlo_instruction *instr; /* named in messages: the last member, or the reader of a copy */
    hlo_group group;              /* `operands` and `results`: leaves of its inputs and results */
    uint32_t operand_count, result_count; /* numbers of leaves */
    hlo_view *operands, *results;
    /* Sigmas of the elements (ir/error/error.h): f32, in the elements' memory order. If `data` is
     * NULL, the operand is exact, or the result's sigmas are not requested. */
    hlo_view *operand_sigmas, *result_sigmas;
    bool bounded;                  /* sigmas are requested */
    bool roundings_may_be_dropped; /* sigmas cover programs that omit roundings */
    bool perturbed; /* results are perturbed by HLO_ERROR_AMPLITUDE times the instruction's own
                     * rounding errors; not in combination with `bounded` */
    hlo_accumulate accumulate; /* as in hlo_plan_options */
    uint64_t stream;           /* random stream of a `perturbed` job; differs between jobs */
    void *scratch;             /* scratch_size bytes, aligned to 64 */
    const hlo_watch *watch;    /* called on the thread of execute(), or NULL. If it stops the job,
                                * the results are undefined */

    /* prepare() sets the members below. */
    size_t scratch_size;
    hlo_overwrites overwrites;
    int untouched;    /* result leaf that is not computed and needs memory only for users; or -1 */
    const char *host; /* why the job runs on the host, NULL if it runs on the device; jobs on the
                       * host are not recorded */
    const void *kind; /* the implementation that the backend chose */
    void *state;      /* private data of the backend, in the plan's arena */
} hlo_job;

/* A condition on a value in device memory: a pred that equals `wanted`, 0 or 1, or an s32 that
 * equals `wanted`. An s32 outside 0 to count - 1 counts as count - 1. */
typedef struct hlo_choice {
    const void *value;
    uint32_t wanted, count; /* number of values of an s32; 0 for a pred */
} hlo_choice;

enum { HLO_MAX_BRANCHES = 8 }; /* maximum nesting of recorded branches */

/* If a function that returns a status returns HLO_INVALID_INPUT, it sets `why`: the rest of a
 * sentence whose subject is an opcode or the backend's name. The string is static, in the arena, or
 * owned by the device until the next call.
 *
 * Functions may return before their work is done. The device works in the order of the calls, and
 * finish() waits for all of them. */
typedef struct hlo_backend {
    const char *name;  /* the value of --backend */
    size_t alignment;  /* alignment of every buffer; a power of two */
    int memory_kind;   /* DLPack's number for the kind of memory, on the first device */
    bool keeps_bounds; /* runs jobs that are `bounded` or `perturbed` */
    bool rearranges;   /* the plan inlines calls, and runs an instruction that frees memory as soon
                        * as its inputs are available */
    bool simulates;    /* opens any number of devices, each on a separate thread */
    bool own_clock;    /* runs concurrently with the host: marks are device times */
    /* Opens the device that `seat` identifies. Returns HLO_INVALID_INPUT, and emits an error to
     * `sink`, if the device does not exist. */
    hlo_status (*open)(const hlo_plan_options *options, const hlo_seat *seat,
                       const hlo_diag_sink *sink, void **out_device);
    void (*close)(void *device);
    /* Groups those of a computation's `count` instructions that run together. Returns the number of
     * groups. Writes their members and results, but not their inputs, in the arena. An instruction
     * may be a member of several groups, but a result of at most one. An instruction that is not a
     * result of a group runs separately when needed. Groups never depend on each other in a cycle.
     * If the function is NULL, each instruction runs separately. */
    uint32_t (*group)(void *device, const hlo_instruction *const *instrs, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);
    /* True if the backend runs the instruction as a separate job. */
    bool (*supports)(void *device, const hlo_instruction *instr, hlo_arena *arena,
                     const char **why);
    /* Chooses the job's implementation and creates its state. */
    hlo_status (*prepare)(void *device, hlo_job *job, hlo_arena *arena, const char **why);
    /* Prepares state that depends on addresses. Called once for each job, before any job is
     * executed. The job's memory is assigned, but its contents are undefined. May write to the
     * job's results and scratch. NULL if no state depends on addresses. */
    hlo_status (*bind)(void *device, hlo_job *job, const char **why);
    hlo_status (*execute)(void *device, const hlo_job *job, const char **why);
    /* Allocates device memory. Returns NULL if memory runs out. */
    void *(*allocate)(void *device, size_t size);
    void (*release)(void *device, void *memory);
    /* Writes the number of bytes that can be allocated, or returns false if the number is unknown.
     * NULL if the number is always unknown. */
    bool (*available)(void *device, size_t *out_bytes);
    /* Prints a line about the device, a line about each library that the backend uses, and the
     * device's capabilities. */
    void (*identify)(void *device, FILE *out);
    /* Makes `size` bytes of host memory readable by the device. Returns a copy in device memory, or
     * the host memory itself. The caller must not change or free the host memory until the device
     * is closed. The device frees the copy then. Returns NULL if memory runs out. */
    const void *(*import)(void *device, const void *bytes, size_t size);
    /* finish() reports errors of copy_in(), copy_out(), copy(), fill() and mark(). */
    void (*copy_in)(void *device, void *to, const void *host, size_t size);
    void (*copy_out)(void *device, void *host, const void *from, size_t size);
    void (*copy)(void *device, void *to, const void *from, size_t size);
    void (*fill)(void *device, void *memory, unsigned char byte, size_t size);
    /* Records the time at which the device has completed all previous work. Marks are numbered from
     * 0. Recording a mark again overwrites its time. */
    void (*mark)(void *device, uint32_t index);
    /* Waits until the device is idle. */
    hlo_status (*finish)(void *device, const char **why);
    /* Writes the seconds between two marks, after finish(). */
    hlo_status (*seconds_between)(void *device, uint32_t from, uint32_t to, double *out_seconds,
                                  const char **why);
    /* Begins a graph: calls of execute(), copy() and fill() until recorded() are recorded and not
     * executed. Returns false if the device does not support graphs, or if the plan's options
     * disable graphs. If record() is NULL, no device supports graphs, and the next two functions
     * are NULL. */
    bool (*record)(void *device);
    /* Ends the graph, which can be replayed any number of times until the device is closed. */
    hlo_status (*recorded)(void *device, const void **out_graph, const char **why);
    hlo_status (*replay)(void *device, const void *graph, const char **why);
    /* True if graphs may have branches. Must not be called while a graph is recorded. If branches()
     * is NULL, the next two functions are NULL. */
    bool (*branches)(void *device);
    /* Begins a part of the recorded graph that is executed if the choice holds or, with `loop`,
     * while it holds. At most HLO_MAX_BRANCHES branches may be nested. */
    hlo_status (*branch_begin)(void *device, const hlo_choice *choice, bool loop, const char **why);
    hlo_status (*branch_end)(void *device, const char **why);
    /* Begin and end a range of this thread's calls, for a profiler. May be NULL. */
    void (*range_push)(void *device, const char *name);
    void (*range_pop)(void *device);
    /* Until the next call of this function, the device's work comes after the work that is already
     * on the caller's `stream`, and before work that the caller enqueues there later. If `stream`
     * is NULL, uses the device's own stream and reports errors of queued work. Returns
     * HLO_INVALID_USAGE if the stream belongs to another device. If use_stream() is NULL, the next
     * six functions are NULL and all work is synchronous. */
    hlo_status (*use_stream)(void *device, void *stream, const char **why);
    /* Creates an event that completes with all work queued so far. If some of that work could not
     * be queued, creates no event and returns the error. */
    hlo_status (*event_new)(void *device, void **out_event, const char **why);
    /* Makes later work wait for the event, which may be from any device of the backend. */
    void (*event_queue)(void *device, void *event);
    /* Thread-safe. Creates an event that completes with all work queued on the caller's `stream`
     * and with the event `after` (may be NULL). Returns NULL on failure, after waiting for the
     * stream's work. */
    void *(*event_behind)(void *device, void *stream, void *after);
    /* Thread-safe. Free the event; wait for the event, and write errors to `why`; return true if
     * the event is complete. */
    void (*event_free)(void *device, void *event);
    hlo_status (*event_wait)(void *device, void *event, char *why, size_t size);
    bool (*event_done)(void *device, void *event);
    /* Prints the job's implementation, in lines that begin with four spaces. The text depends only
     * on the module and the options. May be NULL. */
    void (*describe)(void *device, const hlo_job *job, FILE *out);
    /* Prints the state that jobs share. Called once, after describe() of all jobs. May be NULL. */
    void (*describe_shared)(void *device, FILE *out);
} hlo_backend;

/* Every backend of this build, terminated by NULL. */
extern const hlo_backend *const hlo_backends[];

#endif
