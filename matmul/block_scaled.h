/* SPDX-License-Identifier: Apache-2.0 */
/* Block-scaled notation: products of narrow values that have a scale for each block of adjacent
 * elements, and the conversions from and to such values. XLA replaces all of them. This project
 * defines their results by XLA's own expansion.
 *
 *   scaled-dot                 HLO's opcode: a, b, a_scale, b_scale
 *   __op$block_scaled_dot      a, b, a_scale[, b_scale[, global_scale]]
 *   __cudnn$blockScaledDot     the same, with both scales in cuDNN's memory layout
 *   __cublas$lt$matmul$mx      for AMD's GPUs: a, b, a_scale, b_scale, with the config of other
 *   matmuls
 *   __op$quantize              x to (values, scales)
 *   __op$dequantize            values, scales to x
 *
 * Sources: XLA's block_scaling_rewriter.h and .cc, and scaled_dot_rewriter.cc. */
#ifndef HLO_MATMUL_BLOCK_SCALED_H
#define HLO_MATMUL_BLOCK_SCALED_H

#include "matmul/call.h"

typedef enum hlo_block_kind {
    HLO_BLOCK_NONE,
    HLO_BLOCK_SCALED_DOT,
    HLO_BLOCK_OP_DOT,
    HLO_BLOCK_CUDNN_DOT,
    HLO_BLOCK_HIPBLAS_DOT,
    HLO_BLOCK_QUANTIZE,
    HLO_BLOCK_DEQUANTIZE
} hlo_block_kind;

/* Returns the kind of an instruction, from its opcode and call target. If other matmuls also
 * use the target, the kind also depends on the config of the instruction. */
hlo_block_kind hlo_block_kind_of(const hlo_instruction *instr);

/* A product in block-scaled notation. Lists are in the module's arena. */
typedef struct hlo_block_dot {
    hlo_instruction *a, *b;
    hlo_instruction *a_scale, *b_scale; /* NULL if the operand is not scaled */
    hlo_instruction *global_scale;      /* factor of the result, or NULL */
    const hlo_ints *a_batch, *a_contracting, *b_batch, *b_contracting;
    int64_t block;      /* number of elements along the contracting dimension that share a scale; 0:
                         * for each operand, its size divided by the size of its scale */
    bool tiled;         /* scales are stored in tiles (hlo_scale_index()) */
    bool rows_padded;   /* true for custom calls: scales may have more rows than the operand */
    const hlo_shape *d; /* shape of the product */
} hlo_block_dot;

/* Reads a product. Returns NULL on success, otherwise the error (a static text). */
const char *hlo_block_dot_read(const hlo_instruction *instr, hlo_block_dot *out_dot);

/* Returns the stored values of an operand. If the operand converts a narrow input, this is the
 * input. */
hlo_instruction *hlo_block_values(hlo_instruction *operand);
/* Returns the scale of operand a or, with `b`, of operand b. Returns NULL if the scale is absent or
 * 1. */
hlo_instruction *hlo_block_scale(const hlo_block_dot *dot, bool b);

/* Returns the tiled mode that fits the product's element types, and whose block size divides the
 * product's block size. Each operand must have one free dimension, and the result type must
 * represent the scales exactly. An operand without scales counts as scaled by 1, and f4e2m1fn
 * values with f8e8m0fnu scales count as f8e4m3fn values. If no mode fits, returns
 * HLO_SCALE_MODE_COUNT and sets `*why` to the name of the reason. */
hlo_scale_mode hlo_block_dot_mode(const hlo_block_dot *dot, const char **why);

/* Returns the reason (a static text) why an instruction in block-scaled notation cannot be read.
 * Returns NULL if it can be read or is not in this notation. */
const char *hlo_block_fault(const hlo_instruction *instr);

/* True if the module contains block-scaled notation. */
bool hlo_block_any(const hlo_module *module);

/* Builds plain HLO for `product` and inserts it before `product`. Returns the last instruction,
 * which has the product's shape: a dot, or a convert or multiply of one. Returns NULL if the
 * product cannot be read. */
hlo_instruction *hlo_block_expand_dot(hlo_instruction *product);

/* Replaces all readable block-scaled notation by the equivalent plain HLO. */
void hlo_block_expand(hlo_module *module);

#endif
