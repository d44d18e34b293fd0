/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of reductions, sorts and scans. */
#include <string.h>

#include "ir/infer/rules.h"

const hlo_shape *hlo_infer_REDUCE(const hlo_inference *q) {
    uint32_t count = q->count / 2, rank = 0;
    hlo_type *types = hlo_infer_scratch(q, count, sizeof *types);
    if (!hlo_infer_reduced_operands(q, count, types)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *gone = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (!hlo_infer_dims(q, gone, from->rank, "dimension") ||
        !hlo_infer_combiner(q, HLO_ATTR_TO_APPLY, count, types))
        return NULL;
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    for (uint32_t i = 0; i < from->rank; i++)
        if (!hlo_ints_contain(gone, i)) dims[rank++] = from->dims[i];
    return hlo_infer_reduced(q, count, types, rank, dims);
}

/* Infers a map over all dimensions, regardless of `dimensions`, which XLA ignores. */
const hlo_shape *hlo_infer_MAP(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    const hlo_shape **scalars = hlo_infer_scratch(q, q->count, sizeof *scalars);
    for (uint32_t i = 0; i < q->count; i++) {
        if (!hlo_infer_dims_fit(hlo_infer_operand(q, i), first))
            return hlo_infer_fail(q, "the operands have different dimensions");
        scalars[i] = hlo_shape_array(q->module, hlo_infer_operand(q, i)->type, 0, NULL);
    }
    const hlo_computation *comp = hlo_infer_called(q, HLO_ATTR_TO_APPLY, q->count, scalars, NULL);
    if (!comp) return NULL;
    if (!hlo_shape_is_scalar(comp->root->shape))
        return hlo_infer_fail(q, "%%%s must return a scalar", comp->name);
    return hlo_shape_array(q->module, comp->root->shape->type, first->rank, first->dims);
}

const hlo_shape *hlo_infer_SORT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    if (!hlo_infer_one_dim(q, first)) return NULL;
    const hlo_shape **keys = hlo_infer_scratch(q, q->count, sizeof *keys);
    const hlo_shape **scalars = hlo_infer_scratch(q, (size_t)q->count * 2, sizeof *scalars);
    for (uint32_t i = 0; i < q->count; i++) {
        keys[i] = hlo_infer_operand(q, i);
        if (!hlo_infer_dims_fit(keys[i], first))
            return hlo_infer_fail(q, "the operands have different dimensions");
        scalars[2 * i] = scalars[2 * i + 1] = hlo_shape_array(q->module, keys[i]->type, 0, NULL);
    }
    const hlo_shape *pred = hlo_shape_array(q->module, HLO_TYPE_PRED, 0, NULL);
    if (!hlo_infer_called(q, HLO_ATTR_TO_APPLY, q->count * 2, scalars, pred)) return NULL;
    return hlo_infer_tuple(q, q->count, keys);
}

/* Operands are the inputs, followed by the initial values of the carries. The computation takes a
 * slice of each input and the carries, and returns a slice of each output and the carries. */
const hlo_shape *hlo_infer_SCAN(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    int64_t carries = hlo_infer_int(q, HLO_ATTR_NUM_CARRIES, 0), size = -1;
    const hlo_ints *along = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (along->count != 1) return hlo_infer_fail(q, "'dimensions' must name one dimension");
    if (carries < 0 || carries >= q->count)
        return hlo_infer_fail(q,
                              "num_carries is %lld, but there are %u operands, of which at least "
                              "one must be an input",
                              (long long)carries, q->count);
    uint32_t inputs = q->count - (uint32_t)carries;
    const hlo_shape **slices = hlo_infer_scratch(q, q->count, sizeof *slices);
    for (uint32_t i = 0; i < q->count; i++) {
        slices[i] = hlo_infer_operand(q, i);
        if (i >= inputs) continue;
        if (!hlo_infer_dims(q, along, slices[i]->rank, "scan dimension")) return NULL;
        int64_t here = slices[i]->dims[along->v[0]];
        if (!hlo_infer_dim_fits(size, here))
            return hlo_infer_fail_at(
                q, q->operands[i]->offset,
                "the scan dimension of operand %u has size %lld, expected %lld", i, (long long)here,
                (long long)size);
        if (size < 0) size = here;
        int64_t *dims = hlo_infer_scratch(q, slices[i]->rank, sizeof *dims);
        uint32_t rank = 0;
        for (uint32_t j = 0; j < slices[i]->rank; j++)
            if (j != along->v[0]) dims[rank++] = slices[i]->dims[j];
        slices[i] = hlo_shape_array(q->module, slices[i]->type, rank, dims);
    }
    const hlo_computation *comp = hlo_infer_called(q, HLO_ATTR_TO_APPLY, q->count, slices, NULL);
    if (!comp) return NULL;
    const hlo_shape *root = comp->root->shape;
    bool many = root->type == HLO_TYPE_TUPLE;
    uint32_t results = many ? root->rank : 1, outputs = results - (uint32_t)carries;
    if (results < carries)
        return hlo_infer_fail_at(q, comp->root->offset,
                                 "%%%s returns %u values, but there are %lld carries", comp->name,
                                 results, (long long)carries);
    const hlo_shape **shapes = hlo_infer_scratch(q, results, sizeof *shapes);
    for (uint32_t i = 0; i < results; i++) {
        shapes[i] = many ? root->elements[i] : root;
        if (i >= outputs) {
            if (!hlo_infer_fits(shapes[i], slices[inputs + i - outputs]))
                return hlo_infer_fail_at(q, comp->root->offset,
                                         "carry %u is %s, but %%%s returns %s for it", i - outputs,
                                         hlo_infer_text(q, slices[inputs + i - outputs]),
                                         comp->name, hlo_infer_text(q, shapes[i]));
        } else if (!hlo_shape_is_array(shapes[i]) || shapes[i]->rank < along->v[0]) {
            return hlo_infer_fail_at(
                q, comp->root->offset,
                "output %u of %%%s is %s, which does not have a dimension %lld", i, comp->name,
                hlo_infer_text(q, shapes[i]), (long long)along->v[0]);
        } else {
            /* Restore the scan dimension. */
            const uint32_t rank = shapes[i]->rank, at = (uint32_t)along->v[0];
            int64_t *dims = hlo_infer_scratch(q, (size_t)rank + 1, sizeof *dims);
            memcpy(dims, shapes[i]->dims, at * sizeof *dims);
            dims[at] = size;
            memcpy(dims + at + 1, shapes[i]->dims + at, (rank - at) * sizeof *dims);
            shapes[i] = hlo_shape_array(q->module, shapes[i]->type, rank + 1, dims);
        }
    }
    return many ? hlo_shape_tuple(q->module, results, shapes) : shapes[0];
}

const hlo_shape *hlo_infer_TOPK(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    int64_t k = hlo_infer_int(q, HLO_ATTR_K, 0);
    if (from->rank == 0 || k < 0 ||
        (from->dims[from->rank - 1] >= 0 && k > from->dims[from->rank - 1]))
        return hlo_infer_fail(q, "k = %lld is not between 0 and the size of the last dimension",
                              (long long)k);
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    memcpy(dims, from->dims, from->rank * sizeof *dims);
    dims[from->rank - 1] = k;
    return hlo_infer_reduced(q, 2, (hlo_type[]){from->type, HLO_TYPE_S32}, from->rank, dims);
}
