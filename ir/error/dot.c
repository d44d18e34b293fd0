/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sigmas of dots and ragged-dots. The method is in docs/numerics.md. */
#include <math.h>

#include "ir/error/rules.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"

#define LAMBDA HLO_ERROR_LAMBDA

/* Adds a x c to the variance, in f64: the square of an f32 may underflow in f32 if columns differ
 * much in magnitude. */
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

/* Computes the product before rounding to the result's type, and the product in f64; both arrays
 * are doubles. Where a sum is infinite only in f32, uses its f64 value: moving scales after the sum
 * may avoid the infinity. */
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
    wide = exact = hlo_error_as_f64(b, &wide);
    if (status == HLO_OK && hlo_type_is_float(result->type) && result->type != HLO_TYPE_F64) {
        exact = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, result);
        status = hlo_eval_dot_views(b->call.env, dims, lhs, rhs, &exact, b->call.scratch, why);
    }
    double *value = wide.data;
    *out_value = value;
    *out_exact = exact.data;
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(result); i++)
        if (isinf(value[i]) && isfinite((*out_exact)[i])) value[i] = (*out_exact)[i];
    return status;
}

/* Returns the variance, relative to the sum of the terms' squares, of converting an operand to the
 * result's narrower type first. */
static double narrowing(hlo_type operand, hlo_type result) {
    bool narrower = hlo_type_is_fp8(operand) && hlo_type_is_fp8(result) &&
                    hlo_float_precision(operand) > hlo_float_precision(result);
    return narrower ? ldexp(1, -2 * hlo_float_precision(result)) / 3 : 0;
}

/* An operand of a dot: squares of its values and of its sigmas, and whether its sigmas are
 * nonzero. */
typedef struct side {
    hlo_view values, sigmas;
    bool exact;
} side;

static side side_of(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma) {
    side s = {.exact = hlo_error_is_exact(sigma), .values = hlo_error_squares(b, value, 0)};
    if (!s.exact) s.sigmas = hlo_error_squares(b, sigma, (double)INFINITY);
    return s;
}

/* Raises the variance where terms of one operand repeat, to the variance that their errors cause.
 * `right`: the operand is the right one. */
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
    double *joined = hlo_error_variance_new(b, 0);
    hlo_status status = add_product(b, dims, right ? &factors : &erring->sigmas,
                                    right ? &erring->sigmas : &factors, joined, why);
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(b->call.results); i++)
        variance[i] = hlo_error_larger(variance[i], joined[i]);
    return status;
}

/* Marks sums that contain an infinity of `other` times a factor that, in the other execution, may
 * be 0 or have another sign. One execution may then have a NaN where the other has an infinity. */
static hlo_status note_infinities(const hlo_error_call *b, hlo_dot_dims dims, const hlo_view *value,
                                  const hlo_view *sigma, const hlo_view *other, bool right,
                                  const char **why) {
    const hlo_extent e = hlo_view_extent(other);
    if ((isfinite(e.lowest) && isfinite(e.highest)) || hlo_error_is_exact(sigma)) return HLO_OK;
    hlo_view out = hlo_error_as_f64(b, value), t = hlo_error_sigma_as_f64(b, value, sigma);
    double *w = out.data;
    const double *by = t.data;
    for (int64_t j = 0; j < hlo_view_count(&out); j++)
        w[j] = by[j] > 0 && !(fabs(w[j]) > LAMBDA * by[j]);
    hlo_view turns = out, infinite = hlo_error_as_f64(b, other);
    hlo_view sigmas = hlo_error_as_f64(b, &b->result_sigmas[0]);
    double *v = infinite.data, *s = sigmas.data, *found = hlo_error_variance_new(b, 0);
    for (int64_t i = 0; i < hlo_view_count(&infinite); i++)
        v[i] = isinf(v[i]) != 0; /* isinf() may return -1 */
    hlo_status status =
        add_product(b, dims, right ? &infinite : &turns, right ? &turns : &infinite, found, why);
    for (int64_t i = 0; status == HLO_OK && i < hlo_view_count(&sigmas); i++)
        if (found[i] > 0) s[i] = HLO_ERROR_ANYTHING;
    if (status == HLO_OK) hlo_view_convert(b->call.env, &sigmas, &b->result_sigmas[0]);
    return status;
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
    hlo_error_overflows found[] = {hlo_error_find_overflows(lhs, lhs_sigma),
                                   hlo_error_find_overflows(rhs, rhs_sigma)};
    if (found[0].anything || found[1].anything) {
        hlo_error_fill(&b, result_sigma, HLO_ERROR_ANYTHING);
        hlo_arena_release(scratch, mark);
        return HLO_OK;
    }
    side l = side_of(&b, lhs, lhs_sigma), r = side_of(&b, rhs, rhs_sigma);
    double *variance = hlo_error_variance_new(&b, 0), *errors = hlo_error_variance_new(&b, 0);
    /* A fusion may apply the operands' scales after the sum, even if the sum has a single term. */
    double u = hlo_error_roundoff(result->type), terms = 1;
    for (uint32_t i = 0; i < dims.lhs_contracting->count; i++)
        terms *= (double)lhs->dims[dims.lhs_contracting->v[i]];
    if (options->roundings_may_be_dropped) terms = fmax(terms, 2);
    /* If operands and result have an fp8 type, other executions may compute the product in f16. */
    double by_f16 = hlo_type_is_fp8(result->type) ? 0x1p-22 : 0;
    double narrow = narrowing(lhs->type, result->type) + narrowing(rhs->type, result->type);

    const int64_t count = hlo_view_count(result);
    const double *value, *exact;
    hlo_status status = unrounded(&b, dims, lhs, rhs, &value, &exact, why);
    bool real = hlo_type_is_float(result->type);
    if (status == HLO_OK && real)
        status = add_product(&b, dims, &l.values, &r.values, variance, why);
    if (status == HLO_OK && !l.exact)
        status = add_product(&b, dims, &l.sigmas, &r.values, errors, why);
    if (status == HLO_OK && !r.exact)
        status = add_product(&b, dims, &l.values, &r.sigmas, errors, why);
    if (status == HLO_OK && !l.exact && !r.exact)
        status = add_product(&b, dims, &l.sigmas, &r.sigmas, errors, why);
    for (int64_t i = 0; status == HLO_OK && i < count; i++)
        errors[i] *= hlo_error_coherence(variance[i], value[i]);
    if (status == HLO_OK) status = raise_repeats(&b, dims, &l, lhs, rhs, false, errors, why);
    if (status == HLO_OK) status = raise_repeats(&b, dims, &r, rhs, lhs, true, errors, why);
    for (int64_t i = 0; status == HLO_OK && i < count; i++) {
        double squares = variance[i], v = value[i];
        variance[i] = errors[i];
        if (real && isfinite(v))
            variance[i] += hlo_error_accumulation(u, terms, squares, v) + narrow * squares +
                           by_f16 * v * v + hlo_error_narrow_sums(options->sums, terms, squares, v);
        if (real) {
            double own = fabs(v - exact[i]) / LAMBDA, sigma = sqrt(variance[i]) + own;
            variance[i] = isfinite(own) ? sigma * sigma : variance[i];
        }
    }
    if (status == HLO_OK) hlo_error_finish(&b, 0, variance, value, true);
    /* Overflowed elements of operands make the product unbounded. A dot of fp8 type that overflows
     * has no finite value, but the call that replaces it saturates. */
    const bool inherited = found[0].some || found[1].some;
    const bool saturates = hlo_type_is_fp8(result->type) && options->roundings_may_be_dropped;
    if (status == HLO_OK && (saturates || inherited)) {
        hlo_view rounded = hlo_error_as_f64(&b, result),
                 sigmas = hlo_error_as_f64(&b, result_sigma);
        const double *f = rounded.data;
        double *s = sigmas.data;
        for (int64_t i = 0; i < count; i++)
            if (inherited && !isfinite(value[i]))
                s[i] = HLO_ERROR_ANYTHING;
            else if (saturates && !isfinite(f[i]) && !isnan(value[i]) && s[i] == 0)
                s[i] = hlo_error_overflow(value[i]);
        hlo_view_convert(b.call.env, &sigmas, result_sigma);
    }
    if (status == HLO_OK) status = note_infinities(&b, dims, lhs, lhs_sigma, rhs, false, why);
    if (status == HLO_OK) status = note_infinities(&b, dims, rhs, rhs_sigma, lhs, true, why);
    hlo_arena_release(scratch, mark);
    return status;
}

hlo_status hlo_error_dot(const hlo_error_call *b) {
    const hlo_call *call = &b->call;
    const char *why;
    if (hlo_error_is_complex(&call->results[0])) return hlo_error_fill_all(b, (double)INFINITY);
    return hlo_error_dot_views(call->env, hlo_dot_dims_of(call->instr), &call->operands[0],
                               &b->operand_sigmas[0], &call->operands[1], &b->operand_sigmas[1],
                               &call->results[0], b->result_sigmas, b->options, call->scratch,
                               &why);
}

hlo_status hlo_error_convolution(const hlo_error_call *b) {
    const hlo_call *call = &b->call;
    hlo_convolution c;
    const char *why = hlo_convolution_read(call, &c);
    if (why) return HLO_INVALID_INPUT;
    if (hlo_error_is_complex(&call->results[0])) return hlo_error_fill_all(b, (double)INFINITY);
    hlo_dims dims[4], strides[4];
    hlo_view lhs = hlo_convolution_lhs(&c, call, &call->operands[0]), lhs_sigma = {0},
             rhs = hlo_convolution_rhs(&c, &call->operands[1], &dims[0], &strides[0]),
             rhs_sigma = {0};
    if (b->operand_sigmas[0].data) lhs_sigma = hlo_convolution_lhs(&c, call, &b->operand_sigmas[0]);
    if (b->operand_sigmas[1].data)
        rhs_sigma = hlo_convolution_rhs(&c, &b->operand_sigmas[1], &dims[1], &strides[1]);
    const hlo_view result = hlo_convolution_result(&c, call->results, &dims[2], &strides[2]),
                   sigma = hlo_convolution_result(&c, b->result_sigmas, &dims[3], &strides[3]);
    return hlo_error_dot_views(call->env, c.dims, &lhs, &lhs_sigma, &rhs, &rhs_sigma, &result,
                               &sigma, b->options, call->scratch, &why);
}

/* Computes the sigma of an operand after conversion to the result's type. Without data, the operand
 * is exact. */
static hlo_view narrowed_sigma(const hlo_error_call *b, unsigned number, const hlo_view *narrow) {
    const hlo_view *value = &b->call.operands[number], *sigma = &b->operand_sigmas[number];
    if (narrow->type == value->type) return *sigma;
    hlo_view v = hlo_error_as_f64(b, value), s = hlo_error_sigma_as_f64(b, value, sigma),
             out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F32, value);
    for (int64_t i = 0; i < hlo_view_count(value); i++)
        ((float *)out.data)[i] =
            (float)hlo_error_rounded(narrow->type, ((const double *)v.data)[i],
                                     ((const double *)s.data)[i], (double)INFINITY, b->options);
    return out;
}

/* Marks the elements of an operand that are not finite here or in the other execution. Returns
 * false if there are no such elements. */
static bool find_nonfinite(const hlo_error_call *b, unsigned number, hlo_view *out) {
    const hlo_view *operand = &b->call.operands[number];
    *out = hlo_error_as_f64(b, operand);
    hlo_view s = hlo_error_sigma_as_f64(b, operand, &b->operand_sigmas[number]);
    double *v = out->data;
    bool any = false;
    for (int64_t i = 0; i < hlo_view_count(out); i++) {
        v[i] = !isfinite(v[i]) || !isfinite(((const double *)s.data)[i]);
        any |= v[i] > 0;
    }
    return any;
}

/* Returns the sigmas of the current part of an operand. If the operand is exact, the result has no
 * data either. */
static hlo_view part_sigma(const hlo_ragged_parts *p, unsigned number, const hlo_view *sigma) {
    return sigma->data ? hlo_ragged_operand(p, number, sigma) : *sigma;
}

static const hlo_ints *with(hlo_arena *scratch, const hlo_ints *dims, int64_t dim) {
    hlo_ints *out = hlo_ints_in(scratch, dims->count + 1, NULL);
    for (uint32_t i = 0; i < dims->count; i++) out->v[i] = dims->v[i];
    out->v[dims->count] = dim;
    return out;
}

/* The dense form of a ragged-dot multiplies the rows of a group by 0 for each matrix of another
 * group. An infinity or NaN in any matrix therefore reaches all rows. */
static hlo_status note_other_groups(const hlo_error_call *b, const hlo_ragged *r,
                                    const char **why) {
    const hlo_view *lhs = &b->call.operands[0], *result = &b->call.results[0],
                   *sigma = &b->result_sigmas[0];
    hlo_view nonfinite;
    if (lhs->rank == HLO_EVAL_MAX_RANK || !find_nonfinite(b, 1, &nonfinite)) return HLO_OK;
    hlo_dot_dims dot = hlo_dot_dims_of(b->call.instr);
    dot.lhs_contracting = with(b->call.scratch, dot.lhs_contracting, lhs->rank);
    dot.rhs_contracting = with(b->call.scratch, dot.rhs_contracting, r->partner);
    hlo_dims ones_dims, found_dims, index = {{0}};
    uint32_t free = dot.lhs_batch->count;
    for (uint32_t d = 0; d < result->rank; d++) found_dims.v[d] = result->dims[d];
    for (uint32_t d = 0; d < lhs->rank; d++) {
        ones_dims.v[d] = lhs->dims[d];
        if (hlo_ints_contain(dot.lhs_batch, d) || hlo_ints_contain(dot.lhs_contracting, d))
            continue;
        ones_dims.v[d] = found_dims.v[free++] = 1;
    }
    ones_dims.v[lhs->rank] = r->groups;
    const hlo_view flat = {HLO_TYPE_F64, lhs->rank + 1, ones_dims.v, NULL, NULL};
    hlo_view ones = hlo_error_constant(b, &flat, 1);
    hlo_view shape = {HLO_TYPE_F64, result->rank, found_dims.v, NULL, NULL},
             found = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, &shape);
    hlo_status status =
        hlo_eval_dot_views(b->call.env, dot, &ones, &nonfinite, &found, b->call.scratch, why);
    if (status != HLO_OK || !hlo_view_count(result)) return status;
    do {
        hlo_dims at = index;
        for (uint32_t d = 0; d < result->rank; d++)
            if (found_dims.v[d] == 1) at.v[d] = 0;
        if (*(double *)(void *)hlo_view_element(&found, at.v) > 0)
            *(float *)(void *)hlo_view_element(sigma, index.v) = (float)HLO_ERROR_ANYTHING;
    } while (hlo_dims_next(result->rank, result->dims, index.v));
    return HLO_OK;
}

hlo_status hlo_error_ragged_dot(const hlo_error_call *b) {
    const hlo_call *call = &b->call;
    const char *why;
    hlo_ragged_parts p;
    if (hlo_error_is_complex(&call->results[0])) return hlo_error_fill_all(b, (double)INFINITY);
    if (!hlo_error_is_exact(&b->operand_sigmas[2]) || hlo_ragged_begin(&p, call))
        return hlo_error_fill_all(b, HLO_ERROR_ANYTHING);
    const hlo_view lhs = hlo_ragged_narrowed(call, 0), rhs = hlo_ragged_narrowed(call, 1),
                   lhs_sigma = narrowed_sigma(b, 0, &lhs), rhs_sigma = narrowed_sigma(b, 1, &rhs);
    hlo_view marks;
    const bool dropped = b->options->roundings_may_be_dropped;
    /* If an operand's scale is infinite or NaN, so is the scale that is applied after the sum. That
     * scale turns the zeros beyond the groups into NaN. */
    const bool endless = dropped && (find_nonfinite(b, 0, &marks) || find_nonfinite(b, 1, &marks));
    hlo_status status = hlo_error_fill_all(b, endless ? HLO_ERROR_ANYTHING : 0);
    for (; status == HLO_OK && p.at < p.parts; p.at++) {
        if (!hlo_ragged_size(&p)) continue;
        hlo_arena_mark mark = hlo_arena_here(call->scratch);
        hlo_view x = hlo_ragged_operand(&p, 0, &lhs), xs = part_sigma(&p, 0, &lhs_sigma),
                 y = hlo_ragged_operand(&p, 1, &rhs), ys = part_sigma(&p, 1, &rhs_sigma),
                 out = hlo_ragged_result(&p, &call->results[0]),
                 sigma = hlo_ragged_result(&p, &b->result_sigmas[0]);
        status = hlo_error_dot_views(call->env, p.dot, &x, &xs, &y, &ys, &out, &sigma, b->options,
                                     call->scratch, &why);
        hlo_arena_release(call->scratch, mark);
    }
    if (status == HLO_OK && p.dims.mode == HLO_RAGGED_FREE && dropped)
        status = note_other_groups(b, &p.dims, &why);
    return status;
}
