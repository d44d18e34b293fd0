/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of sort and topk, and of the TopK custom call. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/float/float.h"

enum { MAX_SORTED = 32 };

typedef struct sorting {
    const hlo_region *region;
    uint32_t arrays;
    char *row[MAX_SORTED];    /* start of each operand's row */
    int64_t step[MAX_SORTED]; /* distance of the elements in a row, in bytes */
} sorting;

static bool before(const void *sorted, int64_t i, int64_t j) {
    const sorting *s = sorted;
    static const int64_t steps[2 * MAX_SORTED] = {0};
    char *in[2 * MAX_SORTED];
    bool result = false;
    char *out[] = {(char *)&result};
    for (uint32_t a = 0; a < s->arrays; a++) {
        in[2 * a] = s->row[a] + i * s->step[a];
        in[2 * a + 1] = s->row[a] + j * s->step[a];
    }
    hlo_region_run(s->region, 1, in, steps, out, steps);
    return result;
}

typedef bool comes_before(const void *sorted, int64_t i, int64_t j);

/* Sorts bottom-up and stably. Returns the array that contains the sorted order: `order` or
 * `spare`. */
static int64_t *merge_sort(const void *s, comes_before *is_before, int64_t count, int64_t *order,
                           int64_t *spare) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t start = 0; start < count; start += 2 * width) {
            int64_t middle = start + width < count ? start + width : count;
            int64_t end = start + 2 * width < count ? start + 2 * width : count;
            int64_t i = start, j = middle;
            for (int64_t at = start; at < end; at++) {
                bool right = i == middle || (j < end && is_before(s, order[j], order[i]));
                spare[at] = right ? order[j++] : order[i++];
            }
        }
        int64_t *swap = order;
        order = spare;
        spare = swap;
    }
    return order;
}

static const char *refuse_many(const hlo_instruction *instr) {
    return instr->operand_count > MAX_SORTED ? "it has more than 32 operands" : NULL;
}

static hlo_status run_sort(hlo_call *call) {
    const hlo_view *in = call->operands, *out = call->results;
    int64_t dim = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS)->v[0];
    sorting s = {hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY)),
                 call->operand_count,
                 {0},
                 {0}};
    if (!s.region) return HLO_INVALID_INPUT;
    int64_t length = in->dims[dim];
    int64_t *order = hlo_arena_array(call->scratch, (size_t)length, sizeof *order);
    int64_t *spare = hlo_arena_array(call->scratch, (size_t)length, sizeof *spare);
    if (hlo_view_count(in) == 0) return HLO_OK;
    hlo_dims rows, index = {0};
    memcpy(rows.v, in->dims, in->rank * sizeof rows.v[0]);
    rows.v[dim] = 1;
    do {
        for (uint32_t a = 0; a < s.arrays; a++) {
            s.row[a] = hlo_view_element(&in[a], index.v);
            s.step[a] = in[a].strides[dim] * hlo_types[in[a].type].bytes;
        }
        const int64_t *sorted = merge_sort(&s, before, length, order, spare);
        for (uint32_t a = 0; a < s.arrays; a++) {
            const int64_t size = hlo_types[in[a].type].bytes;
            char *to = hlo_view_element(&out[a], index.v);
            for (int64_t i = 0; i < length; i++)
                memcpy(to + i * out[a].strides[dim] * size, s.row[a] + sorted[i] * s.step[a],
                       (size_t)size);
        }
    } while (hlo_dims_next(in->rank, rows.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_sort = {.run = run_sort, .error = HLO_ERROR_SORT, .refuse = refuse_many};

/* Maps a float to an integer that follows the total order: -NaN, then the numbers with -0 before 0,
 * then NaN. */
static int64_t float_key(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

static bool is_greater(const void *keys, int64_t i, int64_t j) {
    return ((const int64_t *)keys)[i] > ((const int64_t *)keys)[j];
}

/* Finds the largest elements along the last dimension, and their positions. Equal elements keep
 * their order. */
static hlo_status run_topk(hlo_call *call) {
    const hlo_view *in = call->operands, *values = &call->results[0], *places = &call->results[1];
    hlo_lane lane = hlo_lane_of(in->type);
    if (lane == HLO_LANE_C128 || lane == HLO_LANE_NONE)
        return hlo_call_refuse(call, "complex values cannot be ordered");
    uint32_t last = in->rank - 1;
    int64_t length = in->dims[last], k = values->dims[last];
    int64_t size = hlo_types[in->type].bytes, step = in->strides[last] * size;
    const bool largest = hlo_instr_int(call->instr, HLO_ATTR_LARGEST, true);
    int64_t *keys = hlo_arena_array(call->scratch, (size_t)length, sizeof *keys);
    int64_t *order = hlo_arena_array(call->scratch, (size_t)length, sizeof *order);
    int64_t *spare = hlo_arena_array(call->scratch, (size_t)length, sizeof *spare);
    if (hlo_view_count(values) == 0) return HLO_OK;
    hlo_dims rows, index = {0};
    memcpy(rows.v, in->dims, in->rank * sizeof rows.v[0]);
    rows.v[last] = 1;
    do {
        const char *row = hlo_view_element(in, index.v);
        for (int64_t at = 0; at < length; at += HLO_CHUNK) {
            int64_t n = hlo_chunk_size(length - at);
            hlo_chunk chunk;
            hlo_lane_load(in->type, row + at * step, step, n, &chunk);
            for (int64_t i = 0; i < n; i++) {
                const int64_t key = lane == HLO_LANE_F32   ? float_key((double)chunk.f32[i])
                                    : lane == HLO_LANE_F64 ? float_key(chunk.f64[i])
                                    : lane == HLO_LANE_U64
                                        ? (int64_t)(chunk.u64[i] ^ UINT64_C(1) << 63)
                                        : chunk.s64[i];
                keys[at + i] = largest ? key : ~key;
            }
        }
        const int64_t *sorted = merge_sort(keys, is_greater, length, order, spare);
        hlo_dims to = index;
        for (int64_t i = 0; i < k; i++) {
            to.v[last] = i;
            memcpy(hlo_view_element(values, to.v), row + sorted[i] * step, (size_t)size);
            hlo_number_store(places->type, hlo_view_element(places, to.v), (double)sorted[i]);
        }
    } while (hlo_dims_next(in->rank, rows.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_topk = {.run = run_topk, .error = HLO_ERROR_TOPK};

/* Returns why a custom call is not XLA's TopK; NULL if it is. TopK returns the largest elements,
 * regardless of the computation that it calls. */
static const char *topk_refusal(const hlo_instruction *call) {
    const hlo_shape *to = call->shape;
    if (!hlo_is_custom_call(call, "TopK") && !hlo_is_custom_call(call, "__gpu$TopK"))
        return "unknown custom call target. docs/cpu.md lists the custom calls that run";
    if (call->operand_count != 1 || to->type != HLO_TYPE_TUPLE || to->rank != 2)
        return "operands or results do not match those of XLA's TopK";
    const hlo_shape *from = hlo_instr_operand(call, 0)->shape, *values = to->elements[0];
    if (values->type != from->type || to->elements[1]->type != HLO_TYPE_S32 || from->rank == 0 ||
        values->rank != from->rank || !hlo_shape_same_dims(values, to->elements[1]) ||
        values->dims[from->rank - 1] > from->dims[from->rank - 1])
        return "operands or results do not match those of XLA's TopK";
    for (uint32_t d = 0; d + 1 < from->rank; d++)
        if (values->dims[d] != from->dims[d])
            return "operands or results do not match those of XLA's TopK";
    return NULL;
}
const hlo_kernel hlo_eval_custom_call = {
    .run = run_topk, .error = HLO_ERROR_TOPK, .refuse = topk_refusal};
