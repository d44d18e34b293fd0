/* SPDX-License-Identifier: Apache-2.0 */
/* The dimensions of a ragged-dot. */
#ifndef HLO_IR_MODULE_RAGGED_H
#define HLO_IR_MODULE_RAGGED_H

#include "ir/ir.h"

enum { HLO_RAGGED_MAX_RANK = 24 };

/* Which of the left operand's dimensions the groups divide. */
typedef enum hlo_ragged_mode {
    HLO_RAGGED_FREE,        /* a matrix of the right operand for each group of rows */
    HLO_RAGGED_CONTRACTING, /* a result for each group of terms */
    HLO_RAGGED_BATCH        /* batches beyond the groups are 0 */
} hlo_ragged_mode;

typedef struct hlo_ragged {
    hlo_ragged_mode mode;
    int64_t dim;     /* of the left operand: the one that the groups divide */
    int64_t partner; /* of the right operand: FREE: that of the groups; else the one paired with
                        `dim` */
    int64_t place; /* of the result: FREE, BATCH: where `dim` is; CONTRACTING: that of the groups */
    int64_t extent, groups; /* sizes of `dim`, and of the last dimension of the group sizes */
    uint32_t prefix_count;  /* dimensions of the group sizes before the last one; these are */
    int64_t prefix[HLO_RAGGED_MAX_RANK]; /* dimensions of the left operand: batch, then others */
    uint32_t batch_count;                /* of the prefix, how many are batch dimensions */
} hlo_ragged;

/* Reads the dimensions of a verified ragged-dot. False: it is none, or has too many dimensions. */
bool hlo_ragged_read(const hlo_instr *instr, hlo_ragged *out_ragged);

#endif
