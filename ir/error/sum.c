/* SPDX-License-Identifier: Apache-2.0 */
/* The sigmas of reduce, scatter and fft: sums, extremes, logical sums. The method is in
 * docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"
#include "ir/eval/apply.h"
#include "ir/float/float.h"

/* Returns the operands of a reduce with the variances of repeated terms joined. `variances`: the
 * operands with the variance of each term. NULL: no term is repeated. */
static const hlo_view *joined_terms(const hlo_error_call *b, const hlo_view *variances) {
    static const hlo_ints no_batch = {0};
    const hlo_view *value = &b->call.operands[0];
    if (b->call.instr->op != HLO_OP_REDUCE || hlo_error_is_exact(&b->operand_sigmas[0]))
        return NULL;
    const hlo_ints *along = hlo_instr_ints(b->call.instr, HLO_ATTR_DIMENSIONS);
    const int64_t *first = hlo_error_repeats(b, value, variances, &no_batch, along);
    if (!first) return NULL;
    hlo_view each = hlo_error_constant(b, value, 1),
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

/* Bounds a kernel that adds elements: its results on sigma^2, on value^2 and on ones determine the
 * variance of each sum. Operand `indices` (for scatter; otherwise operand_count) is passed on
 * unchanged. */
static hlo_status bound_sum(const hlo_error_call *b, uint32_t indices) {
    const hlo_call *call = &b->call;
    hlo_view *s = hlo_error_operands_copy(b), *x = hlo_error_operands_copy(b),
             *n = hlo_error_operands_copy(b);
    bool scatter = call->instr->op == HLO_OP_SCATTER;
    for (uint32_t o = 0; o < call->operand_count; o++) {
        if (o == indices) continue;
        hlo_view sigma = hlo_error_sigma_or_zeros(&call->operands[o], &b->operand_sigmas[o]);
        bool start = scatter ? o < indices : o >= call->operand_count / 2;
        s[o] = hlo_error_squares(b, &sigma, (double)INFINITY);
        x[o] = hlo_error_squares(b, &call->operands[o], 0);
        n[o] = hlo_error_constant(b, &call->operands[o], !start || scatter);
    }
    hlo_view sums[4];
    const hlo_view *from[] = {s, x, n, joined_terms(b, s)};
    for (int i = 0; i < 4; i++) {
        if (!from[i]) break;
        sums[i] = hlo_view_scratch(call->scratch, HLO_TYPE_F64, &call->results[0]);
        hlo_status status = hlo_error_rerun(b, from[i], &sums[i]);
        if (status != HLO_OK) return status;
    }
    hlo_view value = hlo_error_as_f64(b, &call->results[0]);
    bool real = hlo_type_is_float(call->results[0].type);
    /* HLO's reducer adds in its own type, and XLA's CPU backend rounds after each step. A sum in
     * f32 that is rounded once is also legitimate. */
    double own = real ? ldexp(1, -hlo_float_precision(call->results[0].type)) : 0;
    double *variance = sums[0].data, u = fmax(own, hlo_error_roundoff(call->results[0].type));
    const double *squared = sums[1].data, *terms = sums[2].data, *v = value.data;
    const double *joined = from[3] ? sums[3].data : NULL;
    for (int64_t i = 0; real && i < hlo_view_count(&value); i++) {
        variance[i] *= hlo_error_coherence(squared[i], v[i]);
        if (joined) variance[i] = hlo_error_larger(variance[i], joined[i]);
        variance[i] += hlo_error_accumulation(u, terms[i], squared[i], v[i]);
    }
    hlo_error_finish(b, 0, variance, NULL, true);
    return HLO_OK;
}

/* Bounds a reduce or scatter of one array by a single operation; `indices` as in bound_sum(). On
 * predicates, `and` is the minimum, `or` the maximum. */
static hlo_status bound_combination(const hlo_error_call *b, uint32_t indices) {
    const hlo_call *call = &b->call;
    hlo_op op = hlo_region_simple(hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY));
    bool pred = call->results[0].type == HLO_TYPE_PRED;
    if (call->result_count != 1 || hlo_error_is_complex(&call->results[0]))
        return hlo_error_moved(b);
    bool sum = op == HLO_OP_ADD && !pred;
    bool monotone = op == HLO_OP_MAXIMUM || op == HLO_OP_MINIMUM ||
                    (pred && (op == HLO_OP_AND || op == HLO_OP_OR));
    if (!hlo_type_is_float(call->results[0].type) && hlo_error_all_exact(b))
        return hlo_error_fill_all(b, 0);
    if (monotone && hlo_error_all_exact(b)) return hlo_error_fill_all(b, 0);
    if (sum) return bound_sum(b, indices);
    if (monotone) {
        /* The kernel is monotone in every element. */
        hlo_view *up = hlo_error_operands_copy(b), *down = hlo_error_operands_copy(b);
        const hlo_view *result = &b->call.results[0];
        hlo_type type = result->type == HLO_TYPE_PRED ? HLO_TYPE_PRED : HLO_TYPE_F64;
        for (uint32_t o = 0; o < b->call.operand_count; o++) {
            if (o == indices) continue;
            up[o] = hlo_error_moved_copy(b, &b->call.operands[o], &b->operand_sigmas[o], 1, type);
            down[o] =
                hlo_error_moved_copy(b, &b->call.operands[o], &b->operand_sigmas[o], -1, type);
        }
        hlo_view high = hlo_view_scratch(b->call.scratch, type, result);
        hlo_view low = hlo_view_scratch(b->call.scratch, type, result);
        hlo_status status = hlo_error_rerun(b, up, &high);
        if (status == HLO_OK) status = hlo_error_rerun(b, down, &low);
        if (status != HLO_OK) return status;
        high = hlo_error_as_f64(b, &high);
        low = hlo_error_as_f64(b, &low);
        hlo_view value = hlo_error_as_f64(b, &b->call.results[0]);
        double *variance = hlo_error_variance_new(b, 0);
        hlo_error_add_change(&value, &high, &low, variance);
        hlo_error_finish(b, 0, variance, NULL, false);
        return HLO_OK;
    }
    return hlo_error_moved(b);
}

hlo_status hlo_error_reduce(const hlo_error_call *b) {
    return bound_combination(b, b->call.operand_count);
}

hlo_status hlo_error_scatter(const hlo_error_call *b) {
    uint32_t indices = b->call.operand_count / 2;
    if (!hlo_error_is_exact(&b->operand_sigmas[indices]))
        return hlo_error_fill_all(b, (double)INFINITY);
    hlo_op op = hlo_region_simple(hlo_instr_comp(b->call.instr, HLO_ATTR_TO_APPLY));
    if (op != HLO_OP_PARAMETER || b->call.result_count != 1) return bound_combination(b, indices);
    hlo_view *operands = hlo_error_operands_copy(b);
    operands[0] = hlo_error_sigma_or_zeros(&b->call.operands[0], &b->operand_sigmas[0]);
    operands[2] = hlo_error_sigma_or_zeros(&b->call.operands[2], &b->operand_sigmas[2]);
    return hlo_error_rerun(b, operands, b->result_sigmas);
}

/* ----------------------------------------------------------------------------------- transforms */

hlo_status hlo_error_fft(const hlo_error_call *b) {
    const char *kind = hlo_instr_attr(b->call.instr, HLO_ATTR_FFT_TYPE)->u.str;
    const hlo_ints *length = hlo_instr_ints(b->call.instr, HLO_ATTR_FFT_LENGTH);
    const hlo_view *in = b->call.operands, *out = b->call.results;
    hlo_view x = hlo_view_scratch(b->call.scratch, HLO_TYPE_C128, in);
    hlo_view s = hlo_error_sigma_as_f64(b, in, b->operand_sigmas);
    hlo_view sigma = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, out);
    double stages = 0, size = 1;
    int64_t in_size = 1, out_size = 1;
    hlo_view_convert(b->call.env, in, &x);
    for (uint32_t i = 0; i < length->count; i++) {
        /* Unless n is a power of two, a fast transform of n numbers consists of three transforms of
         * up to 4n and the products between them (Bluestein). */
        const int64_t n = length->v[i];
        const double one = ceil(log2((double)n));
        stages += n > 1 && (n & (n - 1)) ? 3 * (one + 3) : one;
        size *= (double)length->v[i];
        in_size *= in->dims[in->rank - 1 - i];
        out_size *= out->dims[out->rank - 1 - i];
    }
    /* A real result omits half of the numbers. */
    const double halves = strcmp(kind, "IRFFT") == 0 ? sqrt(2) : 1;
    const double scale = kind[0] == 'I' ? halves / size : 1;
    const double u = hlo_error_roundoff(out->type);
    const int64_t transforms = out_size ? hlo_view_count(out) / out_size : 0;
    const double *v = x.data, *own = s.data;
    double *result = sigma.data;
    for (int64_t t = 0; t < transforms; t++) {
        double squares = 0, errors = 0;
        for (int64_t i = 0; i < in_size; i++)
            squares += v[2 * i] * v[2 * i] + v[2 * i + 1] * v[2 * i + 1];
        for (int64_t i = 0; i < in_size; i++) errors += own[i] * own[i];
        const double variance = errors + 4.0 / 3 * u * u * stages * squares;
        for (int64_t i = 0; i < out_size; i++)
            result[i] = isfinite(squares) ? scale * sqrt(variance) : HLO_ERROR_ANYTHING;
        v += 2 * in_size;
        own += in_size;
        result += out_size;
    }
    hlo_view_convert(b->call.env, &sigma, b->result_sigmas);
    return HLO_OK;
}
