/* The sigmas of what is not elementwise: movement, products, reductions. The method is in error.h.
 */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"
#include "ir/float/float.h"

#define LAMBDA HLO_BOUND_LAMBDA

static const float anything_f32 = (float)HLO_BOUND_ANYTHING;

/* --------------------------------------------------------------------------------- whole arrays */

/* The sigma of an element that may be any of an array's. */
static double spread_of(const hlo_extent *e) {
    return e->highest > e->lowest ? (e->highest - e->lowest) / LAMBDA + e->sigma : e->sigma;
}

static bool all_exact(const hlo_error_call *b) {
    for (uint32_t o = 0; o < b->call.operand_count; o++)
        if (!hlo_error_is_exact(&b->operand_sigmas[o])) return false;
    return true;
}

void hlo_error_fill(const hlo_error_call *b, const hlo_view *sigma, double value) {
    float element = (float)value;
    hlo_view scalar = {HLO_TYPE_F32, 0, NULL, NULL, &element};
    hlo_view_copy(b->call.env, &scalar, sigma);
}

static hlo_status fill_all(const hlo_error_call *b, double value) {
    for (uint32_t r = 0; r < b->call.result_count; r++)
        hlo_error_fill(b, &b->result_sigmas[r], value);
    return HLO_OK;
}

hlo_status hlo_error_exact(const hlo_error_call *b) {
    return fill_all(b, 0);
}

typedef struct overflows {
    hlo_type type;
    bool some, anything; /* elements that overflowed, that may be anything */
} overflows;

static void overflow_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    overflows *o = arg;
    double x[HLO_CHUNK];
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = count - done < HLO_CHUNK ? count - done : HLO_CHUNK;
        hlo_lane_load_f64(o->type, data[0] + done * steps[0], steps[0], n, x);
        for (int64_t i = 0; i < n; i++) {
            float sigma = *(const float *)(data[1] + (done + i) * steps[1]);
            o->anything |= isnan(sigma);
            o->some |= hlo_error_overflowed(x[i], (double)sigma);
        }
    }
}

static overflows overflows_of(const hlo_view *value, const hlo_view *sigma) {
    overflows found = {.type = value->type};
    if (!sigma->data || !hlo_type_is_float(value->type)) return found;
    const hlo_view *views[] = {value, sigma};
    hlo_strided_loop walk;
    hlo_strided_loop_init(&walk, value->rank, value->dims, 2, views);
    hlo_strided_loop_run(&walk, overflow_row, &found);
    return found;
}

/* Whether an operand of an operation that knows hlo_extent_empty of overflows has one. */
static bool overflowed(const hlo_error_call *b) {
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        overflows found = overflows_of(&b->call.operands[o], &b->operand_sigmas[o]);
        if (found.some || found.anything) return true;
    }
    return false;
}

/* Runs the kernel on other arrays. */
static hlo_status rerun(const hlo_error_call *b, const hlo_view *operands,
                        const hlo_view *results) {
    hlo_call call = b->call;
    call.operands = operands;
    call.results = results;
    return hlo_kernel_of(call.instr->op)->run(&call);
}

static hlo_view *operands_copy(const hlo_error_call *b) {
    return hlo_arena_copy(b->call.scratch, b->call.operands,
                          b->call.operand_count * sizeof *b->call.operands);
}

/* ------------------------------------------------------------------------------------- movement */

/* How many operands of `op` hold elements; those after them are places. */
static uint32_t elements(const hlo_instr *instr) {
    switch (instr->op) {
    case HLO_OP_DYNAMIC_SLICE:
    case HLO_OP_GATHER: return 1;
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return 2;
    default: return instr->operand_count;
    }
}

hlo_status hlo_error_move(const hlo_error_call *b) {
    hlo_view *operands = operands_copy(b);
    uint32_t count = elements(b->call.instr);
    for (uint32_t o = 0; o < count; o++)
        operands[o] = hlo_error_sigma_or_zeros(&b->call.operands[o], &b->operand_sigmas[o]);
    /* Padding is scaled as what it pads. */
    bool pads = b->call.instr->op == HLO_OP_PAD;
    if (pads && overflows_of(&b->call.operands[0], &b->operand_sigmas[0]).anything)
        operands[1].data = (void *)&anything_f32;
    return rerun(b, operands, b->result_sigmas);
}

static bool is_complex(const hlo_view *view) {
    return hlo_lane_of(view->type) == HLO_LANE_C128;
}

static bool places_are_certain(const hlo_error_call *b) {
    for (uint32_t o = elements(b->call.instr); o < b->call.operand_count; o++)
        if (!hlo_error_is_exact(&b->operand_sigmas[o])) return false;
    return true;
}

hlo_status hlo_error_indexed(const hlo_error_call *b) {
    uint32_t count = elements(b->call.instr);
    if (places_are_certain(b)) return hlo_error_move(b);
    if (is_complex(&b->call.results[0])) return fill_all(b, (double)INFINITY);
    hlo_extent e = hlo_extent_empty;
    for (uint32_t o = 0; o < count; o++)
        hlo_extent_add(&e, &b->call.operands[o], &b->operand_sigmas[o]);
    return fill_all(b, spread_of(&e));
}

/* Sorting one array moves no element of the sorted one by more than the largest move of an element
 * before; what goes along with it may become any other. */
hlo_status hlo_error_sort(const hlo_error_call *b) {
    if (all_exact(b)) return fill_all(b, 0);
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        hlo_extent e = hlo_extent_empty;
        hlo_extent_add(&e, &b->call.operands[o], &b->operand_sigmas[o]);
        double sigma = b->call.operand_count == 1 ? e.sigma : spread_of(&e);
        hlo_error_fill(b, &b->result_sigmas[o], sigma);
    }
    return HLO_OK;
}

/* The same of the first few of a sorted array; where they stood may be anywhere. */
hlo_status hlo_error_topk(const hlo_error_call *b) {
    if (all_exact(b)) return fill_all(b, 0);
    const hlo_view *in = b->call.operands;
    hlo_extent e = hlo_extent_empty;
    hlo_extent_add(&e, in, &b->operand_sigmas[0]);
    hlo_error_fill(b, &b->result_sigmas[0], e.sigma);
    hlo_error_fill(b, &b->result_sigmas[1], (double)in->dims[in->rank - 1]);
    return HLO_OK;
}

/* -------------------------------------------------------------------------- moving whole arrays */

/* A copy of `value`, each element moved by `sign` * lambda * sigma, in `type`. One of infinite
 * sigma becomes infinite, a NaN too: it may be any number elsewhere. */
static hlo_view moved(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma,
                      double sign, hlo_type type) {
    hlo_arena *scratch = b->call.scratch;
    hlo_view x = hlo_view_scratch(scratch, HLO_TYPE_F64, value);
    hlo_view s = hlo_view_scratch(scratch, HLO_TYPE_F64, value),
             from = hlo_error_sigma_or_zeros(value, sigma);
    hlo_view_convert(b->call.env, value, &x);
    hlo_view_convert(b->call.env, &from, &s);
    double *at = x.data, *by = s.data;
    int64_t count = hlo_view_count(value);
    for (int64_t i = 0; i < count; i++) {
        if (!(by[i] > 0)) continue;
        at[i] = value->type == HLO_TYPE_PRED ? (double)(sign > 0)
                : isinf(by[i])               ? sign * by[i]
                                             : at[i] + sign * LAMBDA * by[i];
    }
    if (type == HLO_TYPE_F64) return x;
    hlo_view out = hlo_view_scratch(scratch, type, value);
    hlo_view_convert(b->call.env, &x, &out);
    return out;
}

/* Adds (change / lambda)^2 to `variance`, change being that of `a` or `c` from `value`, whichever
 * is larger. All dense f64. */
static void add_change(const hlo_view *value, const hlo_view *a, const hlo_view *c,
                       double *variance) {
    int64_t count = hlo_view_count(value);
    const double *v = value->data, *x = a->data, *y = c->data;
    for (int64_t i = 0; i < count; i++) {
        double up = x[i] == v[i] ? 0 : fabs(x[i] - v[i]);
        double down = y[i] == v[i] ? 0 : fabs(y[i] - v[i]);
        double change = isnan(up) || isnan(down) ? (double)INFINITY : fmax(up, down);
        if (isnan(v[i]) && isnan(x[i]) && isnan(y[i])) change = 0;
        variance[i] += change / LAMBDA * (change / LAMBDA);
    }
}

static hlo_view as_f64(const hlo_error_call *b, const hlo_view *value) {
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, value);
    hlo_view_convert(b->call.env, value, &out);
    return out;
}

/* Rounds the results as their type does, and writes their sigmas. `variance` is dense; so is
 * `unrounded`, the results before rounding, NULL where only the rounded ones are known. Of an
 * infinity of infinite sigma hlo_extent_empty is known, as what makes it may be NaN; nor of a NaN
 * that is a sum, which are the results that `rounds` says are rounded. */
static void finish(const hlo_error_call *b, uint32_t result, const double *variance,
                   const double *unrounded, bool rounds) {
    const hlo_view *value = &b->call.results[result];
    hlo_view exact = as_f64(b, value);
    hlo_view sigma = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, value);
    double *s = sigma.data;
    const double *rounded = exact.data, *v = unrounded ? unrounded : rounded;
    int64_t count = hlo_view_count(value);
    for (int64_t i = 0; i < count; i++) s[i] = isnan(variance[i]) ? INFINITY : sqrt(variance[i]);
    if (hlo_type_is_float(value->type))
        for (int64_t done = 0; done < count; done += HLO_CHUNK)
            hlo_error_round_chunk(value->type, v + done, rounded + done, rounds, NULL, b->options,
                                  count - done < HLO_CHUNK ? count - done : HLO_CHUNK, s + done);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(variance[i]) && (isinf(v[i]) || (rounds && isnan(v[i]))))
            s[i] = HLO_BOUND_ANYTHING;
    hlo_view_convert(b->call.env, &sigma, &b->result_sigmas[result]);
}

static double *new_variance(const hlo_error_call *b, uint32_t result) {
    size_t count = (size_t)hlo_view_count(&b->call.results[result]);
    double *variance = hlo_arena_array(b->call.scratch, count, sizeof *variance);
    for (size_t i = 0; i < count; i++) variance[i] = 0;
    return variance;
}

enum { MAX_RESULTS = 32 };

/* The results with the operands of `which` (all: operand_count) moved, in f64. */
static hlo_status rerun_moved(const hlo_error_call *b, uint32_t which, double sign,
                              hlo_view *out_results) {
    hlo_view *operands = operands_copy(b), results[MAX_RESULTS];
    for (uint32_t o = 0; o < b->call.operand_count; o++)
        if (o == which && b->operand_sigmas[o].data)
            operands[o] = moved(b, &operands[o], &b->operand_sigmas[o], sign, operands[o].type);
    for (uint32_t r = 0; r < b->call.result_count; r++)
        results[r] =
            hlo_view_scratch(b->call.scratch, b->call.results[r].type, &b->call.results[r]);
    hlo_status status = rerun(b, operands, results);
    for (uint32_t r = 0; r < b->call.result_count; r++) out_results[r] = as_f64(b, &results[r]);
    return status;
}

hlo_status hlo_error_moved(const hlo_error_call *b) {
    uint32_t count = b->call.result_count;
    if (count > MAX_RESULTS || is_complex(&b->call.results[0]))
        return fill_all(b, all_exact(b) ? 0 : (double)INFINITY);
    double *variance[MAX_RESULTS];
    for (uint32_t r = 0; r < count; r++) {
        variance[r] = new_variance(b, r);
        hlo_view value = as_f64(b, &b->call.results[r]);
        double own = hlo_type_is_float(b->call.results[r].type)
                         ? 4 * hlo_error_roundoff(b->call.results[r].type)
                         : 0;
        for (int64_t i = 0; i < hlo_view_count(&value); i++) {
            double v = own * ((const double *)value.data)[i];
            variance[r][i] = isfinite(v) ? v * v : 0;
        }
    }
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        hlo_view up[MAX_RESULTS], down[MAX_RESULTS];
        if (hlo_error_is_exact(&b->operand_sigmas[o])) continue;
        hlo_status status = rerun_moved(b, o, 1, up);
        if (status == HLO_OK) status = rerun_moved(b, o, -1, down);
        if (status != HLO_OK) return status;
        for (uint32_t r = 0; r < count; r++) {
            hlo_view value = as_f64(b, &b->call.results[r]);
            add_change(&value, &up[r], &down[r], variance[r]);
        }
    }
    for (uint32_t r = 0; r < count; r++) finish(b, r, variance[r], NULL, false);
    return HLO_OK;
}

/* ---------------------------------------------------------------------------- sums and extremes */

/* The squares of `view`, an infinity or NaN giving `instead`. */
static hlo_view squares(const hlo_error_call *b, const hlo_view *view, double instead) {
    hlo_view out = as_f64(b, view);
    double *v = out.data;
    int64_t count = hlo_view_count(&out);
    for (int64_t i = 0; i < count; i++) v[i] = isfinite(v[i]) ? v[i] * v[i] : instead;
    return out;
}

static hlo_view ones(const hlo_error_call *b, const hlo_view *like, double value) {
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, like);
    double *v = out.data;
    for (int64_t i = 0; i < hlo_view_count(&out); i++) v[i] = value;
    return out;
}

/* The variance that accumulating `terms` terms in unknown order adds. */
static double accumulation(double u, double terms, double sum_of_squares, double sum) {
    if (!isfinite(sum) || terms <= 1) return 0;
    double subnormal =
        sum != 0 && fabs(sum) < 2 * HLO_BOUND_FLUSHED ? HLO_BOUND_FLUSHED / LAMBDA : 0;
    return u * u * (terms / 6 * sum_of_squares + terms / 9 * sum * sum) + subnormal * subnormal;
}

/* By how much the variance of a sum is larger than that of its terms together, for an error that
 * all terms share (error.h). */
static double coherence(double sum_of_squares, double sum) {
    double c = 6 / (LAMBDA * LAMBDA) * sum * sum / sum_of_squares;
    return isfinite(c) && c > 1 ? c : 1;
}

/* The roundoff of partial sums. HLO's reducer adds in its own type, and XLA's CPU does so step by
 * step; a sum in f32 that is rounded once is the other legitimate way. */
static double partial_roundoff(hlo_type type) {
    double own = hlo_type_is_float(type) ? ldexp(1, -hlo_float_precision(type)) : 0;
    return fmax(own, hlo_error_roundoff(type));
}

/* Of a reduce whose terms repeat, operands with the variances of such terms together; `variances`:
 * the operands with those of each term. NULL: none repeat. */
static const hlo_view *joined_terms(const hlo_error_call *b, const hlo_view *variances) {
    static const hlo_ints no_batch = {0};
    const hlo_view *value = &b->call.operands[0];
    if (b->call.instr->op != HLO_OP_REDUCE || hlo_error_is_exact(&b->operand_sigmas[0]))
        return NULL;
    const hlo_ints *along = hlo_instr_ints(b->call.instr, HLO_ATTR_DIMENSIONS);
    const int64_t *first = hlo_error_repeats(b, value, variances, &no_batch, along);
    if (!first) return NULL;
    hlo_view each = ones(b, value, 1),
             factors = hlo_error_joined(b, first, &each, &no_batch, along);
    double *joined = factors.data;
    const double *variance = variances->data;
    for (int64_t i = 0; i < hlo_view_count(value); i++)
        joined[i] = joined[i] > 0 ? joined[i] * variance[i] : 0;
    hlo_view *operands =
        hlo_arena_copy(b->call.scratch, variances, b->call.operand_count * sizeof *variances);
    operands[0] = factors;
    return operands;
}

/* For a kernel that adds elements to elements: its results on sigma^2, on value^2 and on ones say
 * what the sums are off by. Operand `indices` (of scatter; else operand_count) is passed on. */
static hlo_status bound_sum(const hlo_error_call *b, uint32_t indices) {
    const hlo_call *call = &b->call;
    hlo_view *s = operands_copy(b), *x = operands_copy(b), *n = operands_copy(b);
    bool scatter = call->instr->op == HLO_OP_SCATTER;
    for (uint32_t o = 0; o < call->operand_count; o++) {
        if (o == indices) continue;
        hlo_view sigma = hlo_error_sigma_or_zeros(&call->operands[o], &b->operand_sigmas[o]);
        bool start = scatter ? o < indices : o >= call->operand_count / 2;
        s[o] = squares(b, &sigma, (double)INFINITY);
        x[o] = squares(b, &call->operands[o], 0);
        n[o] = ones(b, &call->operands[o], !start || scatter);
    }
    hlo_view sums[4];
    const hlo_view *from[] = {s, x, n, joined_terms(b, s)};
    for (int i = 0; i < 4; i++) {
        if (!from[i]) break;
        sums[i] = hlo_view_scratch(call->scratch, HLO_TYPE_F64, &call->results[0]);
        hlo_status status = rerun(b, from[i], &sums[i]);
        if (status != HLO_OK) return status;
    }
    hlo_view value = as_f64(b, &call->results[0]);
    bool real = hlo_type_is_float(call->results[0].type);
    double *variance = sums[0].data, u = partial_roundoff(call->results[0].type);
    const double *squared = sums[1].data, *terms = sums[2].data, *v = value.data;
    const double *joined = from[3] ? sums[3].data : NULL;
    for (int64_t i = 0; real && i < hlo_view_count(&value); i++) {
        variance[i] *= coherence(squared[i], v[i]);
        if (joined) variance[i] = hlo_error_larger(variance[i], joined[i]);
        variance[i] += accumulation(u, terms[i], squared[i], v[i]);
    }
    finish(b, 0, variance, NULL, true);
    return HLO_OK;
}

/* For a kernel that is monotone in every element. */
static hlo_status bound_monotone(const hlo_error_call *b, uint32_t indices) {
    hlo_view *up = operands_copy(b), *down = operands_copy(b);
    const hlo_view *result = &b->call.results[0];
    hlo_type type = result->type == HLO_TYPE_PRED ? HLO_TYPE_PRED : HLO_TYPE_F64;
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        if (o == indices) continue;
        up[o] = moved(b, &b->call.operands[o], &b->operand_sigmas[o], 1, type);
        down[o] = moved(b, &b->call.operands[o], &b->operand_sigmas[o], -1, type);
    }
    hlo_view high = hlo_view_scratch(b->call.scratch, type, result);
    hlo_view low = hlo_view_scratch(b->call.scratch, type, result);
    hlo_status status = rerun(b, up, &high);
    if (status == HLO_OK) status = rerun(b, down, &low);
    if (status != HLO_OK) return status;
    high = as_f64(b, &high);
    low = as_f64(b, &low);
    hlo_view value = as_f64(b, &b->call.results[0]);
    double *variance = new_variance(b, 0);
    add_change(&value, &high, &low, variance);
    finish(b, 0, variance, NULL, false);
    return HLO_OK;
}

/* A reduce or scatter of one array by a single operation; `indices` as above. On predicates, `and`
 * is the minimum, `or` the maximum. */
static hlo_status bound_combination(const hlo_error_call *b, uint32_t indices) {
    const hlo_call *call = &b->call;
    hlo_op op = hlo_region_simple(hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY));
    bool pred = call->results[0].type == HLO_TYPE_PRED;
    if (call->result_count != 1 || is_complex(&call->results[0])) return hlo_error_moved(b);
    bool sum = op == HLO_OP_ADD && !pred;
    bool monotone = op == HLO_OP_MAXIMUM || op == HLO_OP_MINIMUM ||
                    (pred && (op == HLO_OP_AND || op == HLO_OP_OR));
    if (!hlo_type_is_float(call->results[0].type) && all_exact(b)) return fill_all(b, 0);
    if (monotone && all_exact(b)) return fill_all(b, 0);
    if (sum) return bound_sum(b, indices);
    if (monotone) return bound_monotone(b, indices);
    return hlo_error_moved(b);
}

hlo_status hlo_error_reduce(const hlo_error_call *b) {
    return bound_combination(b, b->call.operand_count);
}

hlo_status hlo_error_scatter(const hlo_error_call *b) {
    uint32_t indices = b->call.operand_count / 2;
    if (!hlo_error_is_exact(&b->operand_sigmas[indices])) return fill_all(b, (double)INFINITY);
    hlo_op op = hlo_region_simple(hlo_instr_comp(b->call.instr, HLO_ATTR_TO_APPLY));
    if (op != HLO_OP_PARAMETER || b->call.result_count != 1) return bound_combination(b, indices);
    hlo_view *operands = operands_copy(b);
    operands[0] = hlo_error_sigma_or_zeros(&b->call.operands[0], &b->operand_sigmas[0]);
    operands[2] = hlo_error_sigma_or_zeros(&b->call.operands[2], &b->operand_sigmas[2]);
    return rerun(b, operands, b->result_sigmas);
}

/* ------------------------------------------------------------------------------------------ dot */

/* Adds a x c to the variance. In f64, where no square of an f32 vanishes: columns may differ that
 * much. */
static hlo_status add_product(const hlo_error_call *b, hlo_dot_dims dims, const hlo_view *a,
                              const hlo_view *c, double *variance, const char **why) {
    const hlo_view *result = b->call.results;
    hlo_arena *scratch = b->call.scratch;
    hlo_arena_mark mark = hlo_arena_here(scratch);
    hlo_view product = hlo_view_scratch(scratch, HLO_TYPE_F64, result);
    hlo_status status = hlo_eval_dot_views(b->call.env, dims, a, c, &product, scratch, why);
    const double *p = product.data;
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(result); i++) variance[i] += p[i];
    hlo_arena_release(scratch, mark);
    return status;
}

static double contracted(hlo_dot_dims dims, const hlo_view *lhs) {
    double terms = 1;
    for (uint32_t i = 0; i < dims.lhs_contracting->count; i++)
        terms *= (double)lhs->dims[dims.lhs_contracting->v[i]];
    return terms;
}

/* The product before it is rounded to the result's type, and what it is in f64, as doubles. */
static hlo_status unrounded(const hlo_error_call *b, hlo_dot_dims dims, const hlo_view *lhs,
                            const hlo_view *rhs, const double **out_value, const double **out_exact,
                            const char **why) {
    const hlo_view *result = &b->call.results[0];
    hlo_view wide = *result, exact;
    hlo_status status = HLO_OK;
    if (hlo_type_is_float(result->type) && hlo_types[result->type].bits < 32) {
        wide = hlo_view_scratch(b->call.scratch, HLO_TYPE_F32, result);
        status = hlo_eval_dot_views(b->call.env, dims, lhs, rhs, &wide, b->call.scratch, why);
    }
    wide = exact = as_f64(b, &wide);
    if (status == HLO_OK && hlo_type_is_float(result->type) && result->type != HLO_TYPE_F64) {
        exact = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, result);
        status = hlo_eval_dot_views(b->call.env, dims, lhs, rhs, &exact, b->call.scratch, why);
    }
    *out_value = wide.data;
    *out_exact = exact.data;
    return status;
}

/* The variance with what this execution is off by itself (error.h); `exact` was computed in f64. */
static double with_own(double variance, double value, double exact) {
    double own = fabs(value - exact) / LAMBDA, sigma = sqrt(variance) + own;
    return isfinite(own) ? sigma * sigma : variance;
}

/* The variance relative to the sum of the terms' squares, when an operand may first be converted to
 * the result's type, which is narrower. */
static double narrowing(hlo_type operand, hlo_type result) {
    bool narrower = hlo_type_is_fp8(operand) && hlo_type_is_fp8(result) &&
                    hlo_float_precision(operand) > hlo_float_precision(result);
    return narrower ? ldexp(1, -2 * hlo_float_precision(result)) / 3 : 0;
}

/* A dot's operand: squares of the values and of their sigmas, and whether there are any. */
typedef struct side {
    hlo_view values, sigmas;
    bool exact;
} side;

static side side_of(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma) {
    side s = {.exact = hlo_error_is_exact(sigma), .values = squares(b, value, 0)};
    if (!s.exact) s.sigmas = squares(b, sigma, (double)INFINITY);
    return s;
}

/* Adds what the sigmas of the operands give. */
static hlo_status add_errors(const hlo_error_call *b, hlo_dot_dims dims, const side *l,
                             const side *r, double *variance, const char **why) {
    hlo_status status = HLO_OK;
    if (!l->exact) status = add_product(b, dims, &l->sigmas, &r->values, variance, why);
    if (!r->exact && status == HLO_OK)
        status = add_product(b, dims, &l->values, &r->sigmas, variance, why);
    if (!l->exact && !r->exact && status == HLO_OK)
        status = add_product(b, dims, &l->sigmas, &r->sigmas, variance, why);
    return status;
}

/* Raises the variance to what the errors of one operand give where its terms repeat. `right`: that
 * is the right one. */
static hlo_status raise_repeats(const hlo_error_call *b, hlo_dot_dims dims, const side *erring,
                                const hlo_view *value, const hlo_view *other, bool right,
                                double *variance, const char **why) {
    const hlo_ints *batch[] = {dims.lhs_batch, dims.rhs_batch};
    const hlo_ints *along[] = {dims.lhs_contracting, dims.rhs_contracting};
    const int64_t *first =
        erring->exact ? NULL
                      : hlo_error_repeats(b, value, &erring->sigmas, batch[right], along[right]);
    if (!first) return HLO_OK;
    hlo_view factors = hlo_error_joined(b, first, other, batch[!right], along[!right]);
    double *joined = new_variance(b, 0);
    hlo_status status = add_product(b, dims, right ? &factors : &erring->sigmas,
                                    right ? &erring->sigmas : &factors, joined, why);
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(b->call.results); i++)
        variance[i] = hlo_error_larger(variance[i], joined[i]);
    return status;
}

/* 1 where `value` may be 0 or of either sign, else 0. */
static hlo_view may_turn(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma) {
    hlo_view out = as_f64(b, value), from = hlo_error_sigma_or_zeros(value, sigma),
             s = as_f64(b, &from);
    double *v = out.data;
    const double *by = s.data;
    for (int64_t i = 0; i < hlo_view_count(&out); i++)
        v[i] = by[i] > 0 && !(fabs(v[i]) > LAMBDA * by[i]);
    return out;
}

/* What an infinity in `other` is multiplied with may be 0 or have another sign in the other
 * execution: then the sum may be NaN there, or an infinity here. */
static hlo_status note_infinities(const hlo_error_call *b, hlo_dot_dims dims, const hlo_view *value,
                                  const hlo_view *sigma, const hlo_view *other, bool right,
                                  const char **why) {
    hlo_range range;
    hlo_view_extent(other, &range);
    if ((isfinite(range.low) && isfinite(range.high)) || hlo_error_is_exact(sigma)) return HLO_OK;
    hlo_view turns = may_turn(b, value, sigma), infinite = as_f64(b, other);
    hlo_view sigmas = as_f64(b, &b->result_sigmas[0]);
    double *v = infinite.data, *s = sigmas.data, *found = new_variance(b, 0);
    for (int64_t i = 0; i < hlo_view_count(&infinite); i++) v[i] = isinf(v[i]);
    hlo_status status =
        add_product(b, dims, right ? &infinite : &turns, right ? &turns : &infinite, found, why);
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(&sigmas); i++)
        if (found[i] > 0) s[i] = HLO_BOUND_ANYTHING;
    if (status == HLO_OK) hlo_view_convert(b->call.env, &sigmas, &b->result_sigmas[0]);
    return status;
}

/* Where elements of operands overflowed, what is made of them may be anything. A dot of fp8 type
 * has no finite number where it overflows itself; the call that it becomes saturates. */
static void note_overflows(const hlo_error_call *b, const double *value, bool inherited) {
    const hlo_view *result = &b->call.results[0];
    bool saturates = hlo_type_is_fp8(result->type) && b->options->roundings_may_be_dropped;
    if (!saturates && !inherited) return;
    hlo_view found = as_f64(b, result), sigmas = as_f64(b, &b->result_sigmas[0]);
    const double *f = found.data;
    double *s = sigmas.data;
    for (int64_t i = 0; i < hlo_view_count(result); i++)
        if (inherited && !isfinite(value[i]))
            s[i] = HLO_BOUND_ANYTHING;
        else if (saturates && !isfinite(f[i]) && !isnan(value[i]) && s[i] == 0)
            s[i] = hlo_error_overflow(value[i]);
    hlo_view_convert(b->call.env, &sigmas, &b->result_sigmas[0]);
}

hlo_status hlo_error_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                               const hlo_view *lhs_sigma, const hlo_view *rhs,
                               const hlo_view *rhs_sigma, const hlo_view *result,
                               const hlo_view *result_sigma, const hlo_error_options *options,
                               hlo_arena *scratch, const char **why) {
    static const hlo_eval_env alone = {0};
    hlo_arena_mark mark = hlo_arena_here(scratch);
    hlo_error_call b = {.call = {.env = env ? env : &alone,
                                 .results = result,
                                 .result_count = 1,
                                 .scratch = scratch},
                        .result_sigmas = result_sigma,
                        .options = options};
    overflows found[] = {overflows_of(lhs, lhs_sigma), overflows_of(rhs, rhs_sigma)};
    if (found[0].anything || found[1].anything) {
        hlo_error_fill(&b, result_sigma, HLO_BOUND_ANYTHING);
        hlo_arena_release(scratch, mark);
        return HLO_OK;
    }
    side l = side_of(&b, lhs, lhs_sigma), r = side_of(&b, rhs, rhs_sigma);
    double *variance = new_variance(&b, 0), *errors = new_variance(&b, 0);
    /* Of operations that are fused the scales of the operands may come after the sum, even of one
     * term. */
    double u = hlo_error_roundoff(result->type), terms = contracted(dims, lhs);
    if (options->roundings_may_be_dropped) terms = fmax(terms, 2);
    /* A product whose type is fp8 may come by way of f16, and of operands of that type. */
    double by_f16 = hlo_type_is_fp8(result->type) ? 0x1p-22 : 0;
    double narrow = narrowing(lhs->type, result->type) + narrowing(rhs->type, result->type);

    const double *value, *exact;
    hlo_status status = unrounded(&b, dims, lhs, rhs, &value, &exact, why);
    bool real = hlo_type_is_float(result->type);
    if (status == HLO_OK && real)
        status = add_product(&b, dims, &l.values, &r.values, variance, why);
    if (status == HLO_OK) status = add_errors(&b, dims, &l, &r, errors, why);
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(result); i++)
        errors[i] *= coherence(variance[i], value[i]);
    if (status == HLO_OK) status = raise_repeats(&b, dims, &l, lhs, rhs, false, errors, why);
    if (status == HLO_OK) status = raise_repeats(&b, dims, &r, rhs, lhs, true, errors, why);
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(result); i++) {
        double squares = variance[i], v = value[i];
        variance[i] = errors[i];
        if (real && isfinite(v))
            variance[i] += accumulation(u, terms, squares, v) + narrow * squares + by_f16 * v * v;
        if (real) variance[i] = with_own(variance[i], v, exact[i]);
    }
    if (status == HLO_OK) finish(&b, 0, variance, value, true);
    if (status == HLO_OK) note_overflows(&b, value, found[0].some || found[1].some);
    if (status == HLO_OK) status = note_infinities(&b, dims, lhs, lhs_sigma, rhs, false, why);
    if (status == HLO_OK) status = note_infinities(&b, dims, rhs, rhs_sigma, lhs, true, why);
    hlo_arena_release(scratch, mark);
    return status;
}

hlo_status hlo_error_dot(const hlo_error_call *b) {
    const hlo_call *call = &b->call;
    const char *why;
    if (is_complex(&call->results[0])) return fill_all(b, (double)INFINITY);
    return hlo_error_dot_views(call->env, hlo_dot_dims_of(call->instr), &call->operands[0],
                               &b->operand_sigmas[0], &call->operands[1], &b->operand_sigmas[1],
                               &call->results[0], b->result_sigmas, b->options, call->scratch,
                               &why);
}

/* ------------------------------------------------------------------------------------- dispatch */

static hlo_error_rule *const rules[] = {
#define FORM(id, name) hlo_error_##name,
    HLO_ERROR_FORMS(FORM)
#undef FORM
};

/* Whether the kernel's bound says itself what becomes of overflows. */
static bool knows_overflows(const hlo_kernel *kernel) {
    return kernel->error == HLO_ERROR_ELEMENTWISE || kernel->error == HLO_ERROR_COMPARE_OP ||
           kernel->error == HLO_ERROR_CONVERT || kernel->error == HLO_ERROR_MOVE ||
           kernel->error == HLO_ERROR_EXACT || kernel->error == HLO_ERROR_DOT;
}

static hlo_status bound_of(const hlo_error_call *b) {
    const hlo_kernel *kernel = hlo_kernel_of(b->call.instr->op);
    if (knows_overflows(kernel)) return rules[kernel->error](b);
    if (kernel->error == HLO_ERROR_INDEXED && places_are_certain(b)) return hlo_error_move(b);
    return overflowed(b) ? fill_all(b, HLO_BOUND_ANYTHING) : rules[kernel->error](b);
}

hlo_status hlo_eval_bound(const hlo_eval_env *env, const hlo_instr *instr, const hlo_view *operands,
                          const hlo_view *operand_sigmas, const hlo_view *results,
                          const hlo_view *result_sigmas, const hlo_error_options *options,
                          hlo_arena *scratch, const char **why) {
    hlo_error_call b = {
        .operand_sigmas = operand_sigmas, .result_sigmas = result_sigmas, .options = options};
    hlo_call_init(&b.call, env, instr, operands, results, scratch);
    const char *refusal = hlo_call_refusal(instr);
    hlo_status status = HLO_INVALID_INPUT;
    if (!refusal) {
        hlo_arena_mark mark = hlo_arena_here(scratch);
        status = bound_of(&b);
        hlo_arena_release(scratch, mark);
        if (status != HLO_OK) refusal = "the error bound of this operation is not known";
    }
    if (why) *why = refusal;
    return status;
}
