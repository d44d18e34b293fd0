/* SPDX-License-Identifier: Apache-2.0 */
/* Element types in generated kernels, in C++ that is valid with and without CUDA: from_<type>()
 * converts an element in memory to the type that it is computed in, to_<type>() converts it back,
 * and convert_<type>() is HLO's convert to it. The results equal those of ir/eval. */

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long int64;
typedef unsigned long long uint64;

template <typename To, typename From> static inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

/* N elements that are loaded and stored at once. */
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T v[N];
};

/* 4-bit elements, two per byte, the first in the low bits. */
template <int N> static inline pack<uchar, N / 2> halved(pack<uchar, N> x) {
    const pack<uint, N / 4> words = bits_as<pack<uint, N / 4>>(x);
    pack<ushort, N / 4> out;
#pragma unroll
    for (int i = 0; i < N / 4; i++) {
        const uint low = words.v[i] & 0x0f0f0f0f, pairs = low | low >> 4;
        out.v[i] = (ushort)((pairs & 0xff) | (pairs >> 8 & 0xff00));
    }
    return bits_as<pack<uchar, N / 2>>(out);
}

static inline float float_inf() {
    return bits_as<float>(0x7f800000u);
}
static inline float float_nan() {
    return bits_as<float>(0x7fc00000u);
}

/* --------------------------------------------------------------------------- floats of few bits */

/* encode() is defined in ir/float/encode.h. */
template <int E, int M, int BIAS, special KIND> static inline float decode(uint bits) {
    if (KIND == E8M0)
        return bits == 0xff ? float_nan() : bits_as<float>(bits ? bits << 23 : 0x400000u);
    const uint code = bits & ((1u << (E + M)) - 1), minus = (bits >> (E + M)) << 31;
    if (KIND == FNUZ && minus && code == 0) return float_nan();
    if (KIND == FN && code == (1u << (E + M)) - 1) return float_nan();
    if (KIND == IEEE && code >> M == (1u << E) - 1)
        return bits_as<float>(minus | 0x7f800000u | code << (23 - M));
    const float scale = bits_as<float>((uint)(127 + 127 - BIAS) << 23);
    return bits_as<float>(minus | bits_as<uint>(bits_as<float>(code << (23 - M)) * scale));
}

#define NARROW(name, E, M, BIAS, KIND)                                                             \
    static inline uchar to_##name(float x) {                                                       \
        return (uchar)encode(x, E, M, BIAS, KIND);                                                 \
    }                                                                                              \
    static inline float from_##name(uchar x) {                                                     \
        return decode<E, M, BIAS, KIND>(x);                                                        \
    }
NARROW(f4e2m1fn, 2, 1, 1, FINITE)
NARROW(f6e2m3fn, 2, 3, 1, FINITE)
NARROW(f6e3m2fn, 3, 2, 3, FINITE)
NARROW(f8e3m4, 3, 4, 3, IEEE)
NARROW(f8e4m3, 4, 3, 7, IEEE)
NARROW(f8e4m3b11fnuz, 4, 3, 11, FNUZ)
NARROW(f8e4m3fnuz, 4, 3, 8, FNUZ)
NARROW(f8e5m2fnuz, 5, 2, 16, FNUZ)
NARROW(f8e8m0fnu, 8, 0, 127, E8M0)
#undef NARROW

/* 464 is halfway between the largest value and the next multiple of its step. */
static inline uchar to_f8e4m3fn(float x) {
    const uint size = bits_as<uint>(x) & 0x7fffffffu;
    return size > 0x43e80000u ? (uchar)(bits_as<uint>(x) >> 24 | 0x7f) : clamped_f8e4m3fn(x);
}
static inline uchar to_f8e5m2(float x) {
    const uint size = bits_as<uint>(x) & 0x7fffffffu, minus = bits_as<uint>(x) >> 24 & 0x80;
    if (size > 0x7f800000u) return (uchar)(minus | 0x7e);
    return size >= 0x47700000u ? (uchar)(minus | 0x7c) : clamped_f8e5m2(x);
}
static inline float from_bf16(ushort x) {
    return bits_as<float>((uint)x << 16);
}

/* ------------------------------------------------------------------------------- other elements */

static inline bool from_pred(uchar x) {
    return x != 0;
}
static inline uchar to_pred(bool x) {
    return (uchar)x;
}

/* Integers of at most 32 bits are computed as int or uint; memory holds them in `cell`. */
#define SMALL_SIGNED(name, cell, bits)                                                             \
    static inline int from_##name(cell x) {                                                        \
        return x;                                                                                  \
    }                                                                                              \
    static inline cell to_##name(int x) {                                                          \
        return (cell)((int)((uint)x << (32 - bits)) >> (32 - bits));                               \
    }
SMALL_SIGNED(s1, signed char, 1)
SMALL_SIGNED(s2, signed char, 2)
SMALL_SIGNED(s4, signed char, 4)
SMALL_SIGNED(s8, signed char, 8)
SMALL_SIGNED(s16, short, 16)
#undef SMALL_SIGNED
#define SMALL_UNSIGNED(name, cell, bits)                                                           \
    static inline uint from_##name(cell x) {                                                       \
        return x;                                                                                  \
    }                                                                                              \
    static inline cell to_##name(uint x) {                                                         \
        return (cell)(x << (32 - bits) >> (32 - bits));                                            \
    }
SMALL_UNSIGNED(u1, uchar, 1)
SMALL_UNSIGNED(u2, uchar, 2)
SMALL_UNSIGNED(u4, uchar, 4)
SMALL_UNSIGNED(u8, uchar, 8)
SMALL_UNSIGNED(u16, ushort, 16)
#undef SMALL_UNSIGNED

/* -------------------------------------------------------------------------------------- convert */

/* Rounds to odd. Rounding again, to at least two bits less, is like rounding once. */
static inline float shorten(double x) {
    const float toward = ptx_shorten(x);
    if ((double)toward == x || x != x) return toward;
    return bits_as<float>(bits_as<uint>(toward) | 1);
}

#define TO_FLOAT(name)                                                                             \
    template <typename T> static inline float convert_##name(T x) {                                \
        return from_##name(to_##name((float)x));                                                   \
    }                                                                                              \
    static inline float convert_##name(double x) {                                                 \
        return from_##name(to_##name(shorten(x)));                                                 \
    }
TO_FLOAT(f4e2m1fn)
TO_FLOAT(f6e2m3fn)
TO_FLOAT(f6e3m2fn)
TO_FLOAT(f8e3m4)
TO_FLOAT(f8e4m3)
TO_FLOAT(f8e4m3b11fnuz)
TO_FLOAT(f8e4m3fn)
TO_FLOAT(f8e4m3fnuz)
TO_FLOAT(f8e5m2)
TO_FLOAT(f8e5m2fnuz)
TO_FLOAT(f8e8m0fnu)
TO_FLOAT(f16)
TO_FLOAT(bf16)
#undef TO_FLOAT
template <typename T> static inline float convert_f32(T x) {
    return (float)x;
}
template <typename T> static inline double convert_f64(T x) {
    return (double)x;
}
template <typename T> static inline bool convert_pred(T x) {
    return x != 0;
}

/* Integers wrap; floats are truncated toward zero; too large values become the nearest end of the
 * range, and NaN becomes 0. */
template <typename To> static inline To cut(double x, double low, double above, To lowest, To highest) {
    return x != x ? (To)0 : x >= above ? highest : x <= low ? lowest : (To)x;
}
#define TO_SIGNED(name, compute, bits, wrap)                                                       \
    template <typename T> static inline compute convert_##name(T x) {                              \
        return wrap((compute)x);                                                                   \
    }                                                                                              \
    static inline compute convert_##name(double x) {                                               \
        const double end = (double)(1ull << (bits - 1));                                           \
        const compute highest = (compute)((1ull << (bits - 1)) - 1);                               \
        return cut<compute>(x, -end, end, (compute)(-highest - 1), highest);                       \
    }                                                                                              \
    static inline compute convert_##name(float x) {                                                \
        return convert_##name((double)x);                                                          \
    }
#define TO_UNSIGNED(name, compute, bits, wrap)                                                     \
    template <typename T> static inline compute convert_##name(T x) {                              \
        return wrap((compute)x);                                                                   \
    }                                                                                              \
    static inline compute convert_##name(double x) {                                               \
        const double end = 2 * (double)(1ull << (bits - 1));                                       \
        return cut<compute>(x, 0, end, 0, (compute)(~0ull >> (64 - bits)));                        \
    }                                                                                              \
    static inline compute convert_##name(float x) {                                                \
        return convert_##name((double)x);                                                          \
    }
TO_SIGNED(s1, int, 1, to_s1)
TO_SIGNED(s2, int, 2, to_s2)
TO_SIGNED(s4, int, 4, to_s4)
TO_SIGNED(s8, int, 8, to_s8)
TO_SIGNED(s16, int, 16, to_s16)
TO_SIGNED(s32, int, 32, )
TO_SIGNED(s64, int64, 64, )
TO_UNSIGNED(u1, uint, 1, to_u1)
TO_UNSIGNED(u2, uint, 2, to_u2)
TO_UNSIGNED(u4, uint, 4, to_u4)
TO_UNSIGNED(u8, uint, 8, to_u8)
TO_UNSIGNED(u16, uint, 16, to_u16)
TO_UNSIGNED(u32, uint, 32, )
TO_UNSIGNED(u64, uint64, 64, )
#undef TO_SIGNED
#undef TO_UNSIGNED

