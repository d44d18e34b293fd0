/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/builders/operand_layout.h"

#include "ir/eval/range.h"
#include "ir/module/known.h"
#include "passes/builders/move_chain.h"

int64_t hlo_size_aligned(int64_t size, int64_t to) {
    return (size + to - 1) / to * to;
}

hlo_instruction *hlo_pad_zeros(hlo_builder *b, hlo_instruction *value, const int64_t *dims) {
    int64_t padding[3 * HLO_RULE_ARGS] = {0};
    bool same = true;
    if (!value) return NULL;
    const hlo_shape *old = value->shape;
    for (uint32_t i = 0; i < old->rank; i++) {
        padding[3 * i + 1] = dims[i] - old->dims[i];
        same &= dims[i] == old->dims[i];
    }
    if (same) return value;
    const double least = old->type == HLO_TYPE_F8E8M0FNU ? 0x1p-127 : 0;
    const hlo_shape *shape =
        hlo_shape_with_layout(value->parent->module, old->type, old->rank, dims,
                              old->layout ? old->layout->minor_to_major : NULL);
    return hlo_build_pad(b, value, hlo_build_number(b, old->type, least), shape, padding);
}

/* An operand of a call, and an order of its dimensions with the contracting dimension last. */
typedef struct placing {
    hlo_instruction *value;
    const hlo_ints *batch, *contracting;
    uint32_t rank;
    int64_t order[HLO_RULE_ARGS];
    bool placed;
} placing;

static bool side_of(const hlo_rule_env *env, const hlo_matmul *m, bool b, placing *out) {
    *out = (placing){.value = b ? m->b : m->a,
                     .batch = b ? m->b_batch : m->a_batch,
                     .contracting = b ? m->b_contracting : m->a_contracting};
    const hlo_shape *shape = out->value->shape;
    if (shape->rank > HLO_RULE_ARGS || out->contracting->count != 1) return false;
    const int64_t k = out->contracting->v[0];
    for (uint32_t i = 0; i < out->batch->count; i++) out->order[out->rank++] = out->batch->v[i];
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i != k && !hlo_ints_contain(out->batch, i)) out->order[out->rank++] = i;
    out->order[out->rank++] = k;
    out->placed = hlo_matmul_layout_ok(m, env->context->target, b);
    return true;
}

bool hlo_operand_layout_is_missing(const hlo_rule_env *env, const hlo_matmul *m, bool b) {
    placing s;
    return side_of(env, m, b, &s) && !s.placed;
}

int64_t hlo_redundant_transposes(const hlo_rule_env *env, const hlo_matmul *m, bool b) {
    hlo_matmul beneath = *m;
    hlo_instruction **operand = b ? &beneath.b : &beneath.a;
    const hlo_ints **batch = b ? &beneath.b_batch : &beneath.a_batch;
    const hlo_ints **contracting = b ? &beneath.b_contracting : &beneath.a_contracting;
    int64_t turns = 0;
    while (turns < HLO_CHAIN_LIMIT && hlo_op_is((*operand)->op, HLO_REORDERS) && !(*operand)->pin) {
        *batch = hlo_matmul_dims_beneath(*operand, *batch);
        *contracting = hlo_matmul_dims_beneath(*operand, *contracting);
        *operand = hlo_instr_operand(*operand, 0);
        if (!hlo_matmul_layout_ok(&beneath, env->context->target, b)) break;
        turns++;
    }
    return turns;
}

/* Builds a row-major operand by a transpose, or by a copy if the order is already right. */
bool hlo_operand_layout_make(hlo_rule_env *env, const hlo_matmul *m, bool b,
                             hlo_instruction **out) {
    placing s;
    if (!side_of(env, m, b, &s)) return false;
    int64_t dims[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < s.rank; i++) dims[i] = s.value->shape->dims[s.order[i]];
    const hlo_shape *shape =
        hlo_shape_array(env->context->module, s.value->shape->type, s.rank, dims);
    bool same = true;
    for (uint32_t i = 0; i < s.rank; i++) same &= s.order[i] == i;
    *out = same ? hlo_build(env->build, HLO_OP_COPY, shape, 1, &s.value)
                : hlo_build_ints(env->build, HLO_OP_TRANSPOSE, shape, 1, &s.value,
                                 HLO_ATTR_DIMENSIONS, s.rank, s.order);
    return *out != NULL;
}

bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b,
                                  hlo_instruction **out) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    int64_t dims[3];
    *out = b ? m->b_scale : m->a_scale;
    hlo_scale_dims(b ? m->b_mode : m->a_mode, size.batch,
                   hlo_size_aligned(b ? size.n : size.m, hlo_matmul_alignment(m, false)),
                   hlo_size_aligned(size.k, hlo_matmul_alignment(m, true)), dims);
    if (!*out || !(*out)->shape->rank) return true;
    *out = hlo_pad_zeros(env->build, *out, dims);
    return *out != NULL;
}

/* Maximum number of steps in hlo_block_narrowed(), which is recursive. */
enum { NARROW_LIMIT = 256 };

bool hlo_block_is_narrow(const hlo_instruction *value, hlo_type type) {
    unsigned steps = 0;
    for (; value->shape->type != type; value = hlo_instr_operand(value, 0)) {
        if (value->pin || !value->operand_count || steps++ == NARROW_LIMIT) return false;
        const hlo_type wide = value->shape->type;
        const bool f16 = wide == HLO_TYPE_F16 && type == HLO_TYPE_F8E8M0FNU;
        if (value->op == HLO_OP_CONVERT ? !hlo_type_is_wide(wide) || f16
                                        : !hlo_instr_moves(value) || value->op == HLO_OP_PAD)
            return false;
    }
    return true;
}

hlo_instruction *hlo_block_narrowed(hlo_rule_env *env, hlo_instruction *value, hlo_type type) {
    if (value->shape->type == type) return value;
    hlo_instruction *from = hlo_block_narrowed(env, hlo_instr_operand(value, 0), type);
    return from ? hlo_link_clone_onto(env, value, from) : NULL;
}

static hlo_granularity granularity_of(const hlo_block_side *side) {
    hlo_granularity granularity;
    for (uint32_t i = 0; i < side->shape->rank; i++) granularity.v[i] = 1;
    granularity.v[side->k] = hlo_scale_modes[side->mode].along;
    return granularity;
}

hlo_instruction *hlo_block_ones(hlo_rule_env *env, const hlo_block_side *side) {
    const hlo_granularity granularity = granularity_of(side);
    const hlo_type type = hlo_scale_modes[side->mode].type;
    return hlo_build_filled(env->build, hlo_granularity_shape(env, side->shape, type, &granularity),
                            1);
}

hlo_instruction *hlo_block_signed(hlo_rule_env *env, hlo_instruction *values,
                                  hlo_instruction *scales, const hlo_block_side *side) {
    if (!values || !scales || hlo_range_of(scales).low >= 0) return values;
    const hlo_granularity granularity = granularity_of(side);
    hlo_builder *b = env->build;
    hlo_instruction *below =
        hlo_build_compare(b, scales, "LT", hlo_build_filled(b, scales->shape, 0));
    below = hlo_granularity_expand(env, below, side->shape, &granularity);
    hlo_instruction *opposite = hlo_build_unary(b, HLO_OP_NEGATE, values);
    return opposite ? hlo_build_select(b, below, opposite, values) : NULL;
}

hlo_instruction *hlo_block_tile(hlo_rule_env *env, hlo_instruction *scales,
                                const hlo_block_side *side) {
    const hlo_shape *x = side->shape;
    int64_t order[HLO_RULE_ARGS], lie[3] = {1}, dims[3];
    uint32_t count = 0;
    if (!scales) return NULL;
    hlo_builder *b = env->build;
    if (hlo_range_of(scales).low < 0) scales = hlo_build_unary(b, HLO_OP_ABS, scales);
    if (!scales) return NULL;
    for (; count < side->batch->count; count++) {
        order[count] = side->batch->v[count];
        lie[0] *= x->dims[order[count]];
    }
    order[count++] = side->row;
    order[count++] = side->k;
    lie[1] = scales->shape->dims[side->row];
    lie[2] = scales->shape->dims[side->k];
    const uint32_t one = lie[0] == 1; /* a single matrix has no batch dimension */
    hlo_scale_dims(side->mode, lie[0], x->dims[side->row], x->dims[side->k], dims);
    scales = hlo_build_reshape(b, hlo_build_transpose(b, scales, order), 3 - one, lie + one);
    scales = hlo_pad_zeros(b, scales, dims);
    const int64_t rows = lie[0] * dims[!one] / 128, steps = dims[2 - one] / 4;
    const int64_t apart[] = {rows, 4, 32, steps, 4};
    scales = hlo_build_reshape(b, scales, 5, apart);
    scales = hlo_build_transpose(b, scales, (int64_t[]){0, 3, 2, 1, 4});
    return hlo_build_reshape(b, scales, 3 - one, dims);
}

/* Compacts scales to one scale for each run of equal elements, and then expands them to the form of
 * the mode: one scale for each row and for each of the mode's blocks along k. */
static hlo_instruction *regular(hlo_rule_env *env, hlo_instruction *scales,
                                const hlo_block_dot *dot, const hlo_block_side *side) {
    const hlo_shape *x = side->shape, *s = scales->shape;
    const hlo_granularity wanted = granularity_of(side);
    hlo_granularity runs;
    int64_t kept[HLO_RULE_ARGS], dims[HLO_RULE_ARGS];
    hlo_granularity_dims(x, &wanted, dims);
    for (int64_t i = 0; i < x->rank; i++) {
        const bool padded = dot->rows_padded && i == side->row;
        int64_t each = padded ? 1 : x->dims[i] / s->dims[i];
        if (i == side->k && dot->block) each = dot->block;
        kept[i] = (x->dims[i] - 1) / each + 1;
        runs.v[i] = kept[i] == 1 ? dims[i] : each / wanted.v[i];
    }
    hlo_module *module = env->context->module;
    const hlo_shape *shape = hlo_shape_array(module, s->type, s->rank, kept);
    scales = hlo_build_prefix(env->build, scales, shape);
    shape = hlo_shape_array(module, s->type, s->rank, dims);
    return !scales || hlo_shape_same_dims(scales->shape, shape)
               ? scales
               : hlo_granularity_expand(env, scales, shape, &runs);
}

bool hlo_block_dot_operand(hlo_rule_env *env, const hlo_instruction *instr, bool b,
                           hlo_scale_mode mode, bool scales, hlo_instruction **out) {
    hlo_block_dot dot;
    const char *why;
    if (hlo_block_dot_read(instr, &dot)) return false;
    const hlo_scale_mode has = hlo_block_dot_mode(&dot, &why);
    if (has == HLO_SCALE_MODE_COUNT) return hlo_rule_refuse(env, why, instr);
    hlo_instruction *values = hlo_block_values(b ? dot.b : dot.a);
    hlo_block_side side = {.shape = values->shape,
                           .batch = b ? dot.b_batch : dot.a_batch,
                           .k = (b ? dot.b_contracting : dot.a_contracting)->v[0],
                           .mode = mode};
    if (has != mode || side.shape->rank > HLO_RULE_ARGS) return false;
    while (side.row == side.k || hlo_ints_contain(side.batch, side.row)) side.row++;
    hlo_instruction *compact = hlo_block_scale(&dot, b);
    compact = compact ? regular(env, compact, &dot, &side) : hlo_block_ones(env, &side);
    if (!compact) return false;
    *out = scales ? hlo_block_tile(env, compact, &side)
                  : hlo_block_signed(env, values, compact, &side);
    if (!scales && mode == HLO_SCALE_VEC32 && values->shape->type == HLO_TYPE_F4E2M1FN)
        *out = hlo_build_convert(env->build, values, HLO_TYPE_F8E4M3FN);
    return *out != NULL;
}
