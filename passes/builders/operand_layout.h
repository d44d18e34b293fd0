/* SPDX-License-Identifier: Apache-2.0 */
/* Builds operands of a fused call in the required layout. cuBLASLt requires batch dimensions first
 * and the contracting dimension last. Functions with a parameter `b` refer to operand B if `b` is
 * true, otherwise to operand A. */
#ifndef HLO_PASSES_BUILDERS_OPERAND_LAYOUT_H
#define HLO_PASSES_BUILDERS_OPERAND_LAYOUT_H

#include "matmul/block_scaled.h"
#include "passes/builders/granularity.h"

/* Returns the size rounded up to a multiple of `to`. */
int64_t hlo_size_aligned(int64_t size, int64_t to);
/* Pads `value` at the end of each dimension, up to `dims`. The padding is 0 or, for f8e8m0fnu,
 * which has no zero, the smallest number (its code is 0). Returns `value` if it already has the
 * dimensions, and NULL on failure. */
hlo_instruction *hlo_pad_zeros(hlo_builder *b, hlo_instruction *value, const int64_t *dims);

/* True if the operand does not have the layout that the target requires, but can have it. */
bool hlo_operand_layout_is_missing(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* Counts the transposes and copies at the end of the operand's computation that the call does not
 * need, because the layout before them is also valid. */
int64_t hlo_redundant_transposes(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* Transposes the operand to the order of dimensions that the target requires. Returns false on
 * failure. */
bool hlo_operand_layout_make(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instruction **out);
/* Pads the scales of an operand whose sizes are padded to hlo_matmul_alignment(). Scales of the
 * added rows are 0, like the rows themselves. `*out` is NULL if the operand has no scales. Returns
 * false on failure. */
bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b,
                                  hlo_instruction **out);

/* True if `value` is computed from a value of `type` by movement and conversion without rounding,
 * in a bounded number of steps. */
bool hlo_block_is_narrow(const hlo_instruction *value, hlo_type type);
/* Builds `value` with element type `type`; hlo_block_is_narrow() must be true. Returns NULL on
 * failure. */
hlo_instruction *hlo_block_narrowed(hlo_rule_env *env, hlo_instruction *value, hlo_type type);

/* The shape of an operand, the numbers of its row and k dimensions, and the mode of its scales. */
typedef struct hlo_block_side {
    const hlo_shape *shape;
    const hlo_ints *batch;
    int64_t row, k;
    hlo_scale_mode mode;
} hlo_block_side;

/* Builds the compact scales (granularity.h) of a side whose scales are all 1. */
hlo_instruction *hlo_block_ones(hlo_rule_env *env, const hlo_block_side *side);

/* Arranges compact scales in the tiles of hlo_scale_dims(). Padding is 0 or, for a type without 0,
 * its smallest number. The tiles contain magnitudes, because cuBLASLt ignores the sign of e4m3
 * scales. Returns NULL on failure. */
hlo_instruction *hlo_block_tile(hlo_rule_env *env, hlo_instruction *scales,
                                const hlo_block_side *side);

/* Builds the values with the signs of the compact scales. Returns `values` if no scale can be
 * negative. Returns NULL on failure. */
hlo_instruction *hlo_block_signed(hlo_rule_env *env, hlo_instruction *values,
                                  hlo_instruction *scales, const hlo_block_side *side);

/* Builds the values of an operand of an instruction in block-scaled notation or, if `scales` is
 * true, its scales in the tiles of the mode. Returns false on failure, or if the instruction has
 * another mode or no mode; env->reason is then the reason. */
bool hlo_block_dot_operand(hlo_rule_env *env, const hlo_instruction *instr, bool b,
                           hlo_scale_mode mode, bool scales, hlo_instruction **out);

#endif
