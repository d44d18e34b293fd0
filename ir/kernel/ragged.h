/* SPDX-License-Identifier: Apache-2.0 */
/* A ragged-dot as dots of its parts: one for each group, and for each index of the dimensions of
 * the group sizes before the last one. A part is empty if its group is. */
#ifndef HLO_IR_KERNEL_RAGGED_H
#define HLO_IR_KERNEL_RAGGED_H

#include "ir/kernel/kernel.h"
#include "ir/module/ragged.h"

/* The iteration over the parts. If contracting dimensions precede the ragged one in the group
 * sizes, the groups differ between indices of these dimensions: a part then consists of several
 * concatenated pieces. */
typedef struct hlo_ragged_parts {
    hlo_ragged dims;
    hlo_dot_dims dot; /* dimension numbers of the dot of a part */
    const hlo_eval_env *env;
    hlo_arena *scratch;
    const int64_t *ends;                /* [kept, pieces, groups]: where each group ends */
    int64_t pieces, parts;              /* pieces per part; total number of parts */
    int64_t at;                         /* number of the part */
    int64_t sizes[HLO_RAGGED_MAX_RANK]; /* sizes of the prefix */
    const hlo_ints *rhs_batch;
} hlo_ragged_parts;

/* Starts at the first part. Returns the reason if the instruction is not a ragged-dot of arrays, or
 * NULL. */
const char *hlo_ragged_begin(hlo_ragged_parts *parts, const hlo_call *call);
/* Returns the number of terms, rows or batches that the part has. */
int64_t hlo_ragged_size(const hlo_ragged_parts *parts);
/* Returns the part of an operand (0 or 1), or of a result, for the dot of the part. In scratch. */
hlo_view hlo_ragged_operand(const hlo_ragged_parts *parts, unsigned side, const hlo_view *whole);
hlo_view hlo_ragged_result(const hlo_ragged_parts *parts, const hlo_view *whole);
/* Converts an operand to the result's type if that is narrower, as the definition of ragged-dot
 * requires. */
hlo_view hlo_ragged_narrowed(const hlo_call *call, unsigned side);

#endif
