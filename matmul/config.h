/* SPDX-License-Identifier: Apache-2.0 */
/* backend_config of a matmul call, JSON or the attributes of a typed call, as a plain struct that
 * owns nothing. Both have the keys of table/config.def. */
#ifndef HLO_MATMUL_CONFIG_H
#define HLO_MATMUL_CONFIG_H

#include "matmul/call.h"

/* The layouts of any operands and results fit. */
enum { HLO_CONFIG_DIMS = 32, HLO_CONFIG_WORD = 64, HLO_CONFIG_LAYOUTS = 4 * HLO_LARGEST_RANK };

typedef struct hlo_config_dims {
    uint32_t count;
    int64_t v[HLO_CONFIG_DIMS];
} hlo_config_dims;

/* The layouts of a call's operands, or of its results, one behind the other, each minor to major.
 * None: all are row-major. */
typedef struct hlo_config_layouts {
    uint32_t count;
    int64_t v[HLO_CONFIG_LAYOUTS];
} hlo_config_layouts;

typedef struct hlo_config {
    double alpha, beta;
    hlo_config_dims a_batch, a_contracting, b_batch, b_contracting;
    char precision[2][HLO_CONFIG_WORD]; /* as in a dot's text, lower case; "default" */
    char algorithm[HLO_CONFIG_WORD];    /* as in a dot's text; "": unset */
    hlo_epilogue epilogue;
    bool amax;
    hlo_scale_mode a_mode, b_mode;
    hlo_config_layouts operand_layouts, result_layouts;
} hlo_config;

/* Reads the config from the text of an instruction's backend_config: of a `typed` call an attribute
 * dictionary (mlir.h), else a JSON object, or a string that holds one. Absent keys have protobuf's
 * default (0, empty); keys without a member in the struct are ignored. Returns NULL, or the fault
 * (static). Without memory it jumps to the recovery point of `arena`. */
const char *hlo_config_read(hlo_arena *arena, const char *text, bool typed, hlo_config *out_config);

/* Writes the config as compact JSON. The strides are the elements of one matrix of A and of B.
 * scale_mode is written in the `used` form only: XLA of 2024, which has the other form, does not
 * have the field and refuses unknown fields. Scale modes other than SCALAR are written in both
 * forms, as lhs_scale_mode and rhs_scale_mode, keys of this project: XLA of 2026 has no value for
 * them and refuses a call with these keys, but would read an unknown scale_mode as scalars. In
 * `arena`. */
char *hlo_config_format(hlo_arena *arena, const hlo_matmul *matmul, hlo_scale_form form,
                        int64_t a_stride, int64_t b_stride);
/* Writes the config as the attributes of a typed call: all keys but the layouts, `operands` and
 * `results`, which are written if one is not row-major. In `arena`. */
char *hlo_config_format_typed(hlo_arena *arena, const hlo_matmul *matmul,
                              const hlo_config_layouts *operands,
                              const hlo_config_layouts *results);

#endif
