/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce: the state that reduce.c and combine.c share. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_REDUCE_H
#define HLO_RUNTIME_CUDA_CODEGEN_REDUCE_H

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

typedef struct reducing {
    const hlo_instr *instr;
    const hlo_computation *region;
    hlo_op simple;          /* set if the reduce is one operation with an identity, otherwise
                             * INVALID */
    bool cells;             /* accumulators are cells, not values */
    uint32_t arrays, phase; /* phase: the first is 0 */
    const char **acc;       /* a thread's accumulators, or those of all lanes once gathered */
    const char **shared;    /* arrays in shared memory for the accumulators of warps */
    const char **total;     /* the values, once the row is reduced */
} reducing;

typedef struct reduction {
    emit *e;
    cuda_code *code;
    reducing *reduces;
    uint32_t count, phases;
    uint32_t *levels; /* by member: length of the longest chain of reduces that it depends on */
    const hlo_shape *shape; /* of the space */
    bool row;
    uint32_t kept_order[HLO_EVAL_MAX_RANK], kept_count, order[HLO_EVAL_MAX_RANK], order_count;
    int64_t kept_dims[HLO_EVAL_MAX_RANK]; /* sizes of only the kept dimensions */
    int64_t kept, reduced, chunk;
    int64_t chunks;
    emit_space space;
    emit_tile tile;  /* width 0: elements are visited in order */
    int lanes, rows; /* of a block; lanes * rows = CUDA_BLOCK */
    int paired;      /* steps of a thread that are processed together */
    int each;        /* contiguous columns of a thread, which has accumulators for each, [u] */
    const char *at[HLO_EVAL_MAX_RANK];
    const char *lane, *mine, *k, *live, *begin, *end, *part;
} reduction;

/* Returns the type of an accumulator of array `array` of the reduce. */
static inline const char *reduce_compute(const reducing *r, uint32_t array) {
    const cuda_type *type = &cuda_types[hlo_instr_operand(r->instr, array)->shape->type];
    return r->cells ? type->cell : type->compute;
}

/* Returns the text of the initial value of a simple reduce's accumulators: the identity. For a sum
 * it is -0, but 0 if the initial value is 0, because a sum may include its initial value any number
 * of times. */
const char *reduce_start(const reducing *r);
/* Returns the operation of a reduce of one array that has an identity; otherwise HLO_OP_INVALID. */
hlo_op reduce_simple(const hlo_instr *instr);
/* Writes the reduce's region of a[i] and b[i] to out[i]; a sum is not rounded. */
void reduce_combine(emit *e, const reducing *r, const char *const *a, const char *const *b,
                    const char **out);
/* Declares the accumulators of a thread. */
void reduce_declare(reduction *s, reducing *r);
/* Combines the accumulators of a thread with an element of each array. */
void reduce_accumulate(reduction *s, const reducing *r, const char *const *x);
/* Combines the accumulators of a row's lanes: in each warp, the upper half into the lower half
 * until one is left, then those of the warps. The first lane has the result, or all lanes if there
 * is another phase. */
void reduce_gather_lanes(reduction *s, uint32_t phase);
/* Opens a loop over a thread's columns, u, if it has several; and closes it. */
void reduce_open_columns(reduction *s);
void reduce_close_columns(reduction *s);

#endif
