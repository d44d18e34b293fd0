/* Comparison under error bounds, and perturbed results. */
#include "tests/unit/ir/error_setup.h"

static void comparing_counts_every_case(void **state) {
    (void)state;
    static const int64_t dims[] = {6}, strides[] = {1};
    float a[] = {1, NAN, 2, 3, INFINITY, 5}, b[] = {1, NAN, 2.5f, 4, 7, 6};
    float s[] = {0, 0, 0.1f, 0.1f, 0.1f, INFINITY};
    hlo_view va = {HLO_TYPE_F32, 1, dims, strides, a}, vb = {HLO_TYPE_F32, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 2);
    assert_int_equal(c.within, 2);
    assert_int_equal(c.violations, 2);
    assert_int_equal(c.nonfinite, 1);
    assert_int_equal(c.worst_index, 4);
    hlo_error_compare(&va, &vb, NULL, &c);
    assert_int_equal(c.violations, 4);
    unsigned char p[] = {0x38, 0x38, 0x80, 0x38, 0x7f, 0}, q[] = {0x39, 0x3a, 0x01, 0x38, 0x7f, 0};
    float step[] = {0.03125f, 0.03125f, 0.01f, 0, 0, 0};
    hlo_view vp = {HLO_TYPE_F8E4M3FN, 1, dims, strides, p},
             vq = {HLO_TYPE_F8E4M3FN, 1, dims, strides, q},
             vt = {HLO_TYPE_F32, 1, dims, strides, step};
    hlo_error_compare(&vp, &vq, &vt, &c);
    assert_int_equal(c.steps, 2);
    assert_int_equal(c.violations, 1);
    assert_int_equal(c.equal, 3);
}

/* However little is known of its size, an infinity is no NaN; where nothing is known it may be. */
static void an_infinity_is_no_nan(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    float a[] = {INFINITY, NAN, INFINITY, INFINITY}, b[] = {NAN, INFINITY, 5, NAN};
    float s[] = {INFINITY, INFINITY, INFINITY, NAN};
    hlo_view va = {HLO_TYPE_F32, 1, dims, strides, a}, vb = {HLO_TYPE_F32, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.violations, 2);
    assert_int_equal(c.within, 2);
}

static void perturbing_moves_by_sigma(void **state) {
    (void)state;
    enum { COUNT = 4096 };
    static float sigma[COUNT], values[COUNT], again[COUNT];
    static uint16_t narrow[COUNT];
    const int64_t dims[] = {64, 64}, strides[] = {1, 64};
    hlo_view view = {HLO_TYPE_F32, 2, dims, strides, values};
    for (int i = 0; i < COUNT; i++) {
        sigma[i] = i < 64 ? 0 : 0.125f;
        values[i] = again[i] = 1;
        narrow[i] = 0x3f80;
    }
    hlo_error_perturb(&view, sigma, 2, 7);
    double mean = 0, square = 0;
    for (int i = 0; i < COUNT; i++) {
        double moved = values[i] - 1.0;
        mean += moved / COUNT;
        square += moved * moved / COUNT;
        assert_true(fabs(moved) <= 0.25 * 3.5);
        if (i % 64 == 0) assert_true(moved == 0);
    }
    assert_true(fabs(mean) < 0.02);
    assert_true(fabs(sqrt(square) - 0.25) < 0.02);
    view.data = again;
    hlo_error_perturb(&view, sigma, 2, 7);
    assert_memory_equal(values, again, sizeof values);
    hlo_error_perturb(&view, sigma, 2, 8);
    assert_memory_not_equal(values, again, sizeof values);
    /* Of bf16, whose next number is 1/128 away: to a neighbor now and then. */
    view = (hlo_view){HLO_TYPE_BF16, 2, dims, strides, narrow};
    for (int i = 0; i < COUNT; i++) sigma[i] = 0x1p-9f;
    hlo_error_perturb(&view, sigma, 1, 7);
    int changed = 0;
    for (int i = 0; i < COUNT; i++) changed += narrow[i] != 0x3f80;
    assert_in_range(changed, COUNT / 100, COUNT / 3);
}

/* An element moves by its index, wherever it is in memory; what is not finite keeps its bits. */
static void perturbing_is_by_index(void **state) {
    (void)state;
    enum { COUNT = 600 };
    static float sigma[COUNT];
    static uint16_t dense[COUNT], columns[COUNT];
    const int64_t dims[] = {3, 200}, rows[] = {200, 1}, transposed[] = {1, 3};
    const hlo_view a = {HLO_TYPE_BF16, 2, dims, rows, dense},
                   b = {HLO_TYPE_BF16, 2, dims, transposed, columns};
    for (int i = 0; i < COUNT; i++) {
        sigma[i] = i % 5 ? 0.125f : 0;
        dense[i] = columns[i % 200 * 3 + i / 200] = i == 301 ? 0x7f80 : (uint16_t)(0x3f00 + i);
    }
    dense[11] = columns[33] = 0x7f99;
    hlo_error_perturb(&a, sigma, 2, 7);
    hlo_error_perturb(&b, sigma, 2, 7);
    int changed = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(dense[i], columns[i % 200 * 3 + i / 200]);
        changed += dense[i] != 0x3f00 + i;
    }
    assert_in_range(changed, COUNT / 2, COUNT * 4 / 5 + 2);
    assert_int_equal(dense[11], 0x7f99);
    assert_int_equal(dense[301], 0x7f80);
}

/* Two numbers 3 sigmas apart on either side of a step become neighbors but one. */
static void fp8_counts_from_before_its_rounding(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    const double step = 0.5, sigma = 0.13;
    float s = (float)hypot(sigma, step / HLO_ERROR_FLIP);
    float coarse = (float)hypot(sigma, 2 * step / HLO_ERROR_FLIP);
    float sigmas[] = {s, s, coarse, (float)(step / HLO_ERROR_FLIP)};
    /* 6 and 7, 6 and 7.5, 8 and 6.5, whose steps differ, and 6 and 7 where one boundary is near */
    unsigned char a[] = {0x4c, 0x4c, 0x50, 0x4c}, b[] = {0x4e, 0x4f, 0x4d, 0x4e};
    hlo_view va = {HLO_TYPE_F8E4M3FN, 1, dims, strides, a},
             vb = {HLO_TYPE_F8E4M3FN, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, sigmas};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.within, 3);
    assert_int_equal(c.violations, 1);
    assert_int_equal(c.worst_index, 3);
    for (int i = 0; i < 3; i++)
        sigmas[i] = (float)hypot(0.05, (i == 2 ? 2 : 1) * step / HLO_ERROR_FLIP);
    hlo_error_compare(&va, &vb, &vs, &c); /* a gap of a step is 10 sigmas */
    assert_int_equal(c.violations, 4);
}

/* Below a power of two steps are half as long: of the two that are no further than the one above,
 * the second is accepted if the bound reaches it. */
static void steps_below_a_power_of_two_are_shorter(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4]) -> f8e4m3fn[4]", X "  ROOT %r = f8e4m3fn[4]{0} convert(%x)"), &recover);
    /* The boundaries around 1 are 0.84375, 0.90625, 0.96875, 1.0625. */
    static const double x[] = {0.97, 0.97, 1.03, 1.03}, reach[] = {0.06, 0.12, 0.05, 0.13};
    for (int i = 0; i < 4; i++)
        set(&s.operands[0], i, x[i]), set(&s.operand_sigmas[0], i, reach[i] / HLO_ERROR_LAMBDA);
    for (int dropped = 0; dropped < 2; dropped++) {
        run(&s, dropped);
        unsigned char two_below[] = {0x36, 0x36, 0x36, 0x36}, one[] = {0x37, 0x37, 0x39, 0x39};
        hlo_view other = s.result;
        hlo_error_comparison c;
        other.data = one;
        hlo_error_compare(&s.result, &other, &s.sigma, &c);
        assert_int_equal(c.steps, 4);
        other.data = two_below;
        hlo_error_compare(&s.result, &other, &s.sigma, &c);
        assert_int_equal(c.within, 2);
        assert_int_equal(c.violations, 2);
        assert_int_equal(c.worst_index, 0);
    }
    hlo_module_free(s.module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_counts_every_case),
        cmocka_unit_test(an_infinity_is_no_nan),
        cmocka_unit_test(perturbing_moves_by_sigma),
        cmocka_unit_test(perturbing_is_by_index),
        cmocka_unit_test(fp8_counts_from_before_its_rounding),
        cmocka_unit_test(steps_below_a_power_of_two_are_shorter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
