/* SPDX-License-Identifier: Apache-2.0 */
/* The sigmas of elementwise operations. The method is in docs/numerics.md. */
#include <math.h>

#include "ir/error/row.h"
#include "ir/eval/apply.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"

#define LAMBDA HLO_ERROR_LAMBDA

static const double infinite = (double)INFINITY;

const double hlo_error_times[HLO_ERROR_TIMES] = {-1, 1, -3, 3, -LAMBDA, LAMBDA};

/* ----------------------------------------------------------------------------------- operations */

static const float zero = 0;

hlo_lane hlo_error_lane(hlo_type type) {
    hlo_lane lane = hlo_lane_of(type);
    return lane == HLO_LANE_F32 ? HLO_LANE_F64 : lane;
}

double hlo_error_instead(hlo_type type, double value, double sigma) {
    double size = hlo_type_is_fp8(type) ? hlo_float_max(type) : sigma;
    return copysign(size, isnan(value) ? 1 : value);
}

/* The larger or smaller of two numbers; the second if the first, the only one that may be NaN, is
 * NaN. */
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
    if (hlo_error_lane(type) == HLO_LANE_F64) {
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

static void as_doubles(hlo_lane lane, const hlo_chunk *in, int64_t count, double *out) {
    hlo_lane_cast(lane, HLO_LANE_F64, in, count, out);
}

/* True if the result is unbounded between its ends, as in a division by a range that contains
 * zero. */
static bool has_pole(const hlo_error_row *r, uint32_t operand) {
    hlo_op op = r->instr->op;
    return op == HLO_OP_RSQRT || op == HLO_OP_LOG || (op == HLO_OP_DIVIDE && operand == 1) ||
           (op == HLO_OP_REMAINDER && operand == 1) || (op == HLO_OP_POWER && operand == 0);
}

/* Raises rate[i] to the distance of moved[i] from value[i], for each of `times` sigmas. */
HLO_CLONED static void take_rate(const double *value, const double *moved, double times,
                                 int64_t count, double *rate) {
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs(moved[i] - value[i]);
        const double distance = hlo_error_same(value[i], moved[i]) ? 0 : isnan(d) ? infinite : d;
        rate[i] = larger(distance / times, rate[i]);
    }
}

static void run_loop(const hlo_error_row *r, const hlo_chunk *const *in, int64_t count,
                     double *out) {
    hlo_chunk produced;
    const bool direct = r->produced == HLO_LANE_F64;
    hlo_lanes lanes = {.count = count,
                       .in = {in[0], in[1], in[2]},
                       .out = direct ? (void *)out : &produced,
                       .bits = hlo_types[r->types[0]].bits,
                       .instr = r->instr};
    r->op->loop[hlo_error_lane(r->types[r->arity - 1])](&lanes);
    if (!direct) as_doubles(r->produced, &produced, count, out);
}

/* Raises the rate where operand `which` may reach a pole or has an infinite sigma. */
HLO_CLONED static void note_jumps(const hlo_error_row *r, const hlo_error_analysis *a,
                                  uint32_t which, int64_t count, double *rate) {
    const double *x = a->x[which].f64, *sigma = a->sigma[which];
    const hlo_range range = r->ranges[which];
    const bool pole = has_pole(r, which) && range.low <= 0 && range.high >= 0;
    const double jump = r->result == HLO_TYPE_PRED ? 1 : infinite;
    for (int64_t i = 0; i < count; i++) {
        const bool near = pole & (sigma[i] > 0) & (fabs(x[i]) <= LAMBDA * sigma[i]);
        rate[i] = isinf(sigma[i]) ? jump : near ? infinite : rate[i];
    }
}

/* Adds the change of moving operand `which` (all of them: arity) both ways. */
static void add_changes(const hlo_error_row *r, hlo_error_analysis *a, uint32_t which,
                        int64_t count) {
    hlo_chunk moved[3];
    double out[HLO_CHUNK], rate[HLO_CHUNK] = {0};
    for (int t = 0; t < HLO_ERROR_TIMES; t++) {
        const hlo_chunk *in[3] = {&a->x[0], &a->x[1], &a->x[2]};
        for (uint32_t o = 0; o < r->arity; o++) {
            if (which != o && which != r->arity) continue;
            move_chunk(r->types[o], r->ranges[o], &a->x[o], a->sigma[o], hlo_error_times[t], count,
                       &moved[o]);
            in[o] = &moved[o];
        }
        run_loop(r, in, count, out);
        take_rate(a->value, out, fabs(hlo_error_times[t]), count, rate);
        /* Mark results that become NaN or stop being infinite when operand `which` is moved. A NaN
         * represents numbers, which do not produce infinities by themselves. A value that is both
         * operands is moved in both. */
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
        if (hlo_error_lane(r->types[o]) == HLO_LANE_F64 && (which == o || which == r->arity)) {
            /* Mark overflow; `out`: the results where operand `o` did not overflow. */

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

void hlo_error_load(const hlo_error_row *r, hlo_error_analysis *a, int64_t count, int64_t done,
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

/* Adds the change of a zero's sign if it affects the result, because a zero that is scaled
 * elsewhere may have the other sign. An infinity that depends on it may change its sign, and
 * results of that may be NaN. */
static void add_zeros(const hlo_error_row *r, hlo_error_analysis *a, uint32_t o, int64_t count) {
    const hlo_op op = r->instr->op;
    const bool shows_sign = op == HLO_OP_RSQRT || op == HLO_OP_ATAN2 ||
                            (op == HLO_OP_DIVIDE && o == 1) || (op == HLO_OP_POWER && o == 0);
    if (!shows_sign || hlo_error_lane(r->types[o]) != HLO_LANE_F64) return;
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

void hlo_error_store(const double *sigma, const bool *anything, int64_t count, char *out,
                     int64_t step) {
    float s[HLO_CHUNK];
    for (int64_t i = 0; i < count; i++) s[i] = isnan(sigma[i]) ? (float)INFINITY : (float)sigma[i];
    for (int64_t i = 0; anything && i < count; i++)
        s[i] = anything[i] ? (float)HLO_ERROR_ANYTHING : s[i];
    hlo_copy_row(sizeof *s, (const char *)s, sizeof *s, count, out, step);
}

/* Computes sigmas from variances and the error of the operation itself, `own` * value. With
 * `holds`, a sum or product of exact numbers that f32 represents has no error. */
HLO_CLONED static void add_own(const hlo_error_analysis *a, double own, bool holds, double spread,
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

/* Returns the distance by which lambda sigmas move an operand within its range. */
static double reach(const hlo_error_row *r, const hlo_error_analysis *a, uint32_t operand,
                    int64_t i) {
    double x = a->x[operand].f64[i], by = LAMBDA * a->sigma[operand][i];
    hlo_range range = r->ranges[operand];
    return larger(smaller(x + by, range.high) - x, x - larger(x - by, range.low));
}

/* Adds the change of moving both factors: they may be near 0 and depend on each other. */
HLO_CLONED static void add_product(const hlo_error_row *r, hlo_error_analysis *a, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const double both = reach(r, a, 0, i) * reach(r, a, 1, i) / LAMBDA;
        const bool adds = (both > 0) & isfinite(both) & !isinf(a->value[i]);
        a->variance[i] += adds ? both * both : 0;
    }
}

static bool may_be_zero(const hlo_error_analysis *a, uint32_t operand, int64_t i) {
    return fabs(a->x[operand].f64[i]) <= LAMBDA * a->sigma[operand][i];
}

static bool may_be_infinite(const hlo_error_analysis *a, uint32_t operand, int64_t i) {
    return isinf(a->x[operand].f64[i]) || isinf(a->sigma[operand][i]);
}

/* True if operands between the ends that add_changes() tries produce a NaN: a product of a factor
 * that may be 0 and one that may be infinite, or a quotient of two operands that may both be 0 or
 * both infinite. */
static bool may_make_nan(const hlo_error_row *r, const hlo_error_analysis *a, int64_t i) {
    if (r->arity != 2 || r->twice) return false;
    bool large[] = {may_be_infinite(a, 0, i), may_be_infinite(a, 1, i)};
    bool small[] = {may_be_zero(a, 0, i), may_be_zero(a, 1, i)};
    if (r->instr->op == HLO_OP_MULTIPLY) return (large[0] && small[1]) || (small[0] && large[1]);
    if (r->instr->op == HLO_OP_DIVIDE) return (large[0] && large[1]) || (small[0] && small[1]);
    return false;
}

static void bound_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_error_row *r = arg;
    bool discrete =
        hlo_lane_of(r->result) == HLO_LANE_S64 || hlo_lane_of(r->result) == HLO_LANE_U64;
    hlo_error_analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_error_load(r, &a, n, done, data, steps);
        const hlo_chunk *in[3] = {&a.x[0], &a.x[1], &a.x[2]};
        run_loop(r, in, n, a.value);
        a.endless = any_endless(a.value, n);
        /* Zeros scaled by an infinite, NaN or too small factor become other numbers if another
         * execution applies the scale elsewhere. A factor that overflowed may also be infinite
         * there. */
        const bool divides = r->instr->op == HLO_OP_DIVIDE;
        for (uint32_t o = 0; o < 2; o++)
            for (int64_t i = 0; r->scales[o] && i < n; i++) {
                double scale = a.x[o].f64[i];
                a.anything[i] |= divides ? !(fabs(scale) >= HLO_ERROR_FLUSHED) : !isfinite(scale);
            }
        uint32_t uncertain = 0;
        for (int64_t i = 0; i < n; i++) a.variance[i] = 0;
        for (uint32_t o = 0; o < r->arity; o++) {
            if (r->options->roundings_may_be_dropped) add_zeros(r, &a, o, n);
            if (!any_above_zero(a.sigma[o], n)) continue;
            uncertain++;
            if (!r->squares) add_changes(r, &a, o, n);
        }
        if (uncertain && (r->squares || (discrete && uncertain > 1)))
            add_changes(r, &a, r->arity, n);
        if (uncertain > 1 && r->instr->op == HLO_OP_MULTIPLY && !discrete && !r->squares)
            add_product(r, &a, n);
        if (uncertain && !discrete) {
            /* Mark what may be NaN in the other execution: infinities, and 0 times a factor that
             * may be infinite. For other numbers, an infinite sigma covers this. */
            for (int64_t i = 0; i < n && r->instr->op == HLO_OP_MULTIPLY; i++)
                a.anything[i] |= a.value[i] == 0 && may_make_nan(r, &a, i);
            for (int64_t i = 0; i < n && a.endless; i++) {
                if (!isinf(a.value[i])) continue;
                for (uint32_t o = 0; o < r->arity; o++)
                    a.anything[i] |= hlo_error_lane(r->types[o]) == HLO_LANE_F64 &&
                                     isfinite(a.x[o].f64[i]) && isinf(a.sigma[o][i]);
                a.anything[i] |= may_make_nan(r, &a, i);
            }
        }
        char *at[] = {data[0] + done * steps[0], data[1] + done * steps[1]};
        /* Round as the operation does and write the sigmas. */
        const double ulps = (double)r->op->ulps;
        double result[HLO_CHUNK], sigma[HLO_CHUNK];
        hlo_lane lane = hlo_lane_of(r->result);
        bool real = lane == HLO_LANE_F32 || lane == HLO_LANE_F64;
        /* A range may contain only infinity. */
        const bool one = r->spread.high == r->spread.low;
        double spread = one ? 0 : (r->spread.high - r->spread.low) / 2;
        double own = real ? ulps * hlo_error_roundoff(r->result) : 0;
        add_own(&a, own, ulps <= 1 && r->result != HLO_TYPE_F64, spread, n, sigma);
        if (real) {
            hlo_lane_load_f64(r->result, at[0], steps[0], n, result);
            hlo_error_round_chunk(r->result, a.value, result, ulps > 0, NULL, r->options, n, sigma);
            /* Keep an infinity certain only if it also occurs without the overflow of an operand.
             */
            for (int64_t i = 0; i < n && a.overflows; i++) {
                if (isinf(a.finite[i]) && a.finite[i] > 0) continue;
                bool again = a.finite[i] > 0 && isinf(hlo_error_round(r->result, a.finite[i]));
                if (again) sigma[i] = hlo_error_overflow(a.finite[i]);
                a.anything[i] |= !again;
            }
        }
        hlo_error_store(sigma, real ? a.anything : NULL, n, at[1], steps[1]);
    }
}

void hlo_error_loop(const hlo_error_call *b, hlo_error_row *r, hlo_strided_loop_body *body) {
    static const hlo_view exact = {.type = HLO_TYPE_F32, .data = (void *)&zero};
    const hlo_view *views[HLO_LOOP_VIEWS] = {&b->call.results[0], &b->result_sigmas[0]};
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
    }
    bool real = hlo_type_is_float(r->result) && b->options->roundings_may_be_dropped;
    for (uint32_t o = 0; o < 2; o++) r->scales[o] = real && hlo_error_scales(r->instr, o);
    if (r->clamped) {
        double limit = hlo_float_max(r->result);
        r->ranges[0].low = fmax(r->ranges[0].low, -limit);
        r->ranges[0].high = fmin(r->ranges[0].high, limit);
    }
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, views[0]->rank, views[0]->dims, 2 + 2 * r->arity, views);
    hlo_strided_loop_run_parallel(b->call.env, &loop, 0, body, r);
}

/* Bounds select, which may return either choice if the predicate may differ. If the other choice is
 * unbounded, a zero is treated as scaled along with it. */
static void select_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_error_row *r = arg;
    hlo_error_analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_error_load(r, &a, n, done, data, steps);
        double x[HLO_CHUNK], y[HLO_CHUNK];
        as_doubles(hlo_error_lane(r->types[1]), &a.x[1], n, x);
        as_doubles(hlo_error_lane(r->types[2]), &a.x[2], n, y);
        for (int64_t i = 0; i < n; i++) {
            double sigma = a.sigma[a.x[0].u64[i] ? 1 : 2][i];
            bool pad_value = (a.x[0].u64[i] ? x[i] : y[i]) == 0;
            bool anything = a.anything[i] && (pad_value || isinf(sigma) || a.sigma[0][i] > 0);
            if (a.sigma[0][i] > 0) {
                sigma = fmax(a.sigma[1][i], a.sigma[2][i]);
                if (!hlo_error_same(x[i], y[i])) sigma += fabs(x[i] - y[i]) / HLO_ERROR_FLIP;
            }
            a.variance[i] = sigma;
            a.anything[i] = anything;
        }
        hlo_error_store(a.variance, a.anything, n, data[1] + done * steps[1], steps[1]);
    }
}

hlo_status hlo_error_elementwise(const hlo_error_call *b) {
    hlo_error_row r = {.op = hlo_kernel_elementwise(b->call.instr)};
    if (hlo_error_complex_call(&b->call)) {
        hlo_error_loop(b, &r, hlo_error_complex_row);
    } else if (b->call.instr->op == HLO_OP_SELECT) {
        hlo_error_loop(b, &r, select_row);
    } else {
        r.produced = r.op->out == HLO_OUT_PRED
                         ? HLO_LANE_U64
                         : hlo_error_lane(b->call.operands[b->call.operand_count - 1].type);
        hlo_error_loop(b, &r, bound_row);
    }
    return HLO_OK;
}

/* Bounds a comparison, which may differ if the operands' difference is within their bound. */
static void compare_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_error_row *r = arg;
    hlo_error_analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_error_load(r, &a, n, done, data, steps);
        double x[HLO_CHUNK], y[HLO_CHUNK];
        as_doubles(hlo_error_lane(r->types[0]), &a.x[0], n, x);
        as_doubles(hlo_error_lane(r->types[1]), &a.x[1], n, y);
        for (int64_t i = 0; i < n; i++) {
            double sigma = hypot(a.sigma[0][i], a.sigma[1][i]);
            bool near = sigma > 0 && !(fabs(x[i] - y[i]) > LAMBDA * sigma);
            a.variance[i] = near ? 1 / LAMBDA : 0;
        }
        hlo_error_store(a.variance, NULL, n, data[1] + done * steps[1], steps[1]);
    }
}

hlo_status hlo_error_compare_op(const hlo_error_call *b) {
    hlo_error_row r = {0};
    hlo_error_loop(b, &r, hlo_error_complex_call(&b->call) ? hlo_error_complex_row : compare_row);
    return HLO_OK;
}
