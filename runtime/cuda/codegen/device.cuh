/* Conversions by hardware instructions, from sm_89 on, for generated kernels: from_<type>() and
 * to_<type>() as element.cuh has them for other types. */

/* Two floats at once, of which the last operand is in the low half: the conversion of one is a slower
 * instruction (F2F, not F2FP). */
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

/* clamped_<type>() rounds to nearest; a value above the type's range becomes its largest. The
 * instruction puts its last operand into the low byte. */
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
static inline float from_f8e5m2(unsigned char bits) {
    return from_f16((unsigned short)((unsigned)bits << 8));
}

/* The larger and the smaller of two floats: a NaN if one is, and -0 is less than 0. */
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

/* Returns 1/x, one step off at most. */
static inline float ptx_reciprocal(float x) {
    float y;
    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Rounds toward zero. */
static inline float ptx_shorten(double x) {
    float y;
    asm("cvt.rz.f32.f64 %0, %1;" : "=f"(y) : "d"(x));
    return y;
}
