/* SPDX-License-Identifier: Apache-2.0 */
/* Tests kernels with modules of few inputs whose result is known, such as division by zero,
 * indices out of bounds, and NaN. Peer tests compare larger inputs with XLA. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "ir/eval/eval.h"
#include "ir/float/float.h"

static void show(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}

static hlo_view dense_view(hlo_arena *arena, const hlo_shape *shape, void *data) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1, sizeof *strides), stride = 1;
    for (uint32_t d = shape->rank; d-- > 0; stride *= shape->dims[d]) strides[d] = stride;
    return (hlo_view){shape->type, shape->rank, shape->dims, strides, data};
}

/* Runs the entry of a module without parameters, whose instructions are all kernels or constants,
 * and compares the elements of the root with `count` numbers. */
static void expect(const char *body, int count, const double *numbers) {
    char text[4096];
    snprintf(text, sizeof text, "HloModule m\n\n%s", body);
    hlo_diag_sink sink = {show, NULL};
    hlo_module *m;
    assert_int_equal(hlo_module_parse(text, strlen(text), "test", &sink, &m), HLO_OK);
    assert_int_equal(hlo_module_verify(m, NULL, &sink), HLO_OK);
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_arena_set_recover(m->arena, &recover);
    void **data = hlo_arena_zero(m->arena, m->next_id * sizeof *data);
    for (hlo_instruction *i = m->entry->first; i; i = i->next) {
        if (i->op == HLO_OP_CONSTANT) {
            data[i->id] = i->u.literal->data;
            continue;
        }
        hlo_view operands[8];
        for (uint32_t o = 0; o < i->operand_count; o++) {
            hlo_instruction *operand = hlo_instr_operand(i, o);
            operands[o] = dense_view(m->arena, operand->shape, data[operand->id]);
        }
        data[i->id] = hlo_arena_alloc(m->arena, (size_t)hlo_shape_bytes(i->shape));
        hlo_view result = dense_view(m->arena, i->shape, data[i->id]);
        const char *why = NULL;
        if (hlo_eval(NULL, i, operands, &result, m->arena, &why) != HLO_OK) fail_msg("%s", why);
    }
    const hlo_instruction *root = m->entry->root;
    assert_int_equal(hlo_shape_count(root->shape), count);
    for (int i = 0; i < count; i++) {
        const char *at = (const char *)data[root->id] + i * hlo_types[root->shape->type].bytes;
        double got = hlo_number_load(root->shape->type, at);
        if (got != numbers[i] && !(isnan(got) && isnan(numbers[i])))
            fail_msg("%s\nelement %d is %g, not %g", body, i, got, numbers[i]);
    }
    hlo_module_free(m);
}

#define EXPECT(body, ...)                                                                          \
    do {                                                                                           \
        static const double numbers[] = {__VA_ARGS__};                                             \
        expect(body, sizeof numbers / sizeof numbers[0], numbers);                                 \
    } while (0)

/* Defines a module whose root is one instruction on constants `x` and `y`. */
#define BINARY(type, n, x, y, out, op)                                                             \
    "ENTRY %main () -> " out "[" n "] {\n"                                                         \
    "  %x = " type "[" n "]{0} constant(" x ")\n"                                                  \
    "  %y = " type "[" n "]{0} constant(" y ")\n"                                                  \
    "  ROOT %r = " out "[" n "]{0} " op "\n}\n"

static void integers_wrap_and_divide_by_zero(void **state) {
    (void)state;
    EXPECT(BINARY("s32", "4", "{7, -7, -2147483648, 7}", "{2, 2, -1, 0}", "s32", "divide(%x, %y)"),
           3, -3, -2147483648.0, -1);
    EXPECT(
        BINARY("s32", "4", "{7, -7, -2147483648, 7}", "{2, 2, -1, 0}", "s32", "remainder(%x, %y)"),
        1, -1, 0, 7);
    EXPECT(BINARY("u8", "2", "{7, 9}", "{0, 2}", "u8", "divide(%x, %y)"), 255, 4);
    EXPECT(BINARY("s8", "3", "{127, -128, 100}", "{1, 1, 3}", "s8", "add(%x, %y)"), -128, -127,
           103);
    EXPECT(BINARY("s8", "2", "{-128, 5}", "{0, 0}", "s8", "abs(%x)"), -128, 5);
    EXPECT(BINARY("s16", "3", "{-3, 300, 2}", "{3, 2, 20}", "s16", "power(%x, %y)"), -27, 24464, 0);
}

static void shifts_beyond_the_width(void **state) {
    (void)state;
    EXPECT(BINARY("s8", "4", "{-128, 1, -1, 5}", "{1, 8, 9, 0}", "s8", "shift-left(%x, %y)"), 0, 0,
           0, 5);
    EXPECT(
        BINARY("s8", "3", "{-128, 64, -1}", "{100, 8, 1}", "s8", "shift-right-arithmetic(%x, %y)"),
        -1, 0, -1);
    EXPECT(BINARY("s8", "3", "{-128, 64, -1}", "{7, 8, 1}", "s8", "shift-right-logical(%x, %y)"), 1,
           0, 127);
    EXPECT(BINARY("u16", "3", "{0, 1, 65535}", "{0, 0, 0}", "u16", "count-leading-zeros(%x)"), 16,
           15, 0);
    EXPECT(BINARY("s4", "2", "{-8, 7}", "{1, 1}", "s4", "subtract(%x, %y)"), 7, 6);
}

static void nan_goes_on(void **state) {
    (void)state;
    EXPECT(BINARY("f32", "3", "{nan, 1, 3}", "{1, nan, 2}", "f32", "maximum(%x, %y)"), NAN, NAN, 3);
    EXPECT(BINARY("f32", "3", "{nan, 1, 3}", "{1, nan, 2}", "f32", "minimum(%x, %y)"), NAN, NAN, 2);
    EXPECT(
        BINARY("f32", "3", "{nan, 1, 2}", "{nan, 1, 3}", "pred", "compare(%x, %y), direction=NE"),
        1, 0, 1);
    EXPECT(BINARY("f32", "3", "{nan, -0.0, 2}", "{nan, 0.0, 3}", "pred",
                  "compare(%x, %y), direction=LT, type=TOTALORDER"),
           0, 1, 1);
    EXPECT(BINARY("f32", "4", "{nan, -inf, -2, 0.0}", "{0, 0, 0, 0}", "f32", "sign(%x)"), NAN, -1,
           -1, 0);
}

static void convert_saturates_and_rounds_once(void **state) {
    (void)state;
    EXPECT(
        BINARY("f32", "5", "{nan, 300, -300, -1.9, 1.9}", "{0, 0, 0, 0, 0}", "s8", "convert(%x)"),
        0, 127, -128, -1, 1);
    EXPECT(BINARY("f32", "4", "{-5, 300, inf, 0.5}", "{0, 0, 0, 0}", "u8", "convert(%x)"), 0, 255,
           255, 0);
    EXPECT(BINARY("f32", "4", "{448, 464, 464.1, 17}", "{0, 0, 0, 0}", "f8e4m3fn", "convert(%x)"),
           448, 448, NAN, 16);
    EXPECT(BINARY("f32", "3", "{61439, 61440, 9}", "{0, 0, 0}", "f8e5m2", "convert(%x)"), 57344,
           INFINITY, 8);
    EXPECT(BINARY("s32", "2", "{300, -1}", "{0, 0}", "s8", "convert(%x)"), 44, -1);
    EXPECT(BINARY("f32", "3", "{0.25, nan, 0}", "{0, 0, 0}", "pred", "convert(%x)"), 1, 1, 0);
}

/* bf16 is rounded after every instruction: 256 + 1 is 256, and 1 more is 256 again. */
static void narrow_floats_round_every_time(void **state) {
    (void)state;
    EXPECT("ENTRY %main () -> bf16[] {\n"
           "  %a = bf16[] constant(256)\n  %b = bf16[] constant(1)\n"
           "  %c = bf16[] add(%a, %b)\n  ROOT %d = bf16[] add(%c, %b)\n}\n",
           256);
}

static void pad_with_every_kind_of_padding(void **state) {
    (void)state;
    EXPECT("ENTRY %main () -> s32[6] {\n"
           "  %a = s32[3]{0} constant({1, 2, 3})\n  %z = s32[] constant(9)\n"
           "  ROOT %p = s32[6]{0} pad(%a, %z), padding=2_-1_1\n}\n",
           9, 9, 1, 9, 2, 9);
    EXPECT("ENTRY %main () -> s32[2] {\n"
           "  %a = s32[3]{0} constant({1, 2, 3})\n  %z = s32[] constant(9)\n"
           "  ROOT %p = s32[2]{0} pad(%a, %z), padding=-1_-2_1\n}\n",
           9, 2);
}

static void dynamic_slices_are_clamped(void **state) {
    (void)state;
    EXPECT("ENTRY %main () -> s32[2] {\n"
           "  %a = s32[4]{0} constant({1, 2, 3, 4})\n  %i = s32[] constant(7)\n"
           "  ROOT %r = s32[2]{0} dynamic-slice(%a, %i), dynamic_slice_sizes={2}\n}\n",
           3, 4);
    EXPECT("ENTRY %main () -> s32[4] {\n"
           "  %a = s32[4]{0} constant({1, 2, 3, 4})\n  %u = s32[2]{0} constant({8, 9})\n"
           "  %i = s32[] constant(-3)\n"
           "  ROOT %r = s32[4]{0} dynamic-update-slice(%a, %u, %i)\n}\n",
           8, 9, 3, 4);
}

static void gather_clamps_and_scatter_drops(void **state) {
    (void)state;
    EXPECT("ENTRY %main () -> s32[3,2] {\n"
           "  %a = s32[3,2]{1,0} constant({{1, 2}, {3, 4}, {5, 6}})\n"
           "  %i = s32[3]{0} constant({2, -1, 9})\n"
           "  ROOT %r = s32[3,2]{1,0} gather(%a, %i), offset_dims={1}, collapsed_slice_dims={0}, "
           "start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}\n}\n",
           5, 6, 1, 2, 5, 6);
    EXPECT("%sum (p: s32[], q: s32[]) -> s32[] {\n"
           "  %p = s32[] parameter(0)\n  %q = s32[] parameter(1)\n"
           "  ROOT %s = s32[] add(%p, %q)\n}\n\n"
           "ENTRY %main () -> s32[3] {\n"
           "  %a = s32[3]{0} constant({1, 2, 3})\n  %i = s32[4]{0} constant({2, -1, 9, 2})\n"
           "  %u = s32[4]{0} constant({10, 20, 30, 40})\n"
           "  ROOT %r = s32[3]{0} scatter(%a, %i, %u), update_window_dims={}, "
           "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
           "to_apply=%sum\n}\n",
           1, 2, 53);
}

/* x and y are reduced separately, since the computation is not a single operation. */
static void reduce_by_any_computation(void **state) {
    (void)state;
    EXPECT("%f (p: f32[], q: f32[]) -> f32[] {\n"
           "  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n  %t = f32[] constant(2)\n"
           "  %d = f32[] multiply(%p, %t)\n  ROOT %s = f32[] add(%d, %q)\n}\n\n"
           "ENTRY %main () -> f32[2] {\n"
           "  %a = f32[2,3]{1,0} constant({{1, 2, 3}, {4, 5, 6}})\n  %z = f32[] constant(1)\n"
           "  ROOT %r = f32[2]{0} reduce(%a, %z), dimensions={1}, to_apply=%f\n}\n",
           19, 40);
}

#define EXTREMES(op)                                                                               \
    "%f (p: f32[], q: f32[]) -> f32[] {\n"                                                         \
    "  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n"                                       \
    "  ROOT %m = f32[] " op "(%p, %q)\n}\n\n"                                                      \
    "ENTRY %main () -> f32[3] {\n"                                                                 \
    "  %a = f32[3,1]{1,0} constant({{-0.0}, {3}, {-5}})\n"                                         \
    "  %b = f32[3]{0} reshape(%a)\n"                                                               \
    "  %c = f32[3,38]{1,0} broadcast(%b), dimensions={0}\n"                                        \
    "  %d = f32[3,1]{1,0} constant({{0}, {nan}, {-6}})\n"                                          \
    "  %e = f32[3,39]{1,0} concatenate(%c, %d), dimensions={1}\n"                                  \
    "  %z = f32[] constant(-0.0)\n"                                                                \
    "  %r = f32[3]{0} reduce(%e, %z), dimensions={1}, to_apply=%f\n"                               \
    "  %o = f32[3]{0} constant({1, 1, 1})\n"                                                       \
    "  ROOT %q = f32[3]{0} divide(%o, %r)\n}\n"

/* 0 is above -0; a row with a NaN has the result NaN. */
static void extremes_of_rows(void **state) {
    (void)state;
    EXPECT(EXTREMES("maximum"), (double)INFINITY, (double)NAN, (double)-INFINITY);
    EXPECT(EXTREMES("minimum"), (double)-INFINITY, (double)NAN, (double)(-1.0f / 6));
}

/* The rows are summed together, each in order. f64 represents all sums except the digits that 1e30
 * absorbs. */
static void sums_of_rows_are_in_order(void **state) {
    (void)state;
    EXPECT("%f (p: f32[], q: f32[]) -> f32[] {\n"
           "  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n"
           "  ROOT %s = f32[] add(%p, %q)\n}\n\n"
           "ENTRY %main () -> f32[5] {\n"
           "  %a = f32[5,3]{1,0} constant({{1, 1e30, -1e30}, {1e30, -1e30, 1}, {1, 2, 3}, "
           "{4, 5, 6}, {7, 8, 9}})\n  %z = f32[] constant(1)\n"
           "  ROOT %r = f32[5]{0} reduce(%a, %z), dimensions={1}, to_apply=%f\n}\n",
           0, 1, 7, 16, 25);
}

/* A bitcast does not change bytes: the column-major [2,3] has the same memory as the row-major
 * [3,2]. */
static void bitcast_goes_by_layout(void **state) {
    (void)state;
    EXPECT("ENTRY %main () -> s32[3,2] {\n"
           "  %a = s32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})\n"
           "  ROOT %r = s32[3,2]{1,0} bitcast(%a)\n}\n",
           1, 4, 2, 5, 3, 6);
}

static void sorts_keep_equal_keys_in_order(void **state) {
    (void)state;
    EXPECT("%less (p: s32[], q: s32[]) -> pred[] {\n"
           "  %p = s32[] parameter(0)\n  %q = s32[] parameter(1)\n  %t = s32[] constant(10)\n"
           "  %a = s32[] divide(%p, %t)\n  %b = s32[] divide(%q, %t)\n"
           "  ROOT %s = pred[] compare(%a, %b), direction=LT\n}\n\n"
           "ENTRY %main () -> s32[5] {\n"
           "  %a = s32[5]{0} constant({21, 13, 22, 11, 4})\n"
           "  ROOT %r = s32[5]{0} sort(%a), dimensions={0}, is_stable=true, to_apply=%less\n}\n",
           4, 13, 11, 21, 22);
}

#define RAGGED(sizes, out, dims)                                                                   \
    "ENTRY %main () -> f32[" out "] {\n"                                                           \
    "  %x = f32[4,2]{1,0} constant({ {1, 2}, {3, 4}, {5, 6}, {7, 8} })\n"                          \
    "  %w = f32[2,2]{1,0} constant({ {1, 10}, {100, 1000} })\n"                                    \
    "  %y = f32[4]{0} constant({1, 10, 100, 1000})\n"                                              \
    "  %g = s32[2]{0} constant({" sizes "})\n"                                                     \
    "  ROOT %r = f32[" out "]{0} ragged-dot(" dims "\n}\n"
#define RAGGED_ROWS                                                                                \
    "%x, %w, %g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "       \
    "rhs_group_dims={0}"
#define RAGGED_TERMS                                                                               \
    "%y, %y, %g), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}"
#define RAGGED_BATCHES "%y, %y, %g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_ragged_dims={0}"

static void ragged_dots_go_by_groups(void **state) {
    (void)state;
    EXPECT(RAGGED("1, 2", "4", RAGGED_ROWS), 21, 4300, 6500, 0);
    EXPECT(RAGGED("0, 9", "4", RAGGED_ROWS), 2100, 4300, 6500, 8700);
    EXPECT(RAGGED("1, 2", "2", RAGGED_TERMS), 1, 10100);
    EXPECT(RAGGED("3, 2147483647", "2", RAGGED_TERMS), 10101, 1000000);
    EXPECT(RAGGED("1, 2", "4", RAGGED_BATCHES), 1, 100, 10000, 0);
}

/* Negative sizes are invalid, but must not cause reads out of bounds. */
static void ragged_dots_stay_in_bounds(void **state) {
    (void)state;
    EXPECT(RAGGED("-2147483648, 1", "4", RAGGED_ROWS), 2100, 0, 0, 0);
    EXPECT(RAGGED("9, -7", "2", RAGGED_TERMS), 1010101, 0);
    EXPECT(RAGGED("9, -7", "4", RAGGED_BATCHES), 1, 100, 10000, 1000000);
}

#define DOT(a, x, b, y, result)                                                                    \
    "ENTRY %main () -> f32[] {\n"                                                                  \
    "  %x = " a "[2]{0} constant({" x "})\n"                                                       \
    "  %y = " b "[2]{0} constant({" y "})\n"                                                       \
    "  %d = " result "[] dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"        \
    "  ROOT %r = f32[] convert(%d)\n}\n"

/* The result is that of XLA's CPU backend. */
static void dots_are_converted_behind_the_sum(void **state) {
    (void)state;
    EXPECT(DOT("f32", "-1.5, 1.5", "f32", "3, -0.5", "s32"), -5);
    EXPECT(DOT("s32", "3, 5", "f32", "1.5, 2.5", "s32"), 17);
    EXPECT(DOT("bf16", "1.5, 2.5", "f32", "1.5, 1.5", "s8"), 6);
    EXPECT(DOT("f32", "0.5, 0", "f32", "0.5, 0", "pred"), 1);
    EXPECT(DOT("f32", "16777216, 1", "f32", "1, 1", "s64"), 16777216);
    EXPECT(DOT("f64", "16777217, 1", "f32", "1, 1", "s64"), 16777218);
    EXPECT(DOT("f64", "16777217, 1", "f64", "1, 1", "f32"), 16777218);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_wrap_and_divide_by_zero),
        cmocka_unit_test(shifts_beyond_the_width),
        cmocka_unit_test(nan_goes_on),
        cmocka_unit_test(convert_saturates_and_rounds_once),
        cmocka_unit_test(narrow_floats_round_every_time),
        cmocka_unit_test(pad_with_every_kind_of_padding),
        cmocka_unit_test(dynamic_slices_are_clamped),
        cmocka_unit_test(gather_clamps_and_scatter_drops),
        cmocka_unit_test(reduce_by_any_computation),
        cmocka_unit_test(extremes_of_rows),
        cmocka_unit_test(sums_of_rows_are_in_order),
        cmocka_unit_test(bitcast_goes_by_layout),
        cmocka_unit_test(sorts_keep_equal_keys_in_order),
        cmocka_unit_test(ragged_dots_go_by_groups),
        cmocka_unit_test(ragged_dots_stay_in_bounds),
        cmocka_unit_test(dots_are_converted_behind_the_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
