/* Rows of narrow floats to f32 and back, one loop per row of float.def.
 *
 * Eight-bit floats are decoded by a table that the compiler computes. The encoder works on the bits
 * of the f32: where the result is normal, half a last place is added to the f32's bits (one less
 * for an even result, so that ties go to even) and the rest shifted out, a carry moving on into the
 * exponent as it should; where it is subnormal, adding a power of two whose last place is the
 * format's makes the f32 addition round. */
#include <math.h>
#include <string.h>

#include "ir/eval/float.h"

typedef enum special { IEEE, FN, FNUZ, FINITE, E8M0 } special;

/* ------------------------------------------------------------------------------ decoding tables */

#define POW2(e) ((e) < 0 ? 1.0 / (double)(1ull << (-(e)&63)) : (double)(1ull << ((e)&63)))
#define SCALE(e) (POW2((e) / 4) * POW2((e) / 4) * POW2((e) / 4) * POW2((e) - (e) / 4 * 3))
#define MAGNITUDE(c, E, M, B)                                                                      \
    ((((c) >> (M)) & ((1 << (E)) - 1)) == 0                                                        \
         ? ((c) & ((1 << (M)) - 1)) * SCALE(1 - (B) - (M))                                         \
         : (((c) & ((1 << (M)) - 1)) + (1 << (M))) *                                               \
               SCALE((((c) >> (M)) & ((1 << (E)) - 1)) - (B) - (M)))
#define SIGNED(c, E, M, B)                                                                         \
    ((((c) >> ((E) + (M))) & 1) ? -MAGNITUDE(c, E, M, B) : MAGNITUDE(c, E, M, B))
#define REST(c, E, M) ((c) & ((1 << ((E) + (M))) - 1))
#define VALUE_IEEE(c, E, M, B)                                                                     \
    (REST(c, E, M) >> (M) < (1 << (E)) - 1 ? SIGNED(c, E, M, B)                                    \
     : REST(c, E, M) & ((1 << (M)) - 1)    ? (double)NAN                                           \
     : (c) >> ((E) + (M)) & 1              ? -(double)INFINITY                                     \
                                           : (double)INFINITY)
#define VALUE_FN(c, E, M, B)                                                                       \
    (REST(c, E, M) == (1 << ((E) + (M))) - 1 ? (double)NAN : SIGNED(c, E, M, B))
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
#include "ir/eval/float.def"

static inline float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A 16-bit float. The scaling makes subnormals right, too. */
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
#include "ir/eval/float.def"
    default: break;
    }
}

/* ------------------------------------------------------------------------------------- encoding */

/* All but `value` are constants where this is expanded. */
static inline uint32_t encode(float value, int E, int M, int bias, special kind) {
    uint32_t bits = to_bits(value), size = bits & 0x7fffffff;
    uint32_t all = (1u << (E + M)) - 1, minus = (bits >> 31) << (E + M);
    uint32_t infinity = ((1u << E) - 1) << M;
    uint32_t largest = kind == IEEE ? infinity - 1 : kind == FN ? all - 1 : all;
    bool nan = size > 0x7f800000;
    uint32_t code;
    if (bias == 127 || size >= (uint32_t)(128 - bias) << 23) {
        uint32_t even = (size >> (23 - M)) & 1;
        code = ((size + (1u << (22 - M)) - 1 + even) >> (23 - M)) - ((uint32_t)(127 - bias) << M);
    } else {
        uint32_t magic = (uint32_t)(127 + 1 - bias - M + 23) << 23;
        code = to_bits(of_bits(size) + of_bits(magic)) - magic;
    }
    if (kind == IEEE) {
        code = nan ? infinity | 1u << (M - 1) : code > largest ? infinity : code;
    } else if (kind == FN) {
        code = nan || code > largest ? all : code;
    } else if (kind == FINITE) {
        if (nan) return (1u << (E + M)) ^ minus;
        code = code > largest ? largest : code;
    } else {
        if (nan || code > largest) return 1u << (E + M);
        if (code == 0) return 0;
    }
    return code | minus;
}

/* Half way goes up; below the least normal f32, all that exceeds the least code. */
static inline uint32_t encode_e8m0(float value) {
    uint32_t bits = to_bits(value);
    if (!(value > 0) || bits >= 0x7f400000) return 0xff;
    return bits >= 0x800000 ? (bits + 0x400000) >> 23 : bits > 0x400000;
}

#define ENCODE_IEEE(x, E, M, B) encode(x, E, M, B, IEEE)
#define ENCODE_FN(x, E, M, B) encode(x, E, M, B, FN)
#define ENCODE_FNUZ(x, E, M, B) encode(x, E, M, B, FNUZ)
#define ENCODE_FINITE(x, E, M, B) encode(x, E, M, B, FINITE)
#define ENCODE_E8M0(x, E, M, B) encode_e8m0(x)

void hlo_float_encode_row(hlo_type type, const float *in, int64_t count, void *out, int64_t step) {
    char *at = out;
    switch (type) {
#define HLO_FLOAT8(id, E, M, B, special)                                                           \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step)                                            \
            *(unsigned char *)at = (unsigned char)ENCODE_##special(in[i], E, M, B);                \
        break;
#define HLO_FLOAT16(id, E, M, B, special)                                                          \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step) {                                          \
            uint16_t code = (uint16_t)ENCODE_##special(in[i], E, M, B);                            \
            memcpy(at, &code, sizeof code);                                                        \
        }                                                                                          \
        break;
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/eval/float.def"
    default: break;
    }
}
