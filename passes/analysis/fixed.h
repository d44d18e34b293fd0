/* Values that no input reaches: they are the same in every run. */
#ifndef HLO_PASSES_ANALYSIS_FIXED_H
#define HLO_PASSES_ANALYSIS_FIXED_H

#include "ir/ir.h"

/* Computes the elements of a value that no input reaches, for questions whose answer can only
 * forbid something: through what passes leave where it is, as pinned instructions, barriers and
 * marks. Allocates in `scratch`. NULL: an input may reach it, no double equals an element, or there
 * is too much to compute. */
const double *hlo_fixed_elements(hlo_arena *scratch, const hlo_instr *value, int64_t *out_count);

#endif
