/* What runs a plan: a device, as a table of functions without an optional slot.
 *
 * The plan (plan.h) decides what runs when and in which memory; a backend runs one job at a time on
 * arrays in memory that it has allocated: an instruction, or a group of them that it can run as
 * one. Control flow and tuples never reach it. */
#ifndef HLO_RUNTIME_BACKEND_H
#define HLO_RUNTIME_BACKEND_H

#include "hlo/runtime.h"
#include "ir/eval/eval.h"
#include "ir/ir.h"

/* Instructions of one computation that run as one. */
typedef struct hlo_group {
    uint32_t instr_count, result_count, input_count;
    /* The members, in the computation's order. None: the job copies its operand to its result, the
     * same elements in two orders in memory (in a backend's own jobs, converted where the types
     * differ). */
    const hlo_instr **instrs;
    const hlo_instr **results; /* the members whose values it makes for others, in any order */
    /* What members read and is no member: of a group of one, its operands as they are; else each
     * once, by first use. */
    const hlo_instr **inputs;
} hlo_group;

/* A job, ready to run. The plan fills all but the last part when it is made, and the views' `data`
 * and `scratch` before each run. */
typedef struct hlo_job {
    const hlo_instr *instr; /* what it is told by: the last member, or what needs the copy */
    hlo_group group;        /* `operands` are the leaves of its inputs, in order; `results` those of
                               its results */
    uint32_t operand_count, result_count; /* leaves */
    hlo_view *operands, *results;
    /* How far rounding may have taken each element (ir/error/error.h): f32, in the same order in
     * memory as the elements. `data` NULL: of an operand, that it is exact; of a result, that it is
     * not wanted. */
    hlo_view *operand_sigmas, *result_sigmas;
    bool bounded;                  /* sigmas are wanted */
    bool roundings_may_be_dropped; /* and cover programs that leave roundings out */
    bool perturbed;                /* results are moved at random, by HLO_ERROR_AMPLITUDE times what
                                      the instruction itself may be off by; not with `bounded` */
    uint64_t stream;               /* with `perturbed`: another one each time */
    void *scratch;                 /* scratch_size bytes, aligned to 64 */

    /* Set by prepare(). */
    size_t scratch_size;
    int overwrites; /* the operand leaf whose memory result 0 may take, when the operand is not
                       needed afterwards; -1: none */
    int untouched;  /* the result leaf that is not computed and needs no memory when nobody uses it;
                       -1: none */
    const char *host; /* why it runs on the host, where the device is something else; NULL: it runs
                         on the device. Such a job is not recorded */
    const void *kind; /* the backend's own: in which of its ways it runs */
    void *state;      /* likewise, in the plan's arena */
} hlo_job;

/* Of the functions that return a status, HLO_INVALID_INPUT comes with `why`, a sentence that starts
 * with a verb and follows an opcode or the backend's name; static, in the arena, or the device's
 * until the next call.
 *
 * What is called between start() and finish() may go on after it returns: the device does things in
 * the order in which they are asked for. */
typedef struct hlo_backend {
    const char *name;  /* as --backend names it */
    size_t alignment;  /* of every buffer; a power of two */
    bool keeps_bounds; /* runs jobs that are `bounded` or `perturbed` */
    /* HLO_INVALID_INPUT, with an error in `sink`: no such device here. */
    hlo_status (*open)(const hlo_plan_options *options, const hlo_diag_sink *sink,
                       void **out_device);
    void (*close)(void *device);
    /* Which of a computation's instructions (`count`, in order) run together: how many groups, and
     * their members and results, not their inputs, in the arena. An instruction may be a member of
     * several groups and is a result of at most one; what is a result of none runs by itself, if
     * it is wanted. Groups never wait for each other in a circle. */
    uint32_t (*group)(void *device, const hlo_instr *const *instrs, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);
    /* Whether the backend runs the instruction by itself. */
    bool (*supports)(void *device, const hlo_instr *instr, hlo_arena *arena, const char **why);
    /* Looks up and makes whatever the job needs to run. */
    hlo_status (*prepare)(void *device, hlo_job *job, hlo_arena *arena, const char **why);
    /* Once for each job before any is executed, with the memory that it will have, whose contents
     * mean nothing yet: what shows only there. May write to the job's results and scratch. */
    hlo_status (*settle)(void *device, hlo_job *job, const char **why);
    hlo_status (*execute)(void *device, const hlo_job *job, const char **why);
    /* Memory of the device; NULL when there is none left. */
    void *(*allocate)(void *device, size_t size);
    void (*release)(void *device, void *memory);
    /* Memory of the device that holds these bytes of the host, which stay as they are; may be the
     * bytes themselves. NULL when memory runs out. Lives until the device is closed. */
    const void *(*import)(void *device, const void *bytes, size_t size);
    /* What goes wrong in one of these four, finish() tells. */
    void (*copy_in)(void *device, void *to, const void *host, size_t size);
    void (*copy_out)(void *device, void *host, const void *from, size_t size);
    void (*copy)(void *device, void *to, const void *from, size_t size);
    void (*fill)(void *device, void *memory, unsigned char byte, size_t size);
    void (*start)(void *device);
    /* Waits until all is done; *out_seconds is what that took since start(). */
    hlo_status (*finish)(void *device, double *out_seconds, const char **why);
    /* From here to recorded(), execute(), copy() and fill() are noted and not done. False: this
     * device, or the plan's options, do without. */
    bool (*record)(void *device);
    /* What was noted, to be done any number of times; lives until the device is closed. */
    hlo_status (*recorded)(void *device, const void **out_piece, const char **why);
    hlo_status (*replay)(void *device, const void *piece, const char **why);
    /* Writes how the job runs, as lines that begin with four spaces and depend on the module and
     * the options only; and, once after all jobs, what they share. */
    void (*describe)(void *device, const hlo_job *job, FILE *out);
    void (*describe_shared)(void *device, FILE *out);
} hlo_backend;

/* Every backend of this build, ended by NULL. */
extern const hlo_backend *const hlo_backends[];

#endif
