/* Whether constants among a matmul's scales leave everything that is computed with them a number.
 */
#ifndef HLO_PASSES_ANALYSIS_SCALE_RANGE_H
#define HLO_PASSES_ANALYSIS_SCALE_RANGE_H

#include "matmul/call.h"

/* `source`: the dot or the call, as `before` has it, that becomes `m`. What is no constant counts
 * as
 * 1. The graph scales operands and then sums, a call sums and then scales, and multiplies its
 * factors with each other first: where that overflows for some fp8 values, in the graph's types or
 * in f32, one has an infinity, or NaN, where the other has a number. */
bool hlo_scales_fit(const hlo_instr *source, const hlo_matmul *before, const hlo_matmul *m);

#endif
