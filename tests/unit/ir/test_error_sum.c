/* Error bounds of sums: dots and reduces against random errors, shared errors, repeated terms. */
#include "tests/unit/ir/error_setup.h"

/* A number from a normal distribution, by the sum of twelve uniform ones. */
static double normal(uint64_t *seed) {
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 11) * 0x1p-53;
    }
    return sum;
}

/* The root-mean-square difference that random errors of the operands' sigmas make, in sigmas. */
static void errors_are_about_as_large_as_the_bound(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const char *const modules[] = {
        MODULE("(x: f32[16,32], y: f32[32,8]) -> f32[16,8]",
               "  %x = f32[16,32]{1,0} parameter(0)\n  %y = f32[32,8]{1,0} parameter(1)\n"
               "  ROOT %r = f32[16,8]{1,0} dot(%x, %y), lhs_contracting_dims={1}, "
               "rhs_contracting_dims={0}"),
        MODULE("(x: f32[64], y: f32[64]) -> f32[64]",
               "  %x = f32[64]{0} parameter(0)\n  %y = f32[64]{0} parameter(1)\n"
               "  ROOT %r = f32[64]{0} multiply(%x, %y)"),
        MODULE("(x: f32[64]) -> f32[64]",
               "  %x = f32[64]{0} parameter(0)\n  ROOT %r = f32[64]{0} tanh(%x)"),
    };
    for (size_t m = 0; m < sizeof modules / sizeof modules[0]; m++) {
        setup s = prepare(modules[m], &recover);
        uint64_t seed = 1;
        double x[2][MAX_COUNT], square = 0;
        int64_t counts[2] = {0}, count = hlo_shape_count(s.root->shape);
        for (uint32_t o = 0; o < s.root->operand_count; o++) {
            counts[o] = hlo_shape_count(hlo_instr_operand(s.root, o)->shape);
            for (int64_t i = 0; i < counts[o]; i++) {
                set(&s.operands[o], i, x[o][i] = normal(&seed));
                set(&s.operand_sigmas[o], i, 0.001 * fabs(normal(&seed)));
            }
        }
        run(&s, false);
        double value[MAX_COUNT];
        for (int64_t i = 0; i < count; i++) value[i] = at(&s.result, i);
        const int trials = 50;
        for (int t = 0; t < trials; t++) {
            for (uint32_t o = 0; o < s.root->operand_count; o++)
                for (int64_t i = 0; i < counts[o]; i++)
                    set(&s.operands[o], i, x[o][i] + at(&s.operand_sigmas[o], i) * normal(&seed));
            const char *why;
            assert_int_equal(hlo_eval(NULL, s.root, s.operands, &s.result, s.module->arena, &why),
                             HLO_OK);
            for (int64_t i = 0; i < count; i++)
                square += pow((at(&s.result, i) - value[i]) / at(&s.sigma, i), 2);
        }
        double ratio = sqrt(square / (double)(count * trials));
        if (!(ratio > 0.8 && ratio < 1.2)) fail_msg("module %zu: %g of the bound", m, ratio);
        hlo_module_free(s.module);
    }
}

/* A product of infinities is infinite, and nothing about it is unsure. */
static void a_dot_of_infinities_is_exact(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "4"), &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, i == 2 ? (double)INFINITY : 3);
        set(&s.operands[1], i, 2);
    }
    for (int dropped = 0; dropped < 2; dropped++) {
        run(&s, dropped);
        assert_true(isinf(at(&s.result, 0)) && at(&s.sigma, 0) == 0);
    }
    set(&s.operand_sigmas[1], 1, 10); /* not what the infinity is multiplied with */
    run(&s, false);
    assert_true(!isnan(at(&s.sigma, 0)));
    set(&s.operand_sigmas[1], 2, 10); /* which may be 0, or less */
    run(&s, false);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

/* A sum that overflows may go on as the number that it is, and in another order need not overflow.
 */
static void a_dot_that_overflows_is_known_in_f64(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "4"), &recover);
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, 3e38), set(&s.operands[1], i, 1);
    run(&s, true);
    assert_true(isinf(at(&s.result, 0)) && at(&s.sigma, 0) == 0x1p119);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    for (int i = 2; i < 4; i++) set(&s.operands[1], i, -1); /* in the end 0 */
    run(&s, true);
    double sum = at(&s.result, 0), sigma = at(&s.sigma, 0);
    assert_true(isfinite(sum) || (isinf(sum) ? isinf(sigma) : sigma == 0));
    hlo_module_free(s.module);
}

/* So of a sum with an infinity and what may be NaN. */
static void a_sum_may_be_nan(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                      "  ROOT r = f32[] add(a, b)\n}\n"
                      "ENTRY e {\n  x = f32[4] parameter(0)\n  z = f32[] parameter(1)\n"
                      "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum\n}\n",
                      &recover);
    set(&s.operands[0], 0, (double)INFINITY);
    set(&s.operand_sigmas[0], 1, 3);
    run(&s, true);
    assert_true(isinf(at(&s.result, 0)) && at(&s.sigma, 0) == 0);
    set(&s.operand_sigmas[0], 1, (double)INFINITY);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    set(&s.operands[0], 0, 3);
    run(&s, true);
    assert_true(isinf(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

static void exact_sums_have_no_error(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s =
        prepare(MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} add(%x, %y)"),
                &recover);
    set(&s.operands[0], 0, 1), set(&s.operands[1], 0, 2);
    set(&s.operands[0], 1, 1), set(&s.operands[1], 1, 0x1p-30);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    assert_true(at(&s.sigma, 1) > 0);
    hlo_module_free(s.module);
}

/* A tie may become a neighbor, and nothing else. Off a boundary, or known to less, nothing is one.
 */
static void ties_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4]) -> f8e4m3fn[4]", X "  ROOT %r = f8e4m3fn[4]{0} convert(%x)"), &recover);
    static const double x[] = {17, 15.5, 17.0001, 17};
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, x[i]);
        set(&s.operand_sigmas[0], i, i == 3 ? 0.01 : 2e-5);
    }
    run(&s, true);
    assert_true(at(&s.sigma, 0) == (double)(float)(2 / HLO_ERROR_FLIP_TIE));
    assert_true(at(&s.sigma, 1) == (double)(float)(1 / HLO_ERROR_FLIP_TIE));
    assert_true(at(&s.sigma, 2) == 2 / HLO_ERROR_FLIP);
    assert_true(at(&s.sigma, 3) == 2 / HLO_ERROR_FLIP);
    static const unsigned char others[] = {0x59, 0x57, 0x5a};
    for (int o = 0; o < 3; o++) { /* of 16: 18, 15, and 20, two steps away */
        unsigned char codes[] = {others[o], 0x58, 0x59, 0x58};
        hlo_view other = s.result;
        other.data = codes;
        hlo_error_comparison c;
        hlo_error_compare(&s.result, &other, &s.sigma, &c);
        assert_int_equal(c.steps, o < 2);
        assert_int_equal(c.violations, o == 2);
    }
    hlo_module_free(s.module);
}

/* Returns the largest difference of a sum of `squares` and `linear` when of each term's variance a
 * part is that of a step which all of them share, and the rest is independent. */
static double shared_and_own(double squares, double linear, double variance) {
    double most = 0;
    for (double part = 0; part <= 1; part += 1.0 / 64) {
        double step = HLO_ERROR_FLIP * sqrt(part * variance) * fabs(linear);
        double own = HLO_ERROR_LAMBDA * sqrt((1 - part) * variance * squares);
        most = fmax(most, step + own);
    }
    return most;
}

/* Errors of a sum's terms add up like random ones, and like one step that all of them share. */
static void a_shared_error_moves_a_sum_linearly(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "1024"), &recover);
    for (int negative = 0; negative <= 512; negative += 128) {
        for (int i = 0; i < 1024; i++) {
            set(&s.operands[0], i, 1 + i * 1e-6), set(&s.operand_sigmas[0], i, 0.001);
            set(&s.operands[1], i, i < negative ? -1 : 1);
        }
        run(&s, false);
        double expected = shared_and_own(1024, 1024 - 2 * negative, 1e-6) / HLO_ERROR_LAMBDA;
        if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01)
            fail_msg("%d: %g, not %g", negative, at(&s.sigma, 0), expected);
    }
    hlo_module_free(s.module);
}

/* They are one number that has been quantized: either all are a step away or none is. */
static void equal_operands_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "1024"), &recover);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < 1024; i++) {
            set(&s.operands[which], i, 1), set(&s.operand_sigmas[which], i, 0.001);
            set(&s.operands[!which], i, i % 3 - 0.5), set(&s.operand_sigmas[!which], i, 0);
        }
        run(&s, false);
        double expected = 0.001 * (341 * (-0.5 + 0.5 + 1.5) - 0.5);
        if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    }
    hlo_module_free(s.module);
}

/* Columns that are repeated flip together in each row, others by themselves. */
static void repeated_columns_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[2,64], y: f32[64]) -> f32[2]",
                             "  %x = f32[2,64]{1,0} parameter(0)\n"
                             "  %y = f32[64]{0} parameter(1)\n"
                             "  ROOT %r = f32[2]{0} dot(%x, %y), lhs_contracting_dims={1}, "
                             "rhs_contracting_dims={0}"),
                      &recover);
    for (int apart = 0; apart < 2; apart++) {
        for (int i = 0; i < 128; i++) {
            int column = i % 64, first = apart && i >= 64 ? column : column % 4;
            set(&s.operands[0], i, 1 + first), set(&s.operand_sigmas[0], i, 0.001);
            set(&s.operands[1], column, 1), set(&s.operand_sigmas[1], column, 0);
        }
        run(&s, false);
        double shared = shared_and_own(64 * 7.5, 64 * 2.5, 1e-6 / 7.5) / HLO_ERROR_LAMBDA;
        double expected = apart ? shared : fmax(0.001 * 16 * 2, shared);
        if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    }
    hlo_module_free(s.module);
}

/* So do they where a reduce adds them. */
static void repeated_terms_of_a_reduce_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n%add (a: f32[], b: f32[]) -> f32[] {\n"
                      "  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
                      "  ROOT %s = f32[] add(%a, %b)\n}\n"
                      "ENTRY %e (x: f32[2,64], z: f32[]) -> f32[2] {\n"
                      "  %x = f32[2,64]{1,0} parameter(0)\n  %z = f32[] parameter(1)\n"
                      "  ROOT %r = f32[2]{0} reduce(%x, %z), dimensions={1}, to_apply=%add\n}\n",
                      &recover);
    for (int i = 0; i < 128; i++)
        set(&s.operands[0], i, i % 2 ? 1 : -1), set(&s.operand_sigmas[0], i, 0.001);
    set(&s.operands[1], 0, 0), set(&s.operand_sigmas[1], 0, 0);
    run(&s, false);
    double expected = 0.001 * 32 * sqrt(2);
    if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    hlo_module_free(s.module);
}

/* Sixteen equal terms and sixteen others, of the other sign: each addition loses the same. What the
 * sum is off by is 17 * 2^-24 of it, more than 8 sigmas of independent errors. */
static void what_an_execution_is_off_by_is_known(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "32"), &recover);
    double exact = 0, squares = 0;
    for (int i = 0; i < 32; i++) {
        float x = -0.112121075F, y = i < 16 ? -1.5e-06F : 4.0625e-07F;
        double term = (double)x * (double)y;
        set(&s.operands[0], i, (double)x), set(&s.operands[1], i, (double)y);
        exact += term;
        squares += term * term;
    }
    run(&s, false);
    double off = fabs(at(&s.result, 0) - exact), bound = HLO_ERROR_LAMBDA * at(&s.sigma, 0);
    double other = HLO_ERROR_LAMBDA * 0x1p-24 * sqrt(32.0 / 6 * squares + 32.0 / 9 * exact * exact);
    assert_true(off > other);
    assert_true(fabs(bound - (off + other)) < 1e-3 * bound);
    hlo_module_free(s.module);
}

/* A column that is 2^80 times as large as another hides nothing of that one's errors. */
static void columns_may_differ_much(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[4], y: f32[4,2]) -> f32[2]",
                             X "  %y = f32[4,2]{1,0} parameter(1)\n"
                               "  ROOT %r = f32[2]{0} dot(%x, %y), lhs_contracting_dims={0}, "
                               "rhs_contracting_dims={0}"),
                      &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, i % 2 ? 1 : -1);
        for (int j = 0; j < 2; j++) {
            double size = j ? 0x1p-20 : 0x1p60;
            set(&s.operands[1], 2 * i + j, size);
            set(&s.operand_sigmas[1], 2 * i + j, size / 1024);
        }
    }
    run(&s, true);
    assert_true(fabs(at(&s.sigma, 0) / 0x1p51 - 1) < 1e-3);
    assert_true(fabs(at(&s.sigma, 1) / 0x1p-29 - 1) < 1e-3);
    hlo_module_free(s.module);
}

/* Operands that a ragged-dot rounds to the type of its result stay as unsure as they were. */
static void a_ragged_dot_keeps_the_errors_of_what_it_rounds(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[2,2], w: f32[1,2,2], g: s32[1]) -> bf16[2,2]",
                             "  %x = f32[2,2]{1,0} parameter(0)\n"
                             "  %w = f32[1,2,2]{2,1,0} parameter(1)\n"
                             "  %g = s32[1]{0} parameter(2)\n"
                             "  ROOT %r = bf16[2,2]{1,0} ragged-dot(%x, %w, %g), "
                             "lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                             "lhs_ragged_dims={0}, rhs_group_dims={0}"),
                      &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, 100);
        set(&s.operands[1], i, 1);
    }
    set(&s.operands[2], 0, 2);
    set(&s.operand_sigmas[0], 0, 8);
    run(&s, false);
    for (int i = 0; i < 4; i++) {
        double sigma = at(&s.sigma, i);
        assert_true(at(&s.result, i) == 200);
        assert_true(i < 2 ? sigma > 6 && sigma < 10 : sigma < 1);
    }
    hlo_module_free(s.module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_about_as_large_as_the_bound),
        cmocka_unit_test(a_dot_of_infinities_is_exact),
        cmocka_unit_test(a_ragged_dot_keeps_the_errors_of_what_it_rounds),
        cmocka_unit_test(a_dot_that_overflows_is_known_in_f64),
        cmocka_unit_test(a_sum_may_be_nan),
        cmocka_unit_test(exact_sums_have_no_error),
        cmocka_unit_test(ties_flip_together),
        cmocka_unit_test(a_shared_error_moves_a_sum_linearly),
        cmocka_unit_test(equal_operands_flip_together),
        cmocka_unit_test(repeated_columns_flip_together),
        cmocka_unit_test(repeated_terms_of_a_reduce_flip_together),
        cmocka_unit_test(what_an_execution_is_off_by_is_known),
        cmocka_unit_test(columns_may_differ_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
