/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions by hardware instructions for generated kernels: from_<type>() and to_<type>(), like
 * element.cuh for other types. Before sm_89, no instruction converts 8-bit types. */

/* Waits until the previous kernels have ended and their writes are visible, then lets the next
 * kernels start, which also wait. Before sm_90, no kernel starts early. */
static inline void wait_for_kernels() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Converts two floats at once; the last operand is in the low half. Converting one float is a
 * slower instruction (F2F instead of F2FP). */
static inline unsigned short to_f16(float x) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
    return (unsigned short)pair;
}
static inline float from_f16(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
static inline unsigned short to_bf16(float x) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
    return (unsigned short)pair;
}

/* clamped_<type>() rounds to nearest; a value above the type's range becomes its largest value. The
 * instruction puts its last operand into the low byte. */
#if __CUDA_ARCH__ >= 890
static inline unsigned char clamped_f8e4m3fn(float x) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return (unsigned char)pair;
}
static inline unsigned char clamped_f8e5m2(float x) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return (unsigned char)pair;
}
static inline float from_f8e4m3fn(unsigned char bits) {
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)bits));
    return from_f16((unsigned short)pair);
}
#else
/* Rounds to a type with M fraction bits and smallest normal exponent LEAST. A number below
 * 2^LEAST is rounded by the addition of `steps`, whose last bit is the smallest positive value. Any
 * other number is rounded by an integer addition to its bits, which may carry into the exponent. */
template <int M, int LEAST> static inline unsigned char rounded(float x, float largest) {
    const float size = fabsf(x) < largest ? fabsf(x) : largest;
    const float steps = __int_as_float((127 + LEAST - M + 23) << 23);
    const int minus = __float_as_int(x) >> 24 & 0x80, bits = __float_as_int(size);
    const int carried = bits + (1 << (22 - M)) - 1 + (bits >> (23 - M) & 1);
    const int code = bits < (127 + LEAST) << 23
                         ? __float_as_int(size + steps) - __float_as_int(steps)
                         : (carried >> (23 - M)) - ((126 + LEAST) << M);
    return (unsigned char)(minus | code);
}
static inline unsigned char clamped_f8e4m3fn(float x) {
    return x != x ? 0x7f : rounded<3, -6>(x, 448.0f);
}
static inline unsigned char clamped_f8e5m2(float x) {
    return x != x ? 0x7f : rounded<2, -14>(x, 57344.0f);
}
static inline float from_f8e4m3fn(unsigned char bits) {
    const unsigned size = bits & 0x7f;
    const float x = from_f16((unsigned short)(size == 0x7f ? 0x7fff : size << 7 | (bits & 0x80) << 8));
    return x * 256;
}
#endif
static inline float from_f8e5m2(unsigned char bits) {
    return from_f16((unsigned short)((unsigned)bits << 8));
}

/* The larger and the smaller of two floats: NaN if one is NaN, and -0 is less than 0. */
static inline float ptx_maximum(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
static inline float ptx_minimum(float x, float y) {
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

/* Return x of the thread `step` after this one, and of the thread with the number `lane`, in a warp
 * all of whose threads call it. */
template <typename T> static inline T shuffled_down(T x, int step) {
    return __shfl_down_sync(0xffffffffu, x, step);
}
template <typename T> static inline T shuffled_from(T x, int lane) {
    return __shfl_sync(0xffffffffu, x, lane);
}

/* Returns 1/x, at most one step off. Subnormal values of x or 1/x count as 0. */
static inline float ptx_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Rounds toward zero. */
static inline float ptx_shorten(double x) {
    float y;
    asm("cvt.rz.f32.f64 %0, %1;" : "=f"(y) : "d"(x));
    return y;
}

/* Adds to a tile of 16 rows and 8 columns, in the registers of a warp, the product of tiles with 32 FP8
 * terms: the PTX manual, "Matrix fragments for mma.m16n8k32". */
#define MMA(name_a, name_b, type_a, type_b)                                                        \
    static inline void mma_##name_a##_##name_b(float &d0, float &d1, float &d2, float &d3,         \
                                               unsigned a0, unsigned a1, unsigned a2, unsigned a3, \
                                               unsigned b0, unsigned b1) {                         \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." type_a "." type_b ".f32 "            \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                     : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                                      \
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                      \
    }
MMA(f8e4m3fn, f8e4m3fn, "e4m3", "e4m3")
MMA(f8e4m3fn, f8e5m2, "e4m3", "e5m2")
MMA(f8e5m2, f8e4m3fn, "e5m2", "e4m3")
MMA(f8e5m2, f8e5m2, "e5m2", "e5m2")
#undef MMA
