/* SPDX-License-Identifier: Apache-2.0 */
/* Implements range analysis. computed() is the only list of operations on ranges. */
#include "ir/eval/range.h"

#include <math.h>

#include "ir/eval/apply.h"
#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"

#define ENDLESS ((double)INFINITY)

/* Other executions move an end of a range by less than this fraction, because they divide by an
 * approximation or omit a rounding. */
#define SLACK 0x1p-6
/* Other executions may flush smaller numbers to 0. */
#define SMALLEST 0x1p-126
/* A double represents all integers up to this one. */
#define LARGEST_WHOLE 0x1p53

enum {
    MAX_CONVERTS = 12,     /* maximum number of converts above the operand of a softmax */
    MAX_STEPS = 64,        /* maximum number of instructions from the subtraction to the reduce */
    MAX_SCANNED = 1 << 12, /* maximum number of elements of constants that a search reads */
    MAX_PART = 64,         /* maximum number of elements of a part of a constant */
    MAX_VISITS = 256,      /* maximum number of visits of instructions */
    REMEMBERED = 64        /* number of cached ranges; a power of two */
};

const hlo_range hlo_range_empty = {.low = ENDLESS, .high = -ENDLESS, .whole = true};

static double lower(double x, double y) {
    return HLO_SMALLER(x, y);
}

static double higher(double x, double y) {
    return HLO_LARGER(x, y);
}

static hlo_range of_number(double x) {
    return (hlo_range){x, x, x == trunc(x) && fabs(x) <= LARGEST_WHOLE, 0};
}

static bool is_real(hlo_type type) {
    return hlo_type_is_float(type) || hlo_type_is_integer(type);
}

hlo_range hlo_range_of_type(hlo_type type) {
    hlo_range r = {-ENDLESS, ENDLESS, hlo_type_is_integer(type), ~0u};
    const double count = ldexp(1, hlo_types[type].bits);
    if (type == HLO_TYPE_F8E8M0FNU) r.low = 0x1p-127, r.high = 0x1p127;
    if (!r.whole) return r;
    r.low = hlo_types[type].class == HLO_CLASS_SIGNED ? -count / 2 : 0;
    r.high = r.low + count - 1;
    return r;
}

hlo_range hlo_range_hull(hlo_range x, hlo_range y) {
    return (hlo_range){lower(x.low, y.low), higher(x.high, y.high), x.whole && y.whole,
                       x.sources | y.sources};
}

/* Returns the part of `r` that `type` can represent. If integers may wrap, returns the whole range
 * of the type. */
static hlo_range in_type(hlo_type type, hlo_range r) {
    hlo_range all = hlo_range_of_type(type);
    all.sources = r.sources;
    if (all.whole && !(r.whole && r.low >= all.low && r.high <= all.high)) return all;
    r.low = higher(r.low, all.low);
    r.high = lower(r.high, all.high);
    return r;
}

hlo_range hlo_range_of_constant(const hlo_instruction *constant, int64_t *budget) {
    const hlo_literal *literal = constant->u.literal;
    const hlo_type type = constant->shape->type;
    hlo_range r = hlo_range_empty, all = hlo_range_of_type(type);
    all.sources = 0;
    if (!is_real(type) || !literal->data) return all;
    int64_t count = hlo_shape_count(constant->shape);
    if (count > *budget && hlo_literal_is_splat(literal)) count = 1;
    if (count > *budget) return all;
    *budget -= count;
    for (int64_t i = 0; i < count; i++) {
        const char *element = (const char *)literal->data + i * hlo_types[type].bytes;
        const double x = hlo_number_load(type, element);
        if (isnan(x)) return all;
        r = hlo_range_hull(r, of_number(x));
    }
    return in_type(type, r);
}

/* Rounds a number to a float type. Returns `instead` if the result is NaN. */
static double nearest(hlo_type type, double number, double instead) {
    uint64_t cell = 0;
    if (isinf(number)) return number;
    hlo_number_store(type, &cell, number);
    const double result = hlo_number_load(type, &cell);
    return isnan(result) ? instead : result;
}

/* Rounds the elements of `r` to `type`. `slack` is not 0 if the elements are results of an
 * operation. */
static hlo_range rounded(hlo_type type, hlo_range r, double slack) {
    const double most = fmax(fabs(r.low), fabs(r.high));
    if (!hlo_type_is_float(type) || r.low > r.high) return r;
    if (r.whole && type != HLO_TYPE_F8E8M0FNU && most <= hlo_float_max(type) &&
        most <= ldexp(1, hlo_float_precision(type)))
        return r;
    const double low = r.low * (r.low > 0 ? 1 - slack : 1 + slack);
    const double high = r.high * (r.high < 0 ? 1 - slack : 1 + slack);
    r.low = nearest(type, low, -ENDLESS);
    r.high = nearest(type, high, ENDLESS);
    if (slack > 0) r.low = lower(r.low, low), r.high = higher(r.high, high);
    if (r.low > 0 && r.low < SMALLEST) r.low = 0;
    if (r.high < 0 && r.high > -SMALLEST) r.high = -0.0;
    r.whole = false;
    return r;
}

/* -------------------------------------------------------------------------------------- softmax */

/* Returns the source of a value, skipping a few conversions. */
static const hlo_instruction *source_of(const hlo_instruction *instr) {
    for (int i = 0; i < MAX_CONVERTS && instr->op == HLO_OP_CONVERT; i++)
        instr = hlo_instr_operand(instr, 0);
    return instr;
}

/* Returns the source of a value, skipping conversions to floats of more bits: these change no
 * element. */
static const hlo_instruction *exact_source_of(const hlo_instruction *instr) {
    while (instr->op == HLO_OP_CONVERT) {
        const hlo_instruction *from = hlo_instr_operand(instr, 0);
        const hlo_type type = from->shape->type, to = instr->shape->type;
        if (!hlo_type_is_float(type) || !hlo_type_is_float(to) || hlo_types[to].bits < 16 ||
            hlo_types[to].bits <= hlo_types[type].bits ||
            (type == HLO_TYPE_F8E8M0FNU && to == HLO_TYPE_F16))
            break;
        instr = from;
    }
    return instr;
}

/* The largest elements along dimensions of an array, or an upper bound. */
typedef struct largest {
    const hlo_instruction *of; /* the array whose elements are compared */
    const hlo_ints *dims;      /* the dimensions along which the elements are compared */
    bool exact;                /* true for the largest elements, false for an upper bound */
    int steps;                 /* remaining number of search steps */
} largest;

static bool is_least(const hlo_instruction *instr) {
    double number;
    return hlo_known_number(instr, &number) && number == -(double)INFINITY;
}

/* True if each element of `m` is at least the largest of the corresponding elements of the array.
 * `to` maps the dimensions of `m` to those of the array. */
static bool is_largest(const hlo_instruction *m, const int64_t *to, largest *l) {
    int64_t own[HLO_EVAL_MAX_RANK];
    if (!l->steps) return false;
    l->steps--;
    m = exact_source_of(m);
    if (m->op == HLO_OP_REDUCE) {
        /* Match a reduce; `to` maps its dimensions to those of the array. */
        const hlo_instruction *x = hlo_instr_operand(m, 0);
        if (m->operand_count != 2 || exact_source_of(x) != l->of ||
            hlo_region_simple(hlo_instr_comp(m, HLO_ATTR_TO_APPLY)) != HLO_OP_MAXIMUM)
            return false;
        l->dims = hlo_instr_ints(m, HLO_ATTR_DIMENSIONS);
        l->exact = l->exact && is_least(hlo_instr_operand(m, 1));
        for (uint32_t d = 0, kept = 0; d < x->shape->rank; d++) {
            if (hlo_ints_contain(l->dims, d)) continue;
            if (to[kept++] != d && x->shape->dims[d] != 1) return false;
        }
        return true;
    }
    const hlo_instruction *from = m->operand_count ? hlo_instr_operand(m, 0) : m;
    if (from->shape->rank > HLO_EVAL_MAX_RANK) return false;
    if (m->op == HLO_OP_MAXIMUM) {
        const hlo_instruction *other = hlo_instr_operand(m, 1);
        const bool exact = l->exact;
        l->exact = exact && is_least(other);
        if (is_largest(from, to, l)) return true;
        l->exact = exact && is_least(from);
        return is_largest(other, to, l);
    }
    hlo_index_map map;
    if (!hlo_index_map_first(m, &map) || map.from != from) return false;
    for (uint32_t d = 0; d < from->shape->rank; d++) {
        int64_t dim;
        if (!hlo_index_dim(&map, d, &dim)) return false;
        own[d] = dim < 0 ? -1 : to[dim];
    }
    return is_largest(from, own, l);
}

/* True for x - max(x), as in softmax. Its elements are at most 0, and one of them is 0 if the
 * maximum is exact. */
static bool is_below_largest(const hlo_instruction *instr, largest *out) {
    int64_t to[HLO_EVAL_MAX_RANK];
    if (instr->op != HLO_OP_SUBTRACT || instr->shape->rank > HLO_EVAL_MAX_RANK) return false;
    for (uint32_t d = 0; d < instr->shape->rank; d++) to[d] = d;
    *out = (largest){
        .of = exact_source_of(hlo_instr_operand(instr, 0)), .exact = true, .steps = MAX_STEPS};
    return is_largest(hlo_instr_operand(instr, 1), to, out);
}

/* True if every sum of the reduce has a term that is 1, as in softmax. */
static bool sums_softmax(const hlo_instruction *reduce) {
    const hlo_instruction *exp = source_of(hlo_instr_operand(reduce, 0));
    const hlo_ints *dims = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
    largest l;
    if (exp->op != HLO_OP_EXP || !is_below_largest(source_of(hlo_instr_operand(exp, 0)), &l) ||
        !l.exact)
        return false;
    for (uint32_t i = 0; i < l.dims->count; i++)
        if (!hlo_ints_contain(dims, l.dims->v[i])) return false;
    return hlo_shape_count(exp->shape) > 0;
}

/* ----------------------------------------------------------------------------------- operations */

static hlo_range between(double low, double high, hlo_range of) {
    return (hlo_range){low, high, false, of.sources};
}

static bool has_minus_zero(hlo_range x) {
    return signbit(x.low) && x.high >= 0;
}

/* Returns the range of the larger of two elements; for 0 and -0, either may be the result. */
static hlo_range larger(hlo_range x, hlo_range y) {
    hlo_range r = hlo_range_hull(x, y);
    r.low = fmax(x.low, y.low);
    if (r.low == 0 && (has_minus_zero(x) || has_minus_zero(y))) r.low = -0.0;
    return r;
}

static hlo_range negated(hlo_range x) {
    return (hlo_range){-x.high, -x.low, x.whole, x.sources};
}

static hlo_range smaller(hlo_range x, hlo_range y) {
    return negated(larger(negated(x), negated(y)));
}

static hlo_range magnitude(hlo_range x) {
    const double least = fmin(fabs(x.low), fabs(x.high)), most = fmax(fabs(x.low), fabs(x.high));
    return (hlo_range){!signbit(x.low) == !signbit(x.high) ? least : 0, most, x.whole, x.sources};
}

/* Returns the range of an exact result of arithmetic on `x` and `y`. The range is integral only if
 * its ends are exact. */
static hlo_range exact(double low, double high, hlo_range x, hlo_range y) {
    hlo_range r = hlo_range_hull(x, y);
    if (x.low > x.high || y.low > y.high) return between(ENDLESS, -ENDLESS, r);
    r.low = isnan(low) ? -ENDLESS : low;
    r.high = isnan(high) ? ENDLESS : high;
    r.whole &= fmax(fabs(low), fabs(high)) <= LARGEST_WHOLE;
    return r;
}

static hlo_range sum(hlo_range x, hlo_range y) {
    return exact(x.low + y.low, x.high + y.high, x, y);
}

/* Multiplies two bounds. The product of 0 and infinity is 0, although it is NaN for elements. */
static double times(double x, double y) {
    const double z = x * y;
    return isnan(z) ? copysign(0, x) * copysign(1, y) : z;
}

static hlo_range product(hlo_range x, hlo_range y) {
    const double a = times(x.low, y.low), b = times(x.low, y.high), c = times(x.high, y.low),
                 d = times(x.high, y.high);
    return exact(lower(lower(a, b), lower(c, d)), higher(higher(a, b), higher(c, d)), x, y);
}

/* Computes x >> y, for a y that is the same for all elements. */
static hlo_range shifted(hlo_type type, bool logical, hlo_range x, hlo_range y) {
    hlo_range r = hlo_range_hull(x, y);
    const int bits = hlo_types[type].bits, by = y.low >= 0 && y.low < bits ? (int)y.low : 0;
    const bool is_signed = hlo_types[type].class == HLO_CLASS_SIGNED;
    if (logical && x.low < 0) x.low = 0, x.high = ldexp(1, bits) - 1;
    r.low = floor(ldexp(x.low, -by));
    r.high = floor(ldexp(x.high, -by));
    /* An arithmetic shift treats the high bit of an unsigned integer as a sign. */
    r.whole = y.low == y.high && y.low >= 0 && y.low < bits &&
              (logical || is_signed || x.high < ldexp(1, bits - 1));
    return r;
}

/* Computes the range of a result, before integers wrap. */
static hlo_range computed(const hlo_instruction *instr, const hlo_range *o, double slack) {
    const hlo_type type = instr->shape->type;
    const bool square =
        instr->operand_count == 2 && hlo_instr_operand(instr, 0) == hlo_instr_operand(instr, 1);
    switch (instr->op) {
    case HLO_OP_IOTA: {
        const int64_t dim = hlo_instr_int(instr, HLO_ATTR_IOTA_DIMENSION, 0);
        return rounded(type, (hlo_range){0, (double)(instr->shape->dims[dim] - 1), true, 0}, 0);
    }
    case HLO_OP_CLAMP: return smaller(larger(o[1], o[0]), o[2]);
    case HLO_OP_MAXIMUM: return larger(o[0], o[1]);
    case HLO_OP_MINIMUM: return smaller(o[0], o[1]);
    case HLO_OP_SELECT: return hlo_range_hull(o[1], o[2]);
    case HLO_OP_PAD: return hlo_range_hull(o[0], o[1]);
    case HLO_OP_CONCATENATE: return o[0];
    case HLO_OP_ADD: return rounded(type, sum(o[0], o[1]), slack);
    case HLO_OP_SUBTRACT: {
        largest l;
        hlo_range r = sum(o[0], negated(o[1]));
        if (hlo_type_is_float(instr->shape->type) && is_below_largest(instr, &l))
            r.high = fmin(r.high, 0);
        return rounded(type, r, slack);
    }
    case HLO_OP_MULTIPLY:
        return rounded(
            type, square ? product(magnitude(o[0]), magnitude(o[0])) : product(o[0], o[1]), slack);
    case HLO_OP_DIVIDE: {
        const bool both = signbit(o[1].low) && !signbit(o[1].high);
        return rounded(type,
                       product(o[0], both ? between(-ENDLESS, ENDLESS, o[1])
                                          : between(1 / o[1].high, 1 / o[1].low, o[1])),
                       slack);
    }
    case HLO_OP_NEGATE: return negated(o[0]);
    case HLO_OP_ABS: return magnitude(o[0]);
    case HLO_OP_AND: {
        /* If one operand is nonnegative, the result is nonnegative and not above that operand. */
        hlo_range r = hlo_range_hull(o[0], o[1]);
        r.low = 0;
        r.high = fmin(o[0].low >= 0 ? o[0].high : ENDLESS, o[1].low >= 0 ? o[1].high : ENDLESS);
        return r;
    }
    case HLO_OP_SHIFT_RIGHT_ARITHMETIC:
    case HLO_OP_SHIFT_RIGHT_LOGICAL:
        return shifted(type, instr->op == HLO_OP_SHIFT_RIGHT_LOGICAL, o[0], o[1]);
    case HLO_OP_EXP: /* exp(0) is 1 in every execution */
        return rounded(type, between(0, exp(o[0].high), o[0]), o[0].high == 0 ? 0 : slack);
    case HLO_OP_SQRT: return between(has_minus_zero(o[0]) ? -0.0 : 0, ENDLESS, o[0]);
    case HLO_OP_LOGISTIC: return between(0, 1, o[0]);
    case HLO_OP_TANH: return between(-1, 1, o[0]);
    case HLO_OP_REDUCE: {
        const hlo_computation *f = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
        const hlo_range unknown = hlo_range_of_type(instr->shape->type);
        if (instr->operand_count != 2 || !f || !f->root) return unknown;
        if (hlo_shape_count(hlo_instr_operand(instr, 0)->shape) < 1) return o[1];
        const hlo_op op = hlo_region_simple(f);
        if (op == HLO_OP_MAXIMUM) return larger(o[0], o[1]);
        if (op == HLO_OP_MINIMUM) return smaller(o[0], o[1]);
        if ((op != HLO_OP_ADD && op != HLO_OP_MULTIPLY) || !(o[0].low >= 0 && o[1].low >= 0))
            return unknown;
        if (op == HLO_OP_MULTIPLY)
            return between(lower(o[0].low * 0, o[1].low * 0), ENDLESS, hlo_range_hull(o[0], o[1]));
        const double least = fmax(o[0].low + o[1].low, sums_softmax(instr) ? 1 : -0.0);
        return between(least * (1 - SLACK), ENDLESS, hlo_range_hull(o[0], o[1]));
    }
    case HLO_OP_CONVERT: return rounded(type, o[0], 0);
    default: return hlo_instr_moves_by(instr, HLO_REARRANGES) ? o[0] : hlo_range_of_type(type);
    }
}

static hlo_range combined(const hlo_instruction *instr, const hlo_range *operands, double slack) {
    const hlo_type type = instr->shape->type;
    return is_real(type) ? in_type(type, computed(instr, operands, slack))
                         : hlo_range_of_type(type);
}

hlo_range hlo_range_of_rounded(const hlo_instruction *instr, const hlo_range *operands) {
    return combined(instr, operands, 0);
}

hlo_range hlo_range_of_result(const hlo_instruction *instr, hlo_range_reader *read, void *arg) {
    hlo_range o[3] = {hlo_range_empty, hlo_range_empty, hlo_range_empty};
    const bool moves = hlo_instr_moves_by(instr, HLO_REARRANGES);
    if (!moves && !hlo_op_is(instr->op, HLO_ELEMENTWISE | HLO_PADS | HLO_JOINS) &&
        instr->op != HLO_OP_CONVERT && instr->op != HLO_OP_REDUCE && instr->op != HLO_OP_IOTA)
        return hlo_range_of_type(instr->shape->type);
    const bool joins = instr->op == HLO_OP_CONCATENATE;
    for (uint32_t i = instr->op == HLO_OP_SELECT;
         i < instr->operand_count && (joins || i < (moves ? 1 : 3)); i++) {
        const hlo_range r = read(arg, hlo_instr_operand(instr, i));
        o[joins ? 0 : i] = joins ? hlo_range_hull(o[0], r) : r;
    }
    return combined(instr, o, SLACK);
}

/* --------------------------------------------------------------------------------------- search */

/* The call through which a computation was entered. */
typedef struct frame {
    const hlo_instruction *call;
    const struct frame *up;
    uint32_t number; /* number of the call, unique in a search */
} frame;

/* State of a search. A search visits an instruction once for each call, and makes at most
 * MAX_VISITS visits in total. */
typedef struct search {
    const frame *inside; /* NULL: the computation where the search started */
    uint32_t visits, calls;
    int64_t elements; /* number of constant elements that may still be read */
    struct {
        const hlo_instruction *instr;
        uint32_t call;
        hlo_range range;
    } known[REMEMBERED];
} search;

static hlo_range search_range(void *arg, const hlo_instruction *value);

/* Returns the range of a value in the computation that was entered through `inside` or, if that is
 * NULL, in which the search started. */
static hlo_range range_inside(search *s, const frame *inside, const hlo_instruction *value) {
    const frame *here = s->inside;
    s->inside = inside;
    const hlo_range range = search_range(s, value);
    s->inside = here;
    return range;
}

static bool find_part(const hlo_instruction *value, hlo_range *out) {
    const int64_t count = hlo_shape_count(value->shape);
    *out = hlo_range_empty;
    for (int64_t i = 0; i < count; i++) {
        double number;
        if (i == MAX_PART || !hlo_known_element(value, i, &number) || isnan(number)) return false;
        *out = hlo_range_hull(*out, of_number(number));
    }
    return true;
}

static hlo_range search_range(void *arg, const hlo_instruction *value) {
    search *s = arg;
    const hlo_instruction *from = hlo_handed_on(value, NULL);
    if (from) value = from;
    if (!hlo_shape_is_array(value->shape) || s->visits >= MAX_VISITS)
        return hlo_range_of_type(value->shape->type);
    const uint32_t call = s->inside ? s->inside->number : 0;
    const uint32_t at = (value->id + 7 * call) % REMEMBERED;
    if (s->known[at].instr == value && s->known[at].call == call) return s->known[at].range;
    s->visits++;
    const frame *here = s->inside;
    const hlo_computation *called = hlo_instr_called(value);
    hlo_range range;
    if (value->op == HLO_OP_CONSTANT)
        range = hlo_range_of_constant(value, &s->elements);
    else if (called)
        range = range_inside(s, &(frame){value, here, ++s->calls}, called->root);
    else if (value->op == HLO_OP_PARAMETER && here)
        range =
            range_inside(s, here->up, hlo_instr_operand(here->call, (uint32_t)value->u.parameter));
    else if (!hlo_op_is(value->op, HLO_TAKES_PART) || !find_part(value, &range))
        range = hlo_range_of_result(value, search_range, s);
    s->known[at].instr = value;
    s->known[at].call = call;
    s->known[at].range = range;
    return range;
}

hlo_range hlo_range_of(const hlo_instruction *value) {
    search s = {.elements = MAX_SCANNED};
    return search_range(&s, value);
}
