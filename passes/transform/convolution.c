/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces convolutions of fp8 values by dots if they are matmuls. In such a convolution, along
 * each dimension, the window has one element, has one position, or its positions do not overlap.
 * Each element of the input is then read at most once. A slice and a reshape divide the dimension
 * into positions and elements of the window; the elements are contracted together with the
 * features. Groups become a batch, if one is large enough for a call without padding.
 *
 * Needs: nothing.
 * Does not change: pinned instructions; fused computations; convolutions with other windows,
 * dilation holes, padding or small groups; convolutions with an operand that does not come from fp8
 * values; dynamic dimensions. Numerics: unchanged, except for the order in which products are
 * summed. Tests: testdata/passes/convolution/ */
#include "ir/kernel/kernel.h"
#include "ir/module/build.h"
#include "passes/analysis/module_facts.h"
#include "passes/passes.h"
#include "passes/verdict/remark.h"

typedef struct convolution {
    hlo_builder build[1];
    hlo_instruction *instr, *input, *kernel;
    uint32_t rank;
    int64_t groups; /* number of groups, into which dimension `grouped` of the input and the output
                     * features of the kernel are divided */
    int64_t grouped;
    int64_t named[3 * HLO_EVAL_MAX_RANK]; /* result of hlo_dim_labels_read() */
    hlo_window windows[HLO_EVAL_MAX_RANK];
} convolution;

static bool read_matmul(hlo_instruction *instr, convolution *c) {
    *c = (convolution){.build = {{.at = instr}},
                       .instr = instr,
                       .input = hlo_instr_operand(instr, 0),
                       .kernel = hlo_instr_operand(instr, 1),
                       .rank = instr->shape->rank};
    const char *labels = hlo_instr_str(instr, HLO_ATTR_DIM_LABELS);
    if (2 * c->rank + 1 > HLO_EVAL_MAX_RANK || !labels ||
        !hlo_dim_labels_read(labels, c->rank, c->named) ||
        hlo_instr_attr(instr, HLO_ATTR_SPARSITY_CONFIG))
        return false;
    const hlo_shape *kernel = c->kernel->shape;
    int64_t summed = kernel->dims[c->named[c->rank]];
    for (uint32_t i = 0; i + 2 < c->rank; i++) {
        const hlo_window w = c->windows[i] = hlo_window_of(instr, i);
        const int64_t n = c->input->shape->dims[c->named[2 + i]],
                      out = instr->shape->dims[c->named[2 * c->rank + 2 + i]];
        const bool one = w.size == 1;
        /* No element may be read twice, and none outside the input. */
        if (w.low > 0 || w.base != 1 || (!one && (w.dilate != 1 || w.reversed)) ||
            (!one && w.size != w.stride && out != 1) || out <= 0 ||
            (out - 1) * w.stride + w.size - w.low > n)
            return false;
        summed *= w.size;
    }
    const int64_t features = hlo_instr_int(instr, HLO_ATTR_FEATURE_GROUP_COUNT, 1),
                  batches = hlo_instr_int(instr, HLO_ATTR_BATCH_GROUP_COUNT, 1);
    c->groups = features * batches;
    c->grouped = c->named[batches == 1];
    if (c->groups == 1) return true;
    /* Only one kind of group is supported, and each group must be large enough for a call. */
    return (features == 1 || batches == 1) && summed >= HLO_MATMUL_ALIGNMENT &&
           kernel->dims[c->named[c->rank + 1]] / c->groups >= HLO_MATMUL_ALIGNMENT;
}

static const hlo_shape *shaped(const convolution *c, hlo_type type, uint32_t rank,
                               const int64_t *dims) {
    return hlo_shape_array(c->instr->parent->module, type, rank, dims);
}

/* The dimensions of an operand of the dot, without dimensions of size 1 that it does not need. */
typedef struct side {
    hlo_instruction *operand;
    uint32_t rank, count;
    int64_t dims[HLO_EVAL_MAX_RANK], contracting[HLO_EVAL_MAX_RANK], batch;
} side;

static void add_groups(const convolution *c, side *s) {
    if (c->groups == 1) return;
    s->batch = s->rank;
    s->dims[s->rank++] = c->groups;
}

/* Divides each spatial dimension of the input into positions and elements of the window. Appends
 * free dimensions to `result`. Sets `at`, by dimension of the input, to the number of the free
 * dimension, or to -1 if it is omitted. */
static side input_side(convolution *c, int64_t *at, side *result) {
    const hlo_shape *input = c->input->shape;
    int64_t window[HLO_EVAL_MAX_RANK] = {0}, of_window[HLO_EVAL_MAX_RANK] = {0};
    int64_t dims[HLO_EVAL_MAX_RANK], slice[3 * HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < c->rank; d++) {
        dims[d] = slice[3 * d + 1] = input->dims[d];
        slice[3 * d] = 0, slice[3 * d + 2] = 1;
    }
    for (uint32_t i = 0; i + 2 < c->rank; i++) { /* slice the elements that the window reads */
        const hlo_window *w = &c->windows[i];
        const int64_t d = c->named[2 + i],
                      out = c->instr->shape->dims[c->named[2 * c->rank + 2 + i]];
        const int64_t step = w->size == 1 && out > 1 ? w->stride : 1;
        window[d] = w->size;
        dims[d] = out * w->size;
        slice[3 * d] = -w->low;
        slice[3 * d + 1] = -w->low + (dims[d] - 1) * step + 1;
        slice[3 * d + 2] = step;
    }
    side s = {.operand = hlo_build_slice(c->build, c->input, shaped(c, input->type, c->rank, dims),
                                         slice)};
    for (uint32_t d = 0; d < c->rank; d++) {
        const bool grouped = d == c->grouped;
        const int64_t size = window[d] ? window[d] : 1,
                      n = s.operand->shape->dims[d] / size / (grouped ? c->groups : 1);
        if (grouped) add_groups(c, &s);
        at[d] = -1;
        of_window[d] = s.rank;
        if (d == c->named[1]) {
            s.contracting[s.count++] = s.rank;
            s.dims[s.rank++] = n;
        } else if (size == 1 || n > 1) {
            at[d] = result->rank;
            of_window[d]++;
            s.dims[s.rank++] = result->dims[result->rank++] = n;
        }
        if (size > 1) s.dims[s.rank++] = size;
    }
    for (uint32_t i = 0; i + 2 < c->rank; i++)
        if (c->windows[i].size > 1) s.contracting[s.count++] = of_window[c->named[2 + i]];
    s.operand = hlo_build_reshape(c->build, s.operand, s.rank, s.dims);
    return s;
}

static side kernel_side(convolution *c, side *result) {
    side s = {.operand = c->kernel};
    const int64_t *named = c->named + c->rank;
    int64_t at[HLO_EVAL_MAX_RANK] = {0};
    bool kept[HLO_EVAL_MAX_RANK];
    for (uint32_t i = 0; i < c->rank; i++) kept[named[i]] = i < 2 || c->windows[i - 2].size > 1;
    for (uint32_t d = 0; d < c->rank; d++) {
        const bool grouped = d == named[1];
        if (grouped) add_groups(c, &s);
        at[d] = s.rank;
        if (kept[d]) s.dims[s.rank++] = c->kernel->shape->dims[d] / (grouped ? c->groups : 1);
    }
    s.contracting[s.count++] = at[named[0]];
    for (uint32_t i = 2; i < c->rank; i++)
        if (kept[named[i]]) s.contracting[s.count++] = at[named[i]];
    result->dims[result->rank++] = c->kernel->shape->dims[named[1]] / c->groups;
    s.operand = hlo_build_reshape(c->build, s.operand, s.rank, s.dims);
    return s;
}

static void replace(hlo_pass_context *context, convolution *c) {
    int64_t at[HLO_EVAL_MAX_RANK], order[HLO_EVAL_MAX_RANK];
    side result = {.rank = 0};
    hlo_instruction *instr = c->instr;
    add_groups(c, &result);
    const side lhs = input_side(c, at, &result), rhs = kernel_side(c, &result);
    hlo_instruction *operands[] = {lhs.operand, rhs.operand};
    hlo_instruction *dot = hlo_instr_new(instr->parent, instr, HLO_OP_DOT,
                                         shaped(c, instr->shape->type, result.rank, result.dims), 2,
                                         operands, instr->name);
    dot->offset = instr->offset;
    if (c->groups != 1) {
        hlo_instr_set_ints(dot, HLO_ATTR_LHS_BATCH_DIMS, 1, &lhs.batch);
        hlo_instr_set_ints(dot, HLO_ATTR_RHS_BATCH_DIMS, 1, &rhs.batch);
    }
    hlo_instr_set_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS, lhs.count, lhs.contracting);
    hlo_instr_set_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS, rhs.count, rhs.contracting);
    const hlo_attr *precision = hlo_instr_attr(instr, HLO_ATTR_OPERAND_PRECISION);
    if (precision) hlo_instr_set_attr(dot, *precision);
    hlo_instr_inherit(dot, instr);
    const int64_t *out = c->named + 2 * (size_t)c->rank;
    uint32_t rank = 0;
    for (uint32_t d = 0; d < c->rank; d++) {
        uint32_t i = 0;
        while (out[i] != d) i++;
        const int64_t from = i == 1 ? result.rank - 1 : at[c->named[i]];
        if (from < 0) continue;
        if (i == 1 && c->groups != 1) order[rank++] = 0;
        order[rank++] = from;
    }
    hlo_instruction *value = hlo_build_transpose(c->build, dot, order);
    if (value->shape != instr->shape)
        value = hlo_build(c->build,
                          hlo_shape_same_dims(value->shape, instr->shape) ? HLO_OP_COPY
                                                                          : HLO_OP_RESHAPE,
                          instr->shape, 1, &value);
    if (value != dot) hlo_instr_inherit(value, instr);
    hlo_remark_follow(context, instr, dot);
    hlo_instr_replace_uses(instr, value);
    hlo_instr_remove(instr);
    context->changes++;
}

static bool is_static(const hlo_instruction *instr) {
    return !instr->shape->dynamic && hlo_shape_count(instr->shape) > 0;
}

hlo_status hlo_pass_convolution(hlo_pass_context *context) {
    hlo_module *module = context->module;
    if (!module->op_counts[HLO_OP_CONVOLUTION]) return HLO_OK;
    const bool *fused = hlo_facts_fused(module, context->scratch);
    const hlo_fp8_reach reach = hlo_facts_fp8_reach(module, context->scratch);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = hlo_facts_has(fused, comp->id) ? NULL : comp->first, *next;
             instr; instr = next) {
            convolution c;
            next = hlo_instr_next(instr);
            if (instr->op != HLO_OP_CONVOLUTION || instr->pin) continue;
            const hlo_instruction *input = hlo_instr_operand(instr, 0),
                                  *kernel = hlo_instr_operand(instr, 1);
            if (hlo_facts_from_fp8(&reach, input) && hlo_facts_from_fp8(&reach, kernel) &&
                is_static(input) && is_static(kernel) && is_static(instr) && read_matmul(instr, &c))
                replace(context, &c);
        }
    return HLO_OK;
}
