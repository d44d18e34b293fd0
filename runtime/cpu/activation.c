/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of epilogues on the CPU, in f32, and their error bounds. */
#include <math.h>

#include "runtime/cpu/cpu.h"

static float value_RELU(float x) {
    return x < 0 ? 0 : x;
}

static double exact_RELU(double x) {
    return x < 0 ? 0 : x;
}

static double rounding_RELU(double x, double y) {
    (void)x, (void)y;
    return 0;
}

static float value_GELU(float x) {
    const float root = 0.7978845608028654f; /* sqrt(2 / pi) */
    return 0.5f * x * (1 + tanhf(root * (x + 0.044715f * x * x * x)));
}

static double exact_GELU(double x) {
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* Returns the rounding error: 1 + tanh is rounded like a number near 1, even if it is small. */
static double rounding_GELU(double x, double y) {
    return 0x1p-24 * fmax(8 * fabs(y), fabs(x) / 2);
}

const cpu_activation cpu_activations[HLO_ACTIVATION_COUNT] = {
    {NULL, NULL, NULL},
#define HLO_ACTIVATION(id, homogeneous, never_negative) {value_##id, exact_##id, rounding_##id},
#include "matmul/table/activation.def"
#undef HLO_ACTIVATION
};
