/* SPDX-License-Identifier: Apache-2.0 */
/* Tests error bounds of elementwise operations: zero, a step of the type, infinities and NaNs. */
#include "tests/unit/ir/error_setup.h"

static void fp8_moves_by_a_step_only_near_a_boundary(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4]) -> f8e4m3fn[4]", X "  ROOT %r = f8e4m3fn[4]{0} convert(%x)"), &recover);
    static const double x[] = {16.5, 16.999, 16.999, 16}, sigma[] = {0.01, 0.01, 0, 0.06};
    /* The result is NaN at both ends of the range of the operand, but a number in between. */
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, 1e5), set(&s.operand_sigmas[0], i, 5e4);
    run(&s, true);
    assert_true(isinf(at(&s.sigma, 0)));
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, x[i]);
        set(&s.operand_sigmas[0], i, sigma[i]);
    }
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 0);
    assert_true(at(&s.sigma, 1) == 2 / HLO_ERROR_FLIP);
    assert_true(at(&s.sigma, 2) == 0);
    assert_true(at(&s.sigma, 3) == 0);
    hlo_module_free(s.module);
}

static void exact_operations_stay_exact(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} maximum(%x, %y)"),
        &recover);
    set(&s.operands[0], 0, 1.0 / 3);
    set(&s.operands[0], 1, 5);
    set(&s.operand_sigmas[0], 1, 0.25);
    set(&s.operands[1], 2, 5);
    set(&s.operand_sigmas[0], 2, 0.25);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    assert_true(at(&s.sigma, 1) == 0.25);
    assert_true(at(&s.sigma, 2) == 0);
    hlo_module_free(s.module);
}

static void arithmetic_rounds(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} divide(%x, %y)"),
        &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, 3);
        set(&s.operands[1], i, 4);
    }
    set(&s.operand_sigmas[0], 1, 0.4);
    set(&s.operand_sigmas[1], 2, 1); /* the divisor may be zero */
    run(&s, false);
    assert_true(at(&s.sigma, 0) > 0 && at(&s.sigma, 0) < 1e-6);
    assert_true(fabs(at(&s.sigma, 1) - 0.1) < 1e-6);
    assert_true(isinf(at(&s.sigma, 2)));
    hlo_module_free(s.module);
}

static void compares_may_differ_within_the_bound(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[4], y: f32[4]) -> pred[4]",
                             X Y "  ROOT %r = pred[4]{0} compare(%x, %y), direction=LT"),
                      &recover);
    for (int i = 0; i < 4; i++) set(&s.operands[1], i, 1);
    set(&s.operand_sigmas[0], 0, 0.2);
    set(&s.operand_sigmas[0], 1, 0.1);
    run(&s, false);
    assert_true(at(&s.sigma, 0) > 0);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

static void bf16_roundings_that_may_be_dropped(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s =
        prepare(MODULE("(x: f32[4]) -> bf16[4]", X "  ROOT %r = bf16[4]{0} convert(%x)"), &recover);
    set(&s.operands[0], 0, 1.001);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    run(&s, true);
    double ulp = 0x1p-7;
    assert_true(at(&s.sigma, 0) > 0.3 * ulp && at(&s.sigma, 0) < ulp);
    hlo_module_free(s.module);
    /* f16 represents all bits of bf16, except below its normal numbers. */
    s = prepare(MODULE("(x: bf16[4]) -> f16[4]", "  %x = bf16[4]{0} parameter(0)\n"
                                                 "  ROOT %r = f16[4]{0} convert(%x)"),
                &recover);
    set(&s.operands[0], 0, 3.375 * 0x1p-24), set(&s.operands[0], 1, 1.5);
    run(&s, true);
    assert_true(at(&s.sigma, 0) > 0.3 * 0x1p-24 && at(&s.sigma, 0) < 0x1p-24);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

#define TWO(op)                                                                                    \
    MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} " op "(%x, %y)")

/* Nothing is known of an infinity that may be NaN in another execution, or of a NaN that may be
 * an infinity. A number that may be an infinity or a NaN has an infinite sigma, and is still
 * checked. */
static void what_may_be_nan_is_anything(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    const double inf = (double)INFINITY, nan = (double)NAN;
    static const char *const modules[] = {TWO("multiply"), TWO("divide"), TWO("maximum"),
                                          TWO("add"), TWO("subtract")};
    const struct {
        int module;
        double x, x_sigma, y, y_sigma, sigma; /* the expected sigma; 0: any finite one */
    } cases[] = {
        {0, 0.001, 0.001, 4, inf, inf}, /* a number in every execution */
        {0, 0.001, 0.001, inf, 0, nan}, /* 0 times infinity for some value in between */
        {0, 0, 0.001, inf, 0, nan},     /* NaN in this execution */
        {0, 3, 0.001, inf, 0, 0},       /* infinite in both executions */
        {0, 0, 0, inf, 0, 0},           /* NaN in both executions */
        {0, nan, inf, 3, 0, inf},       /* may be a number in another execution */
        {1, 0.001, 0.001, 0.001, 0.001, inf},
        {1, 0.001, 0.001, 0, 0.001, nan}, /* 0 over 0 for some values in between */
        {1, 3, 0, 0, 0.001, inf},         /* never 0 over 0 */
        {1, 3, 0.001, 0, 0, 0},
        {2, inf, 0, 4, inf, nan}, /* the maximum of infinity and a value that may be NaN */
        {2, inf, 0, 4, 0.001, 0},
        {3, inf, 0, 4, inf, nan},
        {3, inf, 0, nan, inf, nan},
        {4, inf, 0, 4, 0.001, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        setup s = prepare(modules[cases[c].module], &recover);
        set(&s.operands[0], 0, cases[c].x), set(&s.operand_sigmas[0], 0, cases[c].x_sigma);
        set(&s.operands[1], 0, cases[c].y), set(&s.operand_sigmas[1], 0, cases[c].y_sigma);
        run(&s, false);
        double sigma = at(&s.sigma, 0), wanted = cases[c].sigma;
        if (isnan(sigma) != isnan(wanted) || isinf(sigma) != isinf(wanted))
            fail_msg("case %zu: %g", c, sigma);
        hlo_module_free(s.module);
    }
}

static void a_value_twice_moves_in_both_places(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const char *const ops[] = {"multiply", "divide"};
    setup s[2];
    for (int o = 0; o < 2; o++) {
        char text[256];
        snprintf(
            text, sizeof text,
            "HloModule m\n\nENTRY %%e (x: f32[4]) -> f32[4] {\n  %%x = f32[4]{0} parameter(0)\n"
            "  ROOT %%r = f32[4]{0} %s(%%x, %%x)\n}\n",
            ops[o]);
        s[o] = prepare(text, &recover);
        for (int i = 0; i < 2; i++) { /* both operands are the same parameter */
            set(&s[o].operands[i], 0, 3), set(&s[o].operand_sigmas[i], 0, 0.01);
            set(&s[o].operands[i], 1, 0), set(&s[o].operand_sigmas[i], 1, 0.5);
            set(&s[o].operands[i], 2, 3);
        }
        run(&s[o], false);
    }
    const hlo_view *square = &s[0].sigma, *ratio = &s[1].sigma;
    assert_true(fabs(at(square, 0) - (0.06 + HLO_ERROR_LAMBDA * 0.0001)) < 1e-6);
    assert_true(fabs(at(square, 1) - HLO_ERROR_LAMBDA * 0.25) < 1e-6);
    assert_true(at(square, 2) == 0);
    assert_true(isinf(at(ratio, 1))); /* element 1 may be divided by zero, element 2 not */
    assert_true(at(ratio, 2) < 1e-6);
    for (int o = 0; o < 2; o++) hlo_module_free(s[o].module);
}

static void factors_near_zero_move_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} multiply(%x, %y)"),
        &recover);
    for (int i = 0; i < 2; i++) set(&s.operand_sigmas[0], i, 0.5);
    for (int i = 0; i < 3; i++) set(&s.operands[1], i, i == 1 ? 3 : 0);
    set(&s.operand_sigmas[1], 0, 0.25);
    run(&s, false);
    assert_true(fabs(at(&s.sigma, 0) - HLO_ERROR_LAMBDA * 0.125) < 1e-6);
    assert_true(fabs(at(&s.sigma, 1) - 1.5) < 1e-6);
    assert_true(at(&s.sigma, 2) == 0);
    hlo_module_free(s.module);
}

/* -0.999 and 0.999 round to -1 and 1 in bf16. */
static void ends_of_types_are_rounded(void **state) {
    (void)state;
    static const int64_t dims[] = {2}, strides[] = {1};
    uint16_t a[] = {0xbf80, 0xbf80}, b[] = {0x3f80, 0x3f82};
    float s[] = {0.24975f, 0.24975f};
    hlo_view va = {HLO_TYPE_BF16, 1, dims, strides, a}, vb = {HLO_TYPE_BF16, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.within, 1);
    assert_int_equal(c.worst_index, 1);
}

/* If a value is NaN in this execution and may be any number in another, so may its maximum with a
 * number, and its square. */
static void a_nan_may_be_a_number(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const char *const modules[] = {
        "HloModule m\n\nmost {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT r = f32[] maximum(a, b)\n}\n"
        "ENTRY e {\n  x = f32[4] parameter(0)\n  z = f32[] parameter(1)\n"
        "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=most\n}\n",
        "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] multiply(x, "
        "x)\n}\n"};
    for (int m = 0; m < 2; m++) {
        setup s = prepare(modules[m], &recover);
        for (uint32_t o = 0; o < 2; o++) {
            if (m || !o) set(&s.operands[o], 0, (double)NAN);
            if (m || !o) set(&s.operand_sigmas[o], 0, (double)INFINITY);
        }
        run(&s, true);
        assert_true(isnan(at(&s.result, 0)) && isinf(at(&s.sigma, 0)));
        for (uint32_t o = 0; o < 2; o++) set(&s.operand_sigmas[o], 0, 0);
        run(&s, true);
        assert_true(isnan(at(&s.result, 0)) && at(&s.sigma, 0) == 0);
        hlo_module_free(s.module);
    }
}

static void tiny_products_may_be_zero(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "4"), &recover);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    for (int i = 0; i < 2; i++) set(&s.operands[i], 0, 0x1p-64);
    run(&s, false);
    assert_true(HLO_ERROR_LAMBDA * at(&s.sigma, 0) >= 0x1p-127);
    hlo_module_free(s.module);
}

#define ROW(type) type "[4]{0}"
#define NARROW(root)                                                                               \
    MODULE("(x: f16[4], y: f16[4]) -> f16[4]", "  %x = " ROW("f16") " parameter(0)\n  %y = " ROW(  \
                                                   "f16") " parameter(1)\n"                        \
                                                          "  ROOT %r = " ROW("f16") " " root)

static void overflows_are_kept_apart(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(NARROW("multiply(%x, %y)"), &recover);
    /* 90000 overflows; 0 times infinity is NaN in both executions; overflowed numbers are
     * multiplied by 0.5 and 2 */
    static const double x[] = {300, 0, INFINITY, INFINITY}, y[] = {300, INFINITY, 0.5, 2};
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, x[i]), set(&s.operands[1], i, y[i]);
    for (int i = 2; i < 4; i++) set(&s.operand_sigmas[0], i, 70000);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 90000);
    assert_true(at(&s.sigma, 1) == 0); /* %y is not a scale */
    assert_true(isnan(at(&s.sigma, 2)));
    assert_true(at(&s.sigma, 3) == 140000);
    hlo_module_free(s.module);
    s = prepare(DOT("f16", "4"), &recover);
    set(&s.operands[0], 0, INFINITY), set(&s.operand_sigmas[0], 0, 70000);
    set(&s.operands[1], 0, 1);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

static void an_overflow_is_the_same_in_both(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    float a[] = {INFINITY, INFINITY, NAN, 1}, b[] = {INFINITY, 65504, 1, NAN};
    float s[] = {70000, 70000, (float)HLO_ERROR_ANYTHING, (float)HLO_ERROR_ANYTHING};
    hlo_view va = {HLO_TYPE_F32, 1, dims, strides, a}, vb = {HLO_TYPE_F32, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 1);
    assert_int_equal(c.within, 2);
    assert_int_equal(c.worst_index, 1);
    /* The fp8 result of a call saturates to the largest number of the same sign. Infinity in e5m2
     * is 0x7c. */
    unsigned char p[] = {0x7c, 0x7c, 0xfc, 0x7c}, q[] = {0x7b, 0xfb, 0xfb, 0x7a};
    for (int i = 0; i < 4; i++) s[i] = 70000;
    va.type = vb.type = HLO_TYPE_F8E5M2;
    va.data = p, vb.data = q;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 2);
    assert_int_equal(c.violations, 2);
}

/* If scales move, 1/0 may be an infinity of the other sign; 0/0 is always NaN. */
static void zeros_may_have_the_other_sign(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(NARROW("divide(%x, %y)"), &recover);
    static const double x[] = {1, 0, NAN, 1}, y[] = {-0.0, 0, 0, 0.5};
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, x[i]), set(&s.operands[1], i, y[i]);
    run(&s, false);
    for (int i = 0; i < 4; i++) assert_true(at(&s.sigma, i) <= 0.001);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    assert_true(at(&s.sigma, 1) == 0 && at(&s.sigma, 2) == 0 && at(&s.sigma, 3) < 0.01);
    hlo_module_free(s.module);
    s = prepare(NARROW("atan2(%x, %y)"), &recover);
    set(&s.operands[1], 0, -1), set(&s.operands[1], 1, 1);
    run(&s, true);
    assert_true(fabs(at(&s.sigma, 0) * HLO_ERROR_LAMBDA / 6.2832 - 1) < 0.01);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

/* tanh(-25) becomes 1, a jump of 2, if the operand is larger by some of its sigmas. */
static void jumps_are_found_between_one_sigma_and_lambda(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const double sigma[] = {1, 4, 20, 40};
    setup s =
        prepare(MODULE("(x: f32[4]) -> f32[4]", X "  ROOT %r = f32[4]{0} tanh(%x)"), &recover);
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, -25), set(&s.operand_sigmas[0], i, sigma[i]);
    run(&s, false);
    assert_true(at(&s.sigma, 0) < 1e-6);
    assert_true(fabs(at(&s.sigma, 1) - 2 / HLO_ERROR_LAMBDA) < 1e-3);
    assert_true(fabs(at(&s.sigma, 2) - 2.0 / 3) < 1e-3);
    assert_true(fabs(at(&s.sigma, 3) - 1) < 1e-3); /* half the distance between -1 and 1 */
    hlo_module_free(s.module);
    s = prepare(MODULE("(x: f32[4]) -> s32[4]", X "  ROOT %r = s32[4]{0} convert(%x)"), &recover);
    for (int i = 0; i < 4; i++)
        set(&s.operands[0], i, 3.5), set(&s.operand_sigmas[0], i, sigma[i] / 16);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 1 / HLO_ERROR_LAMBDA);
    assert_true(fabs(at(&s.sigma, 1) - 1.0 / 3) < 1e-6 && fabs(at(&s.sigma, 2) - 4.0 / 3) < 1e-6);
    hlo_module_free(s.module);
}

#define THIN(type, wide)                                                                           \
    MODULE("(q: " type "[4,1], m: " wide "[4,1]) -> " wide "[4,1]",                                \
           "  %q = " type "[4,1]{1,0} parameter(0)\n  %m = " wide "[4,1]{1,0} parameter(1)\n"      \
           "  %w = " wide "[4,1]{1,0} convert(%q)\n"                                               \
           "  ROOT %r = " wide "[4,1]{1,0} multiply(%w, %m)")

/* If rows have one element, a factor of quantized values may be the scale of the rows. */
static void rows_of_one_element_are_scaled(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(THIN("f8e5m2", "f32"), &recover);
    static const double q[] = {0, NAN, INFINITY, 1}, m[] = {INFINITY, INFINITY, 2, 2};
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, q[i]), set(&s.operands[1], i, m[i]);
    run(&s, true);
    for (int i = 0; i < 4; i++) assert_true(i < 2 ? isnan(at(&s.sigma, i)) : at(&s.sigma, i) == 0);
    hlo_module_free(s.module);
    s = prepare(THIN("f32", "f32"), &recover);
    set(&s.operands[1], 0, INFINITY);
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 0);
    hlo_module_free(s.module);
    s = prepare(MODULE("(q: f8e5m2[4], m: f8e4m3fn[]) -> f32[4]",
                       "  %q = f8e5m2[4]{0} parameter(0)\n  %m = f8e4m3fn[] parameter(1)\n"
                       "  %w = f32[4]{0} convert(%q)\n  %n = f32[] convert(%m)\n"
                       "  %b = f32[4]{0} broadcast(%n), dimensions={}\n"
                       "  ROOT %r = f32[4]{0} multiply(%w, %b)"),
                &recover); /* both factors are quantized: either may be the scale */
    set(&s.operands[0], 1, INFINITY);
    for (int i = 0; i < 4; i++) set(&s.operands[1], i, 1);
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 0 && isnan(at(&s.sigma, 1)));
    hlo_module_free(s.module);
    s = prepare(THIN("f8e5m2", "f16"),
                &recover); /* the scale overflowed here, and possibly elsewhere */
    set(&s.operands[0], 0, 1), set(&s.operands[1], 0, INFINITY);
    set(&s.operand_sigmas[1], 0, 70000);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp8_moves_by_a_step_only_near_a_boundary),
        cmocka_unit_test(exact_operations_stay_exact),
        cmocka_unit_test(arithmetic_rounds),
        cmocka_unit_test(compares_may_differ_within_the_bound),
        cmocka_unit_test(bf16_roundings_that_may_be_dropped),
        cmocka_unit_test(what_may_be_nan_is_anything),
        cmocka_unit_test(a_value_twice_moves_in_both_places),
        cmocka_unit_test(factors_near_zero_move_together),
        cmocka_unit_test(ends_of_types_are_rounded),
        cmocka_unit_test(tiny_products_may_be_zero),
        cmocka_unit_test(a_nan_may_be_a_number),
        cmocka_unit_test(overflows_are_kept_apart),
        cmocka_unit_test(an_overflow_is_the_same_in_both),
        cmocka_unit_test(zeros_may_have_the_other_sign),
        cmocka_unit_test(jumps_are_found_between_one_sigma_and_lambda),
        cmocka_unit_test(rows_of_one_element_are_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
