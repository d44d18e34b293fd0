/* SPDX-License-Identifier: Apache-2.0 */
/* Values that no input reaches: they are equal in every run. */
#ifndef HLO_PASSES_ANALYSIS_FIXED_H
#define HLO_PASSES_ANALYSIS_FIXED_H

#include "ir/ir.h"

/* Computes the elements of a value that no input reaches, also through instructions that passes
 * leave in place (pinned ones, barriers and marks): the elements may forbid a rewrite, never
 * justify one. Allocates in `scratch`. NULL: an input may reach it, no double equals an element, or
 * the computation is too large. */
const double *hlo_fixed_elements(hlo_arena *scratch, const hlo_instr *value, int64_t *out_count);

#endif
