/* SPDX-License-Identifier: Apache-2.0 */
/* A device that runs plans, as a table of functions; none is optional unless stated.
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
    /* The members, in the computation's order. If empty, the job copies its operand to its result
     * in another memory order (in a backend's internal jobs, also converted or packed). */
    const hlo_instr **instrs;
    const hlo_instr **results; /* members that instructions outside the group read, in any order */
    /* Operands of members that are not members: for a group of one, its operands; otherwise each
     * once, by first use. */
    const hlo_instr **inputs;
} hlo_group;

/* Pairs of leaves: the result may reuse the operand's memory if the operand is not needed
 * afterwards. Several pairs may apply at once, if no result and no operand is in two of them. */
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

/* A check between the parts of a long job; false stops the run. */
typedef struct hlo_watch {
    bool (*goes_on)(void *user);
    void *user;
} hlo_watch;

/* A job, ready to run. The plan fills all but the last part when it is created, and the views'
 * `data` and `scratch` before each run. */
typedef struct hlo_job {
    const hlo_instr *instr; /* named in messages: the last member, or the reader of the copy */
    hlo_group group;        /* `operands` are the leaves of its inputs, in order; `results` those of
                             * its results */
    uint32_t operand_count, result_count; /* numbers of leaves */
    hlo_view *operands, *results;
    /* Sigmas of the elements (ir/error/error.h): f32, in the elements' memory order. `data` NULL:
     * an operand is exact; a result's sigmas are not requested. */
    hlo_view *operand_sigmas, *result_sigmas;
    bool bounded;                  /* sigmas are requested */
    bool roundings_may_be_dropped; /* sigmas cover programs that omit roundings */
    bool perturbed; /* results are perturbed by HLO_ERROR_AMPLITUDE times the instruction's own
                     * rounding errors; excludes `bounded` */
    hlo_accumulate accumulate; /* as in hlo_plan_options */
    uint64_t stream;           /* with `perturbed`: differs between jobs */
    void *scratch;             /* scratch_size bytes, aligned to 64 */
    const hlo_watch *watch;    /* called on the thread of execute(); NULL: the job always finishes.
                                * If it stops a job, the results are undefined */

    /* set by prepare() */
    size_t scratch_size;
    hlo_overwrites overwrites;
    int untouched;    /* the result leaf that is not computed and needs no memory if it has no
                       * users, or -1 */
    const char *host; /* why the job runs on the host instead of the device; NULL: it runs on the
                       * device. A job on the host is not recorded */
    const void *kind; /* the implementation that the backend chose */
    void *state;      /* private data of the backend, in the plan's arena */
} hlo_job;

/* A condition on a value in device memory: a pred that equals `wanted`, 0 or 1, or an s32 that
 * equals `wanted`. An s32 outside 0 to count - 1 counts as count - 1. */
typedef struct hlo_choice {
    const void *value;
    uint32_t wanted, count; /* count 0: a pred */
} hlo_choice;

enum { HLO_MOST_BRANCHES = 8 }; /* maximum nesting of recorded branches */

/* If a function that returns a status returns HLO_INVALID_INPUT, it sets `why`, a sentence that
 * starts with a verb and follows an opcode or the backend's name. It is static, in the arena, or
 * owned by the device until the next call.
 *
 * Functions that are called before finish() may return before their work is done: the device works
 * in the order of the calls. */
typedef struct hlo_backend {
    const char *name;  /* the value of --backend */
    size_t alignment;  /* alignment of every buffer; a power of two */
    int memory_kind;   /* DLPack's number for its kind of memory, on the first device */
    bool keeps_bounds; /* runs jobs that are `bounded` or `perturbed` */
    bool rearranges;   /* calls are inlined in the plan, and instructions that free memory run as
                        * soon as possible */
    bool simulates;    /* opens any number of devices, each on a separate thread */
    bool own_clock;    /* runs concurrently with the host: marks are times of a separate clock */
    /* Opens the device that `seat` identifies. Returns HLO_INVALID_INPUT, with an error in `sink`,
     * if the device does not exist. */
    hlo_status (*open)(const hlo_plan_options *options, const hlo_seat *seat,
                       const hlo_diag_sink *sink, void **out_device);
    void (*close)(void *device);
    /* Groups a computation's instructions (`count`, in order) that run together. Returns the number
     * of groups, and writes their members and results, but not their inputs, in the arena. An
     * instruction may be a member of several groups and is a result of at most one; if it is a
     * result of none, it runs separately when needed. Groups never depend on each other in a cycle.
     * NULL: each instruction runs separately. */
    uint32_t (*group)(void *device, const hlo_instr *const *instrs, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);
    /* True if the backend runs the instruction as a separate job. */
    bool (*supports)(void *device, const hlo_instr *instr, hlo_arena *arena, const char **why);
    /* Chooses the job's implementation and creates its state. */
    hlo_status (*prepare)(void *device, hlo_job *job, hlo_arena *arena, const char **why);
    /* Prepares state that depends on addresses. Called once for each job before any is executed,
     * with its memory, whose contents are undefined. May write to the job's results and scratch.
     * NULL: no state depends on addresses. */
    hlo_status (*bind)(void *device, hlo_job *job, const char **why);
    hlo_status (*execute)(void *device, const hlo_job *job, const char **why);
    /* Allocates device memory; NULL if memory runs out. */
    void *(*allocate)(void *device, size_t size);
    void (*release)(void *device, void *memory);
    /* Writes the number of bytes that can be allocated. Returns false if it is unknown. NULL: it is
     * always unknown. */
    bool (*available)(void *device, size_t *out_bytes);
    /* Prints a line about the device, one about each library that it uses, and its capabilities. */
    void (*identify)(void *device, FILE *out);
    /* Returns device memory with these bytes of the host, which must not change; may return the
     * host memory itself. NULL if memory runs out. Freed when the device is closed. */
    const void *(*import)(void *device, const void *bytes, size_t size);
    /* finish() reports errors of these four functions and of mark(). */
    void (*copy_in)(void *device, void *to, const void *host, size_t size);
    void (*copy_out)(void *device, void *host, const void *from, size_t size);
    void (*copy)(void *device, void *to, const void *from, size_t size);
    void (*fill)(void *device, void *memory, unsigned char byte, size_t size);
    /* Records the time at which the device has completed all previous work. Marks are numbered from
     * 0; recording a mark again overwrites it. */
    void (*mark)(void *device, uint32_t index);
    /* Waits until the device is idle. */
    hlo_status (*finish)(void *device, const char **why);
    /* Writes the seconds between two marks, after finish(). */
    hlo_status (*seconds_between)(void *device, uint32_t from, uint32_t to, double *out_seconds,
                                  const char **why);
    /* Begins a graph: until recorded(), execute(), copy() and fill() are recorded and not executed.
     * Returns false if the device does not support graphs, or the plan's options disable them.
     * NULL: no device supports graphs, and the next two are NULL. */
    bool (*record)(void *device);
    /* Ends the graph, which can be replayed any number of times. It is destroyed when the device is
     * closed. */
    hlo_status (*recorded)(void *device, const void **out_graph, const char **why);
    hlo_status (*replay)(void *device, const void *graph, const char **why);
    /* True if graphs may have branches. NULL: the next two are NULL. Must not be called while a
     * graph is recorded. */
    bool (*branches)(void *device);
    /* Begins a part of the recorded graph that is executed if the choice holds or, with `loop`,
     * while it holds. At most HLO_MOST_BRANCHES branches may be nested. */
    hlo_status (*branch_begin)(void *device, const hlo_choice *choice, bool loop, const char **why);
    hlo_status (*branch_end)(void *device, const char **why);
    /* Begin and end a range of this thread's calls, for a profiler. May be NULL. */
    void (*range_push)(void *device, const char *name);
    void (*range_pop)(void *device);
    /* Until the next call, queues all work after the work of a stream of the caller, and the
     * caller's later work after it. `stream` NULL: the device's own stream; errors of queued work
     * are reported. HLO_INVALID_USAGE: the stream belongs to another device. NULL, like the next
     * six: all work is synchronous. */
    hlo_status (*use_stream)(void *device, void *stream, const char **why);
    /* Creates the event of the completion of all work queued so far, or reports its errors. */
    hlo_status (*event_new)(void *device, void **out_event, const char **why);
    /* Makes work queued from now on wait for the event, which may be of any device of this kind. */
    void (*event_queue)(void *device, void *event);
    /* Thread-safe. Creates the event of the completion of all work queued on a stream of the caller
     * and of the event `after` (may be NULL). Returns NULL on failure; the stream's work is then
     * complete. */
    void *(*event_behind)(void *device, void *stream, void *after);
    /* Thread-safe. Free the event; wait for it, with errors in `why`; query whether it is
     * complete. */
    void (*event_free)(void *device, void *event);
    hlo_status (*event_wait)(void *device, void *event, char *why, size_t size);
    bool (*event_done)(void *device, void *event);
    /* Prints the job's implementation, as lines that begin with four spaces and depend only on the
     * module and the options. May be NULL. */
    void (*describe)(void *device, const hlo_job *job, FILE *out);
    /* Prints the state that jobs share; called once after all jobs. May be NULL. */
    void (*describe_shared)(void *device, FILE *out);
} hlo_backend;

/* Every backend of this build, terminated by NULL. */
extern const hlo_backend *const hlo_backends[];

#endif
