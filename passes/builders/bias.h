/* SPDX-License-Identifier: Apache-2.0 */
/* Biases: vectors that are added to each row of a matmul's result, in any notation of the sum. */
#ifndef HLO_PASSES_BUILDERS_BIAS_H
#define HLO_PASSES_BUILDERS_BIAS_H

#include "passes/engine/engine.h"

/* True if `value`, which has the dimensions of `view`, repeats one row of the result of a matmul,
 * or of `view`, if that is a slice of the result and not the result or a reshape of it. It may be
 * in another memory space: then no row can be made. */
bool hlo_bias_repeats(hlo_instr *value, const hlo_instr *result, const hlo_instr *view);

/* Makes the row that `value` repeats, as a vector as long as the result's rows, with zeros for
 * elements that a slice leaves out. False: it cannot be made. */
bool hlo_bias_row(hlo_rule_env *env, hlo_instr *value, const hlo_instr *result,
                  const hlo_instr *view, hlo_instr **out);

/* True if `type` represents every element of `value`: it is converted from the type, or constant.
 */
bool hlo_bias_fits(const hlo_instr *value, hlo_type type);

#endif
