/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce: the state that reduce.c, columns.c and combine.c share. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_REDUCE_H
#define HLO_RUNTIME_CUDA_CODEGEN_REDUCE_H

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

typedef struct reducing {
    const hlo_instr *instr;
    const hlo_computation *region;
    hlo_op simple;          /* when it is one operation with an identity, else INVALID */
    bool cells;             /* accumulators are cells, not values */
    uint32_t arrays, phase; /* phase: the first is 0 */
    const char **acc;       /* a thread's accumulators; all lanes', once these are gathered */
    const char **shared;    /* arrays in shared memory of what warps have */
    const char **total;     /* the values, once the row is reduced */
} reducing;

typedef struct reduction {
    emit *e;
    cuda_code *code;
    reducing *reduces;
    uint32_t count, phases;
    uint32_t *levels;       /* by member: length of the longest chain of reduces that it reads */
    const hlo_shape *shape; /* of the space */
    bool row;
    uint32_t kept_order[HLO_EVAL_MAX_RANK], kept_count, order[HLO_EVAL_MAX_RANK], order_count;
    int64_t kept_dims[HLO_EVAL_MAX_RANK]; /* sizes of the kept dimensions alone */
    int64_t kept, reduced, chunk;
    int64_t chunks;
    emit_space space;
    emit_tile tile;  /* width 0: elements are visited in their order */
    int lanes, rows; /* of a block; lanes * rows = CUDA_BLOCK */
    int paired;      /* steps of a thread that come together */
    int each;        /* contiguous columns of a thread: it has accumulators for each, [u] */
    const char *at[HLO_EVAL_MAX_RANK];
    const char *lane, *mine, *k, *live, *begin, *end, *part;
} reduction;

/* Returns the type of an accumulator of array `array` of the reduce. */
static inline const char *reduce_compute(const reducing *r, uint32_t array) {
    const cuda_type *type = &cuda_types[hlo_instr_operand(r->instr, array)->shape->type];
    return r->cells ? type->cell : type->compute;
}

/* Returns the text of what a simple reduce's accumulators begin with: the identity. A sum's is -0,
 * but with an initial value of 0, which a sum may have any number of times, it is that. */
const char *reduce_start(const reducing *r);
/* Returns the operation of a reduce of one array that has an identity; else HLO_OP_INVALID. */
hlo_op reduce_simple(const hlo_instr *instr);
/* Writes the reduce's region of a[i] and b[i] to out[i]; a sum is not rounded. */
void reduce_combine(emit *e, const reducing *r, const char *const *a, const char *const *b,
                    const char **out);
/* Declares the accumulators of a thread. */
void reduce_declare(reduction *s, reducing *r);
/* Combines the accumulators of a thread with an element of each array. */
void reduce_accumulate(reduction *s, const reducing *r, const char *const *x);
/* Combines the accumulators of a row's lanes: in a warp the upper half into the lower, until one is
 * left, then what the warps have. The first lane has them then; all, if there is another phase. */
void reduce_gather_lanes(reduction *s, uint32_t phase);
/* columns.c: returns how many columns a thread has: none is shared by its neighbors in memory, and
 * there is shared memory for their accumulators. Finds a tile of them where a result is transposed.
 */
int reduce_find_columns(reduction *s);
/* Returns the index of an element of each column, and opens the loop over them, in which lines are
 * written then. `step`: position in the column, of a tile's first row. */
const emit_index *reduce_columns_index(reduction *s, const char *step, emit_lines *inner);
/* Opens a loop over a thread's columns, u, if it has several; and closes it. */
void reduce_open_columns(reduction *s);
void reduce_close_columns(reduction *s);
/* Opens the loop over a thread's columns in which their results are written. */
void reduce_enter_column(reduction *s);

#endif
