/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the builders of builder.def. */
#include <math.h>

#include "ir/module/known.h"
#include "passes/builders/move_chain.h"
#include "passes/builders/operand_layout.h"
#include "passes/builders/scaled_operand.h"
#include "passes/rules/library.h"

/* Converts an array of one element or of equal elements to f32[]. Returns NULL for others. */
static hlo_instruction *scalar_f32(hlo_rule_env *env, hlo_instruction *value) {
    return hlo_build_splat(env->build, value,
                           hlo_shape_array(env->context->module, HLO_TYPE_F32, 0, NULL));
}

MAKE(f32_scalar) {
    *out = NULL;
    if (!hlo_has_instr(args)) return true;
    *out = scalar_f32(env, args->instr);
    return *out || hlo_rule_refuse(env, "scale-not-scalar", args->instr);
}

MAKE(reciprocal) {
    *out = NULL;
    if (!hlo_has_instr(args)) return true;
    double number;
    if (hlo_known_number(args->instr, &number)) {
        if (number != 0 && isfinite(number) && isinf((float)(1 / number)))
            return hlo_rule_refuse(env, "scales-out-of-range", args->instr);
        *out = hlo_build_number(env->build, HLO_TYPE_F32, 1 / number);
        return *out != NULL;
    }
    hlo_instruction *value = scalar_f32(env, args->instr);
    if (!value) return hlo_rule_refuse(env, "scale-not-scalar", args->instr);
    *out = hlo_build_binary(env->build, HLO_OP_DIVIDE,
                            hlo_build_number(env->build, HLO_TYPE_F32, 1), value);
    return *out != NULL;
}

MAKE(as_type) {
    *out = NULL;
    if (!hlo_has_instr(args)) return true;
    return (*out = hlo_build_convert(env->build, args->instr, args[1].instr->shape->type)) != NULL;
}

/* Clone each link onto the clone of the previous link. */
MAKE(carry) {
    const hlo_instruction *links[HLO_CHAIN_LIMIT];
    uint32_t length = 0;
    for (const hlo_instruction *l = args->instr; l != args->inner; l = hlo_instr_operand(l, 0))
        links[length++] = l;
    *out = NULL;
    if (!hlo_has_instr(args + 1)) return true;
    hlo_instruction *value = args[1].instr;
    if (!hlo_shape_same_dims(value->shape, args->inner->shape)) return false;
    while (value && length-- > 0) value = hlo_link_clone_onto(env, links[length], value);
    *out = value;
    return value != NULL;
}

MAKE(dequantized_tree) {
    hlo_dequantized leaf;
    hlo_instruction *top = args->instr;
    if (!hlo_tree_moves(top, true, &leaf)) return false;
    hlo_builder *b = env->build;
    hlo_instruction *value = hlo_build_convert(b, hlo_tree_clone_onto(env, top), leaf.to);
    if (leaf.scale) value = hlo_build_by_scalar(b, leaf.op, value, leaf.scale);
    return (*out = hlo_build_convert(b, value, top->shape->type)) != NULL;
}

MAKE(clone_with) {
    const hlo_instruction *instr = args->instr;
    const bool ends = hlo_op_async_pair(HLO_OP_INVALID, instr->op);
    const hlo_instruction *sender = ends ? hlo_instr_operand(instr, 0) : instr;
    const bool moves = hlo_op_is(sender->op, HLO_MOVEMENT | HLO_COLLECTIVE) || ends;
    if (!moves || !sender->operand_count || (ends && sender->operand_count != 1) ||
        !hlo_shape_same_dims(args[1].instr->shape, hlo_instr_operand(sender, 0)->shape))
        return false;
    *out = ends ? hlo_async_clone_onto(env, instr, args[1].instr)
                : hlo_link_clone_onto(env, instr, args[1].instr);
    return *out != NULL;
}

MAKE(unscaled) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    if (mode == HLO_SCALE_MODE_COUNT) return false;
    return (*out = hlo_scaled_operand_values(env, args[0].instr, (unsigned)args[1].number, mode)) !=
           NULL;
}

MAKE(unscaled_rows) {
    const unsigned side = (unsigned)args[1].number;
    const bool scalar = hlo_scaled_operand_is_scalar(args->instr, side);
    *out = hlo_scaled_operand_values(env, args->instr, side,
                                     scalar ? HLO_SCALE_SCALAR : HLO_SCALE_OUTER_VEC);
    return *out != NULL;
}

MAKE(scales) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_scaled_operand_scales(env, args[0].instr, (unsigned)args[1].number, mode, out);
}

MAKE(tile_scales) {
    hlo_instruction *scalar;
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_scaled_operand_tiles(env, args->instr, (unsigned)args[1].number, mode, &scalar, out);
}

MAKE(times_scalar) {
    hlo_instruction *scale, *scalar;
    const hlo_scale_mode mode = hlo_scale_mode_find(args[3].word);
    *out = args->instr;
    if (mode == HLO_SCALE_MODE_COUNT ||
        !hlo_scaled_operand_tiles(env, args[1].instr, (unsigned)args[2].number, mode, &scalar,
                                  &scale))
        return false;
    if (!scalar) return true;
    *out = hlo_build_by_scalar(env->build, HLO_OP_MULTIPLY, args->instr, scalar);
    return *out != NULL;
}

MAKE(block_values) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_block_dot_operand(env, args->instr, args[1].number != 0, mode, false, out);
}

MAKE(block_scales) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_block_dot_operand(env, args->instr, args[1].number != 0, mode, true, out);
}

MAKE(globally_scaled) {
    hlo_block_dot dot;
    *out = args->instr;
    if (!hlo_block_kind_of(args[1].instr) || hlo_block_dot_read(args[1].instr, &dot)) return false;
    if (!dot.global_scale) return true;
    *out = hlo_build_by_scalar(env->build, HLO_OP_MULTIPLY, args->instr, dot.global_scale);
    return *out != NULL;
}

MAKE(joined_scale) {
    hlo_matmul m;
    *out = NULL;
    if (!hlo_decode_call(args->instr, &m)) return false;
    *out = hlo_scaled_operand_joined_scale(env, &m, (unsigned)args[1].number,
                                           hlo_has_instr(args + 2) ? args[2].instr : NULL);
    return *out != NULL;
}

MAKE(scalar_or_none) {
    unsigned operand = (unsigned)args[1].number;
    *out = NULL;
    return !hlo_scaled_operand_is_scalar(args[0].instr, operand) ||
           hlo_scaled_operand_scales(env, args[0].instr, operand, HLO_SCALE_SCALAR, out);
}

MAKE(times_rows) {
    unsigned operand = (unsigned)args[2].number;
    *out = args[0].instr;
    if (hlo_scaled_operand_is_scalar(args[1].instr, operand)) return true;
    *out = hlo_build_binary(env->build, HLO_OP_MULTIPLY, args[0].instr,
                            hlo_scaled_operand_result_scale(env, args[1].instr, operand));
    return *out != NULL;
}

MAKE(max_over) {
    const hlo_instruction *reduce = args->instr;
    const uint32_t rank = args[1].instr->shape->rank;
    int64_t dims[HLO_RULE_ARGS];
    if (!hlo_reduces_by_max(reduce) || rank > HLO_RULE_ARGS) return false;
    hlo_instruction *operands[] = {args[1].instr, hlo_instr_operand(reduce, 1)};
    for (uint32_t i = 0; i < rank; i++) dims[i] = i;
    *out = hlo_build_clone(env->build, reduce, reduce->shape, operands);
    if (!*out) return false;
    hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, rank, dims);
    return true;
}

MAKE(compose) {
    const hlo_instruction *outer = args->instr;
    const hlo_instruction *inner = outer->operand_count ? hlo_instr_operand(outer, 0) : outer;
    if ((outer->op != HLO_OP_SLICE && outer->op != HLO_OP_TRANSPOSE) || inner->op != outer->op)
        return false;
    hlo_instruction *from = hlo_instr_operand(inner, 0);
    if (outer->op == HLO_OP_SLICE) {
        const hlo_ints *a = hlo_instr_ints(outer, HLO_ATTR_SLICE);
        const hlo_ints *b = hlo_instr_ints(inner, HLO_ATTR_SLICE);
        int64_t v[3 * HLO_RULE_ARGS];
        if (a->count > 3 * HLO_RULE_ARGS) return false;
        for (uint32_t i = 0; i < a->count; i += 3) {
            v[i] = b->v[i] + a->v[i] * b->v[i + 2];
            v[i + 2] = a->v[i + 2] * b->v[i + 2];
            v[i + 1] = b->v[i] + (a->v[i + 1] - 1) * b->v[i + 2] + 1;
            if (a->v[i + 1] == a->v[i]) v[i + 1] = v[i]; /* the outer slice is empty */
        }
        return (*out = hlo_build_slice(env->build, from, outer->shape, v)) != NULL;
    }
    const hlo_ints *a = hlo_instr_ints(outer, HLO_ATTR_DIMENSIONS);
    const hlo_ints *b = hlo_instr_ints(inner, HLO_ATTR_DIMENSIONS);
    int64_t order[HLO_RULE_ARGS];
    if (a->count > HLO_RULE_ARGS) return false;
    bool same = true;
    for (uint32_t i = 0; i < a->count; i++) same &= (order[i] = b->v[a->v[i]]) == i;
    *out = from;
    if (same && hlo_shape_same_order(from->shape, outer->shape)) return true;
    *out = same ? hlo_build(env->build, HLO_OP_COPY, outer->shape, 1, &from)
                : hlo_build_ints(env->build, HLO_OP_TRANSPOSE, outer->shape, 1, &from,
                                 HLO_ATTR_DIMENSIONS, a->count, order);
    return *out != NULL;
}

/* Reads the call in argument 1. Sets `*b` if argument 2 selects operand B. */
static bool decode_side(const hlo_binding *args, hlo_matmul *m, bool *b) {
    *b = args[1].number != 0;
    return hlo_decode_call(args->instr, m);
}

MAKE(placed_operand) {
    hlo_matmul m;
    bool b;
    return decode_side(args, &m, &b) && hlo_operand_layout_make(env, &m, b, out);
}

MAKE(transpose_source) {
    hlo_matmul m;
    bool b;
    if (!decode_side(args, &m, &b)) return false;
    const hlo_instruction *operand = b ? m.b : m.a;
    if (!hlo_op_is(operand->op, HLO_REORDERS)) return false;
    *out = hlo_instr_operand(operand, 0);
    return true;
}

static const hlo_shape *with_size(const hlo_instruction *value, uint32_t dim, int64_t size) {
    const hlo_shape *shape = value->shape;
    int64_t dims[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < shape->rank; i++) dims[i] = i == dim ? size : shape->dims[i];
    return hlo_shape_with_layout(value->parent->module, shape->type, shape->rank, dims,
                                 shape->layout ? shape->layout->minor_to_major : NULL);
}

/* Repeats the elements along `dim`, starting from the first one, up to an aligned size. */
static hlo_instruction *repeated(hlo_builder *b, hlo_instruction *value, uint32_t dim) {
    hlo_instruction *parts[HLO_MATMUL_ALIGNMENT];
    const int64_t each = value->shape->dims[dim], d = dim;
    const int64_t size = hlo_size_aligned(each, HLO_MATMUL_ALIGNMENT);
    uint32_t count = 0;
    if (size == each) return value;
    for (int64_t left = size; left > 0; left -= each)
        parts[count++] =
            left < each ? hlo_build_prefix(b, value, with_size(value, dim, left)) : value;
    return hlo_build_ints(b, HLO_OP_CONCATENATE, with_size(value, dim, size), count, parts,
                          HLO_ATTR_DIMENSIONS, 1, &d);
}

/* Pads an operand, addend or bias of the call to aligned sizes. Rows and columns are padded with
 * zeros. If the call has an amax, which covers the padding, rows and columns are padded with copies
 * of a row or column. The result of a row of zeros need not be 0, because a zero times an infinity
 * is NaN and a bias is added. Padding along the contracting dimension is 0 in both operands, so its
 * products are 0. */
static bool pad(hlo_rule_env *env, const hlo_matmul *m, hlo_instruction *value,
                const hlo_ints *batch, const hlo_ints *contracting, hlo_instruction **out) {
    int64_t dims[HLO_RULE_ARGS] = {0};
    *out = value;
    if (!value) return true;
    const uint32_t rank = value->shape->rank;
    if (rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < rank; i++) {
        const bool k = contracting && hlo_ints_contain(contracting, i);
        dims[i] = value->shape->dims[i];
        if (m->amax ? k : !batch || !hlo_ints_contain(batch, i))
            dims[i] = hlo_size_aligned(dims[i], hlo_matmul_alignment(m, k));
    }
    *out = hlo_pad_zeros(env->build, value, dims);
    for (uint32_t i = 0; *out && m->amax && i < rank; i++)
        if (!batch || !hlo_ints_contain(batch, i)) *out = repeated(env->build, *out, i);
    return *out != NULL;
}

MAKE(padded) {
    hlo_matmul m;
    bool b;
    if (!decode_side(args, &m, &b)) return false;
    return b ? pad(env, &m, m.b, m.b_batch, m.b_contracting, out)
             : pad(env, &m, m.a, m.a_batch, m.a_contracting, out);
}

MAKE(padded_scale) {
    hlo_matmul m;
    bool b;
    return decode_side(args, &m, &b) && hlo_operand_layout_pad_scale(env, &m, b, out);
}

MAKE(padded_c) {
    hlo_matmul m;
    if (!hlo_decode_call(args->instr, &m)) return false;
    int64_t first[HLO_RULE_ARGS];
    if (m.a_batch->count > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < m.a_batch->count; i++) first[i] = i;
    const hlo_ints *batch = hlo_ints_new(env->context->module, m.a_batch->count, first);
    return pad(env, &m, m.c, batch, NULL, out);
}

MAKE(padded_bias) {
    hlo_matmul m;
    return hlo_decode_call(args->instr, &m) && pad(env, &m, m.bias, NULL, NULL, out);
}

/* Merges the batch dimensions of `value`, if they are outermost in memory. */
static bool join(hlo_rule_env *env, hlo_instruction *value, const hlo_matmul *m,
                 hlo_instruction **out) {
    const uint32_t batch = m->a_batch->count;
    *out = NULL;
    if (!batch || !value) return batch;
    const hlo_shape *old = value->shape;
    const uint32_t rank = old->rank - batch + 1;
    int64_t dims[HLO_RULE_ARGS] = {1}, order[HLO_RULE_ARGS] = {0};
    if (!hlo_shape_is_batch_major(old, batch) || old->rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < batch; i++) dims[0] *= old->dims[i];
    for (uint32_t i = 1; i < rank; i++) {
        dims[i] = old->dims[batch - 1 + i];
        if (old->layout) order[i - 1] = old->layout->minor_to_major[i - 1] - batch + 1;
    }
    order[rank - 1] = 0;
    const hlo_shape *shape = hlo_shape_with_layout(env->context->module, old->type, rank, dims,
                                                   old->layout ? order : NULL);
    return (*out = hlo_build(env->build, HLO_OP_RESHAPE, shape, 1, &value)) != NULL;
}

MAKE(joined) {
    hlo_matmul m;
    bool b;
    return decode_side(args, &m, &b) && join(env, b ? m.b : m.a, &m, out);
}

MAKE(joined_c) {
    hlo_matmul m;
    return hlo_decode_call(args->instr, &m) && join(env, m.c, &m, out);
}

MAKE(cut) {
    const hlo_shape *shape = args[1].instr->shape;
    *out = shape->rank == args->instr->shape->rank
               ? hlo_build_prefix(env->build, args->instr, shape)
               : NULL;
    return *out != NULL;
}

static hlo_instruction *reshape(hlo_builder *b, hlo_instruction *value, const hlo_shape *shape) {
    return value && !hlo_shape_same_dims(value->shape, shape)
               ? hlo_build(b, HLO_OP_RESHAPE, shape, 1, &value)
               : value;
}

/* Reshapes `value` to the shape or, if the sizes differ, slices it or pads it with zeros. */
static hlo_instruction *to_shape(hlo_builder *b, hlo_instruction *value, const hlo_shape *shape) {
    const int64_t have = hlo_shape_count(value->shape), want = hlo_shape_count(shape);
    if (have == want) return reshape(b, value, shape);
    if (shape->rank > HLO_RULE_ARGS || shape->rank != value->shape->rank) return NULL;
    return have > want ? hlo_build_prefix(b, value, shape) : hlo_pad_zeros(b, value, shape->dims);
}

MAKE(shaped) {
    return (*out = to_shape(env->build, args->instr, args[1].instr->shape)) != NULL;
}

/* Applies `view` to `value`; the result has the given shape. `view` is a slice, a reshape, or a
 * sharding annotation of one of these. */
static hlo_instruction *apply_view(hlo_builder *b, hlo_instruction *value,
                                   const hlo_instruction *view, const hlo_shape *shape) {
    const hlo_shape *part = shape;
    if (!hlo_shape_same_dims(shape, view->shape))
        part = hlo_shape_retype(view->parent->module, view->shape, shape->type);
    if (hlo_instr_is_mark(view)) {
        value = apply_view(b, value, hlo_instr_operand(view, 0), part);
        return value ? reshape(b, hlo_build_clone(b, view, value->shape, &value), shape) : NULL;
    }
    if (view->op != HLO_OP_SLICE) return to_shape(b, value, shape);
    value = hlo_build_slice(b, value, part, hlo_instr_ints(view, HLO_ATTR_SLICE)->v);
    return reshape(b, value, shape);
}

MAKE(seen) {
    return (*out = apply_view(env->build, args->instr, args[1].instr, args[2].instr->shape)) !=
           NULL;
}
