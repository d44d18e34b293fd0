/* Dequantised values that enter loops and branches, and that could enter as fp8 instead.
 *
 *   sink_eligibility.c  legality: which elements of a tuple may be fp8
 *   sink_dequantise.c   the pass, and the instructions that it makes */
#ifndef HLO_PASSES_SINK_H
#define HLO_PASSES_SINK_H

#include "passes/analysis/fp8_provenance.h"
#include "passes/builders/move_chain.h"

enum { HLO_SINK_CALLED = 2 };

typedef enum hlo_carry_kind {
    HLO_CARRY_INVARIANT,  /* every iteration has one value; so has every branch */
    HLO_CARRY_PERMUTED,   /* the next iteration has it from another device, or otherwise moved */
    HLO_CARRY_RECOMPUTED, /* the next iteration has another dequantised value */
    HLO_CARRY_STACKED,    /* each iteration puts another slice into an array that starts as 0 */
} hlo_carry_kind;

/* An element of the tuple that is dequantised. */
typedef struct hlo_sink_candidate {
    bool sinks;
    bool used, fails;
    hlo_carry_kind how;
    hlo_dequantised from; /* before the first iteration; of a stacked element: its slices */
    const hlo_ints
        *dims; /* dimensions of the value along which the scale varies; NULL: it is a scalar */
    hlo_dequantised next; /* HLO_CARRY_RECOMPUTED */
    int64_t scale_index;  /* of the scale in the tuple; -1: a constant, or none */
} hlo_sink_candidate;

/* A tuple that is the parameter of computations. */
typedef struct hlo_sink_region {
    hlo_pass_context *context;
    const hlo_fp8_provenance *provenance; /* of the input: instruction ids below `known` */
    hlo_instr *const *callers; /* by computation: its only caller; NULL: it has none or several */
    uint32_t known;
    hlo_instr *user;  /* the loop, or the conditional */
    uint32_t operand; /* of `user`: the tuple */
    hlo_instr *tuple;
    hlo_computation *called[HLO_SINK_CALLED]; /* of a loop: its body, its condition */
    uint32_t called_count, count;
    uint32_t count_before; /* ids from here on are of new instructions */
    hlo_sink_candidate *elements;
} hlo_sink_region;

/* Returns the index of the element of `tuple` that `value` takes; -1: none. */
int64_t hlo_sink_index(const hlo_instr *value, const hlo_instr *tuple);

/* True if the use makes the value the element `index` of the next iteration's state. */
bool hlo_sink_is_next(const hlo_sink_region *e, const hlo_instr *root, const hlo_use *use,
                      uint32_t index);

/* True if a dynamic-slice takes one index of dimension 0, along which the scale varies, and all of
 * the other dimensions along which it varies. */
bool hlo_sink_slices(const hlo_sink_candidate *what, const hlo_instr *slice,
                     const hlo_instr *value);

/* Sets `sinks` of the elements, to a fixpoint: an element may depend on others that sink. True:
 * some do. */
bool hlo_sink_choose(hlo_sink_region *e);

#endif
