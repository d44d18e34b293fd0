/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of opcodes that move elements. */
#include <string.h>

#include "ir/infer/rules.h"

const hlo_shape *hlo_infer_IOTA(const hlo_inference *q) {
    const hlo_shape *shape = hlo_infer_given(q);
    if (!shape) return NULL;
    if (!hlo_shape_is_array(shape) || shape->type == HLO_TYPE_PRED)
        return hlo_infer_fail(q, "not defined for %s", hlo_infer_text(q, shape));
    int64_t dim = hlo_infer_int(q, HLO_ATTR_IOTA_DIMENSION, 0);
    if (dim < 0 || dim >= shape->rank)
        return hlo_infer_fail(q, "iota_dimension %lld is out of range for %s", (long long)dim,
                              hlo_infer_text(q, shape));
    return shape;
}

/* Returns the given shape if both this shape and the operand are arrays and, with `same_type`, have
 * the same element type. */
static const hlo_shape *given_array(const hlo_inference *q, bool same_type) {
    const hlo_shape *given = hlo_infer_given(q);
    if (!given || !hlo_infer_arrays(q, 0, 1)) return NULL;
    if (!hlo_shape_is_array(given)) return hlo_infer_fail(q, "the result is not an array");
    if (same_type && given->type != hlo_infer_operand(q, 0)->type)
        return hlo_infer_fail(q, "the result has a different element type: %s",
                              hlo_types[given->type].name);
    return given;
}

const hlo_shape *hlo_infer_BROADCAST(const hlo_inference *q) {
    const hlo_shape *to = given_array(q, true), *from = hlo_infer_operand(q, 0);
    if (!to) return NULL;
    const hlo_ints *dims = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (!hlo_infer_has_each(q, HLO_ATTR_DIMENSIONS, 1, from->rank)) return NULL;
    if (!hlo_infer_dims(q, dims, to->rank, "dimension")) return NULL;
    for (uint32_t i = 0; i < dims->count; i++)
        if (!hlo_infer_dim_fits(from->dims[i], to->dims[dims->v[i]]))
            return hlo_infer_fail(
                q,
                "dimension %u of the operand has size %lld, but dimension %lld of %s has size %lld",
                i, (long long)from->dims[i], (long long)dims->v[i], hlo_infer_text(q, to),
                (long long)to->dims[dims->v[i]]);
    return to;
}

static bool unbounded(const hlo_shape *shape) {
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) return true;
    return false;
}

/* Returns the given shape if `count` returns the same number of `what` for the given shape and for
 * the operand. */
static const hlo_shape *as_large(const hlo_inference *q, const hlo_shape *to,
                                 int64_t (*count)(const hlo_shape *), const char *what) {
    const hlo_shape *from = hlo_infer_operand(q, 0);
    if (!to || unbounded(to) || unbounded(from)) return to;
    int64_t had = count(from), has = count(to);
    if (had != has)
        return hlo_infer_fail(q, "the operand has %lld %s, but the result %s has %lld",
                              (long long)had, what, hlo_infer_text(q, to), (long long)has);
    return to;
}

const hlo_shape *hlo_infer_RESHAPE(const hlo_inference *q) {
    return as_large(q, given_array(q, true), hlo_shape_count, "elements");
}

const hlo_shape *hlo_infer_BITCAST(const hlo_inference *q) {
    return as_large(q, given_array(q, false), hlo_shape_bytes, "bytes");
}

static int value_bits(hlo_type type) {
    return type == HLO_TYPE_PRED ? 8 : hlo_types[type].bits;
}

/* Infers a bitcast-convert. Between types of different widths, the narrow array has one more
 * dimension, the last one, for the parts of a wide element. */
const hlo_shape *hlo_infer_BITCAST_CONVERT(const hlo_inference *q) {
    const hlo_shape *to = given_array(q, false), *from = hlo_infer_operand(q, 0);
    if (!to) return NULL;
    if ((hlo_types[from->type].class == HLO_CLASS_COMPLEX) !=
        (hlo_types[to->type].class == HLO_CLASS_COMPLEX))
        return hlo_infer_fail(q, "not defined between %s and %s", hlo_types[from->type].name,
                              hlo_types[to->type].name);
    bool splits = value_bits(from->type) > value_bits(to->type);
    const hlo_shape *wide = splits ? from : to, *narrow = splits ? to : from;
    int wide_bits = value_bits(wide->type), narrow_bits = value_bits(narrow->type);
    uint32_t extra = wide_bits != narrow_bits;
    if (wide_bits % narrow_bits || narrow->rank != wide->rank + extra ||
        (extra && narrow->dims[wide->rank] != wide_bits / narrow_bits))
        return hlo_infer_fail(q, "the result cannot have shape %s", hlo_infer_text(q, to));
    for (uint32_t i = 0; i < wide->rank; i++)
        if (!hlo_infer_dim_fits(wide->dims[i], narrow->dims[i]))
            return hlo_infer_fail(q, "the result cannot have shape %s", hlo_infer_text(q, to));
    return to;
}

const hlo_shape *hlo_infer_TRANSPOSE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *dims = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (!hlo_infer_has_each(q, HLO_ATTR_DIMENSIONS, 1, from->rank)) return NULL;
    if (!hlo_infer_dims(q, dims, from->rank, "dimension")) return NULL;
    uint32_t rank = from->rank;
    int64_t *moved = hlo_infer_scratch(q, rank, sizeof *moved);
    int64_t *where = hlo_infer_scratch(q, rank, sizeof *where);
    bool *dynamic = from->dynamic ? hlo_infer_scratch(q, rank, sizeof *dynamic) : NULL;
    for (uint32_t i = 0; i < rank; i++) {
        moved[i] = from->dims[dims->v[i]];
        where[dims->v[i]] = i;
        if (dynamic) dynamic[i] = from->dynamic[dims->v[i]];
    }
    hlo_shape shape = {.type = from->type, .rank = rank, .dims = moved, .dynamic = dynamic};
    /* Set the layout that keeps the operand's bytes in place. */
    hlo_layout layout = {0};
    if (from->layout && hlo_shape_is_ordered(from)) {
        int64_t *order = hlo_infer_scratch(q, rank, sizeof *order);
        for (uint32_t i = 0; i < rank; i++) order[i] = where[from->layout->minor_to_major[i]];
        layout = *from->layout;
        layout.minor_to_major = order;
        shape.layout = &layout;
    }
    return hlo_shape_intern(q->module, &shape);
}

const hlo_shape *hlo_infer_REVERSE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *shape = hlo_infer_operand(q, 0);
    return hlo_infer_dims(q, hlo_infer_ints(q, HLO_ATTR_DIMENSIONS), shape->rank, "dimension")
               ? shape
               : NULL;
}

const hlo_shape *hlo_infer_SLICE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *slice = hlo_infer_ints(q, HLO_ATTR_SLICE);
    if (!hlo_infer_has_each(q, HLO_ATTR_SLICE, 3, from->rank)) return NULL;
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    for (uint32_t i = 0; i < from->rank; i++) {
        int64_t start = slice->v[3 * i], limit = slice->v[3 * i + 1], stride = slice->v[3 * i + 2];
        if (start < 0 || limit < start || (from->dims[i] >= 0 && limit > from->dims[i]) ||
            stride < 1)
            return hlo_infer_fail(
                q, "[%lld:%lld:%lld] is not a valid range for dimension %u of size %lld",
                (long long)start, (long long)limit, (long long)stride, i, (long long)from->dims[i]);
        dims[i] = limit == start ? 0 : (limit - start - 1) / stride + 1;
    }
    return hlo_shape_array(q->module, from->type, from->rank, dims);
}

/* Checks that operands starting at `first` are one integer scalar per dimension of `shape`, or one
 * vector of all start indices. */
static bool start_indices(const hlo_inference *q, uint32_t first, const hlo_shape *shape) {
    if (!hlo_infer_arrays(q, first, q->count)) return false;
    bool vector = q->count == first + 1 && hlo_infer_operand(q, first)->rank == 1;
    if (vector ? hlo_infer_operand(q, first)->dims[0] != shape->rank
               : q->count - first != shape->rank)
        return hlo_infer_fail(q, "the operand has rank %u, but there are %lld start indices",
                              shape->rank,
                              vector ? (long long)hlo_infer_operand(q, first)->dims[0]
                                     : (long long)(q->count - first));
    for (uint32_t i = first; i < q->count; i++) {
        const hlo_shape *index = hlo_infer_operand(q, i);
        if (!hlo_type_is_integer(index->type) || (!vector && index->rank != 0))
            return hlo_infer_fail(q, "operand %u must be an integer scalar", i);
        if (index->type != hlo_infer_operand(q, first)->type)
            return hlo_infer_fail(q, "the start indices have different element types");
    }
    return true;
}

const hlo_shape *hlo_infer_DYNAMIC_SLICE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    const hlo_ints *sizes = hlo_infer_ints(q, HLO_ATTR_DYNAMIC_SLICE_SIZES);
    if (!hlo_infer_has_each(q, HLO_ATTR_DYNAMIC_SLICE_SIZES, 1, from->rank)) return NULL;
    for (uint32_t i = 0; i < from->rank; i++)
        if (sizes->v[i] < 0 || (from->dims[i] >= 0 && sizes->v[i] > from->dims[i]))
            return hlo_infer_fail(q, "slice size %lld is invalid for dimension %u of size %lld",
                                  (long long)sizes->v[i], i, (long long)from->dims[i]);
    if (!start_indices(q, 1, from)) return NULL;
    return hlo_shape_array(q->module, from->type, from->rank, sizes->v);
}

const hlo_shape *hlo_infer_DYNAMIC_UPDATE_SLICE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *into = hlo_infer_operand(q, 0), *update = hlo_infer_operand(q, 1);
    if (into->type != update->type)
        return hlo_infer_fail(q, "operand and update have different element types");
    if (into->rank != update->rank)
        return hlo_infer_fail(q, "operand and update have different ranks");
    for (uint32_t i = 0; i < into->rank; i++)
        if (into->dims[i] >= 0 && update->dims[i] > into->dims[i])
            return hlo_infer_fail(q, "update size %lld exceeds dimension %u of size %lld",
                                  (long long)update->dims[i], i, (long long)into->dims[i]);
    return start_indices(q, 2, into) ? into : NULL;
}

const hlo_shape *hlo_infer_PAD(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0), *value = hlo_infer_operand(q, 1);
    if (value->rank != 0) return hlo_infer_fail(q, "the padding value must be a scalar");
    if (value->type != from->type)
        return hlo_infer_fail(q, "operand and padding value have different element types");
    const hlo_ints *padding = hlo_infer_ints(q, HLO_ATTR_PADDING);
    if (!hlo_infer_has_each(q, HLO_ATTR_PADDING, 3, from->rank)) return NULL;
    int64_t *dims = hlo_infer_scratch(q, from->rank, sizeof *dims);
    for (uint32_t i = 0; i < from->rank; i++) {
        if (padding->v[3 * i + 2] < 0)
            return hlo_infer_fail(q, "the interior padding of dimension %u is negative", i);
        const int64_t *p = &padding->v[3 * i], most = HLO_INFER_EXTENT_MAX;
        if (p[0] < -most || p[0] > most || p[1] < -most || p[1] > most || p[2] > most)
            return hlo_infer_fail(q, "the padding of dimension %u is outside [-2^61, 2^61]", i);
        const int64_t n = from->dims[i];
        int64_t inside, size;
        dims[i] = -1;
        if (n < 0) continue;
        if (__builtin_mul_overflow(n > 0 ? n - 1 : 0, p[2], &inside) ||
            __builtin_add_overflow(n, inside, &size) || size > most || size + p[0] + p[1] > most)
            return hlo_infer_fail(q, "the padded size of dimension %u is too large", i);
        size += p[0] + p[1];
        dims[i] = size > 0 ? size : 0;
    }
    return hlo_shape_array(q->module, from->type, from->rank, dims);
}

const hlo_shape *hlo_infer_CONCATENATE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    const hlo_ints *along = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (!hlo_infer_one_dim(q, first)) return NULL;
    int64_t *dims = hlo_infer_scratch(q, first->rank, sizeof *dims);
    memcpy(dims, first->dims, first->rank * sizeof *dims);
    int64_t *sum = &dims[along->v[0]];
    for (uint32_t i = 1; i < q->count; i++) {
        const hlo_shape *next = hlo_infer_operand(q, i);
        if (next->type != first->type)
            return hlo_infer_fail(q, "operands 0 and %u have different element types", i);
        if (next->rank != first->rank)
            return hlo_infer_fail(q, "operands 0 and %u have different ranks", i);
        for (uint32_t d = 0; d < first->rank; d++)
            if (d != along->v[0] && !hlo_infer_dim_fits(next->dims[d], first->dims[d]))
                return hlo_infer_fail(q, "operands 0 and %u have different sizes in dimension %u",
                                      i, d);
        int64_t part = next->dims[along->v[0]];
        if (*sum < 0 || part < 0)
            *sum = -1;
        else if (__builtin_add_overflow(*sum, part, sum))
            return hlo_infer_fail(q, "the result is too large");
    }
    return hlo_shape_array(q->module, first->type, first->rank, dims);
}

/* --------------------------------------------------------------------------- gather and scatter */

/* Dimension numbers of gather and scatter. Each index vector selects a window of an operand. In
 * gather, the windowed array, which consists of the windows, is the result; in scatter, it is the
 * updates. */
typedef struct windows {
    const hlo_shape *operand, *indices;
    const hlo_ints *window_dims;   /* dimensions of the windowed array: gather's offset_dims */
    const hlo_ints *dropped;       /* dimensions of the operand that have size 1 in each window */
    const hlo_ints *batch;         /* batch dimensions of the operand */
    const hlo_ints *indices_batch; /* batch dimensions of the indices */
    const hlo_ints *map;           /* the dimension of the operand that each entry of an index
                                    * vector addresses */
    int64_t vector_dim; /* dimension of the indices that contains the vectors; if it equals their
                         * rank, each index is a vector of one entry */
} windows;

static bool sorted(const hlo_ints *list) {
    for (uint32_t i = 1; i < list->count; i++)
        if (list->v[i - 1] >= list->v[i]) return false;
    return true;
}

static bool check_windows(const hlo_inference *q, const windows *w) {
    uint32_t rank = w->operand->rank, indices_rank = w->indices->rank;
    if (!hlo_type_is_integer(w->indices->type))
        return hlo_infer_fail(q, "the indices must be integers");
    if (w->vector_dim < 0 || w->vector_dim > indices_rank)
        return hlo_infer_fail(q, "index_vector_dim %lld is out of range for rank %u",
                              (long long)w->vector_dim, indices_rank);
    if (!hlo_infer_dims(q, w->dropped, rank, "dimension") ||
        !hlo_infer_dims(q, w->batch, rank, "batching dimension") ||
        !hlo_infer_dims(q, w->map, rank, "indexed dimension") ||
        !hlo_infer_dims(q, w->indices_batch, indices_rank, "batching dimension"))
        return false;
    if (!sorted(w->dropped) || !sorted(w->batch) || !sorted(w->window_dims))
        return hlo_infer_fail(q, "window and batching dimensions must be sorted");
    int64_t length = w->vector_dim == indices_rank ? 1 : w->indices->dims[w->vector_dim];
    if (!hlo_infer_dim_fits(length, w->map->count))
        return hlo_infer_fail(q,
                              "index vectors have length %lld, but there are %u indexed dimensions",
                              (long long)length, w->map->count);
    if (w->batch->count != w->indices_batch->count)
        return hlo_infer_fail(q, "the operand has %u batching dimensions, but the indices have %u",
                              w->batch->count, w->indices_batch->count);
    for (uint32_t i = 0; i < w->batch->count; i++) {
        int64_t dim = w->batch->v[i], of_indices = w->indices_batch->v[i];
        if (hlo_ints_contain(w->dropped, dim) || hlo_ints_contain(w->map, dim) ||
            of_indices == w->vector_dim)
            return hlo_infer_fail(
                q, "dimension %lld is a batching dimension and also has another role",
                (long long)dim);
        if (!hlo_infer_dim_fits(w->operand->dims[dim], w->indices->dims[of_indices]))
            return hlo_infer_fail(
                q, "batching dimension %lld has size %lld in the operand, but %lld in the indices",
                (long long)dim, (long long)w->operand->dims[dim],
                (long long)w->indices->dims[of_indices]);
    }
    if (w->window_dims->count + w->dropped->count + w->batch->count != rank)
        return hlo_infer_fail(
            q,
            "%u window dimensions and %u other dimensions do not add up to rank %u of the operand",
            w->window_dims->count, w->dropped->count + w->batch->count, rank);
    return true;
}

/* Computes the dimensions of the windowed array. The sizes at window_dims are those of a window;
 * the other sizes are those of the indices without vector_dim. `sizes`: the sizes of a window along
 * each dimension of the operand. */
static int64_t *windowed_dims(const hlo_inference *q, const windows *w, const int64_t *sizes,
                              uint32_t *out_rank) {
    uint32_t vectors = w->vector_dim < w->indices->rank;
    uint32_t rank = w->window_dims->count + w->indices->rank - vectors;
    *out_rank = rank;
    if (!hlo_infer_dims(q, w->window_dims, rank, "window dimension")) return NULL;
    int64_t *dims = hlo_infer_scratch(q, rank, sizeof *dims);
    uint32_t of_operand = 0, of_indices = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (hlo_ints_contain(w->window_dims, i)) {
            while (hlo_ints_contain(w->dropped, of_operand) ||
                   hlo_ints_contain(w->batch, of_operand))
                of_operand++;
            dims[i] = sizes[of_operand++];
        } else {
            if (of_indices == w->vector_dim) of_indices++;
            dims[i] = w->indices->dims[of_indices++];
        }
    }
    return dims;
}

const hlo_shape *hlo_infer_GATHER(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    windows w = {.operand = hlo_infer_operand(q, 0),
                 .indices = hlo_infer_operand(q, 1),
                 .window_dims = hlo_infer_ints(q, HLO_ATTR_OFFSET_DIMS),
                 .dropped = hlo_infer_ints(q, HLO_ATTR_COLLAPSED_SLICE_DIMS),
                 .batch = hlo_infer_ints(q, HLO_ATTR_OPERAND_BATCHING_DIMS),
                 .indices_batch = hlo_infer_ints(q, HLO_ATTR_START_INDICES_BATCHING_DIMS),
                 .map = hlo_infer_ints(q, HLO_ATTR_START_INDEX_MAP),
                 .vector_dim = hlo_infer_int(q, HLO_ATTR_INDEX_VECTOR_DIM, 0)};
    if (!check_windows(q, &w)) return NULL;
    const hlo_ints *sizes = hlo_infer_ints(q, HLO_ATTR_SLICE_SIZES);
    if (!hlo_infer_has_each(q, HLO_ATTR_SLICE_SIZES, 1, w.operand->rank)) return NULL;
    for (uint32_t i = 0; i < sizes->count; i++) {
        bool gone = hlo_ints_contain(w.dropped, i) || hlo_ints_contain(w.batch, i);
        if (sizes->v[i] < 0 || (w.operand->dims[i] >= 0 && sizes->v[i] > w.operand->dims[i]) ||
            (gone && sizes->v[i] > 1))
            return hlo_infer_fail(q, "slice size %lld is invalid for %sdimension %u of size %lld",
                                  (long long)sizes->v[i], gone ? "collapsed " : "", i,
                                  (long long)w.operand->dims[i]);
    }
    uint32_t rank;
    int64_t *dims = windowed_dims(q, &w, sizes->v, &rank);
    return dims ? hlo_shape_array(q->module, w.operand->type, rank, dims) : NULL;
}

const hlo_shape *hlo_infer_SCATTER(const hlo_inference *q) {
    if (q->count % 2 == 0) return hlo_infer_fail(q, "requires an odd number of operands");
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    uint32_t count = q->count / 2;
    windows w = {.operand = hlo_infer_operand(q, 0),
                 .indices = hlo_infer_operand(q, count),
                 .window_dims = hlo_infer_ints(q, HLO_ATTR_UPDATE_WINDOW_DIMS),
                 .dropped = hlo_infer_ints(q, HLO_ATTR_INSERTED_WINDOW_DIMS),
                 .batch = hlo_infer_ints(q, HLO_ATTR_INPUT_BATCHING_DIMS),
                 .indices_batch = hlo_infer_ints(q, HLO_ATTR_SCATTER_INDICES_BATCHING_DIMS),
                 .map = hlo_infer_ints(q, HLO_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS),
                 .vector_dim = hlo_infer_int(q, HLO_ATTR_INDEX_VECTOR_DIM, 0)};
    if (!check_windows(q, &w)) return NULL;
    uint32_t rank;
    int64_t *dims = windowed_dims(q, &w, w.operand->dims, &rank);
    if (!dims) return NULL;
    hlo_type *types = hlo_infer_scratch(q, count, sizeof *types);
    const hlo_shape **results = hlo_infer_scratch(q, count, sizeof *results);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *updates = hlo_infer_operand(q, count + 1 + i);
        results[i] = hlo_infer_operand(q, i);
        types[i] = results[i]->type;
        if (!hlo_infer_dims_fit(results[i], w.operand))
            return hlo_infer_fail(q, "operands 0 and %u have different dimensions", i);
        if (updates->type != types[i])
            return hlo_infer_fail(q, "operand %u and its updates have different element types", i);
        /* `dims` are the dimensions of the updates if every window has its maximum size. */
        if (updates->rank != rank)
            return hlo_infer_fail(q, "the updates have rank %u, expected %u", updates->rank, rank);
        for (uint32_t d = 0; d < rank; d++) {
            const bool window = hlo_ints_contain(w.window_dims, d);
            if (window ? dims[d] >= 0 && updates->dims[d] > dims[d]
                       : !hlo_infer_dim_fits(updates->dims[d], dims[d]))
                return hlo_infer_fail(
                    q, "dimension %u of the updates has size %lld, expected %s%lld", d,
                    (long long)updates->dims[d], window ? "at most " : "", (long long)dims[d]);
        }
    }
    if (!hlo_infer_combiner(q, count, types)) return NULL;
    return hlo_infer_tuple(q, count, results);
}

/* Returns the given shape. Its sizes are upper bounds of the size operands. */
const hlo_shape *hlo_infer_DYNAMIC_RESHAPE(const hlo_inference *q) {
    const hlo_shape *given = hlo_infer_given(q);
    if (!given || !hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0);
    if (!hlo_shape_is_array(given)) return hlo_infer_fail(q, "the result is not an array");
    if (q->count != given->rank + 1)
        return hlo_infer_fail(q, "the result %s has %u dimensions, but there are %u size operands",
                              hlo_infer_text(q, given), given->rank, q->count - 1);
    for (uint32_t i = 1; i < q->count; i++)
        if (hlo_infer_operand(q, i)->rank || hlo_infer_operand(q, i)->type != HLO_TYPE_S32)
            return hlo_infer_fail_at(q, q->operands[i]->offset, "operand %u is %s, expected s32[]",
                                     i, hlo_infer_text(q, hlo_infer_operand(q, i)));
    int64_t has = hlo_shape_count(from), gives = hlo_shape_count(given);
    if (given->type != from->type || (has >= 0 && gives >= 0 && has != gives))
        return hlo_infer_fail(
            q, "the result %s must have the type and the number of elements of the operand",
            hlo_infer_text(q, given));
    return given;
}
