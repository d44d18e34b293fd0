/* The inside of a report: slots while passes run (remark.c), verdicts afterwards (report.c). */
#ifndef HLO_PASSES_REPORT_H
#define HLO_PASSES_REPORT_H

#include "cost/cost.h"
#include "matmul/product.h"
#include "passes/verdict/remark.h"
#include "passes/verdict/surroundings.h"

typedef struct slot {
    const hlo_instr *instr; /* what stands for the matmul now, or did last */
    uint32_t same_as;       /* another slot that stands for it too, plus one; 0: none */
    uint32_t origin;        /* the slot that this one is a copy of, plus one; 0: none */
    bool copied;            /* other slots are copies of this one */
    hlo_reason reason;      /* HLO_REASON_COUNT: none */
    uint64_t judged;        /* the value of report->judging when `instr` was given it */
    const char *blocker;
    uint32_t offset;                /* in the module's source */
    const hlo_surroundings *around; /* as the module had it; NULL: not kept */
    uint32_t
        weighed;     /* the id of what stood for the matmul when report->input_costs were weighed */
    hlo_verdict was; /* as the module had it when the slot was made; kind, reason, position unset */
} slot;

/* What is around a matmul before and after; NULL: not kept, or no longer there. */
typedef struct surroundings {
    const hlo_surroundings *side[2];
} surroundings;

typedef struct lint {
    hlo_verdict verdict;
    hlo_reason reason;
    uint32_t offset; /* in the module's source */
} lint;

typedef struct tally tally;
struct tally {
    tally *next;
    const char *name;
    double seconds;
    uint64_t times;
};

typedef struct tallies {
    tally *first, *last;
} tallies;

struct hlo_report {
    hlo_arena *arena;              /* of everything below, strings included */
    const char *frameworks;        /* globs */
    const hlo_stack_frame *frames; /* that `places` is of */
    int64_t *places[2]; /* by frame: see find_frame() in report.c; 0: not looked for yet */
    hlo_target target;  /* what the module is rewritten for */
    slot *slots;
    uint32_t count, capacity;
    uint32_t *slot_of;            /* by instruction id: its slot plus one; 0: none */
    uint32_t ids;                 /* room of slot_of */
    uint64_t judging;             /* how often hlo_remark_begin() was called, plus one */
    const hlo_costs *input_costs; /* before the rewriter; NULL: it has not run */
    const bool *kept; /* by slot: stays wide, as FP8 gains too little; NULL: none does */
    uint32_t kept_count;
    bool *slow;    /* of a closed report, by slot: kept wide, or should have been; */
    bool any_slow; /* some should have been */
    hlo_verdict *verdicts;
    size_t verdict_count;
    surroundings *around; /* by verdict; NULL: not kept */
    lint *lints;
    uint32_t lint_count, lint_capacity;
    tallies passes, rules;
};

/* The facts of a matmul that a verdict tells: name, shape, operands, epilogue, op_name, source. */
hlo_verdict hlo_report_describe(hlo_report *report, const hlo_instr *matmul);

#endif
