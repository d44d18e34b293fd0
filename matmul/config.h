/* SPDX-License-Identifier: Apache-2.0 */
/* The backend_config of a matmul call, read from JSON or from the attributes of a typed call. The
 * struct owns nothing. Both notations have the keys of table/config.def. */
#ifndef HLO_MATMUL_CONFIG_H
#define HLO_MATMUL_CONFIG_H

#include "matmul/call.h"

/* HLO_CONFIG_LAYOUTS is large enough for the layouts of all operands and results. */
enum { HLO_CONFIG_DIMS = 32, HLO_CONFIG_WORD = 64, HLO_CONFIG_LAYOUTS = 4 * HLO_LARGEST_RANK };

typedef struct hlo_config_dims {
    uint32_t count;
    int64_t v[HLO_CONFIG_DIMS];
} hlo_config_dims;

/* The concatenated layouts of a call's operands or results, each minor to major. An empty list
 * means that all layouts are row-major. */
typedef struct hlo_config_layouts {
    uint32_t count;
    int64_t v[HLO_CONFIG_LAYOUTS];
} hlo_config_layouts;

typedef struct hlo_config {
    double alpha, beta;
    hlo_config_dims a_batch, a_contracting, b_batch, b_contracting;
    char precision[2][HLO_CONFIG_WORD]; /* as in a dot's text, in lower case; "default" if unset */
    char algorithm[HLO_CONFIG_WORD];    /* as in a dot's text; "" if unset */
    hlo_epilogue epilogue;
    bool amax;
    hlo_scale_mode a_mode, b_mode;
    hlo_config_layouts operand_layouts, result_layouts;
} hlo_config;

/* Reads the config from the text of an instruction's backend_config. For a `typed` call the text is
 * an attribute dictionary (json.h), otherwise a JSON object or a string that contains one. Absent
 * keys get protobuf's default (0, empty). Keys without a member in the struct are ignored. Returns
 * NULL on success, otherwise the error (a static text). If memory runs out, jumps to the recovery
 * point of `arena`. */
const char *hlo_config_read(hlo_arena *arena, const char *text, bool typed, hlo_config *out_config);

/* Writes the config as compact JSON in `arena`. The strides are the element counts of one matrix of
 * A and of B. scale_mode is written only in the form HLO_SCALES_USED: XLA of 2024, which uses the
 * other form, rejects unknown fields and does not have this field. Scale modes other than SCALAR
 * are written in both forms, under this project's keys lhs_scale_mode and rhs_scale_mode, because
 * XLA of 2026 has no values for these modes. XLA rejects a call with these keys, but would read an
 * unknown value of scale_mode as scalars. */
char *hlo_config_format(hlo_arena *arena, const hlo_matmul *matmul, hlo_scale_form form,
                        int64_t a_stride, int64_t b_stride);
/* Writes the config as the attributes of a typed call, in `arena`. The layouts, `operands` and
 * `results`, are written only if one of them is not row-major. */
char *hlo_config_format_typed(hlo_arena *arena, const hlo_matmul *matmul,
                              const hlo_config_layouts *operands,
                              const hlo_config_layouts *results);

#endif
