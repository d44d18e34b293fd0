/* Constants among the scales of a matmul: whether all that is computed with them is a number. */
#ifndef HLO_PASSES_ANALYSIS_SCALE_RANGE_H
#define HLO_PASSES_ANALYSIS_SCALE_RANGE_H

#include "matmul/call.h"

/* True if nothing overflows for any fp8 values, in the graph's types or in f32, when `source`, a
 * dot or the call that `before` describes, becomes `m`. A scale that is no constant counts as 1.
 * The graph scales operands and then sums; a call sums and then scales, and multiplies its factors
 * with each other first: where that overflows, one of the two has an infinity or NaN where the
 * other has a number. */
bool hlo_scales_fit(const hlo_instr *source, const hlo_matmul *before, const hlo_matmul *m);

/* True if each constant in a scale is of a size that no product of a few of them overflows or
 * vanishes with: behind the tuple that carries the scale, hlo_scales_fit() does not see it. A scale
 * that is no constant counts as 1. */
bool hlo_scale_is_moderate(const hlo_instr *scale);

#endif
