/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a plan: its steps, in order, and their memory.
 *
 * A plan has no tuples: the value of each instruction is a list of leaves, each of which has a
 * slot. A slot stands for memory: a range of the computation's frame, an argument or a result whose
 * memory the caller provides, or a constant. Instructions that only forward values, such as tuple,
 * get-tuple-element and bitcast, forward slots and cost nothing.
 *
 * Each computation is planned once. Its caller provides its frame, a range of the caller's own
 * frame, so that the whole program needs only one allocation. A computation never calls itself, so
 * it is active at most once, and its slots can store the addresses of the current run. */
#ifndef HLO_RUNTIME_PLAN_PLAN_H
#define HLO_RUNTIME_PLAN_PLAN_H

#include "hlo/runtime.h"
#include "runtime/backend.h"
#include "runtime/io/arrays.h"

/* The memory of a leaf. */
typedef struct plan_place {
    void *data;
    float *bound; /* sigmas of the elements; NULL if the elements are exact */
} plan_place;

typedef enum plan_slot_kind {
    SLOT_BUFFER,   /* a range of the frame */
    SLOT_ARGUMENT, /* provided by the caller, read only */
    SLOT_RESULT,   /* provided by the caller, written */
    SLOT_CONSTANT,
    SLOT_NOWHERE /* neither computed nor read */
} plan_slot_kind;

typedef struct plan_slot {
    plan_slot_kind kind;
    hlo_type type;
    size_t size;          /* bytes of the elements */
    size_t bound_size;    /* bytes of the sigmas, which follow the elements, or 0 */
    size_t offset;        /* SLOT_BUFFER, results of the entry: offset in the frame */
    uint32_t index;       /* SLOT_ARGUMENT, SLOT_RESULT: number of the argument or result */
    uint32_t first, last; /* live range of a SLOT_BUFFER, in steps */
    uint32_t results;     /* number of results of the computation that use the slot */
    plan_place place;
} plan_slot;

typedef enum plan_step_kind {
    STEP_JOB,
    STEP_COPY, /* copies one leaf, byte by byte */
    STEP_CALL, /* runs the computation of a call or fusion */
    STEP_WHILE,
    STEP_CONDITIONAL,
    STEP_RECEIVE, /* writes a value that the host sends: of an infeed or recv-done */
    STEP_SEND,    /* records a value that the host receives: of an outfeed or send */
    STEP_LOOK     /* inspects the values of an instruction and of its operands */
} plan_step_kind;

#define PLAN_NONE UINT32_MAX
#define PLAN_ANY (UINT32_MAX - 1)

/* A recorded run: graphs to replay, with data-dependent control flow between them. */
typedef struct plan_command_buffer plan_command_buffer;
/* The state of inspecting values and of timing; defined in runtime/exec/. */
typedef struct plan_look plan_look;
typedef struct plan_trace plan_trace;
/* The shared device, and the state of a resident plan's runs; defined in runtime/exec/. */
typedef struct plan_device plan_device;
typedef struct plan_resident plan_resident;

/* Values between the host and a device, in order. All infeeds are one queue, all outfeeds are one,
 * and each channel of a recv or send with the host is one. */
typedef struct plan_feed {
    bool sends;      /* the host receives the values */
    int64_t channel; /* -1: infeed or outfeed */
    uint64_t count;  /* number of values in this run */
} plan_feed;

typedef struct plan_step {
    plan_step_kind kind;
    const hlo_instruction *instr;
    uint32_t operand_count, result_count;
    uint32_t *operands; /* slots */
    uint32_t *results;  /* slots; PLAN_NONE if the callee's result is an argument or a constant,
                         * which is forwarded */
    uint32_t work;      /* a slot that lives during the step: the callees' frame or the job's
                         * scratch; or PLAN_NONE */
    hlo_job *job;       /* STEP_JOB */
    struct plan_comp **called; /* STEP_CALL: the callee; STEP_WHILE: condition, body;
                                * STEP_CONDITIONAL: the branches */
    uint32_t called_count;
    uint32_t *spare;           /* STEP_WHILE: a second slot per result, for the next iteration;
                                * PLAN_NONE if the body writes the next state in place */
    uint32_t predicate;        /* STEP_WHILE: slot of the predicate */
    uint64_t trip_count;       /* STEP_WHILE: trip count, or HLO_TRIP_COUNT_UNKNOWN */
    bool unrolls;              /* STEP_WHILE: each iteration is recorded separately */
    uint32_t *branch_operands; /* STEP_CONDITIONAL: first operand of each branch */
    plan_place *arguments,
        *lent;                /* memory of a callee's arguments and results, filled for each run */
    const hlo_shape **shapes; /* STEP_LOOK: shapes of `operands`, which are the leaves of the value,
                               * then the leaves of the instruction's operands. STEP_RECEIVE: shapes
                               * of `results`. STEP_SEND: shapes of `operands` */
    plan_feed *feed;          /* STEP_RECEIVE, STEP_SEND */
    uint32_t *sources;        /* STEP_RECEIVE, by leaf: the device for which it is drawn */
    uint32_t own;             /* STEP_LOOK: number of leaves of the value */
    bool keeps, checks;       /* STEP_LOOK: save the value; check it for NaNs and infinities */
    uint64_t runs;            /* with options.profile: number of runs of a job or copy; for a loop
                               * or conditional, number of decisions of the host */
    double seconds;           /* total time of these runs or decisions */
} plan_step;

typedef struct plan_comp {
    const hlo_computation *comp;
    plan_slot *slots;
    plan_step *steps;
    uint32_t slot_count, slot_capacity, step_count, step_capacity;
    uint32_t argument_count, result_count;
    const hlo_shape **argument_shapes; /* layouts in which the caller passes arguments */
    const hlo_shape **result_shapes;   /* layouts in which the caller receives results */
    uint32_t *arguments;               /* slots; PLAN_NONE if not read */
    uint32_t *results;                 /* slots of the root's leaves; NULL if not executable */
    size_t frame_size;
    uint64_t weight;  /* estimated jobs of a run; a loop that is not unrolled counts once */
    bool hosted;      /* at least one job runs on the host */
    bool is_bound;    /* the computation's jobs are bound */
    uint32_t depth;   /* nesting depth if loops and conditionals are recorded as branches */
    double jobs;      /* jobs of a run in which conditionals select the branches with most jobs; NaN
                       * if unknown */
    uint32_t nesting; /* nesting depth of the computations that a run calls */
} plan_comp;

/* The progress of a run, for options.progress; the calling thread reads that of device 0. */
typedef struct plan_progress {
    double start, next; /* start of the run, and time of the next call, by the clock of
                         * plan_trace_clock() */
    _Atomic double done;
    _Atomic(const char *) instruction;
    bool stopped;
} plan_progress;

typedef enum plan_effect {
    PLAN_EFFECT = 1,  /* a side effect */
    PLAN_TRANSFER = 2 /* transfers values between the host and the device */
} plan_effect;

struct hlo_plan {
    hlo_arena *arena;
    const hlo_module *module;
    hlo_module *expanded; /* owned copy of the module without the constructs that plan.c expands;
                           * NULL if there were none */
    const hlo_backend *backend;
    void *device;
    plan_device *shared; /* handle of the device; NULL until it is open */
    hlo_plan_options options;
    plan_comp **comps; /* by computation id; NULL if the computation is not executed */
    /* By computation id, shapes that replace those of the parameters and the root, because a module
     * may have different layouts on both sides of a call. NULL if the computation's own shapes
     * apply. */
    const hlo_shape **arguments_like, **results_like;
    plan_comp *entry;
    unsigned *effects; /* by computation id: bits of plan_effect of its instructions, and of the
                        * computations that they call */
    plan_feed *feeds;  /* sorted */
    uint32_t feed_count;
    bool unsure;        /* other rounding errors may lead to another number of transfers before the
                         * current step */
    hlo_arrays sent;    /* the values that the host received in this run */
    hlo_arrays drawn;   /* seed and draw of the run's inputs; no arrays */
    bool *kept;         /* by instruction id: the value is saved; or NULL */
    plan_look *look;    /* NULL if no value is inspected */
    bool keeps_largest; /* of an f32 value that is computed several times, save the maximum of
                         * each element, or NaN if the element is NaN once */
    hlo_arrays values;  /* values of all devices that the last run saved; owns only the list */
    plan_trace *trace;  /* NULL without timing */
    hlo_leaves inputs, outputs;
    plan_place *arguments, *results; /* places of the entry's arguments and results */
    void *memory;                    /* all memory of a run */
    size_t memory_size;
    plan_command_buffer *buffer; /* recorded run to replay; NULL if a run executes the steps */
    /* The next three members are NULL unless the plan is resident or has options.overwrites_inputs.
     * `given`, by input: the output that reuses the input's memory, PLAN_ANY if any may, or
     * PLAN_NONE if the input is not donated. `taken`, by output: the input whose memory the output
     * reuses, or PLAN_NONE. `in_place`, by output: true if the output is written in place. */
    uint32_t *given, *taken;
    bool *in_place;
    plan_resident *resident;
    double seconds;
    uint64_t runs;
    hlo_seat seat;
    hlo_watch watch; /* watch of the jobs */
    plan_progress progress;
    /* The first failure of the last run. `failed_at` is NULL if the whole run failed. */
    const hlo_instruction *failed_at;
    const char *failure;
    /* In the plan of device 0: the plans of all devices, including this plan. */
    hlo_plan *self, **devices;
    uint32_t device_count;
};

/* steps.c: creates the steps and slots of one computation, whose callees must be planned, and the
 * slots' live ranges. Returns false, after emitting an error to `sink`, if an instruction is not
 * supported. */
bool plan_build(hlo_plan *plan, plan_comp *comp, const hlo_diag_sink *sink);
/* transfer.c: sets effects, feeds and feed_count of a plan. */
void plan_find_transfers(hlo_plan *plan);
/* transfer.c: returns the queue of an instruction that transfers values between the host and the
 * device; NULL for other instructions. A recv only begins a transfer, and a send-done only ends
 * one. */
plan_feed *plan_feed_of(const hlo_plan *plan, const hlo_instruction *instr);
/* transfer.c: returns the bits of plan_effect of an instruction. */
unsigned plan_effects_of(const hlo_plan *plan, const hlo_instruction *instr);
/* transfer.c: begins a run without transfers. */
void plan_transfers_begin(hlo_plan *plan);
/* transfer.c: run a STEP_RECEIVE or STEP_SEND. May return HLO_OUT_OF_MEMORY. */
hlo_status plan_receive(hlo_plan *plan, const plan_comp *comp, const plan_step *step);
hlo_status plan_send(hlo_plan *plan, const plan_comp *comp, const plan_step *step);
/* transfer.c: makes the sigmas of the values unknown that were sent after the first `first`,
 * because other rounding errors may lead to other transfers. */
void plan_transfers_unsure(hlo_plan *plan, size_t first);
/* steps.c: finds the instructions that options.values names, in computations that are executed
 * directly (`runs`, by computation id). Returns false, after emitting an error to `sink`, if a name
 * matches no such instruction. */
bool plan_find_kept(hlo_plan *plan, const bool *runs, const hlo_diag_sink *sink);
/* True if any value is inspected. */
static inline bool plan_looks(const hlo_plan *plan) {
    return plan->kept || plan->options.check_finite;
}
/* True if the instruction's value is saved. */
static inline bool plan_keeps(const hlo_plan *plan, const hlo_instruction *instr) {
    return plan->kept && plan->kept[instr->id];
}
/* donation.c: sets given, taken and in_place of a resident plan. If a requested donation is
 * impossible, emits an error to `sink` and returns HLO_INVALID_INPUT. */
hlo_status plan_find_donations(hlo_plan *plan, const hlo_diag_sink *sink);
/* donation.c: sets given, taken and in_place of a plan that is not resident. An output reuses the
 * memory of an input that no step reads after the output is begun. */
void plan_reuse_inputs(hlo_plan *plan, const plan_comp *entry);
/* inline.c: inlines those calls for which inlining only changes the position of instructions. */
void plan_inline_calls(hlo_module *module, hlo_arena *scratch);
/* buffers.c: assigns an offset in the frame to every SLOT_BUFFER. */
void plan_place_buffers(hlo_plan *plan, plan_comp *comp);
/* execute.c: queues a run of the entry on plan->arguments, with results in plan->results. Waits for
 * the run if it is timed. */
hlo_status plan_queue(hlo_plan *plan, const hlo_diag_sink *sink);
/* execute.c: runs the entry `count` times on plan->arguments, with results in plan->results. The
 * n-th run, from 0, is between the marks n and n + 1. */
hlo_status plan_execute(hlo_plan *plan, size_t count, const hlo_diag_sink *sink);
/* execute.c: waits until the device is idle, and reports its errors. */
hlo_status plan_finish(hlo_plan *plan, const hlo_diag_sink *sink);
/* execute.c: writes the seconds of the n-th run of the last plan_execute(), now finished. */
hlo_status plan_seconds(hlo_plan *plan, uint32_t n, const hlo_diag_sink *sink, double *out_seconds);
/* execute.c: binds every job to its memory. */
hlo_status plan_bind(hlo_plan *plan, const hlo_diag_sink *sink);
/* execute.c: records a run if the backend supports recording. */
hlo_status plan_record(hlo_plan *plan, const hlo_diag_sink *sink);

/* steps.c: returns the number of branches of a conditional. */
uint32_t plan_branch_count(const hlo_instruction *conditional);
/* Returns the computation of a branch. */
hlo_computation *plan_branch(const hlo_instruction *conditional, uint32_t index);

/* donation.c: returns true if nothing reads argument `input` after result `output` is begun, so
 * that both may have the same memory. */
bool plan_is_in_place(const plan_comp *comp, uint32_t output, uint32_t input);
/* True if the results of the computation are in its own frame. This holds for the entry computation
 * unless the caller provides the memory. */
static inline bool plan_places_results(const hlo_plan *plan, const plan_comp *comp) {
    return comp->comp == plan->module->entry && !plan->options.resident;
}
/* True if an output of the entry reuses the memory of an input. */
static inline bool plan_is_over_input(const hlo_plan *plan, size_t output) {
    return plan->in_place && plan->in_place[output];
}
/* True if the computation itself writes result `index` to the memory that the caller provides. */
static inline bool plan_makes_result(const plan_comp *comp, uint32_t index) {
    const plan_slot *slot = &comp->slots[comp->results[index]];
    return slot->kind == SLOT_RESULT && slot->index == index;
}
/* Rounds a size up to the alignment of slots. */
size_t plan_align(const hlo_plan *plan, size_t size);

/* buffers.c: copies elements of `width` bytes from row-major to the shape's layout, and back. */
void plan_to_physical(const hlo_shape *shape, size_t width, void *to, const void *row_major);
void plan_to_row_major(const hlo_shape *shape, size_t width, void *row_major, const void *from);
/* buffers.c: copies an array of `size` bytes with elements of `width` bytes, in the shape's layout,
 * from the device to `out`, in row-major order. `staging` has `size` bytes. */
void plan_fetch(const hlo_plan *plan, const hlo_shape *shape, size_t width, void *out,
                const void *from, size_t size, void *staging);

#endif
