/* The computation of an FP8 call in plain HLO. */
#ifndef HLO_PASSES_EMIT_SPELL_H
#define HLO_PASSES_EMIT_SPELL_H

#include "ir/module/build.h"
#include "matmul/call.h"

/* Results of a call as plain values. */
typedef struct hlo_spelled {
    hlo_instr *d, *aux, *amax; /* aux, amax: NULL where the call has none */
} hlo_spelled;

/* The parts made for earlier calls of the module, in the order of its computations. */
typedef struct hlo_spell_made {
    uint32_t first_id;                        /* of the first instruction that was made */
    hlo_computation *greater[HLO_TYPE_COUNT]; /* the `maximum` of reduces; NULL: none yet */
} hlo_spell_made;

/* Returns why XLA's GPU compiler makes no FP8 call of the matmul in plain HLO; NULL: it makes one.
 */
const char *hlo_spell_unfused(const hlo_matmul *m);

/* Returns why part of what the call computes stays outside the FP8 call that XLA makes; NULL: it
 * has all. */
const char *hlo_spell_outside(const hlo_matmul *m);

/* Makes instructions before `call` that compute its results. `fusible`: a dot of fp8 values with an
 * epilogue in the type of the result, which XLA's GPU compiler makes an FP8 call of, where it knows
 * such a form. Otherwise a dot of wide values with an epilogue in f32. */
hlo_spelled hlo_spell(hlo_instr *call, const hlo_matmul *matmul, bool fusible,
                      hlo_spell_made *made);

#endif
