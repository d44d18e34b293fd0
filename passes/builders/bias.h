/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes and builds biases: vectors that are added to each row of a matmul's result. */
#ifndef HLO_PASSES_BUILDERS_BIAS_H
#define HLO_PASSES_BUILDERS_BIAS_H

#include "passes/engine/engine.h"

/* `view` is the result of a matmul, a reshape of it, or a slice of it. True if `value`, which has
 * the dimensions of `view`, repeats one row: a row of the result or, for a slice, of `view`. If the
 * value is in another memory space, hlo_bias_row() fails. */
bool hlo_bias_repeats(hlo_instr *value, const hlo_instr *result, const hlo_instr *view);

/* Builds the row that `value` repeats, as a vector with the length of the result's rows. Elements
 * outside of a slice are 0. Returns false on failure. */
bool hlo_bias_row(hlo_rule_env *env, hlo_instr *value, const hlo_instr *result,
                  const hlo_instr *view, hlo_instr **out);

/* True if `type` represents every element of `value`, because `value` is a constant or is converted
 * from that type. */
bool hlo_bias_fits(const hlo_instr *value, hlo_type type);

#endif
