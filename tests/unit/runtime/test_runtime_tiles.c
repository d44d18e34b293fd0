/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that groups computed in tiles by the cpu backend have the same bits as separate
 * instructions, which a plan with bounds runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/runtime.h"
#include "hlo/text.h"

static void show(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}

static const hlo_diag_sink sink = {show, NULL};

static hlo_arrays *outputs_of(const hlo_module *module, const hlo_arrays *inputs, bool bounds,
                              bool *out_grouped) {
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.bounds = bounds;
    hlo_plan *plan;
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    hlo_plan_print(plan, hlo_file_writer(out));
    fclose(out);
    *out_grouped = strstr(text, "group of") != NULL;
    free(text);
    hlo_arrays *outputs = NULL;
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_OK);
    hlo_plan_free(plan);
    return outputs;
}

static void expect_same_bits(const char *body) {
    char text[8192];
    snprintf(text, sizeof text, "HloModule m\n\nENTRY e {\n%s}\n", body);
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_module_verify(module, NULL, &sink), HLO_OK);
    hlo_arrays *inputs;
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    bool grouped, alone;
    hlo_arrays *got = outputs_of(module, inputs, false, &grouped);
    hlo_arrays *want = outputs_of(module, inputs, true, &alone);
    assert_true(grouped);
    assert_false(alone);
    const size_t count = hlo_arrays_count(want);
    assert_int_equal(hlo_arrays_count(got), count);
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(hlo_arrays_at(got, i)->data, hlo_arrays_at(want, i)->data,
                            hlo_arrays_at(want, i)->size);
    hlo_arrays_free(got);
    hlo_arrays_free(want);
    hlo_arrays_free(inputs);
    hlo_module_free(module);
}

static void values_between_are_rounded(void **state) {
    (void)state;
    expect_same_bits("  x = f32[37,53] parameter(0)\n  y = bf16[37,53] parameter(1)\n"
                     "  s = f32[] parameter(2)\n  row = f32[53] parameter(3)\n"
                     "  column = bf16[37] parameter(4)\n"
                     "  b = f32[37,53] broadcast(s), dimensions={}\n"
                     "  r = f32[37,53] broadcast(row), dimensions={1}\n"
                     "  k = bf16[37,53] broadcast(column), dimensions={0}\n"
                     "  m = f32[37,53] multiply(x, b)\n  a = f32[37,53] add(m, r)\n"
                     "  n = bf16[37,53] convert(a)\n  t = bf16[37,53] multiply(n, y)\n"
                     "  u = bf16[37,53] add(t, k)\n  v = f32[37,53] convert(u)\n"
                     "  q = f8e4m3fn[37,53] convert(v)\n  w = f8e5m2[37,53] convert(u)\n"
                     "  d = f16[37,53] convert(q)\n  h = f16[37,53] multiply(d, d)\n"
                     "  e = f64[37,53] convert(h)\n  f = f64[37,53] sqrt(e)\n"
                     "  ROOT o = (f8e4m3fn[37,53], f8e5m2[37,53], f64[37,53], f32[37,53], "
                     "bf16[37,53], f32[37,53]) tuple(q, w, f, a, k, b)\n");
}

static void integers_wrap_and_convert(void **state) {
    (void)state;
    expect_same_bits("  x = f32[2000] parameter(0)\n  n = s32[2000] parameter(1)\n"
                     "  c = f32[] constant(100)\n  b = f32[2000] broadcast(c), dimensions={}\n"
                     "  m = f32[2000] multiply(x, b)\n  i = s8[2000] convert(m)\n"
                     "  j = s8[2000] multiply(i, i)\n  k = s32[2000] convert(j)\n"
                     "  l = s32[2000] add(k, n)\n  u = u16[2000] convert(l)\n"
                     "  o = u16[2000] not(u)\n  p = pred[2000] compare(k, n), direction=LT\n"
                     "  q = pred[2000] not(p)\n  r = s32[2000] select(q, l, k)\n"
                     "  s = f32[2000] convert(r)\n  t = pred[2000] convert(s)\n"
                     "  ROOT z = (s8[2000], u16[2000], pred[2000], s32[2000], f32[2000], "
                     "pred[2000]) tuple(j, o, q, r, s, t)\n");
}

/* Tests 16-bit codes that the drawn inputs do not contain: NaNs with payloads, infinities. */
static void codes_of_narrow_floats_are_kept(void **state) {
    (void)state;
    expect_same_bits("  a = s32[700] parameter(0)\n  i = s32[700] iota(), iota_dimension=0\n"
                     "  k = s32[] constant(30011)\n  b = s32[700] broadcast(k), dimensions={}\n"
                     "  m = s32[700] multiply(i, b)\n  n = s32[700] add(m, a)\n"
                     "  c = u16[700] convert(n)\n  x = bf16[700] bitcast-convert(c)\n"
                     "  h = f16[700] bitcast-convert(c)\n  y = bf16[700] negate(x)\n"
                     "  p = pred[700] compare(x, y), direction=LT, type=TOTALORDER\n"
                     "  s = bf16[700] select(p, x, y)\n  g = f16[700] select(p, h, h)\n"
                     "  t = bf16[700] abs(s)\n  f = f32[700] convert(s)\n"
                     "  lo = bf16[] constant(-2)\n  hi = bf16[] constant(2)\n"
                     "  l = bf16[700] clamp(lo, s, hi)\n"
                     "  ROOT z = (bf16[700], f16[700], bf16[700], f32[700], bf16[700], pred[700]) "
                     "tuple(s, g, t, f, l, p)\n");
}

/* The second broadcast repeats elements of the first, which other instructions read in another
 * order. */
static void broadcasts_of_broadcasts(void **state) {
    (void)state;
    expect_same_bits("  a = bf16[3,1] parameter(0)\n  x = bf16[3,3,1,16] parameter(1)\n"
                     "  y = bf16[3,3,1] parameter(2)\n"
                     "  b = bf16[3,3,1] broadcast(a), dimensions={1,2}\n"
                     "  c = bf16[3,3,1,16] broadcast(b), dimensions={0,1,2}\n"
                     "  d = bf16[3,3,1,16] add(c, x)\n  e = bf16[3,3,1,16] multiply(d, d)\n"
                     "  f = bf16[3,3,1] add(b, y)\n  g = bf16[3,3,1] multiply(f, y)\n"
                     "  ROOT t = (bf16[3,3,1,16], bf16[3,3,1]) tuple(e, g)\n");
}

/* The group has too many buffers for a whole tile each, and enough elements for several threads. */
static void large_groups_and_shapes(void **state) {
    (void)state;
    char body[8000];
    int at = snprintf(body, sizeof body,
                      "  x = f32[300,401] parameter(0)\n"
                      "  y = f32[401] parameter(1)\n");
    for (int i = 0; i < 36; i++)
        at += snprintf(body + at, sizeof body - (size_t)at,
                       "  b%d = f32[300,401] broadcast(y), dimensions={1}\n"
                       "  a%d = f32[300,401] %s(x, b%d)\n",
                       i, i, i % 2 ? "add" : "multiply", i);
    for (int i = 0; i < 35; i++)
        at += snprintf(body + at, sizeof body - (size_t)at,
                       "  c%d = f32[300,401] subtract(%s%d, a%d)\n", i, i ? "c" : "a",
                       i ? i - 1 : 35, i);
    snprintf(body + at, sizeof body - (size_t)at,
             "  r = f32[40100,3] reshape(c34)\n  n = f32[40100,3] negate(r)\n"
             "  ROOT z = (f32[40100,3], f32[300,401]) tuple(n, c34)\n");
    expect_same_bits(body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_between_are_rounded),
        cmocka_unit_test(integers_wrap_and_convert),
        cmocka_unit_test(codes_of_narrow_floats_are_kept),
        cmocka_unit_test(broadcasts_of_broadcasts),
        cmocka_unit_test(large_groups_and_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
