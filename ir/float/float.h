/* Every float narrower than 64 bits: bits to value and back, exactly, rounding to nearest even.
 *
 * float.def holds the parameters of each format; nothing else in the library knows them. */
#ifndef HLO_IR_EVAL_FLOAT_H
#define HLO_IR_EVAL_FLOAT_H

#include "ir/ir.h"

/* The value of an element's bits. A NaN keeps its sign, where the format has two of them, and not
 * its payload. */
double hlo_float_decode(hlo_type type, uint64_t bits);
/* The nearest element, ties to even. What is too large becomes infinity where the format has one,
 * else NaN (f8e4m3fn), as HLO's `convert` has it; NaN becomes the format's NaN. */
uint64_t hlo_float_encode(hlo_type type, double value);

/* NaNs with a payload, in the formats that have infinities: the NaN of that sign and mantissa, or 0
 * when there is none; and the mantissa of a NaN other than hlo_float_encode()'s, else 0. */
uint64_t hlo_float_nan(hlo_type type, bool negative, uint64_t payload);
uint64_t hlo_float_payload(hlo_type type, uint64_t bits);

/* One element of any real type in memory, as a double and back; integers are converted as HLO's
 * `convert` does (toward zero, saturating). */
double hlo_number_load(hlo_type type, const void *element);
void hlo_number_store(hlo_type type, void *element, double value);

/* Rows of a float type of at most 16 bits, `step` bytes apart, to and from f32: the same values as
 * above, fast. The encoder rounds once, to nearest even. */
void hlo_float_decode_row(hlo_type type, const void *in, int64_t step, int64_t count, float *out);
void hlo_float_encode_row(hlo_type type, const float *in, int64_t count, void *out, int64_t step);

/* The largest finite value. */
double hlo_float_max(hlo_type type);
/* The bit of an element that is its sign; 0 where the format has none. */
uint64_t hlo_float_sign(hlo_type type);
/* Bits of the significand, the hidden one included: the unit roundoff is 2^-precision. */
int hlo_float_precision(hlo_type type);

#endif
