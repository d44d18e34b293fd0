/* SPDX-License-Identifier: Apache-2.0 */
/* Range analysis: computes bounds on the elements of a value from the instructions that compute the
 * value.
 *
 * Invariant: the bounds hold for every execution that follows HLO, for all inputs and all
 * legitimate roundings (ir/error/error.h). */
#ifndef HLO_IR_EVAL_RANGE_H
#define HLO_IR_EVAL_RANGE_H

#include "ir/ir.h"

/* A range bounds all elements except NaN. -0 is below 0: a value whose `low` is 0 has no element
 * -0. */
typedef struct hlo_range {
    double low, high; /* low > high: there are no elements */
    bool whole;       /* every element is an integer */
    unsigned sources; /* bits that the reader of a source sets. A result has the bits of the
                       * operands from which its elements are computed, or all bits if the analysis
                       * does not know the operation */
} hlo_range;

extern const hlo_range hlo_range_empty;
hlo_range hlo_range_of_type(hlo_type type);
/* Returns the range of a constant. Reads at most `*budget` elements, and subtracts their number
 * from `*budget`. Returns the range of the type if the constant has more elements and not all are
 * equal, if an element is NaN, or if the elements are elided. */
hlo_range hlo_range_of_constant(const hlo_instruction *constant, int64_t *budget);
/* Returns the smallest range that contains both ranges. */
hlo_range hlo_range_hull(hlo_range x, hlo_range y);

/* Computes the range of a result that is not a constant. Calls `read` for each operand that the
 * result's elements are computed from. */
typedef hlo_range hlo_range_reader(void *arg, const hlo_instruction *operand);
hlo_range hlo_range_of_result(const hlo_instruction *instr, hlo_range_reader *read, void *arg);
/* Computes the range of a result from the ranges of its operands, of which there are at most three.
 * The range holds only for executions that round each result of the operation correctly. */
hlo_range hlo_range_of_rounded(const hlo_instruction *instr, const hlo_range *operands);

/* Returns the range of a value. Follows operands, calls and barriers over a bounded number of
 * instructions. */
hlo_range hlo_range_of(const hlo_instruction *value);

#endif
