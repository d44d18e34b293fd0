/* SPDX-License-Identifier: Apache-2.0 */
/* Compares error bounds of dots and reduces with the effects of random errors, shared errors and
 * repeated terms. */
#include "tests/unit/ir/error_setup.h"

/* Returns an approximately normal number, the sum of twelve uniform ones. */
static double normal(uint64_t *seed) {
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 11) * 0x1p-53;
    }
    return sum;
}

static double part_at(const hlo_view *view, int64_t i) {
    if (view->type != HLO_TYPE_C64) return at(view, i);
    return (double)((const float *)view->data)[2 * i];
}

/* Defines a module whose root is an elementwise operation, or another operation, on f32 arrays. */
#define UNARY(op)                                                                                  \
    MODULE("(x: f32[64]) -> f32[64]",                                                              \
           "  %x = f32[64]{0} parameter(0)\n  ROOT %r = f32[64]{0} " op "(%x)")
#define BINARY(op)                                                                                 \
    MODULE("(x: f32[64], y: f32[64]) -> f32[64]",                                                  \
           "  %x = f32[64]{0} parameter(0)\n  %y = f32[64]{0} parameter(1)\n"                      \
           "  ROOT %r = f32[64]{0} " op "(%x, %y)")
#define TO_ADD                                                                                     \
    "HloModule m\nadd {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n"                     \
    "  ROOT s = f32[] add(p, q)\n}\n"

static const struct {
    const char *text;
    double low, high; /* 0, 0 for normal numbers */
} modules[] = {
    {MODULE("(x: f32[16,32], y: f32[32,8]) -> f32[16,8]",
            "  %x = f32[16,32]{1,0} parameter(0)\n  %y = f32[32,8]{1,0} parameter(1)\n"
            "  ROOT %r = f32[16,8]{1,0} dot(%x, %y), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}"),
     0, 0},
    {MODULE("(x: f32[3,16,8], y: f32[8,4,3]) -> f32[3,16,4]",
            "  %x = f32[3,16,8]{2,1,0} parameter(0)\n  %y = f32[8,4,3]{2,1,0} parameter(1)\n"
            "  ROOT %r = f32[3,16,4]{2,1,0} dot(%x, %y), lhs_batch_dims={0}, "
            "rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
     0, 0},
    {MODULE("(x: f32[2,6,6,4], y: f32[3,3,2,6]) -> f32[2,3,3,6]",
            "  %x = f32[2,6,6,4]{3,2,1,0} parameter(0)\n"
            "  %y = f32[3,3,2,6]{3,2,1,0} parameter(1)\n"
            "  ROOT %r = f32[2,3,3,6]{3,2,1,0} convolution(%x, %y), "
            "window={size=3x3 stride=2x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f, "
            "feature_group_count=2"),
     0, 0},
    {MODULE("(x: f32[2,8,4], y: f32[2,8,4], z: f32[2,8,4]) -> f32[2,8,4]",
            "  %x = f32[2,8,4]{2,1,0} parameter(0)\n  %y = f32[2,8,4]{2,1,0} parameter(1)\n"
            "  %z = f32[2,8,4]{2,1,0} parameter(2)\n"
            "  ROOT %r = f32[2,8,4]{2,1,0} clamp(%x, %y, %z)"),
     0, -1}, /* only the middle operand moves, whose bounds are far away */
    {TO_ADD "ENTRY e {\n  x = f32[8,64] parameter(0)\n  z = f32[] parameter(1)\n"
            "  ROOT r = f32[8] reduce(x, z), dimensions={1}, to_apply=add\n}\n",
     0, 0},
    {TO_ADD "ENTRY e {\n  x = f32[64] parameter(0)\n  z = f32[] parameter(1)\n"
            "  ROOT r = f32[31] reduce-window(x, z), window={size=4 stride=2}, "
            "to_apply=add\n}\n",
     0, 0},
    {TO_ADD "ENTRY e {\n  x = f32[9,4] parameter(0)\n  i = s32[6] parameter(1)\n"
            "  u = f32[6,4] parameter(2)\n  ROOT r = f32[9,4] scatter(x, i, u), "
            "update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n}\n",
     0, 0},
    {MODULE("(x: f32[64]) -> c64[33]", "  %x = f32[64]{0} parameter(0)\n"
                                       "  ROOT %r = c64[33]{0} fft(%x), fft_type=RFFT, "
                                       "fft_length={64}"),
     0, 0},
    {BINARY("add"), 0, 0},
    {BINARY("subtract"), 0, 0},
    {BINARY("multiply"), 0, 0},
    {BINARY("divide"), 1, 2},
    {BINARY("power"), 1, 2},
    {BINARY("atan2"), 1, 2},
    {BINARY("remainder"), 2.25, 2.75},
    {UNARY("abs"), 1, 2},
    {UNARY("negate"), 0, 0},
    {UNARY("tanh"), 0, 0},
    {UNARY("exponential"), 0, 0},
    {UNARY("exponential-minus-one"), 0, 0},
    {UNARY("log"), 1, 2},
    {UNARY("log-plus-one"), 1, 2},
    {UNARY("logistic"), 0, 0},
    {UNARY("sine"), 0, 0.5},
    {UNARY("cosine"), 1, 2},
    {UNARY("tan"), 0, 0.5},
    {UNARY("sqrt"), 1, 2},
    {UNARY("rsqrt"), 1, 2},
    {UNARY("cbrt"), 1, 2},
    {UNARY("erf"), 0, 0.5},
};

/* Random errors of the operands' sigmas cause a root-mean-square difference of about one sigma of
 * the result, for normal operands, or operands in an interval where the operation is smooth. */
static void errors_are_about_as_large_as_the_bound(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    for (size_t m = 0; m < sizeof modules / sizeof modules[0]; m++) {
        setup s = prepare(modules[m].text, &recover);
        uint64_t seed = 1;
        double x[3][MAX_COUNT], square = 0;
        int64_t counts[3] = {0}, count = hlo_shape_count(s.root->shape);
        const double low = modules[m].low, high = modules[m].high;
        for (uint32_t o = 0; o < s.root->operand_count; o++) {
            counts[o] = hlo_shape_count(hlo_instr_operand(s.root, o)->shape);
            const bool exact = s.operands[o].type != HLO_TYPE_F32 || (high < low && o != 1);
            for (int64_t i = 0; i < counts[o]; i++) {
                const double g = normal(&seed), u = 0.5 + 0.5 * sin(1000 * g);
                x[o][i] = exact        ? (high < low ? 10.0 * o - 10 : (double)(i % 9))
                          : low < high ? low + (high - low) * u
                                       : g;
                set(&s.operands[o], i, x[o][i]);
                set(&s.operand_sigmas[o], i, exact ? 0 : 0.001 * fabs(normal(&seed)));
            }
        }
        run(&s, false);
        double value[MAX_COUNT];
        for (int64_t i = 0; i < count; i++) value[i] = part_at(&s.result, i);
        const int trials = 50;
        for (int t = 0; t < trials; t++) {
            for (uint32_t o = 0; o < s.root->operand_count; o++)
                for (int64_t i = 0; i < counts[o]; i++)
                    set(&s.operands[o], i, x[o][i] + at(&s.operand_sigmas[o], i) * normal(&seed));
            const char *why;
            assert_int_equal(hlo_eval(NULL, s.root, s.operands, &s.result, s.module->arena, &why),
                             HLO_OK);
            for (int64_t i = 0; i < count; i++)
                square += pow((part_at(&s.result, i) - value[i]) / at(&s.sigma, i), 2);
        }
        double ratio = sqrt(square / (double)(count * trials));
        /* For a complex number, the sigma is that of both parts, but only one part is compared. */
        if (s.result.type == HLO_TYPE_C64) ratio *= sqrt(2);
        if (!(ratio > 0.85 && ratio < 1.05))
            fail_msg("%s: %g of the bound", modules[m].text, ratio);
        hlo_module_free(s.module);
    }
}

/* The product of an infinity and an exact number other than 0 is infinite with certainty. */
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
    set(&s.operand_sigmas[1], 1, 10); /* element 1 is not multiplied by the infinity */
    run(&s, false);
    assert_true(!isnan(at(&s.sigma, 0)));
    set(&s.operand_sigmas[1], 2, 10); /* the factor may be 0 or negative */
    run(&s, false);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

/* A sum that overflows in one order may be a number in another order. */
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
    for (int i = 2; i < 4; i++) set(&s.operands[1], i, -1); /* the total is 0 */
    run(&s, true);
    double sum = at(&s.result, 0), sigma = at(&s.sigma, 0);
    assert_true(isfinite(sum) || (isinf(sum) ? isinf(sigma) : sigma == 0));
    hlo_module_free(s.module);
}

/* The sum of an infinity and a value of infinite sigma may be NaN; without the infinity, only the
 * sigma is infinite. */
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

/* A tie may only round to a neighbor. Away from a boundary, or with a larger sigma, there are no
 * ties. */
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
    for (int o = 0; o < 3; o++) { /* compared with 16: 18 and 15, and 20, two steps away */
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

/* Returns the largest difference of a sum if part of each term's variance
 * is that of a step shared by all terms (`linear`), and the rest is independent (`squares`). */
static double shared_and_own(double squares, double linear, double variance) {
    double most = 0;
    for (double part = 0; part <= 1; part += 1.0 / 64) {
        double step = HLO_ERROR_FLIP * sqrt(part * variance) * fabs(linear);
        double own = HLO_ERROR_LAMBDA * sqrt((1 - part) * variance * squares);
        most = fmax(most, step + own);
    }
    return most;
}

/* Errors of a sum's terms may be independent, or be one step that all terms share. */
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

/* All elements of one operand are the same quantized number, so either all are a step away or none
 * is. */
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

/* Repeated columns are rounded alike in each row, other columns independently. */
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

/* Equal terms that a reduce adds also round alike. */
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

/* Sixteen equal terms and sixteen others of the other sign: each addition has the same error. The
 * total error is 17 * 2^-24 of the sum, more than 8 sigmas of independent errors. */
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

/* A column that is 2^80 times as large as another does not hide the errors of the other column. */
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

/* Operands that a ragged-dot rounds to its result type have the same sigmas as before the
 * rounding. */
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
