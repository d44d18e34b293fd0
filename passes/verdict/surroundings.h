/* Surroundings of a matmul: a few instructions before and behind it, for a picture. */
#ifndef HLO_PASSES_NEIGHBOURHOOD_H
#define HLO_PASSES_NEIGHBOURHOOD_H

#include "ir/ir.h"

/* One instruction. Broadcasts of scalars and get-tuple-elements are left out: their users stand at
 * what they show. */
typedef struct hlo_surrounding_instr {
    const char *name, *op, *shape;
    bool focus;  /* the matmul that it is about */
    bool matmul; /* that one or another */
    bool fp8;    /* holds fp8 values */
    uint32_t operand_count;
    const uint32_t *operands; /* indices of those that are here too, each below this one's */
} hlo_surrounding_instr;

typedef struct hlo_surroundings {
    uint32_t count;
    const hlo_surrounding_instr *v;
} hlo_surroundings;

/* All strings are copied. */
const hlo_surroundings *hlo_surroundings_of(const hlo_instr *matmul, hlo_arena *arena);

#endif
