/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of linear algebra, FFT and batch norm. */
#include <string.h>

#include "ir/infer/rules.h"

const hlo_shape *hlo_infer_BATCH_NORM(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *data = hlo_infer_operand(q, 0), *scale = hlo_infer_operand(q, 1);
    int64_t feature = hlo_infer_int(q, HLO_ATTR_FEATURE_INDEX, 0);
    if (feature < 0 || feature >= data->rank)
        return hlo_infer_fail(q, "feature_index %lld is out of range", (long long)feature);
    uint32_t vectors = q->op == HLO_OP_BATCH_NORM_GRAD ? 4 : q->count;
    for (uint32_t i = 1; i < vectors; i++) {
        const hlo_shape *vector = hlo_infer_operand(q, i);
        if (vector->rank != 1 || vector->type != scale->type ||
            !hlo_infer_dim_fits(vector->dims[0], data->dims[feature]))
            return hlo_infer_fail(q, "operand %u must be a vector with one element per feature", i);
    }
    if (q->op == HLO_OP_BATCH_NORM_GRAD && !hlo_infer_fits(hlo_infer_operand(q, 4), data))
        return hlo_infer_fail(q, "operand 4 must have the shape of operand 0");
    return q->op == HLO_OP_BATCH_NORM_INFERENCE
               ? data
               : hlo_shape_tuple(q->module, 3, (const hlo_shape *[]){data, scale, scale});
}

static bool square(const hlo_inference *q, const hlo_shape *shape) {
    if (hlo_types[shape->type].class != HLO_CLASS_FLOAT &&
        hlo_types[shape->type].class != HLO_CLASS_COMPLEX)
        return hlo_infer_fail(q, "not defined for %s", hlo_types[shape->type].name);
    if (shape->rank < 2 ||
        !hlo_infer_dim_fits(shape->dims[shape->rank - 1], shape->dims[shape->rank - 2]))
        return hlo_infer_fail(q, "operand 0 must contain square matrices");
    return true;
}

const hlo_shape *hlo_infer_CHOLESKY(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *shape = hlo_infer_operand(q, 0);
    return square(q, shape) ? shape : NULL;
}

const hlo_shape *hlo_infer_TRIANGULAR_SOLVE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    if (!square(q, a)) return NULL;
    if (b->type != a->type || b->rank != a->rank)
        return hlo_infer_fail(q, "the operands must have the same element type and rank");
    bool left = hlo_infer_int(q, HLO_ATTR_LEFT_SIDE, 0);
    uint32_t rank = a->rank;
    const int64_t size = a->dims[rank - 1], found = b->dims[rank - (left ? 2 : 1)];
    if (!hlo_infer_dim_fits(size, found))
        return hlo_infer_fail(q, "operand 1 has %lld %s, but operand 0 requires %lld",
                              (long long)found, left ? "rows" : "columns", (long long)size);
    for (uint32_t i = 0; i + 2 < rank; i++)
        if (!hlo_infer_dim_fits(a->dims[i], b->dims[i]))
            return hlo_infer_fail(q, "the operands have different sizes in batch dimension %u", i);
    return b;
}

/* Infers a transform of the innermost dimensions, as many as fft_length has. Real to complex halves
 * the last one. */
const hlo_shape *hlo_infer_FFT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *length = hlo_infer_ints(q, HLO_ATTR_FFT_LENGTH);
    const char *kind = hlo_infer_attr(q, HLO_ATTR_FFT_TYPE)->u.str;
    bool to_complex = strcmp(kind, "RFFT") == 0, to_real = strcmp(kind, "IRFFT") == 0;
    bool real = from->type == HLO_TYPE_F32 || from->type == HLO_TYPE_F64;
    if (to_complex ? !real : hlo_types[from->type].class != HLO_CLASS_COMPLEX)
        return hlo_infer_fail(q, "%s requires elements of type %s, found %s", kind,
                              to_complex ? "f32 or f64" : "complex", hlo_types[from->type].name);
    uint32_t count = length->count, rank = from->rank;
    if (count < 1 || count > 3)
        return hlo_infer_fail(q, "fft_length has %u dimensions, expected 1 to 3", count);
    if (count > rank)
        return hlo_infer_fail(q, "fft_length has %u dimensions, but the operand has %u", count,
                              rank);
    if (!to_complex && !to_real) return from;
    int64_t *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    memcpy(dims, from->dims, rank * sizeof *dims);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = rank - count + i;
        int64_t n = length->v[i], half = n / 2 + 1;
        int64_t wanted = to_real && i + 1 == count ? half : n;
        if (n < 0 || !hlo_infer_dim_fits(from->dims[d], wanted))
            return hlo_infer_fail(
                q, "%s of length %lld requires %lld elements along dimension %u, found %lld", kind,
                (long long)n, (long long)wanted, d, (long long)from->dims[d]);
        if (i + 1 == count) dims[d] = to_real ? n : half;
    }
    hlo_type type = to_real ? (from->type == HLO_TYPE_C128 ? HLO_TYPE_F64 : HLO_TYPE_F32)
                            : (from->type == HLO_TYPE_F64 ? HLO_TYPE_C128 : HLO_TYPE_C64);
    return hlo_shape_array(q->module, type, rank, dims);
}
