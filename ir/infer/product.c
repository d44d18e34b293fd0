/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of matrix products, linear algebra, FFT and batch norm. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/infer/rules.h"

hlo_type hlo_infer_product_type(const hlo_inference *q) {
    hlo_type a = hlo_infer_operand(q, 0)->type, b = hlo_infer_operand(q, 1)->type;
    if (q->given && hlo_shape_is_array(q->given)) return q->given->type;
    return hlo_types[b].bits > hlo_types[a].bits ? b : a;
}

/* One part of `sparsity=L.1@2:4_R.0@2:4`: along dimension `dim` of an operand, `kept` of every
 * `group` elements are stored. */
typedef struct sparse_dim {
    int64_t dim, kept, group; /* group 0: the operand is dense */
} sparse_dim;

/* Reads the attribute `sparsity`. Sets `out` to the sparsity of the left and of the right operand.
 */
static bool sparse_dims(const hlo_inference *q, sparse_dim out[2]) {
    const hlo_attr *attr = hlo_infer_attr(q, HLO_ATTR_SPARSITY);
    memset(out, 0, 2 * sizeof *out);
    for (const char *at = attr ? attr->u.str : ""; *at;) {
        sparse_dim read;
        char side;
        int length = 0;
        if (sscanf(at, "%c.%" SCNd64 "@%" SCNd64 ":%" SCNd64 "%n", &side, &read.dim, &read.kept,
                   &read.group, &length) != 4 ||
            (side != 'L' && side != 'R') || read.kept < 1 || read.group < read.kept)
            return hlo_infer_fail(q, "invalid sparsity %s, expected a form like L.1@2:4",
                                  attr->u.str);
        const hlo_shape *shape = hlo_infer_operand(q, side == 'R');
        if (read.dim < 0 || read.dim >= shape->rank)
            return hlo_infer_fail(q, "sparse dimension %" PRId64 " is out of range for rank %u",
                                  read.dim, shape->rank);
        out[side == 'R'] = read;
        at += length;
        if (*at == '_') at++;
    }
    return true;
}

static int64_t dense_size(const hlo_shape *shape, int64_t dim, const sparse_dim *sparse) {
    int64_t size = shape->dims[dim];
    if (!sparse->group || sparse->dim != dim || size < 0) return size;
    return __builtin_mul_overflow(size / sparse->kept, sparse->group, &size) ? -1 : size;
}

/* True if paired dimensions of both operands have equal sizes. */
static bool paired(const hlo_inference *q, const hlo_ints *left, const hlo_ints *right,
                   const sparse_dim sparse[2], const char *what) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    if (left->count != right->count)
        return hlo_infer_fail(q, "the operands have different numbers of %s dimensions: %u and %u",
                              what, left->count, right->count);
    for (uint32_t i = 0; i < left->count; i++) {
        int64_t l = left->v[i], r = right->v[i];
        int64_t l_size = dense_size(a, l, &sparse[0]), r_size = dense_size(b, r, &sparse[1]);
        if (!hlo_infer_dim_fits(l_size, r_size))
            return hlo_infer_fail(q,
                                  "%s dimension %lld of the left operand has size %lld, but "
                                  "dimension %lld of the right operand has size %lld",
                                  what, (long long)l, (long long)l_size, (long long)r,
                                  (long long)r_size);
    }
    return true;
}

/* Dimension numbers of a product. */
typedef struct dot_dims {
    const hlo_ints *a_batch, *b_batch, *a_inner, *b_inner;
    const hlo_ints *b_group; /* ragged-dot: group dimensions, which the result does not have;
                              * otherwise empty */
} dot_dims;

/* Counts the occurrences of each of `rank` dimensions in the lists. */
static const uint8_t *times_named(const hlo_inference *q, uint32_t rank, const hlo_ints *a,
                                  const hlo_ints *b, const hlo_ints *c) {
    uint8_t *times = memset(hlo_infer_scratch(q, rank, 1), 0, rank);
    const hlo_ints *lists[] = {a, b, c};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (uint32_t i = 0; i < lists[l]->count; i++) times[lists[l]->v[i]]++;
    return times;
}

static bool disjoint(const hlo_inference *q, uint32_t rank, const hlo_ints *batch,
                     const hlo_ints *contracting, const char *side) {
    const uint8_t *times = times_named(q, rank, batch, contracting, &(hlo_ints){.count = 0});
    for (uint32_t i = 0; i < rank; i++)
        if (times[i] > 1)
            return hlo_infer_fail(
                q, "dimension %u of the %s operand is both a batch and a contracting dimension", i,
                side);
    return true;
}

static bool read_dot_dims(const hlo_inference *q, const sparse_dim sparse[2], dot_dims *out) {
    if (!hlo_infer_arrays(q, 0, q->count)) return false;
    uint32_t a = hlo_infer_operand(q, 0)->rank, b = hlo_infer_operand(q, 1)->rank;
    *out = (dot_dims){hlo_infer_ints(q, HLO_ATTR_LHS_BATCH_DIMS),
                      hlo_infer_ints(q, HLO_ATTR_RHS_BATCH_DIMS),
                      hlo_infer_ints(q, HLO_ATTR_LHS_CONTRACTING_DIMS),
                      hlo_infer_ints(q, HLO_ATTR_RHS_CONTRACTING_DIMS),
                      hlo_infer_ints(q, HLO_ATTR_RHS_GROUP_DIMS)};
    return hlo_infer_dims(q, out->a_batch, a, "left batch dimension") &&
           hlo_infer_dims(q, out->b_batch, b, "right batch dimension") &&
           hlo_infer_dims(q, out->a_inner, a, "left contracting dimension") &&
           hlo_infer_dims(q, out->b_inner, b, "right contracting dimension") &&
           hlo_infer_dims(q, out->b_group, b, "right group dimension") &&
           disjoint(q, a, out->a_batch, out->a_inner, "left") &&
           disjoint(q, b, out->b_batch, out->b_inner, "right") &&
           paired(q, out->a_batch, out->b_batch, sparse, "batch") &&
           paired(q, out->a_inner, out->b_inner, sparse, "contracting");
}

/* Infers the result: [groups,] batch dimensions, free dimensions of the left operand, free
 * dimensions of the right operand. */
static const hlo_shape *dot_result(const hlo_inference *q, const dot_dims *d,
                                   const int64_t *groups) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    static const hlo_ints none = {.count = 0};
    const uint8_t *in_a = times_named(q, a->rank, d->a_batch, d->a_inner, &none);
    const uint8_t *in_b = times_named(q, b->rank, d->b_batch, d->b_inner, d->b_group);
    int64_t *dims = hlo_infer_scratch(q, (size_t)a->rank + b->rank + 1, sizeof *dims);
    uint32_t rank = 0;
    if (groups) dims[rank++] = *groups;
    for (uint32_t i = 0; i < d->a_batch->count; i++) dims[rank++] = a->dims[d->a_batch->v[i]];
    for (uint32_t i = 0; i < a->rank; i++)
        if (!in_a[i]) dims[rank++] = a->dims[i];
    for (uint32_t i = 0; i < b->rank; i++)
        if (!in_b[i]) dims[rank++] = b->dims[i];
    return hlo_shape_array(q->module, hlo_infer_product_type(q), rank, dims);
}

/* Checks the metadata of a sparse operand. The 16 bits of each u16 element contain indices into
 * groups, with as many bits as the size of a group needs. */
static bool check_sparse_indices(const hlo_inference *q, uint32_t number, const hlo_shape *operand,
                                 const sparse_dim *sparse) {
    const hlo_shape *indices = hlo_infer_operand(q, number);
    int64_t bits = 1;
    while (bits < 32 && (int64_t)1 << bits < sparse->group) bits++;
    int64_t *dims = hlo_infer_scratch(q, operand->rank, sizeof *dims);
    memcpy(dims, operand->dims, operand->rank * sizeof *dims);
    int64_t kept = dims[sparse->dim], needed = 0;
    if (kept >= 0 && (__builtin_mul_overflow(kept, bits, &needed) ||
                      __builtin_add_overflow(needed, 15, &needed)))
        return hlo_infer_fail(q, "the sparse operand is too large");
    dims[sparse->dim] = kept < 0 ? kept : needed / 16;
    const hlo_shape *wanted = hlo_shape_array(q->module, HLO_TYPE_U16, operand->rank, dims);
    if (hlo_infer_fits(indices, wanted)) return true;
    return hlo_infer_fail_at(q, q->operands[number]->offset,
                             "the indices of the sparse operand are %s, expected %s",
                             hlo_infer_text(q, indices), hlo_infer_text(q, wanted));
}

const hlo_shape *hlo_infer_DOT(const hlo_inference *q) {
    sparse_dim sparse[2];
    dot_dims dims;
    if (!sparse_dims(q, sparse) || !read_dot_dims(q, sparse, &dims)) return NULL;
    uint32_t indices = 2;
    for (uint32_t side = 0; side < 2; side++) {
        if (!sparse[side].group) continue;
        if (indices >= q->count)
            return hlo_infer_fail(q,
                                  "a sparse operand requires its indices as an additional operand");
        if (!check_sparse_indices(q, indices++, hlo_infer_operand(q, side), &sparse[side]))
            return NULL;
    }
    if (q->count != indices)
        return hlo_infer_fail(q, "takes %u operands, found %u", indices, q->count);
    return dot_result(q, &dims, NULL);
}

static const sparse_dim dense[2];

/* Checks the group sizes along the ragged dimension. The group sizes are one vector, or a vector
 * for each index of the left operand's dimensions that precede the ragged one. */
static const hlo_shape *check_groups(const hlo_inference *q, const dot_dims *d, int64_t ragged) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *sizes = hlo_infer_operand(q, 2);
    bool is_batch = hlo_ints_contain(d->a_batch, ragged);
    bool is_inner = hlo_ints_contain(d->a_inner, ragged);
    int64_t *prefix = hlo_infer_scratch(q, (size_t)a->rank + 1, sizeof *prefix);
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->a_batch->count && (!is_batch || d->a_batch->v[i] != ragged); i++)
        prefix[count++] = a->dims[d->a_batch->v[i]];
    const uint8_t *named = times_named(q, a->rank, d->a_batch, d->a_inner, &(hlo_ints){.count = 0});
    if (is_inner)
        for (uint32_t i = 0; d->a_inner->v[i] != ragged; i++)
            prefix[count++] = a->dims[d->a_inner->v[i]];
    else if (!is_batch)
        for (uint32_t i = 0; i < ragged; i++)
            if (!named[i]) prefix[count++] = a->dims[i];
    if (sizes->rank == 1) return sizes;
    bool fits = sizes->rank == count + 1;
    for (uint32_t i = 0; fits && i < count; i++)
        fits = hlo_infer_dim_fits(sizes->dims[i], prefix[i]);
    if (fits) return sizes;
    return hlo_infer_fail_at(q, q->operands[2]->offset,
                             "the group sizes are %s, expected a vector, or one vector per index "
                             "of the %u dimensions before the ragged one",
                             hlo_infer_text(q, sizes), count);
}

const hlo_shape *hlo_infer_RAGGED_DOT(const hlo_inference *q) {
    dot_dims dims;
    if (!read_dot_dims(q, dense, &dims)) return NULL;
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    const hlo_ints *ragged = hlo_infer_ints(q, HLO_ATTR_LHS_RAGGED_DIMS);
    if (ragged->count != 1)
        return hlo_infer_fail(q, "lhs_ragged_dims has %u dimensions, expected 1", ragged->count);
    if (!hlo_infer_dims(q, ragged, a->rank, "ragged dimension")) return NULL;
    const hlo_shape *sizes = check_groups(q, &dims, ragged->v[0]);
    if (!sizes) return NULL;
    const int64_t *groups = &sizes->dims[sizes->rank - 1];
    bool inner = hlo_ints_contain(dims.a_inner, ragged->v[0]);
    bool free = !inner && !hlo_ints_contain(dims.a_batch, ragged->v[0]);
    if (dims.b_group->count != (free ? 1 : 0))
        return hlo_infer_fail(
            q, "rhs_group_dims has %u dimensions, expected %d, because the ragged dimension is %s",
            dims.b_group->count, free ? 1 : 0,
            free    ? "neither batch nor contracting"
            : inner ? "contracting"
                    : "batch");
    if (free) {
        int64_t group = dims.b_group->v[0];
        if (hlo_ints_contain(dims.b_batch, group) || hlo_ints_contain(dims.b_inner, group))
            return hlo_infer_fail(q,
                                  "group dimension %lld is also a batch or contracting dimension",
                                  (long long)group);
        if (!hlo_infer_dim_fits(b->dims[group], *groups))
            return hlo_infer_fail_at(
                q, q->operands[2]->offset,
                "the right operand has %lld groups, but there are %lld group sizes",
                (long long)b->dims[group], (long long)*groups);
    }
    return dot_result(q, &dims, inner ? groups : NULL);
}

/* Checks that each scale is a scalar, or that its sizes divide the operand's sizes along every
 * dimension. */
const hlo_shape *hlo_infer_SCALED_DOT(const hlo_inference *q) {
    dot_dims dims;
    if (!read_dot_dims(q, dense, &dims)) return NULL;
    for (uint32_t side = 0; side < 2; side++) {
        const hlo_shape *operand = hlo_infer_operand(q, side);
        const hlo_shape *scale = hlo_infer_operand(q, side + 2);
        if (scale->rank == 0) continue;
        bool fits = scale->rank == operand->rank;
        for (uint32_t i = 0; fits && i < scale->rank; i++) {
            int64_t size = operand->dims[i], each = scale->dims[i];
            fits = size < 0 || each < 0 || size == each || (each > 0 && size % each == 0);
        }
        if (!fits)
            return hlo_infer_fail_at(q, q->operands[side + 2]->offset,
                                     "operand %u, %s, is not a multiple of its scale, %s", side,
                                     hlo_infer_text(q, operand), hlo_infer_text(q, scale));
    }
    return dot_result(q, &dims, NULL);
}

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

/* Infers a transform of the innermost dimensions, as many as fft_length has. Along the
 * last one, of length n, RFFT returns n / 2 + 1 numbers, and IRFFT reads as many. */
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
