/* How the operands of a fused call lie in memory, and what makes them lie as cuBLASLt wants them:
 * batch dimensions first, the contracting dimension last. `b`: of the second operand, else of the
 * first. */
#ifndef HLO_PASSES_PLACING_H
#define HLO_PASSES_PLACING_H

#include "passes/engine/engine.h"

/* Whether the operand does not lie so for the target, and can be made to. */
bool hlo_operand_layout_is_missing(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* How many transposes and copies it is of a value that would lie so after each of them. */
int64_t hlo_redundant_transposes(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* The operand with its dimensions in that order. False: it cannot be made. */
bool hlo_operand_layout_make(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);
/* Its scales, for an operand whose sizes are padded to multiples of HLO_MATMUL_ALIGNMENT: those of
 * rows that padding adds are 0, as the rows are. NULL when it has none. False: they cannot be made.
 */
bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);

#endif
