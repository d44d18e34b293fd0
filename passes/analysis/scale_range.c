/* SPDX-License-Identifier: Apache-2.0 */
/* Computes ranges of the magnitudes of scaled operands and of scales. */
#include "passes/analysis/scale_range.h"

#include <float.h>
#include <math.h>

#include "ir/eval/range.h"
#include "ir/float/float.h"
#include "ir/module/known.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/value.h"

enum { STEP_LIMIT = 256 };

/* A range contains the magnitudes of the elements that are not 0, infinite or NaN. The bits of a
 * range: ZERO: an element may be 0. ENDLESS: an element may be infinite or NaN. FP8: an element may
 * be a scaled fp8 value. */
enum { ZERO = 1, ENDLESS = 2, FP8 = 4 };

static const hlo_range unknown = {.low = 1, .high = 1, .whole = true},
                       anything = {.high = (double)INFINITY, .sources = ZERO | ENDLESS};

typedef struct search {
    hlo_arena *scratch;
    unsigned steps;
    bool scale; /* the value is a scale, so fp8 values in it are evaluated */
} search;

static hlo_range walk(void *arg, const hlo_instruction *value);

static hlo_range of_number(double number) {
    hlo_range r = hlo_range_empty;
    r.sources = number == 0 ? ZERO : !isfinite(number) ? ENDLESS : 0;
    if (!r.sources) r.low = r.high = fabs(number);
    r.whole = !r.sources && number == trunc(number);
    return r;
}

/* Returns the range of an operand of a pad, select or concatenate. A constant NaN, for example as
 * padding, is ignored: its elements are NaN in the graph and in the FP8 call, for any scale. */
static hlo_range walk_part(void *arg, const hlo_instruction *part) {
    double number;
    const bool nan = hlo_known_number_pinned(part, &number) && isnan(number);
    return nan ? hlo_range_empty : walk(arg, part);
}

static hlo_range walk_up(const hlo_instruction *value, search *s) {
    uint32_t index;
    if (s->steps++ >= STEP_LIMIT) return anything;
    if (hlo_is_relu(value, &index)) return walk(s, hlo_instr_operand(value, index));
    switch (value->op) {
    case HLO_OP_MULTIPLY:
    case HLO_OP_DIVIDE: { /* If both operands are fp8, one is a scale that varies. An fp8 divisor is
                           * a scale. */
        hlo_range o[] = {walk(s, hlo_instr_operand(value, 0)),
                         walk(s, hlo_instr_operand(value, 1))};
        const bool divides = value->op == HLO_OP_DIVIDE;
        const unsigned to_zero = o[1].sources & ENDLESS ? ZERO : 0;
        const unsigned to_endless = o[1].sources & ZERO ? ENDLESS : 0;
        if (divides && o[1].sources & FP8) return o[0];
        if (divides) o[1].sources = to_zero | to_endless;
        if (o[0].sources & o[1].sources & FP8) o[o[0].high > o[1].high].high = 1;
        return hlo_range_of_rounded(value, o);
    }
    case HLO_OP_PAD: /* f8e8m0fnu scales in padding multiply only zeros */
        if (value->shape->type == HLO_TYPE_F8E8M0FNU) return walk(s, hlo_instr_operand(value, 0));
        return hlo_range_of_result(value, walk_part, s);
    case HLO_OP_SELECT:
    case HLO_OP_CONCATENATE: return hlo_range_of_result(value, walk_part, s);
    case HLO_OP_CONVERT:
        if (hlo_type_is_fp8_operand(value->shape->type)) break; /* quantized in the module */
        return hlo_range_of_result(value, walk, s);
    case HLO_OP_NEGATE:
    case HLO_OP_ABS:
    case HLO_OP_BROADCAST:
    case HLO_OP_RESHAPE:
    case HLO_OP_TRANSPOSE:
    case HLO_OP_COPY: return walk(s, hlo_instr_operand(value, 0));
    default: break;
    }
    const hlo_type type = value->shape->type;
    const bool fp8 = hlo_type_is_fp8_operand(type);
    /* Evaluate a fixed value: it does not depend on an input and is small enough. */
    int64_t count;
    const hlo_arena_mark mark = hlo_arena_here(s->scratch);
    const double *numbers = hlo_fixed_elements(s->scratch, value, &count);
    double number;
    const bool one = !numbers && hlo_known_number_pinned(value, &number);
    hlo_range r = one ? of_number(number) : hlo_range_empty;
    for (int64_t i = 0; numbers && i < count; i++) r = hlo_range_hull(r, of_number(numbers[i]));
    hlo_arena_release(s->scratch, mark);
    if ((numbers || one) && !(fp8 && r.sources & ENDLESS)) return r;
    if (hlo_instr_moves(value)) return walk(s, hlo_instr_operand(value, 0));
    if (!fp8 || s->scale) return unknown; /* only an operand's fp8 values have a known bound */
    return (hlo_range){.low = 1, .high = hlo_float_max(type), .sources = FP8};
}

static hlo_range walk(void *arg, const hlo_instruction *value) {
    const hlo_instruction *from = hlo_handed_on(value, NULL);
    if (from) value = from;
    const hlo_type type = value->shape->type;
    hlo_range r = walk_up(value, arg);
    if (!hlo_type_is_float(type) || r.high < (double)INFINITY) return r;
    r.high = hlo_float_max(type);
    r.sources |= ENDLESS;
    return r;
}

static void count_scale(hlo_range *all, hlo_arena *scratch, const hlo_instruction *scale) {
    search s = {.scratch = scratch, .scale = true};
    if (!scale) return;
    const hlo_range m = walk(&s, scale);
    all->high *= fmax(1, m.high);
    all->low *= fmin(1, m.low);
}

/* Multiplies all->high by the ratio of the operand's largest element to the largest number of its
 * fp8 type, if this ratio exceeds 1. Lowers all->low to the product of the operand's factors,
 * including the factors that multiply the rows of the call's result. */
static void count_operand(hlo_range *all, hlo_arena *scratch, const hlo_instruction *operand,
                          const hlo_instruction *fp8) {
    search s = {.scratch = scratch};
    const hlo_range m = walk(&s, operand);
    all->high *=
        m.sources & ENDLESS ? (double)INFINITY : fmax(1, m.high / hlo_float_max(fp8->shape->type));
    all->low = fmin(all->low, m.low);
}

bool hlo_scales_fit(hlo_arena *scratch, const hlo_instruction *source, const hlo_matmul *before,
                    const hlo_matmul *m) {
    const bool dot = source->op == HLO_OP_DOT;
    hlo_range all = unknown;
    /* Like the graph, the call multiplies only the result by d_scale. d_scale must not be
     * subnormal, and must be finite if the graph divides by it. */
    if (m->d_scale && m->d_scale != before->d_scale) {
        search s = {.scratch = scratch, .scale = true};
        const hlo_range scale = walk(&s, m->d_scale);
        if (scale.sources & ENDLESS || !(scale.low >= (double)FLT_MIN)) return false;
    }
    if (!dot && before->alpha == m->alpha && before->a_scale == m->a_scale &&
        before->b_scale == m->b_scale)
        return true;
    if (!hlo_type_is_fp8(m->a->shape->type) || !hlo_type_is_fp8(m->b->shape->type)) return true;
    count_scale(&all, scratch, m->a_scale);
    count_scale(&all, scratch, m->b_scale);
    if (isfinite((float)m->alpha) && m->alpha != 0) {
        all.high *= fmax(1, fabs(m->alpha));
        all.low *= fmin(1, fabs(m->alpha));
    }
    if (dot) {
        all.high = 1;
        count_operand(&all, scratch, hlo_instr_operand(source, 0), m->a);
        count_operand(&all, scratch, hlo_instr_operand(source, 1), m->b);
    }
    const double sum = (double)hlo_matmul_extents(m).k * hlo_float_max(m->a->shape->type) *
                       hlo_float_max(m->b->shape->type);
    return isfinite((float)(sum * all.high)) && all.low >= (double)FLT_MIN;
}

bool hlo_scale_is_moderate(hlo_arena *scratch, const hlo_instruction *scale) {
    search s = {.scratch = scratch, .scale = true};
    const hlo_range m = walk(&s, scale);
    return !(m.sources & (ZERO | ENDLESS)) && m.low >= 0x1p-24 && m.high <= 0x1p24;
}
