/* SPDX-License-Identifier: Apache-2.0 */
/* Lints of scales per block: the number of elements that share a scale, and their dimension.
 *
 * Tests: testdata/tool/lint-blocks.hlo, the pages lint-block-size.md and lint-block-dimension.md */
#include "ir/module/known.h"
#include "matmul/block_scaled.h"
#include "passes/analysis/dequantize.h"
#include "passes/builders/granularity.h"
#include "passes/pipeline/lint.h"
#include "passes/verdict/report.h"

/* An operand of a dot with its scales. */
typedef struct scaled {
    hlo_instr *operand;
    const hlo_instr *scale; /* the scales before they are broadcast */
    hlo_type value;
    int64_t along;                   /* the contracting dimension */
    int64_t runs[HLO_LARGEST_RANK];  /* by dimension: elements that share a scale */
    bool is_batch[HLO_LARGEST_RANK]; /* by dimension */
} scaled;

static bool is_link(const hlo_instr *value) {
    return value->operand_count && (value->op == HLO_OP_CONVERT || hlo_instr_moves(value));
}

/* Returns the value that this one converts, moves or multiplies by a scalar, or NULL. */
static hlo_instr *beneath(const hlo_instr *value) {
    if (is_link(value)) return hlo_instr_operand(value, 0);
    if (value->op != HLO_OP_MULTIPLY && value->op != HLO_OP_DIVIDE) return NULL;
    for (int i = value->op == HLO_OP_DIVIDE; i < 2; i++) {
        const hlo_instr *factor = hlo_instr_operand(value, (uint32_t)i);
        while (is_link(factor)) factor = hlo_instr_operand(factor, 0);
        if (hlo_shape_count(factor->shape) == 1) return hlo_instr_operand(value, (uint32_t)!i);
    }
    return NULL;
}

static hlo_instr *origin(hlo_instr *value) {
    for (hlo_instr *next; (next = beneath(value));) value = next;
    return value;
}

static bool is_narrow(hlo_type type) {
    return hlo_type_is_fp8_operand(type) || type == HLO_TYPE_F4E2M1FN;
}

/* Returns the operand number of the factor or divisor that scales narrow values; -1 if no operand
 * is their scale. */
static int factor_of(const hlo_instr *value) {
    if (value->op != HLO_OP_MULTIPLY && value->op != HLO_OP_DIVIDE) return -1;
    const int64_t count = hlo_shape_count(value->shape);
    for (int i = value->op == HLO_OP_DIVIDE; i < 2; i++) {
        const hlo_instr *values = origin(hlo_instr_operand(value, (uint32_t)!i)),
                        *scale = origin(hlo_instr_operand(value, (uint32_t)i));
        if (is_narrow(values->shape->type) && hlo_shape_count(values->shape) >= count &&
            hlo_shape_count(scale->shape) < count && hlo_shape_count(scale->shape) > 1)
            return i;
    }
    return -1;
}

/* Finds the product of an operand with its scales, or returns NULL; `*granularity` becomes that of
 * the product. */
static hlo_instr *find_product(hlo_instr *operand, hlo_granularity *granularity) {
    while (operand && factor_of(operand) < 0) {
        hlo_granularity below = *granularity;
        if (is_link(operand) && !hlo_granularity_of_operand(operand, granularity, &below))
            return NULL;
        *granularity = below;
        operand = beneath(operand);
    }
    return operand;
}

/* True if runs of `length` elements along the dimension share a scale. */
static bool shares(const scaled *s, uint32_t dim, int64_t length) {
    hlo_granularity granularity;
    for (uint32_t i = 0; i < s->operand->shape->rank; i++) granularity.v[i] = 1;
    granularity.v[dim] = length;
    const hlo_instr *product = find_product(s->operand, &granularity);
    return product && hlo_granularity_holds(
                          hlo_instr_operand(product, (uint32_t)factor_of(product)), &granularity);
}

/* Returns the required divisor of a block's length for tensor cores to multiply such values and
 * scales; 0 if unsupported. */
static int64_t hardware_block(const scaled *s) {
    for (int i = 0; i < HLO_SCALE_MODE_COUNT; i++) {
        const hlo_scale_info *mode = &hlo_scale_modes[i];
        const bool narrow = mode->type == s->scale->shape->type,
                   wide = mode->type == HLO_TYPE_F32 && hlo_type_is_wide(s->scale->shape->type);
        if (mode->along && (narrow || wide))
            return i != HLO_SCALE_VEC16 || s->value == HLO_TYPE_F4E2M1FN ? mode->along : 0;
    }
    return 0;
}

/* Reads an operand of a dot that is narrow values times scales. */
static bool read_dot_side(const hlo_instr *dot, unsigned side, scaled *s) {
    *s = (scaled){.operand = hlo_instr_operand(dot, side)};
    const hlo_shape *shape = s->operand->shape;
    if (hlo_dot_contracting(dot, side)->count != 1 || shape->rank > HLO_RULE_ARGS ||
        shape->dynamic || hlo_shape_count(shape) < 1)
        return false;
    hlo_granularity each;
    for (uint32_t i = 0; i < shape->rank; i++) each.v[i] = 1;
    const hlo_instr *product = find_product(s->operand, &each);
    if (!product) return false;
    const uint32_t factor = (uint32_t)factor_of(product);
    s->scale = origin(hlo_instr_operand(product, factor));
    s->value = origin(hlo_instr_operand(product, !factor))->shape->type;
    s->along = hlo_dot_contracting(dot, side)->v[0];
    for (uint32_t i = 0; i < shape->rank; i++) {
        s->is_batch[i] = hlo_ints_contain(hlo_dot_batch(dot, side), i);
        /* The longest runs that share a scale, by each prime factor of the dimension's size. Larger
         * factors than MOST_FACTOR are not separated: the search must end for every size. */
        enum { MOST_FACTOR = 1 << 16 };
        int64_t run = 1;
        for (int64_t rest = s->operand->shape->dims[i], p = 2; rest > 1; p++) {
            if (p > rest / p || p > MOST_FACTOR) p = rest;
            for (; rest % p == 0; rest /= p)
                if (shares(s, i, run * p)) run *= p;
        }
        s->runs[i] = run;
    }
    /* The last hardware block may be shorter than the others. */
    const int64_t least = hardware_block(s);
    if (least && shares(s, (uint32_t)s->along, least)) s->runs[s->along] = least;
    return true;
}

/* Reads an operand of block-scaled notation. */
static bool read_block_side(const hlo_block_dot *dot, bool b, scaled *s) {
    *s = (scaled){.operand = hlo_block_values(b ? dot->b : dot->a),
                  .scale = hlo_block_scale(dot, b),
                  .along = (b ? dot->b_contracting : dot->a_contracting)->v[0]};
    if (!s->scale) return false;
    const hlo_shape *shape = s->operand->shape, *scales = s->scale->shape;
    s->value = shape->type;
    for (uint32_t i = 0; i < shape->rank; i++) {
        s->is_batch[i] = hlo_ints_contain(b ? dot->b_batch : dot->a_batch, i);
        s->runs[i] = dot->block && i == s->along        ? dot->block
                     : scales->dims[i] < shape->dims[i] ? shape->dims[i] / scales->dims[i]
                                                        : 1;
    }
    return is_narrow(s->value);
}

static void check(hlo_pass_context *context, const hlo_instr *dot, const scaled *s) {
    const hlo_shape *shape = s->operand->shape;
    const char *type = hlo_types[s->scale->shape->type].name;
    const int64_t size = shape->dims[s->along], block = s->runs[s->along],
                  least = hardware_block(s);
    if (block > 1 && block < size && (!least || block % least))
        hlo_remark_lint(context, HLO_REASON_LINT_BLOCK_SIZE, dot,
                        "%s has one %s scale per %lld elements of %s",
                        hlo_report_input_name(context->report, s->scale), type, (long long)block,
                        hlo_types[s->value].name);
    for (uint32_t i = 0; block == 1 && size > 1 && i < shape->rank; i++)
        if (i != s->along && !s->is_batch[i] && s->runs[i] > 1 && s->runs[i] < shape->dims[i])
            hlo_remark_lint(
                context, HLO_REASON_LINT_BLOCK_DIMENSION, dot,
                "%s has one %s scale per %lld elements along dimension %u of %s, but "
                "the matmul contracts dimension %lld",
                hlo_report_input_name(context->report, s->scale), type, (long long)s->runs[i], i,
                hlo_report_input_name(context->report, s->operand), (long long)s->along);
}

void hlo_lint_blocks(hlo_pass_context *context, const hlo_instr *dot) {
    scaled s;
    hlo_block_dot blocks;
    if (dot->op == HLO_OP_DOT) {
        for (unsigned side = 0; side < 2; side++)
            if (read_dot_side(dot, side, &s)) check(context, dot, &s);
    } else if (hlo_block_kind_of(dot) && !hlo_block_dot_read(dot, &blocks)) {
        for (unsigned b = 0; b < 2; b++)
            if (read_block_side(&blocks, b, &s)) check(context, dot, &s);
    }
}
