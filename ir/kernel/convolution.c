/* SPDX-License-Identifier: Apache-2.0 */
/* Reads windows, finds the elements that they read, and computes convolutions as matrix products.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel.h"

/* Returns number `index` of a window attribute such as 2x3 or 1_0x2_1. */
static int64_t number_at(const hlo_attr *window, hlo_attr_id id, uint32_t index, int64_t missing) {
    const hlo_attr *word = hlo_window_word(window, id);
    return word && index < word->u.ints->count ? word->u.ints->v[index] : missing;
}

hlo_window hlo_window_of(const hlo_instruction *instr, uint32_t dim) {
    const hlo_attr *window = hlo_instr_attr(instr, HLO_ATTR_WINDOW);
    const char *kind = hlo_instr_str(instr, HLO_ATTR_CONVOLUTION_KIND);
    const bool reversed = number_at(window, HLO_ATTR_RHS_REVERSAL, dim, 0) != 0;
    return (hlo_window){.size = number_at(window, HLO_ATTR_SIZE, dim, 1),
                        .stride = number_at(window, HLO_ATTR_STRIDE, dim, 1),
                        .low = number_at(window, HLO_ATTR_PAD, 2 * dim, 0),
                        .high = number_at(window, HLO_ATTR_PAD, 2 * dim + 1, 0),
                        .base = number_at(window, HLO_ATTR_LHS_DILATE, dim, 1),
                        .dilate = number_at(window, HLO_ATTR_RHS_DILATE, dim, 1),
                        .reversed = reversed != (kind && strcmp(kind, "dgrad") == 0)};
}

/* Returns the quotient, rounded up, or 0 if it is negative. `by` must be positive. */
static int64_t quotient_up(int64_t value, int64_t by) {
    return value > 0 ? (value - 1) / by + 1 : 0;
}

hlo_window_reads hlo_window_reads_of(const hlo_window *w, int64_t at, int64_t in_dim,
                                     int64_t out_dim) {
    int64_t a = w->stride, b = w->base;
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    const int64_t common = a;
    hlo_window_reads s = {.out_step = w->base / common, .in_step = w->stride / common};
    int64_t shift = at * w->dilate - w->low;
    /* The remainders of positions modulo the dilation repeat after out_step results. */
    const int64_t first = quotient_up(-shift, w->stride);
    s.out = first;
    while (s.out < out_dim && s.out - first < s.out_step &&
           (s.out * w->stride + shift) % w->base != 0)
        s.out++;
    if (s.out >= out_dim || s.out - first >= s.out_step) return s;
    s.in = (s.out * w->stride + shift) / w->base;
    if (s.in >= in_dim) return s;
    int64_t by_out = (out_dim - 1 - s.out) / s.out_step + 1;
    int64_t by_in = s.in_step ? (in_dim - 1 - s.in) / s.in_step + 1 : by_out;
    s.count = by_out < by_in ? by_out : by_in;
    return s;
}

hlo_window_positions hlo_window_positions_of(const hlo_window *w, int64_t in_dim, int64_t out_dim,
                                             hlo_arena *arena) {
    hlo_window_positions p = {.count = 0};
    if (in_dim < 1 || out_dim < 1) return p;
    const int64_t first = quotient_up(w->low - (out_dim - 1) * w->stride, w->dilate);
    const int64_t end = w->low + (in_dim - 1) * w->base;
    const int64_t last = end / w->dilate < w->size ? end / w->dilate : w->size - 1;
    if (end < 0 || last < first) return p;
    const int64_t most = in_dim * out_dim, span = last - first + 1;
    int64_t *v = hlo_arena_array(arena, (size_t)(span < most ? span : most), sizeof *v);
    p.v = v;
    if (span > most) {
        /* List the positions at which a result reads an element, in ascending order. */
        uint64_t count = 0, kept = 0;
        for (int64_t o = 0; o < out_dim; o++)
            for (int64_t i = 0; i < in_dim; i++) {
                const int64_t place = w->low + i * w->base - o * w->stride;
                if (place >= 0 && place % w->dilate == 0 && place / w->dilate < w->size)
                    v[count++] = place / w->dilate;
            }
        qsort(v, count, sizeof *v, hlo_compare_ints);
        for (uint64_t i = 0; i < count; i++)
            if (!i || v[i] != v[i - 1]) v[kept++] = v[i];
        p.count = (int64_t)kept;
        return p;
    }
    for (int64_t at = first; at <= last; at++)
        if (hlo_window_reads_of(w, at, in_dim, out_dim).count) v[p.count++] = at;
    return p;
}

static const hlo_ints *counted(hlo_arena *arena, uint32_t first, uint32_t count) {
    hlo_ints *list = hlo_ints_in(arena, count, NULL);
    for (uint32_t i = 0; i < count; i++) list->v[i] = first + i;
    return list;
}

const char *hlo_convolution_read(const hlo_call *call, hlo_convolution *out) {
    const hlo_instruction *instr = call->instr;
    const uint32_t rank = hlo_instr_operand(instr, 0)->shape->rank;
    const char *labels = hlo_instr_str(instr, HLO_ATTR_DIM_LABELS);
    if (2 * rank > HLO_EVAL_MAX_RANK) return "a convolution has too many dimensions";
    if (hlo_instr_attr(instr, HLO_ATTR_SPARSITY_CONFIG))
        return "sparse convolutions are not supported";
    int64_t *dims = hlo_arena_array(call->scratch, (size_t)rank * 3, sizeof *dims);
    if (!labels || !hlo_dim_labels_read(labels, rank, dims))
        return "a convolution without dim_labels is not supported";
    const uint32_t spatial = rank - 2;
    const int64_t features = hlo_instr_int(instr, HLO_ATTR_FEATURE_GROUP_COUNT, 1),
                  batches = hlo_instr_int(instr, HLO_ATTR_BATCH_GROUP_COUNT, 1);
    if (features > 1 && batches > 1)
        return "a convolution with both feature groups and batch groups is not supported";
    hlo_arena *arena = call->scratch;
    *out =
        (hlo_convolution){.instr = instr,
                          .spatial = spatial,
                          .groups = batches > 1 ? batches : features,
                          .batches = batches > 1,
                          .in = dims,
                          .kernel = dims + rank,
                          .out = dims + 2 * (size_t)rank,
                          .dims = {counted(arena, 0, 1), counted(arena, 2 + spatial, spatial + 1),
                                   counted(arena, 0, 1), counted(arena, 1, spatial + 1)}};
    return NULL;
}

typedef struct maker {
    hlo_view view;
    int64_t *dims, *strides;
} maker;

static void add(maker *m, int64_t dim, int64_t stride) {
    m->dims[m->view.rank] = dim;
    m->strides[m->view.rank++] = stride;
}

static maker begin(const hlo_view *of, hlo_dims *dims, hlo_dims *strides) {
    return (maker){{of->type, 0, dims->v, strides->v, of->data}, dims->v, strides->v};
}

/* Views an array with batches and features as [group, batch, spatial.., features]. */
static hlo_view grouped(const hlo_convolution *c, const hlo_view *of, const int64_t *named,
                        bool batches, hlo_dims *dims, hlo_dims *strides) {
    maker m = begin(of, dims, strides);
    const int64_t batch = of->dims[named[0]] / (batches ? c->groups : 1),
                  each = of->dims[named[1]] / (batches ? 1 : c->groups);
    add(&m, c->groups, batches ? batch * of->strides[named[0]] : each * of->strides[named[1]]);
    add(&m, batch, of->strides[named[0]]);
    for (uint32_t i = 0; i < c->spatial; i++)
        add(&m, of->dims[named[2 + i]], of->strides[named[2 + i]]);
    add(&m, each, of->strides[named[1]]);
    return m.view;
}

hlo_view hlo_convolution_result(const hlo_convolution *c, const hlo_view *result, hlo_dims *dims,
                                hlo_dims *strides) {
    return grouped(c, result, c->out, false, dims, strides);
}

hlo_view hlo_convolution_rhs(const hlo_convolution *c, const hlo_view *kernel, hlo_dims *dims,
                             hlo_dims *strides) {
    maker m = begin(kernel, dims, strides);
    int64_t offset = 0;
    const int64_t each = kernel->dims[c->kernel[1]] / c->groups,
                  out = kernel->strides[c->kernel[1]];
    add(&m, c->groups, each * out);
    for (uint32_t i = 0; i < c->spatial; i++) {
        const int64_t size = kernel->dims[c->kernel[2 + i]], by = kernel->strides[c->kernel[2 + i]];
        const bool reversed = hlo_window_of(c->instr, i).reversed;
        if (reversed) offset += (size - 1) * by;
        add(&m, size, reversed ? -by : by);
    }
    add(&m, kernel->dims[c->kernel[0]], kernel->strides[c->kernel[0]]);
    add(&m, each, out);
    m.view.data = hlo_view_at(kernel, offset);
    return m.view;
}

hlo_view hlo_convolution_lhs(const hlo_convolution *c, const hlo_call *call, const hlo_view *in) {
    hlo_dims in_dims, in_strides, dims = {0}, strides, sizes, index = {0};
    const hlo_view from = grouped(c, in, c->in, c->batches, &in_dims, &in_strides);
    const hlo_shape *result = call->instr->shape;
    hlo_window windows[HLO_EVAL_MAX_RANK];
    uint32_t rank = 0;
    dims.v[rank++] = c->groups;
    dims.v[rank++] = from.dims[1];
    for (uint32_t i = 0; i < c->spatial; i++) dims.v[rank++] = result->dims[c->out[2 + i]];
    for (uint32_t i = 0; i < c->spatial; i++) {
        windows[i] = hlo_window_of(call->instr, i);
        dims.v[rank++] = sizes.v[i] = windows[i].size;
    }
    dims.v[rank++] = from.dims[from.rank - 1];
    const hlo_view like = {
        in->type, rank, hlo_arena_copy(call->scratch, dims.v, rank * sizeof *dims.v), NULL, NULL};
    const hlo_view all = hlo_view_scratch(call->scratch, in->type, &like);
    if (!hlo_view_count(&all)) return all;
    memset(all.data, 0, hlo_view_bytes(&all));
    if (!hlo_view_count(&from)) return all;
    do {
        hlo_dims start = {0}, steps, part, part_strides, to_start = {0}, to_steps, to_strides;
        maker to = begin(&all, &dims, &strides);
        for (uint32_t d = 0; d < from.rank; d++) {
            hlo_window_reads reads = {.out_step = 1, .in_step = 1, .count = from.dims[d]};
            if (d >= 2 && d < 2 + c->spatial)
                reads =
                    hlo_window_reads_of(&windows[d - 2], index.v[d - 2], from.dims[d], all.dims[d]);
            start.v[d] = reads.in, steps.v[d] = reads.in_step, part.v[d] = reads.count;
            to_start.v[d] = reads.out, to_steps.v[d] = reads.out_step;
            const uint32_t at = d + 1 < from.rank ? d : all.rank - 1;
            add(&to, all.dims[at], all.strides[at]);
        }
        int64_t offset = 0;
        for (uint32_t i = 0; i < c->spatial; i++)
            offset += index.v[i] * all.strides[2 + c->spatial + i];
        to.view.data = hlo_view_at(&all, offset);
        const hlo_view x = hlo_view_part(&from, start.v, part.v, steps.v, &part_strides),
                       y = hlo_view_part(&to.view, to_start.v, part.v, to_steps.v, &to_strides);
        hlo_view_copy(call->env, &x, &y);
    } while (hlo_dims_next(c->spatial, sizes.v, index.v));
    return all;
}

static hlo_status run_convolution(hlo_call *call) {
    hlo_convolution c;
    call->why = hlo_convolution_read(call, &c);
    if (call->why) return HLO_INVALID_INPUT;
    hlo_dims dims[2], strides[2];
    const hlo_view lhs = hlo_convolution_lhs(&c, call, &call->operands[0]),
                   rhs = hlo_convolution_rhs(&c, &call->operands[1], &dims[0], &strides[0]),
                   result = hlo_convolution_result(&c, call->results, &dims[1], &strides[1]);
    return hlo_eval_dot_views(call->env, c.dims, &lhs, &rhs, &result, call->scratch, &call->why);
}
const hlo_kernel hlo_eval_convolution = {.run = run_convolution, .error = HLO_ERROR_CONVOLUTION};
