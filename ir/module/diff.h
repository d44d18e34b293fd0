/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of the computations of two modules. Names, ids and metadata are ignored, and so is
 * the order of instructions unless the module is scheduled. Two instructions are equal when opcode,
 * shape with its layout, attributes, literal, operands (of commutative opcodes in any order) and
 * called computations are equal. 64-bit hashes of all these are compared, in O(n log n). */
#ifndef HLO_IR_MODULE_DIFF_H
#define HLO_IR_MODULE_DIFF_H

#include "ir/ir.h"

/* Two different computations: both entries, or two with the same name. NULL: the module has no
 * counterpart. */
typedef struct hlo_diff_pair {
    const hlo_computation *a, *b;
    const hlo_instr *first_a, *first_b; /* the first instruction, in order, that the other
                                         * computation does not have, or NULL */
} hlo_diff_pair;

typedef struct hlo_diff {
    bool same;
    bool header; /* attributes of the header differ: */
    bool header_differs[HLO_ATTR_COUNT];
    /* Counts of instructions that only `a` or only `b` has; operands and called computations are
     * ignored. */
    uint32_t removed[HLO_OP_COUNT], added[HLO_OP_COUNT];
    uint32_t pair_count;
    const hlo_diff_pair *pairs; /* the entries first */
} hlo_diff;

/* Compares two modules. *out_diff is allocated in `scratch`. */
void hlo_diff_modules(const hlo_module *a, const hlo_module *b, hlo_arena *scratch,
                      hlo_diff *out_diff);

#endif
