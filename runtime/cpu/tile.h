/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of elementwise instructions, computed tile by tile, so that intermediate values stay in
 * the cache. Each value is rounded to its type as if it had been written to memory. */
#ifndef HLO_RUNTIME_CPU_TILE_H
#define HLO_RUNTIME_CPU_TILE_H

#include "ir/kernel/kernel.h"
#include "runtime/cpu/cpu.h"

/* Groups live instructions; see hlo_backend.group. */
uint32_t cpu_tile_group(const hlo_instr *const *live, uint32_t count, hlo_arena *arena,
                        hlo_group **out_groups);
/* Creates the program of a group of several instructions, which is the job's state. */
void cpu_tile_prepare(hlo_job *job, hlo_arena *arena);
/* Runs the program. */
void cpu_tile_execute(const cpu_device *cpu, const hlo_job *job);

/* ------------------------------------------------------------------------------------- programs */

/* A tile's elements of an operand or a result, in memory; or a buffer of the tile. */
typedef enum tile_place { TILE_BUFFER, TILE_OPERAND, TILE_RESULT } tile_place;
typedef struct tile_ref {
    tile_place place;
    uint32_t index;
    uint32_t bytes; /* bytes of an element in memory */
} tile_ref;

/* An operand whose elements are read in an order that differs from memory order. */
typedef struct tile_source {
    uint32_t operand, rank;                                    /* at least 1 */
    int64_t dims[HLO_EVAL_MAX_RANK], steps[HLO_EVAL_MAX_RANK]; /* bytes */
} tile_source;

typedef enum tile_op_kind {
    TILE_GATHER,  /* elements of a source */
    TILE_COPY,    /* elements of `type` */
    TILE_LOAD,    /* elements of `type` to lanes */
    TILE_STORE,   /* lanes to elements of `type` */
    TILE_CONVERT, /* lanes of `type` to elements of `to` */
    TILE_LOOP     /* lanes to lanes */
} tile_op_kind;

typedef struct tile_op {
    tile_op_kind kind;
    hlo_type type, to;
    tile_ref in[3], out;
    uint32_t in_count;
    const tile_source *source;
    hlo_lane_op loop;
} tile_op;

/* The first `once` ops fill buffers that every tile reads. */
typedef struct tile_program {
    tile_op *ops;
    uint32_t op_count, once;
    uint32_t buffer_count;
    int64_t count;  /* elements */
    int64_t length; /* elements per tile */
} tile_program;

enum {
    TILE_LENGTH = 512,     /* maximum elements per tile */
    TILE_MEMORY = 6 * 1024 /* lanes of all buffers together, 8 bytes each */
};

#endif
