/* Everything that multiplies matrices, whether it can become an FP8 call or not: dots of each kind,
 * convolutions, and the calls of libraries (product.def). */
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
    HLO_PRODUCT_LIBRARY,   /* any other call of a library that multiplies what it is given */
    HLO_PRODUCT_ATTENTION, /* fused: two matmuls, or with gradients five, in one kernel */
    HLO_PRODUCT_CPU        /* a call of a library for CPUs */
} hlo_product_kind;

typedef struct hlo_product {
    hlo_product_kind kind;
    const hlo_instr *a, *b; /* the factors; of attention, queries and keys */
    const hlo_shape *d;     /* of the result; of several, the first one */
    double flops;           /* of one execution; 0: not known */
    bool narrow;            /* both factors are floats of 8 bits or fewer */
    bool fp8;               /* and a call of a library multiplies them as they are */
} hlo_product;

/* HLO_PRODUCT_NONE for what multiplies no matrices. Looks at the opcode and the call's target
 * alone. */
hlo_product_kind hlo_product_kind_of(const hlo_instr *instr);
/* False: it multiplies no matrices, or has not the operands that its kind has (what `--no-verify`
 * has let through). Takes any shapes. */
bool hlo_product_read(const hlo_instr *instr, hlo_product *out_product);

/* No fewer than the module has of them, by its opcodes. */
size_t hlo_product_most(const hlo_module *module);

/* A dot, or a call of cuBLASLt's of either kind, as that struct. False: it is neither, or cannot be
 * read. */
bool hlo_product_matmul(const hlo_instr *instr, hlo_matmul *out_matmul);

/* Who made the kernel that a fusion is. */
typedef enum hlo_fusion_maker {
    HLO_FUSION_XLA, /* XLA's own generators, and what is not known */
    HLO_FUSION_TRITON,
    HLO_FUSION_CUDNN,
    HLO_FUSION_CPU /* a library for CPUs */
} hlo_fusion_maker;

hlo_fusion_maker hlo_fusion_made_by(const hlo_instr *fusion);

#endif
