/* The inside of a report: slots while passes run (remark.c), verdicts afterwards (report.c). */
#ifndef HLO_PASSES_REPORT_H
#define HLO_PASSES_REPORT_H

#include "passes/remark.h"

typedef struct slot {
    const hlo_instr *instr; /* what stands for the matmul now; NULL: nothing */
    uint32_t same_as;       /* another slot that stands for it too, plus one; 0: none */
    uint32_t origin;        /* the slot that this one is a copy of, plus one; 0: none */
    bool copied;            /* other slots are copies of this one */
    hlo_reason reason;      /* HLO_WHY_COUNT: none */
    const char *blocker;
    uint32_t offset; /* in the module's source */
    double flops;
    hlo_verdict was; /* as the module had it when the slot was made; kind, reason, position unset */
} slot;

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
    hlo_arena *arena;       /* of everything below, strings included */
    const char *frameworks; /* globs */
    slot *slots;
    uint32_t count, room;
    uint32_t *slot_of; /* by instruction id: its slot plus one; 0: none */
    uint32_t ids;      /* room of slot_of */
    hlo_verdict *verdicts;
    size_t verdict_count;
    tallies passes, rules;
};

/* By hlo_reason: the text of passes/why/NAME.md. */
extern const char *const hlo_reason_pages[HLO_WHY_COUNT];

/* The facts of a matmul that a verdict tells: name, shape, operands, epilogue, op_name, source. */
hlo_verdict hlo_report_describe(const hlo_report *report, const hlo_instr *matmul);
/* Floating-point operations of one execution. */
double hlo_report_flops(const hlo_instr *matmul);

#endif
