/* Operands of a matmul that are fp8 values times scales, whatever moves and scales them on the way:
 * factors that are the same for all of an operand, for each row of A or column of B, or for blocks
 * of these (matmul/table/scale.def), are taken out, and what is moved is the fp8 value. */
#ifndef HLO_PASSES_ROWS_H
#define HLO_PASSES_ROWS_H

#include "passes/engine/engine.h"

/* Whether operand `side` (0 or 1) of `dot` is an fp8 value times factors that are as coarse as
 * `mode` says. Otherwise `*out_bad` is the factor that is not, or NULL where something else is in
 * the way.
 */
bool hlo_scaled_operand_matches(const hlo_instr *dot, unsigned side, hlo_scale_mode mode,
                                const hlo_instr **out_bad);

/* The fp8 value of an operand that is readable in some mode, moved as the operand is. NULL: it
 * cannot be made. */
hlo_instr *hlo_scaled_operand_values(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                                     hlo_scale_mode mode);

/* The factors of an operand that is readable in that mode, multiplied in f32, as
 * hlo_scale_dims() has them. `*out` NULL: it is multiplied with nothing, and the mode is SCALAR.
 * False: they cannot be made. */
bool hlo_scaled_operand_scales(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                               hlo_scale_mode mode, hlo_instr **out);

/* Whether the factors of an operand are one scalar, or none at all. Nothing is made. */
bool hlo_scaled_operand_is_scalar(hlo_rule_env *env, const hlo_instr *dot, unsigned side);

/* The fp8 value of an operand without its one scalar, if hlo_scaled_operand_is_scalar() says so, or
 * without its factors per row and batch. NULL: there are others, or it cannot be made. */
hlo_instr *hlo_scaled_operand_unscaled(hlo_rule_env *env, const hlo_instr *dot, unsigned side);

/* The factors of an operand that is readable as OUTER_VEC, or per row and batch, in the dimensions
 * of the dot's result. NULL: they cannot be made. */
hlo_instr *hlo_scaled_operand_result_scale(hlo_rule_env *env, const hlo_instr *dot, unsigned side);

/* The scale that operand `side` of a call has (none, a scalar or one per row) times `factor` (NULL:
 * 1), which has an element for each row, as OUTER_VEC. NULL: it cannot be made. */
hlo_instr *hlo_scaled_operand_joined_scale(hlo_rule_env *env, const hlo_matmul *call, unsigned side,
                                           hlo_instr *factor);

#endif
