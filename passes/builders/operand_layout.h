/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of the operands of a fused call: cuBLASLt requires batch dimensions first, the
 * contracting dimension last. `b`: the second operand, else the first. */
#ifndef HLO_PASSES_BUILDERS_OPERAND_LAYOUT_H
#define HLO_PASSES_BUILDERS_OPERAND_LAYOUT_H

#include "matmul/block_scaled.h"
#include "passes/builders/granularity.h"

/* Returns the size or the next multiple of `to`. */
int64_t hlo_size_aligned(int64_t size, int64_t to);
/* Pads `value` with zeros after its elements, up to `dims`; f8e8m0fnu, which has no zero, with its
 * least number, whose code is 0. Returns `value` if it has the dimensions. NULL: it cannot be made.
 */
hlo_instr *hlo_pad_zeros(hlo_builder *b, hlo_instr *value, const int64_t *dims);

/* Returns true if the operand does not have the layout that the target requires, but can have it.
 */
bool hlo_operand_layout_is_missing(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* Counts the outermost transposes and copies of the operand that the call does not need: the layout
 * of the value below each is also right. */
int64_t hlo_redundant_transposes(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* Makes the operand with its dimensions in the order that the target requires. False: it cannot be
 * made. */
bool hlo_operand_layout_make(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);
/* Pads the scales of an operand whose sizes are padded to hlo_matmul_alignment(): scales of new
 * rows are 0, like the rows. `*out` NULL: the operand has no scales. False: they cannot be
 * made. */
bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);

/* Returns true if `value` is a value of `type`, converted without rounding and moved. */
bool hlo_block_is_narrow(const hlo_instr *value, hlo_type type);
/* Makes that value, moved as `value` is. NULL: it cannot be made. */
hlo_instr *hlo_block_narrowed(hlo_rule_env *env, hlo_instr *value, hlo_type type);

/* An operand's shape, which of its dimensions are rows and k, and the mode of its scales. */
typedef struct hlo_block_side {
    const hlo_shape *shape;
    const hlo_ints *batch;
    int64_t row, k;
    hlo_scale_mode mode;
} hlo_block_side;

/* Makes the compact scales (granularity.h) of a side whose scales are all 1. */
hlo_instr *hlo_block_ones(hlo_rule_env *env, const hlo_block_side *side);

/* Puts compact scales in the tiles of hlo_scale_dims(); what is added is 0, or the least number of
 * a type without it. The tiles hold magnitudes: cuBLASLt ignores the sign of e4m3 scales. NULL: it
 * cannot be made. */
hlo_instr *hlo_block_tile(hlo_rule_env *env, hlo_instr *scales, const hlo_block_side *side);

/* Makes the values with the signs of the compact scales, unless no scale can be negative. NULL:
 * it cannot be made. */
hlo_instr *hlo_block_signed(hlo_rule_env *env, hlo_instr *values, hlo_instr *scales,
                            const hlo_block_side *side);

/* Makes the values, and the scales in tiles, of operand a, or `b`, of block-scaled notation with
 * the mode. False: the notation has another mode or no mode (env->reason says why), or they cannot
 * be made. */
bool hlo_block_dot_values(hlo_rule_env *env, const hlo_instr *dot, bool b, hlo_scale_mode mode,
                          hlo_instr **out);
bool hlo_block_dot_scales(hlo_rule_env *env, const hlo_instr *dot, bool b, hlo_scale_mode mode,
                          hlo_instr **out);

#endif
