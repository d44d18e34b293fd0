/* See operand_layout.h. */
#include "passes/builders/operand_layout.h"

#include "passes/builders/granularity.h"
#include "passes/builders/pad_slice.h"

/* One operand of a call, and the order of its dimensions that has the contracting one last. */
typedef struct side {
    hlo_instr *value;
    const hlo_ints *batch, *contracting;
    uint32_t rank;
    int64_t order[HLO_RULE_ARGS];
    bool placed;
} side;

static bool side_of(const hlo_rule_env *env, const hlo_matmul *m, bool b, side *out) {
    *out = (side){.value = b ? m->b : m->a,
                  .batch = b ? m->b_batch : m->a_batch,
                  .contracting = b ? m->b_contracting : m->a_contracting};
    const hlo_shape *shape = out->value->shape;
    if (shape->rank > HLO_RULE_ARGS || out->contracting->count != 1) return false;
    bool taken[HLO_RULE_ARGS] = {false};
    taken[out->contracting->v[0]] = true;
    for (uint32_t i = 0; i < out->batch->count; i++) {
        out->order[out->rank++] = out->batch->v[i];
        taken[out->batch->v[i]] = true;
    }
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!taken[i]) out->order[out->rank++] = i;
    out->order[out->rank++] = out->contracting->v[0];
    out->placed = hlo_matmul_layout_ok(m, &env->context->target, b);
    return true;
}

bool hlo_operand_layout_is_missing(const hlo_rule_env *env, const hlo_matmul *m, bool b) {
    side s;
    return side_of(env, m, b, &s) && !s.placed;
}

int64_t hlo_redundant_transposes(const hlo_rule_env *env, const hlo_matmul *m, bool b) {
    hlo_matmul beneath = *m;
    hlo_instr **operand = b ? &beneath.b : &beneath.a;
    const hlo_ints **batch = b ? &beneath.b_batch : &beneath.a_batch;
    const hlo_ints **contracting = b ? &beneath.b_contracting : &beneath.a_contracting;
    int64_t turns = 0;
    while (turns < HLO_CHAIN_LIMIT && hlo_op_is((*operand)->op, HLO_REORDERS) && !(*operand)->pin) {
        *batch = hlo_matmul_dims_beneath(*operand, *batch);
        *contracting = hlo_matmul_dims_beneath(*operand, *contracting);
        *operand = hlo_instr_operand(*operand, 0);
        if (!hlo_matmul_layout_ok(&beneath, &env->context->target, b)) break;
        turns++;
    }
    return turns;
}

/* Makes a row-major operand: the layout of a call's operand follows its dimensions. */
bool hlo_operand_layout_make(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out) {
    side s;
    if (!side_of(env, m, b, &s)) return false;
    int64_t dims[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < s.rank; i++) dims[i] = s.value->shape->dims[s.order[i]];
    const hlo_shape *shape =
        hlo_shape_array(env->context->module, s.value->shape->type, s.rank, dims);
    bool same = true;
    for (uint32_t i = 0; i < s.rank; i++) same &= s.order[i] == i;
    *out = hlo_rule_new(env, same ? HLO_OP_COPY : HLO_OP_TRANSPOSE, shape, 1, &s.value);
    if (*out && !same) hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, s.rank, s.order);
    return *out != NULL;
}

bool hlo_operand_layout_pad_scale(hlo_rule_env *env, const hlo_matmul *m, bool b, hlo_instr **out) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    int64_t dims[3];
    *out = b ? m->b_scale : m->a_scale;
    hlo_scale_dims(b ? m->b_mode : m->a_mode, size.batch,
                   hlo_size_aligned(b ? size.n : size.m, hlo_matmul_alignment(m, false)),
                   hlo_size_aligned(size.k, hlo_matmul_alignment(m, true)), dims);
    return !*out || !(*out)->shape->rank || hlo_pad_zeros(env, *out, dims, out);
}

/* --------------------------------------------------------------------------------- block-scaled */

hlo_instr *hlo_block_tile(hlo_rule_env *env, hlo_instr *scales, const hlo_block_side *at,
                          hlo_scale_mode mode) {
    const hlo_shape *shape = scales->shape, *x = at->shape;
    int64_t order[HLO_RULE_ARGS], turned[HLO_RULE_ARGS], lie[] = {1, 0, 0}, dims[3];
    uint32_t count = 0;
    for (; count < at->batch->count; count++) {
        order[count] = at->batch->v[count];
        lie[0] *= x->dims[order[count]];
    }
    order[count++] = at->row;
    order[count++] = at->k;
    for (uint32_t i = 0; i < count; i++) turned[i] = shape->dims[order[i]];
    lie[1] = shape->dims[at->row];
    lie[2] = shape->dims[at->k];
    const int64_t along = hlo_scale_modes[mode].along;
    const int64_t kept[] = {lie[0], x->dims[at->row], (x->dims[at->k] + along - 1) / along};
    const uint32_t one = lie[0] == 1; /* matrix, without a batch dimension */
    hlo_module *module = env->context->module;
    hlo_scale_dims(mode, lie[0], kept[1], x->dims[at->k], dims);
    scales = hlo_granularity_make(env, HLO_OP_TRANSPOSE, scales, count, turned, count, order);
    scales = hlo_granularity_make(env, HLO_OP_RESHAPE, scales, 3 - one, lie + one, 0, NULL);
    if (!scales ||
        !hlo_slice_prefix(env, scales, hlo_shape_array(module, shape->type, 3 - one, kept + one),
                          &scales) ||
        !hlo_pad_zeros(env, scales, dims, &scales))
        return NULL;
    const int64_t rows = lie[0] * dims[!one] / 128, steps = dims[2 - one] / 4;
    const int64_t apart[] = {rows, 4, 32, steps, 4}, tiles[] = {rows, steps, 32, 4, 4};
    scales = hlo_granularity_make(env, HLO_OP_RESHAPE, scales, 5, apart, 0, NULL);
    scales = hlo_granularity_make(env, HLO_OP_TRANSPOSE, scales, 5, tiles, 5,
                                  (int64_t[]){0, 3, 2, 1, 4});
    return hlo_granularity_make(env, HLO_OP_RESHAPE, scales, 3 - one, dims, 0, NULL);
}

bool hlo_block_scales(hlo_rule_env *env, const hlo_instr *dot, bool b, hlo_scale_mode mode,
                      hlo_instr **out) {
    hlo_block_dot d;
    if (hlo_block_dot_read(dot, &d) || !hlo_block_dot_fits(&d, mode)) return false;
    hlo_block_side at = {.shape = b ? d.b->shape : d.a->shape,
                         .batch = b ? d.b_batch : d.a_batch,
                         .k = (b ? d.b_contracting : d.a_contracting)->v[0]};
    while (at.row == at.k || hlo_ints_contain(at.batch, at.row)) at.row++;
    *out = hlo_block_tile(env, b ? d.b_scale : d.a_scale, &at, mode);
    return *out != NULL;
}
