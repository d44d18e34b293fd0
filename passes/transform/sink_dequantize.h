/* Sinks dequantized values into loops and branches: their fp8 values enter these instead.
 *
 *   sink_eligibility.c  legality: which elements of a tuple may be fp8
 *   sink_dequantize.c   the pass: makes tuples with fp8 elements, and rewrites the elements' uses
 *   sink_MODE.c         the ways in which a loop carries an element, hlo_sink_mode each
 *   sink_value.c        readers and makers of values that the modes share */
#ifndef HLO_PASSES_TRANSFORM_SINK_DEQUANTIZE_H
#define HLO_PASSES_TRANSFORM_SINK_DEQUANTIZE_H

#include "passes/analysis/fp8_provenance.h"
#include "passes/builders/move_chain.h"

enum { HLO_SINK_CALLED = 2, HLO_SINK_DEPTH_LIMIT = 64 };

typedef struct hlo_sink_mode hlo_sink_mode;

/* A dequantized element of the tuple. */
typedef struct hlo_sink_candidate {
    bool sinks;
    bool carries_scale; /* the tuple has the scale; false: it is a constant, or there is none */
    const hlo_sink_mode *mode;
    hlo_dequantized from; /* before the first iteration; of a stacked element: its slices */
    const hlo_ints
        *dims; /* dimensions of the value along which the scale varies; NULL: it is a scalar */
    hlo_dequantized next; /* of a recomputed element: in the next iteration */
    int64_t scale_index;  /* index of the scale in the tuple; -1: the tuple does not have it */
} hlo_sink_candidate;

/* A tuple that a loop or a branch takes as its parameter. */
typedef struct hlo_sink_region {
    hlo_pass_context *context;
    const hlo_fp8_provenance *provenance; /* of instructions with ids below `known` */
    hlo_instr *const *callers; /* by computation: its only caller; NULL: it has none or several */
    uint32_t known;
    hlo_instr *user;  /* the loop, or the conditional */
    uint32_t operand; /* index of the tuple among the operands of `user` */
    hlo_instr *tuple;
    hlo_computation *called[HLO_SINK_CALLED]; /* a loop's body and condition, or a branch */
    uint32_t called_count, count;
    uint32_t count_before; /* instructions made by the pass have this id or higher ones */
    hlo_sink_candidate *elements;
} hlo_sink_region;

/* How a loop carries an element to its next iteration. */
struct hlo_sink_mode {
    /* True for elements that the loop carries in this way; NULL: for all. */
    bool (*matches)(const hlo_sink_region *e, uint32_t index);
    /* Reads the element's dequantized values. False: it cannot sink. */
    bool (*read)(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out);
    /* Returns the value on which the scale of the next iteration depends; NULL: the scale stays. */
    const hlo_instr *(*varies_with)(const hlo_sink_region *e, uint32_t index);
    /* Makes the fp8 value, and its scale if it has one, before the first iteration. */
    hlo_instr *(*first)(const hlo_sink_region *e, const hlo_sink_candidate *what, hlo_instr *wide,
                        hlo_instr **out_scale);
    /* Makes the fp8 value of the next iteration, if it differs, and returns its scale; NULL: no
     * scale is carried. */
    hlo_instr *(*next)(const hlo_sink_region *e, uint32_t index);
    bool lasts; /* the loop leaves the value unchanged */
    bool links; /* a chain of operands 0 leads from the next value to the element */
    bool after; /* dots use the value behind the loop, not inside it */
};

extern const hlo_sink_mode hlo_sink_invariant;  /* one value for all iterations, or a branch */
extern const hlo_sink_mode hlo_sink_permuted;   /* moved, or received from another device */
extern const hlo_sink_mode hlo_sink_recomputed; /* a new dequantized value */
extern const hlo_sink_mode hlo_sink_stacked; /* an array of zeros that receives a slice each time */

/* Returns the index of the element of `tuple` that `value` takes; -1: none. */
int64_t hlo_sink_index(const hlo_instr *value, const hlo_instr *tuple);
/* Returns the element in the next iteration's state. */
hlo_instr *hlo_sink_next(const hlo_sink_region *e, uint32_t index);
/* True if the use makes the value the element `index` of the next iteration's state. */
bool hlo_sink_is_next(const hlo_sink_region *e, const hlo_use *use, uint32_t index);
/* Returns the start of a chain of movement and collectives that ends at `value`. */
const hlo_instr *hlo_sink_moved_from(const hlo_instr *value);
/* True for a collective that a chain of hlo_sink_moved_from() may contain. */
bool hlo_sink_is_collective(const hlo_instr *instr);
/* Reads a dequantized value below movement. */
bool hlo_sink_read_moved(hlo_instr *value, hlo_dequantized *out);
/* Reads the element's value before the first iteration. */
bool hlo_sink_read_first(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out);

/* Makes an instruction before another one, with the source location of the other. */
hlo_instr *hlo_sink_insert(hlo_instr *before, hlo_op op, const hlo_shape *shape, uint32_t count,
                           hlo_instr *const *operands);
/* Makes the get-tuple-element of an element. */
hlo_instr *hlo_sink_take(hlo_instr *before, hlo_instr *tuple, int64_t index);
/* Makes a reshape of `value` to the dimensions. */
hlo_instr *hlo_sink_reshape(hlo_instr *before, hlo_instr *value, uint32_t rank,
                            const int64_t *dims);
/* Broadcasts `value`, whose dimensions are `dims` of the shape; NULL: a scalar. */
hlo_instr *hlo_sink_broadcast(hlo_instr *before, hlo_instr *value, const hlo_shape *shape,
                              const hlo_ints *dims);
/* Sets the element type of `value` to the candidate's fp8 type. */
void hlo_sink_retype(const hlo_sink_candidate *what, hlo_instr *value);
/* Clones the chain of links from `link` down to the dequantized value onto the fp8 value. */
hlo_instr *hlo_sink_carry(const hlo_sink_candidate *what, hlo_instr *link, hlo_instr *before);
/* Implements `first` of modes whose first value is the tuple's element. */
hlo_instr *hlo_sink_first_carried(const hlo_sink_region *e, const hlo_sink_candidate *what,
                                  hlo_instr *wide, hlo_instr **out_scale);
/* Implements `next` of modes whose scale stays: takes it from the body's parameter. */
hlo_instr *hlo_sink_same_scale(const hlo_sink_region *e, uint32_t index);

/* Sets `sinks` of each element, to a fixpoint: an element may sink only if others do. True if one
 * sinks. */
bool hlo_sink_choose(hlo_sink_region *e);

#endif
