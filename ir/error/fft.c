/* The sigmas of Fourier transforms. The method is in docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/array.h"

/* Returns the stages of a fast transform of `n` numbers: three transforms of up to 4n and the
 * products between them if n is no power of two, as Bluestein has it. */
static double stages_of(int64_t n) {
    const double stages = ceil(log2((double)n));
    return n > 1 && (n & (n - 1)) ? 3 * (stages + 3) : stages;
}

/* Sets the sigmas of one transform: `in` of its numbers, `out` of its results. */
static void bound_one(const double *x, const double *s, int64_t in, double stages, double scale,
                      double u, int64_t out, double *sigma) {
    double squares = 0, errors = 0;
    for (int64_t i = 0; i < in; i++) squares += x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1];
    for (int64_t i = 0; i < in; i++) errors += s[i] * s[i];
    const double variance = errors + 4.0 / 3 * u * u * stages * squares;
    for (int64_t i = 0; i < out; i++)
        sigma[i] = isfinite(squares) ? scale * sqrt(variance) : HLO_ERROR_ANYTHING;
}

hlo_status hlo_error_fft(const hlo_error_call *b) {
    const char *kind = hlo_instr_attr(b->call.instr, HLO_ATTR_FFT_TYPE)->u.str;
    const hlo_ints *length = hlo_instr_ints(b->call.instr, HLO_ATTR_FFT_LENGTH);
    const hlo_view *in = b->call.operands, *out = b->call.results;
    hlo_view x = hlo_view_scratch(b->call.scratch, HLO_TYPE_C128, in);
    hlo_view from = hlo_error_sigma_or_zeros(in, b->operand_sigmas);
    hlo_view s = hlo_error_as_f64(b, &from);
    hlo_view sigma = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, out);
    double stages = 0, size = 1;
    int64_t in_size = 1, out_size = 1;
    hlo_view_convert(b->call.env, in, &x);
    for (uint32_t i = 0; i < length->count; i++) {
        stages += stages_of(length->v[i]);
        size *= (double)length->v[i];
        in_size *= in->dims[in->rank - 1 - i];
        out_size *= out->dims[out->rank - 1 - i];
    }
    /* Half of the numbers of a real result are not there. */
    const double halves = strcmp(kind, "IRFFT") == 0 ? sqrt(2) : 1;
    const double scale = kind[0] == 'I' ? halves / size : 1;
    const double u = hlo_error_roundoff(out->type);
    const int64_t transforms = out_size ? hlo_view_count(out) / out_size : 0;
    for (int64_t t = 0; t < transforms; t++)
        bound_one((const double *)x.data + 2 * t * in_size, (const double *)s.data + t * in_size,
                  in_size, stages, scale, u, out_size, (double *)sigma.data + t * out_size);
    hlo_view_convert(b->call.env, &sigma, b->result_sigmas);
    return HLO_OK;
}
