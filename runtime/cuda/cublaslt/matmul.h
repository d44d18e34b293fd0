/* Matrix products by cuBLASLt: from an instruction to a problem, which is plain data, and from a
 * problem to a call that can be launched. cuda_matmul_part (cuda.h) is made of these.
 *
 * cuBLASLt's matrices are column-major and HLO's row-major: a row-major [r,c] array *is* a
 * column-major c x r matrix, so D[m,n] = A[m,k] B[k,n] is computed as D^T = B^T A^T, and the
 * library's A is the instruction's b. (Where D itself is column-major nothing is swapped.) Rows,
 * cols, m and n below are the library's: D has m rows and n cols.
 *
 * An operand that does not lie as the library wants it (its contracting dimension is not minor and
 * the target takes TN only; dimensions that do not join to one; an element type that it has no
 * product for) is copied first, to the call's scratch memory. A result of that kind is made there
 * and copied out. */
#ifndef HLO_RUNTIME_CUDA_MATMUL_H
#define HLO_RUNTIME_CUDA_MATMUL_H

#include "matmul/call.h"
#include "runtime/cuda/codegen/kernel.h"
#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"

/* cuBLASLt's numbers. */
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

/* NULL when the table has no such attribute. Static. */
const lt_attribute *lt_attribute_find(lt_object object, int number);
/* The word of word.def, or of matmul/table/scale.def, that has that number; "?" when none has. */
const char *lt_word(lt_kind kind, int64_t number);

typedef enum lt_part {
#define LT_PART(id, name) LT_PART_##id,
#include "runtime/cuda/cublaslt/part.def"
#undef LT_PART
    LT_PART_COUNT
} lt_part;

const char *lt_part_name(lt_part part);

/* ------------------------------------------------------------------------------------- problems */

/* A column-major matrix, or as many of them as the problem's `batch`. */
typedef struct lt_matrix {
    int type;               /* LT_TYPE_... */
    int64_t rows, cols, ld; /* elements */
    int64_t stride;         /* elements from one matrix to the next; 0: one for all */
} lt_matrix;

/* An attribute of the matmul's descriptor; a pointer's value is an lt_part. */
typedef struct lt_setting {
    int attribute; /* LT_DESC_... */
    int64_t value;
} lt_setting;

/* A part that is copied before the call (A, B, C) or after it (D, AUX), element by element, and
 * converted as HLO's convert does where the types differ. One of the two is scratch memory. The
 * views have the same dimensions, in the instruction's order, and no data. */
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
    int compute, scale_type;            /* LT_COMPUTE_..., LT_TYPE_... of alpha and beta */
    lt_matrix matrices[4];              /* by lt_part, A to D */
    lt_setting settings[CUDA_SETTINGS]; /* in the order in which they are set */
    uint32_t setting_count;
    double alpha, beta;
    size_t workspace;   /* bytes that it may use at most */
    int reductions;     /* LT_REDUCTION_...: MASK stands for all; where D is narrower than what sums
                           are made in, those that would round partial sums to it are left out */
    uint32_t alignment; /* bytes to which all parts are aligned */
    uint32_t present;   /* bit p: the call has the lt_part p, which is at places[p] */
    cuda_pointer places[LT_PART_COUNT];
    cuda_copy copies[CUDA_COPIES]; /* those before the call first */
    uint32_t copies_before, copy_count;
    size_t scratch; /* bytes, the workspace included */
    int overwrites; /* the operand leaf whose memory D may take; -1: none */
} cuda_matmul;

typedef struct cuda_matmul_options {
    hlo_target target;  /* `cuda`: of the cuBLASLt library, major * 100 + minor */
    size_t workspace;   /* bytes */
    uint32_t alignment; /* bytes to which operands, results and scratch memory are aligned, at
                           least; a power of two from 16 to 256 */
} cuda_matmul_options;

/* Makes the problem of a dot, an FP8 matmul call, or a call on wider types. Needs no device and no
 * library. What is allocated is in the arena. False when it is none that cuBLASLt runs (a dot can
 * then be computed in some other way): `why` is a sentence as cuda_part has it, which names the
 * rule that it breaks, static or in the arena; NULL for what is no matmul at all. */
bool cuda_matmul_plan(const hlo_instr *instr, const cuda_matmul_options *options, hlo_arena *arena,
                      cuda_matmul *out_matmul, const char **why);

/* What cuBLASLt does not take of a problem that is otherwise as its types.def and limit.def want:
 * sizes, leading dimensions, alignment, transposition. NULL when there is nothing; else a sentence
 * that names the rule and the numbers, in the arena. */
const char *cuda_matmul_preflight(const cuda_matmul *matmul, const cuda_matmul_options *options,
                                  hlo_arena *arena);

/* The problem as text, each line behind `indent`. It depends on nothing but the problem. */
void cuda_matmul_print(const cuda_matmul *matmul, const char *indent, FILE *out);

/* What makes two problems the same for the library, in one line: all of it but where the parts are,
 * and the values of alpha and beta. In the arena. */
const char *cuda_matmul_key(const cuda_matmul *matmul, hlo_arena *arena);

/* ---------------------------------------------------------------------------------------- calls */

/* A problem with its descriptors and an algorithm. Launching one sets its pointers: each is for one
 * thread at a time. */
typedef struct cuda_call cuda_call;

/* Makes the descriptors and sets every pointer; `addresses` are those of the parts. The device,
 * whose library and handle are open, and the matmul are borrowed. HLO_INVALID_INPUT or
 * HLO_OUT_OF_MEMORY, with `why` of `size` bytes filled. The caller frees *out_call with
 * cuda_call_free(). */
hlo_status cuda_call_new(const cuda_device *device, const cuda_matmul *matmul,
                         void *const addresses[LT_PART_COUNT], char *why, size_t size,
                         cuda_call **out_call);
void cuda_call_free(cuda_call *call); /* NULL is allowed */

/* Asks the library for algorithms, the one that it thinks fastest first, and writes at most `count`
 * of them, only such as run. HLO_INVALID_INPUT when there is none: `why` has the library's own log
 * line. */
hlo_status cuda_call_heuristic(cuda_call *call, uint32_t count, lt_heuristic *out_found,
                               uint32_t *out_count, char *why, size_t size);

/* Whether the library takes an algorithm that it has given before, perhaps in another process, for
 * this call, within its workspace. */
bool cuda_call_accepts(const cuda_call *call, const lt_heuristic *algorithm);

/* Sets the pointers to `addresses` and queues the call with that algorithm, and nothing else: it
 * may be captured in a graph. Copies are the caller's. Errors as above. */
hlo_status cuda_call_launch(cuda_call *call, const lt_algo *algo,
                            void *const addresses[LT_PART_COUNT], char *why, size_t size);

#endif
