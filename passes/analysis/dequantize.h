/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes dequantized values: fp8 values converted to a wide type, and then possibly multiplied
 * or divided by a scale. If a reader returns false, the contents of `*out` are undefined. Pinned
 * instructions are never part of a dequantization. */
#ifndef HLO_PASSES_ANALYSIS_DEQUANTIZE_H
#define HLO_PASSES_ANALYSIS_DEQUANTIZE_H

#include "matmul/call.h"

typedef struct hlo_dequantized {
    hlo_instruction *fp8;
    hlo_instruction *scale; /* NULL if the value is only converted */
    hlo_op op;              /* HLO_OP_CONVERT, HLO_OP_MULTIPLY or HLO_OP_DIVIDE */
    hlo_type from, to;      /* element types of the fp8 value and of the wide value */
} hlo_dequantized;

/* True for the fp8 types except f8e8m0fnu, which is a type of scales only. */
static inline bool hlo_type_is_fp8_value(hlo_type type) {
    return hlo_type_is_fp8(type) && type != HLO_TYPE_F8E8M0FNU;
}

/* True for a type of fewer than 8 bits if f8e4m3fn represents all its values. */
static inline bool hlo_type_fits_e4m3(hlo_type type) {
    return hlo_types[type].bits < 8 && (hlo_type_is_float(type) || hlo_type_is_integer(type));
}

/* True for the types to which fp8 values are dequantized: f32, bf16 and f16. */
static inline bool hlo_type_is_wide(hlo_type type) {
    return type == HLO_TYPE_F32 || type == HLO_TYPE_BF16 || type == HLO_TYPE_F16;
}

/* Reads a convert, or a convert scaled by a scalar. out->scale is the broadcast of the scalar. */
bool hlo_dequantized_read(hlo_instruction *value, hlo_dequantized *out);

/* Reads a convert, possibly moved, that is then scaled by out->scale, which may be any array. */
bool hlo_dequantized_read_scaled(const hlo_instruction *value, hlo_dequantized *out);

/* Reads a convert scaled by a broadcast, or by a converted broadcast of f8e8m0fnu scales;
 * out->scale is the operand of the broadcast, and `*out_dims` its `dimensions` attribute. */
bool hlo_dequantized_read_rows(const hlo_instruction *value, hlo_dequantized *out,
                               const hlo_ints **out_dims);

/* True if both values have the same form, types and scale. */
bool hlo_dequantized_alike(const hlo_dequantized *a, const hlo_dequantized *b);

/* True if both values have the same form and types, and scales of the same shape. */
bool hlo_dequantized_same_form(const hlo_dequantized *a, const hlo_dequantized *b);

#endif
