/* The shape rules of products, reductions, sorts and linear algebra. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/infer/infer.h"

/* ------------------------------------------------------------------------------------- products */

/* The element type of a product: the given one; the wider of the operands' when there is none. */
static hlo_type product_type(const hlo_inference *q) {
    hlo_type a = hlo_infer_operand(q, 0)->type, b = hlo_infer_operand(q, 1)->type;
    if (q->given && hlo_shape_is_array(q->given)) return q->given->type;
    return hlo_types[b].bits > hlo_types[a].bits ? b : a;
}

/* `sparsity=L.1@2:4_R.0@2:4`: along dimension `dim` of an operand, `kept` of every `group` elements
 * are there. */
typedef struct sparse_dim {
    int64_t dim, kept, group; /* group 0: the operand is dense */
} sparse_dim;

/* Reads the attribute; `out` is of the left and the right operand. */
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
            return hlo_infer_fail(q, "'sparsity' is %s, not like L.1@2:4", attr->u.str);
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

/* Corresponding dimensions of the two operands have as many elements. */
static bool paired(const hlo_inference *q, const hlo_ints *left, const hlo_ints *right,
                   const sparse_dim sparse[2], const char *what) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    if (left->count != right->count)
        return hlo_infer_fail(
            q, "%s dimensions differ in number: %u of the left operand, %u of the right", what,
            left->count, right->count);
    for (uint32_t i = 0; i < left->count; i++) {
        int64_t l = left->v[i], r = right->v[i];
        int64_t l_size = dense_size(a, l, &sparse[0]), r_size = dense_size(b, r, &sparse[1]);
        if (!hlo_infer_dim_fits(l_size, r_size))
            return hlo_infer_fail(q,
                                  "%s dimension %lld of the left operand has %lld elements, "
                                  "dimension %lld of the right has %lld",
                                  what, (long long)l, (long long)l_size, (long long)r,
                                  (long long)r_size);
    }
    return true;
}

/* Which dimensions of the two operands a product puts together. */
typedef struct dot_dims {
    const hlo_ints *a_batch, *b_batch, *a_inner, *b_inner;
    const hlo_ints *b_group; /* ragged-dot: not in the result; empty otherwise */
} dot_dims;

/* How often each of `rank` dimensions is in the lists. */
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

/* [groups,] batch dimensions, the left operand's other ones, the right operand's other ones. */
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
    return hlo_shape_array(q->module, product_type(q), rank, dims);
}

/* Which of each group are there: u16 of 16 bits, each index as wide as the group needs. */
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
                             "the indices of the sparse operand are %s, not %s",
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
            return hlo_infer_fail(q, "a sparse operand needs its indices as a further operand");
        if (!check_sparse_indices(q, indices++, hlo_infer_operand(q, side), &sparse[side]))
            return NULL;
    }
    if (q->count != indices)
        return hlo_infer_fail(q, "takes %u operands, found %u", indices, q->count);
    return dot_result(q, &dims, NULL);
}

static const sparse_dim dense[2];

/* The sizes of the groups, along the ragged dimension: one vector, or one for each index of the
 * dimensions of the left operand that come before the ragged one. */
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
    return hlo_infer_fail_at(
        q, q->operands[2]->offset,
        "the group sizes %s are neither a vector nor one for each index of the "
        "%u dimensions before the ragged one",
        hlo_infer_text(q, sizes), count);
}

const hlo_shape *hlo_infer_RAGGED_DOT(const hlo_inference *q) {
    dot_dims dims;
    if (!read_dot_dims(q, dense, &dims)) return NULL;
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    const hlo_ints *ragged = hlo_infer_ints(q, HLO_ATTR_LHS_RAGGED_DIMS);
    if (ragged->count != 1)
        return hlo_infer_fail(q, "lhs_ragged_dims has %u dimensions, not one", ragged->count);
    if (!hlo_infer_dims(q, ragged, a->rank, "ragged dimension")) return NULL;
    const hlo_shape *sizes = check_groups(q, &dims, ragged->v[0]);
    if (!sizes) return NULL;
    const int64_t *groups = &sizes->dims[sizes->rank - 1];
    bool inner = hlo_ints_contain(dims.a_inner, ragged->v[0]);
    bool free = !inner && !hlo_ints_contain(dims.a_batch, ragged->v[0]);
    if (dims.b_group->count != (free ? 1 : 0))
        return hlo_infer_fail(q,
                              "rhs_group_dims has %u dimensions, not %d: the ragged dimension is "
                              "%s",
                              dims.b_group->count, free ? 1 : 0,
                              free    ? "neither batch nor contracting"
                              : inner ? "contracting"
                                      : "batch");
    if (free) {
        int64_t group = dims.b_group->v[0];
        if (hlo_ints_contain(dims.b_batch, group) || hlo_ints_contain(dims.b_inner, group))
            return hlo_infer_fail(q, "the group dimension %lld is a batch or contracting dimension",
                                  (long long)group);
        if (!hlo_infer_dim_fits(b->dims[group], *groups))
            return hlo_infer_fail_at(q, q->operands[2]->offset,
                                     "there are %lld groups in the right operand, sizes of %lld",
                                     (long long)b->dims[group], (long long)*groups);
    }
    return dot_result(q, &dims, inner ? groups : NULL);
}

/* Each scale is a scalar, or has a whole number of the operand's elements along every dimension. */
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
                                     "operand %u, %s, is no multiple of its scale, %s", side,
                                     hlo_infer_text(q, operand), hlo_infer_text(q, scale));
    }
    return dot_result(q, &dims, NULL);
}

/* -------------------------------------------------------------------------------------- windows */

typedef struct window_dim {
    int64_t size, stride, low, high, base_dilation, window_dilation;
} window_dim;

/* Number `index` of a list like `3x1x2`; with `pair` the list is like `0_1x2_2`, and `pair` picks
 * one of the two (1 or 2). */
static bool window_number(const char *list, uint32_t index, int pair, int64_t *out_number) {
    for (; index; index--) {
        list = strchr(list, 'x');
        if (!list) return false;
        list++;
    }
    char *end;
    *out_number = strtoll(list, &end, 10);
    if (end == list || pair == 0) return end != list;
    if (*end != '_') return false;
    if (pair == 2) *out_number = strtoll(end + 1, &end, 10);
    return true;
}

static const char *window_word(const hlo_inference *q, hlo_attr_id id) {
    const hlo_attr *window = hlo_infer_attr(q, HLO_ATTR_WINDOW);
    for (uint32_t i = 0; window && i < window->u.attrs->count; i++)
        if (window->u.attrs->v[i].id == id) return window->u.attrs->v[i].u.str;
    return NULL;
}

/* The window along each of `rank` dimensions; NULL, with `why` set, when it is not given for just
 * as many. */
static const window_dim *window_dims(const hlo_inference *q, uint32_t rank) {
    static const struct {
        hlo_attr_id id;
        int pair;
        size_t member;
        int64_t missing, least;
    } parts[] = {
        {HLO_ATTR_SIZE, 0, offsetof(window_dim, size), 1, 1},
        {HLO_ATTR_STRIDE, 0, offsetof(window_dim, stride), 1, 1},
        {HLO_ATTR_PAD, 1, offsetof(window_dim, low), 0, INT64_MIN},
        {HLO_ATTR_PAD, 2, offsetof(window_dim, high), 0, INT64_MIN},
        {HLO_ATTR_LHS_DILATE, 0, offsetof(window_dim, base_dilation), 1, 1},
        {HLO_ATTR_RHS_DILATE, 0, offsetof(window_dim, window_dilation), 1, 1},
    };
    window_dim *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    if (rank && !window_word(q, HLO_ATTR_SIZE)) {
        hlo_infer_fail(q, "the window has no size, for rank %u", rank);
        return NULL;
    }
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const char *word = window_word(q, parts[p].id), *name = hlo_attrs_info[parts[p].id].name;
        int64_t extra;
        if (word && window_number(word, rank, 0, &extra)) {
            hlo_infer_fail(q, "window %s=%s is not for rank %u", name, word, rank);
            return NULL;
        }
        for (uint32_t i = 0; i < rank; i++) {
            int64_t *number = (int64_t *)(void *)((char *)&dims[i] + parts[p].member);
            *number = parts[p].missing;
            if (word && !window_number(word, i, parts[p].pair, number)) {
                hlo_infer_fail(q, "window %s=%s is not for rank %u", name, word, rank);
                return NULL;
            }
            if (*number < parts[p].least) {
                hlo_infer_fail(q, "window %s must be 1 or more", name);
                return NULL;
            }
        }
    }
    return dims;
}

/* Places of the window along a dimension of `n` elements; -1 when a size overflows. */
static int64_t window_places(int64_t n, const window_dim *w) {
    if (n < 0) return -1;
    int64_t base = 0, window, capacity;
    if (n > 0 && (__builtin_mul_overflow(n - 1, w->base_dilation, &base) ||
                  __builtin_add_overflow(base, 1, &base)))
        return -1;
    if (__builtin_add_overflow(base, w->low, &base) ||
        __builtin_add_overflow(base, w->high, &base) ||
        __builtin_mul_overflow(w->size - 1, w->window_dilation, &window) ||
        __builtin_add_overflow(window, 1, &window) ||
        __builtin_sub_overflow(base, window, &capacity))
        return -1;
    return capacity < 0 ? 0 : capacity / w->stride + 1;
}

/* One of the operands' part of dim_labels (`b01f_01io->b01f`): which dimension each letter names.
 * Returns where it ends; NULL when it has not the rank. */
static const char *dim_labels(const char *text, const char *letters, uint32_t rank,
                              int64_t *out_named) {
    for (uint32_t i = 0; i < rank; i++) out_named[i] = -1;
    uint32_t at = 0;
    for (; *text && *text != '_' && *text != '-'; text++, at++) {
        const char *letter = strchr(letters, *text);
        int64_t number = letter ? letter - letters : *text - '0' + 2;
        if (*text == '?') continue;
        if (number < 0 || number >= rank || at >= rank || out_named[number] >= 0) return NULL;
        out_named[number] = at;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (out_named[i] < 0) return NULL;
    return at == rank ? text : NULL;
}

const hlo_shape *hlo_infer_CONVOLUTION(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *in = hlo_infer_operand(q, 0), *kernel = hlo_infer_operand(q, 1);
    const hlo_attr *labels = hlo_infer_attr(q, HLO_ATTR_DIM_LABELS);
    uint32_t rank = in->rank;
    if (rank < 2 || kernel->rank != rank)
        return hlo_infer_fail(q, "the operands must have the same number of dimensions, 2 or more");
    if (!labels) return hlo_infer_fail(q, "needs the attribute 'dim_labels'");
    /* Each: batch or input feature, feature or output feature, spatial dimensions. */
    int64_t *of_in = hlo_infer_scratch(q, (size_t)rank * 3, sizeof *of_in);
    int64_t *of_kernel = of_in + rank, *of_out = of_kernel + rank;
    const char *rest = dim_labels(labels->u.str, "bf", rank, of_in);
    if (rest && *rest == '_') rest = dim_labels(rest + 1, "io", rank, of_kernel);
    if (rest && strncmp(rest, "->", 2) == 0) rest = dim_labels(rest + 2, "bf", rank, of_out);
    if (!rest || *rest)
        return hlo_infer_fail(q, "dim_labels %s do not name %u dimensions of each", labels->u.str,
                              rank);
    const window_dim *window = window_dims(q, rank - 2);
    if (!window) return NULL;
    int64_t features = in->dims[of_in[1]], batch = in->dims[of_in[0]];
    int64_t takes = kernel->dims[of_kernel[0]], gives = kernel->dims[of_kernel[1]];
    int64_t groups = hlo_infer_int(q, HLO_ATTR_FEATURE_GROUP_COUNT, 1);
    int64_t batch_groups = hlo_infer_int(q, HLO_ATTR_BATCH_GROUP_COUNT, 1);
    if (groups < 1 || batch_groups < 1 || gives % groups || gives % batch_groups ||
        batch % batch_groups)
        return hlo_infer_fail(q, "the group counts do not divide features and batch");
    if (features % groups || features / groups != takes)
        return hlo_infer_fail(q, "%lld input features, group count %lld, but the kernel takes %lld",
                              (long long)features, (long long)groups, (long long)takes);
    int64_t *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    dims[of_out[0]] = batch / batch_groups;
    dims[of_out[1]] = gives;
    for (uint32_t i = 2; i < rank; i++) {
        if (kernel->dims[of_kernel[i]] != window[i - 2].size)
            return hlo_infer_fail(
                q, "the window's size along dimension %u is %lld, the kernel's %lld", i - 2,
                (long long)window[i - 2].size, (long long)kernel->dims[of_kernel[i]]);
        dims[of_out[i]] = window_places(in->dims[of_in[i]], &window[i - 2]);
        if (dims[of_out[i]] < 0 && in->dims[of_in[i]] >= 0)
            return hlo_infer_fail(q, "the padded operand is too large");
    }
    return hlo_shape_array(q->module, product_type(q), rank, dims);
}

/* ----------------------------------------------------------------------------------- reductions */

/* Operands: `count` arrays of the same dimensions, then a scalar of its type for each. */
static bool reduced_operands(const hlo_inference *q, uint32_t count, hlo_type *out_types) {
    if (q->count != 2 * count) return hlo_infer_fail(q, "takes an even number of operands");
    if (!hlo_infer_arrays(q, 0, q->count)) return false;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *array = hlo_infer_operand(q, i), *init = hlo_infer_operand(q, count + i);
        if (!hlo_infer_dims_fit(array, first))
            return hlo_infer_fail(q, "the dimensions of operands 0 and %u differ", i);
        if (init->rank != 0) return hlo_infer_fail(q, "initial value %u is no scalar", i);
        if (init->type != array->type)
            return hlo_infer_fail(q, "initial value %u has another element type than its array", i);
        out_types[i] = array->type;
    }
    return true;
}

/* An array of those dimensions for each type. */
static const hlo_shape *reduced(const hlo_inference *q, uint32_t count, const hlo_type *types,
                                uint32_t rank, const int64_t *dims) {
    const hlo_shape **results = hlo_infer_scratch(q, count, sizeof *results);
    for (uint32_t i = 0; i < count; i++)
        results[i] = hlo_shape_array(q->module, types[i], rank, dims);
    return hlo_infer_tuple(q, count, results);
}

const hlo_shape *hlo_infer_REDUCE(const hlo_inference *q) {
    uint32_t count = q->count / 2, rank = 0;
    hlo_type *types = hlo_infer_scratch(q, count, sizeof *types);
    if (!reduced_operands(q, count, types)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *gone = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (!hlo_infer_dims(q, gone, from->rank, "dimension") ||
        !hlo_infer_combiner(q, HLO_ATTR_TO_APPLY, count, types))
        return NULL;
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    for (uint32_t i = 0; i < from->rank; i++)
        if (!hlo_ints_contain(gone, i)) dims[rank++] = from->dims[i];
    return reduced(q, count, types, rank, dims);
}

const hlo_shape *hlo_infer_REDUCE_WINDOW(const hlo_inference *q) {
    uint32_t count = q->count / 2;
    hlo_type *types = hlo_infer_scratch(q, count, sizeof *types);
    if (!reduced_operands(q, count, types) ||
        !hlo_infer_combiner(q, HLO_ATTR_TO_APPLY, count, types))
        return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const window_dim *window = window_dims(q, from->rank);
    if (!window) return NULL;
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    for (uint32_t i = 0; i < from->rank; i++) {
        dims[i] = window_places(from->dims[i], &window[i]);
        if (dims[i] < 0 && from->dims[i] >= 0)
            return hlo_infer_fail(q, "the padded operand is too large");
    }
    return reduced(q, count, types, from->rank, dims);
}

const hlo_shape *hlo_infer_SELECT_AND_SCATTER(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 3)) return NULL;
    const hlo_shape *operand = hlo_infer_operand(q, 0), *source = hlo_infer_operand(q, 1),
                    *init = hlo_infer_operand(q, 2);
    if (source->type != operand->type || init->type != operand->type || init->rank != 0)
        return hlo_infer_fail(q, "source and initial scalar must have the operand's element type");
    const hlo_shape *scalar = hlo_shape_array(q->module, operand->type, 0, NULL);
    const hlo_shape *pair[] = {scalar, scalar};
    const hlo_shape *pred = hlo_shape_array(q->module, HLO_TYPE_PRED, 0, NULL);
    if (!hlo_infer_called(q, HLO_ATTR_SELECT, 2, pair, pred) ||
        !hlo_infer_called(q, HLO_ATTR_SCATTER, 2, pair, scalar))
        return NULL;
    const window_dim *window = window_dims(q, operand->rank);
    if (!window) return NULL;
    if (source->rank != operand->rank)
        return hlo_infer_fail(q, "operand and source have unlike ranks");
    for (uint32_t i = 0; i < operand->rank; i++)
        if (!hlo_infer_dim_fits(window_places(operand->dims[i], &window[i]), source->dims[i]))
            return hlo_infer_fail(
                q, "dimension %u of the source has size %lld, but the windows are %lld", i,
                (long long)source->dims[i], (long long)window_places(operand->dims[i], &window[i]));
    return operand;
}

/* Over all dimensions, whichever 'dimensions' names: XLA does not look at it. */
const hlo_shape *hlo_infer_MAP(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    const hlo_shape **scalars = hlo_infer_scratch(q, q->count, sizeof *scalars);
    for (uint32_t i = 0; i < q->count; i++) {
        if (!hlo_infer_dims_fit(hlo_infer_operand(q, i), first))
            return hlo_infer_fail(q, "the operands' dimensions differ");
        scalars[i] = hlo_shape_array(q->module, hlo_infer_operand(q, i)->type, 0, NULL);
    }
    const hlo_computation *comp = hlo_infer_called(q, HLO_ATTR_TO_APPLY, q->count, scalars, NULL);
    if (!comp) return NULL;
    if (!hlo_shape_is_scalar(comp->root->shape))
        return hlo_infer_fail(q, "%%%s returns no scalar", comp->name);
    return hlo_shape_array(q->module, comp->root->shape->type, first->rank, first->dims);
}

const hlo_shape *hlo_infer_SORT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    const hlo_ints *along = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (along->count != 1) return hlo_infer_fail(q, "'dimensions' must name one dimension");
    if (!hlo_infer_dims(q, along, first->rank, "dimension")) return NULL;
    const hlo_shape **keys = hlo_infer_scratch(q, q->count, sizeof *keys);
    const hlo_shape **scalars = hlo_infer_scratch(q, (size_t)q->count * 2, sizeof *scalars);
    for (uint32_t i = 0; i < q->count; i++) {
        keys[i] = hlo_infer_operand(q, i);
        if (!hlo_infer_dims_fit(keys[i], first))
            return hlo_infer_fail(q, "the operands' dimensions differ");
        scalars[2 * i] = scalars[2 * i + 1] = hlo_shape_array(q->module, keys[i]->type, 0, NULL);
    }
    const hlo_shape *pred = hlo_shape_array(q->module, HLO_TYPE_PRED, 0, NULL);
    if (!hlo_infer_called(q, HLO_ATTR_TO_APPLY, q->count * 2, scalars, pred)) return NULL;
    return hlo_infer_tuple(q, q->count, keys);
}

/* Along the scan dimension: the same array, with it put back in at `along` of `size`. */
static const hlo_shape *with_dim(const hlo_inference *q, const hlo_shape *slice, uint32_t along,
                                 int64_t size) {
    int64_t *dims = hlo_infer_scratch(q, (size_t)slice->rank + 1, sizeof *dims);
    memcpy(dims, slice->dims, along * sizeof *dims);
    dims[along] = size;
    memcpy(dims + along + 1, slice->dims + along, (slice->rank - along) * sizeof *dims);
    return hlo_shape_array(q->module, slice->type, slice->rank + 1, dims);
}

static const hlo_shape *without_dim(const hlo_inference *q, const hlo_shape *shape, int64_t along) {
    int64_t *dims = hlo_infer_scratch(q, shape->rank, sizeof *dims);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i != along) dims[rank++] = shape->dims[i];
    return hlo_shape_array(q->module, shape->type, rank, dims);
}

/* The inputs, then the carries' initial values; the computation takes a slice of each input and the
 * carries, and returns a slice of each output and the carries. */
const hlo_shape *hlo_infer_SCAN(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    int64_t carries = hlo_infer_int(q, HLO_ATTR_NUM_CARRIES, 0), size = -1;
    const hlo_ints *along = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (along->count != 1) return hlo_infer_fail(q, "'dimensions' must name one dimension");
    if (carries < 0 || carries >= q->count)
        return hlo_infer_fail(q,
                              "num_carries is %lld, but there are %u operands, one input or more",
                              (long long)carries, q->count);
    uint32_t inputs = q->count - (uint32_t)carries;
    const hlo_shape **slices = hlo_infer_scratch(q, q->count, sizeof *slices);
    for (uint32_t i = 0; i < q->count; i++) {
        slices[i] = hlo_infer_operand(q, i);
        if (i >= inputs) continue;
        if (!hlo_infer_dims(q, along, slices[i]->rank, "scan dimension")) return NULL;
        int64_t here = slices[i]->dims[along->v[0]];
        if (!hlo_infer_dim_fits(size, here))
            return hlo_infer_fail_at(q, q->operands[i]->offset,
                                     "the scan dimension of operand %u has %lld elements, not %lld",
                                     i, (long long)here, (long long)size);
        if (size < 0) size = here;
        slices[i] = without_dim(q, slices[i], along->v[0]);
    }
    const hlo_computation *comp = hlo_infer_called(q, HLO_ATTR_TO_APPLY, q->count, slices, NULL);
    if (!comp) return NULL;
    const hlo_shape *root = comp->root->shape;
    bool many = root->type == HLO_TYPE_TUPLE;
    uint32_t results = many ? root->rank : 1, outputs = results - (uint32_t)carries;
    if (results < carries)
        return hlo_infer_fail_at(q, comp->root->offset,
                                 "%%%s returns %u values, fewer than the "
                                 "%lld carries",
                                 comp->name, results, (long long)carries);
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
                q, comp->root->offset, "output %u of %%%s is %s: it has no dimension %lld", i,
                comp->name, hlo_infer_text(q, shapes[i]), (long long)along->v[0]);
        } else {
            shapes[i] = with_dim(q, shapes[i], (uint32_t)along->v[0], size);
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
        return hlo_infer_fail(q, "there are no %lld largest elements along the last dimension",
                              (long long)k);
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    memcpy(dims, from->dims, from->rank * sizeof *dims);
    dims[from->rank - 1] = k;
    return reduced(q, 2, (hlo_type[]){from->type, HLO_TYPE_S32}, from->rank, dims);
}

/* ------------------------------------------------------------------------------- linear algebra */

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
            return hlo_infer_fail(q, "operand %u is no vector of one element per feature", i);
    }
    if (q->op == HLO_OP_BATCH_NORM_GRAD && !hlo_infer_fits(hlo_infer_operand(q, 4), data))
        return hlo_infer_fail(q, "operand 4 has not the shape of operand 0");
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
        return hlo_infer_fail(q, "operand 0 holds no square matrices");
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
        return hlo_infer_fail(q, "the operands must agree in element type and dimensions");
    bool left = hlo_infer_int(q, HLO_ATTR_LEFT_SIDE, 0);
    uint32_t rank = a->rank;
    if (!hlo_infer_dim_fits(a->dims[rank - 1], b->dims[rank - (left ? 2 : 1)]))
        return hlo_infer_fail(q, "the matrices' sizes do not go together");
    for (uint32_t i = 0; i + 2 < rank; i++)
        if (!hlo_infer_dim_fits(a->dims[i], b->dims[i]))
            return hlo_infer_fail(q, "the operands differ in dimension %u", i);
    return b;
}

/* Over the innermost dimensions, as many as fft_length has: real to complex halves the last. */
const hlo_shape *hlo_infer_FFT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *length = hlo_infer_ints(q, HLO_ATTR_FFT_LENGTH);
    const char *kind = hlo_infer_attr(q, HLO_ATTR_FFT_TYPE)->u.str;
    bool to_complex = strcmp(kind, "RFFT") == 0, to_real = strcmp(kind, "IRFFT") == 0;
    bool real = from->type == HLO_TYPE_F32 || from->type == HLO_TYPE_F64;
    if (to_complex ? !real : hlo_types[from->type].class != HLO_CLASS_COMPLEX)
        return hlo_infer_fail(q, "%s takes %s elements, not %s", kind,
                              to_complex ? "f32 or f64" : "complex", hlo_types[from->type].name);
    uint32_t count = length->count, rank = from->rank;
    if (count < 1 || count > 3)
        return hlo_infer_fail(q, "fft_length has %u dimensions, not 1 to 3", count);
    if (count > rank)
        return hlo_infer_fail(q, "fft_length has %u dimensions, the operand %u", count, rank);
    if (!to_complex && !to_real) return from;
    int64_t *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    memcpy(dims, from->dims, rank * sizeof *dims);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = rank - count + i;
        int64_t n = length->v[i], half = n / 2 + 1;
        int64_t wanted = to_real && i + 1 == count ? half : n;
        if (n < 0 || !hlo_infer_dim_fits(from->dims[d], wanted))
            return hlo_infer_fail(
                q, "%s of length %lld takes %lld elements along dimension %u, not %lld", kind,
                (long long)n, (long long)wanted, d, (long long)from->dims[d]);
        if (i + 1 == count) dims[d] = to_real ? n : half;
    }
    hlo_type type = to_real ? (from->type == HLO_TYPE_C128 ? HLO_TYPE_F64 : HLO_TYPE_F32)
                            : (from->type == HLO_TYPE_F64 ? HLO_TYPE_C128 : HLO_TYPE_C64);
    return hlo_shape_array(q->module, type, rank, dims);
}
