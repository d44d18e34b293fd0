/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sigmas of elementwise operations and conversions. The method is in docs/numerics.md.
 */
#include <math.h>

#include "ir/error/rules.h"
#include "ir/eval/apply.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"
#include "ir/module/known.h"

#define LAMBDA HLO_ERROR_LAMBDA

static const double infinite = (double)INFINITY;

/* The numbers of sigmas by which an operand is moved to measure the change of the result. Lambda is
 * last. 3 covers functions that jump or level off between one sigma and lambda sigmas. */
static const double times_moved[] = {-1, 1, -3, 3, -LAMBDA, LAMBDA};
enum { TIMES = sizeof times_moved / sizeof *times_moved };

typedef struct row_loop row_loop;
typedef struct analysis analysis;

/* Computes the sigmas of a chunk of results, which are at `result`, `step` bytes apart. May set
 * a->anything. */
typedef void chunk_rule(const row_loop *r, analysis *a, int64_t count, const char *result,
                        int64_t step, double *sigma);

/* The loop over an elementwise operation. Its views: the result, the result's sigma, then each
 * operand and the operand's sigma. */
struct row_loop {
    chunk_rule *rule;
    const hlo_instruction *instr;
    const hlo_elementwise *op;
    const hlo_error_options *options;
    hlo_type types[3], result;
    hlo_range ranges[3], spread; /* ranges of the operands, and of the result (spread) */
    uint32_t arity;
    bool twice;        /* both operands are the same value */
    bool squares;      /* the operands' errors are fully correlated, and there is no pole */
    bool scales[3];    /* operands that are scales which other executions may apply elsewhere */
    bool clamped;      /* the result is clamped to the finite range of its type */
    hlo_lane produced; /* lane of the results that the analysis computes */
};

struct analysis {
    hlo_chunk x[3];
    double sigma[3][HLO_CHUNK];
    double value[HLO_CHUNK], variance[HLO_CHUNK];
    double finite[HLO_CHUNK]; /* for a result that is infinite here: its smallest magnitude if an
                               * operand had not overflowed; otherwise infinity */
    bool anything[HLO_CHUNK];
    bool overflows; /* an element of `finite` is not infinity */
    bool endless;   /* a value is infinite or NaN */
};

/* ---------------------------------------------------------------------------- scaling elsewhere */

static bool only_moves(const hlo_instruction *value) {
    return value->op == HLO_OP_CONVERT || hlo_instr_moves(value);
}

/* True if the value has one element, is a broadcast, or is computed elementwise or by movement from
 * such values. Searches to `depth`, over at most `*steps` instructions. */
static bool is_scale_at(const hlo_instruction *value, int depth, int *steps) {
    if (--*steps < 0) return false;
    if (hlo_shape_count(value->shape) == 1 || value->op == HLO_OP_BROADCAST) return true;
    bool moves = only_moves(value);
    if (!depth || !value->operand_count || !(moves || hlo_op_is(value->op, HLO_ELEMENTWISE)))
        return false;
    for (uint32_t o = 0; o < (moves ? 1 : value->operand_count); o++)
        if (!is_scale_at(hlo_instr_operand(value, o), depth - 1, steps)) return false;
    return true;
}

static bool is_scale(const hlo_instruction *value, int *steps) {
    enum { DEPTH = 8 };
    return is_scale_at(value, DEPTH, steps);
}

/* True if elements of the value may scale rows: after any movement and scaling, the value has rank
 * 1 or a dimension of size 1, or is broadcast. */
static bool comes_to_rows(const hlo_instruction *value, int *steps) {
    bool thin = value->shape->rank == 1;
    for (uint32_t d = 0; d < value->shape->rank; d++) thin |= value->shape->dims[d] == 1;
    if (thin) return true;
    for (const hlo_use *use = value->uses; use && --*steps > 0; use = use->next) {
        hlo_op op = use->user->op;
        if (op == HLO_OP_BROADCAST) return true;
        bool on = only_moves(use->user) || op == HLO_OP_MULTIPLY || op == HLO_OP_DIVIDE;
        if (on && comes_to_rows(use->user, steps)) return true;
    }
    return false;
}

/* True if operand `o` is a factor or divisor that other executions may apply elsewhere. */
static bool may_scale(const hlo_instruction *instr, uint32_t o) {
    int uses = 64, steps = 256; /* maximum number of instructions to visit, so that a chain takes
                                 * linear time */
    if (instr->op != HLO_OP_MULTIPLY && (instr->op != HLO_OP_DIVIDE || o != 1)) return false;
    const hlo_instruction *scale = hlo_instr_operand(instr, o),
                          *other = hlo_instr_operand(instr, 1 - o);
    if (is_scale(scale, &steps)) return true;
    /* The other operand must be computed from quantized values, scaled or not. If both come from
     * fp8, either may be the scale. */
    while (!hlo_type_is_fp8(other->shape->type)) {
        if (--steps < 0) return false;
        bool scaled = other->op == HLO_OP_MULTIPLY || other->op == HLO_OP_DIVIDE;
        if (!scaled && !only_moves(other)) return false;
        other = hlo_instr_operand(other, scaled && is_scale(hlo_instr_operand(other, 0), &steps));
    }
    return comes_to_rows(instr, &uses);
}

/* ------------------------------------------------------------------------------------- the loop */

/* True if the result may jump or be unbounded where the operand is near 0, as in a division. */
static bool has_pole(const row_loop *r, uint32_t operand) {
    hlo_op op = r->instr->op;
    return op == HLO_OP_RSQRT || op == HLO_OP_LOG || (op == HLO_OP_DIVIDE && operand == 1) ||
           (op == HLO_OP_REMAINDER && operand == 1) || (op == HLO_OP_POWER && operand == 0);
}

/* ------------------------------------------------------------------------------ complex numbers */

static double size_of(hlo_type type, const char *at) {
    hlo_chunk value;
    hlo_lane_load(type, at, 0, 1, &value);
    if (hlo_lane_of(type) == HLO_LANE_C128) return hypot(value.f64[0], value.f64[1]);
    hlo_lane_load_f64(type, at, 0, 1, value.f64);
    return fabs(value.f64[0]);
}

/* Returns the variance due to the operands' errors; infinity: unknown. */
static double complex_variance(hlo_op op, const double *size, const double *sigma, uint32_t arity) {
    double variance = 0;
    for (uint32_t o = 0; o < arity; o++) variance += sigma[o] * sigma[o];
    if (variance == 0) return 0;
    switch (op) {
    case HLO_OP_ABS:
    case HLO_OP_ADD:
    case HLO_OP_COMPLEX:
    case HLO_OP_IMAG:
    case HLO_OP_NEGATE:
    case HLO_OP_REAL:
    case HLO_OP_SUBTRACT: return variance;
    case HLO_OP_MULTIPLY:
        variance = hypot(size[0] * sigma[1], size[1] * sigma[0]);
        return variance * variance + sigma[0] * sigma[0] * sigma[1] * sigma[1];
    default: return (double)INFINITY;
    }
}

/* The loop body for complex numbers. A sigma bounds the modulus of the difference. The sigmas of
 * sums, products and parts follow from those of their operands; other operations on inexact
 * operands have an infinite sigma. */
static void complex_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row_loop *r = arg;
    const bool rounds = hlo_type_is_float(r->result) || hlo_lane_of(r->result) == HLO_LANE_C128;
    for (int64_t i = 0; i < count; i++) {
        double size[3] = {0}, sigma[3] = {0};
        for (uint32_t o = 0; o < r->arity; o++) {
            const uint32_t v = 2 + 2 * o;
            size[o] = size_of(r->types[o], data[v] + i * steps[v]);
            sigma[o] = (double)*(const float *)(data[v + 1] + i * steps[v + 1]);
        }
        const double own = rounds
                               ? (r->op ? (double)r->op->ulps : 1) * hlo_error_roundoff(r->result) *
                                     size_of(r->result, data[0] + i * steps[0])
                               : 0;
        const double variance = complex_variance(r->instr->op, size, sigma, r->arity);
        const double s = variance == 0 ? own : sqrt(variance + own * own);
        *(float *)(void *)(data[1] + i * steps[1]) = isnan(s) ? INFINITY : (float)s;
    }
}

/* ----------------------------------------------------------------------------------- operations */

/* Returns the lane in which elements of `type` are analyzed: f64 for real numbers. */
static hlo_lane lane_of(hlo_type type) {
    hlo_lane lane = hlo_lane_of(type);
    return lane == HLO_LANE_F32 ? HLO_LANE_F64 : lane;
}

/* Return the larger or smaller of two numbers. Only the first may be NaN; the result is then the
 * second. */
static inline double larger(double a, double b) {
    return a > b ? a : b;
}

static inline double smaller(double a, double b) {
    return a < b ? a : b;
}

HLO_CLONED static void move_floats(hlo_type type, hlo_range range, const double *x,
                                   const double *sigma, double times, int64_t count, double *out) {
    const double most = hlo_type_is_fp8(type) ? hlo_float_max(type) : 0;
    for (int64_t i = 0; i < count; i++) {
        const double by = times * sigma[i], to = isinf(by) ? by : x[i] + by;
        const bool moves = (sigma[i] > 0) & (isinf(by) | !isnan(x[i]));
        const double inside = smaller(larger(to, range.low), range.high);
        const double instead = copysign(most > 0 ? most : sigma[i], isnan(x[i]) ? 1 : x[i]);
        const bool overflowed = !isfinite(x[i]) & (sigma[i] > 0) & (sigma[i] < 0x1p120);
        out[i] = overflowed ? instead : moves ? inside : x[i];
    }
}

/* Moves the operand by `times` * sigma. An infinite sigma moves it to infinity, even from NaN. A
 * predicate that may differ takes its other value. */
static void move_chunk(hlo_type type, hlo_range range, const hlo_chunk *x, const double *sigma,
                       double times, int64_t count, hlo_chunk *out) {
    if (lane_of(type) == HLO_LANE_F64) {
        move_floats(type, range, x->f64, sigma, times, count, out->f64);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double size = fabs(times * sigma[i]);
        uint64_t whole = size < 0x1p62 ? (uint64_t)ceil(size) : UINT64_C(1) << 62;
        if (type == HLO_TYPE_PRED)
            out->u64[i] = sigma[i] > 0 ? !x->u64[i] : x->u64[i];
        else
            out->u64[i] = times > 0 ? x->u64[i] + whole : x->u64[i] - whole;
    }
}

#define ANY(name, condition)                                                                       \
    HLO_CLONED static bool any_##name(const double *x, int64_t count) {                            \
        int64_t some = 0;                                                                          \
        for (int64_t i = 0; i < count; i++) some |= condition;                                     \
        return some;                                                                               \
    }
ANY(above_zero, x[i] > 0)
ANY(nan, isnan(x[i]))
ANY(endless, !isfinite(x[i]))

/* Raises rate[i] to at least the distance of moved[i] from value[i], divided by `times`. */
HLO_CLONED static void take_rate(const double *value, const double *moved, double times,
                                 int64_t count, double *rate) {
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs(moved[i] - value[i]);
        const double distance = hlo_error_same(value[i], moved[i]) ? 0 : isnan(d) ? infinite : d;
        rate[i] = larger(distance / times, rate[i]);
    }
}

static void run_loop(const row_loop *r, const hlo_chunk *const *in, int64_t count, double *out) {
    hlo_chunk produced;
    const bool direct = r->produced == HLO_LANE_F64;
    hlo_lanes lanes = {.count = count,
                       .in = {in[0], in[1], in[2]},
                       .out = direct ? (void *)out : &produced,
                       .bits = hlo_types[r->types[0]].bits,
                       .instr = r->instr};
    r->op->loop[lane_of(r->types[r->arity - 1])](&lanes);
    if (!direct) hlo_lane_cast(r->produced, HLO_LANE_F64, &produced, count, out);
}

/* Raises the rate where operand `which` may reach a pole or has an infinite sigma. */
HLO_CLONED static void note_jumps(const row_loop *r, const analysis *a, uint32_t which,
                                  int64_t count, double *rate) {
    const double *x = a->x[which].f64, *sigma = a->sigma[which];
    const hlo_range range = r->ranges[which];
    const bool pole = has_pole(r, which) && range.low <= 0 && range.high >= 0;
    const double jump = r->result == HLO_TYPE_PRED ? 1 : infinite;
    for (int64_t i = 0; i < count; i++) {
        const bool near = pole & (sigma[i] > 0) & (fabs(x[i]) <= LAMBDA * sigma[i]);
        rate[i] = isinf(sigma[i]) ? jump : near ? infinite : rate[i];
    }
}

/* Adds the change of the result when operand `which` is moved up and down; `which` == arity moves
 * all operands. */
static void add_changes(const row_loop *r, analysis *a, uint32_t which, int64_t count) {
    hlo_chunk moved[3];
    double out[HLO_CHUNK], rate[HLO_CHUNK] = {0};
    for (int t = 0; t < TIMES; t++) {
        const hlo_chunk *in[3] = {&a->x[0], &a->x[1], &a->x[2]};
        for (uint32_t o = 0; o < r->arity; o++) {
            if (which != o && which != r->arity) continue;
            move_chunk(r->types[o], r->ranges[o], &a->x[o], a->sigma[o], times_moved[t], count,
                       &moved[o]);
            in[o] = &moved[o];
        }
        run_loop(r, in, count, out);
        take_rate(a->value, out, fabs(times_moved[t]), count, rate);
        /* Mark results that become NaN or stop being infinite when operand `which` is moved. An
         * operand that is NaN may be a number in another execution, and numbers alone do not
         * produce infinities. Skip this if both operands are the same value, because both move. */
        if (r->twice || which == r->arity || !a->endless) continue;
        for (int64_t i = 0; i < count; i++) {
            double value = a->value[i];
            if (isfinite(value) || isfinite(out[i]) || isnan(value) == isnan(out[i])) continue;
            bool infinite_operand = false;
            for (uint32_t o = 0; o < r->arity; o++) infinite_operand |= isinf(a->x[o].f64[i]);
            a->anything[i] |= infinite_operand || !isnan(a->x[which].f64[i]);
        }
    }
    for (uint32_t o = 0; o < r->arity; o++)
        if (lane_of(r->types[o]) == HLO_LANE_F64 && (which == o || which == r->arity)) {
            /* Mark results that depend on the overflow of operand `o`. `out` has the results
             * without that overflow. */
            if (any_endless(a->x[o].f64, count)) {
                a->overflows = true;
                for (int64_t i = 0; i < count; i++) {
                    if (!hlo_error_overflowed(a->x[o].f64[i], a->sigma[o][i])) continue;
                    if (hlo_error_same(a->value[i], out[i])) continue;
                    if (isinf(a->value[i]))
                        a->finite[i] = fmin(a->finite[i], copysign(1, a->value[i]) * out[i]);
                    else
                        a->anything[i] = true;
                }
            }
        }
    if (which < r->arity) note_jumps(r, a, which, count, rate);
    for (int64_t i = 0; i < count; i++) a->variance[i] += rate[i] * rate[i];
}

/* Loads a chunk of the operands and their sigmas, starting at element `done` of the row. */
static void load_chunk(const row_loop *r, analysis *a, int64_t count, int64_t done,
                       char *const *data, const int64_t *steps) {
    for (uint32_t o = 0; o < r->arity; o++) {
        uint32_t v = 2 + 2 * o;
        const hlo_lane lane = hlo_lane_of(r->types[o]);
        const char *in = data[v] + done * steps[v];
        if (lane == HLO_LANE_F32 || lane == HLO_LANE_F64)
            hlo_lane_load_f64(r->types[o], in, steps[v], count, a->x[o].f64);
        else
            hlo_lane_load(r->types[o], in, steps[v], count, &a->x[o]);
        hlo_lane_load_f64(HLO_TYPE_F32, data[v + 1] + done * steps[v + 1], steps[v + 1], count,
                          a->sigma[o]);
    }
    a->overflows = false;
    for (int64_t i = 0; i < count; i++) a->anything[i] = false;
    for (int64_t i = 0; i < count; i++) a->finite[i] = infinite;
    for (uint32_t o = 0; o < r->arity; o++) {
        if (!any_nan(a->sigma[o], count)) continue;
        for (int64_t i = 0; i < count; i++) {
            a->anything[i] |= isnan(a->sigma[o][i]);
            a->sigma[o][i] = isnan(a->sigma[o][i]) ? infinite : a->sigma[o][i];
        }
    }
}

/* Adds the change of the result when a zero operand changes its sign, because a zero that is scaled
 * elsewhere may have the other sign. An infinity may change its sign, so that results computed from
 * it may be NaN. */
static void add_zeros(const row_loop *r, analysis *a, uint32_t o, int64_t count) {
    const hlo_op op = r->instr->op;
    const bool shows_sign = op == HLO_OP_RSQRT || op == HLO_OP_ATAN2 ||
                            (op == HLO_OP_DIVIDE && o == 1) || (op == HLO_OP_POWER && o == 0);
    if (!shows_sign || lane_of(r->types[o]) != HLO_LANE_F64) return;
    hlo_chunk other;
    const hlo_chunk *in[3] = {&a->x[0], &a->x[1], &a->x[2]};
    double out[HLO_CHUNK];
    bool some = false;
    for (int64_t i = 0; i < count; i++) {
        bool is_zero = a->x[o].f64[i] == 0;
        other.f64[i] = is_zero ? -a->x[o].f64[i] : a->x[o].f64[i];
        some |= is_zero;
    }
    if (!some) return;
    in[o] = &other;
    run_loop(r, in, count, out);
    for (int64_t i = 0; i < count; i++) {
        if (hlo_error_same(a->value[i], out[i])) continue;
        double change = fabs(a->value[i] - out[i]) / LAMBDA;
        a->variance[i] += change * change;
        a->anything[i] |= isinf(a->value[i]);
    }
}

/* The loop body for real numbers, integers and predicates. */
static void chunk_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row_loop *r = arg;
    const bool marks = hlo_type_is_float(r->result) || r->instr->op == HLO_OP_SELECT;
    analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        const int64_t n = hlo_chunk_size(count - done);
        double sigma[HLO_CHUNK];
        float s[HLO_CHUNK];
        load_chunk(r, &a, n, done, data, steps);
        r->rule(r, &a, n, data[0] + done * steps[0], steps[0], sigma);
        for (int64_t i = 0; i < n; i++) s[i] = isnan(sigma[i]) ? (float)INFINITY : (float)sigma[i];
        for (int64_t i = 0; marks && i < n; i++)
            s[i] = a.anything[i] ? (float)HLO_ERROR_ANYTHING : s[i];
        hlo_copy_row(sizeof *s, (const char *)s, sizeof *s, n, data[1] + done * steps[1], steps[1]);
    }
}

/* Fills in `r` and computes the sigmas of the call, by `rule` unless it has complex numbers. */
static hlo_status run_rows(const hlo_error_call *b, row_loop *r, chunk_rule *rule) {
    static const float zero = 0;
    static const hlo_view exact = {.type = HLO_TYPE_F32, .data = (void *)&zero};
    const hlo_view *views[HLO_LOOP_VIEWS] = {&b->call.results[0], &b->result_sigmas[0]};
    bool is_complex = hlo_error_is_complex(views[0]);
    r->rule = rule;
    r->instr = b->call.instr;
    r->options = b->options;
    r->arity = b->call.operand_count;
    r->twice = r->arity == 2 && hlo_instr_operand(r->instr, 0) == hlo_instr_operand(r->instr, 1);
    r->squares = r->twice && !has_pole(r, 0) && !has_pole(r, 1);
    r->result = views[0]->type;
    r->spread = hlo_range_of(r->instr);
    for (uint32_t o = 0; o < r->arity; o++) {
        r->types[o] = b->call.operands[o].type;
        r->ranges[o] = hlo_range_of(hlo_instr_operand(b->call.instr, o));
        views[2 + 2 * o] = &b->call.operands[o];
        views[3 + 2 * o] = b->operand_sigmas[o].data ? &b->operand_sigmas[o] : &exact;
        is_complex |= hlo_error_is_complex(&b->call.operands[o]);
    }
    bool real = hlo_type_is_float(r->result) && b->options->roundings_may_be_dropped;
    for (uint32_t o = 0; o < 2; o++) r->scales[o] = real && may_scale(r->instr, o);
    if (r->clamped) {
        double limit = hlo_float_max(r->result);
        r->ranges[0].low = fmax(r->ranges[0].low, -limit);
        r->ranges[0].high = fmin(r->ranges[0].high, limit);
    }
    hlo_views_run(b->call.env, 2 + 2 * r->arity, views, is_complex ? complex_row : chunk_row, r);
    return HLO_OK;
}

/* Computes sigmas from variances and the operation's own error, `own` * value. With `holds`, a
 * result that f32 represents has no error of its own if the operands are exact. */
HLO_CLONED static void add_own(const analysis *a, double own, bool holds, double spread,
                               int64_t count, double *sigma) {
    for (int64_t i = 0; i < count; i++) {
        const double value = a->value[i], size = fabs(value), error = own * size;
        const bool held = holds & (a->variance[i] == 0) & ((double)(float)value == value);
        const bool flushed = (error > 0) & (size < 2 * HLO_ERROR_FLUSHED);
        const double e = flushed ? error + HLO_ERROR_FLUSHED / LAMBDA : error;
        const double kept = (held | !isfinite(value)) ? 0 : e;
        const double s = sqrt(a->variance[i] + kept * kept);
        sigma[i] = isnan(value) ? s : smaller(s, spread);
    }
}

/* Returns how far lambda sigmas move an operand within the operand's range. */
static double reach(const row_loop *r, const analysis *a, uint32_t operand, int64_t i) {
    double x = a->x[operand].f64[i], by = LAMBDA * a->sigma[operand][i];
    hlo_range range = r->ranges[operand];
    return larger(smaller(x + by, range.high) - x, x - larger(x - by, range.low));
}

/* Adds the change of the product when both factors are moved: they may be near 0 and depend on each
 * other. */
HLO_CLONED static void add_product(const row_loop *r, analysis *a, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const double both = reach(r, a, 0, i) * reach(r, a, 1, i) / LAMBDA;
        const bool adds = (both > 0) & isfinite(both) & !isinf(a->value[i]);
        a->variance[i] += adds ? both * both : 0;
    }
}

static bool may_be_zero(const analysis *a, uint32_t operand, int64_t i) {
    return fabs(a->x[operand].f64[i]) <= LAMBDA * a->sigma[operand][i];
}

static bool may_be_infinite(const analysis *a, uint32_t operand, int64_t i) {
    return isinf(a->x[operand].f64[i]) || isinf(a->sigma[operand][i]);
}

/* True if operands between the ends that add_changes() tries may produce a NaN. A product may if
 * one factor may be 0 and the other infinite. A quotient may if both operands may be 0, or both may
 * be infinite. */
static bool may_make_nan(const row_loop *r, const analysis *a, int64_t i) {
    if (r->arity != 2 || r->twice) return false;
    bool large[] = {may_be_infinite(a, 0, i), may_be_infinite(a, 1, i)};
    bool small[] = {may_be_zero(a, 0, i), may_be_zero(a, 1, i)};
    if (r->instr->op == HLO_OP_MULTIPLY) return (large[0] && small[1]) || (small[0] && large[1]);
    if (r->instr->op == HLO_OP_DIVIDE) return (large[0] && large[1]) || (small[0] && small[1]);
    return false;
}

/* Bounds an operation without a separate rule, and rounds as the operation does. */
static void bound_chunk(const row_loop *r, analysis *a, int64_t n, const char *result, int64_t step,
                        double *sigma) {
    const bool discrete =
        hlo_lane_of(r->result) == HLO_LANE_S64 || hlo_lane_of(r->result) == HLO_LANE_U64;
    const hlo_chunk *in[3] = {&a->x[0], &a->x[1], &a->x[2]};
    run_loop(r, in, n, a->value);
    a->endless = any_endless(a->value, n);
    /* A zero that is scaled by an infinite, NaN or too small factor becomes another number if
     * another execution applies the scale elsewhere. A factor that overflowed may also be infinite
     * there. */
    const bool divides = r->instr->op == HLO_OP_DIVIDE;
    for (uint32_t o = 0; o < 2; o++)
        for (int64_t i = 0; r->scales[o] && i < n; i++) {
            double scale = a->x[o].f64[i];
            a->anything[i] |= divides ? !(fabs(scale) >= HLO_ERROR_FLUSHED) : !isfinite(scale);
        }
    uint32_t uncertain = 0;
    for (int64_t i = 0; i < n; i++) a->variance[i] = 0;
    for (uint32_t o = 0; o < r->arity; o++) {
        if (r->options->roundings_may_be_dropped) add_zeros(r, a, o, n);
        if (!any_above_zero(a->sigma[o], n)) continue;
        uncertain++;
        if (!r->squares) add_changes(r, a, o, n);
    }
    if (uncertain && (r->squares || (discrete && uncertain > 1))) add_changes(r, a, r->arity, n);
    if (uncertain > 1 && r->instr->op == HLO_OP_MULTIPLY && !discrete && !r->squares)
        add_product(r, a, n);
    if (uncertain && !discrete) {
        /* Mark results that may be NaN in the other execution: infinities, and 0 times a factor
         * that may be infinite. Other numbers have an infinite sigma, which allows a NaN. */
        for (int64_t i = 0; i < n && r->instr->op == HLO_OP_MULTIPLY; i++)
            a->anything[i] |= a->value[i] == 0 && may_make_nan(r, a, i);
        for (int64_t i = 0; i < n && a->endless; i++) {
            if (!isinf(a->value[i])) continue;
            for (uint32_t o = 0; o < r->arity; o++)
                a->anything[i] |= lane_of(r->types[o]) == HLO_LANE_F64 &&
                                  isfinite(a->x[o].f64[i]) && isinf(a->sigma[o][i]);
            a->anything[i] |= may_make_nan(r, a, i);
        }
    }
    const double ulps = (double)r->op->ulps;
    const bool real = hlo_type_is_float(r->result);
    /* Do not subtract equal ends: a range may consist of one infinity. */
    const bool one = r->spread.high == r->spread.low;
    double spread = one ? 0 : (r->spread.high - r->spread.low) / 2;
    double own = real ? ulps * hlo_error_roundoff(r->result) : 0, rounded[HLO_CHUNK];
    add_own(a, own, ulps <= 1 && r->result != HLO_TYPE_F64, spread, n, sigma);
    if (!real) return;
    hlo_lane_load_f64(r->result, result, step, n, rounded);
    hlo_error_round_chunk(r->result, a->value, rounded, ulps > 0, NULL, r->options, n, sigma);
    /* An infinity remains certain only if it also occurs without the overflow of an operand. */
    for (int64_t i = 0; i < n && a->overflows; i++) {
        if (isinf(a->finite[i]) && a->finite[i] > 0) continue;
        bool again = a->finite[i] > 0 && isinf(hlo_error_round(r->result, a->finite[i]));
        if (again) sigma[i] = hlo_error_overflow(a->finite[i]);
        a->anything[i] |= !again;
    }
}

/* Bounds select, which may return either choice if the predicate may differ. If the other choice is
 * unbounded, so is a zero: another execution may apply a scale to both choices. */
static void select_chunk(const row_loop *r, analysis *a, int64_t n, const char *result,
                         int64_t step, double *out_sigma) {
    (void)result, (void)step;
    double x[HLO_CHUNK], y[HLO_CHUNK];
    hlo_lane_cast(lane_of(r->types[1]), HLO_LANE_F64, &a->x[1], n, x);
    hlo_lane_cast(lane_of(r->types[2]), HLO_LANE_F64, &a->x[2], n, y);
    for (int64_t i = 0; i < n; i++) {
        double sigma = a->sigma[a->x[0].u64[i] ? 1 : 2][i];
        bool pad_value = (a->x[0].u64[i] ? x[i] : y[i]) == 0;
        a->anything[i] &= pad_value || isinf(sigma) || a->sigma[0][i] > 0;
        if (a->sigma[0][i] > 0) {
            sigma = fmax(a->sigma[1][i], a->sigma[2][i]);
            if (!hlo_error_same(x[i], y[i])) sigma += fabs(x[i] - y[i]) / HLO_ERROR_FLIP;
        }
        out_sigma[i] = sigma;
    }
}

hlo_status hlo_error_elementwise(const hlo_error_call *b) {
    const hlo_elementwise *op = hlo_kernel_elementwise(b->call.instr);
    const hlo_lane lane = lane_of(b->call.operands[b->call.operand_count - 1].type);
    row_loop r = {.op = op, .produced = op->out == HLO_OUT_PRED ? HLO_LANE_U64 : lane};
    return run_rows(b, &r, b->call.instr->op == HLO_OP_SELECT ? select_chunk : bound_chunk);
}

/* Bounds a comparison, which may differ if the operands' difference is within their bound. */
static void compare_chunk(const row_loop *r, analysis *a, int64_t n, const char *result,
                          int64_t step, double *out_sigma) {
    (void)result, (void)step;
    double x[HLO_CHUNK], y[HLO_CHUNK];
    hlo_lane_cast(lane_of(r->types[0]), HLO_LANE_F64, &a->x[0], n, x);
    hlo_lane_cast(lane_of(r->types[1]), HLO_LANE_F64, &a->x[1], n, y);
    for (int64_t i = 0; i < n; i++) {
        double sigma = hypot(a->sigma[0][i], a->sigma[1][i]);
        bool near = sigma > 0 && !(fabs(x[i] - y[i]) > LAMBDA * sigma);
        out_sigma[i] = near ? 1 / LAMBDA : 0;
    }
}

hlo_status hlo_error_compare_op(const hlo_error_call *b) {
    row_loop r = {0};
    return run_rows(b, &r, compare_chunk);
}

/* ---------------------------------------------------------------------------------- conversions */

static double converted(hlo_type type, double number) {
    uint64_t cell = 0;
    hlo_number_store(type, &cell, number);
    return hlo_number_load(type, &cell);
}

static void convert_chunk(const row_loop *r, analysis *a, int64_t n, const char *result,
                          int64_t step, double *sigma) {
    const hlo_type from = r->types[0];
    hlo_lane_cast(lane_of(from), HLO_LANE_F64, &a->x[0], n, a->value);
    if (!hlo_type_is_float(r->result)) {
        /* The sigma of an integer or a predicate follows from the converted ends of the interval
         * and from the numbers inside it. */
        for (int64_t i = 0; i < n; i++) {
            const double x = a->value[i], s = a->sigma[0][i];
            sigma[i] = 0;
            if (!(s > 0)) continue;
            if (r->result == HLO_TYPE_PRED) {
                sigma[i] = x - LAMBDA * s > 0 || x + LAMBDA * s < 0 ? 0 : 1 / LAMBDA;
            } else if (isinf(s)) {
                sigma[i] = infinite;
            } else {
                const double value = converted(r->result, x);
                for (int t = 0; t < TIMES; t++) {
                    const double moved = converted(r->result, x + times_moved[t] * s);
                    sigma[i] = fmax(sigma[i], fabs((moved - value) / times_moved[t]));
                }
            }
        }
        return;
    }
    const int bits = hlo_type_is_float(from) ? hlo_float_precision(from) : hlo_types[from].bits;
    const bool rounds = bits > hlo_float_precision(r->result);
    const bool f32 = rounds && (r->result == HLO_TYPE_F32 || r->result == HLO_TYPE_F64);
    double rounded[HLO_CHUNK];
    for (int64_t i = 0; i < n; i++)
        sigma[i] = f32 && a->sigma[0][i] > 0
                       ? hypot(a->sigma[0][i], hlo_error_roundoff(r->result) * fabs(a->value[i]))
                       : a->sigma[0][i];
    hlo_lane_load_f64(r->result, result, step, n, rounded);
    hlo_error_round_chunk(r->result, a->value, rounded, rounds, &r->ranges[0], r->options, n,
                          sigma);
    /* An element remains overflowed if its value also exceeds the range of the result's type. */
    for (int64_t i = 0; i < n; i++) {
        if (!hlo_error_overflowed(a->value[i], a->sigma[0][i])) continue;
        /* Without the overflow, an fp8 element is saturated to its largest number. */
        const double size = hlo_type_is_fp8(from) ? hlo_float_max(from) : a->sigma[0][i];
        const double number = copysign(size, isnan(a->value[i]) ? 1 : a->value[i]);
        bool same = hlo_error_same(hlo_error_round(r->result, number), rounded[i]);
        sigma[i] = hlo_type_is_fp8(r->result) ? 0 : a->sigma[0][i];
        a->anything[i] |= !same;
    }
}

hlo_status hlo_error_convert(const hlo_error_call *b) {
    /* If the finite range of an fp8 result contains all operand elements, the analysis assumes that
     * they are clamped to it. If they are not, one execution may have a NaN that the bound does not
     * allow, which the comparison reports. */
    const hlo_type to = b->call.results[0].type;
    row_loop r = {.clamped = false};
    if (hlo_type_is_fp8(to) && hlo_type_is_float(b->call.operands[0].type)) {
        const hlo_extent e = hlo_view_extent(&b->call.operands[0]);
        r.clamped = e.lowest >= -hlo_float_max(to) && e.highest <= hlo_float_max(to);
    }
    return run_rows(b, &r, convert_chunk);
}
