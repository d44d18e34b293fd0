/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise operations: for each operation, a loop for every lane that it supports, and the
 * maximum difference between two good implementations.
 *
 * The ulps of the transcendental functions are the measured errors on dense inputs, rounded up, of
 * XLA's CPU compiler, whose approximations are coarser than those of the C library. The ulps of
 * arithmetic operations allow for a fused multiply-add or a reciprocal in one implementation. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"

/* ----------------------------------------------------------------------------- making the loops */

typedef double _Complex complex128;

/* A loop over lanes of type T to lanes of type R. `x`, `y` and `z` are the operands' elements. */
#define LOOP1(name, T, R, expr)                                                                    \
    HLO_CLONED static void name(const hlo_lanes *l) {                                              \
        const T *in = l->in[0];                                                                    \
        R *out = l->out;                                                                           \
        const int64_t count = l->count;                                                            \
        HLO_IN_PLACE                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T x = in[i];                                                                     \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    }
#define LOOP2(name, T, R, expr)                                                                    \
    HLO_CLONED static void name(const hlo_lanes *l) {                                              \
        const T *in0 = l->in[0], *in1 = l->in[1];                                                  \
        R *out = l->out;                                                                           \
        const int64_t count = l->count;                                                            \
        HLO_IN_PLACE                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T x = in0[i], y = in1[i];                                                        \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    }
#define LOOP3(name, T0, T, R, expr)                                                                \
    HLO_CLONED static void name(const hlo_lanes *l) {                                              \
        const T0 *in0 = l->in[0];                                                                  \
        const T *in1 = l->in[1], *in2 = l->in[2];                                                  \
        R *out = l->out;                                                                           \
        const int64_t count = l->count;                                                            \
        HLO_IN_PLACE                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T0 x = in0[i];                                                                   \
            const T y = in1[i], z = in2[i];                                                        \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    }

#define KERNEL(name, ...)                                                                          \
    static const hlo_elementwise ops_##name[] = {__VA_ARGS__};                                     \
    const hlo_kernel hlo_eval_##name = {                                                           \
        .run = hlo_elementwise_run, .error = HLO_ERROR_ELEMENTWISE, .ops = ops_##name};

#define FLOATS(name) [HLO_LANE_F32] = name##_f32, [HLO_LANE_F64] = name##_f64
#define INTS(name) [HLO_LANE_S64] = name##_s64, [HLO_LANE_U64] = name##_u64
#define COMPLEX(name) [HLO_LANE_C128] = name##_c128
/* Wrapping operations treat signed and unsigned lanes alike. */
#define WRAPS(name) [HLO_LANE_S64] = name##_u64, [HLO_LANE_U64] = name##_u64

/* Define an operation by a function of the C library: MATH for floats, MATH_COMPLEX also for
 * complex numbers. */
#define MATH(name, ulps, function)                                                                 \
    LOOP1(name##_f32, float, float, function##f(x))                                                \
    LOOP1(name##_f64, double, double, function(x))                                                 \
    KERNEL(name, {1, HLO_OUT_SAME, ulps, 0, {FLOATS(name)}})
#define MATH_COMPLEX(name, ulps, function)                                                         \
    LOOP1(name##_f32, float, float, function##f(x))                                                \
    LOOP1(name##_f64, double, double, function(x))                                                 \
    LOOP1(name##_c128, complex128, complex128, c##function(x))                                     \
    KERNEL(name, {1, HLO_OUT_SAME, ulps, 0, {FLOATS(name), COMPLEX(name)}})

/* ---------------------------------------------------------------------------------- one operand */

MATH_COMPLEX(acos, 4, acos)
MATH_COMPLEX(acosh, 4, acosh)
MATH_COMPLEX(asin, 4, asin)
MATH_COMPLEX(asinh, 4, asinh)
MATH_COMPLEX(atanh, 4, atanh)
MATH(cbrt, 4, cbrt)
MATH(ceil, 0, ceil)
MATH_COMPLEX(cosine, 4, cos)
MATH_COMPLEX(cosh, 8, cosh)
MATH(erf, 8, erf)
static void exponential_f32(const hlo_lanes *l) {
    hlo_float_exp_row(l->in[0], l->count, l->out);
}
LOOP1(exponential_f64, double, double, exp(x))
LOOP1(exponential_c128, complex128, complex128, cexp(x))
KERNEL(exponential, {1, HLO_OUT_SAME, 4, 0, {FLOATS(exponential), COMPLEX(exponential)}})
MATH(expm1, 8, expm1)
MATH(floor, 0, floor)
MATH_COMPLEX(log, 4, log)
MATH(log1p, 4, log1p)
MATH(round_afz, 0, round)
MATH(round_even, 0, rint)
MATH_COMPLEX(sine, 4, sin)
MATH_COMPLEX(sinh, 8, sinh)
MATH_COMPLEX(sqrt, 2, sqrt)
MATH_COMPLEX(tan, 8, tan)
MATH_COMPLEX(tanh, 8, tanh)

LOOP1(abs_f32, float, float, fabsf(x))
LOOP1(abs_f64, double, double, fabs(x))
LOOP1(abs_s64, int64_t, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
LOOP1(abs_u64, uint64_t, uint64_t, x)
LOOP1(abs_c128, complex128, double, cabs(x))
KERNEL(abs, {1, HLO_OUT_REAL, 0, 0, {FLOATS(abs), INTS(abs), COMPLEX(abs)}})

LOOP1(negate_f32, float, float, -x)
LOOP1(negate_f64, double, double, -x)
LOOP1(negate_u64, uint64_t, uint64_t, 0 - x)
LOOP1(negate_c128, complex128, complex128, -x)
KERNEL(negate, {1, HLO_OUT_SAME, 0, 0, {FLOATS(negate), WRAPS(negate), COMPLEX(negate)}})

LOOP1(logistic_of_exp, float, float, 1 / (1 + x))
static void logistic_f32(const hlo_lanes *l) {
    hlo_lanes inner = *l;
    negate_f32(l);
    hlo_float_exp_row(l->out, l->count, l->out);
    inner.in[0] = l->out;
    logistic_of_exp(&inner);
}
LOOP1(logistic_f64, double, double, 1 / (1 + exp(-x)))
LOOP1(logistic_c128, complex128, complex128, 1 / (1 + cexp(-x)))
KERNEL(logistic, {1, HLO_OUT_SAME, 8, 0, {FLOATS(logistic), COMPLEX(logistic)}})

LOOP1(rsqrt_f32, float, float, 1 / sqrtf(x))
LOOP1(rsqrt_f64, double, double, 1 / sqrt(x))
LOOP1(rsqrt_c128, complex128, complex128, 1 / csqrt(x))
KERNEL(rsqrt, {1, HLO_OUT_SAME, 4, 0, {FLOATS(rsqrt), COMPLEX(rsqrt)}})

LOOP1(sign_f32, float, float, x > 0 ? 1 : x < 0 ? -1 : x)
LOOP1(sign_f64, double, double, x > 0 ? 1 : x < 0 ? -1 : x)
LOOP1(sign_s64, int64_t, int64_t, (x > 0) - (x < 0))
LOOP1(sign_u64, uint64_t, uint64_t, x > 0)
LOOP1(sign_c128, complex128, complex128, x == 0 ? x : x / cabs(x))
KERNEL(sign, {1, HLO_OUT_SAME, 0, 0, {FLOATS(sign), INTS(sign), COMPLEX(sign)}})

LOOP1(is_finite_f32, float, uint64_t, isfinite(x) != 0)
LOOP1(is_finite_f64, double, uint64_t, isfinite(x) != 0)
KERNEL(is_finite, {1, HLO_OUT_PRED, 0, 0, {FLOATS(is_finite)}})

LOOP1(real_f32, float, float, x)
LOOP1(real_f64, double, double, x)
LOOP1(real_c128, complex128, double, creal(x))
KERNEL(real, {1, HLO_OUT_REAL, 0, 0, {FLOATS(real), COMPLEX(real)}})
LOOP1(imag_f32, float, float, 0 * x)
LOOP1(imag_f64, double, double, 0 * x)
LOOP1(imag_c128, complex128, double, cimag(x))
KERNEL(imag, {1, HLO_OUT_REAL, 0, 0, {FLOATS(imag), COMPLEX(imag)}})

/* Bits of an element without its sign extension. */
#define LOW(x) ((uint64_t)(x) << (64 - l->bits) >> (64 - l->bits))
#define HIGH(x) ((int64_t)((uint64_t)(x) << (64 - l->bits)) >> (64 - l->bits))

LOOP1(not_u64, uint64_t, uint64_t, LOW(~x))
KERNEL(not, {1, HLO_OUT_SAME, 0, 0, {WRAPS(not )}})
LOOP1(popcnt_u64, uint64_t, uint64_t, __builtin_popcountll(LOW(x)))
KERNEL(popcnt, {1, HLO_OUT_SAME, 0, 0, {WRAPS(popcnt)}})
LOOP1(clz_u64, uint64_t, uint64_t, LOW(x) ? __builtin_clzll(LOW(x)) - (64 - l->bits) : l->bits)
KERNEL(clz, {1, HLO_OUT_SAME, 0, 0, {WRAPS(clz)}})

/* --------------------------------------------------------------------------------- two operands */

#define ARITHMETIC(name, ulps, op)                                                                 \
    LOOP2(name##_f32, float, float, x op y)                                                        \
    LOOP2(name##_f64, double, double, x op y)                                                      \
    LOOP2(name##_u64, uint64_t, uint64_t, x op y)                                                  \
    LOOP2(name##_c128, complex128, complex128, x op y)                                             \
    KERNEL(name, {2, HLO_OUT_SAME, ulps, 0, {FLOATS(name), WRAPS(name), COMPLEX(name)}})
ARITHMETIC(add, 1, +)
ARITHMETIC(subtract, 1, -)
ARITHMETIC(multiply, 1, *)

LOOP2(divide_f32, float, float, x / y)
LOOP2(divide_f64, double, double, x / y)
LOOP2(divide_s64, int64_t, int64_t, y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
LOOP2(divide_u64, uint64_t, uint64_t, y ? x / y : UINT64_MAX)
LOOP2(divide_c128, complex128, complex128, x / y)
KERNEL(divide, {2, HLO_OUT_SAME, 2, 0, {FLOATS(divide), INTS(divide), COMPLEX(divide)}})
LOOP2(remainder_f32, float, float, fmodf(x, y))
LOOP2(remainder_f64, double, double, fmod(x, y))
LOOP2(remainder_s64, int64_t, int64_t, y == 0 ? x : y == -1 ? 0 : x % y)
LOOP2(remainder_u64, uint64_t, uint64_t, y ? x % y : x)
KERNEL(remainder, {2, HLO_OUT_SAME, 0, 0, {FLOATS(remainder), INTS(remainder)}})

LOOP2(maximum_f32, float, float, HLO_LARGER(x, y))
LOOP2(maximum_f64, double, double, HLO_LARGER(x, y))
LOOP2(maximum_s64, int64_t, int64_t, x > y ? x : y)
LOOP2(maximum_u64, uint64_t, uint64_t, x > y ? x : y)
KERNEL(maximum, {2, HLO_OUT_SAME, 0, 0, {FLOATS(maximum), INTS(maximum)}})
LOOP2(minimum_f32, float, float, HLO_SMALLER(x, y))
LOOP2(minimum_f64, double, double, HLO_SMALLER(x, y))
LOOP2(minimum_s64, int64_t, int64_t, x < y ? x : y)
LOOP2(minimum_u64, uint64_t, uint64_t, x < y ? x : y)
KERNEL(minimum, {2, HLO_OUT_SAME, 0, 0, {FLOATS(minimum), INTS(minimum)}})

static uint64_t power_wrapped(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}
LOOP2(power_f32, float, float, powf(x, y))
LOOP2(power_f64, double, double, pow(x, y))
LOOP2(power_s64, int64_t, int64_t,
      y >= 0    ? (int64_t)power_wrapped((uint64_t)x, (uint64_t)y)
      : x == 1  ? 1
      : x == -1 ? (y & 1 ? -1 : 1)
                : 0)
LOOP2(power_u64, uint64_t, uint64_t, power_wrapped(x, y))
LOOP2(power_c128, complex128, complex128, cpow(x, y))
KERNEL(power, {2, HLO_OUT_SAME, 8, 0, {FLOATS(power), INTS(power), COMPLEX(power)}})

LOOP2(atan2_f32, float, float, atan2f(x, y))
LOOP2(atan2_f64, double, double, atan2(x, y))
KERNEL(atan2, {2, HLO_OUT_SAME, 4, 0, {FLOATS(atan2)}})

/* CMPLX() is missing in some compilers that are used with the C library. */
LOOP2(complex_f32, float, complex128, __builtin_complex((double)x, (double)y))
LOOP2(complex_f64, double, complex128, __builtin_complex(x, y))
KERNEL(complex, {2, HLO_OUT_COMPLEX, 0, 0, {FLOATS(complex)}})

#define BITWISE(name, op)                                                                          \
    LOOP2(name##_u64, uint64_t, uint64_t, x op y)                                                  \
    KERNEL(name, {2, HLO_OUT_SAME, 0, 0, {WRAPS(name)}})
BITWISE(and, &)
BITWISE(or, |)
BITWISE(xor, ^)

#define SHIFTS(y) (LOW(y) < (uint64_t)l->bits)
LOOP2(shift_left_u64, uint64_t, uint64_t, SHIFTS(y) ? x << LOW(y) : 0)
KERNEL(shift_left, {2, HLO_OUT_SAME, 0, 0, {WRAPS(shift_left)}})
LOOP2(shift_right_logical_u64, uint64_t, uint64_t, SHIFTS(y) ? LOW(x) >> LOW(y) : 0)
KERNEL(shift_right_logical, {2, HLO_OUT_SAME, 0, 0, {WRAPS(shift_right_logical)}})
LOOP2(shift_right_arithmetic_u64, uint64_t, uint64_t,
      HIGH(x) >> (SHIFTS(y) ? LOW(y) : (uint64_t)l->bits - 1))
KERNEL(shift_right_arithmetic, {2, HLO_OUT_SAME, 0, 0, {WRAPS(shift_right_arithmetic)}})

__extension__ typedef __int128 wide_signed;
__extension__ typedef unsigned __int128 wide_unsigned;
LOOP2(mulhi_s64, int64_t, int64_t, (int64_t)((wide_signed)x *y >> l->bits))
LOOP2(mulhi_u64, uint64_t, uint64_t, (uint64_t)((wide_unsigned)x *y >> l->bits))
KERNEL(mulhi, {2, HLO_OUT_SAME, 0, 0, {INTS(mulhi)}})

/* ------------------------------------------------------------------------------- three operands */

LOOP3(clamp_f32, float, float, float, HLO_SMALLER(HLO_LARGER(x, y), z))
LOOP3(clamp_f64, double, double, double, HLO_SMALLER(HLO_LARGER(x, y), z))
LOOP3(clamp_s64, int64_t, int64_t, int64_t, x > y ? (x < z ? x : z) : (y < z ? y : z))
LOOP3(clamp_u64, uint64_t, uint64_t, uint64_t, x > y ? (x < z ? x : z) : (y < z ? y : z))
KERNEL(clamp, {3, HLO_OUT_SAME, 0, 0, {FLOATS(clamp), INTS(clamp)}})

/* Floats that would be widened are copied as codes, which preserves the payloads of NaNs. */
LOOP3(select_f32, uint64_t, float, float, x ? y : z)
LOOP3(select_f64, uint64_t, double, double, x ? y : z)
LOOP3(select_u64, uint64_t, uint64_t, uint64_t, x ? y : z)
LOOP3(select_c128, uint64_t, complex128, complex128, x ? y : z)
KERNEL(select, {3, HLO_OUT_SAME, 0, 16, {FLOATS(select), WRAPS(select), COMPLEX(select)}})

/* -------------------------------------------------------------------------------------- compare */

/* Ranks a code in the total order -NaN < -inf < ... < -0 < 0 < ... < inf < NaN. In formats without
 * -0, the code of -0 is -NaN. */
static inline uint64_t total(uint64_t code, const hlo_lanes *l) {
    uint64_t size = code & ~l->sign;
    if (!(code & l->sign)) return code | l->sign;
    return l->signed_zero ? l->sign - 1 - size : (l->sign - size) & (l->sign - 1);
}

#define COMPARE(name, op)                                                                          \
    LOOP2(name##_f32, float, uint64_t, x op y)                                                     \
    LOOP2(name##_f64, double, uint64_t, x op y)                                                    \
    LOOP2(name##_s64, int64_t, uint64_t, x op y)                                                   \
    LOOP2(name##_u64, uint64_t, uint64_t, x op y)                                                  \
    LOOP2(name##_total, uint64_t, uint64_t, total(x, l) op total(y, l))
#define COMPARES(name)                                                                             \
    {                                                                                              \
        2, HLO_OUT_PRED, 0, 0, {                                                                   \
            FLOATS(name), INTS(name)                                                               \
        }                                                                                          \
    }
#define COMPARES_EQUAL(name)                                                                       \
    {                                                                                              \
        2, HLO_OUT_PRED, 0, 0, {                                                                   \
            FLOATS(name), INTS(name), COMPLEX(name)                                                \
        }                                                                                          \
    }
#define COMPARES_TOTAL(name)                                                                       \
    {                                                                                              \
        2, HLO_OUT_PRED, 0, 64, {                                                                  \
            [HLO_LANE_S64] = name##_s64, [HLO_LANE_U64] = name##_total                             \
        }                                                                                          \
    }
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
LOOP2(eq_c128, complex128, uint64_t, x == y)
LOOP2(ne_c128, complex128, uint64_t, x != y)

static const hlo_elementwise compares[] = {
    COMPARES_EQUAL(eq), COMPARES_EQUAL(ne), COMPARES(lt),       COMPARES(le),
    COMPARES(gt),       COMPARES(ge),       COMPARES_TOTAL(eq), COMPARES_TOTAL(ne),
    COMPARES_TOTAL(lt), COMPARES_TOTAL(le), COMPARES_TOTAL(gt), COMPARES_TOTAL(ge)};

static int pick_compare(const hlo_instruction *instr) {
    static const char words[][3] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    const char *word = hlo_instr_str(instr, HLO_ATTR_DIRECTION);
    const char *type = hlo_instr_str(instr, HLO_ATTR_TYPE);
    for (int i = 0; word && i < 6; i++)
        if (strcmp(word, words[i]) == 0)
            return i + (type && strcmp(type, "TOTALORDER") == 0 ? 6 : 0);
    return -1;
}

const hlo_kernel hlo_eval_compare = {.run = hlo_elementwise_run,
                                     .error = HLO_ERROR_COMPARE_OP,
                                     .ops = compares,
                                     .pick = pick_compare};

/* ----------------------------------------------------------------------------- reduce-precision */

hlo_type hlo_reduced_type(hlo_type type) {
    if (hlo_types[type].bits > 8) return type;
    return type == HLO_TYPE_F8E8M0FNU ? HLO_TYPE_F32 : HLO_TYPE_F16;
}

/* Rounds to `mantissa` bits, counted from the last place of subnormals if the value is a subnormal
 * of `type`. An exponent narrower than the type's overflows to infinity and underflows to zero.
 * Ties go to the even code: without a mantissa, to the even exponent. */
static double reduce_precision(double value, hlo_type type, int exponent, int mantissa) {
    if (value == 0 || !isfinite(value)) return value;
    type = hlo_reduced_type(type);
    int digits = hlo_float_precision(type), wide = hlo_types[type].bits - digits;
    int highest = (1 << (wide - 1)) - 1, bias = (1 << (exponent - 1)) - 1, at;
    frexp(value, &at); /* value = [0.5, 1) * 2^at */
    double rounded = value;
    if (mantissa < digits - 1) {
        bool normal = at > 1 - highest;
        int place = (normal ? at - 1 : 1 - highest) - mantissa;
        double units = ldexp(value, -place);
        bool down = mantissa == 0 && normal && fabs(units) == 1.5 && (at - 1 + highest) % 2 == 0;
        rounded = ldexp(down ? copysign(1, value) : rint(units), place);
    }
    if (exponent >= wide) return rounded;
    if (fabs(rounded) >= ldexp(1, bias + 1)) return copysign((double)INFINITY, value);
    return fabs(rounded) < ldexp(1, 1 - bias) ? copysign(0.0, value) : rounded;
}

static void reduce_precision_f64(const hlo_lanes *l) {
    int exponent = (int)hlo_instr_int(l->instr, HLO_ATTR_EXPONENT_BITS, 11);
    int mantissa = (int)hlo_instr_int(l->instr, HLO_ATTR_MANTISSA_BITS, 52);
    const double *in = l->in[0];
    double *out = l->out;
    for (int64_t i = 0; i < l->count; i++)
        out[i] = reduce_precision(in[i], l->instr->shape->type, exponent, mantissa);
}

static void reduce_precision_f32(const hlo_lanes *l) {
    int exponent = (int)hlo_instr_int(l->instr, HLO_ATTR_EXPONENT_BITS, 8);
    int mantissa = (int)hlo_instr_int(l->instr, HLO_ATTR_MANTISSA_BITS, 23);
    const float *in = l->in[0];
    float *out = l->out;
    for (int64_t i = 0; i < l->count; i++)
        out[i] = (float)reduce_precision((double)in[i], l->instr->shape->type, exponent, mantissa);
}
KERNEL(reduce_precision, {1, HLO_OUT_SAME, 0, 0, {FLOATS(reduce_precision)}})

/* ----------------------------------------------------------------------------------- the driver */

const hlo_elementwise *hlo_kernel_elementwise(const hlo_instruction *instr) {
    const hlo_kernel *kernel = hlo_kernel_of(instr->op);
    if (!kernel || !kernel->ops) return NULL;
    int which = kernel->pick ? kernel->pick(instr) : 0;
    return which < 0 ? NULL : &kernel->ops[which];
}

static hlo_type loaded_type(const hlo_elementwise *op, hlo_type type) {
    if (!hlo_type_is_float(type) || hlo_types[type].bits > op->codes) return type;
    switch (hlo_types[type].bytes) {
    case 1: return HLO_TYPE_U8;
    case 2: return HLO_TYPE_U16;
    case 4: return HLO_TYPE_U32;
    default: return HLO_TYPE_U64;
    }
}

hlo_loop *hlo_elementwise_loop(const hlo_elementwise *op, hlo_type type) {
    hlo_lane lane = hlo_lane_of(loaded_type(op, type));
    return lane == HLO_LANE_NONE ? NULL : op->loop[lane];
}

const char *hlo_lane_op_init(hlo_lane_op *d, const hlo_instruction *instr, const hlo_type *operands,
                             hlo_type result) {
    const hlo_elementwise *op = hlo_kernel_elementwise(instr);
    if (!op) return "invalid attributes";
    *d = (hlo_lane_op){.instr = instr, .arity = op->arity};
    for (uint32_t i = 0; i < op->arity; i++) d->types[i] = loaded_type(op, operands[i]);
    d->result = loaded_type(op, result);
    hlo_type last = operands[op->arity - 1];
    hlo_lane lane = hlo_lane_of(d->types[op->arity - 1]);
    if (d->types[op->arity - 1] != last) d->sign = hlo_float_sign(last);
    d->signed_zero = d->sign && !isnan(hlo_float_decode(last, d->sign));
    if (lane != HLO_LANE_NONE) d->loop = op->loop[lane];
    if (!d->loop) return "the operation is not defined for this element type";
    hlo_lane real = lane == HLO_LANE_C128 ? HLO_LANE_F64 : lane;
    d->produced = op->out == HLO_OUT_PRED      ? HLO_LANE_U64
                  : op->out == HLO_OUT_REAL    ? real
                  : op->out == HLO_OUT_COMPLEX ? HLO_LANE_C128
                                               : lane;
    return NULL;
}

void hlo_lane_op_run(const hlo_lane_op *d, int64_t count, const void *const *in, void *out) {
    hlo_lanes lanes = {.count = count,
                       .out = out,
                       .bits = hlo_types[d->types[0]].bits,
                       .sign = d->sign,
                       .signed_zero = d->signed_zero,
                       .instr = d->instr};
    for (uint32_t i = 0; i < d->arity; i++) lanes.in[i] = in[i];
    d->loop(&lanes);
}

static void run_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_lane_op *d = arg;
    hlo_chunk in[3], out, cast;
    hlo_lane result = hlo_lane_of(d->result);
    bool direct = d->produced == result && steps[0] == hlo_types[d->result].bytes &&
                  hlo_type_is_lane(d->result);
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        const void *lanes[3];
        for (uint32_t i = 0; i < d->arity; i++)
            lanes[i] = hlo_lane_view(d->types[i], data[i + 1] + done * steps[i + 1], steps[i + 1],
                                     n, &in[i]);
        char *to = data[0] + done * steps[0];
        hlo_lane_op_run(d, n, lanes, direct ? (void *)to : &out);
        if (direct) continue;
        const void *from = &out;
        if (d->produced != result) {
            hlo_lane_cast(d->produced, result, &out, n, &cast);
            from = &cast;
        }
        hlo_lane_store(d->result, from, n, to, steps[0]);
    }
}

hlo_status hlo_elementwise_run(hlo_call *call) {
    hlo_lane_op d;
    hlo_type types[3];
    const hlo_view *views[4] = {&call->results[0]};
    uint32_t count = call->operand_count < 3 ? call->operand_count : 3;
    for (uint32_t i = 0; i < count; i++) {
        types[i] = call->operands[i].type;
        views[i + 1] = &call->operands[i];
    }
    const char *why = hlo_lane_op_init(&d, call->instr, types, call->results[0].type);
    if (why) return hlo_call_refuse(call, why);
    hlo_views_run(call->env, 1 + d.arity, views, run_row, &d);
    return HLO_OK;
}
