/* Conversions by hardware instructions, from sm_89 on, for generated kernels. The other functions
 * for kernels are in element.cuh and opcodes.cuh. */

static inline unsigned short ptx_to_f16(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
static inline float ptx_from_f16(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
static inline unsigned short ptx_to_bf16(float x) {
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

/* To the nearest; what is too large becomes the largest. The low byte is that of the last operand.
 */
static inline unsigned char ptx_to_e4m3(float x) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return (unsigned char)pair;
}
static inline unsigned char ptx_to_e5m2(float x) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return (unsigned char)pair;
}
static inline float ptx_from_e4m3(unsigned char bits) {
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)bits));
    return ptx_from_f16((unsigned short)pair);
}
static inline float ptx_from_e5m2(unsigned char bits) {
    return ptx_from_f16((unsigned short)((unsigned)bits << 8));
}

/* Toward zero. */
static inline float ptx_shorten(double x) {
    float y;
    asm("cvt.rz.f32.f64 %0, %1;" : "=f"(y) : "d"(x));
    return y;
}
