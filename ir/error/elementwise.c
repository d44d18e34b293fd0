/* The sigmas of elementwise operations and of conversions. The method is in error.h. */
#include "ir/error/error.h"

#include <math.h>

#include "ir/error/rules.h"
#include "ir/float/float.h"

#define LAMBDA HLO_BOUND_LAMBDA

static const double infinite = (double)INFINITY;

/* ----------------------------------------------------------------------------------- operations */

/* Views of a row: result, its sigma, then each operand and its sigma. */
typedef struct row {
    const hlo_instr *instr;
    const hlo_elementwise *op;
    const hlo_error_options *options;
    hlo_type types[3], result;
    hlo_range ranges[3], spread; /* of the operands, of the result */
    uint32_t arity;
    bool twice;        /* both operands are the same value */
    bool squares;      /* and move together; not at poles */
    bool scales[3];    /* which operands others may be scaled with elsewhere as well */
    bool clamped;      /* to what is finite in the type of the result */
    hlo_lane produced; /* by the analysis' loop */
} row;

static const float zero = 0;

static hlo_lane analysed(hlo_type type) {
    hlo_lane lane = hlo_lane_of(type);
    return lane == HLO_LANE_F32 ? HLO_LANE_F64 : lane;
}

static void load_wide(hlo_type type, const char *in, int64_t step, int64_t count, hlo_chunk *out) {
    if (hlo_lane_of(type) == HLO_LANE_F32 || hlo_lane_of(type) == HLO_LANE_F64)
        hlo_lane_load_f64(type, in, step, count, out->f64);
    else
        hlo_lane_load(type, in, step, count, out);
}

/* What an element that overflowed is where it did not: of an fp8 type, what it saturates to. */
static double instead(hlo_type type, double value, double sigma) {
    double size = hlo_type_is_fp8(type) ? hlo_float_max(type) : sigma;
    return copysign(size, isnan(value) ? 1 : value);
}

/* The operand moved by `times` * sigma, to infinity (a NaN too) if that is infinite; a predicate
 * that may differ takes its other value. */
static void move_chunk(hlo_type type, hlo_range range, const hlo_chunk *x, const double *sigma,
                       double times, int64_t count, hlo_chunk *out) {
    for (int64_t i = 0; i < count; i++) {
        double by = times * sigma[i], size = fabs(by);
        uint64_t whole = size < 0x1p62 ? (uint64_t)ceil(size) : UINT64_C(1) << 62;
        if (type == HLO_TYPE_PRED)
            out->u64[i] = sigma[i] > 0 ? !x->u64[i] : x->u64[i];
        else if (analysed(type) == HLO_LANE_F64 && hlo_error_overflowed(x->f64[i], sigma[i]))
            out->f64[i] = instead(type, x->f64[i], sigma[i]);
        else if (analysed(type) == HLO_LANE_F64)
            out->f64[i] = sigma[i] > 0 && (isinf(by) || !isnan(x->f64[i]))
                              ? fmin(fmax(isinf(by) ? by : x->f64[i] + by, range.low), range.high)
                              : x->f64[i];
        else
            out->u64[i] = times > 0 ? x->u64[i] + whole : x->u64[i] - whole;
    }
}

static bool any_above_zero(const double *sigma, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (sigma[i] > 0) return true;
    return false;
}

static void as_doubles(hlo_lane lane, const hlo_chunk *in, int64_t count, double *out) {
    hlo_lane_cast(lane, HLO_LANE_F64, in, count, out);
}

/* A division by what may be zero, or the like, may go anywhere between its ends. */
static bool has_pole(const row *r, uint32_t operand) {
    hlo_op op = r->instr->op;
    return op == HLO_OP_RSQRT || op == HLO_OP_LOG || (op == HLO_OP_DIVIDE && operand == 1) ||
           (op == HLO_OP_REMAINDER && operand == 1) || (op == HLO_OP_POWER && operand == 0);
}

typedef struct analysis {
    hlo_chunk x[3];
    double sigma[3][HLO_CHUNK];
    double value[HLO_CHUNK], variance[HLO_CHUNK];
    double finite[HLO_CHUNK]; /* the least size of a result that is infinite here, where an operand
                                 did not overflow; infinity: none */
    bool anything[HLO_CHUNK];
} analysis;

/* Raises rate[i] to the distance of moved[i] from value[i], for each of `times` sigmas. */
static void take_rate(const double *value, const double *moved, double times, int64_t count,
                      double *rate) {
    for (int64_t i = 0; i < count; i++) {
        double d = hlo_error_same(value[i], moved[i]) ? 0 : fabs(moved[i] - value[i]);
        if (isnan(d)) d = infinite;
        if (d / times > rate[i]) rate[i] = d / times;
    }
}

/* Where operand `which`, moved, makes an infinity NaN or the other way round, more than the size of
 * the result is unsure. A NaN stands for numbers, which make no infinity by themselves; nor is a
 * value that is there twice moved in one place only. */
static void note_turns(const row *r, analysis *a, uint32_t which, const double *moved,
                       int64_t count) {
    if (r->twice || which == r->arity) return;
    for (int64_t i = 0; i < count; i++) {
        double value = a->value[i];
        if (isfinite(value) || isfinite(moved[i]) || isnan(value) == isnan(moved[i])) continue;
        bool infinite_operand = false;
        for (uint32_t o = 0; o < r->arity; o++) infinite_operand |= isinf(a->x[o].f64[i]);
        a->anything[i] |= infinite_operand || !isnan(a->x[which].f64[i]);
    }
}

static void run_loop(const row *r, const hlo_chunk *const *in, int64_t count, double *out) {
    hlo_chunk produced;
    hlo_lanes lanes = {.count = count,
                       .in = {in[0], in[1], in[2]},
                       .out = &produced,
                       .bits = hlo_types[r->types[0]].bits,
                       .instr = r->instr};
    r->op->loop[analysed(r->types[r->arity - 1])](&lanes);
    as_doubles(r->produced, &produced, count, out);
}

/* `out`: the results where operand `o` did not overflow. */
static void note_overflows(analysis *a, uint32_t o, const double *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!hlo_error_overflowed(a->x[o].f64[i], a->sigma[o][i])) continue;
        if (hlo_error_same(a->value[i], out[i])) continue;
        if (isinf(a->value[i]))
            a->finite[i] = fmin(a->finite[i], copysign(1, a->value[i]) * out[i]);
        else
            a->anything[i] = true;
    }
}

/* What operand `which` (all of them: arity) moved both ways changes. */
static void add_changes(const row *r, analysis *a, uint32_t which, int64_t count) {
    static const double times[] = {-LAMBDA, -1, 1, LAMBDA};
    hlo_chunk moved[3];
    double out[HLO_CHUNK], rate[HLO_CHUNK] = {0};
    for (int t = 0; t < 4; t++) {
        const hlo_chunk *in[3] = {&a->x[0], &a->x[1], &a->x[2]};
        for (uint32_t o = 0; o < r->arity; o++) {
            if (which != o && which != r->arity) continue;
            move_chunk(r->types[o], r->ranges[o], &a->x[o], a->sigma[o], times[t], count,
                       &moved[o]);
            in[o] = &moved[o];
        }
        run_loop(r, in, count, out);
        take_rate(a->value, out, fabs(times[t]), count, rate);
        note_turns(r, a, which, out, count);
    }
    for (uint32_t o = 0; o < r->arity; o++)
        if (analysed(r->types[o]) == HLO_LANE_F64 && (which == o || which == r->arity))
            note_overflows(a, o, out, count);
    for (int64_t i = 0; i < count && which < r->arity; i++) {
        double x = a->x[which].f64[i], sigma = a->sigma[which][i];
        hlo_range range = r->ranges[which];
        if (has_pole(r, which) && sigma > 0 && fabs(x) <= LAMBDA * sigma && range.low <= 0 &&
            range.high >= 0)
            rate[i] = infinite;
        if (isinf(sigma)) rate[i] = r->result == HLO_TYPE_PRED ? 1 : infinite;
    }
    for (int64_t i = 0; i < count; i++) a->variance[i] += rate[i] * rate[i];
}

static void load_analysis(const row *r, analysis *a, int64_t count, int64_t done, char *const *data,
                          const int64_t *steps) {
    for (uint32_t o = 0; o < r->arity; o++) {
        uint32_t v = 2 + 2 * o;
        load_wide(r->types[o], data[v] + done * steps[v], steps[v], count, &a->x[o]);
        hlo_lane_load_f64(HLO_TYPE_F32, data[v + 1] + done * steps[v + 1], steps[v + 1], count,
                          a->sigma[o]);
    }
    for (int64_t i = 0; i < count; i++) {
        a->anything[i] = false;
        a->finite[i] = infinite;
        for (uint32_t o = 0; o < r->arity; o++)
            if (isnan(a->sigma[o][i])) {
                a->sigma[o][i] = infinite;
                a->anything[i] = true;
            }
    }
}

/* What zeros become by a scale that is infinite, NaN or too small to have a reciprocal is another
 * number where they are scaled elsewhere; a scale that overflowed may be infinite there, too. */
static void find_scales(const row *r, analysis *a, int64_t count) {
    bool divides = r->instr->op == HLO_OP_DIVIDE;
    for (uint32_t o = 0; o < 2; o++)
        for (int64_t i = 0; r->scales[o] && i < count; i++) {
            double scale = a->x[o].f64[i];
            bool good = divides ? fabs(scale) >= HLO_BOUND_FLUSHED : isfinite(scale);
            a->anything[i] |= !good;
        }
}

/* Whether the sign of a zero shows in the result. */
static bool shows_sign(const row *r, uint32_t operand) {
    hlo_op op = r->instr->op;
    if (analysed(r->types[operand]) != HLO_LANE_F64) return false;
    return op == HLO_OP_RSQRT || op == HLO_OP_ATAN2 || (op == HLO_OP_DIVIDE && operand == 1) ||
           (op == HLO_OP_POWER && operand == 0);
}

/* A zero that is scaled elsewhere may have the other sign. What is infinite by it may then be
 * infinite the other way, and what is made of that may be NaN. */
static void add_zeros(const row *r, analysis *a, uint32_t o, int64_t count) {
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

/* `anything`: NULL: no element may be that. */
static void store_sigma(const double *sigma, const bool *anything, int64_t count, char *out,
                        int64_t step) {
    for (int64_t i = 0; i < count; i++) {
        float s = (float)sigma[i];
        if (isnan(s)) s = (float)INFINITY;
        *(float *)(out + i * step) = anything && anything[i] ? (float)HLO_BOUND_ANYTHING : s;
    }
}

/* The error of the operation itself. A sum or product of exact numbers that f32 holds has none. */
static double own_error(const row *r, double ulps, double value, double variance) {
    if (!isfinite(value)) return 0;
    if (variance == 0 && ulps <= 1 && r->result != HLO_TYPE_F64 && (double)(float)value == value)
        return 0;
    double own = ulps * hlo_error_roundoff(r->result) * fabs(value);
    return own > 0 && fabs(value) < 2 * HLO_BOUND_FLUSHED ? own + HLO_BOUND_FLUSHED / LAMBDA : own;
}

/* What is infinite because an operand overflowed is certain only where it overflows without that.
 */
static void keep_overflow(const row *r, analysis *a, int64_t count, double *sigma) {
    for (int64_t i = 0; i < count; i++) {
        if (isinf(a->finite[i]) && a->finite[i] > 0) continue;
        bool again = a->finite[i] > 0 && isinf(hlo_error_round(r->result, a->finite[i]));
        if (again) sigma[i] = hlo_error_overflow(a->finite[i]);
        a->anything[i] |= !again;
    }
}

/* Rounds as the operation does and writes the sigmas out. */
static void finish(const row *r, analysis *a, double ulps, int64_t count, char *const *data,
                   const int64_t *steps) {
    double result[HLO_CHUNK], sigma[HLO_CHUNK];
    hlo_lane lane = hlo_lane_of(r->result);
    bool real = lane == HLO_LANE_F32 || lane == HLO_LANE_F64;
    double spread = (r->spread.high - r->spread.low) / 2;
    for (int64_t i = 0; i < count; i++) {
        double own = real ? own_error(r, ulps, a->value[i], a->variance[i]) : 0;
        sigma[i] = sqrt(a->variance[i] + own * own);
        if (!isnan(a->value[i])) sigma[i] = fmin(sigma[i], spread);
    }
    if (real) {
        hlo_lane_load_f64(r->result, data[0], steps[0], count, result);
        hlo_error_round_chunk(r->result, a->value, result, ulps > 0, NULL, r->options, count,
                              sigma);
        keep_overflow(r, a, count, sigma);
    }
    store_sigma(sigma, real ? a->anything : NULL, count, data[1], steps[1]);
}

/* How far lambda sigmas move an operand within its range. */
static double reach(const row *r, const analysis *a, uint32_t operand, int64_t i) {
    double x = a->x[operand].f64[i], by = LAMBDA * a->sigma[operand][i];
    hlo_range range = r->ranges[operand];
    return fmax(fmin(x + by, range.high) - x, x - fmax(x - by, range.low));
}

/* Both factors may be near 0 and depend on each other. */
static void add_product(const row *r, analysis *a, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double both = reach(r, a, 0, i) * reach(r, a, 1, i) / LAMBDA;
        if (both > 0 && isfinite(both) && !isinf(a->value[i])) a->variance[i] += both * both;
    }
}

static bool may_be_zero(const analysis *a, uint32_t operand, int64_t i) {
    return fabs(a->x[operand].f64[i]) <= LAMBDA * a->sigma[operand][i];
}

static bool may_be_infinite(const analysis *a, uint32_t operand, int64_t i) {
    return isinf(a->x[operand].f64[i]) || isinf(a->sigma[operand][i]);
}

/* Whether operands between the ends that add_changes() takes make a NaN: a product of what may be 0
 * and what may be infinite, a quotient of two that may both be the one or the other. */
static bool may_make_nan(const row *r, const analysis *a, int64_t i) {
    if (r->arity != 2 || r->twice) return false;
    bool large[] = {may_be_infinite(a, 0, i), may_be_infinite(a, 1, i)};
    bool small[] = {may_be_zero(a, 0, i), may_be_zero(a, 1, i)};
    if (r->instr->op == HLO_OP_MULTIPLY) return (large[0] && small[1]) || (small[0] && large[1]);
    if (r->instr->op == HLO_OP_DIVIDE) return (large[0] && large[1]) || (small[0] && small[1]);
    return false;
}

/* An infinity that may be NaN in the other execution, by its operands or because one of them may.
 * Of a number an infinite sigma says as much, and the number is judged by its noise. */
static void note_nans(const row *r, analysis *a, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!isinf(a->value[i])) continue;
        for (uint32_t o = 0; o < r->arity; o++)
            a->anything[i] |= analysed(r->types[o]) == HLO_LANE_F64 && isfinite(a->x[o].f64[i]) &&
                              isinf(a->sigma[o][i]);
        a->anything[i] |= may_make_nan(r, a, i);
    }
}

static void bound_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row *r = arg;
    bool discrete =
        hlo_lane_of(r->result) == HLO_LANE_S64 || hlo_lane_of(r->result) == HLO_LANE_U64;
    analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = count - done < HLO_CHUNK ? count - done : HLO_CHUNK;
        load_analysis(r, &a, n, done, data, steps);
        const hlo_chunk *in[3] = {&a.x[0], &a.x[1], &a.x[2]};
        run_loop(r, in, n, a.value);
        find_scales(r, &a, n);
        uint32_t uncertain = 0;
        for (int64_t i = 0; i < n; i++) a.variance[i] = 0;
        for (uint32_t o = 0; o < r->arity; o++) {
            if (r->options->roundings_may_be_dropped && shows_sign(r, o)) add_zeros(r, &a, o, n);
            if (!any_above_zero(a.sigma[o], n)) continue;
            uncertain++;
            if (!r->squares) add_changes(r, &a, o, n);
        }
        if (r->squares || (discrete && uncertain > 1)) add_changes(r, &a, r->arity, n);
        if (r->instr->op == HLO_OP_MULTIPLY && !discrete && !r->squares) add_product(r, &a, n);
        if (uncertain && !discrete) note_nans(r, &a, n);
        char *at[] = {data[0] + done * steps[0], data[1] + done * steps[1]};
        finish(r, &a, (double)r->op->ulps, n, at, steps);
    }
}

static bool only_moves(const hlo_instr *value) {
    return value->op == HLO_OP_CONVERT || hlo_instr_moves(value);
}

/* Whether the value is one number, or one that is repeated along some dimension; or what is
 * computed of such values, element by element. Looks down to `depth`. */
static bool is_scale_at(const hlo_instr *value, int depth) {
    if (hlo_shape_count(value->shape) == 1 || value->op == HLO_OP_BROADCAST) return true;
    bool moves = only_moves(value);
    if (!depth || !value->operand_count || !(moves || hlo_ops[value->op].flags & HLO_ELEMENTWISE))
        return false;
    for (uint32_t o = 0; o < (moves ? 1 : value->operand_count); o++)
        if (!is_scale_at(hlo_instr_operand(value, o), depth - 1)) return false;
    return true;
}

static bool is_scale(const hlo_instr *value) {
    enum { DEPTH = 8 };
    return is_scale_at(value, DEPTH);
}

/* Whether it is made of quantised values, scaled or not. */
static bool is_dequantised(const hlo_instr *value) {
    while (!hlo_type_is_fp8(value->shape->type)) {
        bool scaled = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_DIVIDE;
        if (!scaled && !only_moves(value)) return false;
        value = hlo_instr_operand(value, scaled && is_scale(hlo_instr_operand(value, 0)));
    }
    return true;
}

/* Whether rows of the shape may have one element: scales of rows are as many as elements, then. */
static bool is_thin(const hlo_shape *shape) {
    bool thin = shape->rank == 1;
    for (uint32_t d = 0; d < shape->rank; d++) thin |= shape->dims[d] == 1;
    return thin;
}

/* Whether the value is repeated, or thin, as it is or where it is moved or scaled further: one
 * element of it may scale a row then. */
static bool comes_to_rows(const hlo_instr *value, int *steps) {
    if (is_thin(value->shape)) return true;
    for (const hlo_use *use = value->uses; use && --*steps > 0; use = use->next) {
        hlo_op op = use->user->op;
        if (op == HLO_OP_BROADCAST) return true;
        bool on = only_moves(use->user) || op == HLO_OP_MULTIPLY || op == HLO_OP_DIVIDE;
        if (on && comes_to_rows(use->user, steps)) return true;
    }
    return false;
}

/* Whether the factor or divisor `o` is one that others may be scaled with elsewhere as well. */
static bool scales(const hlo_instr *instr, uint32_t o) {
    int steps = 64;
    if (instr->op != HLO_OP_MULTIPLY && (instr->op != HLO_OP_DIVIDE || o != 1)) return false;
    const hlo_instr *scale = hlo_instr_operand(instr, o), *other = hlo_instr_operand(instr, 1 - o);
    return is_scale(scale) ||
           (!is_dequantised(scale) && is_dequantised(other) && comes_to_rows(instr, &steps));
}

/* Runs `body` over the result, the operands and all sigmas. */
static void walk_bound(const hlo_error_call *b, row *r, hlo_strided_loop_body *body) {
    static const hlo_view exact = {.type = HLO_TYPE_F32, .data = (void *)&zero};
    const hlo_view *views[HLO_WALK_VIEWS] = {&b->call.results[0], &b->result_sigmas[0]};
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
    for (uint32_t o = 0; o < 2; o++) r->scales[o] = real && scales(r->instr, o);
    if (r->clamped) {
        double limit = hlo_float_max(r->result);
        r->ranges[0].low = fmax(r->ranges[0].low, -limit);
        r->ranges[0].high = fmin(r->ranges[0].high, limit);
    }
    hlo_strided_loop walk;
    hlo_strided_loop_init(&walk, views[0]->rank, views[0]->dims, 2 + 2 * r->arity, views);
    hlo_strided_loop_run_parallel(b->call.env, &walk, 0, body, r);
}

/* Complex numbers: exact operands leave the rounding, others leave nothing known. */
static void complex_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row *r = arg;
    for (int64_t i = 0; i < count; i++) {
        hlo_chunk value;
        hlo_lane_load(r->result, data[0] + i * steps[0], 0, 1, &value);
        bool complex = hlo_lane_of(r->result) == HLO_LANE_C128;
        double size = 0, sigma;
        if (complex)
            size = hypot(((const double *)&value)[0], ((const double *)&value)[1]);
        else
            hlo_lane_load_f64(r->result, data[0] + i * steps[0], 0, 1, &size);
        sigma = (r->op ? (double)r->op->ulps : 1) * hlo_error_roundoff(r->result) * fabs(size);
        for (uint32_t o = 0; o < r->arity; o++)
            if (*(const float *)(data[3 + 2 * o] + i * steps[3 + 2 * o]) != 0) sigma = infinite;
        store_sigma(&sigma, NULL, 1, data[1] + i * steps[1], steps[1]);
    }
}

static bool complex_call(const hlo_call *call) {
    if (hlo_lane_of(call->results[0].type) == HLO_LANE_C128) return true;
    for (uint32_t o = 0; o < call->operand_count; o++)
        if (hlo_lane_of(call->operands[o].type) == HLO_LANE_C128) return true;
    return false;
}

/* What select chooses, when the predicate may differ, is either of the two. Zeros among what may be
 * anything are scaled as that is. */
static void select_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row *r = arg;
    analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = count - done < HLO_CHUNK ? count - done : HLO_CHUNK;
        load_analysis(r, &a, n, done, data, steps);
        double x[HLO_CHUNK], y[HLO_CHUNK];
        as_doubles(analysed(r->types[1]), &a.x[1], n, x);
        as_doubles(analysed(r->types[2]), &a.x[2], n, y);
        for (int64_t i = 0; i < n; i++) {
            double sigma = a.sigma[a.x[0].u64[i] ? 1 : 2][i];
            bool pad_value = (a.x[0].u64[i] ? x[i] : y[i]) == 0;
            bool anything = a.anything[i] && (pad_value || isinf(sigma) || a.sigma[0][i] > 0);
            if (a.sigma[0][i] > 0) {
                sigma = fmax(a.sigma[1][i], a.sigma[2][i]);
                if (!hlo_error_same(x[i], y[i])) sigma += fabs(x[i] - y[i]) / HLO_BOUND_FLIP;
            }
            store_sigma(&sigma, &anything, 1, data[1] + (done + i) * steps[1], steps[1]);
        }
    }
}

hlo_status hlo_error_elementwise(const hlo_error_call *b) {
    row r = {.op = hlo_kernel_elementwise(b->call.instr)};
    if (complex_call(&b->call)) {
        walk_bound(b, &r, complex_row);
    } else if (b->call.instr->op == HLO_OP_SELECT) {
        walk_bound(b, &r, select_row);
    } else {
        r.produced = r.op->out == HLO_OUT_PRED
                         ? HLO_LANE_U64
                         : analysed(b->call.operands[b->call.operand_count - 1].type);
        walk_bound(b, &r, bound_row);
    }
    return HLO_OK;
}

/* A compare may differ where its operands' difference is within its bound. */
static void compare_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row *r = arg;
    analysis a;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = count - done < HLO_CHUNK ? count - done : HLO_CHUNK;
        load_analysis(r, &a, n, done, data, steps);
        double x[HLO_CHUNK], y[HLO_CHUNK];
        as_doubles(analysed(r->types[0]), &a.x[0], n, x);
        as_doubles(analysed(r->types[1]), &a.x[1], n, y);
        for (int64_t i = 0; i < n; i++) {
            double sigma = hypot(a.sigma[0][i], a.sigma[1][i]);
            bool near = sigma > 0 && !(fabs(x[i] - y[i]) > LAMBDA * sigma);
            double differs = near ? 1 / LAMBDA : 0;
            store_sigma(&differs, NULL, 1, data[1] + (done + i) * steps[1], steps[1]);
        }
    }
}

hlo_status hlo_error_compare_op(const hlo_error_call *b) {
    row r = {0};
    walk_bound(b, &r, complex_call(&b->call) ? complex_row : compare_row);
    return HLO_OK;
}

/* -------------------------------------------------------------------------------------- convert */

/* To an integer or a predicate: from the converted ends of the interval. */
static void discrete_sigma(hlo_type type, const double *x, const double *s, int64_t count,
                           double *sigma) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t cell[3] = {0};
        sigma[i] = 0;
        if (!(s[i] > 0)) continue;
        if (isinf(s[i]) && type != HLO_TYPE_PRED) {
            sigma[i] = infinite;
            continue;
        }
        double ends[] = {x[i], x[i] - LAMBDA * s[i], x[i] + LAMBDA * s[i]};
        if (type == HLO_TYPE_PRED) {
            bool reaches = !(ends[1] > 0 || ends[2] < 0);
            sigma[i] = reaches ? 1 / LAMBDA : 0;
            continue;
        }
        for (int e = 0; e < 3; e++) hlo_number_store(type, &cell[e], ends[e]);
        double value = hlo_number_load(type, &cell[0]);
        sigma[i] = fmax(fabs(hlo_number_load(type, &cell[1]) - value),
                        fabs(hlo_number_load(type, &cell[2]) - value)) /
                   LAMBDA;
    }
}

/* Whether a conversion between real types can round. */
static bool conversion_rounds(hlo_type from, hlo_type to) {
    if (!hlo_type_is_float(to)) return false;
    int bits = hlo_type_is_float(from) ? hlo_float_precision(from) : hlo_types[from].bits;
    return bits > hlo_float_precision(to);
}

/* What overflowed stays that where the number that it was is too large for the result's type, too.
 */
static void convert_overflow(const row *r, analysis *a, const double *result, int64_t count,
                             double *sigma) {
    for (int64_t i = 0; i < count; i++) {
        if (!hlo_error_overflowed(a->value[i], a->sigma[0][i])) continue;
        double number = instead(r->types[0], a->value[i], a->sigma[0][i]);
        bool same = hlo_error_same(hlo_error_round(r->result, number), result[i]);
        sigma[i] = hlo_type_is_fp8(r->result) ? 0 : a->sigma[0][i];
        a->anything[i] |= !same;
    }
}

static void convert_sigma_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row *r = arg;
    analysis a;
    double sigma[HLO_CHUNK];
    bool rounds = conversion_rounds(r->types[0], r->result);
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = count - done < HLO_CHUNK ? count - done : HLO_CHUNK;
        load_analysis(r, &a, n, done, data, steps);
        as_doubles(analysed(r->types[0]), &a.x[0], n, a.value);
        char *at[] = {data[0] + done * steps[0], data[1] + done * steps[1]};
        if (hlo_type_is_float(r->result)) {
            bool f32 = rounds && (r->result == HLO_TYPE_F32 || r->result == HLO_TYPE_F64);
            for (int64_t i = 0; i < n; i++)
                sigma[i] =
                    f32 && a.sigma[0][i] > 0
                        ? hypot(a.sigma[0][i], hlo_error_roundoff(r->result) * fabs(a.value[i]))
                        : a.sigma[0][i];
            double result[HLO_CHUNK];
            hlo_lane_load_f64(r->result, at[0], steps[0], n, result);
            hlo_error_round_chunk(r->result, a.value, result, rounds, &r->ranges[0], r->options, n,
                                  sigma);
            convert_overflow(r, &a, result, n, sigma);
        } else {
            discrete_sigma(r->result, a.value, a.sigma[0], n, sigma);
        }
        store_sigma(sigma, hlo_type_is_float(r->result) ? a.anything : NULL, n, at[1], steps[1]);
    }
}

/* Whether all values are finite in an fp8 type: they are taken to have been clamped, then. Where
 * they were not, one execution may have a NaN that the bound does not foresee; it is not
 * overlooked. */
static bool fits_fp8(const hlo_error_call *b) {
    hlo_type to = b->call.results[0].type;
    hlo_range r;
    if (!hlo_type_is_fp8(to) || !hlo_type_is_float(b->call.operands[0].type)) return false;
    hlo_view_extent(&b->call.operands[0], &r);
    return r.low >= -hlo_float_max(to) && r.high <= hlo_float_max(to);
}

hlo_status hlo_error_convert(const hlo_error_call *b) {
    row r = {.clamped = fits_fp8(b)};
    walk_bound(b, &r, complex_call(&b->call) ? complex_row : convert_sigma_row);
    return HLO_OK;
}
