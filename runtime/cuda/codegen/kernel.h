/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels: every job without a matmul.
 *
 * A group of instructions (runtime/group/) becomes code (cuda_code_new): CUDA C whose text depends
 * on nothing but the instructions and the layouts of the job, and the launches that run it. The
 * code of all groups of a plan is one program, compiled at once (nvrtc.c). Pointers are arguments.
 */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_KERNEL_H
#define HLO_RUNTIME_CUDA_CODEGEN_KERNEL_H

#include "runtime/cuda/driver/cuda.h"

typedef enum cuda_pointer_kind {
    CUDA_OPERAND,
    CUDA_RESULT,
    CUDA_SCRATCH,
    CUDA_NUMBER /* no address */
} cuda_pointer_kind;

typedef struct cuda_pointer {
    cuda_pointer_kind kind;
    uint32_t index; /* leaf of the job's operands or results */
    size_t offset;  /* CUDA_SCRATCH: bytes into the job's scratch; CUDA_NUMBER: the number */
} cuda_pointer;

/* kernel.c: returns the address of a job's pointer, or the number. */
void *cuda_pointer_of(const hlo_job *job, const cuda_pointer *pointer);

/* A kernel with its arguments, or a copy. */
typedef struct cuda_launch {
    const char *form;     /* "loop", "row", ..., for the plan's text; "copy" */
    const char *text;     /* what follows the kernel's name: `(const float *p0, ...) {...}`; NULL: a
                             copy of `bytes` bytes from pointers[0] to pointers[1], nothing when
                             they are the same */
    uint32_t grid, block; /* blocks, and threads of one, along x */
    uint32_t pointer_count;
    cuda_pointer *pointers;
    size_t bytes; /* of all arrays that the pointers refer to, without scratch */
} cuda_launch;

typedef struct cuda_code {
    uint32_t launch_count, launch_capacity;
    cuda_launch *launches;
    size_t scratch_size;
    hlo_overwrites overwrites;
} cuda_code;

/* Makes the code of the job's group, in the arena. NULL: no kernel can be made, and `why` is as for
 * cuda_part. Reads the job's operands, results and group, not their data. */
cuda_code *cuda_code_new(const cuda_device *device, const hlo_job *job, hlo_arena *arena,
                         const char **why);

/* Returns why the instruction cannot run as a group of one, as for cuda_part; NULL: it can. */
const char *cuda_kernel_refusal(const hlo_instr *instr);

enum { CUDA_POINTERS = 60 }; /* of a kernel at most */

/* Makes an empty program, in which kernels keep their order and equal ones are one; NULL when
 * memory runs out. The caller frees it with cuda_program_free(). */
cuda_program *cuda_program_new(void);
void cuda_program_free(cuda_program *program);
/* Returns the name of the launch's kernel in the program, "loop_3", and adds the kernel unless an
 * equal one is there. Owned by the program; NULL when memory runs out. */
const char *cuda_program_add(cuda_program *program, const cuda_launch *launch);
/* Prints all kernels as CUDA C, without their functions. */
void cuda_program_print(const cuda_program *program, int sm, FILE *out);
/* Returns all kernels as CUDA C, behind their functions (cuda_helpers). The caller frees it; NULL
 * when memory runs out. */
char *cuda_program_source(const cuda_program *program);

/* -------------------------------------------------------------------------------------- nvrtc.c */

/* The result of compiling a program. */
typedef struct cuda_image {
    void *bytes; /* a cubin */
    size_t size;
    char *log;   /* NULL: there is none */
    int result;  /* status of NVRTC */
    bool unkept; /* it could not be written to the folder */
} cuda_image;
void cuda_image_free(cuda_image *image);
/* Compiles CUDA C for an architecture. HLO_INVALID_INPUT: NVRTC refuses it; its log has the reason.
 * The caller frees *out in any case. */
hlo_status cuda_image_compile(const cuda_library *lib, const char *source, int sm, cuda_image *out);
/* Compiles CUDA C unless its cubin is in `folder`, and keeps the cubin there. `folder` NULL:
 * nothing is kept. */
hlo_status cuda_image_find(const cuda_library *lib, const char *folder, const char *source, int sm,
                           cuda_image *out);

#endif
