/* SPDX-License-Identifier: Apache-2.0 */
/* Computes facts about single values: movement, splats, signs, and values that depend on no
 * input. */
#ifndef HLO_PASSES_ANALYSIS_VALUE_H
#define HLO_PASSES_ANALYSIS_VALUE_H

#include "ir/ir.h"

enum { HLO_CHAIN_LIMIT = 64 };

/* Returns the contracting dimensions of operand `side` (0 or 1) of a dot. */
static inline const hlo_ints *hlo_dot_contracting(const hlo_instruction *dot, unsigned side) {
    return hlo_instr_ints(dot,
                          side ? HLO_ATTR_RHS_CONTRACTING_DIMS : HLO_ATTR_LHS_CONTRACTING_DIMS);
}
static inline const hlo_ints *hlo_dot_batch(const hlo_instruction *dot, unsigned side) {
    return hlo_instr_ints(dot, side ? HLO_ATTR_RHS_BATCH_DIMS : HLO_ATTR_LHS_BATCH_DIMS);
}

/* Returns the branch of a conditional that receives its operand `number`, or NULL. */
static inline hlo_computation *hlo_branch_of(const hlo_instruction *conditional, uint32_t number) {
    const hlo_attr *list = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    if (!number || (list && number > list->u.comps->count)) return NULL;
    return list ? list->u.comps->v[number - 1]
                : hlo_instr_comp(conditional, number == 1 ? HLO_ATTR_TRUE_COMPUTATION
                                                          : HLO_ATTR_FALSE_COMPUTATION);
}

/* Returns the free dimension of operand `side` of a dot; -1 unless it has exactly one. */
int64_t hlo_dot_free_dim(const hlo_instruction *dot, unsigned side);

/* True for a link of a chain: an unpinned instruction that moves elements, or converts from one
 * wide type (f32, bf16, f16) to another. */
bool hlo_chain_link(const hlo_instruction *instr);
/* True if each element is an element of operand 0 whose index depends on no other operand. */
bool hlo_repeats(const hlo_instruction *value);
/* Returns the value that `value` repeats: a value with one element, or a constant with equal
 * elements. Returns NULL if `value` is not a splat, or is one only through a pinned instruction. */
hlo_instruction *hlo_splat_source(hlo_instruction *value);

/* Returns a hash of the elements. Equal literals (hlo_literal_equal()) have equal hashes. A literal
 * whose elements are elided equals only itself. */
uint64_t hlo_literal_hash(const hlo_literal *literal, uint64_t seed);

/* True if `x` and `y` are the same expression of the same values. */
bool hlo_same_expression(hlo_instruction *x, hlo_instruction *y);

/* True for maximum(x, 0), in either order, and clamp(0, x, inf). Stores the operand number of x in
 * `*out_index` if `out_index` is not NULL. */
bool hlo_is_relu(const hlo_instruction *value, uint32_t *out_index);

/* Fixed values do not depend on an input and are equal in every run. */

/* Computes the elements of a fixed value. Evaluates also pinned instructions, barriers and sharding
 * annotations, so the elements may forbid a rewrite, but never justify one. Allocates the result in
 * `scratch`. Returns NULL if the value may depend on an input, a double cannot represent an element
 * exactly, or the computation is too large. */
const double *hlo_fixed_elements(hlo_arena *scratch, const hlo_instruction *value,
                                 int64_t *out_count);

#endif
