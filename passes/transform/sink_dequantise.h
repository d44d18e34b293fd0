/* What a loop or a branch is handed dequantised, and whether it may be handed the fp8 value
 * instead.
 *
 *   sink_eligibility.c  which elements of a tuple may
 *   sink_dequantise.c   the pass, and what it makes */
#ifndef HLO_PASSES_SINK_H
#define HLO_PASSES_SINK_H

#include "passes/analysis/fp8_provenance.h"
#include "passes/builders/move_chain.h"

enum { HLO_SINK_CALLED = 2 };

typedef enum hlo_carry_kind {
    HLO_CARRY_INVARIANT,  /* the next round has what this one has; so has every branch */
    HLO_CARRY_PERMUTED,   /* the next round has it from another device, or otherwise moved */
    HLO_CARRY_RECOMPUTED, /* the next round has another value that is dequantised as well */
    HLO_CARRY_STACKED,    /* each round puts another slice in, into what was 0 */
} hlo_carry_kind;

/* An element that is handed in dequantised. */
typedef struct hlo_sink_candidate {
    bool sinks;
    bool used, fails;
    hlo_carry_kind how;
    hlo_dequantised from; /* as it is at first; of slices that are put in: as these are */
    const hlo_ints
        *dims; /* of the value, those along which the scale differs; NULL: there is one */
    hlo_dequantised next; /* HLO_CARRY_RECOMPUTED */
    int64_t scale_index;  /* where the scale is handed in; -1: a constant, or none */
} hlo_sink_candidate;

/* A tuple that is handed to computations of which it is the parameter. */
typedef struct hlo_sink_region {
    hlo_pass_context *context;
    const hlo_fp8_provenance
        *provenance;           /* of what was there when the pass began: ids below `known` */
    hlo_instr *const *callers; /* by computation: the one that calls it; NULL: not just one does */
    uint32_t known;
    hlo_instr *user;  /* the loop, or the conditional */
    uint32_t operand; /* of it */
    hlo_instr *tuple;
    hlo_computation *called[HLO_SINK_CALLED]; /* of a loop: its body, its condition */
    uint32_t called_count, count;
    uint32_t count_before; /* ids from here on are of what was made */
    hlo_sink_candidate *elements;
} hlo_sink_region;

/* Which element of `tuple` it is; -1: none. */
int64_t hlo_sink_index(const hlo_instr *value, const hlo_instr *tuple);

/* Whether the next round has at that place what this one has there. */
bool hlo_sink_is_next(const hlo_sink_region *e, const hlo_instr *root, const hlo_use *use,
                      uint32_t index);

/* Whether a dynamic-slice takes one of what lies along dimension 0, along which the scale differs,
 * and all of what the scale differs along otherwise. */
bool hlo_sink_slices(const hlo_sink_candidate *what, const hlo_instr *slice,
                     const hlo_instr *value);

/* Which elements sink: each may count on the others, until one of them does not. */
bool hlo_sink_choose(hlo_sink_region *e);

#endif
