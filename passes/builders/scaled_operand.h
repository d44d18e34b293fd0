/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites operands of a matmul that are fp8 values times scales, in any order of movement and
 * scaling. Separates the factors (per operand, per row of A or column of B, or per block:
 * matmul/table/scale.def), and moves the fp8 value instead of the wide value. */
#ifndef HLO_PASSES_BUILDERS_SCALED_OPERAND_H
#define HLO_PASSES_BUILDERS_SCALED_OPERAND_H

#include "passes/builders/granularity.h"

/* Returns the type of the fp8 value if operand `side` of a product of any kind is an fp8 value
 * times factors of the granularity; otherwise HLO_TYPE_INVALID. */
hlo_type hlo_scaled_operand_type(const hlo_instruction *product, unsigned side,
                                 const hlo_granularity *granularity);
/* Builds the fp8 value that hlo_scaled_operand_type() finds. Returns NULL if it finds none, or on
 * failure. */
hlo_instruction *hlo_scaled_operand_value(hlo_rule_env *env, const hlo_instruction *product,
                                          unsigned side, const hlo_granularity *granularity);
/* Builds the compact form of the factors of this fp8 value, in f32. `*out` is NULL if there are no
 * factors. Returns false if hlo_scaled_operand_type() finds no fp8 value, or on failure. */
bool hlo_scaled_operand_factors(hlo_rule_env *env, const hlo_instruction *product, unsigned side,
                                const hlo_granularity *granularity, hlo_instruction **out);

/* Builds the fp8 value (or the f4e2m1fn value, for modes of that type) of operand `side` (0 or 1)
 * of `dot`, and applies the movement of the operand to it. Returns NULL on failure, or if the
 * operand is not an fp8 value times factors of the mode's granularity. */
hlo_instruction *hlo_scaled_operand_values(hlo_rule_env *env, const hlo_instruction *dot,
                                           unsigned side, hlo_scale_mode mode);

/* Builds the product of the factors of an operand that matches the mode, in f32 and with the
 * dimensions of hlo_scale_dims(). `*out` is NULL if there is no factor and the mode is SCALAR.
 * Returns false if the operand does not match, or on failure. */
bool hlo_scaled_operand_scales(hlo_rule_env *env, const hlo_instruction *dot, unsigned side,
                               hlo_scale_mode mode, hlo_instruction **out);

/* Builds the scales of an operand that matches a tiled mode, in tiles. Sets `*out_scalar` to the
 * product of the scalars that multiply the whole operand, f32[], or to NULL if there are no
 * scalars. An operand without scales gets scales of 1 if the other operand has scales.
 * hlo_scaled_operand_scales() does the same, but allows no scalars. hlo_scaled_operand_values()
 * applies the signs of the scales. Returns false if the operand does not match, or on failure. */
bool hlo_scaled_operand_tiles(hlo_rule_env *env, const hlo_instruction *dot, unsigned side,
                              hlo_scale_mode mode, hlo_instruction **out_scalar,
                              hlo_instruction **out);

/* Returns the type of the fp8 value if operand `side` is an fp8 value times factors that are equal
 * for `along` elements of the contracting dimension; otherwise HLO_TYPE_INVALID. */
hlo_type hlo_scaled_operand_in_blocks(const hlo_instruction *dot, unsigned side, int64_t along);

/* True if the operand has no factors, or their product is one scalar. */
bool hlo_scaled_operand_is_scalar(const hlo_instruction *dot, unsigned side);

/* Broadcasts the factors of an operand that matches OUTER_VEC, per row and batch, to the dimensions
 * of the dot's result. Returns NULL on failure. */
hlo_instruction *hlo_scaled_operand_result_scale(hlo_rule_env *env, const hlo_instruction *dot,
                                                 unsigned side);

/* Multiplies the scale of operand `side` of a call (absent, a scalar or per row) by `factor`, which
 * has one element per row or is NULL for 1. The result is an OUTER_VEC scale. Returns NULL on
 * failure. */
hlo_instruction *hlo_scaled_operand_joined_scale(hlo_rule_env *env, const hlo_matmul *call,
                                                 unsigned side, hlo_instruction *factor);

#endif
