/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of sort and topk, and of the TopK custom call. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/float/float.h"

enum { MAX_SORTED = 32 };

/* Two sorted runs, at [i, middle) and [j, end), that are merged at `at`. */
typedef struct merge {
    int64_t i, middle, j, end, at;
} merge;

typedef struct sorting sorting;
/* Sets out[m] to whether element open[m].j comes before element open[m].i, for `count` merges, at
 * most HLO_CHUNK. */
typedef void compare_heads(const sorting *s, int64_t count, const merge *open, bool *out);

/* Arrays that are sorted together. */
struct sorting {
    compare_heads *compare;
    uint32_t arrays;
    size_t size[MAX_SORTED];                 /* size of an element in bytes */
    char *from[MAX_SORTED], *to[MAX_SORTED]; /* the elements; memory for as many */
    const hlo_region *region;                /* for compare_by_region() */
    char *heads[2 * MAX_SORTED];             /* HLO_CHUNK elements for each parameter of `region` */
};

static void add_array(sorting *s, hlo_arena *scratch, size_t size, int64_t length) {
    s->size[s->arrays] = size;
    s->from[s->arrays] = hlo_arena_array(scratch, (size_t)length, size);
    s->to[s->arrays++] = hlo_arena_array(scratch, (size_t)length, size);
}

static inline void copy_element(char *to, const char *from, size_t size) {
    switch (size) { /* known sizes, so that no function is called */
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    case 16: memcpy(to, from, 16); break;
    default: memcpy(to, from, size); break;
    }
}

static void compare_by_region(const sorting *s, int64_t count, const merge *open, bool *out) {
    int64_t steps[2 * MAX_SORTED];
    for (uint32_t a = 0; a < s->arrays; a++) {
        const size_t size = s->size[a];
        steps[2 * a] = steps[2 * a + 1] = (int64_t)size;
        for (int64_t m = 0; m < count; m++) {
            copy_element(s->heads[2 * a] + (size_t)m * size, s->from[a] + (size_t)open[m].j * size,
                         size);
            copy_element(s->heads[2 * a + 1] + (size_t)m * size,
                         s->from[a] + (size_t)open[m].i * size, size);
        }
    }
    hlo_region_run(s->region, count, s->heads, steps, (char *[]){(char *)out}, (int64_t[]){1});
}

static void copy_elements(const sorting *s, int64_t from, int64_t count, int64_t to) {
    for (uint32_t a = 0; a < s->arrays; a++)
        memcpy(s->to[a] + (size_t)to * s->size[a], s->from[a] + (size_t)from * s->size[a],
               (size_t)count * s->size[a]);
}

/* Moves the smaller head of a merge. Returns false at the end of the merge: if one run is at its
 * end, the rest of the other one is moved, too. */
static inline bool advance(const sorting *s, merge *o, bool takes_right) {
    const int64_t next = takes_right ? o->j++ : o->i++;
    for (uint32_t a = 0; a < s->arrays; a++)
        copy_element(s->to[a] + (size_t)o->at * s->size[a], s->from[a] + (size_t)next * s->size[a],
                     s->size[a]);
    o->at++;
    if (o->i < o->middle && o->j < o->end) return true;
    copy_elements(s, o->i < o->middle ? o->i : o->j, o->end - o->at, o->at);
    return false;
}

/* Sorts s->from bottom-up and stably. Moves the elements, so that memory is read in order. Merges
 * many pairs of runs at a time, because a region compares many elements almost as fast as one. */
static void merge_sort(hlo_call *call, sorting *s, int64_t count) {
    merge open[HLO_CHUNK];
    bool takes_right[HLO_CHUNK];
    for (int64_t width = 1; width < count; width *= 2) {
        int64_t start = 0, opened = 0;
        while (opened || start < count) {
            for (; opened < HLO_CHUNK && start < count; start += 2 * width) {
                const int64_t middle = start + width < count ? start + width : count;
                const int64_t end = middle + width < count ? middle + width : count;
                if (middle < end)
                    open[opened++] = (merge){start, middle, middle, end, start};
                else
                    copy_elements(s, start, end - start, start);
            }
            if (opened) s->compare(s, opened, open, takes_right);
            if (!hlo_call_goes_on(call, opened)) return;
            for (int64_t m = opened; m-- > 0;)
                if (!advance(s, &open[m], takes_right[m])) open[m] = open[--opened];
        }
        for (uint32_t a = 0; a < s->arrays; a++) {
            char *swap = s->from[a];
            s->from[a] = s->to[a];
            s->to[a] = swap;
        }
    }
}

static const char *refuse_many(const hlo_instruction *instr) {
    return instr->operand_count > MAX_SORTED ? "it has more than 32 operands" : NULL;
}

static hlo_status run_sort(hlo_call *call) {
    const hlo_view *in = call->operands, *out = call->results;
    const int64_t dim = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS)->v[0];
    const int64_t length = in->dims[dim];
    sorting s = {.compare = compare_by_region,
                 .region = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY))};
    if (!s.region) return HLO_INVALID_INPUT;
    if (hlo_view_count(in) == 0) return HLO_OK;
    for (uint32_t a = 0; a < call->operand_count; a++) {
        const size_t size = hlo_types[in[a].type].bytes;
        add_array(&s, call->scratch, size, length);
        s.heads[2 * a] = hlo_arena_array(call->scratch, HLO_CHUNK, size);
        s.heads[2 * a + 1] = hlo_arena_array(call->scratch, HLO_CHUNK, size);
    }
    hlo_dims rows, index = {0};
    memcpy(rows.v, in->dims, in->rank * sizeof rows.v[0]);
    rows.v[dim] = 1;
    do {
        for (uint32_t a = 0; a < s.arrays; a++) {
            const int64_t size = (int64_t)s.size[a];
            hlo_copy_row(s.size[a], hlo_view_element(&in[a], index.v), in[a].strides[dim] * size,
                         length, s.from[a], size);
        }
        merge_sort(call, &s, length);
        for (uint32_t a = 0; a < s.arrays; a++) {
            const int64_t size = (int64_t)s.size[a];
            hlo_copy_row(s.size[a], s.from[a], size, length, hlo_view_element(&out[a], index.v),
                         out[a].strides[dim] * size);
        }
    } while (hlo_call_goes_on(call, length) && hlo_dims_next(in->rank, rows.v, index.v));
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

/* An element of topk: its key, and its position along the sorted dimension. */
typedef struct keyed {
    int64_t key, position;
} keyed;

static void compare_keys(const sorting *s, int64_t count, const merge *open, bool *out) {
    const keyed *v = (const keyed *)(const void *)s->from[0];
    for (int64_t m = 0; m < count; m++) out[m] = v[open[m].j].key > v[open[m].i].key;
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
    if (hlo_view_count(values) == 0) return HLO_OK;
    sorting s = {.compare = compare_keys};
    add_array(&s, call->scratch, sizeof(keyed), length);
    hlo_dims rows, index = {0};
    memcpy(rows.v, in->dims, in->rank * sizeof rows.v[0]);
    rows.v[last] = 1;
    do {
        const char *row = hlo_view_element(in, index.v);
        keyed *v = (keyed *)(void *)s.from[0];
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
                v[at + i] = (keyed){largest ? key : ~key, at + i};
            }
        }
        merge_sort(call, &s, length);
        v = (keyed *)(void *)s.from[0];
        hlo_dims to = index;
        for (int64_t i = 0; i < k; i++) {
            to.v[last] = i;
            memcpy(hlo_view_element(values, to.v), row + v[i].position * step, (size_t)size);
            hlo_number_store(places->type, hlo_view_element(places, to.v), (double)v[i].position);
        }
    } while (hlo_call_goes_on(call, length) && hlo_dims_next(in->rank, rows.v, index.v));
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
