/* The shape rules of products, reductions, sorts and linear algebra. */
#include <stdlib.h>
#include <string.h>

#include "ir/infer.h"

/* -------------------------------------------------------------------------------------- products
 */

/* The element type of a product: the given one; the wider of the operands' when there is none. */
static hlo_type product_type(const hlo_inference *q) {
    hlo_type a = hlo_infer_operand(q, 0)->type, b = hlo_infer_operand(q, 1)->type;
    if (q->given && hlo_shape_is_array(q->given)) return q->given->type;
    return hlo_types[b].bits > hlo_types[a].bits ? b : a;
}

/* Corresponding dimensions of the two operands have as many elements. */
static bool paired(const hlo_inference *q, const hlo_ints *left, const hlo_ints *right,
                   const char *what) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    if (left->count != right->count)
        return hlo_infer_fail(
            q, "%s dimensions differ in number: %u of the left operand, %u of the right", what,
            left->count, right->count);
    for (uint32_t i = 0; i < left->count; i++) {
        int64_t l = left->v[i], r = right->v[i];
        if (!hlo_infer_dim_fits(a->dims[l], b->dims[r]))
            return hlo_infer_fail(q,
                                  "%s dimension %lld of the left operand has %lld elements, "
                                  "dimension %lld of the right has %lld",
                                  what, (long long)l, (long long)a->dims[l], (long long)r,
                                  (long long)b->dims[r]);
    }
    return true;
}

static bool disjoint(const hlo_inference *q, const hlo_ints *batch, const hlo_ints *contracting,
                     const char *side) {
    for (uint32_t i = 0; i < batch->count; i++)
        if (hlo_ints_contain(contracting, batch->v[i]))
            return hlo_infer_fail(
                q, "dimension %lld of the %s operand is both a batch and a contracting dimension",
                (long long)batch->v[i], side);
    return true;
}

const hlo_shape *hlo_infer_DOT(const hlo_inference *q) {
    if (q->count > 2) return hlo_infer_given(q); /* sparse: the further operands are its metadata */
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    const hlo_ints *a_batch = hlo_infer_ints(q, HLO_ATTR_LHS_BATCH_DIMS);
    const hlo_ints *b_batch = hlo_infer_ints(q, HLO_ATTR_RHS_BATCH_DIMS);
    const hlo_ints *a_inner = hlo_infer_ints(q, HLO_ATTR_LHS_CONTRACTING_DIMS);
    const hlo_ints *b_inner = hlo_infer_ints(q, HLO_ATTR_RHS_CONTRACTING_DIMS);
    if (!hlo_infer_dims(q, a_batch, a->rank, "left batch dimension") ||
        !hlo_infer_dims(q, b_batch, b->rank, "right batch dimension") ||
        !hlo_infer_dims(q, a_inner, a->rank, "left contracting dimension") ||
        !hlo_infer_dims(q, b_inner, b->rank, "right contracting dimension") ||
        !disjoint(q, a_batch, a_inner, "left") || !disjoint(q, b_batch, b_inner, "right") ||
        !paired(q, a_batch, b_batch, "batch") || !paired(q, a_inner, b_inner, "contracting"))
        return NULL;
    int64_t *dims = hlo_infer_scratch(q, (size_t)a->rank + b->rank, sizeof *dims);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < a_batch->count; i++) dims[rank++] = a->dims[a_batch->v[i]];
    for (uint32_t i = 0; i < a->rank; i++)
        if (!hlo_ints_contain(a_batch, i) && !hlo_ints_contain(a_inner, i))
            dims[rank++] = a->dims[i];
    for (uint32_t i = 0; i < b->rank; i++)
        if (!hlo_ints_contain(b_batch, i) && !hlo_ints_contain(b_inner, i))
            dims[rank++] = b->dims[i];
    return hlo_shape_array(q->module, product_type(q), rank, dims);
}

/* --------------------------------------------------------------------------------------- windows
 */

typedef struct window_dim {
    int64_t size, stride, low, high, base_dilation, window_dilation;
} window_dim;

/* Number `index` of a list like `3x1x2`; with `pair` the list is like `0_1x2_2`, and `pair` picks
 * one of the two (1 or 2). */
static bool window_number(const char *list, uint32_t index, int pair, int64_t *out_number) {
    for (; index; index--) {
        list = strchr(list, 'x');
        if (!list++) return false;
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
    int64_t base = 0, window, room;
    if (n > 0 && (__builtin_mul_overflow(n - 1, w->base_dilation, &base) ||
                  __builtin_add_overflow(base, 1, &base)))
        return -1;
    if (__builtin_add_overflow(base, w->low, &base) ||
        __builtin_add_overflow(base, w->high, &base) ||
        __builtin_mul_overflow(w->size - 1, w->window_dilation, &window) ||
        __builtin_add_overflow(window, 1, &window) || __builtin_sub_overflow(base, window, &room))
        return -1;
    return room < 0 ? 0 : room / w->stride + 1;
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

/* ------------------------------------------------------------------------------------ reductions
 */

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

const hlo_shape *hlo_infer_MAP(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    const hlo_shape **scalars = hlo_infer_scratch(q, q->count, sizeof *scalars);
    for (uint32_t i = 0; i < q->count; i++) {
        if (!hlo_infer_dims_fit(hlo_infer_operand(q, i), first))
            return hlo_infer_fail(q, "the operands' dimensions differ");
        scalars[i] = hlo_shape_array(q->module, hlo_infer_operand(q, i)->type, 0, NULL);
    }
    const hlo_ints *dims = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (dims->count && dims->count != first->rank)
        return hlo_infer_fail(q, "'dimensions' does not name all dimensions");
    if (!hlo_infer_dims(q, dims, first->rank, "dimension")) return NULL;
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

/* -------------------------------------------------------------------------------- linear algebra
 */

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
