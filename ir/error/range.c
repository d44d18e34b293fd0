/* Intervals that contain the elements of a value, from the instructions that compute it: clamps,
 * squares and the like bound their results for any operands. */
#include <math.h>

#include "ir/error/rules.h"
#include "ir/eval/apply.h"
#include "ir/float/float.h"
#include "ir/module/known.h"

/* The call by which a computation was entered. */
typedef struct frame frame;
struct frame {
    const hlo_instr *call;
    const frame *up;
    uint32_t number; /* unique in a search */
};

enum {
    MAX_DEPTH = 12,
    MAX_SCANNED = 1 << 12, /* elements of constants */
    MAX_VISITS = 256,      /* of instructions */
    MAX_STEPS = 64,        /* up from the result of a subtraction */
    REMEMBERED = 64        /* intervals; a power of two */
};

static const hlo_range anything = {-(double)INFINITY, (double)INFINITY};

/* A search: its cost is bounded, and an instruction that several paths lead to is visited once for
 * each depth. What is not visited is unknown. */
typedef struct search {
    int visits, elements; /* that are left */
    uint32_t calls;
    struct {
        const hlo_instr *instr;
        uint32_t call;
        int depth;
        hlo_range range;
    } known[REMEMBERED];
} search;

static hlo_range range_of(search *s, const hlo_instr *instr, const frame *up, int depth);

static hlo_range hull(hlo_range a, hlo_range b) {
    return (hlo_range){fmin(a.low, b.low), fmax(a.high, b.high)};
}

static hlo_range constant_range(search *s, const hlo_instr *instr) {
    int64_t count = hlo_shape_count(instr->shape);
    if (count < 1 || count > s->elements) return anything;
    s->elements -= (int)count;
    hlo_range r = {(double)INFINITY, -(double)INFINITY};
    for (int64_t i = 0; i < count; i++) {
        double value;
        if (!hlo_known_element(instr, i, &value) || isnan(value)) return anything;
        r = hull(r, (hlo_range){value, value});
    }
    return r;
}

static double rounded(hlo_type type, double value, double instead) {
    uint64_t cell = 0;
    if (!hlo_type_is_float(type) || isinf(value)) return instead;
    hlo_number_store(type, &cell, value);
    double result = hlo_number_load(type, &cell);
    return isnan(result) ? instead : result;
}

/* Rounding moves an end of an interval by less than this fraction. */
#define SLACK 0x1p-6

static hlo_range sum(hlo_range a, hlo_range b) {
    double low = a.low + b.low, high = a.high + b.high;
    return (hlo_range){low - SLACK * fabs(low), high + SLACK * fabs(high)};
}

/* Multiplies two intervals of non-negative numbers. */
static hlo_range product(hlo_range a, hlo_range b) {
    double low = a.low * b.low, high = a.high * b.high;
    return (hlo_range){isnan(low) ? 0 : low * (1 - SLACK),
                       isnan(high) ? anything.high : high * (1 + SLACK)};
}

/* Finds the operand beneath a few conversions. */
static const hlo_instr *source_of(const hlo_instr *instr) {
    for (int i = 0; i < MAX_DEPTH && instr->op == HLO_OP_CONVERT; i++)
        instr = hlo_instr_operand(instr, 0);
    return instr;
}

/* Finds the operand beneath conversions that change no element: to floats of more bits. */
static const hlo_instr *exact_source_of(const hlo_instr *instr) {
    while (instr->op == HLO_OP_CONVERT) {
        const hlo_instr *from = hlo_instr_operand(instr, 0);
        const hlo_type type = from->shape->type, to = instr->shape->type;
        if (!hlo_type_is_float(type) || !hlo_type_is_float(to) || hlo_types[to].bits < 16 ||
            hlo_types[to].bits <= hlo_types[type].bits ||
            (type == HLO_TYPE_F8E8M0FNU && to == HLO_TYPE_F16))
            break;
        instr = from;
    }
    return instr;
}

/* The largest elements along dimensions of an array, or what is larger. */
typedef struct largest {
    const hlo_instr *of;  /* the array */
    const hlo_ints *dims; /* these dimensions */
    bool exact;           /* not larger */
    int steps;            /* that are left to find them */
} largest;

static bool is_least(const hlo_instr *instr) {
    double number;
    return hlo_known_number(instr, &number) && number == -(double)INFINITY;
}

/* Matches a reduce whose dimensions are those of the array that `to` says. */
static bool reduces_to(const hlo_instr *m, const int64_t *to, largest *l) {
    const hlo_instr *x = hlo_instr_operand(m, 0);
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

/* Sets the dimensions of the array that those of a reshape's operand are: of the result, those with
 * several elements are the same ones, in order. */
static bool reshapes_to(const hlo_instr *m, const int64_t *to, int64_t *out_to) {
    const hlo_shape *from = hlo_instr_operand(m, 0)->shape, *shape = m->shape;
    uint32_t k = 0;
    for (uint32_t d = 0; d < from->rank; d++) {
        out_to[d] = -1;
        if (from->dims[d] == 1) continue;
        while (k < shape->rank && shape->dims[k] == 1) k++;
        if (k == shape->rank || shape->dims[k] != from->dims[d]) return false;
        out_to[d] = to[k++];
    }
    return m->op != HLO_OP_BITCAST ||
           (hlo_shape_is_row_major(shape) && hlo_shape_is_row_major(from));
}

/* True if each element of `m`, whose dimensions are those of the array that `to` says, is the
 * largest of all elements there, or larger. */
static bool is_largest(const hlo_instr *m, const int64_t *to, largest *l) {
    int64_t own[HLO_EVAL_MAX_RANK];
    if (!l->steps) return false;
    l->steps--;
    m = exact_source_of(m);
    if (m->op == HLO_OP_REDUCE) return reduces_to(m, to, l);
    const hlo_instr *from = m->operand_count ? hlo_instr_operand(m, 0) : m;
    if (from->shape->rank > HLO_EVAL_MAX_RANK) return false;
    if (m->op == HLO_OP_MAXIMUM) {
        const hlo_instr *other = hlo_instr_operand(m, 1);
        const bool exact = l->exact;
        l->exact = exact && is_least(other);
        if (is_largest(from, to, l)) return true;
        l->exact = exact && is_least(from);
        return is_largest(other, to, l);
    }
    if (m->op == HLO_OP_BROADCAST) {
        const hlo_ints *dims = hlo_instr_ints(m, HLO_ATTR_DIMENSIONS);
        for (uint32_t d = 0; d < from->shape->rank; d++) own[d] = to[dims->v[d]];
        return is_largest(from, own, l);
    }
    return hlo_instr_moves_by(m, HLO_KEEPS_ORDER) && reshapes_to(m, to, own) &&
           is_largest(from, own, l);
}

/* True for x - max(x), as in softmax: 0 at one element, if that is the largest itself, and at most
 * 0 elsewhere. */
static bool is_below_largest(const hlo_instr *instr, largest *out) {
    int64_t to[HLO_EVAL_MAX_RANK];
    if (instr->op != HLO_OP_SUBTRACT || instr->shape->rank > HLO_EVAL_MAX_RANK) return false;
    for (uint32_t d = 0; d < instr->shape->rank; d++) to[d] = d;
    *out = (largest){
        .of = exact_source_of(hlo_instr_operand(instr, 0)), .exact = true, .steps = MAX_STEPS};
    return is_largest(hlo_instr_operand(instr, 1), to, out);
}

/* True if every sum has a term that is 1. */
static bool sums_softmax(const hlo_instr *reduce) {
    const hlo_instr *exp = source_of(hlo_instr_operand(reduce, 0));
    const hlo_ints *dims = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
    largest l;
    if (exp->op != HLO_OP_EXP || !is_below_largest(source_of(hlo_instr_operand(exp, 0)), &l) ||
        !l.exact)
        return false;
    for (uint32_t i = 0; i < l.dims->count; i++)
        if (!hlo_ints_contain(dims, l.dims->v[i])) return false;
    return hlo_shape_count(exp->shape) > 0;
}

static hlo_range reduce_range(const hlo_instr *instr, hlo_range x, hlo_range start) {
    hlo_op op = hlo_region_simple(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    if (instr->operand_count != 2) return anything;
    if (op == HLO_OP_MAXIMUM || op == HLO_OP_MINIMUM) return hull(x, start);
    if (op == HLO_OP_ADD && x.low >= 0 && start.low >= 0)
        return (hlo_range){sums_softmax(instr) ? 1 - SLACK : 0, anything.high};
    return anything;
}

/* Computes the interval of a result from the intervals of its operands. */
static hlo_range combined(const hlo_instr *instr, const hlo_range *o) {
    bool positive = o[0].low >= 0 && o[1].low >= 0;
    largest l;
    switch (instr->op) {
    case HLO_OP_CLAMP: return (hlo_range){fmin(o[0].low, o[2].low), o[2].high};
    case HLO_OP_SELECT: return hull(o[1], o[2]);
    case HLO_OP_MINIMUM: return (hlo_range){fmin(o[0].low, o[1].low), fmin(o[0].high, o[1].high)};
    case HLO_OP_MAXIMUM: return (hlo_range){fmax(o[0].low, o[1].low), fmax(o[0].high, o[1].high)};
    case HLO_OP_ADD: return sum(o[0], o[1]);
    case HLO_OP_MULTIPLY:
        if (positive) return product(o[0], o[1]);
        return hlo_instr_operand(instr, 0) == hlo_instr_operand(instr, 1)
                   ? (hlo_range){0, anything.high}
                   : anything;
    case HLO_OP_DIVIDE:
        if (!positive) return anything;
        return (hlo_range){0, o[1].low > 0 ? o[0].high / o[1].low : anything.high};
    case HLO_OP_SUBTRACT:
        return is_below_largest(instr, &l) ? (hlo_range){anything.low, 0} : anything;
    case HLO_OP_ABS: return (hlo_range){0, fmax(fabs(o[0].low), fabs(o[0].high))};
    case HLO_OP_EXP: return (hlo_range){0, exp(o[0].high)};
    case HLO_OP_SQRT: return (hlo_range){0, anything.high};
    case HLO_OP_LOGISTIC: return (hlo_range){0, 1};
    case HLO_OP_TANH: return (hlo_range){-1, 1};
    case HLO_OP_REDUCE: return reduce_range(instr, o[0], o[1]);
    case HLO_OP_CONVERT:
        return (hlo_range){rounded(instr->shape->type, o[0].low, anything.low),
                           rounded(instr->shape->type, o[0].high, anything.high)};
    default: return hlo_instr_moves_by(instr, HLO_REARRANGES) ? o[0] : anything;
    }
}

static hlo_range called_range(search *s, const hlo_instr *instr, const frame *up, int depth) {
    const hlo_computation *c =
        hlo_instr_comp(instr, instr->op == HLO_OP_CALL ? HLO_ATTR_TO_APPLY : HLO_ATTR_CALLS);
    frame inner = {instr, up, ++s->calls};
    return c ? range_of(s, c->root, &inner, depth - 1) : anything;
}

/* True if the interval of the result depends on those of operands. */
static bool combines(const hlo_instr *instr) {
    return hlo_op_is(instr->op, HLO_ELEMENTWISE) || instr->op == HLO_OP_CONVERT ||
           instr->op == HLO_OP_REDUCE || hlo_instr_moves_by(instr, HLO_REARRANGES);
}

static hlo_range visited_range(search *s, const hlo_instr *instr, const frame *up, int depth) {
    if (instr->op == HLO_OP_CONSTANT) return constant_range(s, instr);
    if (instr->op == HLO_OP_CALL || instr->op == HLO_OP_FUSION)
        return called_range(s, instr, up, depth);
    if (instr->op == HLO_OP_PARAMETER)
        return up ? range_of(s, hlo_instr_operand(up->call, (uint32_t)instr->u.parameter), up->up,
                             depth - 1)
                  : anything;
    if (!combines(instr)) return anything;
    hlo_range operands[3] = {anything, anything, anything};
    for (uint32_t o = 0; o < instr->operand_count && o < 3; o++)
        operands[o] = range_of(s, hlo_instr_operand(instr, o), up, depth - 1);
    return combined(instr, operands);
}

static hlo_range range_of(search *s, const hlo_instr *instr, const frame *up, int depth) {
    if (depth == 0 || !hlo_shape_is_array(instr->shape) || !s->visits) return anything;
    const uint32_t call = up ? up->number : 0, at = (instr->id + 7 * call) % REMEMBERED;
    if (s->known[at].instr == instr && s->known[at].call == call && s->known[at].depth >= depth)
        return s->known[at].range;
    s->visits--;
    const hlo_range range = visited_range(s, instr, up, depth);
    s->known[at].instr = instr;
    s->known[at].call = call;
    s->known[at].depth = depth;
    s->known[at].range = range;
    return range;
}

hlo_range hlo_range_of(const hlo_instr *instr) {
    search s = {.visits = MAX_VISITS, .elements = MAX_SCANNED};
    return range_of(&s, instr, NULL, MAX_DEPTH);
}

/* -------------------------------------------------------------------------------------- extents */

static const float zero_f32 = 0;
static const hlo_dims no_strides = {{0}};

hlo_view hlo_error_sigma_or_zeros(const hlo_view *value, const hlo_view *sigma) {
    if (sigma->data) return *sigma;
    return (hlo_view){HLO_TYPE_F32, value->rank, value->dims, no_strides.v, (void *)&zero_f32};
}

static inline void extend(hlo_extent *e, double x, double sigma) {
    const double below = isnan(x) ? -(double)INFINITY : x, above = isnan(x) ? (double)INFINITY : x;
    e->lowest = below < e->lowest ? below : e->lowest;
    e->highest = above > e->highest ? above : e->highest;
    e->sigma = sigma > e->sigma ? sigma : e->sigma;
}

static void extend_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    hlo_extent *e = arg;
    double x[HLO_CHUNK], s[HLO_CHUNK];
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_lane_load_f64(e->type, data[0] + done * steps[0], steps[0], n, x);
        hlo_lane_load_f64(HLO_TYPE_F32, data[1] + done * steps[1], steps[1], n, s);
        for (int64_t i = 0; i < n; i++) extend(e, x[i], s[i]);
    }
}

void hlo_extent_add(hlo_extent *e, const hlo_view *value, const hlo_view *sigma) {
    hlo_view s = hlo_error_sigma_or_zeros(value, sigma);
    const hlo_view *views[] = {value, &s};
    hlo_strided_loop loop;
    e->type = value->type;
    hlo_strided_loop_init(&loop, value->rank, value->dims, 2, views);
    hlo_strided_loop_run(&loop, extend_row, e);
}

const hlo_extent hlo_extent_empty = {.lowest = (double)INFINITY, .highest = -(double)INFINITY};

void hlo_view_extent(const hlo_view *view, hlo_range *out_range) {
    hlo_view exact = {.data = NULL};
    hlo_extent e = hlo_extent_empty;
    hlo_extent_add(&e, view, &exact);
    *out_range = (hlo_range){e.lowest, e.highest};
}

static void find_positive_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    int64_t positive = 0;
    if (steps[0] == sizeof(float))
        for (int64_t i = 0; i < count; i++) positive |= !(((const float *)(void *)data[0])[i] <= 0);
    else
        for (int64_t i = 0; i < count; i++)
            positive |= !(*(const float *)(void *)(data[0] + i * steps[0]) <= 0);
    *(bool *)arg |= positive;
}

bool hlo_error_is_exact(const hlo_view *sigma) {
    hlo_strided_loop loop;
    bool positive = false;
    if (!sigma->data) return true;
    hlo_strided_loop_init(&loop, sigma->rank, sigma->dims, 1, &sigma);
    hlo_strided_loop_run(&loop, find_positive_row, &positive);
    return !positive;
}
