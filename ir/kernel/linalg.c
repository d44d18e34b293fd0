/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of cholesky, triangular-solve and fft. They compute in f64 or in complex numbers of
 * two f64, and round once. */
#include <complex.h>
#include <string.h>

#include "ir/kernel/kernel.h"

typedef double _Complex number;

/* Copies elements to a row-major array of complex numbers. */
static number *load(const hlo_call *call, const hlo_view *in) {
    hlo_view out = hlo_view_scratch(call->scratch, HLO_TYPE_C128, in);
    hlo_view_convert(call->env, in, &out);
    return out.data;
}

/* Stores `numbers`, a row-major array; for a real type, only their real parts. */
static void store(const hlo_call *call, number *numbers, const hlo_view *out) {
    hlo_view in = hlo_view_scratch(call->scratch, HLO_TYPE_C128, out);
    memcpy(in.data, numbers, (size_t)hlo_view_count(out) * sizeof *numbers);
    hlo_view_convert(call->env, &in, out);
}

/* Replaces a matrix by its conjugate transpose. */
static void adjoin(number *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        a[i * n + i] = conj(a[i * n + i]);
        for (int64_t j = 0; j < i; j++) {
            number below = a[i * n + j];
            a[i * n + j] = conj(a[j * n + i]);
            a[j * n + i] = conj(below);
        }
    }
}

static hlo_status run_cholesky(hlo_call *call) {
    const hlo_view *in = &call->operands[0];
    int64_t n = in->dims[in->rank - 1], count = hlo_view_count(in);
    bool lower = hlo_instr_int(call->instr, HLO_ATTR_LOWER, false);
    number *a = load(call, in);
    for (int64_t at = 0; at < count; at += n * n) {
        if (!lower) adjoin(a + at, n);
        /* Compute the lower factor L of A = L conj(L)' in A's lower half; 0 above the diagonal. A
         * matrix that is not positive definite becomes NaN, as in XLA. */
        number *m = a + at;
        bool definite = true;
        for (int64_t j = 0; j < n && hlo_call_goes_on(call, j * (n - j)); j++) {
            double pivot = creal(m[j * n + j]);
            for (int64_t k = 0; k < j; k++) {
                number x = m[j * n + k];
                pivot -= creal(x) * creal(x) + cimag(x) * cimag(x);
            }
            definite &= pivot > 0;
            double root = sqrt(pivot);
            for (int64_t i = j + 1; i < n; i++) {
                number sum = m[i * n + j];
                for (int64_t k = 0; k < j; k++) sum -= m[i * n + k] * conj(m[j * n + k]);
                m[i * n + j] = sum / root;
            }
            m[j * n + j] = root;
            for (int64_t i = 0; i < j; i++) m[i * n + j] = 0;
        }
        for (int64_t i = 0; i < n * n && !definite; i++) m[i] = (double)NAN;
        if (!lower) adjoin(a + at, n);
    }
    store(call, a, &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_cholesky = {.run = run_cholesky, .error = HLO_ERROR_MOVED};

/* A triangular system: element (i, j) of the matrix is at a[i*row + j*col], and the unknowns of a
 * right-hand side are `step` apart. */
typedef struct triangle {
    const number *a;
    int64_t n, row, col, step;
    bool lower, unit, conjugate;
} triangle;

static number coefficient(const triangle *t, int64_t i, int64_t j) {
    number x = t->a[i * t->row + j * t->col];
    return t->conjugate ? conj(x) : x;
}

static hlo_status run_triangular_solve(hlo_call *call) {
    const hlo_instruction *instr = call->instr;
    const hlo_view *in = &call->operands[0], *right = &call->operands[1];
    const char *transpose = hlo_instr_attr(instr, HLO_ATTR_TRANSPOSE_A)->u.str;
    bool left = hlo_instr_int(instr, HLO_ATTR_LEFT_SIDE, false);
    bool lower = hlo_instr_int(instr, HLO_ATTR_LOWER, false);
    bool transposed = strcmp(transpose, "NO_TRANSPOSE") != 0;
    bool swaps = transposed == left; /* x op(A) = b is solved as op(A)' x' = b' */
    uint32_t rank = in->rank;
    int64_t n = in->dims[rank - 1], rows = right->dims[rank - 2], cols = right->dims[rank - 1];
    triangle t = {.a = load(call, in),
                  .n = n,
                  .row = swaps ? 1 : n,
                  .col = swaps ? n : 1,
                  .step = left ? cols : 1,
                  .lower = lower != swaps,
                  .unit = hlo_instr_int(instr, HLO_ATTR_UNIT_DIAGONAL, false),
                  .conjugate = strcmp(transpose, "ADJOINT") == 0};
    number *b = load(call, right);
    int64_t count = hlo_view_count(right), sides = left ? cols : rows;
    for (int64_t at = 0; at < count; at += rows * cols, t.a += n * n)
        for (int64_t side = 0; side < sides && hlo_call_goes_on(call, n * n); side++) {
            number *x = b + at + side * (left ? 1 : cols);
            for (int64_t done = 0; done < n; done++) {
                int64_t i = t.lower ? done : n - 1 - done;
                number sum = x[i * t.step];
                for (int64_t k = 0; k < done; k++) {
                    int64_t j = t.lower ? k : n - 1 - k;
                    sum -= coefficient(&t, i, j) * x[j * t.step];
                }
                x[i * t.step] = t.unit ? sum : sum / coefficient(&t, i, i);
            }
        }
    store(call, b, &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_triangular_solve = {.run = run_triangular_solve,
                                              .error = HLO_ERROR_MOVED};

/* A transform of one length. A power of two is transformed by halves, any other length as a
 * convolution of a longer length. Source: Bluestein, A linear filtering approach to the computation
 * of discrete Fourier transform, 1970. */
typedef struct fourier {
    int64_t n, size; /* size: length of the power-of-two transform */
    number *root;    /* exp(-2 pi i k / size), k < size / 2 */
    number *chirp;   /* exp(-pi i k k / n), k < n; NULL if n is a power of two */
    number *filter;  /* the transform of conj(chirp), wrapped around */
    number *work;    /* `size` elements */
} fourier;

static number turn(int64_t part, int64_t whole) {
    double angle = -2 * M_PI * (double)part / (double)whole;
    return __builtin_complex(cos(angle), sin(angle)); /* CMPLX, which clang lacks with glibc */
}

static void transform_halves(const fourier *f, number *x) {
    for (int64_t i = 1, j = 0; i < f->size; i++) {
        int64_t bit = f->size >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            number swap = x[i];
            x[i] = x[j];
            x[j] = swap;
        }
    }
    for (int64_t half = 1; half < f->size; half *= 2)
        for (int64_t start = 0; start < f->size; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                number *even = x + start + k, *odd = even + half;
                number by = *odd * f->root[k * (f->size / 2 / half)];
                *odd = *even - by;
                *even += by;
            }
}

static fourier fourier_new(hlo_arena *scratch, int64_t n) {
    bool halves = (n & (n - 1)) == 0;
    fourier f = {.n = n, .size = 1};
    while (f.size < (halves ? n : 2 * n - 1)) f.size *= 2;
    f.root = hlo_arena_array(scratch, (size_t)(f.size / 2), sizeof *f.root);
    for (int64_t k = 0; k < f.size / 2; k++) f.root[k] = turn(k, f.size);
    if (halves) return f;
    f.chirp = hlo_arena_array(scratch, (size_t)n, sizeof *f.chirp);
    f.filter = hlo_arena_array(scratch, (size_t)f.size, sizeof *f.filter);
    f.work = hlo_arena_array(scratch, (size_t)f.size, sizeof *f.work);
    memset(f.filter, 0, (size_t)f.size * sizeof *f.filter);
    for (int64_t k = 0, square = 0; k < n; k++) { /* square: k * k modulo 2 n */
        f.chirp[k] = turn(square, 2 * n);
        f.filter[k] = f.filter[(f.size - k) % f.size] = conj(f.chirp[k]);
        square = (square + 2 * k + 1) % (2 * n);
    }
    transform_halves(&f, f.filter);
    return f;
}

/* Computes the transform of n numbers, `step` apart, in place. An inverse transform lacks its
 * factor 1/n. */
static void transform(const fourier *f, bool inverse, number *x, int64_t step, number *row) {
    for (int64_t i = 0; i < f->n; i++) row[i] = inverse ? conj(x[i * step]) : x[i * step];
    if (f->chirp) {
        memset(f->work, 0, (size_t)f->size * sizeof *f->work);
        for (int64_t i = 0; i < f->n; i++) f->work[i] = row[i] * f->chirp[i];
        transform_halves(f, f->work);
        for (int64_t i = 0; i < f->size; i++) f->work[i] = conj(f->work[i] * f->filter[i]);
        transform_halves(f, f->work);
        for (int64_t i = 0; i < f->n; i++)
            row[i] = conj(f->work[i]) / (double)f->size * f->chirp[i];
    } else {
        transform_halves(f, row);
    }
    for (int64_t i = 0; i < f->n; i++) x[i * step] = inverse ? conj(row[i]) : row[i];
}

/* Copies rows to rows of another length, up to the shorter length. */
static void copy_rows(int64_t rows, const number *in, int64_t in_size, number *out,
                      int64_t out_size) {
    size_t size = (size_t)(in_size < out_size ? in_size : out_size) * sizeof *in;
    for (int64_t row = 0; row < rows; row++)
        memmove(out + row * out_size, in + row * in_size, size);
}

static hlo_status run_fft(hlo_call *call) {
    const char *kind = hlo_instr_attr(call->instr, HLO_ATTR_FFT_TYPE)->u.str;
    const hlo_view *in = &call->operands[0], *out = &call->results[0];
    const hlo_ints *length = hlo_instr_ints(call->instr, HLO_ATTR_FFT_LENGTH);
    bool inverse = kind[0] == 'I', to_real = strcmp(kind, "IRFFT") == 0;
    const hlo_view *whole = strcmp(kind, "RFFT") == 0 ? in : out;
    if (hlo_view_count(out) == 0 || hlo_view_count(in) == 0) {
        const number zero = 0;
        const hlo_view scalar = {HLO_TYPE_C128, 0, NULL, NULL, (void *)&zero};
        hlo_view_convert(call->env, &scalar, out);
        return HLO_OK;
    }
    number *x = load(call, in);
    int64_t n = length->v[length->count - 1], half = n / 2 + 1, rows = hlo_view_count(whole) / n;
    if (to_real) {
        number *full = hlo_arena_array(call->scratch, (size_t)(rows * n), sizeof *full);
        copy_rows(rows, x, half, full, n);
        /* Fill the second half of each row from the first half, so that the transform is real:
         * element -k along all transformed dimensions is the conjugate of k. */
        for (int64_t row = 0; row < rows; row++) {
            int64_t opposite = 0, rest = row, size = 1;
            for (uint32_t i = length->count - 1; i-- > 0;
                 rest /= length->v[i], size *= length->v[i])
                opposite += (length->v[i] - rest % length->v[i]) % length->v[i] * size;
            opposite += rest * size;
            for (int64_t k = half; k < n; k++) full[row * n + k] = conj(full[opposite * n + n - k]);
        }
        x = full;
    }
    /* Transform along the last dimensions, one after another. */
    int64_t count = hlo_view_count(whole), step = 1;
    for (uint32_t d = length->count; count && d-- > 0; step *= length->v[d]) {
        int64_t extent = length->v[d];
        fourier f = fourier_new(call->scratch, extent);
        number *row = hlo_arena_array(call->scratch, (size_t)extent, sizeof *row);
        for (int64_t at = 0; at < count; at += extent * step)
            for (int64_t inner = 0; inner < step && hlo_call_goes_on(call, extent); inner++)
                transform(&f, inverse, x + at + inner, step, row);
        for (int64_t e = 0; inverse && e < count; e++) x[e] /= (double)extent;
    }
    if (whole == in) copy_rows(rows, x, n, x, half);
    store(call, x, out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_fft = {.run = run_fft, .error = HLO_ERROR_FFT};
