/* Layouts of the operands of a fused call: cuBLASLt wants batch dimensions first, the contracting
 * dimension last. `b`: the second operand, else the first. */
#ifndef HLO_PASSES_OPERAND_LAYOUT_H
#define HLO_PASSES_OPERAND_LAYOUT_H

#include "passes/engine/engine.h"

/* True if the operand lacks the layout that the target wants, and can be given it. */
bool hlo_operand_layout_is_missing(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* Counts the transposes and copies at the top of the operand that the call does not need: the
 * layout below each is right too. */
int64_t hlo_redundant_transposes(const hlo_rule_env *env, const hlo_matmul *m, bool b);
/* Makes the operand with its dimensions in the order that the target wants. False: it cannot be
 * made. */
bool hlo_operand_layout_make(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);
/* Pads the scales of an operand whose sizes are padded to multiples of HLO_MATMUL_ALIGNMENT: scales
 * of new rows are 0, like the rows. `*out` NULL: the operand has no scales. False: they cannot be
 * made. */
bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);

#endif
