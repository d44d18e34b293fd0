/* SPDX-License-Identifier: Apache-2.0 */
// Definitions with which generated kernels are valid C++ for the host: the keywords of CUDA C, and
// the functions of device.cuh, here without hardware instructions. kernels.c runs the kernels, one
// thread after another.
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __global__ extern "C"
#define __device__
#define __host__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__

struct standin_indices {
    unsigned x, y, z;
};

// This struct must equal argument_kinds of kernels.c, and standin_shim_state must equal shim.
struct standin_arguments {
    int count;
    unsigned long long read_only, restricted;
};

struct standin_shim_state {
    standin_indices thread, block, block_size, grid_size;
    void (*synchronize)();
    void (*wait)();
};
extern "C" {
standin_shim_state standin_shim;
}
#define threadIdx (standin_shim.thread)
#define blockIdx (standin_shim.block)
#define blockDim (standin_shim.block_size)
#define gridDim (standin_shim.grid_size)
#define __syncthreads() standin_shim.synchronize()
inline void wait_for_kernels() {
    standin_shim.wait();
}

inline unsigned short to_f16(float x) {
    const _Float16 half = (_Float16)x;
    unsigned short bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}
inline float from_f16(unsigned short bits) {
    _Float16 half;
    memcpy(&half, &bits, sizeof bits);
    return (float)half;
}
inline unsigned short to_bf16(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return 0x7fff;
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Rounds to nearest, ties to even; too large values become `largest`, NaN becomes `nan`.
inline unsigned char standin_to_fp8(float x, int mantissa, int bias, unsigned largest,
                                    unsigned nan) {
    if (x != x) return (unsigned char)nan;
    const unsigned minus = std::signbit(x) ? 0x80 : 0;
    const double size = fabs((double)x);
    int exponent = size > 0 ? ilogb(size) : 1 - bias;
    if (exponent < 1 - bias) exponent = 1 - bias;
    if (exponent > 20) return (unsigned char)(minus | largest);
    double steps = nearbyint(ldexp(size, mantissa - exponent));
    if (steps >= 2 << mantissa) {
        steps /= 2;
        exponent++;
    }
    unsigned code = (unsigned)steps;
    if (steps >= 1 << mantissa) code += (unsigned)(exponent + bias - 1) << mantissa;
    return (unsigned char)(minus | (code > largest ? largest : code));
}
inline float standin_from_fp8(unsigned char bits, int mantissa, int bias) {
    const int exponent = (bits & 0x7f) >> mantissa, low = bits & ((1 << mantissa) - 1);
    const double size = exponent ? ldexp((1 << mantissa) + low, exponent - bias - mantissa)
                                 : ldexp(low, 1 - bias - mantissa);
    return (float)(bits & 0x80 ? -size : size);
}
inline unsigned char clamped_f8e4m3fn(float x) {
    return standin_to_fp8(x, 3, 7, 0x7e, 0x7f);
}
inline unsigned char clamped_f8e5m2(float x) {
    return standin_to_fp8(x, 2, 15, 0x7b, 0x7f);
}
inline float from_f8e4m3fn(unsigned char bits) {
    return (bits & 0x7f) == 0x7f ? NAN : standin_from_fp8(bits, 3, 7);
}
inline float from_f8e5m2(unsigned char bits) {
    return from_f16((unsigned short)(bits << 8));
}
// The result has no sign if it is NaN, regardless of the operands.
inline float ptx_maximum(float x, float y) {
    if (x != x || y != y) return NAN;
    return x > y || (x == y && !std::signbit(x)) ? x : y;
}
inline float ptx_minimum(float x, float y) {
    if (x != x || y != y) return NAN;
    return x < y || (x == y && std::signbit(x)) ? x : y;
}
// Off by up to two units in the last place (the hardware by one); flushes subnormal values.
inline float ptx_reciprocal(float x) {
    const float y = 1 / (fabsf(x) < 0x1p-126f ? std::copysign(0.0f, x) : x);
    if (fabsf(y) < 0x1p-126f) return std::copysign(0.0f, y);
    if (std::isnan(y) || std::isinf(y)) return y;
    unsigned bits;
    memcpy(&bits, &y, sizeof bits);
    bits += (bits * 2654435761u >> 16) % 5 - 2;
    float off;
    memcpy(&off, &bits, sizeof off);
    return off;
}
inline float ptx_shorten(double x) {
    const float y = (float)x;
    return fabs((double)y) > fabs(x) ? nextafterf(y, 0) : y;
}

// The values of a block's threads, all of which must call shuffled_down() and shuffled_from()
// together.
static unsigned long long standin_shuffled[1024];
template <typename T> inline T standin_shuffle(T x, unsigned from) {
    memcpy(&standin_shuffled[threadIdx.x], &x, sizeof x);
    __syncthreads();
    memcpy(&x, &standin_shuffled[from], sizeof x);
    __syncthreads();
    return x;
}
template <typename T> inline T shuffled_down(T x, int step) {
    const unsigned from = threadIdx.x + (unsigned)step;
    return standin_shuffle(x, from / 32 == threadIdx.x / 32 ? from : threadIdx.x);
}
template <typename T> inline T shuffled_from(T x, int lane) {
    return standin_shuffle(x, threadIdx.x / 32 * 32 + (unsigned)lane % 32);
}

#define ATOMIC(name, combined)                                                                     \
    template <typename T> inline T atomic##name(T *to, T x) {                                      \
        const T old = *to;                                                                         \
        *to = combined;                                                                            \
        return old;                                                                                \
    }
ATOMIC(Add, old + x)
ATOMIC(Max, old > x ? old : x)
ATOMIC(Min, old < x ? old : x)
ATOMIC(And, old &x)
ATOMIC(Or, old | x)
ATOMIC(Xor, old ^ x)
#undef ATOMIC

// The registers of a block's threads, which must call mma_*() together: a thread computes its four
// elements of the result from those of its warp.
static unsigned standin_a[1024][4], standin_b[1024][2];
inline unsigned char standin_byte(const unsigned *registers, int i) {
    return (unsigned char)(registers[i / 4] >> i % 4 * 8);
}
#define MMA(name_a, name_b)                                                                        \
    inline void mma_##name_a##_##name_b(float &d0, float &d1, float &d2, float &d3, unsigned a0,   \
                                        unsigned a1, unsigned a2, unsigned a3, unsigned b0,        \
                                        unsigned b1) {                                             \
        const unsigned thread = threadIdx.x, warp = thread / 32 * 32, lane = thread % 32;          \
        const unsigned a[] = {a0, a1, a2, a3}, b[] = {b0, b1};                                     \
        memcpy(standin_a[thread], a, sizeof a);                                                    \
        memcpy(standin_b[thread], b, sizeof b);                                                    \
        __syncthreads();                                                                           \
        float *const d[] = {&d0, &d1, &d2, &d3};                                                   \
        for (int i = 0; i < 4; i++)                                                                \
            for (unsigned k = 0; k < 32; k++) {                                                    \
                const unsigned row = warp + lane / 4 * 4 + k % 16 / 4;                             \
                const unsigned column = warp + (lane % 4 * 2 + i % 2) * 4 + k % 16 / 4;            \
                const unsigned part = k / 16;                                                      \
                *d[i] += from_##name_a(standin_byte(standin_a[row] + i / 2 + 2 * part, k % 4)) *   \
                         from_##name_b(standin_byte(standin_b[column] + part, k % 4));             \
            }                                                                                      \
        __syncthreads();                                                                           \
    }
MMA(f8e4m3fn, f8e4m3fn)
MMA(f8e4m3fn, f8e5m2)
MMA(f8e5m2, f8e4m3fn)
MMA(f8e5m2, f8e5m2)
#undef MMA
