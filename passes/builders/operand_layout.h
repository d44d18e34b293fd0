/* Layouts of the operands of a fused call: cuBLASLt wants batch dimensions first, the contracting
 * dimension last. `b`: the second operand, else the first. */
#ifndef HLO_PASSES_OPERAND_LAYOUT_H
#define HLO_PASSES_OPERAND_LAYOUT_H

#include "matmul/block_scaled.h"
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

/* Makes the operand a, or `b`, of block-scaled notation, its contracting dimension padded with
 * zeros to a multiple of 32: 16 bytes of the narrowest type, and a whole block of the widest. */
bool hlo_block_values(hlo_rule_env *env, const hlo_instr *dot, bool b, hlo_instr **out);

/* Makes the scales of that operand, which hlo_block_dot_fits(). Those of several batches stay as
 * they are: hlo_matmul_check() takes none. */
bool hlo_block_scales(hlo_rule_env *env, const hlo_instr *dot, bool b, hlo_scale_mode mode,
                      hlo_instr **out);

/* Puts scales of rows and steps, for `size` rows of `k` elements, in tiles; what is added is 0, or
 * the least number of a type without it. NULL: it cannot be made. */
hlo_instr *hlo_block_tile(hlo_rule_env *env, hlo_instr *scales, int64_t size, int64_t k,
                          hlo_scale_mode mode);

#endif
