/* SPDX-License-Identifier: Apache-2.0 */
/* Describes instructions that multiply matrices, including instructions that cannot become FP8
 * calls: dots of each kind, convolutions, and library calls (product.def). */
#ifndef HLO_MATMUL_PRODUCT_H
#define HLO_MATMUL_PRODUCT_H

#include "matmul/call.h"

typedef enum hlo_product_kind {
    HLO_PRODUCT_NONE,         /* does not multiply matrices */
    HLO_PRODUCT_DOT,          /* a plain `dot` */
    HLO_PRODUCT_FP8_CALL,     /* a call for which hlo_matmul_is_call() is true */
    HLO_PRODUCT_WIDE_CALL,    /* a call for which hlo_matmul_is_wide_call() is true */
    HLO_PRODUCT_RAGGED,       /* a matmul for each group of rows */
    HLO_PRODUCT_BLOCK_SCALED, /* block-scaled notation */
    HLO_PRODUCT_CONVOLUTION,
    HLO_PRODUCT_LIBRARY,   /* any other library call that multiplies its operands */
    HLO_PRODUCT_ATTENTION, /* two fused matmuls, or five with gradients, in one kernel */
    HLO_PRODUCT_CPU        /* a call of a CPU library */
} hlo_product_kind;

typedef struct hlo_product {
    hlo_product_kind kind;
    const hlo_instruction *a, *b; /* the factors; for attention, queries and keys */
    const hlo_shape *d; /* shape of the result; if there are several results, of the first */
    double flops;       /* FLOPs per execution; 0 if unknown */
    bool narrow;        /* both factors are floats of 8 bits or fewer */
    bool fp8;           /* both factors are narrow, and a library call multiplies them without
                         * conversion */
} hlo_product;

/* Returns the kind of an instruction, from its opcode and call target and, if other matmuls also
 * use the target, from its config. */
hlo_product_kind hlo_product_kind_of(const hlo_instruction *instr);
/* Reads a product. Returns false if the instruction does not multiply matrices, or if its operands
 * do not fit its kind (possible after `--no-verify`). */
bool hlo_product_read(const hlo_instruction *instr, hlo_product *out_product);

/* Returns an upper bound on the number of products in a module, from its opcode counts. */
size_t hlo_product_most(const hlo_module *module);

/* Reads a dot, an FP8 call or a call on wider types. Returns false for other instructions, and if
 * the instruction cannot be read. */
bool hlo_product_matmul(const hlo_instruction *instr, hlo_matmul *out_matmul);

/* Reads scaled-dot or `__op$block_scaled_dot` as a matmul without its scales. Returns false for
 * other instructions, and if the instruction cannot be read. */
bool hlo_matmul_from_block(const hlo_instruction *instr, hlo_matmul *out_matmul);

/* The generator of the kernel of a fusion. */
typedef enum hlo_fusion_maker {
    HLO_FUSION_XLA, /* XLA's own generators, and unknown generators */
    HLO_FUSION_TRITON,
    HLO_FUSION_CUDNN,
    HLO_FUSION_CPU /* a CPU library */
} hlo_fusion_maker;

hlo_fusion_maker hlo_fusion_made_by(const hlo_instruction *fusion);

#endif
