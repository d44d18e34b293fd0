/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a plan: its steps, in order, and their memory.
 *
 * There are no tuples: every instruction's value is a list of leaves, each a slot. A slot is
 * memory: a range of the computation's frame, an argument or a result whose memory the caller
 * provides, or a constant. Instructions that only forward values (tuple, get-tuple-element, bitcast
 * ...) forward slots and cost nothing.
 *
 * Each computation is planned once. Its caller provides a frame, a range of the caller's own frame,
 * so that the whole program needs one allocation. A computation never calls itself, so it is active
 * at most once, and its slots contain their current memory. */
#ifndef HLO_RUNTIME_PLAN_PLAN_H
#define HLO_RUNTIME_PLAN_PLAN_H

#include "hlo/runtime.h"
#include "runtime/backend.h"
#include "runtime/io/arrays.h"

/* Memory of a leaf. */
typedef struct plan_place {
    void *data;
    float *bound; /* NULL: exact */
} plan_place;

typedef enum plan_slot_kind {
    SLOT_BUFFER,   /* a range of the frame */
    SLOT_ARGUMENT, /* provided by the caller, read only */
    SLOT_RESULT,   /* provided by the caller, written */
    SLOT_CONSTANT,
    SLOT_NOWHERE /* never computed, never read */
} plan_slot_kind;

typedef struct plan_slot {
    plan_slot_kind kind;
    hlo_type type;
    size_t size;          /* bytes of the elements */
    size_t bound_size;    /* bytes of their sigmas, which follow the elements, or 0 */
    size_t offset;        /* SLOT_BUFFER, results of the entry: its offset in the frame */
    uint32_t index;       /* SLOT_ARGUMENT, SLOT_RESULT: its number */
    uint32_t first, last; /* live range of a SLOT_BUFFER, in steps */
    uint32_t results;     /* number of results of the computation that use the slot */
    plan_place place;
} plan_slot;

typedef enum plan_step_kind {
    STEP_JOB,
    STEP_COPY, /* a copy of one leaf, byte by byte */
    STEP_CALL, /* call, fusion */
    STEP_WHILE,
    STEP_CONDITIONAL,
    STEP_LOOK /* the value of an instruction, and those of its operands, are inspected */
} plan_step_kind;

#define PLAN_NONE UINT32_MAX
#define PLAN_ANY (UINT32_MAX - 1)

/* A recorded run: graphs that the backend replays, and between them data-dependent control flow. */
typedef struct plan_command_buffer plan_command_buffer;
/* State of inspected values and of timing: runtime/exec/. */
typedef struct plan_look plan_look;
typedef struct plan_trace plan_trace;
/* The device that a plan shares with buffers, and the runs of a resident plan: runtime/exec/. */
typedef struct plan_device plan_device;
typedef struct plan_resident plan_resident;

typedef struct plan_step {
    plan_step_kind kind;
    const hlo_instr *instr;
    uint32_t operand_count, result_count;
    uint32_t *operands; /* slots */
    uint32_t *results;  /* slots; PLAN_NONE: the callee's result is an argument or a constant,
                         * forwarded as such */
    uint32_t work;      /* a slot that lives during the step (the callee's frame, a job's scratch, a
                         * loop's predicate), or PLAN_NONE */
    hlo_job *job;       /* STEP_JOB */
    struct plan_comp **called; /* STEP_CALL: one; STEP_WHILE: condition, body; STEP_CONDITIONAL: the
                                  branches */
    uint32_t called_count;
    uint32_t *spare;           /* STEP_WHILE: a second slot per result, for the next iteration;
                                * PLAN_NONE: the body writes the next state in place */
    uint32_t predicate;        /* STEP_WHILE: slot of the predicate */
    uint64_t trip_count;       /* STEP_WHILE: trip count, or HLO_TRIP_COUNT_UNKNOWN */
    bool unrolls;              /* STEP_WHILE: each iteration is recorded */
    uint32_t *branch_operands; /* STEP_CONDITIONAL: first operand of each branch */
    plan_place *arguments,
        *lent;                /* memory of a callee's arguments and results, filled for each run */
    const hlo_shape **shapes; /* STEP_LOOK: shapes of `operands`: the leaves of the value, then
                               * those of the instruction's operands */
    uint32_t own;             /* STEP_LOOK: number of leaves of the value */
    bool keeps, checks;       /* STEP_LOOK: the value is saved; it is checked for NaNs */
    uint64_t runs;            /* with options.profile: runs of a job or copy; for a loop or
                               * conditional, decisions of the host */
    double seconds;           /* total time of these */
} plan_step;

typedef struct plan_comp {
    const hlo_computation *comp;
    plan_slot *slots;
    plan_step *steps;
    uint32_t slot_count, slot_capacity, step_count, step_capacity;
    uint32_t argument_count, result_count;
    const hlo_shape **argument_shapes; /* layouts in which the caller passes arguments */
    const hlo_shape **result_shapes;   /* layouts in which the caller receives results */
    uint32_t *arguments;               /* their slots; PLAN_NONE: not read */
    uint32_t *results;                 /* the slots of the root's leaves; NULL: the computation
                                        * cannot be executed */
    size_t frame_size;
    uint64_t weight;  /* estimated number of jobs of a run; loops of unknown length count once */
    bool hosted;      /* a job runs on the host */
    bool is_bound;    /* its jobs are bound */
    uint32_t depth;   /* nesting depth of branches, if all were recorded as branches */
    double jobs;      /* number of jobs of a run, for the larger branch; NaN: unknown */
    uint32_t nesting; /* nesting depth of the computations of a run, without this one */
} plan_comp;

/* The state of a run for options.progress. The thread that called the run reads that of device
 * 0. */
typedef struct plan_progress {
    double start, next; /* start of the run; time of the next call, by plan_trace_clock() */
    _Atomic double done;
    _Atomic(const char *) instruction;
    bool stopped;
} plan_progress;

struct hlo_plan {
    hlo_arena *arena;
    const hlo_module *module;
    hlo_module *expanded; /* owned copy of the module without block-scaled notation and calls; NULL:
                           * there was nothing to replace */
    const hlo_backend *backend;
    void *device;
    plan_device *shared; /* the device, once it is open */
    hlo_plan_options options;
    plan_comp **comps; /* by computation id; NULL: not called */
    /* By computation id, shapes that replace those of the parameters and the root: text may have
     * different layouts on both sides of a call. NULL: those of the computation. */
    const hlo_shape **arguments_like, **results_like;
    plan_comp *entry;
    bool *kept;        /* by instruction id: its value is saved; may be NULL */
    plan_look *look;   /* NULL: no value is inspected */
    hlo_arrays values; /* the values that the last run saved, of all devices; owns only the list */
    plan_trace *trace; /* NULL: no timing */
    hlo_leaves inputs, outputs;
    plan_place *arguments, *results; /* of the entry */
    void *memory;                    /* all memory of a run */
    size_t memory_size;
    plan_command_buffer *buffer; /* replayed by a run; NULL: a run executes the steps */
    /* For a resident plan, and with options.overwrites_inputs; otherwise NULL. By input: the output
     * that reuses its memory, PLAN_ANY, or PLAN_NONE if it is not donated. By output: the input
     * whose memory it reuses, or PLAN_NONE, and whether in place. */
    uint32_t *given, *taken;
    bool *in_place;
    plan_resident *resident;
    double seconds;
    uint64_t runs;
    hlo_seat seat;
    hlo_watch watch; /* for the jobs */
    plan_progress progress;
    /* The first failure of the last run; `failed_at` NULL: the whole run failed. */
    const hlo_instr *failed_at;
    const char *failure;
    /* For the plan of device 0: the plans of all devices, including itself. */
    hlo_plan *self, **devices;
    uint32_t device_count;
};

/* steps.c: creates the steps and slots of one computation, whose callees are planned,
 * and their live ranges. Returns false, after an error in `sink`, if an instruction is not
 * supported. */
bool plan_build(hlo_plan *plan, plan_comp *comp, const hlo_diag_sink *sink);
/* steps.c: finds the instructions that options.values names, among those of the computations that
 * are executed directly (`runs`, by computation id). Returns false, with an error in `sink`, if a
 * name matches nothing. */
bool plan_find_kept(hlo_plan *plan, const bool *runs, const hlo_diag_sink *sink);
/* True if a value is inspected. */
static inline bool plan_looks(const hlo_plan *plan) {
    return plan->kept || plan->options.check_finite;
}
/* True if the instruction's value is saved. */
static inline bool plan_keeps(const hlo_plan *plan, const hlo_instr *instr) {
    return plan->kept && plan->kept[instr->id];
}
/* donation.c: sets given, taken and in_place. HLO_INVALID_INPUT, with an error in `sink`: a
 * requested donation is impossible. */
hlo_status plan_find_donations(hlo_plan *plan, const hlo_diag_sink *sink);
/* donation.c: sets given, taken and in_place for the entry of a plan that is not resident: an
 * output reuses the memory of an input that no step reads once the output is begun. */
void plan_reuse_inputs(hlo_plan *plan, const plan_comp *entry);
/* inline.c: inlines calls if only the position of the instructions changes. */
void plan_inline_calls(hlo_module *module, hlo_arena *scratch);
/* buffers.c: assigns an offset in the frame to every SLOT_BUFFER. */
void plan_place_buffers(hlo_plan *plan, plan_comp *comp);
/* execute.c: queues a run of the entry on plan->arguments, with results in plan->results; waits for
 * it if it is timed. */
hlo_status plan_queue(hlo_plan *plan, const hlo_diag_sink *sink);
/* execute.c: runs the entry `count` times on plan->arguments, with results in plan->results; the
 * n-th run is between the marks n and n + 1. */
hlo_status plan_execute(hlo_plan *plan, size_t count, const hlo_diag_sink *sink);
/* execute.c: waits until the device is idle, and reports its errors. */
hlo_status plan_finish(hlo_plan *plan, const hlo_diag_sink *sink);
/* execute.c: writes the seconds of the n-th run of the last plan_execute(), which has finished. */
hlo_status plan_seconds(hlo_plan *plan, uint32_t n, const hlo_diag_sink *sink, double *out_seconds);
/* execute.c: binds every job to its memory. */
hlo_status plan_bind(hlo_plan *plan, const hlo_diag_sink *sink);
/* execute.c: records a run, if the backend records. */
hlo_status plan_record(hlo_plan *plan, const hlo_diag_sink *sink);

/* steps.c: returns the number of branches of a conditional. */
uint32_t plan_branch_count(const hlo_instr *conditional);
/* Returns the computation of a branch. */
hlo_computation *plan_branch(const hlo_instr *conditional, uint32_t index);

/* donation.c: returns true if nothing reads argument `input` once result `output` is written, so
 * that both may have the same memory. */
bool plan_is_in_place(const plan_comp *comp, uint32_t output, uint32_t input);
/* True if the results of the computation are in its own frame: those of the entry, unless the
 * caller provides their memory. */
static inline bool plan_places_results(const hlo_plan *plan, const plan_comp *comp) {
    return comp->comp == plan->module->entry && !plan->options.resident;
}
/* True if an output of the entry reuses the memory of an input. */
static inline bool plan_is_over_input(const hlo_plan *plan, size_t output) {
    return plan->in_place && plan->in_place[output];
}
/* True if the computation itself writes result `index` to the memory that the caller provides. */
bool plan_makes_result(const plan_comp *comp, uint32_t index);
/* Rounds a size up to the alignment of slots. */
size_t plan_align(const hlo_plan *plan, size_t size);

/* build.c: copies elements of `width` bytes from row-major to the shape's layout. */
void plan_to_physical(const hlo_shape *shape, size_t width, void *to, const void *row_major);
/* build.c: copies elements of `width` bytes from the shape's layout to row-major. */
void plan_to_row_major(const hlo_shape *shape, size_t width, void *row_major, const void *from);
/* build.c: copies an array of `size` bytes with elements of `width` bytes from the device, in
 * the shape's layout, to row-major order at `out`, through `staging` of the same size. */
void plan_fetch(const hlo_plan *plan, const hlo_shape *shape, size_t width, void *out,
                const void *from, size_t size, void *staging);

#endif
