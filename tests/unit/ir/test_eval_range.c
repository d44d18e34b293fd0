/* SPDX-License-Identifier: Apache-2.0 */
/* Tests ranges of values, and the types whose values f8e4m3fn represents. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "ir/eval/range.h"
#include "ir/float/float.h"
#include "passes/analysis/dequantize.h"

static bool is_held(double number) {
    uint64_t cell = 0;
    hlo_number_store(HLO_TYPE_F8E4M3FN, &cell, number);
    const double back = hlo_number_load(HLO_TYPE_F8E4M3FN, &cell);
    return back == number && !signbit(back) == !signbit(number);
}

/* Counts the elements of a type of at most 8 bits that f8e4m3fn does not represent. */
static unsigned beyond(hlo_type type) {
    unsigned count = 0;
    const unsigned bits = hlo_types[type].bits;
    for (int code = 0; code < 1 << bits; code++) {
        const bool negative = hlo_types[type].class == HLO_CLASS_SIGNED && code >> (bits - 1);
        const int8_t element = (int8_t)(negative ? code - (1 << bits) : code);
        count += !is_held(hlo_number_load(type, &element));
    }
    return count;
}

static void types_of_few_bits_are_held(void **state) {
    (void)state;
    unsigned held = 0;
    for (int t = 0; t < HLO_TYPE_COUNT; t++) {
        if (!hlo_type_fits_e4m3((hlo_type)t)) continue;
        assert_int_equal(beyond((hlo_type)t), 0);
        held++;
    }
    assert_int_equal(held, 9);
    assert_true(beyond(HLO_TYPE_S8) > 0 && beyond(HLO_TYPE_U8) > 0);
    assert_true(beyond(HLO_TYPE_F8E5M2) > 0);
    for (int whole = -16; whole <= 16; whole++) assert_true(is_held(whole));
    assert_false(is_held(17));
}

#define ENDLESS ((double)INFINITY)

/* A value `r` computed from these parameters, and its expected range. -0 is below 0. */
static const struct {
    const char *text;
    double low, high;
    bool whole;
} rows[] = {
    {"s8[4] add(x, y)", -16, 14, true},
    {"s8[4] subtract(x, y)", -15, 15, true},
    {"s8[4] multiply(x, y)", -56, 64, true},
    {"s8[4] multiply(x, b)", -128, 127, true}, /* the product wraps */
    {"s8[4] minimum(x, b)", -128, 7, true},
    {"s8[4] maximum(x, b)", -8, 127, true},
    {"s8[4] negate(x)", -7, 8, true},
    {"s8[4] negate(b)", -128, 127, true},
    {"s8[4] and(b, five)", 0, 5, true},
    {"s8[4] and(five, b)", 0, 5, true},
    {"s8[4] and(x, b)", -128, 127, true},
    {"s8[4] or(x, five)", -128, 127, true},
    {"s8[4] shift-right-arithmetic(b, five)", -4, 3, true},
    {"s8[4] shift-right-logical(b, five)", 0, 7, true},
    {"s8[4] shift-right-logical(b, x)", -128, 127, true},
    {"s8[4] shift-left(x, five)", -128, 127, true},
    {"u8[4] shift-right-arithmetic(v, three)", 0, 255, true},
    {"u8[4] shift-right-arithmetic(few, three)", 0, 1, true},
    {"u8[4] shift-right-logical(v, three)", 0, 31, true},
    {"s8[4] clamp(low, b, high)", -3, 11, true},
    {"s8[4] clamp(high, b, low)", -3, -3, true},
    {"s8[4] clamp(low, x, high)", -3, 7, true},
    {"s8[4] select(p, x, five)", -8, 7, true},
    {"s8[6] concatenate(x, two), dimensions={0}", -8, 9, true},
    {"s8[6] pad(x, high), padding=1_1", -8, 11, true},
    {"s8[2,2] reshape(y)", -8, 7, true},
    {"u8[4] convert(u)", 0, 15, true},
    {"u8[4] convert(x)", 0, 255, true},
    {"s4[4] convert(u)", -8, 7, true},
    {"s64[4] convert(u)", 0, 15, true},
    {"u64[4] convert(x)", 0, 0x1p64, true},
    {"s64[4] add(w, w)", -0x1p63, 0x1p63, true},
    {"bf16[4] convert(u)", 0, 15, true},
    {"bf16[4] convert(b)", -128, 127, true},
    {"bf16[4] convert(h)", -32768, 32768, false},
    {"f8e4m3fn[4] convert(u)", 0, 15, true},
    {"f8e4m3fn[4] convert(b)", -128, 128, false},
    {"f64[4] convert(u)", 0, 15, true},
    {"f32[4] subtract(f, f)", -255, 255, true},
    {"f32[4] add(f, f)", 0, 510, true},
    {"f32[4] clamp(minus, g, plus)", -1, 4, false},
    {"f32[4] clamp(minus, f, plus)", 0, 4, true},
    {"f32[4] clamp(minus, f, half)", 0, 0.5, false},
    {"f32[4] divide(f, f)", 0, ENDLESS, false},
    {"f32[4] maximum(f, g)", -0.0, ENDLESS, false},
    {"f32[4] maximum(g, zeros)", -0.0, ENDLESS, false}, /* the maximum of -0 and 0 may be either */
    {"f32[4] minimum(g, zeros)", -ENDLESS, 0, false},
    {"f32[4] abs(g)", 0, ENDLESS, false},
    {"f32[4] negate(e)", -ENDLESS, 0, false},
    {"f32[4] add(c, c)", -2.03125, 1.015625, false},
    {"f32[4] multiply(g, g)", 0, ENDLESS, false},
    {"f32[4] multiply(c, c)", 0, 1.015625, false},
    {"f32[4] multiply(c, f)", -258.984375, 129.4921875, false},
    {"f32[4] exponential(c)", 0, 0x1.acaae4p0, false},
    {"f32[4] exponential(less)", 0, 1, false},
    {"f32[4] tanh(g)", -1, 1, false},
    {"f32[4] logistic(g)", 0, 1, false},
    {"f32[4] sqrt(g)", -0.0, ENDLESS, false},
    {"f32[4] divide(e, m)", -ENDLESS, ENDLESS, false}, /* 1 / -0 is -infinity */
    {"f32[4] divide(e, e)", 0, ENDLESS, false},
    {"f32[4] divide(f, four)", 0, 64.74609375, false},
    {"f32[4] subtract(g, largest)", -ENDLESS, 0, false},
    {"f32[4] subtract(g, e)", -ENDLESS, ENDLESS, false},
    {"f32[4] convert(q)", 0, 0x1p127, false}, /* 2^-127 may become 0 */
    {"f8e8m0fnu[4] convert(g)", 0x1p-127, 0x1p127, false},
    {"f32[2] constant({-0.0, 3})", -0.0, 3, true},
    {"f32[2] constant({nan, 3})", -ENDLESS, ENDLESS, false},
    {"s8[1] slice(two), slice={[1:2]}", -1, -1, true},
    {"f32[4] call(f), to_apply=plus_one", 1, 256, true},
    {"f32[4] opt-barrier(f)", 0, 255, true},
    {"f32[] reduce(f, minus), dimensions={0}, to_apply=larger", 0, 255, true},
    {"f32[] reduce(g, half), dimensions={0}, to_apply=larger", 0.5, ENDLESS, false},
    {"f32[] reduce(f, half), dimensions={0}, to_apply=sum", 0.4921875, ENDLESS, false},
    {"f32[] reduce(f, minus), dimensions={0}, to_apply=sum", -ENDLESS, ENDLESS, false},
    {"f32[] reduce(soft, zero), dimensions={0}, to_apply=sum", 0.984375, ENDLESS, false},
    {"s32[4] iota(), iota_dimension=0", 0, 3, true},
    {"s8[300] iota(), iota_dimension=0", -128, 127, true},
    {"f32[4] sine(g)", -ENDLESS, ENDLESS, false},
};

static const char head[] =
    "plus_one { x = f32[4] parameter(0)\n  y = f32[] constant(1)\n"
    "  z = f32[4] broadcast(y), dimensions={}\n  ROOT r = f32[4] add(x, z) }\n"
    "larger { x = f32[] parameter(0)\n  y = f32[] parameter(1)\n ROOT r = f32[] maximum(x, y) }\n"
    "sum { x = f32[] parameter(0)\n  y = f32[] parameter(1)\n ROOT r = f32[] add(x, y) }\n"
    "ENTRY e {\n"
    "  x4 = s4[4] parameter(0)\n  x = s8[4] convert(x4)\n  y4 = s4[4] parameter(1)\n"
    "  y = s8[4] convert(y4)\n  b = s8[4] parameter(2)\n  u = u4[4] parameter(3)\n"
    "  h = s16[4] parameter(4)\n  w = s64[4] parameter(5)\n  p = pred[4] parameter(6)\n"
    "  g = f32[4] parameter(7)\n  v = u8[4] parameter(8)\n  f = f32[4] convert(v)\n"
    "  low = s8[] constant(-3)\n  high = s8[] constant(11)\n  five1 = s8[] constant(5)\n"
    "  five = s8[4] broadcast(five1), dimensions={}\n  two = s8[2] constant({9, -1})\n"
    "  three1 = u8[] constant(3)\n  three = u8[4] broadcast(three1), dimensions={}\n"
    "  few = u8[4] convert(u)\n"
    "  minus = f32[] constant(-1)\n  plus = f32[] constant(4)\n  half = f32[] constant(0.5)\n"
    "  zero = f32[] constant(0)\n  zeros = f32[4] broadcast(zero), dimensions={}\n"
    "  c = f32[4] clamp(minus, g, half)\n  e = f32[4] exponential(g)\n"
    "  m = f32[4] maximum(g, zeros)\n  q = f8e8m0fnu[4] parameter(9)\n"
    "  fours = f32[4] broadcast(plus), dimensions={}\n  four = f32[4] maximum(g, fours)\n"
    "  endless = f32[] constant(-inf)\n"
    "  most = f32[] reduce(g, endless), dimensions={0}, to_apply=larger\n"
    "  largest = f32[4] broadcast(most), dimensions={}\n  less = f32[4] subtract(g, largest)\n"
    "  soft = f32[4] exponential(less)\n"
    "  ROOT r = ";

static void ranges_are_as_they_should_be(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        hlo_module *module;
        snprintf(text, sizeof text, "%s%s\n}\n", head, rows[i].text);
        assert_int_equal(hlo_module_parse(text, strlen(text), rows[i].text, NULL, &module), HLO_OK);
        const hlo_range r = hlo_range_of(module->entry->root);
        hlo_module_free(module);
        if (r.low != rows[i].low || !signbit(r.low) != !signbit(rows[i].low) ||
            r.high != rows[i].high || r.whole != rows[i].whole)
            fail_msg("%s: from %.17g to %.17g, whole: %d", rows[i].text, r.low, r.high, r.whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_few_bits_are_held),
        cmocka_unit_test(ranges_are_as_they_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
