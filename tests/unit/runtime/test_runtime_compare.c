/* SPDX-License-Identifier: Apache-2.0 */
/* Tests distances and comparisons of arrays against sums computed here. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/runtime.h"
#include "runtime/io/arrays.h"

enum { COUNT = 40 };

static hlo_array array_of(hlo_element_type type, const int64_t *count, void *data, size_t size) {
    return (hlo_array){.struct_size = sizeof(hlo_array),
                       .type = type,
                       .rank = 1,
                       .dims = count,
                       .data = data,
                       .size = size,
                       .noise = {-1, -1}};
}

static void expect_near(double found, double expected) {
    if (found != expected && !(fabs(found - expected) <= 1e-6 * fabs(expected)))
        fail_msg("%.9g, not %.9g", found, expected);
}

static void a_distance_is_relative_to_the_first(void **state) {
    (void)state;
    const int64_t three = 3, two = 2;
    double distance;
    float a[] = {3, 4, 12}, b[] = {3, 6, 12}, c[] = {3, 4, INFINITY}, d[] = {3, 5, INFINITY},
          zero[] = {0, 0, 0};
    const hlo_array fa = array_of(HLO_TYPE_F32, &three, a, sizeof a),
                    fb = array_of(HLO_TYPE_F32, &three, b, sizeof b),
                    fc = array_of(HLO_TYPE_F32, &three, c, sizeof c),
                    fd = array_of(HLO_TYPE_F32, &three, d, sizeof d),
                    fz = array_of(HLO_TYPE_F32, &three, zero, sizeof zero);
    assert_int_equal(hlo_array_distance(&fa, &fb, &distance), HLO_OK);
    expect_near(distance, 2.0 / 13);
    assert_int_equal(hlo_array_distance(&fb, &fa, &distance), HLO_OK);
    expect_near(distance, 2 / sqrt(9 + 36 + 144));
    assert_int_equal(hlo_array_distance(&fa, &fa, &distance), HLO_OK);
    assert_true(distance == 0);
    assert_int_equal(hlo_array_distance(&fc, &fd, &distance),
                     HLO_OK); /* both are infinite at the end */
    expect_near(distance, 1.0 / 5);
    assert_int_equal(hlo_array_distance(&fa, &fc, &distance), HLO_OK);
    assert_true(isinf(distance));
    assert_int_equal(hlo_array_distance(&fz, &fa, &distance), HLO_OK);
    assert_true(isinf(distance));
    assert_int_equal(hlo_array_distance(&fz, &fz, &distance), HLO_OK);
    assert_true(distance == 0);
    float p[] = {3, 4, 0, 12}, q[] = {3, 4, 3, 16}; /* moduli 5 and 12, distances 0 and 5 */
    const hlo_array cp = array_of(HLO_TYPE_C64, &two, p, sizeof p),
                    cq = array_of(HLO_TYPE_C64, &two, q, sizeof q);
    assert_int_equal(hlo_array_distance(&cp, &cq, &distance), HLO_OK);
    expect_near(distance, 5.0 / 13);
    int32_t i[] = {3, 4, 12}, j[] = {1, 4, 11};
    const hlo_array si = array_of(HLO_TYPE_S32, &three, i, sizeof i),
                    sj = array_of(HLO_TYPE_S32, &three, j, sizeof j);
    assert_int_equal(hlo_array_distance(&si, &sj, &distance), HLO_OK);
    expect_near(distance, sqrt(5) / 13);
    assert_int_equal(hlo_array_distance(&si, &fa, &distance), HLO_INVALID_USAGE);
    const int64_t other = 2;
    const hlo_array shorter = array_of(HLO_TYPE_F32, &other, a, 2 * sizeof *a);
    assert_int_equal(hlo_array_distance(&fa, &shorter, &distance), HLO_INVALID_USAGE);
}

/* Numbers around 1, with known sigmas and, at the end, unknown ones; the other side is `off` sigmas
 * away, alternating in sign. */
typedef struct sides {
    float judge[COUNT], other[COUNT], bound[COUNT];
} sides;

static void make(sides *s, int unknown, double sigma, double off) {
    for (int i = 0; i < COUNT; i++) {
        const bool known = i < COUNT - unknown;
        s->judge[i] = 1 + (float)i / COUNT;
        s->bound[i] = known ? (float)sigma : INFINITY;
        s->other[i] = s->judge[i] + (float)((i % 2 ? -1 : 1) * off * sigma);
    }
}

static void noise_is_compared_with_its_limit(void **state) {
    (void)state;
    static const struct {
        int unknown;
        double noise[2], off;
    } cases[] = {{0, {1, -1}, 2},   {0, {1, -1}, 4.2},     {0, {-1, -1}, 5}, {12, {1, 1}, 2},
                 {12, {0.1, 1}, 3}, {12, {-1, 0.0005}, 6}, {12, {5, 0.1}, 4}};
    const double sigma = 0.001;
    const int64_t count = COUNT;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        sides s;
        make(&s, cases[c].unknown, sigma, cases[c].off);
        hlo_array judge = array_of(HLO_TYPE_F32, &count, s.judge, sizeof s.judge);
        const hlo_array other = array_of(HLO_TYPE_F32, &count, s.other, sizeof s.other);
        judge.bound = s.bound;
        for (int i = 0; i < 2; i++) judge.noise[i] = cases[c].noise[i];
        double squares[2] = {0}, rounding[2] = {0}, counts[2] = {0}, size = 0;
        for (int i = COUNT - cases[c].unknown; i < COUNT; i++)
            size += (double)(s.judge[i] * s.judge[i]) / cases[c].unknown;
        for (int i = 0; i < COUNT; i++) {
            const int unknown = i >= COUNT - cases[c].unknown;
            const double unit = unknown ? sqrt(size) : (double)s.bound[i];
            const double d = ((double)s.judge[i] - (double)s.other[i]) / unit;
            const double u = ldexp((double)s.judge[i] / unit, -24);
            squares[unknown] += d * d;
            rounding[unknown] += u * u;
            counts[unknown]++;
        }
        double noise = 0, limit = 2.5;
        for (int i = 0; i < 2; i++) {
            if (cases[c].noise[i] < 0 || counts[i] == 0) continue;
            const double found = sqrt(squares[i] / counts[i]) /
                                 hypot(cases[c].noise[i], sqrt(rounding[i] / counts[i]));
            const double most = 2.5 + 10 / sqrt(counts[i]);
            if (found / most < noise / limit) continue;
            noise = found;
            limit = most;
        }
        hlo_difference d;
        hlo_difference_init(&d);
        const hlo_status status = hlo_array_compare(&judge, &other, &d);
        expect_near(d.rms, sqrt(squares[0] / counts[0]));
        expect_near(d.noise, noise);
        expect_near(d.noise_limit, limit);
        assert_int_equal(d.violations, 0);
        assert_int_equal(d.within, COUNT);
        assert_int_equal(status, noise > limit ? HLO_MISMATCH : HLO_OK);
    }
}

static void a_violation_is_described(void **state) {
    (void)state;
    const int64_t count = COUNT, fewer = COUNT - 1;
    sides s;
    make(&s, 0, 0.01, 0);
    s.other[7] = s.judge[7] + 0.0625f;
    s.other[9] = s.judge[9] - 0.25f;
    s.other[11] = s.judge[11] + 0.125f;
    hlo_array judge = array_of(HLO_TYPE_F32, &count, s.judge, sizeof s.judge);
    const hlo_array other = array_of(HLO_TYPE_F32, &count, s.other, sizeof s.other);
    judge.bound = s.bound;
    hlo_difference d;
    hlo_difference_init(&d);
    assert_int_equal(hlo_array_compare(&judge, &other, &d), HLO_MISMATCH);
    assert_int_equal(d.equal, COUNT - 3);
    assert_int_equal(d.within, 1);
    assert_int_equal(d.one_step, 0);
    assert_int_equal(d.violations, 2);
    assert_int_equal(d.worst, 9);
    expect_near(d.judge, (double)s.judge[9]);
    expect_near(d.other, (double)s.other[9]);
    expect_near(d.bound, 0.08);
    expect_near(d.largest, 0.25 / 0.08);
    expect_near(d.rms, sqrt((6.25 * 6.25 + 25 * 25 + 12.5 * 12.5) / COUNT));
    assert_true(d.noise == 0);
    judge.bound = NULL; /* without a bound, arrays must be equal */
    assert_int_equal(hlo_array_compare(&judge, &other, &d), HLO_MISMATCH);
    assert_int_equal(d.violations, 3);
    assert_int_equal(hlo_array_compare(&judge, &judge, &d), HLO_OK);
    const hlo_array shorter =
                        array_of(HLO_TYPE_F32, &fewer, s.other, sizeof s.other - sizeof *s.other),
                    integers = array_of(HLO_TYPE_S32, &count, s.other, sizeof s.other);
    assert_int_equal(hlo_array_compare(&judge, &shorter, &d), HLO_INVALID_USAGE);
    assert_int_equal(hlo_array_compare(&judge, &integers, &d), HLO_INVALID_USAGE);
    assert_int_equal(d.worst, -1);
}

#define HEAD(shape)                                                                                \
    "output  " shape "  verdict              elements    different beyond bound   not judged  "    \
    "error/bound      noise  SNR dB\n"

/* A case of a comparison's output: the arrays of both sides, as indices of `all` below, and the
 * number of expected outputs. */
static const struct {
    size_t found, expected, count;
    hlo_status status;
    const char *text;
} printed[] = {
    {0, 0, 1, HLO_OK, "compare: 1 output agrees\n"},
    {1, 0, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  f32[4]  differs                     4            1            1       "
                    "     0          inf          -    14.8\n"
                    "output 0: max abs error 1, max rel error 0.25\n"
                    "  worst at [3]: 5, but 4 in the reference; bound 0\n"
                    "compare: 1 of 1 outputs differ\n"},
    {2, 0, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  f32[4]  differs                     4            1            1       "
                    "     0          inf          -       -\n"
                    "output 0: max abs error 0, max rel error 0, NaN or infinity in only "
                    "one: 1\n"
                    "  worst at [1]: nan, but 2 in the reference\n"
                    "compare: 1 of 1 outputs differ\n"},
    {0, 2, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  f32[4]  differs                     4            1            1       "
                    "     0          inf          -       -\n"
                    "output 0: max abs error 0, max rel error 0, NaN or infinity in only "
                    "one: 1\n"
                    "  worst at [1]: 2, but nan in the reference\n"
                    "compare: 1 of 1 outputs differ\n"},
    {3, 0, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  f32[4]  differs                     4            1            1       "
                    "     0          inf          -       -\n"
                    "output 0: max abs error 0, max rel error 0, NaN or infinity in only "
                    "one: 1\n"
                    "  worst at [1]: inf, but 2 in the reference\n"
                    "compare: 1 of 1 outputs differ\n"},
    {3, 3, 1, HLO_OK, "compare: 1 output agrees\n"},
    {2, 2, 1, HLO_OK, "compare: 1 output agrees\n"},
    {4, 0, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  f32[4]  differs                     4            2            2       "
                    "     0          inf          -    -1.2\n"
                    "output 0: max abs error 6, max rel error 2\n"
                    "  worst at [0]: -1, but 1 in the reference; bound 0\n"
                    "compare: 1 of 1 outputs differ\n"},
    {5, 0, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  f32[3]  other shape      expected f32[4]\n"
                    "compare: 1 of 1 outputs differ\n"},
    {7, 0, 1, HLO_MISMATCH,
     HEAD("shape   ") "     0  f32[2,2]  other shape      expected f32[4]\n"
                      "compare: 1 of 1 outputs differ\n"},
    {8, 0, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  s32[4]  other shape      expected f32[4]\n"
                    "compare: 1 of 1 outputs differ\n"},
    {6, 7, 1, HLO_MISMATCH,
     HEAD("shape   ") "     0  f32[2,2]  differs                     4            1            1   "
                      "         0          inf          -    14.8\n"
                      "output 0: max abs error 1, max rel error 0.25\n"
                      "  worst at [1,1]: 5, but 4 in the reference; bound 0\n"
                      "compare: 1 of 1 outputs differ\n"},
    {8, 9, 1, HLO_MISMATCH,
     HEAD("shape ") "     0  s32[4]  differs                     4            1            1       "
                    "     0          inf          -    11.0\n"
                    "output 0: max abs error 2, max rel error 0.333\n"
                    "  worst at [3]: 4, but 6 in the reference; bound 0\n"
                    "compare: 1 of 1 outputs differ\n"},
    {9, 9, 1, HLO_OK, "compare: 1 output agrees\n"},
    {0, 0, 2, HLO_MISMATCH, "compare: 1 outputs, expected 2\n"},
};

static void a_comparison_is_printed(void **state) {
    (void)state;
    static float fours[][4] = {
        {1, 2, 3, 4}, {1, 2, 3, 5}, {1, NAN, 3, 4}, {1, INFINITY, 3, 4}, {-1, 2, -3, 4}};
    static int32_t integers[][4] = {{1, 2, 3, 4}, {1, 2, 3, 6}};
    static const int64_t four = 4, three = 3, square[] = {2, 2};
    const hlo_array all[] = {array_of(HLO_TYPE_F32, &four, fours[0], 16),
                             array_of(HLO_TYPE_F32, &four, fours[1], 16),
                             array_of(HLO_TYPE_F32, &four, fours[2], 16),
                             array_of(HLO_TYPE_F32, &four, fours[3], 16),
                             array_of(HLO_TYPE_F32, &four, fours[4], 16),
                             array_of(HLO_TYPE_F32, &three, fours[0], 12),
                             {.struct_size = sizeof(hlo_array),
                              .type = HLO_TYPE_F32,
                              .rank = 2,
                              .dims = square,
                              .data = fours[1],
                              .size = 16,
                              .noise = {-1, -1}},
                             {.struct_size = sizeof(hlo_array),
                              .type = HLO_TYPE_F32,
                              .rank = 2,
                              .dims = square,
                              .data = fours[0],
                              .size = 16,
                              .noise = {-1, -1}},
                             array_of(HLO_TYPE_S32, &four, integers[0], 16),
                             array_of(HLO_TYPE_S32, &four, integers[1], 16)};
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        hlo_array one[] = {all[printed[i].expected], all[printed[i].expected]};
        hlo_array other = all[printed[i].found];
        const hlo_arrays judge = {.count = printed[i].count, .items = one},
                         found = {.count = 1, .items = &other};
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        const hlo_status status = hlo_arrays_compare(&judge, &found, hlo_file_writer(out));
        fclose(out);
        if (status != printed[i].status || strcmp(text, printed[i].text) != 0)
            fail_msg("case %zu: %s\n%s", i, hlo_status_name(status), text);
        assert_int_equal(hlo_arrays_compare(&judge, &found, (hlo_writer){0}), printed[i].status);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_distance_is_relative_to_the_first),
        cmocka_unit_test(noise_is_compared_with_its_limit),
        cmocka_unit_test(a_violation_is_described),
        cmocka_unit_test(a_comparison_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
