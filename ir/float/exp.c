/* SPDX-License-Identifier: Apache-2.0 */
/* Computes exp of rows of f32 in vectors. Each step is a step of glibc's expf and is rounded alike,
 * so that the results have the same bits. */
#include <math.h>
#include <string.h>

#include "ir/float/clones.h"
#include "ir/float/float.h"

#ifdef HLO_LEVEL
#define STEPS 32

/* The powers 2^(i/32) as bits of a double, minus i << 47. exp_of() adds k << 47, which sets the
 * exponent. */
static const uint64_t powers[STEPS] = {
    0x3ff0000000000000, 0x3fefd9b0d3158574, 0x3fefb5586cf9890f, 0x3fef9301d0125b51,
    0x3fef72b83c7d517b, 0x3fef54873168b9aa, 0x3fef387a6e756238, 0x3fef1e9df51fdee1,
    0x3fef06fe0a31b715, 0x3feef1a7373aa9cb, 0x3feedea64c123422, 0x3feece086061892d,
    0x3feebfdad5362a27, 0x3feeb42b569d4f82, 0x3feeab07dd485429, 0x3feea47eb03a5585,
    0x3feea09e667f3bcd, 0x3fee9f75e8ec5f74, 0x3feea11473eb0187, 0x3feea589994cce13,
    0x3feeace5422aa0db, 0x3feeb737b0cdc5e5, 0x3feec49182a3f090, 0x3feed503b23e255d,
    0x3feee89f995ad3ad, 0x3feeff76f2fb5e47, 0x3fef199bdd85529c, 0x3fef3720dcef9069,
    0x3fef5818dcfba487, 0x3fef7c97337b9b5f, 0x3fefa4afa2a490da, 0x3fefd0765b6e4540,
};

/* Computes exp(x) as 2^(k/32) * 2^(r/32) with an integer k and |r| <= 1/2: a power from the table
 * and a polynomial, followed by overflow, underflow and NaN. There are no branches. */
static inline float exp_of(float x) {
    const double per_step = 0x1.71547652b82fep+0 * STEPS, shift = 0x1.8p+52;
    double shifted = __builtin_fma(per_step, (double)x, shift);
    uint64_t k;
    memcpy(&k, &shifted, sizeof k);
    double r = __builtin_fma(per_step, (double)x, -(shifted - shift));
    uint64_t bits = powers[k % STEPS] + (k << 47);
    double power;
    memcpy(&power, &bits, sizeof power);
    double high = __builtin_fma(0x1.c6af84b912394p-5 / STEPS / STEPS / STEPS, r,
                                0x1.ebfce50fac4f3p-3 / STEPS / STEPS);
    double low = __builtin_fma(0x1.62e42ff0c52d6p-1 / STEPS, r, 1.0);
    float quiet = x + x, y = (float)(__builtin_fma(high, r * r, low) * power);
    uint32_t code, out, nan;
    memcpy(&code, &x, sizeof code);
    memcpy(&out, &y, sizeof out);
    memcpy(&nan, &quiet, sizeof nan);
    const uint32_t size = code & 0x7fffffff, below = 0 - (code >> 31);
    uint32_t most = 0x42b17217 + (below & (0x42cff1b4 - 0x42b17217)), past = 0x7f800000 & ~below;
    const uint32_t beyond = 0 - (uint32_t)((int32_t)size > (int32_t)most);
    const uint32_t none = 0 - (uint32_t)((int32_t)size > 0x7f800000);
    out = (out & ~beyond) | (past & beyond & ~none) | (nan & none);
    memcpy(&y, &out, sizeof y);
    return y;
}

#define LOOP(level)                                                                                \
    HLO_LEVEL(level) static void exp_##level(const float *in, int64_t count, float *out) {         \
        HLO_IN_PLACE                                                                               \
        for (int64_t i = 0; i < count; i++) out[i] = exp_of(in[i]);                                \
    }
LOOP(v3)
LOOP(v4)
#endif

void hlo_float_exp_row(const float *in, int64_t count, float *out) {
#ifdef HLO_LEVEL
    if (__builtin_cpu_supports("x86-64-v4")) {
        exp_v4(in, count, out);
        return;
    }
    if (__builtin_cpu_supports("x86-64-v3")) {
        exp_v3(in, count, out);
        return;
    }
#endif
    for (int64_t i = 0; i < count; i++) out[i] = expf(in[i]);
}
