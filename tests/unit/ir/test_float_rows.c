/* SPDX-License-Identifier: Apache-2.0 */
/* Compares loops over rows of narrow floats with conversions of single elements: every code,
 * f32 of every exponent, and doubles next to these; with contiguous, strided and repeated elements.
 * Compares rows of exp with the C library. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/float/float.h"
#include "ir/kernel/kernel.h"

enum { COUNT = 1 << 16, ODD = 1001 };

static const hlo_type types[] = {
#define HLO_FLOAT8(id, E, M, B, special) HLO_TYPE_##id,
#define HLO_FLOAT16 HLO_FLOAT8
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"
};
enum { TYPES = sizeof types / sizeof *types };

static float floats[COUNT];
static uint16_t cells[COUNT * 3];

/* Returns true if both are NaN, or the same number with the same sign. */
static bool same_value(float got, double want) {
    return isnan(got) ? isnan(want) != 0 : (double)got == want && !signbit(got) == !signbit(want);
}

static void check_decoded(hlo_type type, int64_t first, int64_t code_step, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!same_value(floats[i], hlo_float_decode(type, (uint64_t)(first + i * code_step))))
            fail_msg("%s: code %d is decoded as %g", hlo_types[type].name,
                     (int)(first + i * code_step), (double)floats[i]);
}

static void every_code_is_decoded(void **state) {
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        const int64_t size = hlo_types[types[t]].bytes, count = INT64_C(1) << (8 * size);
        unsigned char *at = (unsigned char *)cells;
        for (int64_t i = 0; i < count; i++) memcpy(at + i * size, &i, (size_t)size);
        hlo_float_decode_row(types[t], at, size, count, floats);
        check_decoded(types[t], 0, 1, count);
        hlo_float_decode_row(types[t], at + size, 3 * size, count / 3, floats);
        check_decoded(types[t], 1, 3, count / 3);
        hlo_float_decode_row(types[t], at + 7 * size, 0, ODD, floats);
        check_decoded(types[t], 7, 0, ODD);
    }
}

static void check_encoded(hlo_type type, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t code = 0, want = hlo_float_encode(type, (double)floats[i]);
        memcpy(&code, (char *)cells + i * step, hlo_types[type].bytes);
        if (code != want)
            fail_msg("%s: %a is encoded as %#x, not %#x", hlo_types[type].name, (double)floats[i],
                     (unsigned)code, (unsigned)want);
    }
}

/* Fills the floats with bit patterns `step` apart. */
static void fill_floats(uint32_t first, uint32_t step) {
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t bits = first + i * step;
        memcpy(&floats[i], &bits, sizeof bits);
    }
}

static void floats_of_every_exponent_are_encoded(void **state) {
    (void)state;
    static const uint32_t firsts[] = {0, 0x7fff, 0x8000, 0x8001};
    for (int t = 0; t < TYPES; t++)
        for (int f = 0; f < 4; f++) {
            const int64_t size = hlo_types[types[t]].bytes;
            fill_floats(firsts[f], 1 << 16); /* halfway between two bf16, and next to halfway */
            hlo_float_encode_row(types[t], floats, COUNT, cells, size);
            check_encoded(types[t], COUNT, size);
            hlo_float_encode_row(types[t], floats, ODD, cells, 3 * size);
            check_encoded(types[t], ODD, 3 * size);
            fill_floats(firsts[f] * 77, 65521);
            hlo_float_encode_row(types[t], floats, COUNT, cells, size);
            check_encoded(types[t], COUNT, size);
        }
}

/* Tests doubles at and next to f32 of every exponent, and halfway between two narrow floats. */
static void doubles_are_rounded_once(void **state) {
    (void)state;
    static double doubles[COUNT];
    static const double factors[] = {1, 1 + 0x1p-52, 1 - 0x1p-53, 1 + 0x1p-25, 0x1p-30, 0x1p130};
    fill_floats(0x8000, 1 << 16);
    for (int t = 0; t < TYPES; t++)
        for (int f = 0; f < 6; f++) {
            const int64_t size = hlo_types[types[t]].bytes;
            for (int i = 0; i < COUNT; i++) doubles[i] = (double)floats[i] * factors[f];
            hlo_lane_convert(HLO_TYPE_F64, types[t], doubles, COUNT, cells, size);
            for (int i = 0; i < COUNT; i++) {
                uint64_t code = 0, want = hlo_float_encode(types[t], doubles[i]);
                memcpy(&code, (char *)cells + i * size, (size_t)size);
                if (code != want)
                    fail_msg("%s: %a is encoded as %#x, not %#x", hlo_types[types[t]].name,
                             doubles[i], (unsigned)code, (unsigned)want);
            }
        }
}

static void exp_is_the_library_s(uint32_t first, uint32_t step) {
    static float out[COUNT];
    fill_floats(first, step);
    hlo_float_exp_row(floats, COUNT, out);
    for (int i = 0; i < COUNT; i++) {
        const float want = expf(floats[i]);
        if (memcmp(&out[i], &want, sizeof want) != 0)
            fail_msg("exp(%a) is %a, not %a", (double)floats[i], (double)out[i], (double)want);
    }
}

static bool is_long;

static void rows_of_exp(void **state) {
    (void)state;
    exp_is_the_library_s(0, 65537);
    exp_is_the_library_s(0x42b17218 - COUNT / 2, 1); /* where exp overflows */
    exp_is_the_library_s(0xc2cff1b5 - COUNT / 2, 1); /* where exp underflows */
    for (uint32_t i = 0; is_long && i < COUNT; i++) exp_is_the_library_s(i * COUNT, 1);
}

/* With --long, tests exp of all f32. */
int main(int argc, char **argv) {
    is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_is_decoded),
        cmocka_unit_test(floats_of_every_exponent_are_encoded),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(rows_of_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
