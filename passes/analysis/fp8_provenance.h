/* SPDX-License-Identifier: Apache-2.0 */
/* Provenance of values from fp8 on paths that no rule follows, to explain wide matmuls. */
#ifndef HLO_PASSES_ANALYSIS_FP8_PROVENANCE_H
#define HLO_PASSES_ANALYSIS_FP8_PROVENANCE_H

#include "ir/ir.h"
#include "passes/reason/reason.h"

typedef struct hlo_fp8_provenance hlo_fp8_provenance;

/* Analyzes the whole module, to a fixpoint over its loops. The result is in `arena`, and valid
 * until the module changes. */
const hlo_fp8_provenance *hlo_fp8_provenance_find(const hlo_module *module, hlo_arena *arena);

/* True if a value comes from fp8 by movement, conversion, scaling and shifting, also through
 * tuples, loops, branches, calls and barriers. */
bool hlo_fp8_provenance_has(const hlo_fp8_provenance *provenance, const hlo_instr *value);

/* Finds the instruction that the rules do not follow on the path from fp8 to `value`, and the
 * reason; NULL if not found. */
const hlo_instr *hlo_fp8_provenance_blocker(const hlo_fp8_provenance *provenance,
                                            const hlo_instr *value, hlo_reason *out_reason);

#endif
