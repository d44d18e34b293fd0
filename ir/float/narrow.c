/* Rows of narrow floats to f32 and back, one loop per row of float.def. Eight-bit floats are
 * decoded by a table that the compiler computes. */
#include <math.h>
#include <string.h>

#include "ir/float/encode.h"
#include "ir/float/float.h"

/* ------------------------------------------------------------------------------ decoding tables */

#define POW2(e) ((e) < 0 ? 1.0 / (double)(1ull << (-(e)&63)) : (double)(1ull << ((e)&63)))
#define SCALE(e) (POW2((e) / 4) * POW2((e) / 4) * POW2((e) / 4) * POW2((e) - (e) / 4 * 3))
#define MAGNITUDE(c, E, M, B)                                                                      \
    ((((c) >> (M)) & ((1 << (E)) - 1)) == 0                                                        \
         ? ((c) & ((1 << (M)) - 1)) * SCALE(1 - (B) - (M))                                         \
         : (((c) & ((1 << (M)) - 1)) + (1 << (M))) *                                               \
               SCALE((((c) >> (M)) & ((1 << (E)) - 1)) - (B) - (M)))
#define WITH_SIGN(c, E, M, x) ((((c) >> ((E) + (M))) & 1) ? -(x) : (x))
#define SIGNED(c, E, M, B) WITH_SIGN(c, E, M, MAGNITUDE(c, E, M, B))
#define REST(c, E, M) ((c) & ((1 << ((E) + (M))) - 1))
#define VALUE_IEEE(c, E, M, B)                                                                     \
    (REST(c, E, M) >> (M) < (1 << (E)) - 1 ? SIGNED(c, E, M, B)                                    \
     : REST(c, E, M) & ((1 << (M)) - 1)    ? WITH_SIGN(c, E, M, (double)NAN)                       \
                                           : WITH_SIGN(c, E, M, (double)INFINITY))
#define VALUE_FN(c, E, M, B)                                                                       \
    (REST(c, E, M) == (1 << ((E) + (M))) - 1 ? WITH_SIGN(c, E, M, (double)NAN) : SIGNED(c, E, M, B))
#define VALUE_FNUZ(c, E, M, B) ((c) == 1 << ((E) + (M)) ? (double)NAN : SIGNED(c, E, M, B))
#define VALUE_FINITE(c, E, M, B) SIGNED(c, E, M, B)
#define VALUE_E8M0(c, E, M, B) ((c) == 255 ? (double)NAN : SCALE((c) - (B)))

#define TO4(v, c, E, M, B)                                                                         \
    (float)v(c, E, M, B), (float)v(c + 1, E, M, B), (float)v(c + 2, E, M, B),                      \
        (float)v(c + 3, E, M, B)
#define TO16(v, c, E, M, B)                                                                        \
    TO4(v, c, E, M, B), TO4(v, c + 4, E, M, B), TO4(v, c + 8, E, M, B), TO4(v, c + 12, E, M, B)
#define TO64(v, c, E, M, B)                                                                        \
    TO16(v, c, E, M, B), TO16(v, c + 16, E, M, B), TO16(v, c + 32, E, M, B),                       \
        TO16(v, c + 48, E, M, B)
#define TO256(v, E, M, B)                                                                          \
    TO64(v, 0, E, M, B), TO64(v, 64, E, M, B), TO64(v, 128, E, M, B), TO64(v, 192, E, M, B)

#define HLO_FLOAT8(id, E, M, B, special)                                                           \
    static const float values_##id[256] = {TO256(VALUE_##special, E, M, B)};
#define HLO_FLOAT16(id, E, M, B, special)
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"

/* Decodes a 16-bit float. The scaling covers subnormals, too. */
static inline float decode16(uint32_t code, int exponent, int mantissa, int bias) {
    uint32_t sign = (code & 0x8000) << 16, rest = code & 0x7fff;
    if (exponent == 8) return of_bits(code << 16);
    if (rest >> mantissa == (1u << exponent) - 1)
        return of_bits(sign | 0x7f800000 | rest << (23 - mantissa));
    float scale = of_bits((uint32_t)(127 + 127 - bias) << 23);
    return of_bits(sign | to_bits(of_bits(rest << (23 - mantissa)) * scale));
}

void hlo_float_decode_row(hlo_type type, const void *in, int64_t step, int64_t count, float *out) {
    const char *at = in;
    switch (type) {
#define HLO_FLOAT8(id, E, M, B, special)                                                           \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step)                                            \
            out[i] = values_##id[*(const unsigned char *)at];                                      \
        break;
#define HLO_FLOAT16(id, E, M, B, special)                                                          \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step) {                                          \
            uint16_t code;                                                                         \
            memcpy(&code, at, sizeof code);                                                        \
            out[i] = decode16(code, E, M, B);                                                      \
        }                                                                                          \
        break;
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"
    default: break;
    }
}

/* ------------------------------------------------------------------------------------- encoding */

void hlo_float_encode_row(hlo_type type, const float *in, int64_t count, void *out, int64_t step) {
    char *at = out;
    switch (type) {
#define HLO_FLOAT8(id, E, M, B, special)                                                           \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step)                                            \
            *(unsigned char *)at = (unsigned char)encode(in[i], E, M, B, special);                 \
        break;
#define HLO_FLOAT16(id, E, M, B, special)                                                          \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step) {                                          \
            uint16_t code = (uint16_t)encode(in[i], E, M, B, special);                             \
            memcpy(at, &code, sizeof code);                                                        \
        }                                                                                          \
        break;
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"
    default: break;
    }
}
