/* SPDX-License-Identifier: Apache-2.0 */
/* Converts rows of narrow floats to f32 and back, with one loop per row of float.def. The loops
 * have no branches, so that compilers vectorize them. */
#include <string.h>

#include "ir/float/clones.h"
#include "ir/float/encode.h"
#include "ir/float/float.h"

enum { CHUNK = 256 }; /* number of elements gathered or scattered at once */

/* Returns the bits of an f32. The exponent of a normal number is rebiased. A subnormal number gets
 * the smallest normal exponent, and the resulting excess is subtracted. NaNs of 16 bits keep their
 * payloads. All arguments except `code` are constants at each call, which compilers inline. */
static inline unsigned decode(unsigned code, int E, int M, int bias, special kind) {
    const unsigned all = (1u << (E + M)) - 1, infinity = ((1u << E) - 1) << M, nan = 0x7fc00000;
    if (kind == E8M0) return code == 0 ? 0x400000 : code == 0xff ? nan : code << 23;
    unsigned rest = code & all, minus = (code >> (E + M) & 1) << 31;
    if (bias == 127) return minus | rest << (23 - M);
    unsigned normal = (rest << (23 - M)) + ((unsigned)(127 - bias) << 23);
    unsigned subnormal =
        to_bits(of_bits(normal + (1u << 23)) - of_bits((unsigned)(128 - bias) << 23));
    unsigned size = (int)rest < 1 << M ? subnormal : normal;
    if (kind == IEEE) {
        unsigned beyond = E + M + 1 == 16 ? 0x7f800000 | rest << (23 - M) : nan;
        size = rest == infinity ? 0x7f800000 : (int)rest > (int)infinity ? beyond : size;
    }
    if (kind == FN) size = rest == all ? nan : size;
    if (kind == FNUZ) return minus && rest == 0 ? nan : minus | size;
    return minus | size;
}

#define LOOPS(id, cell, E, M, B, special)                                                          \
    HLO_CLONED static void decode_##id(const cell *restrict in, int64_t count,                     \
                                       float *restrict out) {                                      \
        for (int64_t i = 0; i < count; i++) out[i] = of_bits(decode(in[i], E, M, B, special));     \
    }                                                                                              \
    HLO_CLONED static void encode_##id(const float *restrict in, int64_t count,                    \
                                       cell *restrict out) {                                       \
        for (int64_t i = 0; i < count; i++) out[i] = (cell)encode(in[i], E, M, B, special);        \
    }
#define HLO_FLOAT8(id, E, M, B, special) LOOPS(id, uint8_t, E, M, B, special)
#define HLO_FLOAT16(id, E, M, B, special) LOOPS(id, uint16_t, E, M, B, special)
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"

static void decode_cells(hlo_type type, const void *in, int64_t count, float *out) {
    switch (type) {
#define HLO_FLOAT8(id, E, M, B, special)                                                           \
    case HLO_TYPE_##id:                                                                            \
        decode_##id(in, count, out);                                                               \
        break;
#define HLO_FLOAT16 HLO_FLOAT8
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"
    default: break;
    }
}

static void encode_cells(hlo_type type, const float *in, int64_t count, void *out) {
    switch (type) {
#define HLO_FLOAT8(id, E, M, B, special)                                                           \
    case HLO_TYPE_##id:                                                                            \
        encode_##id(in, count, out);                                                               \
        break;
#define HLO_FLOAT16 HLO_FLOAT8
#define HLO_FLOAT_WIDE(id, E, M, B, special)
#include "ir/float/float.def"
    default: break;
    }
}

/* Copies cells of one or two bytes. */
static void copy_cells(size_t size, const char *in, int64_t in_step, int64_t count, char *out,
                       int64_t out_step) {
    for (int64_t i = 0; i < count; i++, in += in_step, out += out_step) {
        if (size == 1)
            *out = *in;
        else
            memcpy(out, in, 2);
    }
}

void hlo_float_decode_row(hlo_type type, const void *in, int64_t step, int64_t count, float *out) {
    uint16_t cells[CHUNK];
    const int64_t size = hlo_types[type].bytes;
    if (step == size) {
        decode_cells(type, in, count, out);
    } else if (step == 0 && count > 0) {
        decode_cells(type, in, 1, out);
        for (int64_t i = 1; i < count; i++) out[i] = out[0];
    } else {
        for (int64_t done = 0; done < count; done += CHUNK) {
            int64_t n = count - done < CHUNK ? count - done : CHUNK;
            copy_cells((size_t)size, (const char *)in + done * step, step, n, (char *)cells, size);
            decode_cells(type, cells, n, out + done);
        }
    }
}

void hlo_float_encode_row(hlo_type type, const float *in, int64_t count, void *out, int64_t step) {
    uint16_t cells[CHUNK];
    const int64_t size = hlo_types[type].bytes;
    if (step == size) {
        encode_cells(type, in, count, out);
        return;
    }
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t n = count - done < CHUNK ? count - done : CHUNK;
        encode_cells(type, in + done, n, cells);
        copy_cells((size_t)size, (const char *)cells, size, n, (char *)out + done * step, step);
    }
}
