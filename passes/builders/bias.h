/* Vectors that are added to a matmul's result: what repeats one row of it, however that is written.
 */
#ifndef HLO_PASSES_BIAS_H
#define HLO_PASSES_BIAS_H

#include "passes/engine/engine.h"

/* Whether `value`, which has the dimensions of `view`, repeats one row of the result of a matmul.
 * `view` is the result, a reshape of it or a slice, of which it is a row then. It may lie in
 * another memory space: then no row can be made. */
bool hlo_bias_repeats(hlo_instr *value, const hlo_instr *result, const hlo_instr *view);

/* That row as a vector as long as the result's rows, with zeros where a slice takes nothing. False:
 * it cannot be made. */
bool hlo_bias_row(hlo_rule_env *env, hlo_instr *value, const hlo_instr *result,
                  const hlo_instr *view, hlo_instr **out);

/* Whether every element of `value` is sure to be one of `type`: converted from it, or a number that
 * is known and is one. */
bool hlo_bias_fits(const hlo_instr *value, hlo_type type);

#endif
