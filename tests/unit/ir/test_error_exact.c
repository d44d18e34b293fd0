/* SPDX-License-Identifier: Apache-2.0 */
/* Tests exact error bounds of transforms, windows, complex numbers and f64. */
#include "tests/unit/ir/error_setup.h"

#define SUM                                                                                        \
    "%add {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"                               \
    "  ROOT %s = f32[] add(%a, %b)\n}\n\n"

static void assert_sigma(const setup *s, int64_t index, double expected) {
    if (!(fabs(at(&s->sigma, index) - expected) <= 1e-6 * expected))
        fail_msg("sigma %lld is %g, not %g", (long long)index, at(&s->sigma, index), expected);
}

/* The error of a transform depends on its inputs, not on its results, which are 4, 0, 0, 0. */
static void transforms_err_by_their_numbers(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const struct {
        const char *size;
        int count;
        double stages;
    } cases[] = {{"4", 4, 2}, {"3", 3, 15}, {"1", 1, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char text[256];
        const char *n = cases[c].size;
        snprintf(text, sizeof text,
                 "HloModule m\n\nENTRY %%e {\n  %%x = c64[%s]{0} parameter(0)\n"
                 "  ROOT %%r = c64[%s]{0} fft(%%x), fft_type=FFT, fft_length={%s}\n}\n",
                 n, n, n);
        setup s = prepare(text, &recover);
        float *x = s.operands[0].data;
        for (int i = 0; i < cases[c].count; i++) x[2 * i] = 1;
        run(&s, false);
        const double own = 0x1p-48 * 4 / 3 * cases[c].stages * cases[c].count;
        for (int i = 0; i < cases[c].count; i++) assert_sigma(&s, i, sqrt(own));
        set(&s.operand_sigmas[0], 0, 0.25);
        run(&s, false);
        for (int i = 0; i < cases[c].count; i++) assert_sigma(&s, i, sqrt(own + 0.0625));
        x[0] = INFINITY;
        run(&s, false);
        for (int i = 0; i < cases[c].count; i++) assert_true(isnan(at(&s.sigma, i)));
        hlo_module_free(s.module);
    }
}

/* An inverse transform divides by the number of elements; a real inverse transform reads only half
 * of them. */
static void real_transforms_err_by_both_halves(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n\nENTRY %e {\n  %x = c64[2,5]{1,0} parameter(0)\n"
                      "  ROOT %r = f32[2,8]{1,0} fft(%x), fft_type=IRFFT, fft_length={8}\n}\n",
                      &recover);
    for (int i = 5; i < 10; i++) set(&s.operand_sigmas[0], i, 0.5);
    run(&s, false);
    for (int i = 0; i < 8; i++) {
        assert_true(at(&s.sigma, i) == 0);
        assert_sigma(&s, 8 + i, sqrt(2 * 5 * 0.25) / 8);
    }
    hlo_module_free(s.module);
}

/* The error of a window's sums depends on their terms, which may cancel. */
static void windows_err_by_their_terms(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n\n" SUM
                      "ENTRY %e {\n  %x = f32[4]{0} parameter(0)\n  %z = f32[] parameter(1)\n"
                      "  ROOT %r = f32[4]{0} reduce-window(%x, %z), window={size=4 pad=3_0}, "
                      "to_apply=%add\n}\n",
                      &recover);
    static const double x[] = {3, -2, 1.5, -2.5};
    double sum = 0, squares = 0;
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, x[i]);
    run(&s, false);
    for (int i = 0; i < 4; i++) {
        const double terms = i + 1;
        sum += x[i];
        squares += x[i] * x[i];
        assert_true(at(&s.result, i) == sum);
        const double variance = terms / 6 * squares + terms / 9 * sum * sum;
        assert_sigma(&s, i, i ? 0x1p-24 * sqrt(variance) : 0);
    }
    hlo_module_free(s.module);
}

static void complex_numbers_have_the_sigma_of_their_moduli(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n\nENTRY %e {\n  %x = c64[2]{0} parameter(0)\n"
                      "  %y = c64[2]{0} parameter(1)\n  ROOT %r = c64[2]{0} subtract(%x, %y)\n}\n",
                      &recover);
    set(&s.operand_sigmas[0], 0, 3), set(&s.operand_sigmas[1], 0, 4);
    run(&s, false);
    assert_sigma(&s, 0, 5);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
    s = prepare("HloModule m\n\nENTRY %e {\n  %x = c64[1]{0} parameter(0)\n"
                "  %y = c64[1]{0} parameter(1)\n  ROOT %r = c64[1]{0} divide(%x, %y)\n}\n",
                &recover);
    set(&s.operand_sigmas[0], 0, 3);
    run(&s, false);
    assert_true(isinf(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

/* An infinity of unknown sign may have the other sign in the other execution, where its sum with
 * an infinity is then NaN: the sigma is NaN. */
static void an_unknown_infinity_may_be_the_other(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s =
        prepare(MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} add(%x, %y)"),
                &recover);
    for (int i = 0; i < 2; i++) {
        set(&s.operands[0], i, (double)INFINITY);
        set(&s.operands[1], i, (double)INFINITY);
    }
    set(&s.operand_sigmas[0], 0, (double)INFINITY);
    set(&s.operand_sigmas[0], 1, 0x1p119); /* this infinity overflowed */
    run(&s, false);
    assert_true(isnan(at(&s.sigma, 0)));
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

/* Roundings of f64 do not count as steps: a sigma of one unit in the last place is not dropped. */
static void f64_has_no_steps(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f64[4]) -> f64[4]", "  %x = f64[4]{0} parameter(0)\n"
                                                      "  ROOT %r = f64[4]{0} negate(%x)"),
                      &recover);
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, 1), set(&s.operand_sigmas[0], i, 0x1p-52);
    run(&s, false);
    for (int i = 0; i < 4; i++) assert_true(at(&s.sigma, i) == 0x1p-52);
    hlo_module_free(s.module);
}

/* Distances of integers are exact, and both parts of complex numbers are compared. */
static void distances_are_exact(void **state) {
    (void)state;
    const int64_t a = -(INT64_C(1) << 60), b = a - 1, lowest = INT64_MIN, highest = INT64_MAX;
    const uint64_t most = UINT64_MAX, less = most - 1;
    const float x[] = {1, 2}, y[] = {4, -2}, nan[] = {1, NAN};
    assert_true(hlo_error_distance(HLO_TYPE_S64, &a, &b) == 1);
    assert_true(hlo_error_distance(HLO_TYPE_S64, &lowest, &highest) == 0x1p64);
    assert_true(hlo_error_distance(HLO_TYPE_U64, &less, &most) == 1);
    assert_true(hlo_error_distance(HLO_TYPE_U64, &most, &most) == 0);
    assert_true(hlo_error_distance(HLO_TYPE_C64, x, y) == 5);
    assert_true(hlo_error_distance(HLO_TYPE_C64, nan, nan) == 0);
    assert_true(isnan(hlo_error_distance(HLO_TYPE_C64, nan, x)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_err_by_their_numbers),
        cmocka_unit_test(real_transforms_err_by_both_halves),
        cmocka_unit_test(windows_err_by_their_terms),
        cmocka_unit_test(complex_numbers_have_the_sigma_of_their_moduli),
        cmocka_unit_test(an_unknown_infinity_may_be_the_other),
        cmocka_unit_test(f64_has_no_steps),
        cmocka_unit_test(distances_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
