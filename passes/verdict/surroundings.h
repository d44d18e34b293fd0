/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the surroundings of a matmul for a graph: a few instructions before and after the
 * matmul. */
#ifndef HLO_PASSES_VERDICT_SURROUNDINGS_H
#define HLO_PASSES_VERDICT_SURROUNDINGS_H

#include "ir/ir.h"

/* An instruction of the graph. Broadcasts of scalars and get-tuple-elements are omitted; their
 * users refer to their operands instead. */
typedef struct hlo_surrounding_instr {
    const char *name, *op, *shape;
    bool focus;  /* the matmul of the graph */
    bool matmul; /* the instruction is the focus or another matmul */
    bool fp8;    /* the result contains fp8 values */
    uint32_t operand_count;
    const uint32_t *operands; /* indices in the graph, smaller than this one */
} hlo_surrounding_instr;

typedef struct hlo_surroundings {
    uint32_t count;
    const hlo_surrounding_instr *v;
} hlo_surroundings;

/* Collects the surroundings of a matmul, with copies of all strings. */
const hlo_surroundings *hlo_surroundings_of(const hlo_instruction *matmul, hlo_arena *arena);

#endif
