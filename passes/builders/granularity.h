/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the granularity of values: for each dimension, the length of aligned runs of equal
 * elements. Along the contracting dimension, a scale per row has the size of the dimension as
 * granularity, and a scale per block of 128 has granularity 128. The compact form of a value has
 * one element of each run. */
#ifndef HLO_PASSES_BUILDERS_GRANULARITY_H
#define HLO_PASSES_BUILDERS_GRANULARITY_H

#include "passes/engine/engine.h"

/* The run length for each dimension, at least 1. If a run length is at least the dimension's size,
 * the value does not vary along the dimension. */
typedef struct hlo_granularity {
    int64_t v[HLO_RULE_ARGS];
} hlo_granularity;

/* Finds the granularity that operand 0 of `link`, which moves elements, must have so that the
 * result has `granularity`, except for the elements that a pad adds. Returns false if no sufficient
 * granularity is known. */
bool hlo_granularity_of_operand(const hlo_instruction *link, const hlo_granularity *granularity,
                                hlo_granularity *out_below);

/* True if `value` provably has the granularity. Visits a bounded number of instructions. */
bool hlo_granularity_holds(hlo_instruction *value, const hlo_granularity *granularity);
/* Like hlo_granularity_holds(), but for values in any memory space. Sets `*out_held` to an
 * instruction that is in another memory space or reads from it, or to NULL. */
bool hlo_granularity_holds_elsewhere(hlo_instruction *value, const hlo_granularity *granularity,
                                     const hlo_instruction **out_held);

/* Builds the compact form of `value`, which must have the granularity. Returns NULL on failure. */
hlo_instruction *hlo_granularity_compact(hlo_rule_env *env, hlo_instruction *value,
                                         const hlo_granularity *granularity);

/* Builds the compact form of `link` from `packed`, the compact form of its operand 0, which has the
 * granularity from hlo_granularity_of_operand(). Elements that a pad adds become 1. Returns NULL on
 * failure. */
hlo_instruction *hlo_granularity_carry(hlo_rule_env *env, const hlo_instruction *link,
                                       const hlo_granularity *granularity, hlo_instruction *packed);

/* Builds the value of `shape` whose compact form is `packed`: repeats each element along its run.
 * Returns NULL on failure. */
hlo_instruction *hlo_granularity_expand(hlo_rule_env *env, hlo_instruction *packed,
                                        const hlo_shape *shape, const hlo_granularity *granularity);

/* Returns the shape of the compact form of a value of `shape`, with elements of `type`. */
const hlo_shape *hlo_granularity_shape(hlo_rule_env *env, const hlo_shape *shape, hlo_type type,
                                       const hlo_granularity *granularity);
/* Computes the dimensions of a compact form. */
void hlo_granularity_dims(const hlo_shape *shape, const hlo_granularity *granularity,
                          int64_t *out_dims);

#endif
