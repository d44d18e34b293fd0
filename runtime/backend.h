/* SPDX-License-Identifier: Apache-2.0 */
/* A device that runs plans, as a table of functions; none is optional.
 *
 * The plan (plan.h) decides order and memory; a backend runs one job at a time on
 * arrays in memory that it has allocated: an instruction, or a group of them that it can run as
 * one. Control flow and tuples never reach it. */
#ifndef HLO_RUNTIME_BACKEND_H
#define HLO_RUNTIME_BACKEND_H

#include "hlo/runtime.h"
#include "ir/eval/eval.h"
#include "ir/ir.h"
#include "runtime/world.h"

/* Instructions of one computation that run as one job. */
typedef struct hlo_group {
    uint32_t instr_count, result_count, input_count;
    /* The members, in the computation's order. None: the job copies its operand to its result, in
     * another order in memory (in a backend's own jobs, also converted or packed). */
    const hlo_instr **instrs;
    const hlo_instr **results; /* members read by instructions outside, in any order */
    /* Operands of members that are not members: of a group of one, its operands; otherwise each
     * once, by first use. */
    const hlo_instr **inputs;
} hlo_group;

/* Pairs of leaves: the result may take the operand's memory, when the operand is not needed
 * afterwards. So may several at once, where no result and no operand is in two of them. */
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

/* A check between the parts of a long job: false stops the run. */
typedef struct hlo_watch {
    bool (*goes_on)(void *user);
    void *user;
} hlo_watch;

/* A job, ready to run. The plan fills all but the last part when it is made, and the views' `data`
 * and `scratch` before each run. */
typedef struct hlo_job {
    const hlo_instr *instr; /* named in messages: the last member, or the copy's reader */
    hlo_group group;        /* `operands` are the leaves of its inputs, in order; `results` those of
                               its results */
    uint32_t operand_count, result_count; /* numbers of leaves */
    hlo_view *operands, *results;
    /* Sigmas of the elements (ir/error/error.h): f32, in the elements' order in memory. `data`
     * NULL: an operand is exact; a result's sigmas are not requested. */
    hlo_view *operand_sigmas, *result_sigmas;
    bool bounded;                  /* sigmas are requested */
    bool roundings_may_be_dropped; /* sigmas cover programs that omit roundings */
    bool perturbed; /* results are perturbed by HLO_ERROR_AMPLITUDE times the instruction's own
                       rounding errors; excludes `bounded` */
    hlo_accumulate accumulate; /* as in hlo_plan_options */
    uint64_t stream;           /* with `perturbed`: differs between jobs */
    void *scratch;             /* scratch_size bytes, aligned to 64 */
    const hlo_watch *watch;    /* on the thread of execute(); NULL: the job always finishes. The
                                  results of a job that it stops are undefined */

    /* set by prepare() */
    size_t scratch_size;
    hlo_overwrites overwrites;
    int untouched;    /* the result leaf that is not computed and needs no memory if it has no user;
                         -1: none */
    const char *host; /* why the job runs on the host of another device; NULL: it runs on the
                         device. Such a job is not recorded */
    const void *kind; /* the backend's own choice of implementation */
    void *state;      /* the backend's own data, in the plan's arena */
} hlo_job;

/* A condition on a value in memory of the device: a pred that is `wanted`, 0 or 1, or an s32 that
 * is `wanted`, where one outside 0 to count - 1 is taken for count - 1. */
typedef struct hlo_choice {
    const void *value;
    uint32_t wanted, count; /* count 0: a pred */
} hlo_choice;

enum { HLO_MOST_BRANCHES = 8 }; /* recorded within each other */

/* Of the functions that return a status, HLO_INVALID_INPUT comes with `why`, a sentence that starts
 * with a verb and follows an opcode or the backend's name; static, in the arena, or the device's
 * until the next call.
 *
 * Functions that are called before finish() may return before their work is done: the device works
 * in the order of the calls. */
typedef struct hlo_backend {
    const char *name;  /* as --backend names it */
    size_t alignment;  /* alignment of every buffer; a power of two */
    int memory_kind;   /* DLPack's number of the kind of its memory, which is the first device's */
    bool keeps_bounds; /* runs jobs that are `bounded` or `perturbed` */
    bool rearranges;   /* calls are planned as parts of their callers, and what frees memory runs
                          as soon as it can */
    bool simulates;    /* opens any number of devices, which run in threads of their own */
    bool own_clock;    /* works beside the host: marks are times of a clock of its own */
    /* Opens the device of a seat. HLO_INVALID_INPUT, with an error in `sink`: no such device here.
     */
    hlo_status (*open)(const hlo_plan_options *options, const hlo_seat *seat,
                       const hlo_diag_sink *sink, void **out_device);
    void (*close)(void *device);
    /* Groups a computation's instructions (`count`, in order) that run together. Returns the number
     * of groups, and writes their members and results, not their inputs, in the arena. An
     * instruction may be a member of several groups and is a result of at most one; a result of
     * none runs by itself, if it is wanted. Groups never wait for each other in a circle. NULL:
     * each instruction runs by itself. */
    uint32_t (*group)(void *device, const hlo_instr *const *instrs, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);
    /* True if the backend runs the instruction by itself. */
    bool (*supports)(void *device, const hlo_instr *instr, hlo_arena *arena, const char **why);
    /* Chooses the job's implementation and makes its state. */
    hlo_status (*prepare)(void *device, hlo_job *job, hlo_arena *arena, const char **why);
    /* Prepares what depends on addresses: called once for each job before any is executed, with its
     * memory, whose contents are undefined. May write to the job's results and scratch. NULL:
     * nothing depends on them. */
    hlo_status (*bind)(void *device, hlo_job *job, const char **why);
    hlo_status (*execute)(void *device, const hlo_job *job, const char **why);
    /* Allocates memory of the device; NULL when memory runs out. */
    void *(*allocate)(void *device, size_t size);
    void (*release)(void *device, void *memory);
    /* Writes the bytes that can be allocated; false: they are not known. NULL: they never are. */
    bool (*available)(void *device, size_t *out_bytes);
    /* Prints a line about the device, one about each library that it uses, and what it can do. */
    void (*identify)(void *device, FILE *out);
    /* Returns memory of the device with these bytes of the host, which do not change; may be the
     * bytes themselves. NULL when memory runs out. Lives until the device is closed. */
    const void *(*import)(void *device, const void *bytes, size_t size);
    /* Errors of these four functions and of mark() are reported by finish(). */
    void (*copy_in)(void *device, void *to, const void *host, size_t size);
    void (*copy_out)(void *device, void *host, const void *from, size_t size);
    void (*copy)(void *device, void *to, const void *from, size_t size);
    void (*fill)(void *device, void *memory, unsigned char byte, size_t size);
    /* Marks the time at which the device has done everything before; marks are numbered from 0, and
     * one that is made again is moved. */
    void (*mark)(void *device, uint32_t index);
    /* Waits until the device is done. */
    hlo_status (*finish)(void *device, const char **why);
    /* Writes the seconds from a mark to another, after finish(). */
    hlo_status (*seconds_between)(void *device, uint32_t from, uint32_t to, double *out_seconds,
                                  const char **why);
    /* Begins a graph: until recorded(), execute(), copy() and fill() are recorded and not executed.
     * False: the device cannot, or the plan's options forbid it. NULL: no device can, and the next
     * two are NULL. */
    bool (*record)(void *device);
    /* Ends the graph, which can be replayed any number of times; it lives until the device is
     * closed. */
    hlo_status (*recorded)(void *device, const void **out_graph, const char **why);
    hlo_status (*replay)(void *device, const void *graph, const char **why);
    /* True if graphs may have branches. NULL: the next two are NULL. Not while one is recorded. */
    bool (*branches)(void *device);
    /* Begins a part of the graph being recorded that is executed if the choice holds, or `loop`, as
     * long as it does. Branches within each other are HLO_MOST_BRANCHES at most. */
    hlo_status (*branch_begin)(void *device, const hlo_choice *choice, bool loop, const char **why);
    hlo_status (*branch_end)(void *device, const char **why);
    /* Begin and end a range of the calls of this thread, for a profiler. NULL: there is none. */
    void (*range_push)(void *device, const char *name);
    void (*range_pop)(void *device);
    /* Queues everything behind the work of a stream of the caller, and the caller's work behind it,
     * until the next call; `stream` NULL: the device's own, and errors of what was queued are
     * reported. HLO_INVALID_USAGE: the stream is of another device. NULL, and the next six as well:
     * everything is done at once. */
    hlo_status (*use_stream)(void *device, void *stream, const char **why);
    /* Makes the event of the end of everything queued before, or reports the errors of that. */
    hlo_status (*event_new)(void *device, void **out_event, const char **why);
    /* Makes what is queued from now on wait for the event, of any device of this kind. */
    void (*event_queue)(void *device, void *event);
    /* On any thread: makes the event of the end of everything queued on a stream of the caller and
     * of the event `after`, if it is not NULL; NULL: that failed, and the stream's work is done. */
    void *(*event_behind)(void *device, void *stream, void *after);
    /* On any thread: frees the event; waits for it, and writes to `why`; tells if it is over. */
    void (*event_free)(void *device, void *event);
    hlo_status (*event_wait)(void *device, void *event, char *why, size_t size);
    bool (*event_done)(void *device, void *event);
    /* Prints the job's implementation, as lines that begin with four spaces and depend on the
     * module and the options only. NULL: there are none. */
    void (*describe)(void *device, const hlo_job *job, FILE *out);
    /* Prints the state that jobs share; called once after all jobs. NULL: none. */
    void (*describe_shared)(void *device, FILE *out);
} hlo_backend;

/* Every backend of this build, ended by NULL. */
extern const hlo_backend *const hlo_backends[];

#endif
