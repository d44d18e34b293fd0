/* SPDX-License-Identifier: Apache-2.0 */
/* Tests comparisons under error bounds, and perturbed results. */
#include "tests/unit/ir/error_setup.h"

#include <stdlib.h>

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

/* An infinity with an infinite sigma does not match a NaN. With a NaN sigma (nothing is known), it
 * may match a NaN. */
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
    hlo_error_perturb(&view, sigma, 2, 7, false);
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
    hlo_error_perturb(&view, sigma, 2, 7, false);
    assert_memory_equal(values, again, sizeof values);
    hlo_error_perturb(&view, sigma, 2, 8, false);
    assert_memory_not_equal(values, again, sizeof values);
    /* If elements are perturbed by value, equal elements move equally, and different elements move
     * independently. */
    for (int i = 0; i < COUNT; i++) values[i] = i % 3 == 0 ? 1.5f : 1;
    view.data = values;
    hlo_error_perturb(&view, sigma, 2, 7, true);
    assert_true(values[65] != 1 && values[66] != 1.5f && values[65] - 1 != values[66] - 1.5f);
    for (int i = 0; i < COUNT; i++)
        if (i % 64) assert_true(values[i] == values[i % 3 == 0 ? 66 : 65]);
    /* bf16 elements, whose next number is 1/128 away, sometimes move to a neighbor. */
    view = (hlo_view){HLO_TYPE_BF16, 2, dims, strides, narrow};
    for (int i = 0; i < COUNT; i++) sigma[i] = 0x1p-9f;
    hlo_error_perturb(&view, sigma, 1, 7, false);
    int changed = 0;
    for (int i = 0; i < COUNT; i++) changed += narrow[i] != 0x3f80;
    assert_in_range(changed, COUNT / 100, COUNT / 3);
}

/* Both parts of a complex number move independently; f64 also moves, and an unknown sigma moves an
 * element little. */
static void perturbing_moves_every_type(void **state) {
    (void)state;
    enum { COUNT = 2048 };
    static float sigma[COUNT];
    static double wide[COUNT];
    static float parts[2 * COUNT];
    const int64_t dims[] = {COUNT}, strides[] = {1};
    const hlo_view real = {HLO_TYPE_F64, 1, dims, strides, wide},
                   complex = {HLO_TYPE_C64, 1, dims, strides, parts};
    for (int i = 0; i < COUNT; i++) {
        sigma[i] = i % 2 ? INFINITY : 0.125f;
        wide[i] = 4;
        parts[2 * i] = 4, parts[2 * i + 1] = -8;
    }
    hlo_error_perturb(&real, sigma, 2, 7, false);
    hlo_error_perturb(&complex, sigma, 2, 7, false);
    double squares[3][2] = {{0}}, product = 0;
    for (int i = 0; i < COUNT; i++) {
        const double x = (double)parts[2 * i] - 4, y = (double)parts[2 * i + 1] + 8;
        squares[0][i % 2] += pow(wide[i] - 4, 2) / (COUNT / 2);
        squares[1][i % 2] += x * x / (COUNT / 2);
        squares[2][i % 2] += y * y / (COUNT / 2);
        if (i % 2 == 0) product += x * y / (COUNT / 2);
    }
    for (int which = 0; which < 3; which++)
        for (int unknown = 0; unknown < 2; unknown++) {
            const double size = which == 2 ? 8 : 4;
            const double expected = unknown ? 2 * size * 0x1p-20 : 0.25;
            const double ratio = sqrt(squares[which][unknown]) / expected;
            if (!(ratio > 0.9 && ratio < 1.1)) fail_msg("%d, %d: %g", which, unknown, ratio);
        }
    assert_true(fabs(product) < 0.1 * 0.0625); /* the parts are not perturbed alike */
}

/* The perturbation of an element depends on its index, not on its position in memory; non-finite
 * elements keep their bits. */
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
    hlo_error_perturb(&a, sigma, 2, 7, false);
    hlo_error_perturb(&b, sigma, 2, 7, false);
    int changed = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(dense[i], columns[i % 200 * 3 + i / 200]);
        changed += dense[i] != 0x3f00 + i;
    }
    assert_in_range(changed, COUNT / 2, COUNT * 4 / 5 + 2);
    assert_int_equal(dense[11], 0x7f99);
    assert_int_equal(dense[301], 0x7f80);
}

/* Numbers that are less than lambda sigmas apart may be rounded to numbers that are two or three
 * steps apart. */
static void fp8_counts_from_before_its_rounding(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    const double step = 0.5, sigma = 0.13;
    float s = (float)hypot(sigma, step / HLO_ERROR_FLIP);
    float coarse = (float)hypot(sigma, 2 * step / HLO_ERROR_FLIP);
    float sigmas[] = {s, s, coarse, (float)(step / HLO_ERROR_FLIP)};
    /* pairs: 6, 7; 6, 7.5; 8, 6.5, whose steps differ; and 6, 7, whose values before rounding are
     * exact */
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
    hlo_error_compare(&va, &vb, &vs, &c); /* a gap of one step is 10 sigmas */
    assert_int_equal(c.violations, 4);
}

/* Below a power of two, steps are half as long as above it. A difference of one step is always
 * accepted, and a difference of two steps below the power only if the bound is large enough. */
static void steps_below_a_power_of_two_are_shorter(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4]) -> f8e4m3fn[4]", X "  ROOT %r = f8e4m3fn[4]{0} convert(%x)"), &recover);
    /* Around 1, the boundaries between rounded numbers are 0.84375, 0.90625, 0.96875, 1.0625. */
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

/* ----------------------------------------------------------------------------------- every pair */

/* Two elements of a type, the sigma of the first, and their maximum distance within a bound. */
typedef struct pair {
    hlo_type type;
    double a, b, sigma, bound;
} pair;

/* The sorted finite numbers of a narrow type, without -0. */
typedef struct numbers {
    double v[65536];
    int count;
} numbers;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_numbers(hlo_type type, numbers *out) {
    out->count = 0;
    for (uint32_t code = 0; code < 1U << hlo_types[type].bits; code++) {
        const double value = hlo_float_decode(type, code);
        if (isfinite(value) && !(value == 0 && code)) out->v[out->count++] = value;
    }
    qsort(out->v, (size_t)out->count, sizeof *out->v, by_value);
}

/* Returns the distance between a number and the number `side` positions away, or 0. */
static double gap(const numbers *n, double value, int side) {
    const double *at = bsearch(&value, n->v, (size_t)n->count, sizeof *n->v, by_value);
    const long other = at - n->v + side;
    return other < 0 || other >= n->count ? 0 : fabs(n->v[other] - value);
}

/* Returns the bound of an fp8 number: lambda sigmas of the value before rounding, and half a step
 * for each rounding; 0 for a sigma of 0. If the sigma is that of a tie, the value
 * before rounding is almost exact. */
static double fp8_bound(const numbers *n, double a, double b, double sigma) {
    const double outwards = gap(n, a, a < 0 ? -1 : 1), inwards = gap(n, a, a < 0 ? 1 : -1);
    const double step = outwards > 0 ? outwards : inwards, flip = step / HLO_ERROR_FLIP;
    const double ties[] = {step / sqrt(2), (a == 0 ? step : inwards) / sqrt(2)};
    const double halves = (gap(n, a, b > a ? 1 : -1) + gap(n, b, a > b ? 1 : -1)) / 2;
    double before = sigma > flip ? sqrt(sigma * sigma - flip * flip) : 0;
    for (int i = 0; i < 2; i++)
        if (fabs(sigma / ties[i] - 1) < 0.5e-5) before = step / HLO_ERROR_FINE;
    return sigma > 0 ? HLO_ERROR_LAMBDA * before + halves : 0;
}

/* Returns the expected counts of a pair, and its excess. */
static hlo_error_comparison judged(const pair *p, bool neighbors, float *excess) {
    hlo_error_comparison c = {.worst_index = -1};
    const bool finite = isfinite(p->a) && isfinite(p->b);
    const double distance = fabs(p->a - p->b);
    const double ratio = finite && p->bound > 0 ? distance / p->bound : (double)INFINITY;
    const bool turned = !finite && isnan(p->a) != isnan(p->b) && (isinf(p->a) || isinf(p->b));
    *excess = 0;
    if (p->a == p->b || (isnan(p->a) && isnan(p->b))) {
        c.equal = 1;
        return c;
    }
    if (finite && p->bound > 0) c.largest = ratio;
    if (isnan(p->bound) || (isinf(p->bound) && !turned) || (finite && ratio <= 1 + 1e-6)) {
        *(neighbors ? &c.steps : &c.within) = 1;
        *excess = finite && isfinite(p->bound) ? (float)fmin(ratio, 1) : 0;
        return c;
    }
    *excess = fmaxf((float)ratio, 1.0001f);
    c.violations = 1;
    c.nonfinite = !finite;
    c.worst_index = 0;
    c.worst_a = p->a, c.worst_b = p->b, c.worst_bound = p->bound;
    return c;
}

static bool same_or_nan(double a, double b) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fabs(a);
}

static void expect(const pair *p, bool neighbors) {
    static const int64_t dims[] = {1};
    char a[16], b[16];
    float sigma = (float)p->sigma, excess, expected_excess;
    hlo_number_store(p->type, a, p->a);
    hlo_number_store(p->type, b, p->b);
    const hlo_view va = {p->type, 1, dims, dims, a}, vb = {p->type, 1, dims, dims, b},
                   vs = {HLO_TYPE_F32, 1, dims, dims, &sigma};
    const hlo_error_comparison e = judged(p, neighbors, &expected_excess);
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    hlo_error_excess(&va, &vb, &vs, &excess);
    if (c.equal != e.equal || c.within != e.within || c.steps != e.steps ||
        c.violations != e.violations || c.nonfinite != e.nonfinite ||
        c.worst_index != e.worst_index || !same_or_nan(c.largest, e.largest) ||
        !same_or_nan(c.worst_a, e.worst_a) || !same_or_nan(c.worst_b, e.worst_b) ||
        !same_or_nan(c.worst_bound, e.worst_bound) ||
        !(excess == expected_excess || fabsf(excess - expected_excess) < 1e-6f * excess))
        fail_msg("%s %g and %g, sigma %g: bound %g, not %g; excess %g, not %g",
                 hlo_types[p->type].name, p->a, p->b, p->sigma, c.worst_bound, p->bound,
                 (double)excess, (double)expected_excess);
}

static void every_pair_is_judged(void **state) {
    (void)state;
    static const double values[] = {0, 1, -1, 1.5, 300, -0x1p100, INFINITY, -INFINITY, NAN};
    static const double sigmas[] = {0, 0.0625, 0.25, 1, 0x1p99, 0x1p121, INFINITY, NAN};
    static const hlo_type types[] = {HLO_TYPE_F32, HLO_TYPE_F64, HLO_TYPE_BF16};
    enum { VALUES = sizeof values / sizeof *values, SIGMAS = sizeof sigmas / sizeof *sigmas };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int i = 0; i < VALUES * VALUES * SIGMAS; i++) {
            pair p = {types[t], values[i % VALUES], values[i / VALUES % VALUES],
                      sigmas[i / VALUES / VALUES], 0};
            const bool overflowed = !isfinite(p.a) && p.sigma > 0 && p.sigma < 0x1p120;
            if (!overflowed) p.bound = HLO_ERROR_LAMBDA * p.sigma;
            if (types[t] == HLO_TYPE_BF16 && !overflowed) { /* bf16 has 8 bits of precision */
                const double x = isfinite(p.a) && p.a != 0 ? ldexp(1, ilogb(p.a) - 7) : 0,
                             y = isfinite(p.b) && p.b != 0 ? ldexp(1, ilogb(p.b) - 7) : 0;
                if (p.sigma > 2 * (x + y)) p.bound += (x + y) / 2;
            }
            expect(&p, false);
        }
}

static void every_pair_of_fp8_is_judged(void **state) {
    (void)state;
    static const hlo_type types[] = {HLO_TYPE_F8E4M3FN, HLO_TYPE_F8E5M2, HLO_TYPE_F8E4M3B11FNUZ,
                                     HLO_TYPE_F8E5M2FNUZ};
    static const double sigmas[] = {0, 0.1, 0.25, 0.3, 0.70710678118654757, 1, 3};
    static numbers n;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        find_numbers(types[t], &n);
        for (int i = 0; i < n.count; i++)
            for (int j = 0; j < n.count; j += 1 + (j > i + 3 || j < i - 4) * 5) {
                const double step = gap(&n, n.v[i], n.v[i] < 0 ? -1 : 1);
                const double size = step > 0 ? step : gap(&n, n.v[i], n.v[i] < 0 ? 1 : -1);
                const double sigma = (double)(float)(sigmas[(i + j) % 7] * size);
                pair p = {types[t], n.v[i], n.v[j], sigma, 0};
                p.bound = fp8_bound(&n, p.a, p.b, p.sigma);
                expect(&p, abs(i - j) == 1);
            }
    }
}

/* Of several equally wrong elements, the first by index is reported, whatever its position in
 * memory. */
static void the_worst_element_is_reported(void **state) {
    (void)state;
    static const int64_t dims[] = {2, 3}, rows[] = {3, 1}, columns[] = {1, 2};
    float a[] = {0, 1, 2, 3, 4, 5}, s[] = {1, 1, 1, 1, 1, 1};
    /* Elements by rows: 9, 17, 2, 19, 20, 21; their ratios to the bound: 9/8, 16/8, 0, 16/8, 16/8,
     * 16/8. */
    float b[] = {9, 19, 17, 20, 2, 21}, excess[6];
    const hlo_view va = {HLO_TYPE_F32, 2, dims, rows, a}, vb = {HLO_TYPE_F32, 2, dims, columns, b},
                   vs = {HLO_TYPE_F32, 2, dims, rows, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 1);
    assert_int_equal(c.violations, 5);
    assert_int_equal(c.worst_index, 1);
    assert_true(c.worst_a == 1 && c.worst_b == 17 && c.worst_bound == 8 && c.largest == 2);
    hlo_error_excess(&va, &vb, &vs, excess);
    assert_true(excess[0] == 1.125f && excess[1] == 2 && excess[2] == 0 && excess[5] == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_counts_every_case),
        cmocka_unit_test(an_infinity_is_no_nan),
        cmocka_unit_test(perturbing_moves_by_sigma),
        cmocka_unit_test(perturbing_moves_every_type),
        cmocka_unit_test(perturbing_is_by_index),
        cmocka_unit_test(fp8_counts_from_before_its_rounding),
        cmocka_unit_test(steps_below_a_power_of_two_are_shorter),
        cmocka_unit_test(every_pair_is_judged),
        cmocka_unit_test(every_pair_of_fp8_is_judged),
        cmocka_unit_test(the_worst_element_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
