/* The computation of an FP8 call in plain HLO. */
#ifndef HLO_PASSES_SPELL_H
#define HLO_PASSES_SPELL_H

#include "matmul/call.h"

/* Results of a call as plain values. */
typedef struct hlo_spelled {
    hlo_instr *d, *aux, *amax; /* aux, amax: NULL where the call has none */
} hlo_spelled;

/* Computations that find the greater of two values of a type; NULL: not made yet. */
typedef struct hlo_spell_greater {
    hlo_computation *of[HLO_TYPE_COUNT];
} hlo_spell_greater;

/* Makes instructions before `call` that compute what it computes. `fusible`: in the form that XLA's
 * GPU compiler makes the FP8 call of, where there is one: the dot is of fp8 values, and what
 * follows is in the type of the result. Else the dot is of wide values, and what follows is in f32.
 * `greater` is of calls before this one, in this or an earlier computation. */
hlo_spelled hlo_spell(hlo_instr *call, const hlo_matmul *matmul, bool fusible,
                      hlo_spell_greater *greater);

#endif
