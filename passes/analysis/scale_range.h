/* Constants among the scales of a matmul: whether all that is computed with them is a number.
 *
 * Invariant: a factor of a scale that no input reaches has the magnitude that it has in every run,
 * whatever stands between (fixed.h); one that an input reaches counts as 1, as does a fixed one
 * that is too large to compute. Factors are what is multiplied, divided by, selected from, put
 * together and moved. Scratch memory is given back. */
#ifndef HLO_PASSES_ANALYSIS_SCALE_RANGE_H
#define HLO_PASSES_ANALYSIS_SCALE_RANGE_H

#include "matmul/call.h"

/* True if nothing overflows for any fp8 values, in the graph's types or in f32, when `source`, a
 * dot or the call that `before` describes, becomes `m`. The graph scales operands and then sums; a
 * call sums and then scales, and multiplies its factors with each other first: where that
 * overflows, one of the two has an infinity or NaN where the other has a number. */
bool hlo_scales_fit(hlo_arena *scratch, const hlo_instr *source, const hlo_matmul *before,
                    const hlo_matmul *m);

/* True if each constant in a scale is of a size that no product of a few of them overflows or
 * vanishes with: behind the tuple that carries the scale it is an input to hlo_scales_fit(). */
bool hlo_scale_is_moderate(hlo_arena *scratch, const hlo_instr *scale);

#endif
