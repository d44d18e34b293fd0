/* SPDX-License-Identifier: Apache-2.0 */
/* Tests extreme shapes and literals: empty, huge, narrow, scalar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/ir.h"

static jmp_buf recover;

static int set_up(void **state) {
    *state = hlo_module_make(&recover);
    return *state ? 0 : -1;
}

static int tear_down(void **state) {
    hlo_module_free(*state);
    return 0;
}

#define ARRAY(m, type, ...)                                                                        \
    hlo_shape_array(m, HLO_TYPE_##type, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),        \
                    (const int64_t[]){__VA_ARGS__})

static void counts_do_not_overflow(void **state) {
    hlo_module *m = *state;
    int64_t large = INT64_C(1) << 62;
    assert_int_equal(hlo_shape_count(hlo_shape_array(m, HLO_TYPE_F32, 0, NULL)), 1);
    assert_int_equal(hlo_shape_count(ARRAY(m, F32, large, 2)), -1);
    assert_int_equal(hlo_shape_count(ARRAY(m, F32, large)), large);
    assert_int_equal(hlo_shape_bytes(ARRAY(m, F32, large)), -1);
    assert_int_equal(hlo_shape_bytes(ARRAY(m, S4, large)), large);
    assert_int_equal(hlo_shape_count(ARRAY(m, F32, -1, 2)), -1);
    const hlo_shape *half = ARRAY(m, S8, large);
    const hlo_shape *two[] = {half, half};
    assert_int_equal(hlo_shape_bytes(hlo_shape_tuple(m, 2, two)), -1);
    assert_int_equal(hlo_shape_bytes(hlo_shape_tuple(m, 0, NULL)), 0);
}

static void an_empty_array_has_no_elements_however_large_the_rest(void **state) {
    hlo_module *m = *state;
    int64_t large = INT64_C(1) << 62, strides[3];
    const hlo_shape *before = ARRAY(m, F64, 0, large, 8), *after = ARRAY(m, F64, large, 8, 0);
    assert_int_equal(hlo_shape_count(before), 0);
    assert_int_equal(hlo_shape_bytes(after), 0);
    hlo_shape_strides(before, strides);
    assert_int_equal(strides[2], 1);
    assert_int_equal(strides[1], 8);
    assert_false(hlo_literal_is_splat(hlo_literal_new(m, after)));
}

static void strides_follow_the_layout(void **state) {
    hlo_module *m = *state;
    int64_t dims[] = {2, 3, 5}, order[] = {1, 2, 0}, strides[3];
    const hlo_shape *shape = hlo_shape_with_layout(m, HLO_TYPE_F32, 3, dims, order);
    hlo_shape_strides(shape, strides);
    assert_int_equal(strides[0], 15);
    assert_int_equal(strides[1], 1);
    assert_int_equal(strides[2], 3);
    hlo_shape_strides(hlo_shape_array(m, HLO_TYPE_F32, 3, dims), strides);
    assert_int_equal(strides[0], 15);
    assert_int_equal(strides[1], 5);
    assert_int_equal(strides[2], 1);
}

static void a_scalar_is_one_pointer(void **state) {
    hlo_module *m = *state;
    hlo_layout none = {0}, tiled = {.rest = "T(128)"};
    hlo_shape scalar = {.type = HLO_TYPE_F32, .layout = &none};
    const hlo_shape *plain = hlo_shape_array(m, HLO_TYPE_F32, 0, NULL);
    assert_ptr_equal(hlo_shape_intern(m, &scalar), plain);
    scalar.layout = &tiled;
    assert_ptr_not_equal(hlo_shape_intern(m, &scalar), plain);
    assert_true(hlo_shape_compatible(hlo_shape_intern(m, &scalar), plain));
}

static void another_type_has_its_own_element_bits(void **state) {
    hlo_module *m = *state;
    int64_t dims[] = {4, 2}, order[] = {0, 1};
    hlo_layout packed = {.minor_to_major = order, .element_bits = 4, .memory_space = 5};
    hlo_shape nibbles = {.type = HLO_TYPE_S4, .rank = 2, .dims = dims, .layout = &packed};
    const hlo_shape *s4 = hlo_shape_intern(m, &nibbles);
    const hlo_shape *f32 = hlo_shape_retype(m, s4, HLO_TYPE_F32);
    assert_int_equal(f32->layout->element_bits, 0);
    assert_int_equal(f32->layout->memory_space, 5);
    assert_int_equal(f32->layout->minor_to_major[0], 0);
    assert_int_equal(hlo_shape_retype(m, s4, HLO_TYPE_U4)->layout->element_bits, 4);
    assert_ptr_equal(hlo_shape_retype(m, f32, HLO_TYPE_BF16),
                     hlo_shape_retype(m, s4, HLO_TYPE_BF16));
}

static void many_shapes_and_high_ranks_are_found_again(void **state) {
    enum { RANK = 300, SHAPES = 2000 };
    hlo_module *m = *state;
    static int64_t dims[RANK];
    for (int i = 0; i < RANK; i++) dims[i] = 1;
    const hlo_shape *deep = hlo_shape_array(m, HLO_TYPE_S8, RANK, dims);
    assert_true(hlo_shape_is_row_major(deep));
    assert_int_equal(hlo_shape_count(deep), 1);
    const hlo_shape *made[SHAPES];
    for (int64_t i = 0; i < SHAPES; i++) made[i] = ARRAY(m, U16, i, 3);
    for (int64_t i = 0; i < SHAPES; i++) assert_ptr_equal(made[i], ARRAY(m, U16, i, 3));
    assert_ptr_equal(deep, hlo_shape_array(m, HLO_TYPE_S8, RANK, dims));
    char text[16];
    assert_int_equal(hlo_shape_format(deep, false, text, sizeof text), 3 + 2 * RANK);
    assert_string_equal(text, "s8[1,1,1,1,1,1,");
}

static void literals_hold_narrow_numbers(void **state) {
    hlo_module *m = *state;
    static const struct {
        hlo_type type;
        double given, kept;
    } cases[] = {
        {HLO_TYPE_S4, -8, -8},         {HLO_TYPE_U4, 15, 15},
        {HLO_TYPE_PRED, 1, 1},         {HLO_TYPE_S64, -9007199254740992, -9007199254740992},
        {HLO_TYPE_U8, 255, 255},       {HLO_TYPE_BF16, 1.00390625, 1},
        {HLO_TYPE_F8E4M3FN, 17.5, 18}, {HLO_TYPE_F8E5M2, -0.09375, -0.09375},
        {HLO_TYPE_F4E2M1FN, -2.6, -3}, {HLO_TYPE_F16, 2049, 2048},
        {HLO_TYPE_F64, 0.1, 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hlo_literal *two = hlo_literal_new(m, hlo_shape_array(m, cases[i].type, 1, (int64_t[]){2}));
        hlo_literal_set_number(two, 0, cases[i].given);
        hlo_literal_set_number(two, 1, cases[i].given);
        assert_true(hlo_number_load(cases[i].type, two->data) == cases[i].kept);
        assert_true(hlo_literal_is_splat(two));
        hlo_literal_set_number(two, 1, 0);
        assert_false(hlo_literal_is_splat(two));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(counts_do_not_overflow),
        TEST(an_empty_array_has_no_elements_however_large_the_rest),
        TEST(strides_follow_the_layout),
        TEST(a_scalar_is_one_pointer),
        TEST(another_type_has_its_own_element_bits),
        TEST(many_shapes_and_high_ranks_are_found_again),
        TEST(literals_hold_narrow_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
