/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds an f32 to a narrow float. The file is valid C and CUDA C++, because generated kernels
 * include it (runtime/cuda/codegen/element.cuh). */
#ifndef HLO_IR_FLOAT_ENCODE_H
#define HLO_IR_FLOAT_ENCODE_H

#ifndef __cplusplus
#include <stdbool.h>
#include <string.h>
#endif

/* The meaning of the codes that are not finite values; see float.def. */
typedef enum special { IEEE, FN, FNUZ, FINITE, E8M0 } special;

static inline float of_bits(unsigned bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline unsigned to_bits(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Rounds to nearest, ties to even, to E exponent and M mantissa bits. Works on the bits of the f32.
 * For a normal result, half a last place is added to the f32's bits (one less for an even result,
 * so that ties go to even). The remaining bits are then shifted out; a carry correctly propagates
 * into the exponent. For a subnormal result, adding a power of two whose last place is that of the
 * format makes the f32 addition round. Both results are computed, so that a loop has no branches.
 * All arguments except `value` are constants at each call, which compilers inline. */
static inline unsigned encode(float value, int E, int M, int bias, special kind) {
    if (kind == E8M0) {
        /* Ties round up. Below the smallest normal f32, every value above the smallest code also
         * rounds up. */
        const unsigned b = to_bits(value);
        const unsigned code = b >= 0x800000 ? (b + 0x400000) >> 23 : b > 0x400000;
        return b - 1 < 0x7f3fffff ? code : 0xff; /* the value is positive and not too large */
    }
    const unsigned all = (1u << (E + M)) - 1, sign = 1u << (E + M);
    const unsigned infinity = ((1u << E) - 1) << M;
    const int largest = (int)(kind == IEEE ? infinity - 1 : kind == FN ? all - 1 : all);
    unsigned bits = to_bits(value), size = bits & 0x7fffffff, minus = (bits >> 31) << (E + M);
    unsigned even = (size >> (23 - M)) & 1;
    unsigned normal = (size + (1u << (22 - M)) - 1 + even) >> (23 - M);
    int code = (int)(normal - ((unsigned)(127 - bias) << M));
    if (bias != 127) {
        const unsigned magic = (unsigned)(127 + 1 - bias - M + 23) << 23;
        int subnormal = (int)(to_bits(of_bits(size) + of_bits(magic)) - magic);
        code = (int)size >= (128 - bias) << 23 ? code : subnormal;
    }
    bool nan = (int)size > 0x7f800000, large = code > largest;
    unsigned finite = (unsigned)code;
    if (kind == IEEE) return (nan ? infinity | 1u << (M - 1) : large ? infinity : finite) | minus;
    if (kind == FN) return (nan | large ? all : finite) | minus;
    if (kind == FINITE) return nan ? sign ^ minus : (large ? (unsigned)largest : finite) | minus;
    return nan | large ? sign : code == 0 ? 0 : finite | minus;
}

#endif
