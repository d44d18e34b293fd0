/* SPDX-License-Identifier: Apache-2.0 */
/* Opcodes in generated kernels: op_<opcode>() computes the same as ir/eval, on the types of
 * element.cuh. */

/* -------------------------------------------------------------------------- floats: one operand */

#define MATH(name, function)                                                                       \
    static inline float op_##name(float x) {                                                       \
        return function##f(x);                                                                     \
    }                                                                                              \
    static inline double op_##name(double x) {                                                     \
        return function(x);                                                                        \
    }
MATH(abs, fabs)
MATH(acos, acos)
MATH(acosh, acosh)
MATH(asin, asin)
MATH(asinh, asinh)
MATH(atanh, atanh)
MATH(cbrt, cbrt)
MATH(ceil, ceil)
MATH(cosine, cos)
MATH(cosh, cosh)
MATH(erf, erf)
MATH(exponential, exp)
MATH(exponential_minus_one, expm1)
MATH(floor, floor)
MATH(log, log)
MATH(log_plus_one, log1p)
MATH(round_nearest_afz, round)
MATH(round_nearest_even, rint)
MATH(sine, sin)
MATH(sinh, sinh)
MATH(sqrt, sqrt)
MATH(tan, tan)
MATH(tanh, tanh)
#undef MATH

#define FLOATS1(name, expression)                                                                  \
    static inline float op_##name(float x) {                                                       \
        typedef float T;                                                                           \
        return expression;                                                                         \
    }                                                                                              \
    static inline double op_##name(double x) {                                                     \
        typedef double T;                                                                          \
        return expression;                                                                         \
    }
FLOATS1(negate, -x)
FLOATS1(sign, x > 0 ? (T)1 : x < 0 ? (T)-1 : x)
FLOATS1(logistic, (T)1 / ((T)1 + op_exponential(-x)))
FLOATS1(rsqrt, (T)1 / op_sqrt(x))
FLOATS1(real, x)
FLOATS1(imag, (T)0 * x)
#undef FLOATS1
template <typename T> static inline bool op_is_finite(T x) {
    return x - x == 0;
}

/* ------------------------------------------------------------------------ integers: one operand */

static inline int op_abs(int x) {
    return x < 0 ? (int)(0u - (uint)x) : x;
}
static inline int64 op_abs(int64 x) {
    return x < 0 ? (int64)(0ull - (uint64)x) : x;
}
template <typename T> static inline T op_abs(T x) {
    return x;
}
template <typename T> static inline T op_negate(T x) {
    return (T)(0ull - (uint64)x);
}
template <typename T> static inline T op_sign(T x) {
    return (T)((x > (T)0) - (x < (T)0));
}

/* ----------------------------------------------------------- integers, `bits` wide: one operand */

static inline uint64 low(uint64 x, int bits) {
    return x << (64 - bits) >> (64 - bits);
}
static inline bool op_not(bool x, int) {
    return !x;
}
template <typename T> static inline T op_not(T x, int) {
    return (T)~x;
}
template <typename T> static inline T op_popcnt(T x, int bits) {
    int count = 0;
    for (uint64 rest = low((uint64)x, bits); rest; rest &= rest - 1) count++;
    return (T)count;
}
template <typename T> static inline T op_count_leading_zeros(T x, int bits) {
    int count = bits;
    for (uint64 rest = low((uint64)x, bits); rest; rest >>= 1) count--;
    return (T)count;
}

/* --------------------------------------------------------------------------------- two operands */

#define ARITHMETIC(name, op)                                                                       \
    static inline float op_##name(float x, float y) {                                              \
        return x op y;                                                                             \
    }                                                                                              \
    static inline double op_##name(double x, double y) {                                           \
        return x op y;                                                                             \
    }                                                                                              \
    static inline bool op_##name(bool x, bool y) {                                                 \
        return ((int)x op(int) y) != 0;                                                            \
    }                                                                                              \
    template <typename T> static inline T op_##name(T x, T y) {                                    \
        return (T)((uint64)x op(uint64) y);                                                        \
    }
ARITHMETIC(add, +)
ARITHMETIC(subtract, -)
ARITHMETIC(multiply, *)
#undef ARITHMETIC

static inline float op_divide(float x, float y) {
    return x / y;
}
/* A divisor of bf16 values, as two factors: the reciprocal, rounded to nearest, and a power of two
 * without which the reciprocal, or its approximation, would exceed the range of f32. */
struct divisor_bf16 {
    float reciprocal, scale;
};
/* One Newton step rounds the approximation to nearest, because y has few bits; for 0 and infinities
 * it produces NaN. */
static inline divisor_bf16 divide_by(float y) {
    const float size = fabsf(y), least = 0x1p-125f;
    const float scale = size < least ? 0x1p24f : size > 1 / least ? 0x1p-24f : 1.0f;
    const float near = ptx_reciprocal(y * scale);
    const float nearest = fmaf(fmaf(-y * scale, near, 1.0f), near, near);
    return {nearest == nearest ? nearest : near, scale};
}
/* x / y for a result that is rounded to bf16. A quotient of significands of 8 bits is at least
 * 2^-17 of itself away from a boundary of rounding, which exceeds the errors here, or it is a
 * boundary among subnormal results. In that case the products are exact, because the reciprocal is
 * rounded to nearest. testdata/run/divide-bf16.hlo compares all of them. */
static inline float op_divide_bf16(float x, divisor_bf16 y) {
    return x * y.reciprocal * y.scale;
}
static inline double op_divide(double x, double y) {
    return x / y;
}
static inline int op_divide(int x, int y) {
    return y == 0 ? -1 : y == -1 ? (int)(0u - (uint)x) : x / y;
}
static inline int64 op_divide(int64 x, int64 y) {
    return y == 0 ? -1 : y == -1 ? (int64)(0ull - (uint64)x) : x / y;
}
template <typename T> static inline T op_divide(T x, T y) {
    return y ? (T)(x / y) : (T)~0ull;
}
static inline int op_remainder(int x, int y) {
    return y == 0 ? x : y == -1 ? 0 : x % y;
}
static inline int64 op_remainder(int64 x, int64 y) {
    return y == 0 ? x : y == -1 ? 0 : x % y;
}
template <typename T> static inline T op_remainder(T x, T y) {
    return y ? (T)(x % y) : x;
}

/* NaN if either operand is NaN; -0 is less than 0. */
static inline bool is_minus(float x) {
    return bits_as<uint>(x) >> 31;
}
static inline bool is_minus(double x) {
    return bits_as<uint64>(x) >> 63;
}
template <typename T> static inline bool is_minus(T x) {
    return x < (T)0;
}
template <typename T> static inline T op_maximum(T x, T y) {
    return x > y || x != x || (x == y && !is_minus(x)) ? x : y;
}
template <typename T> static inline T op_minimum(T x, T y) {
    return x < y || x != x || (x == y && is_minus(x)) ? x : y;
}
static inline float op_maximum(float x, float y) {
    return ptx_maximum(x, y);
}
static inline float op_minimum(float x, float y) {
    return ptx_minimum(x, y);
}

#define MATH2(name, function)                                                                      \
    static inline float op_##name(float x, float y) {                                              \
        return function##f(x, y);                                                                  \
    }                                                                                              \
    static inline double op_##name(double x, double y) {                                           \
        return function(x, y);                                                                     \
    }
MATH2(atan2, atan2)
MATH2(power, pow)
MATH2(remainder, fmod)
#undef MATH2

template <typename T> static inline T op_power(T x, T y) {
    if (y < (T)0) return x == (T)1 ? (T)1 : x == (T)-1 ? (y & 1 ? (T)-1 : (T)1) : (T)0;
    uint64 result = 1, base = (uint64)x;
    for (uint64 rest = (uint64)y; rest; rest >>= 1, base *= base)
        if (rest & 1) result *= base;
    return (T)result;
}
template <typename T> static inline T op_and(T x, T y) {
    return (T)(x & y);
}
template <typename T> static inline T op_or(T x, T y) {
    return (T)(x | y);
}
template <typename T> static inline T op_xor(T x, T y) {
    return (T)(x ^ y);
}

/* Integers with `bits` bits. */
template <typename T> static inline T op_shift_left(T x, T y, int bits) {
    const uint64 by = low((uint64)y, bits);
    return by < (uint64)bits ? (T)((uint64)x << by) : (T)0;
}
template <typename T> static inline T op_shift_right_logical(T x, T y, int bits) {
    const uint64 by = low((uint64)y, bits);
    return by < (uint64)bits ? (T)(low((uint64)x, bits) >> by) : (T)0;
}
template <typename T> static inline T op_shift_right_arithmetic(T x, T y, int bits) {
    const uint64 by = low((uint64)y, bits);
    const int64 high = (int64)((uint64)x << (64 - bits)) >> (64 - bits);
    return (T)(high >> (by < (uint64)bits ? (int)by : bits - 1));
}
static inline uint64 high_product(uint64 x, uint64 y) {
    const uint64 a = x >> 32, b = (uint)x, c = y >> 32, d = (uint)y;
    const uint64 middle = (b * d >> 32) + (uint)(a * d) + (uint)(b * c);
    return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}
static inline uint64 op_mulhi(uint64 x, uint64 y, int) {
    return high_product(x, y);
}
static inline int64 op_mulhi(int64 x, int64 y, int) {
    const uint64 high = high_product((uint64)x, (uint64)y);
    return (int64)(high - (x < 0 ? (uint64)y : 0) - (y < 0 ? (uint64)x : 0));
}
static inline uint op_mulhi(uint x, uint y, int bits) {
    return (uint)((uint64)x * y >> bits);
}
static inline int op_mulhi(int x, int y, int bits) {
    return (int)((int64)x * y >> bits);
}

/* ------------------------------------------------------------------------------- three operands */

static inline float op_clamp(float x, float y, float z) {
    return op_minimum(op_maximum(x, y), z);
}
static inline double op_clamp(double x, double y, double z) {
    return op_minimum(op_maximum(x, y), z);
}
template <typename T> static inline T op_clamp(T x, T y, T z) {
    return x > y ? (x < z ? x : z) : (y < z ? y : z);
}

/* -------------------------------------------------------------------------------------- compare */

/* A float's code in the total order -NaN < -inf < ... < -0 < 0 < ... < inf < NaN, as on the CPU
 * (ir/eval/elementwise.c). */
static inline uint64 total(uint64 code, uint64 sign, bool signed_zero) {
    const uint64 size = code & ~sign;
    if (!(code & sign)) return code | sign;
    return signed_zero ? sign - 1 - size : (sign - size) & (sign - 1);
}
#define COMPARE(name, op)                                                                          \
    template <typename T> static inline bool compare_##name(T x, T y) {                            \
        return x op y;                                                                             \
    }                                                                                              \
    static inline bool compare_##name##_total(uint64 x, uint64 y, uint64 sign, bool signed_zero) { \
        return total(x, sign, signed_zero) op total(y, sign, signed_zero);                         \
    }
COMPARE(EQ, ==)
COMPARE(NE, !=)
COMPARE(LT, <)
COMPARE(LE, <=)
COMPARE(GT, >)
COMPARE(GE, >=)
#undef COMPARE

/* ----------------------------------------------------------------------------- reduce-precision */

/* As on the CPU (ir/eval/elementwise.c), for a type with `wide` exponent bits and `digits`
 * significand bits. */
static inline double op_reduce_precision(double x, int wide, int digits, int exponent,
                                         int mantissa) {
    if (x == 0 || x - x != 0) return x;
    const int highest = (1 << (wide - 1)) - 1, bias = (1 << (exponent - 1)) - 1;
    int at;
    frexp(x, &at);
    double rounded = x;
    if (mantissa < digits - 1) {
        const bool normal = at > 1 - highest;
        const int place = (normal ? at - 1 : 1 - highest) - mantissa;
        const double units = ldexp(x, -place);
        const bool down =
            mantissa == 0 && normal && fabs(units) == 1.5 && (at - 1 + highest) % 2 == 0;
        rounded = ldexp(down ? copysign(1.0, x) : rint(units), place);
    }
    if (exponent >= wide) return rounded;
    if (fabs(rounded) >= ldexp(1.0, bias + 1)) return copysign((double)float_inf(), x);
    return fabs(rounded) < ldexp(1.0, 1 - bias) ? copysign(0.0, x) : rounded;
}
static inline float op_reduce_precision(float x, int wide, int digits, int exponent, int mantissa) {
    return (float)op_reduce_precision((double)x, wide, digits, exponent, mantissa);
}

/* --------------------------------------------------------------------------------------- places */

/* Clamps `value`, of any integer type, to [0, high]. */
template <typename T> static inline int64 place(T value, int64 high) {
    return value < (T)0 ? 0 : (uint64)value > (uint64)high ? high : (int64)value;
}
/* True if `value` is in [0, high]. */
template <typename T> static inline bool fits(T value, int64 high) {
    return !(value < (T)0) && high >= 0 && (uint64)value <= (uint64)high;
}
