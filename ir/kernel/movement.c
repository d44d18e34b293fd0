/* Opcodes that move elements to places known before they run: each makes views and copies. */
#include <string.h>

#include "ir/kernel/kernel.h"

static hlo_status run_copy(hlo_call *call) {
    hlo_view_copy(call->env, &call->operands[0], &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_copy = {.run = run_copy, .error = HLO_ERROR_MOVE};

static hlo_status run_reshape(hlo_call *call) {
    hlo_view_reshape(call, &call->operands[0], &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_reshape = {.run = run_reshape, .error = HLO_ERROR_MOVE};

/* Returns `view` with its dimensions in the physical order of `shape`. */
static hlo_view physical(const hlo_view *view, const hlo_shape *shape, hlo_dims *dims,
                         hlo_dims *strides) {
    hlo_dims order;
    bool ordered = shape->layout && hlo_shape_is_ordered(shape);
    for (uint32_t d = 0; d < view->rank; d++)
        order.v[d] = ordered ? shape->layout->minor_to_major[view->rank - 1 - d] : d;
    return hlo_view_permute(view, order.v, dims, strides);
}

/* Copies bytes in their order in memory, by the layouts of both shapes. */
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

static hlo_status run_broadcast(hlo_call *call) {
    const hlo_view *in = &call->operands[0], *out = &call->results[0];
    const hlo_ints *dims = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS);
    hlo_dims strides = {0};
    for (uint32_t d = 0; d < in->rank && d < dims->count; d++)
        strides.v[dims->v[d]] = in->dims[d] == 1 ? 0 : in->strides[d];
    hlo_view wide = {in->type, out->rank, out->dims, strides.v, in->data};
    hlo_view_copy(call->env, &wide, out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_broadcast = {.run = run_broadcast, .error = HLO_ERROR_MOVE};

static hlo_status run_transpose(hlo_call *call) {
    hlo_dims dims, strides;
    const hlo_ints *order = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS);
    hlo_view in = hlo_view_permute(&call->operands[0], order->v, &dims, &strides);
    hlo_view_copy(call->env, &in, &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_transpose = {.run = run_transpose, .error = HLO_ERROR_MOVE};

static hlo_status run_reverse(hlo_call *call) {
    const hlo_view *in = &call->operands[0];
    const hlo_ints *dims = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS);
    hlo_dims start = {0}, steps, strides;
    for (uint32_t d = 0; d < in->rank; d++) steps.v[d] = 1;
    for (uint32_t i = 0; i < dims->count; i++) {
        start.v[dims->v[i]] = in->dims[dims->v[i]] - 1;
        steps.v[dims->v[i]] = -1;
    }
    hlo_view part = hlo_view_part(in, start.v, in->dims, steps.v, &strides);
    hlo_view_copy(call->env, &part, &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_reverse = {.run = run_reverse, .error = HLO_ERROR_MOVE};

static hlo_status run_slice(hlo_call *call) {
    const hlo_view *in = &call->operands[0], *out = &call->results[0];
    const hlo_ints *slices = hlo_instr_ints(call->instr, HLO_ATTR_SLICE);
    hlo_dims start, steps, strides;
    for (uint32_t d = 0; d < in->rank; d++) {
        start.v[d] = slices->v[3 * d];
        steps.v[d] = slices->v[3 * d + 2];
    }
    hlo_view part = hlo_view_part(in, start.v, out->dims, steps.v, &strides);
    hlo_view_copy(call->env, &part, out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_slice = {.run = run_slice, .error = HLO_ERROR_MOVE};

static hlo_status run_concatenate(hlo_call *call) {
    const hlo_view *out = &call->results[0];
    int64_t dim = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS)->v[0];
    hlo_dims start = {0}, strides;
    for (uint32_t i = 0; i < call->operand_count; i++) {
        const hlo_view *in = &call->operands[i];
        hlo_view part = hlo_view_part(out, start.v, in->dims, NULL, &strides);
        hlo_view_copy(call->env, in, &part);
        start.v[dim] += in->dims[dim];
    }
    return HLO_OK;
}
const hlo_kernel hlo_eval_concatenate = {.run = run_concatenate, .error = HLO_ERROR_MOVE};

static int64_t ceil_divide(int64_t a, int64_t b) {
    return a <= 0 ? 0 : (a + b - 1) / b;
}

static hlo_status run_pad(hlo_call *call) {
    const hlo_view *in = &call->operands[0], *out = &call->results[0];
    const hlo_ints *padding = hlo_instr_ints(call->instr, HLO_ATTR_PADDING);
    hlo_view_copy(call->env, &call->operands[1], out);
    hlo_dims in_start, out_start, dims, steps, in_strides, out_strides;
    for (uint32_t d = 0; d < in->rank; d++) {
        int64_t low = padding->v[3 * d], step = padding->v[3 * d + 2] + 1;
        int64_t first = ceil_divide(-low, step); /* the first element kept */
        int64_t end = ceil_divide(out->dims[d] - low, step);
        if (end > in->dims[d]) end = in->dims[d];
        in_start.v[d] = first;
        out_start.v[d] = low + first * step;
        steps.v[d] = step;
        dims.v[d] = end > first ? end - first : 0;
    }
    hlo_view from = hlo_view_part(in, in_start.v, dims.v, NULL, &in_strides);
    hlo_view to = hlo_view_part(out, out_start.v, dims.v, steps.v, &out_strides);
    hlo_view_copy(call->env, &from, &to);
    return HLO_OK;
}
const hlo_kernel hlo_eval_pad = {.run = run_pad, .error = HLO_ERROR_MOVE};
