/* Values of other dimensions: with zeros or more of the same behind, cut, reshaped. What is asked
 * for is put into `out`, `value` itself where that is it; false: it cannot be made. */
#ifndef HLO_PASSES_RESIZE_H
#define HLO_PASSES_RESIZE_H

#include "passes/engine/engine.h"

/* The next multiple of HLO_MATMUL_ALIGNMENT. */
int64_t hlo_size_aligned(int64_t size);

/* Zeros behind the elements, up to `dims`, one for each dimension. */
bool hlo_pad_zeros(hlo_rule_env *env, hlo_instr *value, const int64_t *dims, hlo_instr **out);

/* The same up to aligned sizes, in the dimensions that `batch` (NULL: none) does not hold. */
bool hlo_pad_aligned(hlo_rule_env *env, hlo_instr *value, const hlo_ints *batch, hlo_instr **out);

/* The same, but what is there stands there again, from its beginning on, in all dimensions that
 * `zeros` (NULL: none) does not hold. */
bool hlo_pad_repeating(hlo_rule_env *env, hlo_instr *value, const hlo_ints *batch,
                       const hlo_ints *zeros, hlo_instr **out);

/* The first `batch` dimensions, which come first in memory too, as one. `value` may be NULL, and
 * stays it. */
bool hlo_join_batch(hlo_rule_env *env, hlo_instr *value, uint32_t batch, hlo_instr **out);

/* The beginning, of that shape. */
bool hlo_slice_prefix(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape, hlo_instr **out);

bool hlo_reshape_to(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape, hlo_instr **out);

/* Reshaped, or, if it has more or fewer elements, cut or with zeros behind. */
bool hlo_to_shape(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape, hlo_instr **out);

/* What `view`, a slice or a value of as many elements, shows of `value`, in that shape. */
bool hlo_apply_view(hlo_rule_env *env, hlo_instr *value, const hlo_instr *view,
                    const hlo_shape *shape, hlo_instr **out);

#endif
