/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that multiply matrices, whether they can become FP8 calls or not: dots of each kind,
 * convolutions, and calls of libraries (product.def). */
#ifndef HLO_MATMUL_PRODUCT_H
#define HLO_MATMUL_PRODUCT_H

#include "matmul/call.h"

typedef enum hlo_product_kind {
    HLO_PRODUCT_NONE,         /* multiplies no matrices */
    HLO_PRODUCT_DOT,          /* a plain `dot` */
    HLO_PRODUCT_FP8_CALL,     /* hlo_matmul_is_call() */
    HLO_PRODUCT_WIDE_CALL,    /* hlo_matmul_is_wide_call() */
    HLO_PRODUCT_RAGGED,       /* a matmul for each group of rows */
    HLO_PRODUCT_BLOCK_SCALED, /* with scales per block, as notation */
    HLO_PRODUCT_CONVOLUTION,
    HLO_PRODUCT_LIBRARY,   /* any other call of a library that multiplies its operands */
    HLO_PRODUCT_ATTENTION, /* fused: two matmuls, or with gradients five, in one kernel */
    HLO_PRODUCT_CPU        /* a call of a library for CPUs */
} hlo_product_kind;

typedef struct hlo_product {
    hlo_product_kind kind;
    const hlo_instr *a, *b; /* the factors; of attention, queries and keys */
    const hlo_shape *d;     /* shape of the result, or of the first of several */
    double flops;           /* of one execution; 0: not known */
    bool narrow;            /* both factors are floats of 8 bits or fewer */
    bool fp8;               /* narrow, and a call of a library multiplies them without conversion */
} hlo_product;

/* Returns the kind of an instruction, from its opcode and the call's target alone. */
hlo_product_kind hlo_product_kind_of(const hlo_instr *instr);
/* Reads a product. False: the instruction multiplies no matrices, or its operands are not those of
 * its kind, as possible after `--no-verify`. */
bool hlo_product_read(const hlo_instr *instr, hlo_product *out_product);

/* Returns an upper bound of the number of products in a module, from its counts of opcodes. */
size_t hlo_product_most(const hlo_module *module);

/* Reads a dot, or a cuBLASLt call of either kind. False: the instruction is neither, or cannot be
 * read. */
bool hlo_product_matmul(const hlo_instr *instr, hlo_matmul *out_matmul);

/* Reads scaled-dot or `__op$block_scaled_dot` as a matmul without its scales. False: it is neither,
 * or cannot be read. */
bool hlo_matmul_from_block(const hlo_instr *instr, hlo_matmul *out_matmul);

/* The generator of a fusion's kernel. */
typedef enum hlo_fusion_maker {
    HLO_FUSION_XLA, /* XLA's own generators, and unknown ones */
    HLO_FUSION_TRITON,
    HLO_FUSION_CUDNN,
    HLO_FUSION_CPU /* a library for CPUs */
} hlo_fusion_maker;

hlo_fusion_maker hlo_fusion_made_by(const hlo_instr *fusion);

#endif
