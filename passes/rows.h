/* Scales that are not the same for a whole operand, but along its contracting dimensions: one per
 * row of A, per column of B, per batch. They go past the matmul, to its result. */
#ifndef HLO_PASSES_ROWS_H
#define HLO_PASSES_ROWS_H

#include "passes/match.h"

/* Whether `scale`, were it moved by the links of `chain` (from `chain->inner`, which has its
 * dimensions, up to operand `side`, 0 or 1, of `dot`), would be constant along the operand's
 * contracting dimensions. Links that fill up with something count as no. */
bool hlo_rows_constant(const hlo_instr *dot, unsigned side, const hlo_binding *chain,
                       hlo_instr *scale);

/* `scale`, which has the dimensions of operand `side` of `dot` and is constant along the
 * contracting ones, as f32 in the dimensions of the dot's result. NULL: it cannot be made. */
hlo_instr *hlo_rows_beside(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                           hlo_instr *scale);

#endif
