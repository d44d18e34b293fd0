/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sigmas of rounding. The method is in docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"

#define LAMBDA HLO_ERROR_LAMBDA

static const double infinite = (double)INFINITY;

double hlo_error_roundoff(hlo_type type) {
    return type == HLO_TYPE_F64 || type == HLO_TYPE_C128 ? 0x1p-53 : 0x1p-24;
}

static void round_chunk(hlo_type type, const double *in, int64_t count, double *out) {
    float narrow[HLO_CHUNK] = {0};
    uint16_t codes[HLO_CHUNK];
    for (int64_t i = 0; i < count; i++) narrow[i] = (float)in[i];
    if (type != HLO_TYPE_F32) {
        int64_t step = hlo_types[type].bytes;
        hlo_float_encode_row(type, narrow, count, codes, step);
        hlo_float_decode_row(type, codes, step, count, narrow);
    }
    for (int64_t i = 0; i < count; i++) out[i] = (double)narrow[i];
}

double hlo_error_last_place(hlo_type type, double value) {
    const int lowest = type == HLO_TYPE_F16 ? -14 : -126; /* smallest exponent of normal numbers */
    uint64_t bits;
    if (value == 0 || !isfinite(value)) return 0;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const int place = (exponent > lowest ? exponent : lowest) + 1 - hlo_float_precision(type);
    bits = (uint64_t)(place + 1023) << 52;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

double hlo_error_step(hlo_type type, double number) {
    const double size = fabs(number);
    const uint64_t code = hlo_float_encode(type, size);
    double away = hlo_float_decode(type, code + 1);
    if (!isfinite(away)) away = hlo_float_decode(type, code - 1);
    return fabs(away - size);
}

double hlo_error_neighbor(hlo_type type, double number, double toward) {
    bool up = toward > number;
    if (number == 0) return hlo_float_decode(type, 1) * (up ? 1 : -1);
    uint64_t code = hlo_float_encode(type, fabs(number));
    bool away = (number > 0) == up;
    return copysign(hlo_float_decode(type, away ? code + 1 : code - 1), number);
}

/* Returns the sigma of a result for an interval whose ends round to `low` and `high`. It is the
 * sigma of a single step only if each end is the result or its neighbor. Lengths do not suffice:
 * two steps below a power of two are no longer than the step above it. */
static double rounded_sigma(hlo_type type, double value, double result, double low, double high,
                            double sigma) {
    double change = fmax(fabs(high - result), fabs(result - low));
    if (change == 0) return 0;
    double step = hlo_error_step(type, result);
    bool beyond = low < hlo_error_neighbor(type, result, -infinite) ||
                  high > hlo_error_neighbor(type, result, infinite);
    if (beyond) return hypot(sigma, step / HLO_ERROR_FLIP);
    /* Compute the distance of the value from the nearer boundary of the interval that rounds to
     * `result`. */
    double nearest = infinite;
    for (int side = -1; side <= 1 && sigma * HLO_ERROR_FINE < step; side += 2) {
        double other = hlo_error_neighbor(type, result, side * infinite);
        if (isfinite(other)) nearest = fmin(nearest, fabs((result + other) / 2 - value));
    }
    bool tie = nearest <= HLO_ERROR_NEAR * sigma;
    return change / (tie ? HLO_ERROR_FLIP_TIE : HLO_ERROR_FLIP);
}

double hlo_error_overflow(double value) {
    return fmin(fabs(value), 0x1p119);
}

/* Counts the elements whose sigma is neither 0 nor infinite, and which exceed `limit` somewhere
 * within lambda sigmas. */
HLO_CLONED static int64_t count_beyond(const double *value, const double *result, double limit,
                                       int64_t count, const double *sigma) {
    int64_t beyond = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool moves = (sigma[i] != 0) & (sigma[i] != infinite);
        const bool inside = (fabs(value[i]) + LAMBDA * sigma[i] <= limit) & isfinite(result[i]);
        beyond += moves & !inside;
    }
    return beyond;
}

void hlo_error_round_chunk(hlo_type type, const double *value, const double *result, bool rounds,
                           const hlo_range *range, const hlo_error_options *options, int64_t count,
                           double *sigma) {
    bool half = type == HLO_TYPE_BF16 || type == HLO_TYPE_F16;
    bool wide = type == HLO_TYPE_F32 || type == HLO_TYPE_F64;
    bool dropped = half && options->roundings_may_be_dropped;
    bool overflows = options->roundings_may_be_dropped && !hlo_type_is_fp8(type);
    for (int64_t i = 0; i < count; i++) sigma[i] = isnan(sigma[i]) ? infinite : sigma[i];
    if (dropped) {
        /* Add the errors of roundings that other executions omit. A type with more precision may
         * still have a smaller range: very large and very small bf16 numbers are rounded in f16. */
        for (int64_t i = 0; i < count; i++) {
            bool rounded = rounds || (isfinite(value[i]) && value[i] != result[i]);
            if (rounded && !isinf(sigma[i]))
                sigma[i] = hypot(sigma[i], hlo_error_last_place(type, value[i]) / sqrt(6));
        }
    }
    const bool steps = !wide && !dropped;
    /* Rounding leaves all sigmas unchanged if every sigma is 0 or infinite. It also does if
     * roundings of the type are not steps, and no element can exceed the finite range. */
    const double limit = steps ? -1 : hlo_float_max(type);
    const bool out_of_range = !steps && range && !(range->low <= limit && range->high >= -limit);
    if (out_of_range || count_beyond(value, result, limit, count, sigma)) {
        /* Round the ends of the intervals of the elements, and derive their sigmas. `steps`: a
         * rounding is a step; otherwise only numbers that are not finite matter. */
        double low[HLO_CHUNK] = {0}, high[HLO_CHUNK] = {0};
        bool across[HLO_CHUNK];
        for (int64_t i = 0; i < count; i++) {
            low[i] = value[i] - LAMBDA * sigma[i];
            high[i] = value[i] + LAMBDA * sigma[i];
            if (range && sigma[i] > 0) {
                low[i] = fmax(low[i], range->low);
                high[i] = fmin(high[i], range->high);
            }
            across[i] = low[i] < 0 && high[i] > 0;
        }
        if (type != HLO_TYPE_F64) {
            round_chunk(type, low, count, low);
            round_chunk(type, high, count, high);
        }
        for (int64_t i = 0; i < count; i++) {
            if (sigma[i] == 0 || isinf(sigma[i])) continue;
            bool finite = isfinite(low[i]) && isfinite(high[i]) && isfinite(result[i]);
            bool certain = !across[i] && hlo_error_same(low[i], result[i]) &&
                           hlo_error_same(high[i], result[i]);
            if (!finite)
                sigma[i] = !certain                          ? infinite
                           : overflows && isfinite(value[i]) ? hlo_error_overflow(value[i])
                                                             : 0;
            else if (steps)
                sigma[i] = rounded_sigma(type, value[i], result[i], low[i], high[i], sigma[i]);
        }
    }
}

double hlo_error_round(hlo_type type, double value) {
    if (type != HLO_TYPE_F64) round_chunk(type, &value, 1, &value);
    return value;
}

double hlo_error_rounded(hlo_type type, double value, double sigma, double limit,
                         const hlo_error_options *options) {
    hlo_range range = {.low = -limit, .high = limit};
    double result = hlo_error_round(type, fmin(fmax(value, -limit), limit));
    hlo_error_round_chunk(type, &value, &result, true, &range, options, 1, &sigma);
    return sigma;
}
