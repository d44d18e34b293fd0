/* SPDX-License-Identifier: Apache-2.0 */
/* Finds values that come from fp8, integers or narrow floats on paths that no rule follows. */
#ifndef HLO_PASSES_ANALYSIS_FP8_PROVENANCE_H
#define HLO_PASSES_ANALYSIS_FP8_PROVENANCE_H

#include "ir/ir.h"
#include "passes/reason/reason.h"

typedef struct hlo_fp8_provenance hlo_fp8_provenance;

/* Analyzes the whole module, iterating over its loops to a fixpoint. The result is allocated in
 * `arena` and valid until the module changes. */
const hlo_fp8_provenance *hlo_fp8_provenance_find(const hlo_module *module, hlo_arena *arena);

/* True if a value is computed from fp8 only by movement, conversion, scaling and shifting. The path
 * may pass through tuples, loops, branches, calls and barriers. */
bool hlo_fp8_provenance_has(const hlo_fp8_provenance *provenance, const hlo_instruction *value);

/* Returns the integers, or floats of fewer than 8 bits, from which a value is computed on such a
 * path, or NULL. A factor or a zero point on the path is broadcast or constant. */
const hlo_instruction *hlo_fp8_provenance_narrow(const hlo_fp8_provenance *provenance,
                                                 const hlo_instruction *value);

/* Finds the instruction at which the rules stop on the path from fp8 to `value`, and the reason.
 * Returns NULL if there is no such instruction. */
const hlo_instruction *hlo_fp8_provenance_blocker(const hlo_fp8_provenance *provenance,
                                                  const hlo_instruction *value,
                                                  hlo_reason *out_reason);

#endif
