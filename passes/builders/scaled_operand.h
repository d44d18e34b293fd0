/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of a matmul that are fp8 values times scales, in any order of movement and scaling. The
 * factors (one for an operand, for each row of A or column of B, or for blocks of these:
 * matmul/table/scale.def) are separated, and the fp8 value is moved instead of the wide one. */
#ifndef HLO_PASSES_BUILDERS_SCALED_OPERAND_H
#define HLO_PASSES_BUILDERS_SCALED_OPERAND_H

#include "passes/builders/granularity.h"

/* Returns the type of the fp8 value that operand `side` of a product of any kind is, times factors
 * of the granularity; HLO_TYPE_INVALID: it is not such a value. */
hlo_type hlo_scaled_operand_type(const hlo_instr *product, unsigned side,
                                 const hlo_granularity *granularity);
/* Makes that fp8 value. NULL: the operand is not such a value, or it cannot be made. */
hlo_instr *hlo_scaled_operand_value(hlo_rule_env *env, const hlo_instr *product, unsigned side,
                                    const hlo_granularity *granularity);
/* Makes the compact form of the factors, in f32; `*out` NULL: there are no factors. False: as
 * above.
 */
bool hlo_scaled_operand_factors(hlo_rule_env *env, const hlo_instr *product, unsigned side,
                                const hlo_granularity *granularity, hlo_instr **out);

/* Makes the fp8 value, or of a mode for those the f4e2m1fn value, of operand `side` (0 or 1) of
 * `dot`, moved as the operand is. NULL: it cannot
 * be made, or the operand does not match the mode: it is not an fp8 value times factors of the
 * mode's granularity. */
hlo_instr *hlo_scaled_operand_values(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                                     hlo_scale_mode mode);

/* Makes the product of the factors of an operand that matches the mode, in f32 and in the
 * dimensions of hlo_scale_dims(). `*out` NULL: there is no factor, and the mode is SCALAR. False:
 * the operand does not match, or the product cannot be made. */
bool hlo_scaled_operand_scales(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                               hlo_scale_mode mode, hlo_instr **out);

/* Makes the scales of an operand that matches a tiled mode, in tiles, and the product of the
 * scalars that multiply all of it: `*out_scalar`, f32[]; NULL: there are none. An operand without
 * scales gets scales of 1 if the other one has scales. hlo_scaled_operand_scales() does the same,
 * but allows no scalars. hlo_scaled_operand_values() applies the signs of the scales. False: as
 * above. */
bool hlo_scaled_operand_tiles(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                              hlo_scale_mode mode, hlo_instr **out_scalar, hlo_instr **out);

/* Returns the type of the fp8 value that operand `side` is, times factors that are equal for
 * `along` elements of the contracting dimension; HLO_TYPE_INVALID: it is not such a value. */
hlo_type hlo_scaled_operand_in_blocks(const hlo_instr *dot, unsigned side, int64_t along);

/* Returns true if the factors of an operand are one scalar, or none at all. */
bool hlo_scaled_operand_is_scalar(const hlo_instr *dot, unsigned side);

/* Makes the fp8 value of an operand whose factor is one scalar, or whose factors are per row and
 * batch. NULL: the operand has other factors, or the value cannot be made. */
hlo_instr *hlo_scaled_operand_unscaled(hlo_rule_env *env, const hlo_instr *dot, unsigned side);

/* Broadcasts the factors of an operand that matches OUTER_VEC, per row and batch, to the dimensions
 * of the dot's result. NULL: it cannot be made. */
hlo_instr *hlo_scaled_operand_result_scale(hlo_rule_env *env, const hlo_instr *dot, unsigned side);

/* Multiplies the scale of operand `side` of a call (absent, a scalar or one per row) by `factor`
 * (NULL: 1), which has an element for each row, as OUTER_VEC. NULL: it cannot be made. */
hlo_instr *hlo_scaled_operand_joined_scale(hlo_rule_env *env, const hlo_matmul *call, unsigned side,
                                           hlo_instr *factor);

#endif
