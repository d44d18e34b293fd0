/* How coarse a value is: per dimension, in aligned runs of how many elements it does not change. A
 * scale per row has as grain along the contracting dimension all of it; one per block of 128 has
 * 128. The sample of a value is one element of each run, so it has fewer elements and all that is
 * known.
 */
#ifndef HLO_PASSES_GRAIN_H
#define HLO_PASSES_GRAIN_H

#include "passes/engine/engine.h"

/* Per dimension; at least 1. As large as the dimension, or larger: the same all along it. */
typedef struct hlo_granularity {
    int64_t v[HLO_RULE_ARGS];
} hlo_granularity;

/* The grain that operand 0 of `link`, which moves elements, must have for the result to have
 * `grain`; but for the elements that a pad adds. False: none would do, or none is known. */
bool hlo_granularity_of_operand(const hlo_instr *link, const hlo_granularity *granularity,
                                hlo_granularity *out_below);

/* Whether `value` is sure to have the grain. Looks at so many instructions at most. */
bool hlo_granularity_holds(hlo_instr *value, const hlo_granularity *granularity);
/* The same wherever it lies; `*out_held`: what lies in another memory space, or is read from there;
 * NULL: nothing. */
bool hlo_granularity_holds_elsewhere(hlo_instr *value, const hlo_granularity *granularity,
                                     const hlo_instr **out_held);

/* The sample of `value`, which has the grain, with as many dimensions. NULL: it cannot be made. */
hlo_instr *hlo_granularity_compact(hlo_rule_env *env, hlo_instr *value,
                                   const hlo_granularity *granularity);

/* The sample of `link`, given that of its operand 0, of the grain hlo_granularity_of_operand()
 * says. What a pad adds is 1. NULL: it cannot be made. */
hlo_instr *hlo_granularity_carry(hlo_rule_env *env, const hlo_instr *link,
                                 const hlo_granularity *granularity, hlo_instr *sample);

/* What has that sample in those dimensions: each of its elements repeated all along its run. NULL:
 * it cannot be made. */
hlo_instr *hlo_granularity_expand(hlo_rule_env *env, hlo_instr *sample, const hlo_shape *shape,
                                  const hlo_granularity *granularity);

/* The dimensions of a sample. */
void hlo_granularity_dims(const hlo_shape *shape, const hlo_granularity *granularity,
                          int64_t *out_dims);

/* An instruction with that operand 0 and those dimensions, whose list of dimensions (of a transpose
 * or broadcast) is `dims`; the operand where nothing would change. NULL: it cannot be made. */
hlo_instr *hlo_granularity_make(hlo_rule_env *env, hlo_op op, hlo_instr *from, uint32_t rank,
                                const int64_t *extents, uint32_t count, const int64_t *dims);

#endif
