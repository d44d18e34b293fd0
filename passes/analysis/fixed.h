/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed values: values that do not depend on an input and are equal in every run. */
#ifndef HLO_PASSES_ANALYSIS_FIXED_H
#define HLO_PASSES_ANALYSIS_FIXED_H

#include "ir/ir.h"

/* Computes the elements of a fixed value, also through instructions that passes leave in place
 * (pinned ones, barriers and sharding annotations): the elements may forbid a rewrite, but never
 * justify one. Allocates in `scratch`. NULL: the value may depend on an input, an element is not
 * exactly a double, or the computation is too large. */
const double *hlo_fixed_elements(hlo_arena *scratch, const hlo_instr *value, int64_t *out_count);

#endif
