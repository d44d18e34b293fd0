/* Values that come from fp8 ones by a way that no rule follows: why a matmul of them is wide. */
#ifndef HLO_PASSES_CARRIED_H
#define HLO_PASSES_CARRIED_H

#include "ir/ir.h"
#include "passes/reason/reason.h"

typedef struct hlo_fp8_provenance hlo_fp8_provenance;

/* Looks at the whole module, as often as loops hand values back to their beginnings. The answer
 * lives in `arena`, and is valid until the module changes. */
const hlo_fp8_provenance *hlo_fp8_provenance_find(const hlo_module *module, hlo_arena *arena);

/* Whether a value comes from fp8 by movement, conversion, scaling and shifting, through tuples,
 * loops, branches, calls and barriers. */
bool hlo_fp8_provenance_has(const hlo_fp8_provenance *provenance, const hlo_instr *value);

/* Of such a value: what on its way the rules do not follow, and the reason that it is. NULL:
 * nothing was found. */
const hlo_instr *hlo_fp8_provenance_blocker(const hlo_fp8_provenance *provenance,
                                            const hlo_instr *value, hlo_reason *out_reason);

#endif
