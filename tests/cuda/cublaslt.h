/* SPDX-License-Identifier: Apache-2.0 */
/* A fake cuBLASLt, which computes a matmul only from its descriptors, as specified in the cuBLAS
 * manual. This code does not depend on how runtime/cuda makes a call. */
#ifndef HLO_TESTS_CUDA_CUBLASLT_H
#define HLO_TESTS_CUDA_CUBLASLT_H

#include "standin.h"

/* The numbers of cudaDataType_t. */
enum {
    R_32F = 0,
    R_64F = 1,
    R_16F = 2,
    R_16BF = 14,
    R_8F_E4M3 = 28,
    R_8F_E5M2 = 29,
    R_4F_E2M1 = 33
};

enum { DESC_ATTRIBUTES = 39, LAYOUT_ATTRIBUTES = 9, PREFERENCE_ATTRIBUTES = 13 };

typedef struct attributes {
    uint64_t value[DESC_ATTRIBUTES];
} attributes;

struct lt_desc {
    int ordinal, compute, scale;
    attributes at; /* attribute values, by attribute number */
};

struct lt_layout {
    int ordinal;
    attributes at;
};

struct lt_preference {
    int ordinal;
    attributes at;
};

/* A matmul as specified to the library. */
typedef struct problem {
    struct lt_desc desc;
    struct lt_layout a, b, c, d;
    double alpha, beta;
    const void *a_data, *b_data, *c_data;
    void *d_data;
    bool wrong; /* inject a wrong result */
} problem;

/* cublaslt_matmul.c: computes a matmul. Returns false if it reads or writes outside of allocated
 * memory. */
bool standin_matmul(const problem *p);
int standin_element_bits(int type);

/* cublaslt_rules.c: returns the library's log line about an unsupported problem, and the status;
 * NULL if it is supported. The alignment of matrices that are NULL, as in a query of the heuristic,
 * is not checked. */
const char *standin_refusal(const problem *p, int *out_status);
size_t standin_version(void);

#endif
