/* SPDX-License-Identifier: Apache-2.0 */
/* The dimensions of a ragged-dot. */
#ifndef HLO_IR_MODULE_RAGGED_H
#define HLO_IR_MODULE_RAGGED_H

#include "ir/ir.h"

enum { HLO_RAGGED_MAX_RANK = 24 };

/* The kind of the left operand's dimension that the groups divide. */
typedef enum hlo_ragged_mode {
    HLO_RAGGED_FREE,        /* a matrix of the right operand for each group of rows */
    HLO_RAGGED_CONTRACTING, /* a result for each group of terms */
    HLO_RAGGED_BATCH        /* batches beyond the groups are 0 */
} hlo_ragged_mode;

typedef struct hlo_ragged {
    hlo_ragged_mode mode;
    int64_t dim;     /* of the left operand: the dimension that the groups divide */
    int64_t partner; /* of the right operand: FREE: the group dimension; otherwise the one paired
                      * with `dim` */
    int64_t place;   /* of the result: FREE, BATCH: the position of `dim`; CONTRACTING: the group
                      * dimension */
    int64_t extent, groups; /* sizes of `dim`, and of the last dimension of the group sizes */
    uint32_t prefix_count;  /* number of dimensions of the group sizes before the last one; these
                             * are */
    int64_t prefix[HLO_RAGGED_MAX_RANK]; /* dimensions of the left operand: batch, then others */
    uint32_t batch_count;                /* number of batch dimensions in the prefix */
} hlo_ragged;

/* Reads the dimensions of a verified ragged-dot. Returns false for other instructions, or if it has
 * too many dimensions. */
bool hlo_ragged_read(const hlo_instr *instr, hlo_ragged *out_ragged);

#endif
