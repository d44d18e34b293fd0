/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the known elements of a value with those that the CPU backend computes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/runtime.h"
#include "hlo/text.h"
#include "ir/float/float.h"
#include "ir/module/known.h"
#include "runtime/io/arrays.h"

static void show(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}

static const hlo_diag_sink sink = {show, NULL};

static hlo_module *parse(const char *body) {
    char text[4096];
    hlo_module *m = NULL;
    snprintf(text, sizeof text, "HloModule m\nENTRY e {\n%s}\n", body);
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &m), HLO_OK);
    assert_int_equal(hlo_module_verify(m, NULL, &sink), HLO_OK);
    return m;
}

static hlo_arrays *run(hlo_module *m) {
    hlo_plan_options options;
    hlo_plan *plan;
    hlo_arrays *inputs, *outputs;
    hlo_plan_options_init(&options);
    assert_int_equal(hlo_plan_new(m, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_draw(m, 0, &sink, &inputs), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_OK);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    return outputs;
}

static bool same(double a, double b) {
    return (a == b && signbit(a) == signbit(b)) || (isnan(a) && isnan(b));
}

/* Checks that the root's operands are known, and that known elements have the computed value. */
static void every_element_is_the_one_that_is_computed(void **state) {
    (void)state;
    hlo_module *m = parse(
        "  k = f32[4,6] "
        "constant({{1,-2,3,4,5.001,6},{7,8,9,10,-0.0,12},{inf,14,nan,16,17,18},{19,20,21,22,"
        "23,3e38}})\n"
        "  w = f64[3] constant({1e300,0.1,-70000})\n"
        "  j = s32[3] constant({2,-7,100})\n"
        "  one = s32[] constant(1)\n"
        "  big = s32[1] slice(j), slice={[2:3]}\n"
        "  far = s32[] reshape(big)\n"
        "  fill = f32[] constant(0.5)\n"
        "  pair = (f32[4,6], s32[3]) tuple(k, j)\n"
        "  slice = f32[2,2] slice(k), slice={[1:4:2], [2:6:3]}\n"
        "  reverse = f32[4,6] reverse(k), dimensions={1}\n"
        "  pad = f32[6,10] pad(k, fill), padding=2_0x-1_0_1\n"
        "  high = f32[5,9] pad(k, fill), padding=0_1x1_2\n"
        "  broadcast = f32[4,2,6] broadcast(k), dimensions={0,2}\n"
        "  reshape = f32[3,8] reshape(k)\n"
        "  transpose = f32[6,4] transpose(k), dimensions={1,0}\n"
        "  copy = f32[4,6]{0,1} copy(k)\n"
        "  bitcast = f32[6,4] bitcast(copy)\n"
        "  bits = s32[24] bitcast(k)\n"
        "  order = f32[6,4]{0,1} bitcast(k)\n"
        "  iota = bf16[2,300] iota(), iota_dimension=1\n"
        "  row = f32[1,6] slice(k), slice={[1:2], [0:6]}\n"
        "  join = f32[9,6] concatenate(reverse, row, k), dimensions={0}\n"
        "  brain = bf16[4,6] convert(k)\n"
        "  small = f8e4m3fn[4,6] convert(k)\n"
        "  half = f16[3] convert(w)\n"
        "  back = f32[4,6] convert(small)\n"
        "  whole = s32[4,6] convert(k)\n"
        "  mask = pred[3] convert(j)\n"
        "  piece = f32[2,3] dynamic-slice(k, one, far), dynamic_slice_sizes={2,3}\n"
        "  get = s32[3] get-tuple-element(pair), index=1\n"
        "  chain = f32[3,2] transpose(piece), dimensions={1,0}\n"
        "  ROOT t = (f32[2,2], f32[4,6], f32[6,10], f32[4,2,6], f32[3,8], f32[6,4], f32[4,6]{0,1}, "
        "f32[6,4], s32[24], f32[6,4]{0,1}, bf16[2,300], f32[9,6], bf16[4,6], f8e4m3fn[4,6], "
        "f16[3], "
        "f32[4,6], s32[4,6], pred[3], f32[2,3], s32[3], f32[3,2], f32[5,9]) tuple(slice, reverse, "
        "pad, "
        "broadcast, "
        "reshape, transpose, copy, bitcast, bits, order, iota, join, brain, small, half, back, "
        "whole, "
        "mask, piece, get, chain, high)\n");
    hlo_arrays *outputs = run(m);
    const hlo_instruction *root = m->entry->root;
    assert_int_equal(outputs->count, root->operand_count);
    for (uint32_t o = 0; o < root->operand_count; o++) {
        const hlo_instruction *value = hlo_instr_operand(root, o);
        const char *data = outputs->items[o].data;
        for (int64_t i = 0; i < hlo_shape_count(value->shape); i++) {
            double known, got = hlo_number_load(value->shape->type,
                                                data + i * hlo_types[value->shape->type].bytes);
            if (!hlo_known_element(value, i, &known))
                fail_msg("%s %d: unknown", value->name, (int)i);
            if (!same(known, got)) fail_msg("%s %d: %g, not %g", value->name, (int)i, known, got);
        }
    }
    hlo_arrays_free(outputs);
    hlo_module_free(m);
}

static bool root_number(const char *body, double *out) {
    hlo_module *m = parse(body);
    bool known = hlo_known_number(m->entry->root, out);
    hlo_module_free(m);
    return known;
}

#define EXPECT_NUMBER(number, body)                                                                \
    do {                                                                                           \
        double got = 0.25;                                                                         \
        if (!root_number(body, &got) || !same(got, number))                                        \
            fail_msg("%g, not %g: %s", got, (double)(number), body);                               \
    } while (0)

#define EXPECT_UNKNOWN(body)                                                                       \
    do {                                                                                           \
        double got;                                                                                \
        if (root_number(body, &got)) fail_msg("%g: %s", got, body);                                \
    } while (0)

static void a_number_is_known_where_all_elements_are_it(void **state) {
    (void)state;
    EXPECT_NUMBER(2,
                  "  k = f32[4] constant({1,2,2,3})\n  ROOT s = f32[2] slice(k), slice={[1:3]}\n");
    EXPECT_NUMBER(3, "  k = f32[4] constant({1,2,2,3})\n  r = f32[4] reverse(k), dimensions={0}\n"
                     "  s = f32[1] slice(r), slice={[0:1]}\n  t = f32[] reshape(s)\n"
                     "  ROOT b = f32[9000,9000] broadcast(t), dimensions={}\n");
    EXPECT_NUMBER(448, "  k = f32[2] constant({460,440})\n  s = f32[1] slice(k), slice={[0:1]}\n"
                       "  c = f8e4m3fn[1] convert(s)\n  ROOT w = bf16[1] convert(c)\n");
    EXPECT_NUMBER(0, "  z = f32[] constant(0)\n  b = f32[9000] broadcast(z), dimensions={}\n"
                     "  ROOT p = f32[9990] pad(b, z), padding=0_990\n");
    EXPECT_UNKNOWN("  k = f32[4] constant({1,2,2,3})\n  ROOT s = f32[2] slice(k), slice={[2:4]}\n");
    EXPECT_UNKNOWN(
        "  k = f32[2] constant({0,-0.0})\n  ROOT r = f32[2] reverse(k), dimensions={0}\n");
    EXPECT_UNKNOWN("  ROOT k = f32[0] constant({})\n");
    EXPECT_UNKNOWN("  p = f32[2] parameter(0)\n  ROOT s = f32[1] slice(p), slice={[0:1]}\n");
}

static void what_changes_the_value_is_no_view_of_it(void **state) {
    (void)state;
    EXPECT_UNKNOWN("  k = bf16[2] constant({1,1})\n  ROOT b = f32[1] bitcast(k)\n");
    EXPECT_UNKNOWN("  k = s32[] constant(300)\n  ROOT c = s8[] convert(k)\n");
    EXPECT_UNKNOWN("  k = s64[] constant(9007199254740993)\n  ROOT c = f32[] convert(k)\n");
    EXPECT_UNKNOWN("  ROOT k = c64[] constant((1,0))\n");
    EXPECT_NUMBER(0x3f800000, "  k = f32[] constant(1)\n  ROOT b = u32[] bitcast(k)\n");
    EXPECT_NUMBER(1, "  k = f32[] constant(0.5)\n  ROOT c = pred[] convert(k)\n");
    hlo_module *m = parse("  k = bf16[4] parameter(0)\n  b = u16[4] bitcast(k)\n"
                          "  ROOT c = u16[2,2] bitcast(b)\n");
    assert_true(hlo_instr_moves(m->entry->root));
    assert_false(hlo_instr_moves(hlo_instr_operand(m->entry->root, 0)));
    hlo_module_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_the_one_that_is_computed),
        cmocka_unit_test(a_number_is_known_where_all_elements_are_it),
        cmocka_unit_test(what_changes_the_value_is_no_view_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
