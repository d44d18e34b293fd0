/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLASLt. cuda_matmul_plan() creates a problem, which is plain data, from an
 * instruction. cuda_call_new() creates a call that can be launched from a problem. cuda_matmul_part
 * (cuda.h) uses both functions.
 *
 * cuBLASLt's matrices are column-major, and HLO's arrays are row-major. A row-major [r,c] array
 * *is* a column-major c x r matrix, so D[m,n] = A[m,k] B[k,n] is computed as D^T = B^T A^T. The
 * library's A is then the instruction's b. (If D itself is column-major, nothing is swapped.)
 * Below, rows, cols, m and n are those of the library: D has m rows and n cols.
 *
 * If the batch dimensions of an operand cannot be merged, the operand is copied. The call is
 * instead repeated for each index of the first batch dimension if that costs less.
 *
 * An operand that the library does not support is first copied to the call's scratch memory.
 * Reasons are a contracting dimension that is not minor for a target that supports only TN,
 * dimensions that cannot be merged, and an unsupported element type. A result that the library does
 * not support is computed in scratch memory and copied from there. An operand of f4e2m1fn has one
 * element per byte in the plan's memory, but two in the library's. Therefore it is always copied,
 * and no other kernel has to write half a byte. */
#ifndef HLO_RUNTIME_CUDA_CUBLASLT_MATMUL_H
#define HLO_RUNTIME_CUDA_CUBLASLT_MATMUL_H

#include "matmul/call.h"
#include "runtime/cuda/codegen/kernel.h"
#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"

/* Enumerators of cuBLASLt. */
enum {
#define LT_ATTRIBUTE(object, name, number, bytes, kind) LT_##object##_##name = number,
#include "runtime/cuda/cublaslt/attribute.def"
#undef LT_ATTRIBUTE
#define LT_WORD(kind, name, number) LT_##kind##_##name = number,
#include "runtime/cuda/cublaslt/word.def"
#undef LT_WORD
};

typedef enum lt_object { LT_DESC, LT_LAYOUT, LT_PREFERENCE } lt_object;

typedef enum lt_kind {
    LT_NUMBER,
    LT_POINTER,
    LT_MODE,
    LT_TYPE,
    LT_COMPUTE,
    LT_OPERATION,
    LT_EPILOGUE,
    LT_REDUCTION
} lt_kind;

/* A row of attribute.def. */
typedef struct lt_attribute {
    lt_object object;
    const char *name;
    int number;
    size_t bytes;
    lt_kind kind;
} lt_attribute;

/* Returns the attribute of an object with that number (static), or NULL. */
const lt_attribute *lt_attribute_find(lt_object object, int number);
/* Returns the word for that number in word.def or matmul/table/scale.def, or "?". */
const char *lt_word(lt_kind kind, int64_t number);

/* An element type of matrices. */
typedef struct lt_type {
    int word; /* LT_TYPE_... */
    hlo_type type;
    double step; /* relative rounding of the type, or of a sum in f32 */
} lt_type;

/* Returns the type with a number of word.def. */
const lt_type *lt_type_find(int number);
/* Returns the LT_TYPE_... of a type, or LT_TYPE_32F if matrices cannot have the type. */
int lt_type_word(hlo_type type);

typedef enum lt_part {
#define LT_PART(id, name) LT_PART_##id,
#include "runtime/cuda/cublaslt/part.def"
#undef LT_PART
    LT_PART_COUNT
} lt_part;

const char *lt_part_name(lt_part part);

/* A column-major matrix, or a batch of `batch` matrices. */
typedef struct lt_matrix {
    int type;               /* LT_TYPE_... */
    int64_t rows, cols, ld; /* numbers of elements */
    int64_t stride;         /* elements between matrices; 0 if all are the same */
} lt_matrix;

/* An attribute of the matmul's descriptor. For a pointer, `value` is an lt_part. */
typedef struct lt_setting {
    int attribute; /* LT_DESC_... */
    int64_t value;
} lt_setting;

/* A copy of a part before the call (A, B, C) or after the call (D, AUX). If the types differ,
 * elements are converted like HLO's convert. One of the two sides is scratch memory. The views have
 * equal dimensions, in the instruction's order, and no data. As an exception, f4e2m1fn is copied to
 * u8 with two elements per byte, the first in the low bits. The dimension along which elements are
 * packed then has half the size. */
typedef struct cuda_copy {
    lt_part part;
    cuda_pointer from, to;
    hlo_view from_view, to_view;
    const char *why; /* e.g. "sm_90 takes TN only"; static or in the arena */
} cuda_copy;

enum { CUDA_SETTINGS = 20, CUDA_COPIES = 5 };

typedef struct cuda_matmul {
    bool fp8;
    int64_t m, n, k, batch;
    int64_t times;                      /* number of calls, each of `batch` matrices */
    int64_t steps[4];                   /* bytes between calls, by lt_part A to D */
    int compute, scale_type;            /* LT_COMPUTE_..., LT_TYPE_... of alpha and beta */
    lt_matrix matrices[4];              /* by lt_part, A to D */
    lt_setting settings[CUDA_SETTINGS]; /* in the order in which they are set */
    uint32_t setting_count;
    double alpha, beta;
    size_t workspace;   /* maximum size of the workspace in bytes */
    int reductions;     /* set of LT_REDUCTION_... that may be used. If D is narrower than the
                         * accumulator, reductions that round partial sums to D's type are
                         * excluded */
    uint32_t alignment; /* minimum alignment of all parts in bytes */
    uint32_t present;   /* bit p is set if the call has the lt_part p, which is at places[p] */
    cuda_pointer places[LT_PART_COUNT];
    cuda_copy copies[CUDA_COPIES]; /* copies before the call, followed by copies after it */
    uint32_t copies_before, copy_count;
    size_t scratch; /* bytes of scratch memory, including the workspace */
    int overwrites; /* the operand leaf whose memory D may reuse, or -1 */
} cuda_matmul;

typedef struct cuda_matmul_options {
    const hlo_target *target;
    int cuda;           /* the version of cuBLASLt, major * 1000 + minor * 10 */
    size_t workspace;   /* maximum workspace in bytes */
    uint32_t alignment; /* minimum alignment of operands, results and scratch memory in bytes; a
                         * power of two from 16 to 256 */
} cuda_matmul_options;

/* Creates the problem of a dot, an FP8 matmul call, or a call on wider types. Allocates in the
 * arena; requires neither a device nor a library. Returns false if cuBLASLt does not support the
 * instruction; another part may then support a dot. `why` is then a reason as in cuda_part, static
 * or in the arena, that names the violated rule. If the instruction is not a matmul, `why` is
 * NULL. */
bool cuda_matmul_plan(const hlo_instruction *instr, const cuda_matmul_options *options,
                      hlo_arena *arena, cuda_matmul *out_matmul, const char **why);

/* Returns a text in the arena that names the limit of cuBLASLt that a problem violates and the
 * violating number, or NULL. Checks the limits that types.def and limit.def do not cover: sizes,
 * leading dimensions, alignment, transposition. */
const char *cuda_matmul_preflight(const cuda_matmul *matmul, const cuda_matmul_options *options,
                                  hlo_arena *arena);

/* Prints the problem. Each line begins with `indent`. The text depends only on the problem. */
void cuda_matmul_print(const cuda_matmul *matmul, const char *indent, FILE *out);

/* Returns a one-line key, in the arena, that is equal for problems that the library treats alike.
 * The key covers the whole problem except the addresses of parts and the values of alpha and
 * beta. */
const char *cuda_matmul_key(const cuda_matmul *matmul, hlo_arena *arena);

/* A problem with its descriptors and an algorithm. Launching a call sets its pointers, so each call
 * must be used by one thread at a time. */
typedef struct cuda_call cuda_call;

/* Returns the alignment of an address: a power of two, at most the 256 that cuBLASLt needs. */
uint32_t cuda_alignment_of(const void *address);

/* Creates the descriptors and sets every pointer; `addresses` are those of the parts. Borrows the
 * matmul and the device, whose library and handle must be open. Returns HLO_INVALID_INPUT or
 * HLO_OUT_OF_MEMORY on failure, and writes the reason to `why`, of `size` bytes. The caller frees
 * *out_call with cuda_call_free(). */
hlo_status cuda_call_new(const cuda_device *device, const cuda_matmul *matmul,
                         void *const addresses[LT_PART_COUNT], char *why, size_t size,
                         cuda_call **out_call);
void cuda_call_free(cuda_call *call); /* NULL is allowed */

/* Writes at most `count` usable algorithms, in the order of the library's heuristic, which puts the
 * fastest first. Returns HLO_INVALID_INPUT if there is no usable algorithm; `why` then has the
 * library's log line. */
hlo_status cuda_call_heuristic(cuda_call *call, uint32_t count, lt_heuristic *out_found,
                               uint32_t *out_count, char *why, size_t size);

/* True if the library accepts an algorithm for this call and its workspace. The library returned
 * the algorithm before, possibly to another process. Writes the workspace that the algorithm
 * requires. */
bool cuda_call_accepts(const cuda_call *call, lt_heuristic *algorithm);

/* Sets the pointers to `addresses` and enqueues the call, with that algorithm and as much workspace
 * as the algorithm requires. The call may be captured in a graph. Does not run the problem's
 * copies. Returns errors like cuda_call_new(). */
hlo_status cuda_call_launch(cuda_call *call, const lt_heuristic *algorithm,
                            void *const addresses[LT_PART_COUNT], char *why, size_t size);

/* autotune.c. Chooses an algorithm among at most device->autotune algorithms. The job and the
 * addresses belong to the call. Does not run the problem's copies. Emits warnings and results to
 * device->sink, at the instruction's location. Returns HLO_INVALID_INPUT, and writes the reason to
 * `why`, of `size` bytes, if every algorithm fails, the cache cannot be read or written, or the
 * device fails. */
hlo_status cuda_autotune(cuda_device *device, const hlo_job *job, const cuda_matmul *matmul,
                         cuda_call *call, void *const addresses[LT_PART_COUNT],
                         lt_heuristic *out_chosen, char *why, size_t size);

#endif
