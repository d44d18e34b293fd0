/* Ranges of whole numbers, and the types that f8e4m3fn holds. */
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
#include "ir/float/float.h"
#include "passes/analysis/dequantize.h"
#include "passes/narrow/whole_range.h"

static bool is_held(double number) {
    uint64_t cell = 0;
    hlo_number_store(HLO_TYPE_F8E4M3FN, &cell, number);
    const double back = hlo_number_load(HLO_TYPE_F8E4M3FN, &cell);
    return back == number && !signbit(back) == !signbit(number);
}

/* Counts the elements of a type of at most 8 bits that f8e4m3fn does not have. */
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
    assert_true(hlo_whole_range_fits_e4m3(&(hlo_whole_range){-16, 16, true, true}));
    assert_false(hlo_whole_range_fits_e4m3(&(hlo_whole_range){-17, 0, true, true}));
    assert_false(hlo_whole_range_fits_e4m3(&(hlo_whole_range){0, 17, true, true}));
    assert_false(hlo_whole_range_fits_e4m3(&(hlo_whole_range){0, 0, false, true}));
}

/* A value `r` of these parameters, and its range; low above high: it has none. */
static const struct {
    const char *text;
    int64_t low, high;
} rows[] = {
    {"s8[4] add(x, y)", -16, 14},
    {"s8[4] subtract(x, y)", -15, 15},
    {"s8[4] multiply(x, y)", -56, 64},
    {"s8[4] multiply(x, b)", -128, 127}, /* wraps */
    {"s8[4] minimum(x, b)", -128, 7},
    {"s8[4] maximum(x, b)", -8, 127},
    {"s8[4] negate(x)", -7, 8},
    {"s8[4] negate(b)", -128, 127},
    {"s8[4] and(b, five)", 0, 5},
    {"s8[4] and(five, b)", 0, 5},
    {"s8[4] and(x, b)", -128, 127},
    {"s8[4] or(x, five)", -128, 127},
    {"s8[4] shift-right-arithmetic(b, five)", -4, 3},
    {"s8[4] shift-right-logical(b, five)", 0, 7},
    {"s8[4] shift-right-logical(b, x)", -128, 127},
    {"s8[4] shift-left(x, five)", -128, 127},
    {"u8[4] shift-right-arithmetic(v, three)", 0, 255},
    {"u8[4] shift-right-arithmetic(few, three)", 0, 1},
    {"u8[4] shift-right-logical(v, three)", 0, 31},
    {"s8[4] clamp(low, b, high)", -3, 11},
    {"s8[4] clamp(high, b, low)", -3, -3},
    {"s8[4] clamp(low, x, high)", -3, 7},
    {"s8[4] select(p, x, five)", -8, 7},
    {"s8[6] concatenate(x, two), dimensions={0}", -8, 9},
    {"s8[6] pad(x, high), padding=1_1", -8, 11},
    {"s8[2,2] reshape(y)", -8, 7},
    {"u8[4] convert(u)", 0, 15},
    {"u8[4] convert(x)", 0, 255},
    {"s4[4] convert(u)", -8, 7},
    {"s64[4] convert(u)", 0, 15},
    {"u64[4] convert(x)", 1, 0},
    {"s64[4] add(w, w)", 1, 0},
    {"bf16[4] convert(u)", 0, 15},
    {"bf16[4] convert(b)", -128, 127},
    {"bf16[4] convert(h)", 1, 0},
    {"f8e4m3fn[4] convert(u)", 0, 15},
    {"f8e4m3fn[4] convert(b)", 1, 0},
    {"f64[4] convert(u)", 1, 0},
    {"f32[4] subtract(f, f)", -255, 255},
    {"f32[4] add(f, f)", 1, 0},
    {"f32[4] clamp(minus, g, plus)", 1, 0},
    {"f32[4] clamp(minus, f, plus)", 0, 4},
    {"f32[4] clamp(minus, f, half)", 1, 0},
    {"f32[4] divide(f, f)", 1, 0},
    {"f32[4] maximum(f, g)", 1, 0},
};

static const char head[] =
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
    "  ROOT r = ";

static void ranges_are_as_they_should_be(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048];
        hlo_module *module;
        snprintf(text, sizeof text, "%s%s\n}\n", head, rows[i].text);
        assert_int_equal(hlo_module_parse(text, strlen(text), rows[i].text, NULL, &module), HLO_OK);
        hlo_whole_range *ranges = calloc(module->next_id, sizeof *ranges);
        hlo_whole_ranges_find(module->entry, ranges);
        const hlo_whole_range r = ranges[module->entry->root->id];
        free(ranges);
        hlo_module_free(module);
        const bool known = rows[i].low <= rows[i].high;
        if (r.known != known || (known && (r.low != rows[i].low || r.high != rows[i].high)))
            fail_msg("%s: %d from %lld to %lld", rows[i].text, r.known, (long long)r.low,
                     (long long)r.high);
        assert_true(r.input);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_few_bits_are_held),
        cmocka_unit_test(ranges_are_as_they_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
