/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of the computations of two modules. Names, ids and metadata are ignored, and so is
 * the order of instructions unless the module is scheduled. Two instructions are equal when opcode,
 * shape with its layout, attributes, literal, operands (of commutative opcodes in any order) and
 * called computations are equal. 64-bit hashes of all these are compared, in O(n log n). */
#ifndef HLO_IR_MODULE_DIFF_H
#define HLO_IR_MODULE_DIFF_H

#include "ir/ir.h"

/* Two computations that differ: both entries, or two of one name. NULL: the module has no
 * counterpart of the other one. */
typedef struct hlo_diff_pair {
    const hlo_computation *a, *b;
    const hlo_instr *first_a, *first_b; /* the first instruction, in order, that the other
                                           computation does not have; NULL: there is none */
} hlo_diff_pair;

typedef struct hlo_diff {
    bool same;
    bool header; /* attributes of the header differ: */
    bool header_differs[HLO_ATTR_COUNT];
    /* Counts of instructions that only `a`, and only `b`, has; operands and called computations are
     * ignored. */
    uint32_t removed[HLO_OP_COUNT], added[HLO_OP_COUNT];
    uint32_t pair_count;
    const hlo_diff_pair *pairs; /* the entries first */
} hlo_diff;

/* Compares two modules. All memory of *out_diff is in `scratch`. */
void hlo_diff_modules(const hlo_module *a, const hlo_module *b, hlo_arena *scratch,
                      hlo_diff *out_diff);

#endif
