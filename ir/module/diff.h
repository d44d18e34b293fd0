/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the differences between the computations of two modules. Ignores names, ids, metadata and,
 * unless the module is scheduled, the order of instructions. Two instructions are equal if their
 * opcodes, shapes with layouts, attributes, literals, operands (in any order for commutative
 * opcodes) and called computations are equal. Compares 64-bit hashes of all these in O(n log n). */
#ifndef HLO_IR_MODULE_DIFF_H
#define HLO_IR_MODULE_DIFF_H

#include "ir/ir.h"

/* Two computations that differ: the entries of the modules, or two computations with the same name.
 * NULL: the module has no counterpart. */
typedef struct hlo_diff_pair {
    const hlo_computation *a, *b;
    const hlo_instruction *first_a, *first_b; /* the first instruction that the other computation
                                               * does not have, or NULL */
} hlo_diff_pair;

typedef struct hlo_diff {
    bool same;
    bool header; /* attributes of the header differ; header_differs says which */
    bool header_differs[HLO_ATTR_COUNT];
    /* Number of instructions of each opcode that only `a` (removed) or only `b` (added) has. For
     * these counts, operands and called computations are ignored. */
    uint32_t removed[HLO_OP_COUNT], added[HLO_OP_COUNT];
    uint32_t pair_count;
    const hlo_diff_pair *pairs; /* the pair of entry computations comes first */
} hlo_diff;

/* Compares two modules. *out_diff is allocated in `scratch`. */
void hlo_diff_modules(const hlo_module *a, const hlo_module *b, hlo_arena *scratch,
                      hlo_diff *out_diff);

#endif
