/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the activations of epilogues: values, and error bounds that hold and are close to the
 * actual errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/error/error.h"
#include "runtime/cpu/cpu.h"

static double gelu(double x) {
    const double inner = sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * pow(x, 3));
    return x / 2 * (1 + tanh(inner));
}

static void gelu_is_bounded(void **state) {
    (void)state;
    const cpu_activation *a = &cpu_activations[HLO_ACTIVATION_GELU];
    /* Computes, for each interval, the largest error relative to the bound of lambda sigmas. */
    for (int from = -48; from < 48; from++) {
        double largest = 0;
        for (int i = 0; i < 500; i++) {
            const float x = (float)(from + i / 500.0) / 8;
            const double exact = a->exact((double)x), y = (double)a->value(x);
            const double bound = HLO_ERROR_LAMBDA * a->rounding((double)x, exact);
            if (fabs(exact - gelu((double)x)) > 1e-12 * fabs((double)x))
                fail_msg("GELU of %g is %.17g, not %.17g", (double)x, exact, gelu((double)x));
            largest = fmax(largest, x == 0 ? fabs(y) : fabs(y - exact) / bound);
        }
        if (largest > 0.2) fail_msg("at %g: %g of the bound", from / 8.0, largest);
        /* Far from 0, tanh is exactly -1 or 1. */
        if (largest < 0.0015 && abs(from) < 36)
            fail_msg("at %g: only %g of the bound", from / 8.0, largest);
    }
    assert_true(a->value(0) == 0 && a->exact(0) == 0);
}

static void relu_is_exact(void **state) {
    (void)state;
    const cpu_activation *a = &cpu_activations[HLO_ACTIVATION_RELU];
    static const float values[] = {-INFINITY, -3, -1e-40f, 0, 1e-40f, 3, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const float expected = values[i] > 0 ? values[i] : 0;
        assert_true(a->value(values[i]) == expected);
        assert_true(a->exact((double)values[i]) == (double)expected);
        assert_true(a->rounding((double)values[i], (double)expected) == 0);
    }
    assert_true(isnan(a->value(NAN)) && isnan(a->exact((double)NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_is_bounded),
        cmocka_unit_test(relu_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
