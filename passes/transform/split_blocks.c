/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a dot of fp8 values with scales per block of the contracting dimension by a batch of
 * dots, one for each block. The results are added in f32. Block-scaled notation is
 * replaced in the same way. Within a block, each row has one scale, which multiplies the result of
 * the FP8 call. The pass visits dots that have not become calls. It replaces a dot only if FP8
 * saves more time than writing and reading the results of all blocks costs.
 *
 * Needs: dots in canonical form; the rules of phase `rows` must run after this pass.
 * Does not change: pinned instructions; fused computations; dots that cuBLASLt supports with scales
 * per block of 128. Numerics: the sums of the blocks are rounded to f32, like the accumulator.
 * Tests: testdata/passes/split-blocks/ */
#include "ir/module/build.h"
#include "ir/module/undo.h"
#include "matmul/block_scaled.h"
#include "matmul/cost/cost.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/scale_range.h"
#include "passes/analysis/value.h"
#include "passes/builders/scaled_operand.h"
#include "passes/passes.h"
#include "passes/verdict/remark.h"

enum { BLOCK_LEAST = HLO_MATMUL_ALIGNMENT };

/* An operand of a dot: rows, a contracting and possibly a batch dimension, in any order. */
typedef struct side {
    hlo_instruction *operand;
    int64_t along, rows, batch; /* dimension numbers; batch is -1 without a batch dimension */
} side;

static bool read_side(const hlo_instruction *dot, unsigned number, side *out) {
    const hlo_ints *contracting = hlo_dot_contracting(dot, number),
                   *batch = hlo_dot_batch(dot, number);
    *out = (side){.operand = hlo_instr_operand(dot, number), .batch = -1};
    const hlo_shape *shape = out->operand->shape;
    if (batch->count > 1 || shape->rank != 2 + batch->count || shape->dynamic ||
        contracting->count != 1 || hlo_shape_count(shape) < 1)
        return false;
    out->along = contracting->v[0];
    if (batch->count) out->batch = batch->v[0];
    while (out->rows == out->along || out->rows == out->batch) out->rows++;
    return true;
}

/* True if both operands are fp8 values times one scale for each row and each `along` elements, and
 * a call supports this pair of types. */
static bool both_have(const hlo_instruction *dot, int64_t along) {
    const hlo_type a = hlo_scaled_operand_in_blocks(dot, 0, along),
                   b = hlo_scaled_operand_in_blocks(dot, 1, along);
    return a != HLO_TYPE_INVALID && b != HLO_TYPE_INVALID &&
           !(a == HLO_TYPE_F8E5M2 && b == HLO_TYPE_F8E5M2);
}

/* Divides the contracting dimension into blocks; dimension `along` then numbers the blocks. */
static hlo_instruction *divided(hlo_builder *b, const side *s, int64_t blocks) {
    const hlo_shape *shape = s->operand->shape;
    int64_t dims[4];
    for (uint32_t d = 0; d < shape->rank; d++) dims[d + (d > s->along)] = shape->dims[d];
    dims[s->along] = blocks;
    dims[s->along + 1] = shape->dims[s->along] / blocks;
    return hlo_build_reshape(b, s->operand, shape->rank + 1, dims);
}

/* Sets the batch dimensions of one side of the batched dot `parts`: the operand's own batch
 * dimension, and the blocks. */
static void set_batch(hlo_instruction *parts, hlo_attr_id attr, const side *s) {
    const int64_t both[] = {s->batch + (s->batch > s->along), s->along};
    hlo_instr_set_ints(parts, attr, s->batch < 0 ? 1 : 2, s->batch < 0 ? both + 1 : both);
}

static void split(hlo_pass_context *context, hlo_instruction *dot, const side *lhs, const side *rhs,
                  int64_t blocks, hlo_computation **add) {
    hlo_module *module = context->module;
    const hlo_shape *shape = lhs->operand->shape;
    const bool batched = lhs->batch >= 0;
    const int64_t dims[] = {batched ? shape->dims[lhs->batch] : 1, blocks, shape->dims[lhs->rows],
                            rhs->operand->shape->dims[rhs->rows]};
    hlo_builder b = {.at = dot};
    hlo_instruction *operands[] = {divided(&b, lhs, blocks), divided(&b, rhs, blocks)};
    hlo_instruction *parts =
        hlo_build(&b, HLO_OP_DOT,
                  hlo_shape_array(module, HLO_TYPE_F32, 3 + batched, dims + !batched), 2, operands);
    hlo_instr_copy_attrs(parts, dot);
    hlo_instr_drop_attr(parts, HLO_ATTR_SHARDING);
    set_batch(parts, HLO_ATTR_LHS_BATCH_DIMS, lhs);
    set_batch(parts, HLO_ATTR_RHS_BATCH_DIMS, rhs);
    hlo_instr_set_ints(parts, HLO_ATTR_LHS_CONTRACTING_DIMS, 1, &(int64_t){lhs->along + 1});
    hlo_instr_set_ints(parts, HLO_ATTR_RHS_CONTRACTING_DIMS, 1, &(int64_t){rhs->along + 1});
    hlo_instruction *sum =
        hlo_build_reduce(&b, HLO_OP_ADD, parts, hlo_shape_retype(module, dot->shape, HLO_TYPE_F32),
                         1, &(int64_t){batched}, add);
    sum = hlo_build_convert(&b, sum, dot->shape->type);
    hlo_instr_inherit(sum, dot);
    hlo_remark_follow(context, dot, parts);
    hlo_instr_replace_uses(dot, sum);
    hlo_instr_remove(dot);
    context->changes++;
}

/* Counts the elements to transpose: a call requires the contracting dimension last. */
static double transposed(const side *s) {
    return s->along > s->rows ? 0 : (double)hlo_shape_count(s->operand->shape);
}

typedef struct decision {
    enum { LEAVE, TOO_COSTLY, AS_ROWS, SPLIT } what; /* AS_ROWS: the rules of `rows` apply */
    side lhs, rhs;
    int64_t blocks;
} decision;

static decision decide(const hlo_pass_context *context, const hlo_instruction *dot) {
    decision d = {.what = LEAVE};
    if (dot->pin || hlo_instr_attr(dot, HLO_ATTR_ALGORITHM) ||
        !hlo_type_is_wide(dot->shape->type) || !read_side(dot, 0, &d.lhs) ||
        !read_side(dot, 1, &d.rhs))
        return d;
    const int64_t k = d.lhs.operand->shape->dims[d.lhs.along];
    const hlo_target *target = context->target;
    if (!hlo_scale_is_moderate(context->scratch, d.lhs.operand) ||
        !hlo_scale_is_moderate(context->scratch, d.rhs.operand))
        return d;
    /* Choose the longest blocks that the scales of both sides allow. */
    const bool whole = both_have(dot, k);
    if (!whole && both_have(dot, BLOCK_LEAST))
        for (int64_t count = 2; count * BLOCK_LEAST <= k && !d.blocks; count++)
            if (k % count == 0 && k / count % BLOCK_LEAST == 0 && both_have(dot, k / count))
                d.blocks = count;
    /* A call may support scales per block of 128 itself, with this or a later toolkit. */
    const bool rows =
        d.blocks ? d.lhs.batch < 0 && target->scale_arrays && both_have(dot, 128) : whole;
    if (rows) d.what = AS_ROWS;
    if (rows || !d.blocks) return d;
    const hlo_matmul_sizes size = {d.lhs.batch < 0 ? 1 : d.lhs.operand->shape->dims[d.lhs.batch],
                                   d.lhs.operand->shape->dims[d.lhs.rows],
                                   d.rhs.operand->shape->dims[d.rhs.rows], k};
    const double moved = transposed(&d.lhs) + transposed(&d.rhs);
    d.what = hlo_cost_gain_of_blocks(size, d.blocks, moved, target) > 1 ? SPLIT : TOO_COSTLY;
    return d;
}

/* Replaces block-scaled notation by a dot that the rules match, or by one dot for each block. */
static void visit_notation(hlo_pass_context *context, hlo_instruction *product,
                           hlo_computation **add) {
    if (product->pin || hlo_remark_kept_wide(context, product)) return;
    hlo_journal_open(hlo_journal_new(context->scratch), context->module);
    hlo_instruction *made = hlo_block_expand_dot(product), *dot = made;
    while (dot && dot->op != HLO_OP_DOT) dot = hlo_instr_operand(dot, 0);
    const decision d = dot ? decide(context, dot) : (decision){.what = LEAVE};
    const bool leaves = d.what != SPLIT && d.what != AS_ROWS;
    if (leaves) hlo_journal_undo(context->module);
    hlo_journal_close(context->module);
    if (leaves) return;
    hlo_instr_replace_uses(product, made);
    hlo_instr_inherit(made, product);
    hlo_remark_follow(context, product, dot);
    hlo_instr_remove(product);
    if (d.what == SPLIT)
        split(context, dot, &d.lhs, &d.rhs, d.blocks, add);
    else
        context->changes++;
}

hlo_status hlo_pass_split_blocks(hlo_pass_context *context) {
    hlo_module *module = context->module;
    const hlo_target *target = context->target;
    if ((!module->op_counts[HLO_OP_DOT] && !hlo_block_any(module)) || !target->fp8 ||
        context->cuda < 12000)
        return HLO_OK;
    hlo_computation *add = NULL;
    const bool *fused = hlo_facts_fused(module, context->scratch);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = hlo_facts_has(fused, comp->id) ? NULL : comp->first, *next;
             instr; instr = next) {
            next = hlo_instr_next(instr);
            const hlo_block_kind kind = hlo_block_kind_of(instr);
            if (kind == HLO_BLOCK_OP_DOT || kind == HLO_BLOCK_SCALED_DOT)
                visit_notation(context, instr, &add);
            if (instr->op != HLO_OP_DOT || instr->operand_count != 2 ||
                hlo_remark_kept_wide(context, instr))
                continue;
            const decision d = decide(context, instr);
            if (d.what == SPLIT) split(context, instr, &d.lhs, &d.rhs, d.blocks, &add);
            if (d.what == TOO_COSTLY)
                hlo_remark_reason(context, instr, HLO_REASON_SCALE_BLOCKS, NULL);
        }
    return HLO_OK;
}
