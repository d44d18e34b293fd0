/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of gather and scatter. */
#include <string.h>

#include "ir/eval/apply.h"

/* Dimension numbers of gather and scatter with common names. The wide array is gather's operand and
 * scatter's result; the narrow one is gather's result and scatter's updates. */
typedef struct numbers {
    const hlo_ints *window;           /* dimensions of the narrow array that index elements of a
                                       * window */
    const hlo_ints *dropped;          /* dimensions of the wide array that are not in windows */
    const hlo_ints *batching;         /* batching dimensions of the wide array, each paired with */
    const hlo_ints *indices_batching; /* this dimension of the indices */
    const hlo_ints *map;              /* dimension of the wide array that each index addresses */
    int64_t vector;                   /* dimension of the indices that contains an index vector */
} numbers;

/* The windows of a gather or scatter, one for each index vector. */
typedef struct places {
    numbers n;
    const hlo_view *wide, *narrow, *indices;
    uint32_t rank, window_rank;
    int64_t dims[HLO_EVAL_MAX_RANK];       /* dimensions of the array of windows */
    int64_t narrow_dim[HLO_EVAL_MAX_RANK]; /* dimension of the narrow array for each of `dims` */
    int64_t index_dim[HLO_EVAL_MAX_RANK];  /* dimension of the indices for each of `dims` */
    hlo_dims window; /* sizes of the window's dimensions in the narrow array */
    hlo_dims wide_strides, narrow_strides; /* strides of the window's dimensions */
    int64_t sizes[HLO_EVAL_MAX_RANK]; /* size of a window, in every dimension of the wide array */
} places;

/* Fills `p`. `sizes` NULL: windows have the sizes of the updates. */
static void places_init(places *p, const int64_t *sizes) {
    p->rank = p->window_rank = 0;
    for (uint32_t d = 0, w = 0; d < p->wide->rank; d++) {
        bool kept = !hlo_ints_contain(p->n.dropped, d) && !hlo_ints_contain(p->n.batching, d);
        p->sizes[d] = sizes ? sizes[d] : kept ? p->narrow->dims[p->n.window->v[w]] : 1;
        if (!kept) continue;
        p->window.v[w] = p->sizes[d];
        p->wide_strides.v[w] = p->wide->strides[d];
        p->narrow_strides.v[w] = p->narrow->strides[p->n.window->v[w]];
        p->window_rank = ++w;
    }
    for (uint32_t d = 0, i = 0; d < p->narrow->rank; d++) {
        if (hlo_ints_contain(p->n.window, d)) continue;
        if (i == p->n.vector) i++;
        p->narrow_dim[p->rank] = d;
        p->index_dim[p->rank] = i++;
        p->dims[p->rank++] = p->narrow->dims[d];
    }
}

/* Computes the start of window `index` in the wide array, without clamping, and in the narrow
 * array. */
static void place_start(const places *p, const int64_t *index, hlo_dims *out_wide,
                        int64_t *out_narrow_offset) {
    int64_t in_indices = 0, in_narrow = 0;
    memset(out_wide, 0, sizeof *out_wide);
    for (uint32_t i = 0; i < p->rank; i++) {
        in_indices += index[i] * p->indices->strides[p->index_dim[i]];
        in_narrow += index[i] * p->narrow->strides[p->narrow_dim[i]];
        for (uint32_t b = 0; b < p->n.batching->count; b++)
            if (p->n.indices_batching->v[b] == p->index_dim[i])
                out_wide->v[p->n.batching->v[b]] = index[i];
    }
    bool vector = p->n.vector < p->indices->rank;
    for (uint32_t k = 0; k < p->n.map->count; k++) {
        int64_t step = vector ? p->indices->strides[p->n.vector] : 0;
        out_wide->v[p->n.map->v[k]] = hlo_view_integer(p->indices, in_indices + k * step);
    }
    *out_narrow_offset = in_narrow;
}

/* Returns the number of elements of a window. */
static int64_t window_size(const places *p) {
    return hlo_view_count(&(hlo_view){.rank = p->window_rank, .dims = p->window.v});
}

static hlo_status run_gather(hlo_call *call) {
    const hlo_instruction *i = call->instr;
    places p = {.n = {.window = hlo_instr_ints(i, HLO_ATTR_OFFSET_DIMS),
                      .dropped = hlo_instr_ints(i, HLO_ATTR_COLLAPSED_SLICE_DIMS),
                      .batching = hlo_instr_ints(i, HLO_ATTR_OPERAND_BATCHING_DIMS),
                      .indices_batching = hlo_instr_ints(i, HLO_ATTR_START_INDICES_BATCHING_DIMS),
                      .map = hlo_instr_ints(i, HLO_ATTR_START_INDEX_MAP),
                      .vector = hlo_instr_int(i, HLO_ATTR_INDEX_VECTOR_DIM, 0)},
                .wide = &call->operands[0],
                .narrow = &call->results[0],
                .indices = &call->operands[1]};
    places_init(&p, hlo_instr_ints(i, HLO_ATTR_SLICE_SIZES)->v);
    if (hlo_view_count(p.narrow) == 0) return HLO_OK;
    const int64_t size = window_size(&p);
    hlo_dims index = {0}, start;
    do {
        int64_t offset;
        place_start(&p, index.v, &start, &offset);
        for (uint32_t d = 0; d < p.wide->rank; d++) {
            const int64_t at = start.v[d], most = p.wide->dims[d] - p.sizes[d];
            start.v[d] = at < 0 ? 0 : at > most ? most : at;
        }
        hlo_view from = {p.wide->type, p.window_rank, p.window.v, p.wide_strides.v,
                         hlo_view_element(p.wide, start.v)};
        hlo_view to = {p.narrow->type, p.window_rank, p.window.v, p.narrow_strides.v,
                       hlo_view_at(p.narrow, offset)};
        hlo_view_copy(call->env, &from, &to);
    } while (hlo_call_goes_on(call, size) && hlo_dims_next(p.rank, p.dims, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_gather = {.run = run_gather, .error = HLO_ERROR_INDEXED};

static bool fits(const places *p, const hlo_dims *start) {
    for (uint32_t d = 0; d < p->wide->rank; d++)
        if (start->v[d] < 0 || start->v[d] > p->wide->dims[d] - p->sizes[d]) return false;
    return true;
}

enum { MAX_ARRAYS = HLO_LOOP_VIEWS / 2 };

static const char *refuse_many(const hlo_instruction *instr) {
    return instr->operand_count / 2 > MAX_ARRAYS ? "it has more than 8 arrays" : NULL;
}

/* Runs a scatter. Windows out of bounds are dropped. */
static hlo_status run_scatter(hlo_call *call) {
    const hlo_instruction *i = call->instr;
    uint32_t arrays = call->operand_count / 2;
    hlo_computation *computation = hlo_instr_comp(i, HLO_ATTR_TO_APPLY);
    hlo_op simple = arrays == 1 ? hlo_region_simple(computation) : HLO_OP_INVALID;
    bool assigns = simple == HLO_OP_PARAMETER;
    bool binary = simple != HLO_OP_INVALID && hlo_kernel_elementwise(computation->root);
    const hlo_region *region = assigns || binary ? NULL : hlo_region_new(call, computation);
    if (!assigns && !binary && !region) return HLO_INVALID_INPUT;
    for (uint32_t a = 0; a < arrays; a++)
        if (call->operands[a].data != call->results[a].data)
            hlo_view_copy(call->env, &call->operands[a], &call->results[a]);
    places p[MAX_ARRAYS];
    for (uint32_t a = 0; a < arrays; a++) {
        p[a] = (places){
            .n = {.window = hlo_instr_ints(i, HLO_ATTR_UPDATE_WINDOW_DIMS),
                  .dropped = hlo_instr_ints(i, HLO_ATTR_INSERTED_WINDOW_DIMS),
                  .batching = hlo_instr_ints(i, HLO_ATTR_INPUT_BATCHING_DIMS),
                  .indices_batching = hlo_instr_ints(i, HLO_ATTR_SCATTER_INDICES_BATCHING_DIMS),
                  .map = hlo_instr_ints(i, HLO_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS),
                  .vector = hlo_instr_int(i, HLO_ATTR_INDEX_VECTOR_DIM, 0)},
            .wide = &call->results[a],
            .narrow = &call->operands[arrays + 1 + a],
            .indices = &call->operands[arrays]};
        places_init(&p[a], NULL);
    }
    if (hlo_view_count(p->narrow) == 0) return HLO_OK;
    const int64_t size = window_size(p);
    hlo_dims index = {0}, start;
    do {
        hlo_view views[HLO_LOOP_VIEWS];
        for (uint32_t a = 0; a < arrays; a++) {
            int64_t offset;
            place_start(&p[a], index.v, &start, &offset);
            if (!fits(&p[a], &start)) break;
            views[a] = (hlo_view){p[a].wide->type, p[a].window_rank, p[a].window.v,
                                  p[a].wide_strides.v, hlo_view_element(p[a].wide, start.v)};
            views[arrays + a] = (hlo_view){p[a].narrow->type, p[a].window_rank, p[a].window.v,
                                           p[a].narrow_strides.v, hlo_view_at(p[a].narrow, offset)};
        }
        if (!fits(p, &start)) continue;
        if (assigns) {
            hlo_view_copy(call->env, &views[1], &views[0]);
            continue;
        }
        if (binary) {
            hlo_call one = *call;
            one.instr = computation->root;
            one.operands = views;
            one.results = views;
            if (hlo_elementwise_run(&one) != HLO_OK) return hlo_call_refuse(call, one.why);
            continue;
        }
        hlo_region_apply(region, arrays, views, views + arrays);
    } while (hlo_call_goes_on(call, size) && hlo_dims_next(p->rank, p->dims, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_scatter = {
    .run = run_scatter, .error = HLO_ERROR_SCATTER, .refuse = refuse_many};
