/* Values of other dimensions: padded, repeated, sliced, reshaped. `*out` is the new value, or
 * `value` itself if nothing changes; false: it cannot be made. */
#ifndef HLO_PASSES_BUILDERS_PAD_SLICE_H
#define HLO_PASSES_BUILDERS_PAD_SLICE_H

#include "passes/engine/engine.h"

/* Returns the size or the next multiple of `to`. */
int64_t hlo_size_aligned(int64_t size, int64_t to);

/* Pads with zeros behind the elements, up to `dims`; f8e8m0fnu, which has no zero, with its least
 * number, whose code is 0. */
bool hlo_pad_zeros(hlo_rule_env *env, hlo_instr *value, const int64_t *dims, hlo_instr **out);

/* Pads to multiples of HLO_MATMUL_ALIGNMENT, except in the `batch` dimensions (NULL: none), by
 * repeating the elements from their beginning on, or with zeros in the dimensions `zeros` (NULL:
 * none). */
bool hlo_pad_repeating(hlo_rule_env *env, hlo_instr *value, const hlo_ints *batch,
                       const hlo_ints *zeros, hlo_instr **out);

/* Merges the first `batch` dimensions, which are outermost in memory. A `value` of NULL gives NULL.
 */
bool hlo_join_batch(hlo_rule_env *env, hlo_instr *value, uint32_t batch, hlo_instr **out);

/* Slices the prefix of the shape. */
bool hlo_slice_prefix(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape, hlo_instr **out);

/* Reshapes, or, if the shape has fewer or more elements, slices or pads with zeros. */
bool hlo_to_shape(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape, hlo_instr **out);

/* Applies `view`, a slice, a reshape or a mark of one, to `value`, in the shape given. */
bool hlo_apply_view(hlo_rule_env *env, hlo_instr *value, const hlo_instr *view,
                    const hlo_shape *shape, hlo_instr **out);

#endif
