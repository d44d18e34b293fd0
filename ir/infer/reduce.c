/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of reductions, and of opcodes with a window. */
#include <string.h>

#include "ir/infer/rules.h"
#include "ir/text/printer.h"

const hlo_shape *hlo_infer_REDUCE(const hlo_inference *q) {
    uint32_t count = q->count / 2, rank = 0;
    hlo_type *types = hlo_infer_scratch(q, count, sizeof *types);
    if (!hlo_infer_reduced_operands(q, count, types)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *gone = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (!hlo_infer_dims(q, gone, from->rank, "dimension") || !hlo_infer_combiner(q, count, types))
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

/* The operands are the inputs, followed by the initial values of the carries. The computation takes
 * a slice of each input and the carries, and returns a slice of each output and the carries. */
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
            /* Insert the scan dimension into the shape of the slice. */
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

typedef struct window_dim {
    int64_t size, stride, low, high, base_dilation, window_dilation;
} window_dim;

/* Reads the window along each of `rank` dimensions. Returns NULL, with `why` set, if the window has
 * a different rank. */
static const window_dim *window_dims(const hlo_inference *q, uint32_t rank) {
    static const struct {
        hlo_attr_id id;
        uint32_t second; /* 1: the second number of each pair */
        size_t member;
        int64_t missing, least;
    } parts[] = {
        {HLO_ATTR_SIZE, 0, offsetof(window_dim, size), 1, 1},
        {HLO_ATTR_STRIDE, 0, offsetof(window_dim, stride), 1, 1},
        {HLO_ATTR_PAD, 0, offsetof(window_dim, low), 0, -HLO_INFER_EXTENT_MAX},
        {HLO_ATTR_PAD, 1, offsetof(window_dim, high), 0, -HLO_INFER_EXTENT_MAX},
        {HLO_ATTR_LHS_DILATE, 0, offsetof(window_dim, base_dilation), 1, 1},
        {HLO_ATTR_RHS_DILATE, 0, offsetof(window_dim, window_dilation), 1, 1},
    };
    window_dim *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    const hlo_attr *window = hlo_infer_attr(q, HLO_ATTR_WINDOW);
    if (rank && !hlo_window_word(window, HLO_ATTR_SIZE)) {
        hlo_infer_fail(q, "the window has no size, expected %u sizes", rank);
        return NULL;
    }
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const hlo_attr *word = hlo_window_word(window, parts[p].id);
        const uint32_t each = parts[p].id == HLO_ATTR_PAD ? 2 : 1;
        if (word && word->u.ints->count != each * rank) {
            hlo_infer_fail(q, "window %s does not have %u dimensions",
                           hlo_print_interned(q->module, hlo_put_attr, word), rank);
            return NULL;
        }
        for (uint32_t i = 0; i < rank; i++) {
            int64_t *number = (int64_t *)(void *)((char *)&dims[i] + parts[p].member);
            *number = word ? word->u.ints->v[each * i + parts[p].second] : parts[p].missing;
            if (*number < parts[p].least || *number > HLO_INFER_EXTENT_MAX) {
                const char *least = parts[p].least == 1 ? "1" : "-2^61";
                hlo_infer_fail(q, "window %s of dimension %u is %lld, expected %s to 2^61",
                               hlo_attrs_info[parts[p].id].name, i, (long long)*number, least);
                return NULL;
            }
        }
    }
    return dims;
}

/* Computes 1 + (n - 1) * step, the extent of `n` > 0 elements. Returns -1 if the extent is too
 * large. */
static int64_t dilated(int64_t n, int64_t step) {
    int64_t extent;
    if (__builtin_mul_overflow(n - 1, step, &extent) || extent >= HLO_INFER_EXTENT_MAX) return -1;
    return extent + 1;
}

/* Counts the positions of the window along a dimension of `n` elements. Returns -1 if a size is too
 * large. */
static int64_t window_places(int64_t n, const window_dim *w) {
    if (n < 0) return -1;
    const int64_t base = n ? dilated(n, w->base_dilation) : 0;
    const int64_t window = dilated(w->size, w->window_dilation);
    if (base < 0 || window < 0) return -1;
    const int64_t extent = base + w->low + w->high;
    if (extent > HLO_INFER_EXTENT_MAX) return -1;
    return extent < window ? 0 : (extent - window) / w->stride + 1;
}

const hlo_shape *hlo_infer_CONVOLUTION(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *in = hlo_infer_operand(q, 0), *kernel = hlo_infer_operand(q, 1);
    const hlo_attr *labels = hlo_infer_attr(q, HLO_ATTR_DIM_LABELS);
    uint32_t rank = in->rank;
    if (rank < 2 || kernel->rank != rank)
        return hlo_infer_fail(q, "the operands must have the same rank, at least 2");
    if (!labels) return hlo_infer_fail(q, "needs the attribute 'dim_labels'");
    /* Dimension numbers of each array: batch (kernel: input feature), feature (kernel: output
     * feature), spatial dimensions. */
    int64_t *of_in = hlo_infer_scratch(q, (size_t)rank * 3, sizeof *of_in);
    int64_t *of_kernel = of_in + rank, *of_out = of_kernel + rank;
    if (!hlo_dim_labels_read(labels->u.str, rank, of_in))
        return hlo_infer_fail(q, "dim_labels %s must name %u dimensions of each array",
                              labels->u.str, rank);
    const window_dim *window = window_dims(q, rank - 2);
    if (!window) return NULL;
    int64_t features = in->dims[of_in[1]], batch = in->dims[of_in[0]];
    int64_t takes = kernel->dims[of_kernel[0]], gives = kernel->dims[of_kernel[1]];
    int64_t groups = hlo_infer_int(q, HLO_ATTR_FEATURE_GROUP_COUNT, 1);
    int64_t batch_groups = hlo_infer_int(q, HLO_ATTR_BATCH_GROUP_COUNT, 1);
    if (groups < 1 || batch_groups < 1 || gives % groups || gives % batch_groups ||
        batch % batch_groups)
        return hlo_infer_fail(q,
                              "the group counts must divide the %lld output features, and the "
                              "batch group count the batch of %lld",
                              (long long)gives, (long long)batch);
    if (features % groups || features / groups != takes)
        return hlo_infer_fail(q,
                              "the input has %lld features and the group count is %lld, but the "
                              "kernel has %lld input features",
                              (long long)features, (long long)groups, (long long)takes);
    int64_t *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    dims[of_out[0]] = batch / batch_groups;
    dims[of_out[1]] = gives;
    for (uint32_t i = 2; i < rank; i++) {
        if (kernel->dims[of_kernel[i]] != window[i - 2].size)
            return hlo_infer_fail(q,
                                  "the size of the window along dimension %u is %lld, but the size "
                                  "of the kernel is %lld",
                                  i - 2, (long long)window[i - 2].size,
                                  (long long)kernel->dims[of_kernel[i]]);
        dims[of_out[i]] = window_places(in->dims[of_in[i]], &window[i - 2]);
        if (dims[of_out[i]] < 0 && in->dims[of_in[i]] >= 0)
            return hlo_infer_fail(
                q, "dimension %u of the padded operand or of the window is too large", i - 2);
    }
    return hlo_shape_array(q->module, hlo_infer_product_type(q), rank, dims);
}

const hlo_shape *hlo_infer_REDUCE_WINDOW(const hlo_inference *q) {
    uint32_t count = q->count / 2;
    hlo_type *types = hlo_infer_scratch(q, count, sizeof *types);
    if (!hlo_infer_reduced_operands(q, count, types) || !hlo_infer_combiner(q, count, types))
        return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const window_dim *window = window_dims(q, from->rank);
    if (!window) return NULL;
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    for (uint32_t i = 0; i < from->rank; i++) {
        dims[i] = window_places(from->dims[i], &window[i]);
        if (dims[i] < 0 && from->dims[i] >= 0)
            return hlo_infer_fail(
                q, "dimension %u of the padded operand or of the window is too large", i);
    }
    return hlo_infer_reduced(q, count, types, from->rank, dims);
}

const hlo_shape *hlo_infer_SELECT_AND_SCATTER(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 3)) return NULL;
    const hlo_shape *operand = hlo_infer_operand(q, 0), *source = hlo_infer_operand(q, 1),
                    *init = hlo_infer_operand(q, 2);
    if (source->type != operand->type || init->type != operand->type || init->rank != 0)
        return hlo_infer_fail(q, "source and initial value must have the element type of the "
                                 "operand, and the initial value must be a scalar");
    const hlo_shape *scalar = hlo_shape_array(q->module, operand->type, 0, NULL);
    const hlo_shape *pair[] = {scalar, scalar};
    const hlo_shape *pred = hlo_shape_array(q->module, HLO_TYPE_PRED, 0, NULL);
    if (!hlo_infer_called(q, HLO_ATTR_SELECT, 2, pair, pred) ||
        !hlo_infer_called(q, HLO_ATTR_SCATTER, 2, pair, scalar))
        return NULL;
    const window_dim *window = window_dims(q, operand->rank);
    if (!window) return NULL;
    if (source->rank != operand->rank)
        return hlo_infer_fail(q, "operand and source have different ranks");
    for (uint32_t i = 0; i < operand->rank; i++)
        if (!hlo_infer_dim_fits(window_places(operand->dims[i], &window[i]), source->dims[i]))
            return hlo_infer_fail(
                q, "dimension %u of the source has size %lld, but there are %lld windows", i,
                (long long)source->dims[i], (long long)window_places(operand->dims[i], &window[i]));
    return operand;
}
