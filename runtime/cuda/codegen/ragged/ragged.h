/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for ragged-dots: the state that the files of this folder share. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_RAGGED_RAGGED_H
#define HLO_RUNTIME_CUDA_CODEGEN_RAGGED_RAGGED_H

#include "ir/module/ragged.h"
#include "runtime/cuda/codegen/emit.h"

/* SIDE: a block has SIDE * SIDE threads. DEPTH: terms in shared memory at once. */
enum { SIDE = 16, DEPTH = 16 };
/* Merged dimensions of an operand. */
typedef struct ragged_dims {
    uint32_t count, order[HLO_EVAL_MAX_RANK]; /* from the fastest to the slowest */
    int64_t size;
} ragged_dims;

/* One side of the tile: its rows, or its columns. */
typedef struct ragged_side {
    const hlo_instr *operand;
    const hlo_ints *summed;
    int64_t to[HLO_EVAL_MAX_RANK], after; /* the result's dimension, or -1; and the next */
    ragged_dims open;                     /* dimensions that the tile divides */
    int each;                             /* rows or columns per thread */
    const char *base;                     /* the tile's first row or column */
    const char *shared; /* the operand's part in shared memory, [DEPTH][each * SIDE] */
    const char *at[HLO_EVAL_MAX_RANK];
} ragged_side;

typedef struct ragging {
    emit *e;
    const hlo_instr *instr;
    hlo_ragged r;
    hlo_type type;
    const char *sum_type; /* type of sums; integers wrap */
    ragged_side side[2];
    ragged_dims summed; /* of the left operand: the dimensions that one loop iterates over */
    ragged_dims apart;  /* CONTRACTING: the other contracting dimensions */
    const char *sums;   /* sums of a thread, [rows][columns] */
    const char *result[HLO_EVAL_MAX_RANK];
    bool on_tensor_cores; /* mma.c */
} ragging;

/* Splits a linear index over the dimensions `d` of an operand. */
void ragged_split(ragging *g, const char *linear, const ragged_side *s, const ragged_dims *d,
                  const char **at);
/* The part of the operands that is in shared memory at once: terms from `step` to `end`, rows in
 * [first, last) of the left operand; 0 elsewhere. */
typedef struct ragged_part {
    const char *step, *end, *first, *last;
} ragged_part;

/* Elements that a thread copies to shared memory. */
typedef struct ragged_place {
    const char *term, *row; /* position of the first one in the tile, */
    const char *k, *at;     /* and in the operand */
    const char *first, *last, *end;
    bool by_terms; /* they belong to one row; otherwise to one term */
} ragged_place;

/* Opens the loop in which threads copy a tile of `terms` terms of `width` rows to shared memory,
 * `run` elements at once. Neighboring threads of a warp copy neighboring elements in memory. */
ragged_place ragged_open_tile(ragging *g, unsigned number, const ragged_part *part, int width,
                              int terms, int run);
/* Opens the condition that elements are in the part, and sets the operand's index to the first
 * element. */
void ragged_open_inside(ragging *g, unsigned number, const ragged_place *place);

/* On the tensor cores, a block computes a square of the result, each of its warps 16 rows and 32
 * columns of that, and each thread the sums [r][c] of these. */
enum { RAGGED_MMA_SIDE = 64, RAGGED_MMA_ROWS = 2, RAGGED_MMA_COLUMNS = 8 };
#define RAGGED_MMA_ROW "threadIdx.x / 64 * 16 + threadIdx.x % 32 / 4 + r * 8"
#define RAGGED_MMA_COLUMN "threadIdx.x / 32 % 2 * 32 + c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2"

/* True if tensor cores multiply the operands: both FP8 types are supported. */
bool ragged_has_mma(const ragging *g);
/* Writes the declarations of a block's shared memory for them. */
void ragged_mma_declare(ragging *g);
/* Adds the terms from `start` to `end`, for rows in [first, last). The sums of other rows do not
 * change. */
void ragged_mma_terms(ragging *g, const char *start, const char *end, const char *first,
                      const char *last);

void emit_ragged(emit *e, cuda_code *code);
/* Returns why kernels do not support the ragged-dot, or NULL. */
const char *cuda_ragged_refusal(const hlo_instr *instr);

#endif
