/* SPDX-License-Identifier: Apache-2.0 */
/* The sigmas of conversions. The method is in docs/numerics.md. */
#include <math.h>

#include "ir/error/row.h"
#include "ir/float/float.h"

#define LAMBDA HLO_ERROR_LAMBDA

static const double infinite = (double)INFINITY;

static double converted(hlo_type type, double number) {
    uint64_t cell = 0;
    hlo_number_store(type, &cell, number);
    return hlo_number_load(type, &cell);
}

/* Computes the sigma of an integer or a predicate from the converted ends of the interval and from
 * the numbers inside it. */
static void discrete_sigma(hlo_type type, const double *x, const double *s, int64_t count,
                           double *sigma) {
    for (int64_t i = 0; i < count; i++) {
        sigma[i] = 0;
        if (!(s[i] > 0)) continue;
        if (isinf(s[i]) && type != HLO_TYPE_PRED) {
            sigma[i] = infinite;
            continue;
        }
        double low = x[i] - LAMBDA * s[i], high = x[i] + LAMBDA * s[i];
        if (type == HLO_TYPE_PRED) {
            sigma[i] = low > 0 || high < 0 ? 0 : 1 / LAMBDA;
            continue;
        }
        double value = converted(type, x[i]);
        for (int t = 0; t < HLO_ERROR_TIMES; t++) {
            double moved = converted(type, x[i] + hlo_error_times[t] * s[i]);
            sigma[i] = fmax(sigma[i], fabs((moved - value) / hlo_error_times[t]));
        }
    }
}

static void convert_sigma_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_error_row *r = arg;
    hlo_error_analysis a;
    double sigma[HLO_CHUNK];
    const hlo_type from = r->types[0];
    const int bits = hlo_type_is_float(from) ? hlo_float_precision(from) : hlo_types[from].bits;
    const bool rounds = hlo_type_is_float(r->result) && bits > hlo_float_precision(r->result);
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_error_load(r, &a, n, done, data, steps);
        hlo_lane_cast(hlo_error_lane(r->types[0]), HLO_LANE_F64, &a.x[0], n, a.value);
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
            /* Keep an element overflowed if its value also exceeds the range of the result's type.
             */
            for (int64_t i = 0; i < n; i++) {
                if (!hlo_error_overflowed(a.value[i], a.sigma[0][i])) continue;
                double number = hlo_error_instead(r->types[0], a.value[i], a.sigma[0][i]);
                bool same = hlo_error_same(hlo_error_round(r->result, number), result[i]);
                sigma[i] = hlo_type_is_fp8(r->result) ? 0 : a.sigma[0][i];
                a.anything[i] |= !same;
            }
        } else {
            discrete_sigma(r->result, a.value, a.sigma[0], n, sigma);
        }
        hlo_error_store(sigma, hlo_type_is_float(r->result) ? a.anything : NULL, n, at[1],
                        steps[1]);
    }
}

hlo_status hlo_error_convert(const hlo_error_call *b) {
    /* If all values are finite in an fp8 type, they are assumed to be clamped. Otherwise one
     * execution may have a NaN outside the bound, which the comparison reports. */
    const hlo_type to = b->call.results[0].type;
    hlo_error_row r = {.clamped = false};
    if (hlo_type_is_fp8(to) && hlo_type_is_float(b->call.operands[0].type)) {
        const hlo_extent e = hlo_view_extent(&b->call.operands[0]);
        r.clamped = e.lowest >= -hlo_float_max(to) && e.highest <= hlo_float_max(to);
    }
    hlo_error_loop(b, &r,
                   hlo_error_complex_call(&b->call) ? hlo_error_complex_row : convert_sigma_row);
    return HLO_OK;
}
