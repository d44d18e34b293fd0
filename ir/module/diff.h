/* How two modules differ in what they compute: names, ids and metadata do not count, nor does the
 * order of instructions, unless the module is scheduled. Two instructions are the same when opcode,
 * shape with its layout, attributes and literal are, and their operands (of commutative opcodes in
 * any order) and called computations are the same as well. Compared are 64-bit hashes of all that,
 * in O(n log n). */
#ifndef HLO_IR_DIFF_H
#define HLO_IR_DIFF_H

#include "ir/ir.h"

/* Two computations that differ: both entries, or two of one name. NULL: the other module has none
 * to go with it. */
typedef struct hlo_diff_pair {
    const hlo_computation *a, *b;
    const hlo_instr *first_a, *first_b; /* in order, the first that the other does not have; NULL
                                           when there is none */
} hlo_diff_pair;

typedef struct hlo_diff {
    bool same;
    bool header; /* attributes of the header differ: */
    bool header_differs[HLO_ATTR_COUNT];
    /* Instructions that the one has and the other has not, operands and called computations not
     * looked at. */
    uint32_t removed[HLO_OP_COUNT], added[HLO_OP_COUNT];
    uint32_t pair_count;
    const hlo_diff_pair *pairs; /* the entries first */
} hlo_diff;

/* All that *out_diff points to is in `scratch`. */
void hlo_diff_modules(const hlo_module *a, const hlo_module *b, hlo_arena *scratch,
                      hlo_diff *out_diff);

#endif
