/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of opcodes that move elements by an index map. They use views and copies. */

#include "ir/kernel/kernel.h"
#include "ir/module/index_map.h"

static hlo_status run_reshape(hlo_call *call) {
    hlo_view_reshape(call, &call->operands[0], &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_reshape = {.run = run_reshape, .error = HLO_ERROR_MOVE};

static hlo_view physical(const hlo_view *view, const hlo_shape *shape, hlo_dims *dims,
                         hlo_dims *strides) {
    hlo_dims order;
    bool ordered = shape->layout && hlo_shape_is_ordered(shape);
    for (uint32_t d = 0; d < view->rank; d++)
        order.v[d] = ordered ? shape->layout->minor_to_major[view->rank - 1 - d] : d;
    return hlo_view_permute(view, order.v, dims, strides);
}

/* Copies bytes in memory order, by the layouts of both shapes. */
static hlo_status run_bitcast(hlo_call *call) {
    hlo_dims dims[2], strides[2];
    const hlo_shape *shape = hlo_instr_operand(call->instr, 0)->shape;
    hlo_view in = physical(&call->operands[0], shape, &dims[0], &strides[0]);
    hlo_view out = physical(&call->results[0], call->instr->shape, &dims[1], &strides[1]);
    if (hlo_types[in.type].bits != hlo_types[out.type].bits)
        return hlo_call_refuse(call, "a bitcast to elements of a different width is not supported");
    hlo_view_reshape(call, &in, &out);
    hlo_view_retype(&out, in.type);
    return HLO_OK;
}
const hlo_kernel hlo_eval_bitcast = {.run = run_bitcast, .error = HLO_ERROR_MOVE};

/* Returns the number that is added to x->start: an element of operand x->at, clamped, or 0. */
static int64_t added_start(const hlo_call *call, const hlo_index *x) {
    if (!x->at) return 0;
    const hlo_view *from = &call->operands[x->at];
    const int64_t at = hlo_view_integer(from, from->rank ? x->element * from->strides[0] : 0);
    return at < 0 ? 0 : at > x->last ? x->last : at;
}

static hlo_status run_part(hlo_call *call) {
    const hlo_view *in = &call->operands[0], *out = &call->results[0];
    hlo_dims start, strides = {0};
    hlo_index_map map;
    hlo_index x;
    if (!hlo_view_count(out)) return HLO_OK; /* the strides of an empty array may overflow */
    hlo_index_map_first(call->instr, &map);
    for (uint32_t d = 0; d < in->rank; d++) {
        hlo_index_along(&map, d, &x);
        start.v[d] = x.start + added_start(call, &x);
        if (in->dims[d] != 1 && out->dims[x.of] != 1) strides.v[x.of] = x.stride * in->strides[d];
    }
    hlo_view part = {in->type, out->rank, out->dims, strides.v, in->data};
    part.data = hlo_view_element(in, start.v);
    hlo_view_copy(call->env, &part, out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_part = {.run = run_part, .error = HLO_ERROR_MOVE};
const hlo_kernel hlo_eval_dynamic_slice = {.run = run_part, .error = HLO_ERROR_INDEXED};

static int64_t ceil_divide(int64_t a, int64_t b) {
    return a <= 0 ? 0 : (a + b - 1) / b;
}

static hlo_status run_placed(hlo_call *call) {
    const hlo_view *out = &call->results[0];
    hlo_index_map map;
    if (!hlo_view_count(out)) return HLO_OK;
    hlo_index_map_first(call->instr, &map);
    const hlo_view *rest = &call->operands[!map.operand];
    if (map.form == HLO_INDEX_PLACED && rest->data != out->data)
        hlo_view_copy(call->env, rest, out);
    do {
        const hlo_view *in = &call->operands[map.operand];
        hlo_dims in_start, out_start, dims, steps, in_strides, out_strides;
        hlo_index x;
        for (uint32_t d = 0; d < in->rank; d++) {
            hlo_index_along(&map, d, &x);
            const int64_t low = x.start + added_start(call, &x);
            int64_t first = ceil_divide(-low, x.stride); /* the first element kept */
            int64_t end = ceil_divide(out->dims[d] - low, x.stride);
            if (end > in->dims[d]) end = in->dims[d];
            in_start.v[d] = first;
            out_start.v[d] = low + first * x.stride;
            steps.v[d] = x.stride;
            dims.v[d] = end > first ? end - first : 0;
        }
        hlo_view from = hlo_view_part(in, in_start.v, dims.v, NULL, &in_strides);
        hlo_view to = hlo_view_part(out, out_start.v, dims.v, steps.v, &out_strides);
        hlo_view_copy(call->env, &from, &to);
    } while (map.form == HLO_INDEX_JOINED && hlo_index_map_next(&map));
    return HLO_OK;
}
const hlo_kernel hlo_eval_placed = {.run = run_placed, .error = HLO_ERROR_MOVE};
const hlo_kernel hlo_eval_dynamic_update_slice = {.run = run_placed, .error = HLO_ERROR_INDEXED};
