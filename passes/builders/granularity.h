/* SPDX-License-Identifier: Apache-2.0 */
/* Granularity of a value: per dimension, the length of aligned runs of equal elements. Along the
 * contracting dimension, a scale per row has the granularity of the whole dimension, and a scale
 * per block of 128 has 128. The compact form of a value has one element of each run. */
#ifndef HLO_PASSES_BUILDERS_GRANULARITY_H
#define HLO_PASSES_BUILDERS_GRANULARITY_H

#include "passes/engine/engine.h"

/* Run lengths per dimension, at least 1. If a run length is at least the dimension's size, the
 * value does not vary along the dimension. */
typedef struct hlo_granularity {
    int64_t v[HLO_RULE_ARGS];
} hlo_granularity;

/* Finds the granularity that operand 0 of `link`, which moves elements, must have so that the
 * result has `granularity`, except for the elements that a pad adds. Returns false if no
 * granularity suffices, or none is known. */
bool hlo_granularity_of_operand(const hlo_instr *link, const hlo_granularity *granularity,
                                hlo_granularity *out_below);

/* True if `value` provably has the granularity. Visits a bounded number of instructions. */
bool hlo_granularity_holds(hlo_instr *value, const hlo_granularity *granularity);
/* Like hlo_granularity_holds(), but in any memory space. `*out_held`: an instruction in another
 * space, or one that reads from it, or NULL. */
bool hlo_granularity_holds_elsewhere(hlo_instr *value, const hlo_granularity *granularity,
                                     const hlo_instr **out_held);

/* Builds the compact form of `value`, which has the granularity. Returns NULL on failure. */
hlo_instr *hlo_granularity_compact(hlo_rule_env *env, hlo_instr *value,
                                   const hlo_granularity *granularity);

/* Builds the compact form of `link` from `packed`, the compact form of its operand 0, which has the
 * granularity from hlo_granularity_of_operand(). A pad adds ones. Returns NULL on failure. */
hlo_instr *hlo_granularity_carry(hlo_rule_env *env, const hlo_instr *link,
                                 const hlo_granularity *granularity, hlo_instr *packed);

/* Builds the value of `shape` with the compact form `packed` by repeating each element along its
 * run. Returns NULL on failure. */
hlo_instr *hlo_granularity_expand(hlo_rule_env *env, hlo_instr *packed, const hlo_shape *shape,
                                  const hlo_granularity *granularity);

/* Returns the shape of the compact form of a value of `shape`, with elements of `type`. */
const hlo_shape *hlo_granularity_shape(hlo_rule_env *env, const hlo_shape *shape, hlo_type type,
                                       const hlo_granularity *granularity);
/* Computes the dimensions of a compact form. */
void hlo_granularity_dims(const hlo_shape *shape, const hlo_granularity *granularity,
                          int64_t *out_dims);

#endif
