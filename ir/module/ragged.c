/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the dimensions of a ragged-dot from its attributes. */
#include "ir/module/ragged.h"

static void add_listed(hlo_ragged *r, const hlo_ints *list, int64_t count) {
    for (int64_t i = 0; i < count; i++) r->prefix[r->prefix_count++] = list->v[i];
}

bool hlo_ragged_read(const hlo_instruction *instr, hlo_ragged *out_ragged) {
    hlo_ragged *r = out_ragged;
    if (instr->op != HLO_OP_RAGGED_DOT || instr->operand_count != 3) return false;
    const hlo_shape *lhs = hlo_instr_operand(instr, 0)->shape;
    const hlo_shape *rhs = hlo_instr_operand(instr, 1)->shape;
    const hlo_shape *sizes = hlo_instr_operand(instr, 2)->shape;
    const hlo_ints *batch = hlo_instr_ints(instr, HLO_ATTR_LHS_BATCH_DIMS);
    const hlo_ints *summed = hlo_instr_ints(instr, HLO_ATTR_LHS_CONTRACTING_DIMS);
    const hlo_ints *ragged = hlo_instr_ints(instr, HLO_ATTR_LHS_RAGGED_DIMS);
    const hlo_ints *group = hlo_instr_ints(instr, HLO_ATTR_RHS_GROUP_DIMS);
    if (ragged->count != 1 || lhs->rank > HLO_RAGGED_MAX_RANK || rhs->rank > HLO_RAGGED_MAX_RANK ||
        instr->shape->rank > HLO_RAGGED_MAX_RANK || !sizes->rank)
        return false;
    const int64_t dim = ragged->v[0], in_batch = hlo_ints_find(batch, dim),
                  in_sum = hlo_ints_find(summed, dim);
    *r = (hlo_ragged){.dim = dim,
                      .extent = lhs->dims[dim],
                      .groups = sizes->dims[sizes->rank - 1],
                      .batch_count = batch->count};
    add_listed(r, batch, in_batch < 0 ? batch->count : in_batch);
    if (in_batch >= 0) {
        r->mode = HLO_RAGGED_BATCH;
        r->partner = hlo_instr_ints(instr, HLO_ATTR_RHS_BATCH_DIMS)->v[in_batch];
        r->place = r->batch_count = (uint32_t)in_batch;
    } else if (in_sum >= 0) {
        r->mode = HLO_RAGGED_CONTRACTING;
        r->partner = hlo_instr_ints(instr, HLO_ATTR_RHS_CONTRACTING_DIMS)->v[in_sum];
        add_listed(r, summed, in_sum);
    } else {
        r->mode = HLO_RAGGED_FREE;
        r->partner = group->v[0];
        for (int64_t i = 0; i < dim; i++)
            if (hlo_ints_find(batch, i) < 0 && hlo_ints_find(summed, i) < 0)
                r->prefix[r->prefix_count++] = i;
        r->place = r->prefix_count;
    }
    if (sizes->rank == 1) r->prefix_count = r->batch_count = 0;
    return true;
}
