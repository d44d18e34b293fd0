/* SPDX-License-Identifier: Apache-2.0 */
/* Converts every float narrower than 64 bits: exactly from bits to value, and from value to bits
 * with rounding to nearest even.
 *
 * float.def has the parameters of each format. Only these functions depend on the parameters. */
#ifndef HLO_IR_FLOAT_FLOAT_H
#define HLO_IR_FLOAT_FLOAT_H

#include "ir/ir.h"

/* Decodes an element's bits. A NaN keeps its sign if the format has NaNs of both signs, but not its
 * payload. */
double hlo_float_decode(hlo_type type, uint64_t bits);
/* Encodes to the nearest element, ties to even (f8e8m0fnu: up). As in HLO's `convert`, overflow
 * becomes infinity, or NaN in a format without infinity, or the largest number in a format with
 * neither. NaN becomes the format's NaN, or a zero if the format has none. */
uint64_t hlo_float_encode(hlo_type type, double value);

/* Encode and decode NaN payloads, in formats with infinities. hlo_float_nan() returns the NaN with
 * that sign and mantissa, or 0 if the format does not have that NaN. hlo_float_payload() returns
 * the mantissa of a NaN other than hlo_float_encode()'s; otherwise 0. */
uint64_t hlo_float_nan(hlo_type type, bool negative, uint64_t payload);
uint64_t hlo_float_payload(hlo_type type, uint64_t bits);

/* Load and store one element of any real type as a double; integers are converted as HLO's
 * `convert` does (toward zero, saturating). */
double hlo_number_load(hlo_type type, const void *element);
void hlo_number_store(hlo_type type, void *element, double value);

/* Convert rows of a float type of at most 16 bits, elements `step` bytes apart, to and from f32.
 * These functions are faster than the functions above, and have the same results. The encoder
 * rounds once, to nearest even. */
void hlo_float_decode_row(hlo_type type, const void *in, int64_t step, int64_t count, float *out);
void hlo_float_encode_row(hlo_type type, const float *in, int64_t count, void *out, int64_t step);

/* Computes exp of each element, with the same bits as the C library's expf. `out` may be `in`. */
void hlo_float_exp_row(const float *in, int64_t count, float *out);

/* Returns the largest finite value. */
double hlo_float_max(hlo_type type);
/* Returns the sign bit of an element; 0 if the format has none. */
uint64_t hlo_float_sign(hlo_type type);
/* Returns the number of significand bits, including the hidden bit: the unit roundoff is
 * 2^-precision. */
int hlo_float_precision(hlo_type type);

#endif
