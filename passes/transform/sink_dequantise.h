/* Dequantised values that enter loops and branches, and that could enter as fp8 instead.
 *
 *   sink_eligibility.c  legality: which elements of a tuple may be fp8
 *   sink_dequantise.c   the pass: tuples with fp8 elements, and what becomes of their uses
 *   sink_MODE.c         the ways in which a loop carries an element, hlo_sink_mode each
 *   sink_value.c        what these read and make */
#ifndef HLO_PASSES_SINK_H
#define HLO_PASSES_SINK_H

#include "passes/analysis/fp8_provenance.h"
#include "passes/builders/move_chain.h"

enum { HLO_SINK_CALLED = 2, HLO_SINK_DEPTH_LIMIT = 64 };

typedef struct hlo_sink_mode hlo_sink_mode;

/* An element of the tuple that is dequantised. */
typedef struct hlo_sink_candidate {
    bool sinks;
    bool carries_scale; /* in the tuple; false: the scale is a constant, or there is none */
    const hlo_sink_mode *mode;
    hlo_dequantised from; /* before the first iteration; of a stacked element: its slices */
    const hlo_ints
        *dims; /* dimensions of the value along which the scale varies; NULL: it is a scalar */
    hlo_dequantised next; /* of a recomputed element: in the next iteration */
    int64_t scale_index;  /* of the scale in the tuple; -1: it has none */
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

/* How a loop carries an element to its next iteration. */
struct hlo_sink_mode {
    /* True for elements that are carried so; NULL: for all. */
    bool (*matches)(const hlo_sink_region *e, uint32_t index);
    /* Reads the dequantised values of such an element. False: it cannot sink. */
    bool (*read)(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out);
    /* Finds what the scale of the next iteration comes from; NULL: the scale stays the same. */
    const hlo_instr *(*varies_with)(const hlo_sink_region *e, uint32_t index);
    /* Makes the fp8 value, and its scale if it has one, before the first iteration. */
    hlo_instr *(*first)(const hlo_sink_region *e, const hlo_sink_candidate *what, hlo_instr *wide,
                        hlo_instr **out_scale);
    /* Makes the fp8 value of the next iteration, if that is another one, and returns its scale;
     * NULL: no scale is carried. */
    hlo_instr *(*next)(const hlo_sink_region *e, uint32_t index);
    bool lasts; /* the value after the loop is the one before it */
    bool links; /* instructions on operands 0 lead from the element to its next value */
    bool after; /* dots use the value after the loop, not in it */
};

extern const hlo_sink_mode hlo_sink_invariant;  /* every iteration has one value, or branch */
extern const hlo_sink_mode hlo_sink_permuted;   /* from another device, or otherwise moved */
extern const hlo_sink_mode hlo_sink_recomputed; /* another dequantised value */
extern const hlo_sink_mode hlo_sink_stacked; /* another slice goes into an array that starts as 0 */

/* Returns the index of the element of `tuple` that `value` takes; -1: none. */
int64_t hlo_sink_index(const hlo_instr *value, const hlo_instr *tuple);
/* Returns the element in the next iteration's state. */
hlo_instr *hlo_sink_next(const hlo_sink_region *e, uint32_t index);
/* True if the use makes the value the element `index` of the next iteration's state. */
bool hlo_sink_is_next(const hlo_sink_region *e, const hlo_use *use, uint32_t index);
/* True for movement whose clone needs no other new instruction. */
bool hlo_sink_is_plain(const hlo_instr *link);
/* Returns the start of a chain of movement and collectives that ends at `value`. */
const hlo_instr *hlo_sink_moved_from(const hlo_instr *value);
/* True for the collectives that such a chain may have. */
bool hlo_sink_is_collective(const hlo_instr *instr);
/* Reads a dequantised value below movement. */
bool hlo_sink_read_moved(hlo_instr *value, hlo_dequantised *out);
/* Reads the element's value before the first iteration. */
bool hlo_sink_read_first(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out);

/* Makes an instruction before another one. */
hlo_instr *hlo_sink_insert(hlo_instr *before, hlo_op op, const hlo_shape *shape, uint32_t count,
                           hlo_instr *const *operands);
hlo_instr *hlo_sink_take(hlo_instr *before, hlo_instr *tuple, int64_t index);
hlo_instr *hlo_sink_reshape(hlo_instr *before, hlo_instr *value, uint32_t rank,
                            const int64_t *dims);
/* Broadcasts `value` along `dims` of the shape; NULL: a scalar. */
hlo_instr *hlo_sink_broadcast(hlo_instr *before, hlo_instr *value, const hlo_shape *shape,
                              const hlo_ints *dims);
/* Gives `value` the element type of the fp8 value. */
void hlo_sink_retype(const hlo_sink_candidate *what, hlo_instr *value);
/* Clones the links from `link` down to the dequantised value onto the fp8 value. */
hlo_instr *hlo_sink_carry(const hlo_sink_candidate *what, hlo_instr *link, hlo_instr *before);
/* Columns `first` and `next` of modes whose first value is the one in the tuple, and whose scale
 * stays the same. */
hlo_instr *hlo_sink_first_carried(const hlo_sink_region *e, const hlo_sink_candidate *what,
                                  hlo_instr *wide, hlo_instr **out_scale);
hlo_instr *hlo_sink_same_scale(const hlo_sink_region *e, uint32_t index);

/* Sets `sinks` of the elements, to a fixpoint: an element may depend on others that sink. True:
 * some do. */
bool hlo_sink_choose(hlo_sink_region *e);

#endif
