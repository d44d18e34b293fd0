/* Builders of builder.def. */
#include <math.h>

#include "ir/module/known.h"
#include "passes/builders/bias.h"
#include "passes/builders/collective.h"
#include "passes/builders/merge_dots.h"
#include "passes/builders/move_chain.h"
#include "passes/builders/operand_layout.h"
#include "passes/builders/pad_slice.h"
#include "passes/builders/scaled_operand.h"
#include "passes/rules/functions.h"

/* Converts `value`, which may be NULL, unless it has the type. */
static hlo_instr *retyped(hlo_rule_env *env, hlo_instr *value, hlo_type type) {
    if (!value || value->shape->type == type) return value;
    const hlo_shape *shape = hlo_shape_retype(env->context->module, value->shape, type);
    return hlo_rule_new(env, HLO_OP_CONVERT, shape, 1, &value);
}

/* Makes f32[] of an array that repeats one element or has only one. NULL: its elements may differ.
 */
static hlo_instr *scalar_f32(hlo_rule_env *env, hlo_instr *value) {
    hlo_module *module = env->context->module;
    double number;
    if (hlo_shape_count(value->shape) != 1) {
        if (!hlo_known_number(value, &number)) return NULL;
        value = hlo_rule_number(env, value->shape->type, number);
    }
    if (value->shape->rank) {
        const hlo_shape *shape = hlo_shape_array(module, value->shape->type, 0, NULL);
        value = hlo_rule_new(env, HLO_OP_RESHAPE, shape, 1, &value);
    }
    return retyped(env, value, HLO_TYPE_F32);
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
        *out = hlo_rule_number(env, HLO_TYPE_F32, 1 / number);
        return *out != NULL;
    }
    hlo_instr *value = scalar_f32(env, args->instr);
    if (!value) return hlo_rule_refuse(env, "scale-not-scalar", args->instr);
    hlo_instr *operands[] = {hlo_rule_number(env, HLO_TYPE_F32, 1), value};
    *out = hlo_rule_new(env, HLO_OP_DIVIDE, value->shape, 2, operands);
    return *out != NULL;
}

MAKE(as_type) {
    *out = NULL;
    if (!hlo_has_instr(args)) return true;
    *out = retyped(env, args->instr, args[1].instr->shape->type);
    return *out != NULL;
}

/* Clones each link onto the clone of the link below. */
MAKE(carry) {
    const hlo_instr *links[HLO_CHAIN_LIMIT];
    uint32_t length = 0;
    for (const hlo_instr *l = args->instr; l != args->inner; l = hlo_instr_operand(l, 0))
        links[length++] = l;
    *out = NULL;
    if (!hlo_has_instr(args + 1)) return true;
    hlo_instr *value = args[1].instr;
    if (!hlo_shape_same_dims(value->shape, args->inner->shape)) return false;
    while (value && length-- > 0) value = hlo_link_clone_onto(env, links[length], value);
    *out = value;
    return value != NULL;
}

MAKE(dequantized_tree) {
    hlo_dequantized leaf;
    hlo_instr *top = args->instr;
    if (!hlo_tree_moves(top, true, &leaf)) return false;
    hlo_instr *value = hlo_tree_clone_onto(env, top);
    const hlo_shape *wide = hlo_shape_retype(env->context->module, top->shape, leaf.to);
    if (value) value = hlo_rule_new(env, HLO_OP_CONVERT, wide, 1, &value);
    if (value && leaf.scale) {
        hlo_instr *operands[] = {value, hlo_rule_splat(env, leaf.scale, wide)};
        value = operands[1] ? hlo_rule_new(env, leaf.op, wide, 2, operands) : NULL;
    }
    *out = retyped(env, value, top->shape->type);
    return *out != NULL;
}

MAKE(clone_with) {
    const hlo_instr *instr = args->instr;
    const bool ends = hlo_op_async_pair(HLO_OP_INVALID, instr->op);
    const hlo_instr *sender = ends ? hlo_instr_operand(instr, 0) : instr;
    const bool moves = hlo_op_is(sender->op, HLO_MOVEMENT | HLO_COLLECTIVE) || ends;
    if (!moves || !sender->operand_count || (ends && sender->operand_count != 1) ||
        !hlo_shape_same_dims(args[1].instr->shape, hlo_instr_operand(sender, 0)->shape))
        return false;
    *out = ends ? hlo_async_clone_onto(env, instr, args[1].instr)
                : hlo_link_clone_onto(env, instr, args[1].instr);
    return *out != NULL;
}

MAKE(sent_quantized) {
    *out = hlo_collective_quantized(env, args->instr);
    return *out != NULL;
}

MAKE(sent_scale) {
    *out = hlo_collective_scale(env, args[0].instr, args + 1, args[2].instr);
    return *out != NULL;
}

MAKE(unscaled) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    if (mode == HLO_SCALE_MODE_COUNT) return false;
    *out = hlo_scaled_operand_values(env, args[0].instr, (unsigned)args[1].number, mode);
    return *out != NULL;
}

MAKE(unscaled_rows) {
    *out = hlo_scaled_operand_unscaled(env, args[0].instr, (unsigned)args[1].number);
    return *out != NULL;
}

MAKE(scales) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_scaled_operand_scales(env, args[0].instr, (unsigned)args[1].number, mode, out);
}

MAKE(tile_scales) {
    hlo_instr *scalar;
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_scaled_operand_tiles(env, args->instr, (unsigned)args[1].number, mode, &scalar, out);
}

MAKE(times_scalar) {
    hlo_instr *scale, *scalar;
    const hlo_scale_mode mode = hlo_scale_mode_find(args[3].word);
    *out = args->instr;
    if (mode == HLO_SCALE_MODE_COUNT ||
        !hlo_scaled_operand_tiles(env, args[1].instr, (unsigned)args[2].number, mode, &scalar,
                                  &scale))
        return false;
    if (!scalar) return true;
    hlo_instr *factors[] = {args->instr, hlo_rule_splat(env, scalar, args->instr->shape)};
    *out = hlo_rule_new(env, HLO_OP_MULTIPLY, args->instr->shape, 2, factors);
    return *out != NULL;
}

MAKE(block_values) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_block_dot_values(env, args->instr, args[1].number != 0, mode, out);
}

MAKE(block_scales) {
    const hlo_scale_mode mode = hlo_scale_mode_find(args[2].word);
    return mode != HLO_SCALE_MODE_COUNT &&
           hlo_block_dot_scales(env, args->instr, args[1].number != 0, mode, out);
}

MAKE(globally_scaled) {
    hlo_block_dot dot;
    *out = args->instr;
    if (!hlo_block_kind_of(args[1].instr) || hlo_block_dot_read(args[1].instr, &dot)) return false;
    if (!dot.global_scale) return true;
    hlo_instr *factors[] = {args->instr, hlo_rule_splat(env, dot.global_scale, dot.d)};
    *out = hlo_rule_new(env, HLO_OP_MULTIPLY, dot.d, 2, factors);
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
    return !hlo_scaled_operand_is_scalar(env, args[0].instr, operand) ||
           hlo_scaled_operand_scales(env, args[0].instr, operand, HLO_SCALE_SCALAR, out);
}

MAKE(times_rows) {
    unsigned operand = (unsigned)args[2].number;
    *out = args[0].instr;
    if (hlo_scaled_operand_is_scalar(env, args[1].instr, operand)) return true;
    hlo_instr *operands[] = {args[0].instr,
                             hlo_scaled_operand_result_scale(env, args[1].instr, operand)};
    *out = operands[1] ? hlo_rule_new(env, HLO_OP_MULTIPLY, operands[0]->shape, 2, operands) : NULL;
    return *out != NULL;
}

MAKE(merged) {
    *out = hlo_dots_merged(env, args[0].instr, args[1].instr, args[2].instr);
    return *out != NULL;
}

MAKE(split_merged) {
    *out = hlo_dots_part(env, args[0].instr, args[1].instr, args[2].number != 0);
    return *out != NULL;
}

static bool compose_slices(hlo_rule_env *env, const hlo_instr *outer, hlo_instr **out) {
    const hlo_instr *inner = hlo_instr_operand(outer, 0);
    const hlo_ints *a = hlo_instr_ints(outer, HLO_ATTR_SLICE);
    const hlo_ints *b = hlo_instr_ints(inner, HLO_ATTR_SLICE);
    int64_t v[3 * HLO_RULE_ARGS];
    if (a->count > 3 * HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < a->count; i += 3) {
        v[i] = b->v[i] + a->v[i] * b->v[i + 2];
        v[i + 2] = a->v[i + 2] * b->v[i + 2];
        v[i + 1] = b->v[i] + (a->v[i + 1] - 1) * b->v[i + 2] + 1;
        if (a->v[i + 1] == a->v[i]) v[i + 1] = v[i]; /* an empty slice */
    }
    hlo_instr *from = hlo_instr_operand(inner, 0);
    *out = hlo_rule_new(env, HLO_OP_SLICE, outer->shape, 1, &from);
    if (*out) hlo_instr_set_ints(*out, HLO_ATTR_SLICE, a->count, v);
    return *out != NULL;
}

MAKE(max_over) {
    const hlo_instr *reduce = args->instr;
    const uint32_t rank = args[1].instr->shape->rank;
    int64_t dims[HLO_RULE_ARGS];
    if (!hlo_reduces_by_max(reduce) || rank > HLO_RULE_ARGS) return false;
    hlo_instr *operands[] = {args[1].instr, hlo_instr_operand(reduce, 1)};
    for (uint32_t i = 0; i < rank; i++) dims[i] = i;
    *out = hlo_rule_clone(env, reduce, reduce->shape, operands);
    if (!*out) return false;
    hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, rank, dims);
    return true;
}

MAKE(compose) {
    const hlo_instr *outer = args->instr;
    const hlo_instr *inner = outer->operand_count ? hlo_instr_operand(outer, 0) : outer;
    if ((outer->op != HLO_OP_SLICE && outer->op != HLO_OP_TRANSPOSE) || inner->op != outer->op)
        return false;
    if (outer->op == HLO_OP_SLICE) return compose_slices(env, outer, out);
    const hlo_ints *a = hlo_instr_ints(outer, HLO_ATTR_DIMENSIONS);
    const hlo_ints *b = hlo_instr_ints(inner, HLO_ATTR_DIMENSIONS);
    int64_t order[HLO_RULE_ARGS];
    if (a->count > HLO_RULE_ARGS) return false;
    bool same = true;
    for (uint32_t i = 0; i < a->count; i++) same &= (order[i] = b->v[a->v[i]]) == i;
    hlo_instr *from = hlo_instr_operand(inner, 0);
    *out = from;
    if (same && hlo_shape_same_order(from->shape, outer->shape)) return true;
    *out = hlo_rule_new(env, same ? HLO_OP_COPY : HLO_OP_TRANSPOSE, outer->shape, 1, &from);
    if (*out && !same) hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, a->count, order);
    return *out != NULL;
}

/* Reads the call that is the first argument; `*b`: the second argument names its second operand. */
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
    const hlo_instr *operand = b ? m.b : m.a;
    if (!hlo_op_is(operand->op, HLO_REORDERS)) return false;
    *out = hlo_instr_operand(operand, 0);
    return true;
}

/* Pads an operand, addend or bias of the call to aligned sizes. Rows and columns are padded with
 * zeros or, for a call with an amax, which covers the padding too, with copies of a row or column:
 * a row of zeros need not stay 0, as a zero times an infinity is NaN and a bias is added. Padding
 * along the contracting dimension is 0 in both operands, and so is its product. */
static bool pad(hlo_rule_env *env, const hlo_matmul *m, hlo_instr *value, const hlo_ints *batch,
                const hlo_ints *contracting, hlo_instr **out) {
    int64_t dims[HLO_RULE_ARGS];
    *out = value;
    if (!value) return true;
    if (m->amax) return hlo_pad_repeating(env, value, batch, contracting, out);
    if (value->shape->rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < value->shape->rank; i++) {
        const bool k = contracting && hlo_ints_contain(contracting, i);
        dims[i] = value->shape->dims[i];
        if (!batch || !hlo_ints_contain(batch, i))
            dims[i] = hlo_size_aligned(dims[i], hlo_matmul_alignment(m, k));
    }
    return hlo_pad_zeros(env, value, dims, out);
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

/* Joins the batch dimensions of `value` to one, if they are outermost in memory. */
static bool join(hlo_rule_env *env, hlo_instr *value, const hlo_matmul *m, hlo_instr **out) {
    const uint32_t batch = m->a_batch->count;
    if (!batch || (value && !hlo_shape_is_batch_major(value->shape, batch))) return false;
    return hlo_join_batch(env, value, batch, out);
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
    return hlo_slice_prefix(env, args->instr, args[1].instr->shape, out);
}

MAKE(row) {
    return hlo_bias_row(env, args[0].instr, args[1].instr, args[2].instr, out);
}

MAKE(shaped) {
    return hlo_to_shape(env, args->instr, args[1].instr->shape, out);
}

MAKE(seen) {
    return hlo_apply_view(env, args->instr, args[1].instr, args[2].instr->shape, out);
}
