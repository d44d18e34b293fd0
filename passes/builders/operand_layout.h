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
/* Pads the scales of an operand whose sizes are padded to hlo_matmul_alignment(): scales of new
 * rows are 0, like the rows. `*out` NULL: the operand has no scales. False: they cannot be
 * made. */
bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out);

/* An operand with one scale for each block: its shape, and which dimensions are rows and k. */
typedef struct hlo_block_side {
    const hlo_shape *shape;
    const hlo_ints *batch;
    int64_t row, k;
} hlo_block_side;

/* Puts scales, in the order of the operand's dimensions, in the tiles of hlo_scale_dims(). Those
 * beyond the operand are cut off; what is added is 0, or the least number of a type without it.
 * NULL: it cannot be made. */
hlo_instr *hlo_block_tile(hlo_rule_env *env, hlo_instr *scales, const hlo_block_side *at,
                          hlo_scale_mode mode);

/* Makes the scales of operand a, or `b`, of block-scaled notation, if hlo_block_dot_fits(). False:
 * they cannot be made. */
bool hlo_block_scales(hlo_rule_env *env, const hlo_instr *dot, bool b, hlo_scale_mode mode,
                      hlo_instr **out);

#endif
