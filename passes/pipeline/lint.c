/* SPDX-License-Identifier: Apache-2.0 */
/* Lints: finds likely mistakes with the scales of a program, independent of verdicts. All lints
 * except one analyze a copy of the parsed module. In this copy, calls are inlined and equal values
 * are merged, so that a scale that the program computes twice is one value. The last lint analyzes
 * the final module.
 *
 * Tests: testdata/tool/lint.hlo, testdata/tool/lint-blocks.hlo, the pages lint-*.md */
#include <math.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/module/known.h"
#include "matmul/block_scaled.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/value.h"
#include "passes/builders/granularity.h"
#include "passes/passes.h"
#include "passes/pipeline/pipeline.h"
#include "passes/verdict/report.h"

typedef struct linting {
    hlo_pass_context *context; /* context of the run, whose report receives the lints */
    const bool *needed;
    const hlo_instruction **scale_of; /* by id of an fp8 value: the factor that dequantizes it */
    uint32_t *reached;                /* by id: the last search that reached the instruction */
    uint32_t searches;
} linting;

static const char *name_of(const linting *l, const hlo_instruction *instr) {
    return hlo_report_input_name(l->context->report, instr);
}

static bool is_wide(const hlo_instruction *instr) {
    return hlo_type_is_float(instr->shape->type) && !hlo_type_is_fp8_value(instr->shape->type);
}

/* Follows movement and converts between wide types from a value to its source. */
static const hlo_instruction *source_of(const hlo_instruction *value) {
    for (const hlo_instruction *from;; value = from) {
        const bool converts =
            value->op == HLO_OP_CONVERT && is_wide(value) && is_wide(hlo_instr_operand(value, 0));
        from = hlo_handed_on(value, NULL);
        if (from) continue;
        if (!converts && !hlo_instr_moves_by(value, HLO_MOVES_DIMENSIONS)) return value;
        from = hlo_instr_operand(value, 0);
    }
}

/* Returns the scalar that the value repeats, or NULL. */
static const hlo_instruction *splat_of(const hlo_instruction *value) {
    const hlo_instruction *source = source_of(value);
    return hlo_shape_count(source->shape) == 1 ? source : NULL;
}

/* ----------------------------------------------------------------------- parts of quantizations */

typedef struct clamp {
    const hlo_instruction *value;
    double low, high;
} clamp;

/* Reads clamp(low, x, high), or minimum and maximum in either order, with constant bounds. */
static bool read_clamp(const hlo_instruction *instr, clamp *out) {
    if (instr->op == HLO_OP_CLAMP) {
        out->value = hlo_instr_operand(instr, 1);
        return hlo_known_number(hlo_instr_operand(instr, 0), &out->low) &&
               hlo_known_number(hlo_instr_operand(instr, 2), &out->high);
    }
    if (instr->op != HLO_OP_MINIMUM && instr->op != HLO_OP_MAXIMUM) return false;
    hlo_op other = instr->op == HLO_OP_MINIMUM ? HLO_OP_MAXIMUM : HLO_OP_MINIMUM;
    double bounds[2];
    for (int outer = 0; outer < 2; outer++) {
        const hlo_instruction *inner = hlo_instr_operand(instr, (uint32_t)(1 - outer));
        if (!hlo_known_number(hlo_instr_operand(instr, (uint32_t)outer), &bounds[0]) ||
            inner->op != other)
            continue;
        for (uint32_t side = 0; side < 2; side++) {
            if (!hlo_known_number(hlo_instr_operand(inner, side), &bounds[1])) continue;
            bool minimum = instr->op == HLO_OP_MINIMUM;
            *out = (clamp){hlo_instr_operand(inner, 1 - side), bounds[minimum], bounds[!minimum]};
            return true;
        }
    }
    return false;
}

typedef struct scaling {
    const hlo_instruction *value, *factor; /* `factor` is a scalar */
    bool divides;
} scaling;

/* Replaces a factor 1/y by the divisor y, and a divisor 1/y by the factor y. */
static void invert_reciprocal(scaling *s) {
    double number;
    while (s->factor->op == HLO_OP_DIVIDE &&
           hlo_known_number(hlo_instr_operand(s->factor, 0), &number) && number == 1) {
        s->factor = source_of(hlo_instr_operand(s->factor, 1));
        s->divides = !s->divides;
    }
}

/* Reads a product of x and a scalar, or a quotient of x by a scalar. */
static bool read_scaling(const hlo_instruction *instr, scaling *out) {
    if (instr->op != HLO_OP_MULTIPLY && instr->op != HLO_OP_DIVIDE) return false;
    const hlo_instruction *left = hlo_instr_operand(instr, 0), *right = hlo_instr_operand(instr, 1);
    *out = (scaling){left, splat_of(right), instr->op == HLO_OP_DIVIDE};
    if (!out->factor && !out->divides) *out = (scaling){right, splat_of(left), false};
    if (out->factor) invert_reciprocal(out);
    return out->factor;
}

static bool is_quantize(const hlo_instruction *instr) {
    return instr->op == HLO_OP_CONVERT && hlo_type_is_fp8_value(instr->shape->type) &&
           is_wide(hlo_instr_operand(instr, 0)) && hlo_shape_count(instr->shape) != 1;
}

static bool is_dequantize(const hlo_instruction *instr) {
    return instr->op == HLO_OP_CONVERT && is_wide(instr) &&
           hlo_type_is_fp8_value(hlo_instr_operand(instr, 0)->shape->type) &&
           hlo_shape_count(instr->shape) != 1;
}

/* The parts of a quantization: the clamp and the scale, if any, and the value before both. */
typedef struct quantize {
    const hlo_instruction *rounded;
    bool clamped, scaled;
    clamp clamp;
    scaling scaling;
} quantize;

static quantize read_quantize(const hlo_instruction *instr) {
    quantize q = {.rounded = source_of(hlo_instr_operand(instr, 0))};
    q.clamped = read_clamp(q.rounded, &q.clamp);
    const hlo_instruction *scaled = q.clamped ? source_of(q.clamp.value) : q.rounded;
    q.scaled = read_scaling(scaled, &q.scaling);
    return q;
}

/* ----------------------------------------------------------------------- scales of other values */

enum { MAX_SEARCH = 512, SCALAR_STEPS = 16 };

static bool is_maximum(const hlo_instruction *reduce) {
    const hlo_computation *f =
        reduce->op == HLO_OP_REDUCE ? hlo_instr_comp(reduce, HLO_ATTR_TO_APPLY) : NULL;
    return f && f->root && f->root->op == HLO_OP_MAXIMUM && reduce->operand_count == 2;
}

static const hlo_instruction *magnitude_of(const hlo_instruction *value) {
    const hlo_instruction *source = source_of(value);
    return source->op == HLO_OP_ABS ? source_of(hlo_instr_operand(source, 0)) : source;
}

/* Returns the only operand that is not a known number; NULL unless there is exactly one. */
static const hlo_instruction *only_operand(const hlo_instruction *value) {
    const hlo_instruction *only = NULL;
    double number;
    for (uint32_t i = value->op == HLO_OP_SELECT; i < value->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(value, i);
        if (hlo_known_number(operand, &number)) continue;
        if (only) return NULL;
        only = operand;
    }
    return only;
}

/* Returns the maximum reduce that a scale is computed from, together with constants only. Returns
 * NULL unless there is exactly one such reduce. */
static const hlo_instruction *amax_of_scale(const hlo_instruction *scale) {
    for (int step = 0; scale && step < SCALAR_STEPS; step++) {
        scale = source_of(scale);
        if (is_maximum(scale)) return scale;
        scale = hlo_op_is(scale->op, HLO_ELEMENTWISE) ? only_operand(scale) : NULL;
    }
    return NULL;
}

/* Marks `value` and the arrays from which it is computed. Returns the first of these values that
 * search number `other` marked earlier, `value` if there are too many arrays, or NULL. */
static const hlo_instruction *mark_sources(linting *l, const hlo_instruction *value,
                                           uint32_t other) {
    const hlo_instruction *list[MAX_SEARCH] = {value};
    const uint32_t search = ++l->searches;
    for (uint32_t i = 0, count = 1; i < count; i++) {
        for (uint32_t o = 0; o < list[i]->operand_count; o++) {
            const hlo_instruction *operand = hlo_instr_operand(list[i], o);
            double number;
            if (other && l->reached[operand->id] == other) return operand;
            if (l->reached[operand->id] == search || hlo_known_number(operand, &number)) continue;
            if (hlo_shape_is_array(operand->shape) && hlo_shape_count(operand->shape) == 1)
                continue;
            if (count == MAX_SEARCH) return value;
            l->reached[operand->id] = search;
            list[count++] = operand;
        }
    }
    l->reached[value->id] = search;
    return NULL;
}

/* ---------------------------------------------------------------------------------- lost scales */

/* True if a quantization rounds the value, possibly after a clamp. */
static bool is_rounded(const linting *l, const hlo_instruction *value, int depth) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        clamp c;
        if (!l->needed[user->id]) continue;
        if (is_quantize(user)) return true;
        bool passes = source_of(user) == source_of(value) || read_clamp(user, &c) ||
                      user->op == HLO_OP_MINIMUM || user->op == HLO_OP_MAXIMUM;
        if (passes && depth && is_rounded(l, user, depth - 1)) return true;
    }
    return false;
}

/* True if the scale is only used to quantize. Follows values that are computed from the scale and
 * constants, and ignores instructions that are not needed. */
static bool only_quantizes(const linting *l, const hlo_instruction *scale, int depth) {
    double number;
    scaling s, by = {.factor = splat_of(scale)};
    if (scale->parent->root == scale) return false;
    if (by.factor) invert_reciprocal(&by);
    for (const hlo_use *use = scale->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        if (!l->needed[user->id]) continue;
        if (read_scaling(user, &s) && s.factor == by.factor &&
            !hlo_known_number(s.value, &number) && hlo_shape_count(user->shape) != 1) {
            if (!is_rounded(l, user, SCALAR_STEPS)) return false;
            continue;
        }
        if (user->op != HLO_OP_CONVERT && !hlo_instr_moves(user) && !only_operand(user))
            return false;
        if (!depth || !only_quantizes(l, user, depth - 1)) return false;
    }
    return true;
}

/* True if the value has uses other than movement and conversion. Ignores an amax scale that
 * multiplies the result of a dot, because that scale belongs to the other operand. */
static bool is_rescaled(const linting *l, const hlo_instruction *value, bool operand, int depth) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        if (!l->needed[user->id] || (!operand && hlo_op_is(user->op, HLO_TRANSCENDENTAL))) continue;
        if (operand && user->op == HLO_OP_DOT) {
            if (!depth || is_rescaled(l, user, false, depth - 1)) return true;
            continue;
        }
        scaling s;
        const bool of_other = !operand && read_scaling(user, &s) &&
                              source_of(s.value) == source_of(value) && amax_of_scale(s.factor);
        const bool passes = user->op == HLO_OP_CONVERT || hlo_instr_moves(user) || of_other ||
                            (!operand && (user->op == HLO_OP_TUPLE || user->op == HLO_OP_ADD));
        if (!passes || !depth || (operand && user->parent->root == user) ||
            is_rescaled(l, user, operand, depth - 1))
            return true;
    }
    return operand && (value->parent->root == value || !value->uses);
}

/* Reports a scale that is computed from the amax of another value, and a scale that quantizes the
 * operand of a dot and has no other use. */
static void check_scale(linting *l, const hlo_instruction *quantized, const scaling *s) {
    enum { STEPS = 8 };
    double number;
    const hlo_instruction *amax = amax_of_scale(s->factor);
    const hlo_instruction *source = amax ? source_of(hlo_instr_operand(amax, 0)) : NULL;
    /* Skip the maximum of a vector of amaxes, which is the amax history of delayed scaling. */
    if (amax && (source->op == HLO_OP_ABS || source->shape->rank != 1)) {
        const hlo_instruction *of = magnitude_of(hlo_instr_operand(amax, 0)),
                              *x = source_of(s->value);
        /* Two values in the entry without a common source array are different. In other
         * computations, two parameters may be the same array. */
        if (x != of && x->parent == x->parent->module->entry && x->parent == of->parent &&
            !mark_sources(l, x, 0) && l->reached[of->id] != l->searches &&
            !mark_sources(l, of, l->searches))
            hlo_remark_lint(l->context, HLO_REASON_LINT_OTHER_AMAX, quantized,
                            "%s is the amax of %s", name_of(l, amax), name_of(l, of));
    }
    if (!hlo_known_number(s->factor, &number) &&
        only_quantizes(l, amax ? amax : s->factor, SCALAR_STEPS) &&
        !is_rescaled(l, quantized, true, STEPS))
        hlo_remark_lint(l->context, HLO_REASON_LINT_UNUSED_SCALE, quantized, "%s",
                        name_of(l, s->factor));
}

/* --------------------------------------------------------------------------------- block scales */

/* The lints of block scales check how many elements share a scale, and along which dimension. */

/* An operand of a dot with its scales. */
typedef struct scaled_side {
    hlo_instruction *operand;
    const hlo_instruction *scale; /* the scales before they are broadcast */
    hlo_type value;
    int64_t along;                   /* the contracting dimension */
    int64_t runs[HLO_LARGEST_RANK];  /* by dimension: number of elements that share a scale */
    bool is_batch[HLO_LARGEST_RANK]; /* by dimension: true for a batch dimension */
} scaled_side;

static bool is_link(const hlo_instruction *value) {
    return value->operand_count && (value->op == HLO_OP_CONVERT || hlo_instr_moves(value));
}

/* Returns the operand that `value` converts, moves or multiplies by a scalar, or NULL. */
static hlo_instruction *beneath(const hlo_instruction *value) {
    if (is_link(value)) return hlo_instr_operand(value, 0);
    if (value->op != HLO_OP_MULTIPLY && value->op != HLO_OP_DIVIDE) return NULL;
    for (int i = value->op == HLO_OP_DIVIDE; i < 2; i++) {
        const hlo_instruction *factor = hlo_instr_operand(value, (uint32_t)i);
        while (is_link(factor)) factor = hlo_instr_operand(factor, 0);
        if (hlo_shape_count(factor->shape) == 1) return hlo_instr_operand(value, (uint32_t)!i);
    }
    return NULL;
}

static hlo_instruction *origin(hlo_instruction *value) {
    for (hlo_instruction *next; (next = beneath(value));) value = next;
    return value;
}

static bool is_narrow(hlo_type type) {
    return hlo_type_is_fp8_operand(type) || type == HLO_TYPE_F4E2M1FN;
}

/* If `value` scales narrow values, returns the operand number of the factor; otherwise -1. */
static int factor_of(const hlo_instruction *value) {
    if (value->op != HLO_OP_MULTIPLY && value->op != HLO_OP_DIVIDE) return -1;
    const int64_t count = hlo_shape_count(value->shape);
    for (int i = value->op == HLO_OP_DIVIDE; i < 2; i++) {
        const hlo_instruction *values = origin(hlo_instr_operand(value, (uint32_t)!i)),
                              *scale = origin(hlo_instr_operand(value, (uint32_t)i));
        if (is_narrow(values->shape->type) && hlo_shape_count(values->shape) >= count &&
            hlo_shape_count(scale->shape) < count && hlo_shape_count(scale->shape) > 1)
            return i;
    }
    return -1;
}

/* Finds the product of an operand with its scales, or returns NULL. Changes `*granularity` to the
 * granularity of the product. */
static hlo_instruction *find_product(hlo_instruction *operand, hlo_granularity *granularity) {
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
static bool shares(const scaled_side *s, uint32_t dim, int64_t length) {
    hlo_granularity granularity;
    for (uint32_t i = 0; i < s->operand->shape->rank; i++) granularity.v[i] = 1;
    granularity.v[dim] = length;
    const hlo_instruction *product = find_product(s->operand, &granularity);
    return product && hlo_granularity_holds(
                          hlo_instr_operand(product, (uint32_t)factor_of(product)), &granularity);
}

/* Returns the block length that tensor cores support for the side's values and scales: the length
 * of the program's blocks must be a multiple of it. Returns 0 if tensor cores do not support the
 * types. */
static int64_t hardware_block(const scaled_side *s) {
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
static bool read_dot_side(const hlo_instruction *dot, unsigned side, scaled_side *s) {
    *s = (scaled_side){.operand = hlo_instr_operand(dot, side)};
    const hlo_shape *shape = s->operand->shape;
    if (hlo_dot_contracting(dot, side)->count != 1 || shape->rank > HLO_RULE_ARGS ||
        shape->dynamic || hlo_shape_count(shape) < 1)
        return false;
    hlo_granularity each;
    for (uint32_t i = 0; i < shape->rank; i++) each.v[i] = 1;
    const hlo_instruction *product = find_product(s->operand, &each);
    if (!product) return false;
    const uint32_t factor = (uint32_t)factor_of(product);
    s->scale = origin(hlo_instr_operand(product, factor));
    s->value = origin(hlo_instr_operand(product, !factor))->shape->type;
    s->along = hlo_dot_contracting(dot, side)->v[0];
    for (uint32_t i = 0; i < shape->rank; i++) {
        s->is_batch[i] = hlo_ints_contain(hlo_dot_batch(dot, side), i);
        /* Find the longest runs that share a scale by trying each prime factor of the dimension's
         * size. Do not separate factors larger than MAX_FACTOR, so that the search is short for
         * every size. */
        enum { MAX_FACTOR = 1 << 16 };
        int64_t run = 1;
        for (int64_t rest = s->operand->shape->dims[i], p = 2; rest > 1; p++) {
            if (p > rest / p || p > MAX_FACTOR) p = rest;
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
static bool read_block_side(const hlo_block_dot *dot, bool b, scaled_side *s) {
    *s = (scaled_side){.operand = hlo_block_values(b ? dot->b : dot->a),
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

static void check_block(hlo_pass_context *context, const hlo_instruction *dot,
                        const scaled_side *s) {
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

/* ---------------------------------------------------------------------------------------- lints */

/* True for the gradient of a conversion from fp8, which JAX converts to fp8 and back. */
static bool is_cotangent(const linting *l, const hlo_instruction *converted) {
    const char *name = hlo_instr_op_name(converted);
    bool any = false;
    if (!name || !strstr(name, "transpose(jvp")) return false;
    for (const hlo_use *use = converted->uses; use; use = use->next) {
        if (!l->needed[use->user->id]) continue;
        if (!is_dequantize(use->user)) return false;
        for (const hlo_use *next = use->user->uses; next; next = next->next)
            if (l->needed[next->user->id] && next->user->op == HLO_OP_DOT) return false;
        any = true;
    }
    return any;
}

/* True for a parameter, tuple element or constant: no other instruction has the same value. */
static bool is_root(const hlo_instruction *scale) {
    return scale->op == HLO_OP_PARAMETER || scale->op == HLO_OP_GET_TUPLE_ELEMENT ||
           scale->op == HLO_OP_CONSTANT;
}

/* False if the module quantized the value by a scale that is not the inverse of `dequantize`. */
static bool undoes(const hlo_instruction *quantized, const scaling *dequantize) {
    if (!is_quantize(quantized)) return true;
    quantize q = read_quantize(quantized);
    const double rounding = 0x1p-6; /* relative error of two roundings to bf16 */
    const bool inverse = q.scaling.divides != dequantize->divides;
    double a, b;
    if (!q.scaled) return true;
    if (hlo_known_number(q.scaling.factor, &a) && hlo_known_number(dequantize->factor, &b))
        return fabs((inverse ? a / b : a * b) - 1) <= rounding;
    if (!inverse) return q.scaling.factor != dequantize->factor;
    return q.scaling.factor == dequantize->factor || !is_root(q.scaling.factor) ||
           !is_root(dequantize->factor);
}

static void check_amax(linting *l, const hlo_instruction *reduce) {
    enum { CLAMP_STEPS = 5 };
    const hlo_instruction *of = magnitude_of(hlo_instr_operand(reduce, 0));
    clamp c;
    scaling s;
    double number;
    if (of->op == HLO_OP_ABS || !is_maximum(reduce)) return;
    bool clamped = read_clamp(of, &c);
    bool scaled = read_scaling(of, &s) && !hlo_known_number(s.factor, &number);
    if ((clamped || scaled) && is_rounded(l, of, CLAMP_STEPS))
        hlo_remark_lint(l->context, HLO_REASON_LINT_AMAX_LATE, reduce, "%s is already %s",
                        name_of(l, of), clamped ? "clamped" : "scaled");
    if (is_dequantize(of) && is_quantize(source_of(hlo_instr_operand(of, 0))))
        hlo_remark_lint(l->context, HLO_REASON_LINT_AMAX_LATE, reduce, "%s is already quantized",
                        name_of(l, of));
}

/* Returns the amax that makes the value 0 if the amax is 0. Returns NULL if there is no such amax,
 * or if a guard prevents this case. */
static const hlo_instruction *amax_behind(const hlo_instruction *value) {
    enum { STEPS = 16 };
    double number;
    for (int step = 0; step < STEPS; step++) {
        value = source_of(value);
        scaling s;
        if (is_maximum(value)) {
            const hlo_instruction *of = source_of(hlo_instr_operand(value, 0));
            bool guarded = hlo_known_number(hlo_instr_operand(value, 1), &number) && number > 0;
            return !guarded && (of->op == HLO_OP_ABS || of->shape->rank == 1) ? value : NULL;
        }
        if (!read_scaling(value, &s) || !hlo_known_number(s.factor, &number)) return NULL;
        value = s.value;
    }
    return NULL;
}

/* True if each use of the quotient, after conversion, movement and constant factors, is a select or
 * an is-finite. */
static bool is_selected(const linting *l, const hlo_instruction *value, int depth) {
    if (value->parent->root == value) return false;
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        double number;
        scaling s;
        if (!l->needed[user->id] || user->op == HLO_OP_SELECT || user->op == HLO_OP_IS_FINITE)
            continue;
        bool passes = source_of(user) == source_of(value) ||
                      (read_scaling(user, &s) && hlo_known_number(s.factor, &number));
        if (!passes || !depth || !is_selected(l, user, depth - 1)) return false;
    }
    return true;
}

static void check_as_read(linting *l, const hlo_instruction *instr) {
    if (is_quantize(instr)) {
        quantize q = read_quantize(instr);
        hlo_type type = instr->shape->type;
        double most = hlo_float_max(type), number;
        if (!q.clamped && is_cotangent(l, instr))
            hlo_remark_lint(l->context, HLO_REASON_LINT_COTANGENT, instr, NULL);
        else if (!q.clamped && !is_dequantize(q.rounded) && q.rounded->op != HLO_OP_CONSTANT &&
                 q.rounded->op != HLO_OP_CLAMP)
            hlo_remark_lint(l->context, HLO_REASON_LINT_NO_CLAMP, instr, NULL);
        if (q.clamped && (q.clamp.high != most || (q.clamp.low != -most && q.clamp.low != 0)))
            hlo_remark_lint(l->context, HLO_REASON_LINT_CLAMP_BOUNDS, q.rounded,
                            "[%g, %g], but the maximum of %s is %g", q.clamp.low, q.clamp.high,
                            hlo_types[type].name, most);
        if (q.scaled && hlo_known_number(q.scaling.factor, &number) && number == 1)
            hlo_remark_lint(l->context, HLO_REASON_LINT_UNIT_SCALE, instr, NULL);
        if (q.scaled) check_scale(l, instr, &q.scaling);
    }
    for (const hlo_use *use = is_dequantize(instr) ? instr->uses : NULL; use; use = use->next) {
        scaling s;
        double number;
        if (!l->needed[use->user->id] || !read_scaling(use->user, &s) ||
            source_of(s.value) != instr)
            continue;
        if (hlo_known_number(s.factor, &number) && number == 1)
            hlo_remark_lint(l->context, HLO_REASON_LINT_UNIT_SCALE, use->user, NULL);
        const hlo_instruction *value = hlo_instr_operand(instr, 0);
        while (hlo_instr_moves_by(value, HLO_MOVES_DIMENSIONS)) value = hlo_instr_operand(value, 0);
        const hlo_instruction **known = &l->scale_of[2 * value->id + s.divides];
        if (!undoes(value, &s))
            hlo_remark_lint(l->context, HLO_REASON_LINT_OTHER_SCALE, use->user,
                            "%s scales the value that %s quantizes", name_of(l, s.factor),
                            name_of(l, value));
        else if (*known && *known != s.factor)
            hlo_remark_lint(l->context, HLO_REASON_LINT_OTHER_SCALE, use->user,
                            "%s here, %s elsewhere", name_of(l, s.factor), name_of(l, *known));
        else
            *known = s.factor;
    }
    if (instr->op == HLO_OP_REDUCE) check_amax(l, instr);
    if (instr->op == HLO_OP_DIVIDE) {
        enum { STEPS = 8 };
        const hlo_instruction *amax = amax_behind(hlo_instr_operand(instr, 1));
        if (amax && !is_selected(l, instr, STEPS))
            hlo_remark_lint(l->context, HLO_REASON_LINT_AMAX_ZERO, instr, "%s", name_of(l, amax));
    }
    scaled_side block;
    hlo_block_dot blocks;
    const bool notation =
        instr->op != HLO_OP_DOT && hlo_block_kind_of(instr) && !hlo_block_dot_read(instr, &blocks);
    for (unsigned b = 0; b < 2 && (notation || instr->op == HLO_OP_DOT); b++)
        if (notation ? read_block_side(&blocks, b, &block) : read_dot_side(instr, b, &block))
            check_block(l->context, instr, &block);
}

/* Reports a conversion to fp8 and back, which XLA's simplification of conversions removes. */
static void check_as_left(linting *l, const hlo_instruction *instr) {
    const hlo_instruction *fp8 = instr->operand_count ? hlo_instr_operand(instr, 0) : NULL;
    if (!is_dequantize(instr) || !is_quantize(fp8) || is_cotangent(l, fp8)) return;
    bool used = false; /* set if a user does not dequantize the value */
    for (const hlo_use *use = fp8->uses; use; use = use->next)
        used |= l->needed[use->user->id] && !is_dequantize(use->user);
    if (!used) hlo_remark_lint(l->context, HLO_REASON_LINT_ROUND_TRIP, instr, NULL);
}

static void check_all(hlo_pass_context *context, const hlo_module *module,
                      void (*check)(linting *l, const hlo_instruction *instr)) {
    hlo_arena *scratch = context->scratch;
    linting l = {.context = context,
                 .needed = hlo_facts_live(module, scratch),
                 .scale_of = hlo_arena_zero(scratch, 2 * module->next_id * sizeof *l.scale_of),
                 .reached = hlo_arena_zero(scratch, module->next_id * sizeof *l.reached)};
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (l.needed[instr->id]) check(&l, instr);
}

hlo_status hlo_lint_as_read(hlo_pass_context *context, hlo_module **copy, hlo_report **unread,
                            jmp_buf *recover) {
    hlo_status status = hlo_module_clone(context->module, copy);
    if (status != HLO_OK) return status;
    hlo_arena_set_recover((*copy)->arena, recover);
    hlo_pass_context inner = *context;
    inner.module = *copy;
    inner.sink = NULL;
    inner.report = *unread = hlo_report_new(context->options->framework_files, recover);
    if (!inner.report) return HLO_OUT_OF_MEMORY;
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    status = hlo_pass_inline(&inner);
    if (status == HLO_OK) status = hlo_pass_cse(&inner);
    if (status == HLO_OK) check_all(context, *copy, check_as_read);
    hlo_arena_release(context->scratch, mark);
    hlo_report_free(*unread);
    *unread = NULL;
    return status;
}

void hlo_lint_as_left(hlo_pass_context *context) {
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    check_all(context, context->module, check_as_left);
    hlo_arena_release(context->scratch, mark);
}
