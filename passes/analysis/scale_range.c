/* Magnitudes of scaled operands and of scales. */
#include "passes/analysis/scale_range.h"

#include <float.h>
#include <math.h>

#include "ir/float/float.h"
#include "ir/module/known.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/fixed.h"
#include "passes/analysis/value.h"

enum { STEP_LIMIT = 256 };

/* Least and largest magnitude of the elements that are neither 0 nor infinite nor NaN. */
typedef struct magnitudes {
    double small, large;
    bool zero, endless; /* elements may be 0; infinite or NaN */
    bool fp8;           /* any fp8 values, scaled */
} magnitudes;

static const magnitudes unknown = {1, 1, false, false, false},
                        none = {(double)INFINITY, 0, false, false, false},
                        anything = {0, (double)INFINITY, true, true, false};

typedef struct search {
    hlo_arena *scratch;
    unsigned steps;
    bool scale; /* the value is a scale: fp8 values in it are computed */
} search;

static magnitudes walk(const hlo_instr *value, search *s);

static magnitudes joined(magnitudes x, magnitudes y) {
    return (magnitudes){fmin(x.small, y.small), fmax(x.large, y.large), x.zero || y.zero,
                        x.endless || y.endless, x.fp8 || y.fp8};
}

static magnitudes of_number(double number) {
    magnitudes m = none;
    m.zero = number == 0;
    m.endless = !isfinite(number);
    if (!m.zero && !m.endless) m.small = m.large = fabs(number);
    return m;
}

/* Finds the magnitudes of a fixed value. False: an input reaches it, or it is too large to compute.
 */
static bool of_fixed(const hlo_instr *value, const search *s, magnitudes *out) {
    int64_t count;
    const hlo_arena_mark mark = hlo_arena_here(s->scratch);
    const double *numbers = hlo_fixed_elements(s->scratch, value, &count);
    double number;
    const bool one = !numbers && hlo_known_number_pinned(value, &number);
    *out = one ? of_number(number) : none;
    for (int64_t i = 0; numbers && i < count; i++) *out = joined(*out, of_number(numbers[i]));
    hlo_arena_release(s->scratch, mark);
    return numbers || one;
}

/* Joins the magnitudes of the operands from number `from` on, of which the value is put together.
 * NaN that fills up is NaN in the call as well. */
static magnitudes of_parts(const hlo_instr *value, uint32_t from, search *s) {
    magnitudes m = none;
    for (uint32_t i = from; i < value->operand_count; i++) {
        double number;
        const hlo_instr *part = hlo_instr_operand(value, i);
        if (!hlo_known_number_pinned(part, &number) || !isnan(number)) m = joined(m, walk(part, s));
    }
    return m;
}

/* Returns the magnitudes of a product. Of two fp8 factors one is a scale, which is no constant. */
static magnitudes of_product(magnitudes x, magnitudes y) {
    const double large = x.fp8 && y.fp8 ? fmax(x.large, y.large) : x.large * y.large;
    return (magnitudes){x.small * y.small, large, x.zero || y.zero, x.endless || y.endless,
                        x.fp8 || y.fp8};
}

static magnitudes of_quotient(magnitudes x, magnitudes y) {
    if (y.fp8) return x;
    return (magnitudes){x.small / y.large, x.large / y.small, x.zero || y.endless,
                        x.endless || y.zero, x.fp8};
}

static magnitudes of_iota(const hlo_instr *value) {
    const int64_t dim = hlo_instr_int(value, HLO_ATTR_IOTA_DIMENSION, 0);
    return (magnitudes){1, fmax(1, (double)value->shape->dims[dim] - 1), true, false, false};
}

static double rounded(hlo_type type, double number) {
    uint64_t cell = 0;
    if (!isfinite(number)) return number;
    hlo_number_store(type, &cell, number);
    return hlo_number_load(type, &cell);
}

/* Finds the magnitudes of a value that unrounded() does not compute from its operands; fp8 values
 * of a matmul are any numbers. */
static magnitudes of_source(const hlo_instr *value, search *s) {
    magnitudes m;
    const hlo_type type = value->shape->type;
    const bool fp8 = hlo_type_is_fp8_operand(type);
    if (of_fixed(value, s, &m) && !(fp8 && m.endless)) return m;
    if (hlo_instr_moves(value)) return walk(hlo_instr_operand(value, 0), s);
    return fp8 && !s->scale ? (magnitudes){1, hlo_float_max(type), false, false, true} : unknown;
}

static magnitudes unrounded(const hlo_instr *value, search *s) {
    magnitudes x, y;
    uint32_t index;
    if (s->steps++ >= STEP_LIMIT) return anything;
    if (hlo_is_relu(value, &index)) return walk(hlo_instr_operand(value, index), s);
    switch (value->op) {
    case HLO_OP_MULTIPLY:
        x = walk(hlo_instr_operand(value, 0), s);
        y = walk(hlo_instr_operand(value, 1), s);
        return of_product(x, y);
    case HLO_OP_DIVIDE:
        x = walk(hlo_instr_operand(value, 0), s);
        return of_quotient(x, walk(hlo_instr_operand(value, 1), s));
    case HLO_OP_IOTA: return of_iota(value);
    case HLO_OP_SELECT: return of_parts(value, 1, s);
    case HLO_OP_PAD: /* what pads powers of two is the scale of zeros */
        if (value->shape->type != HLO_TYPE_F8E8M0FNU) return of_parts(value, 0, s);
        return walk(hlo_instr_operand(value, 0), s);
    case HLO_OP_CONCATENATE: return of_parts(value, 0, s);
    case HLO_OP_CONVERT:
        if (hlo_type_is_fp8_operand(value->shape->type)) break; /* quantized in the module */
        return walk(hlo_instr_operand(value, 0), s);
    case HLO_OP_NEGATE:
    case HLO_OP_ABS:
    case HLO_OP_BROADCAST:
    case HLO_OP_RESHAPE:
    case HLO_OP_TRANSPOSE:
    case HLO_OP_COPY: return walk(hlo_instr_operand(value, 0), s);
    default: break;
    }
    return of_source(value, s);
}

static magnitudes walk(const hlo_instr *value, search *s) {
    const hlo_instr *from = hlo_handed_on(value, NULL);
    if (from) value = from;
    const hlo_type type = value->shape->type;
    magnitudes m = unrounded(value, s);
    if (!hlo_type_is_float(type)) return m;
    m.small = rounded(type, m.small);
    m.large = rounded(type, m.large);
    if (isfinite(m.large)) return m;
    m.large = hlo_float_max(type);
    m.endless = true;
    return m;
}

static void count_scale(magnitudes *all, hlo_arena *scratch, const hlo_instr *scale) {
    search s = {.scratch = scratch, .scale = true};
    if (!scale) return;
    const magnitudes m = walk(scale, &s);
    all->large *= fmax(1, m.large);
    all->small *= fmin(1, m.small);
}

/* Counts a dot's operand: its largest element over that of its fp8 values, where that is more, and
 * the product of its factors, also of those that multiply the call's result row by row. */
static void count_operand(magnitudes *all, hlo_arena *scratch, const hlo_instr *operand,
                          const hlo_instr *fp8) {
    search s = {.scratch = scratch};
    const magnitudes m = walk(operand, &s);
    all->large *= m.endless ? (double)INFINITY : fmax(1, m.large / hlo_float_max(fp8->shape->type));
    all->small = fmin(all->small, m.small);
}

/* True if a scale of the result is no subnormal number, nor infinite where the graph divides: the
 * call multiplies it with the result alone, as the graph does. */
static bool is_result_scale(hlo_arena *scratch, const hlo_instr *scale) {
    search s = {.scratch = scratch, .scale = true};
    const magnitudes m = walk(scale, &s);
    return !m.endless && m.small >= (double)FLT_MIN;
}

bool hlo_scales_fit(hlo_arena *scratch, const hlo_instr *source, const hlo_matmul *before,
                    const hlo_matmul *m) {
    const bool dot = source->op == HLO_OP_DOT;
    magnitudes all = unknown;
    if (m->d_scale && m->d_scale != before->d_scale && !is_result_scale(scratch, m->d_scale))
        return false;
    if (!dot && before->alpha == m->alpha && before->a_scale == m->a_scale &&
        before->b_scale == m->b_scale)
        return true;
    if (!hlo_type_is_fp8(m->a->shape->type) || !hlo_type_is_fp8(m->b->shape->type)) return true;
    count_scale(&all, scratch, m->a_scale);
    count_scale(&all, scratch, m->b_scale);
    if (isfinite((float)m->alpha) && m->alpha != 0) {
        all.large *= fmax(1, fabs(m->alpha));
        all.small *= fmin(1, fabs(m->alpha));
    }
    if (dot) {
        all.large = 1;
        count_operand(&all, scratch, hlo_instr_operand(source, 0), m->a);
        count_operand(&all, scratch, hlo_instr_operand(source, 1), m->b);
    }
    const double sum = (double)hlo_matmul_extents(m).k * hlo_float_max(m->a->shape->type) *
                       hlo_float_max(m->b->shape->type);
    return isfinite((float)(sum * all.large)) && all.small >= (double)FLT_MIN;
}

bool hlo_scale_is_moderate(hlo_arena *scratch, const hlo_instr *scale) {
    search s = {.scratch = scratch, .scale = true};
    const magnitudes m = walk(scale, &s);
    return !m.zero && !m.endless && m.small >= 0x1p-24 && m.large <= 0x1p24;
}
