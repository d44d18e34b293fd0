/* SPDX-License-Identifier: Apache-2.0 */
/* Computes cublasLtMatmul() on host memory from descriptors only. Matrices are column-major:
 * element (i,j) is at i + j * ld. op(A) is M x K, op(B) is K x N:
 *
 *   D = sD * Epi(alpha * sA * sB * op(A) op(B) + beta * sC * C + bias)
 *
 * The sum is in f64 or, for fp8 values, like that of Hopper's tensor cores
 * (HLO_STANDIN_ACCUMULATE). Sources: the cuBLAS manual; docs/numerics.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cublaslt.h"

enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS = 8, BIAS_STRIDE = 10, AUX = 11, AUX_LD = 12 };
enum { AUX_STRIDE = 13, A_SCALE = 17, B_SCALE, C_SCALE, D_SCALE, AMAX = 21, AUX_TYPE = 22 };
enum { BIAS_TYPE = 26, A_MODE = 31, B_MODE = 32 };
enum { TYPE = 0, ROWS = 2, COLS = 3, LD = 4, BATCH = 5, STRIDE = 6 };
enum { EPI_RELU = 2, EPI_BIAS = 4, EPI_GELU = 32, EPI_AUX = 128 };

int standin_element_bits(int type) {
    switch (type) {
    case R_64F: return 64;
    case R_32F: return 32;
    case R_8F_E4M3:
    case R_8F_E5M2: return 8;
    case R_4F_E2M1: return 4;
    default: return 16;
    }
}

/* 4-bit elements are packed two per byte, the first in the low bits. */
static size_t bytes_of(int type, int64_t count) {
    return ((size_t)count * (size_t)standin_element_bits(type) + 7) / 8;
}

/* --------------------------------------------------------------------------------------- floats */

typedef struct format {
    int exponent, mantissa, bias;
    bool infinite;  /* the largest exponent encodes infinity and NaN */
    bool nan;       /* without infinities, the largest exponent and mantissa encode NaN */
    double highest; /* the largest finite number */
} format;

static format format_of(int type) {
    switch (type) {
    case R_4F_E2M1: return (format){2, 1, 1, false, false, 6};
    case R_8F_E4M3: return (format){4, 3, 7, false, true, 448};
    case R_8F_E5M2: return (format){5, 2, 15, true, true, 57344};
    case R_16F: return (format){5, 10, 15, true, true, 65504};
    default: return (format){8, 7, 127, true, true, 0x1.fep127};
    }
}

static double decode(format f, unsigned bits) {
    int total = f.exponent + f.mantissa;
    double sign = bits >> total & 1 ? -1 : 1;
    int exponent = (int)(bits >> f.mantissa) & ((1 << f.exponent) - 1);
    int mantissa = (int)bits & ((1 << f.mantissa) - 1), all = (1 << f.exponent) - 1;
    if (f.infinite && exponent == all) return mantissa ? NAN : sign * INFINITY;
    if (!f.infinite && f.nan && exponent == all && mantissa == (1 << f.mantissa) - 1) return NAN;
    if (!exponent) return sign * ldexp(mantissa, 1 - f.bias - f.mantissa);
    return sign * ldexp((1 << f.mantissa) + mantissa, exponent - f.bias - f.mantissa);
}

/* Rounds to nearest, ties to even. If `saturates`, larger values, including infinities, become the
 * largest finite number. */
static unsigned encode(format f, double x, bool saturates) {
    int total = f.exponent + f.mantissa;
    unsigned sign = signbit(x) ? 1u << total : 0, all = (1u << f.exponent) - 1;
    if (isnan(x)) return (1u << total) - 1;
    if (x == 0) return sign;
    x = fabs(x);
    if (saturates && x > f.highest) x = f.highest;
    int power;
    frexp(x, &power);
    int exponent = power - 1 < 1 - f.bias ? 1 - f.bias : power - 1;
    double rounded = isinf(x) ? x : rint(ldexp(x, f.mantissa - exponent));
    if (isinf(x) || ldexp(rounded, exponent - f.mantissa) > f.highest)
        return sign | all << f.mantissa;
    /* The bit before the mantissa, and a carry from it, increment the exponent. */
    return sign | (((unsigned)(exponent + f.bias - 1) << f.mantissa) + (unsigned)rounded);
}

static double load(int type, const void *data, int64_t index) {
    if (type == R_64F) return ((const double *)data)[index];
    if (type == R_32F) return (double)((const float *)data)[index];
    if (type == R_4F_E2M1)
        return decode(format_of(type), ((const unsigned char *)data)[index / 2] >> index % 2 * 4);
    if (standin_element_bits(type) == 8)
        return decode(format_of(type), ((const unsigned char *)data)[index]);
    return decode(format_of(type), ((const uint16_t *)data)[index]);
}

static void store(int type, void *data, int64_t index, double x) {
    if (type == R_64F)
        ((double *)data)[index] = x;
    else if (type == R_32F)
        ((float *)data)[index] = (float)x;
    else if (standin_element_bits(type) == 8)
        ((unsigned char *)data)[index] = (unsigned char)encode(format_of(type), x, true);
    else
        ((uint16_t *)data)[index] = (uint16_t)encode(format_of(type), x, false);
}

/* ------------------------------------------------------------------------------------- matrices */

static int64_t of(const struct lt_layout *layout, int attribute) {
    return (int64_t)layout->at.value[attribute];
}

static bool inside(const void *data, const struct lt_layout *layout) {
    int64_t last = (of(layout, BATCH) - 1) * of(layout, STRIDE) +
                   (of(layout, COLS) - 1) * of(layout, LD) + of(layout, ROWS);
    return standin_allocated(data, bytes_of((int)of(layout, TYPE), last));
}

static double element(const void *data, const struct lt_layout *layout, bool transposed,
                      int64_t batch, int64_t i, int64_t j) {
    int64_t row = transposed ? j : i, column = transposed ? i : j;
    return load((int)of(layout, TYPE), data,
                batch * of(layout, STRIDE) + row + column * of(layout, LD));
}

static const void *pointer(const problem *p, int attribute) {
    return (const void *)(uintptr_t)p->desc.at.value[attribute];
}

static double scalar(const problem *p, int attribute) {
    const float *at = pointer(p, attribute);
    return at ? (double)*at : 1;
}

/* Returns the byte for element `at` of row `i`, in tiles of 128 rows by 4 steps of `length`
 * elements. Matrices of a batch are consecutive. */
static unsigned tiled(const unsigned char *codes, int64_t length, int64_t i, int64_t at,
                      int64_t k) {
    int64_t step = at / length, tiles = ((k + length - 1) / length + 3) / 4;
    return codes[(i / 128 * tiles + step / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + step % 4];
}

static double power(unsigned code) {
    return code == 255 ? (double)NAN : ldexp(1, (int)code - 127);
}

/* Returns the scale of element `at` along K of row `i` of op(A), or column `i` of op(B); there are
 * `size` rows or columns. */
static double scale(const problem *p, int attribute, int mode, int64_t batch, int64_t i,
                    int64_t size, int64_t at, int64_t k) {
    const float *scales = pointer(p, attribute);
    int64_t steps = (k + 127) / 128, padded = (steps + 3) / 4 * 4;
    int64_t row = batch * ((size + 127) / 128 * 128) + i;
    switch (p->desc.at.value[mode]) {
    case 1: /* the sign of the scale is ignored */
        return decode(format_of(R_8F_E4M3), tiled(pointer(p, attribute), 16, row, at, k) & 0x7f);
    case 2: return power(tiled(pointer(p, attribute), 32, row, at, k));
    case 3: return (double)scales[i];
    case 4: return (double)scales[at / 128 * size + i];
    case 5: return (double)scales[i / 128 * padded + at / 128];
    default: return 1;
    }
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/* Returns one matrix of the batch, times its scales if `scaled`: for each row of op(A), or column
 * of op(B), its elements along K. The caller frees it. */
static double *gather(const problem *p, bool b, bool scaled, int64_t batch, int64_t size,
                      int64_t k) {
    const struct lt_layout *layout = b ? &p->b : &p->a;
    const void *data = b ? p->b_data : p->a_data;
    bool transposed = p->desc.at.value[b ? TRANSB : TRANSA];
    int pointer_at = b ? B_SCALE : A_SCALE, mode = b ? B_MODE : A_MODE;
    double whole = p->desc.at.value[mode] ? 1 : scalar(p, pointer_at);
    double *out = malloc((size_t)(size * k) * sizeof *out);
    for (int64_t i = 0; out && i < size; i++)
        for (int64_t l = 0; l < k; l++)
            out[i * k + l] =
                (scaled ? whole * scale(p, pointer_at, mode, batch, i, size, l, k) : 1) *
                element(data, layout, transposed, batch, b ? l : i, b ? i : l);
    return out;
}

/* --------------------------------------------------------------------------------------- Hopper */

enum { FAST = 25, STEP = 32, PROMOTED = 128, FRACTION_BITS = 13 };

/* Returns true if products of fp8 values are summed as on Hopper. */
static bool is_narrow(const problem *p) {
    const char *chosen = getenv("HLO_STANDIN_ACCUMULATE");
    return chosen && strcmp(chosen, "hopper") == 0 &&
           standin_element_bits((int)of(&p->a, TYPE)) == 8 &&
           standin_element_bits((int)of(&p->b, TYPE)) == 8 && p->desc.at.value[A_MODE] != 2;
}

/* Adds products to an accumulator: the accumulator and each product are truncated toward zero at
 * the last kept bit of the largest of them. The result for non-finite values does not depend on the
 * order. */
static double add_cut(double sum, const double *a, const double *b, int64_t count) {
    double largest = fabs(sum), plain = sum, kept;
    for (int64_t l = 0; l < count; l++) {
        largest = fmax(largest, fabs(a[l] * b[l]));
        plain += a[l] * b[l];
    }
    if (!isfinite(plain) || largest == 0) return plain;
    const double unit = ldexp(1, ilogb(largest) - FRACTION_BITS);
    kept = trunc(sum / unit);
    for (int64_t l = 0; l < count; l++) kept += trunc(a[l] * b[l] / unit);
    return (double)(float)(kept * unit);
}

/* Returns the product of both operands' scales for element `at` along K. */
static double both_scales(const problem *p, int64_t batch, int64_t i, int64_t j, int64_t at,
                          int64_t k) {
    const uint64_t *modes = p->desc.at.value;
    double s = modes[A_MODE] ? scale(p, A_SCALE, A_MODE, batch, i, of(&p->d, ROWS), at, k)
                             : scalar(p, A_SCALE);
    return s * (modes[B_MODE] ? scale(p, B_SCALE, B_MODE, batch, j, of(&p->d, COLS), at, k)
                              : scalar(p, B_SCALE));
}

/* Returns the sum of products of a row and a column of unscaled elements, times the scales. The sum
 * is added to an f32 accumulator after PROMOTED products (the length of a scale block) or, if fast
 * and without scales per block, once. */
static double narrow_sum(const problem *p, const double *a, const double *b, int64_t batch,
                         int64_t i, int64_t j, int64_t k) {
    const bool blocks = p->desc.at.value[A_MODE] > 3 || p->desc.at.value[B_MODE] > 3;
    const int64_t length = p->desc.at.value[FAST] && !blocks ? k : PROMOTED;
    float all = 0;
    for (int64_t from = 0; from < k; from += length) {
        const int64_t end = k - from < length ? k : from + length;
        double sum = 0;
        for (int64_t at = from; at < end; at += STEP)
            sum = add_cut(sum, a + at, b + at, end - at < STEP ? end - at : STEP);
        all += (float)(blocks ? sum * both_scales(p, batch, i, j, from, k) : sum);
    }
    return blocks ? (double)all : (double)all * both_scales(p, batch, i, j, 0, k);
}

/* Returns the input of the activation, computed from alpha times the product. */
static double linear(const problem *p, double x, int64_t batch, int64_t i, int64_t j) {
    if (p->beta != 0)
        x += p->beta * scalar(p, C_SCALE) * element(p->c_data, &p->c, false, batch, i, j);
    if (p->desc.at.value[EPILOGUE] & EPI_BIAS)
        x += load((int)p->desc.at.value[BIAS_TYPE], pointer(p, BIAS),
                  batch * (int64_t)p->desc.at.value[BIAS_STRIDE] + i);
    return x;
}

static int aux_type(const problem *p) {
    int type = (int)p->desc.at.value[AUX_TYPE];
    return type < 0 ? (int)of(&p->d, TYPE) : type;
}

static bool all_inside(const problem *p) {
    const attributes *at = &p->desc.at;
    int64_t m = of(&p->d, ROWS), n = of(&p->d, COLS), batch = of(&p->d, BATCH);
    if (!inside(p->a_data, &p->a) || !inside(p->b_data, &p->b) || !inside(p->d_data, &p->d) ||
        (p->beta != 0 && !inside(p->c_data, &p->c)))
        return false;
    if (at->value[EPILOGUE] & EPI_BIAS &&
        !standin_allocated(pointer(p, BIAS), bytes_of((int)at->value[BIAS_TYPE], m)))
        return false;
    if (!(at->value[EPILOGUE] & EPI_AUX)) return true;
    int64_t last =
        (batch - 1) * (int64_t)at->value[AUX_STRIDE] + (n - 1) * (int64_t)at->value[AUX_LD] + m;
    return standin_allocated(pointer(p, AUX), bytes_of(aux_type(p), last));
}

/* Stores element (i,j) from `x`, the input of the activation, and raises *amax to the magnitude of
 * the unscaled element if that is larger. */
static void finish(const problem *p, double x, int64_t batch, int64_t i, int64_t j, double *amax) {
    const attributes *at = &p->desc.at;
    uint64_t epilogue = at->value[EPILOGUE];
    if (epilogue & EPI_AUX)
        store(aux_type(p), (void *)pointer(p, AUX),
              batch * (int64_t)at->value[AUX_STRIDE] + i + j * (int64_t)at->value[AUX_LD], x);
    if (epilogue & EPI_RELU && x < 0) x = 0;
    if (epilogue & EPI_GELU) x = gelu(x);
    if (fabs(x) > *amax || isnan(x)) *amax = isnan(*amax) ? *amax : fabs(x);
    if (p->wrong) x = 2 * x + 1;
    store((int)of(&p->d, TYPE), p->d_data, batch * of(&p->d, STRIDE) + i + j * of(&p->d, LD),
          scalar(p, D_SCALE) * x);
}

/* If alpha is 0, the values of A and B are ignored; if beta is 0, C is not read. */
bool standin_matmul(const problem *p) {
    if (!all_inside(p)) return false;
    int64_t m = of(&p->d, ROWS), n = of(&p->d, COLS);
    int64_t k = of(&p->a, p->desc.at.value[TRANSA] ? ROWS : COLS);
    const bool narrow = is_narrow(p);
    double amax = 0;
    for (int64_t batch = 0; batch < of(&p->d, BATCH); batch++) {
        double *a = gather(p, false, !narrow, batch, m, k);
        double *b = gather(p, true, !narrow, batch, n, k);
        for (int64_t j = 0; a && b && j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                double sum = 0;
                if (narrow && p->alpha != 0)
                    sum = narrow_sum(p, a + i * k, b + j * k, batch, i, j, k);
                for (int64_t l = 0; !narrow && p->alpha != 0 && l < k; l++)
                    sum += a[i * k + l] * b[j * k + l];
                finish(p, linear(p, p->alpha * sum, batch, i, j), batch, i, j, &amax);
            }
        free(a);
        free(b);
    }
    if (p->desc.at.value[AMAX]) *(float *)(void *)pointer(p, AMAX) = (float)amax;
    return true;
}
