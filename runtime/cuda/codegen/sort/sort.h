/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for sorts and scatters: the launches around the functions of sort.cuh. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_SORT_SORT_H
#define HLO_RUNTIME_CUDA_CODEGEN_SORT_SORT_H

#include "runtime/cuda/codegen/emit.h"

typedef struct sorting sorting;
struct sorting {
    emit *e;
    cuda_code *code;
    int64_t rows, count;     /* rows, each sorted separately, and records per row */
    const char *record;      /* type of a record */
    const char *declaration; /* declaration of that type, or NULL */
    size_t bytes;            /* bytes per record */
    bool across;             /* neighbors in memory belong to different rows */
    void *user;
    /* Write the bodies of functions; `row` and `at` are the position of a record. */
    void (*load)(sorting *s, const char *row, const char *at); /* ends with a return */
    const char *(*less)(sorting *s, const char *x, const char *y);
    /* NULL: the sorted records stay in scratch memory */
    void (*store)(sorting *s, const char *row, const char *at, const char *x);

    int each, span; /* set by emit_sorting(): records per thread, positions of a row in a tile */
};

/* Adds the launches that sort stably, for any order. Returns the offset in scratch memory of the
 * sorted records, if they stay there. */
size_t emit_sorting(sorting *s);

/* Write the launches of the job into `code`; on failure, set e->why. */
void emit_sort(emit *e, cuda_code *code);
void emit_scatter(emit *e, cuda_code *code);
/* Returns why kernels do not support the scatter or sort, or NULL. */
const char *cuda_applied_refusal(const hlo_instr *instr);

#endif
