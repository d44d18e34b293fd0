/* Dots that share an operand as one dot. What else is multiplied is put together in fp8, side by
 * side, and each result is a part of the one. */
#ifndef HLO_PASSES_MERGE_H
#define HLO_PASSES_MERGE_H

#include "passes/engine/engine.h"

/* Whether the dots `first` and `second`, in this order, multiply `shared`, the same operand of
 * both, with what is dequantised alike: from the same fp8 type, with the same scale. Contracting
 * and batch dimensions, element types and all else that is asked of them are the same. */
bool hlo_dots_alike(hlo_engine *engine, const hlo_instr *first, const hlo_instr *second,
                    const hlo_instr *shared);

/* The one dot for both. NULL: it cannot be made. */
hlo_instr *hlo_dots_merged(hlo_rule_env *env, const hlo_instr *first, const hlo_instr *second,
                           const hlo_instr *shared);

/* What `merged` has for the first of the dots that it was made of, or, with `last`, for the second;
 * `part` is that dot. NULL: it cannot be made. */
hlo_instr *hlo_dots_part(hlo_rule_env *env, hlo_instr *merged, const hlo_instr *part, bool last);

#endif
