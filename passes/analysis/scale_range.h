/* SPDX-License-Identifier: Apache-2.0 */
/* Checks constants among the scales of a matmul: every value computed with them must be finite.
 *
 * Invariant: a fixed factor of a scale (value.h) is counted with its magnitude, through all
 * instructions between the factor and the matmul. A factor that depends on an input, or that is too
 * large to compute, counts as 1. Factors are operands that are multiplied, divided by, selected
 * from, joined or moved. Each function releases its scratch memory. */
#ifndef HLO_PASSES_ANALYSIS_SCALE_RANGE_H
#define HLO_PASSES_ANALYSIS_SCALE_RANGE_H

#include "matmul/call.h"

/* `source` is a dot or the call that `before` describes. True if `source` can become `m` without
 * any overflow, for any fp8 values, in the graph's types or in f32. The graph scales operands and
 * then sums; a call multiplies its factors with each other, sums, and then scales. If one of these
 * steps overflowed, only one of the two results would be infinite or NaN. */
bool hlo_scales_fit(hlo_arena *scratch, const hlo_instruction *source, const hlo_matmul *before,
                    const hlo_matmul *m);

/* True if each constant in a scale is so moderate that a product of a few such constants neither
 * overflows nor underflows. hlo_scales_fit() does not check these constants if a tuple carries the
 * scale, because it then counts as an input. */
bool hlo_scale_is_moderate(hlo_arena *scratch, const hlo_instruction *scale);

#endif
