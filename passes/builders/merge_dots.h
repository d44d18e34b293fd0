/* SPDX-License-Identifier: Apache-2.0 */
/* Merges dots that share an operand. The other operands are concatenated in fp8, and each result
 * becomes a slice of the merged result. */
#ifndef HLO_PASSES_BUILDERS_MERGE_DOTS_H
#define HLO_PASSES_BUILDERS_MERGE_DOTS_H

#include "passes/engine/engine.h"

/* True if `first` and `second`, in this order, can be merged: `shared` is the left operand of both
 * dots or the right operand of both; the other operands have the same dequantization; contracting
 * and batch dimensions, element types and attributes are equal. */
bool hlo_dots_alike(hlo_engine *engine, const hlo_instr *first, const hlo_instr *second,
                    const hlo_instr *shared);

/* Builds the merged dot. Returns NULL on failure. */
hlo_instr *hlo_dots_merged(hlo_rule_env *env, const hlo_instr *first, const hlo_instr *second,
                           const hlo_instr *shared);

/* Slices the result of `part` from `merged`. `part` is the first of the merged dots or, with
 * `last`, the second. Returns NULL on failure. */
hlo_instr *hlo_dots_part(hlo_rule_env *env, hlo_instr *merged, const hlo_instr *part, bool last);

#endif
