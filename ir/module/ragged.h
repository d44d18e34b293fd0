/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the dimensions of a ragged-dot. */
#ifndef HLO_IR_MODULE_RAGGED_H
#define HLO_IR_MODULE_RAGGED_H

#include "ir/ir.h"

enum { HLO_RAGGED_MAX_RANK = 24 };

/* The kind of the left operand's dimension that the groups divide. */
typedef enum hlo_ragged_mode {
    HLO_RAGGED_FREE,        /* each group of rows is multiplied by a matrix of the right operand */
    HLO_RAGGED_CONTRACTING, /* each group of terms has a result */
    HLO_RAGGED_BATCH        /* batches beyond the groups are 0 */
} hlo_ragged_mode;

typedef struct hlo_ragged {
    hlo_ragged_mode mode;
    int64_t dim;     /* the dimension of the left operand that the groups divide */
    int64_t partner; /* a dimension of the right operand: for FREE the group dimension, otherwise
                      * the dimension that is paired with `dim` */
    int64_t place;   /* a dimension of the result: for CONTRACTING the group dimension, otherwise
                      * the dimension that comes from `dim` */
    int64_t extent, groups; /* sizes of `dim`, and of the last dimension of the group sizes */
    uint32_t prefix_count;  /* number of dimensions of the group sizes before the last one */
    int64_t prefix[HLO_RAGGED_MAX_RANK]; /* the dimensions of the left operand that correspond to
                                          * the prefix of the group sizes, batch dimensions first */
    uint32_t batch_count;                /* number of batch dimensions in the prefix */
} hlo_ragged;

/* Reads the dimensions of a verified ragged-dot. Returns false for other instructions, or if it has
 * too many dimensions. */
bool hlo_ragged_read(const hlo_instruction *instr, hlo_ragged *out_ragged);

#endif
