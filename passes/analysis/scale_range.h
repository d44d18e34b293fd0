/* SPDX-License-Identifier: Apache-2.0 */
/* Constants among the scales of a matmul: checks that every value computed with them is a number.
 *
 * Invariant: a factor of a scale that no input reaches has the magnitude that it has in every run,
 * whatever instructions stand between (fixed.h); one that an input reaches counts as 1, as does a
 * fixed one that is too large to compute. Factors are operands that are multiplied, divided by,
 * selected from, joined or moved. Each function releases its scratch memory. */
#ifndef HLO_PASSES_ANALYSIS_SCALE_RANGE_H
#define HLO_PASSES_ANALYSIS_SCALE_RANGE_H

#include "matmul/call.h"

/* True if nothing overflows for any fp8 values, in the graph's types or in f32, when `source`, a
 * dot or the call that `before` describes, becomes `m`. The graph scales operands and then sums; a
 * call sums and then scales, and multiplies its factors with each other first: where that
 * overflows, one of the two has an infinity or NaN where the other has a number. */
bool hlo_scales_fit(hlo_arena *scratch, const hlo_instr *source, const hlo_matmul *before,
                    const hlo_matmul *m);

/* True if each constant in a scale is so moderate that no product of a few constants overflows or
 * vanishes: hlo_scales_fit() takes a scale for an input behind the tuple that carries it. */
bool hlo_scale_is_moderate(hlo_arena *scratch, const hlo_instr *scale);

#endif
