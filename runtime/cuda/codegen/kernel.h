/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels, for all jobs without a matmul.
 *
 * A group of instructions (runtime/group/) becomes code (cuda_code_new): CUDA C whose text depends
 * only on the instructions and layouts of the job, and the launches that run it. The code of all
 * groups of a plan is one program, compiled at once (nvrtc.c). Pointers are arguments. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_KERNEL_H
#define HLO_RUNTIME_CUDA_CODEGEN_KERNEL_H

#include "runtime/cuda/driver/cuda.h"

typedef enum cuda_pointer_kind {
    CUDA_OPERAND,
    CUDA_RESULT,
    CUDA_SCRATCH,
    CUDA_NUMBER /* not an address */
} cuda_pointer_kind;

typedef struct cuda_pointer {
    cuda_pointer_kind kind;
    uint32_t index; /* index of the leaf in the job's operands or results */
    size_t offset;  /* CUDA_SCRATCH: byte offset in the job's scratch; CUDA_NUMBER: the number */
} cuda_pointer;

/* kernel.c: returns the address of a job's pointer, or the number. */
void *cuda_pointer_of(const hlo_job *job, const cuda_pointer *pointer);

/* A kernel with its arguments, or a copy. */
typedef struct cuda_launch {
    const char *form;     /* "loop", "row", ..., for the plan's text; "copy" */
    const char *text;     /* text after the kernel's name: `(const float *p0, ...) {...}`. NULL: a
                           * copy of `bytes` bytes from pointers[0] to pointers[1], or nothing if
                           * they are equal */
    uint32_t grid, block; /* number of blocks, and threads per block, along x */
    uint32_t pointer_count;
    cuda_pointer *pointers;
    size_t bytes; /* total size of the arrays that the pointers refer to, without scratch */
} cuda_launch;

typedef struct cuda_code {
    uint32_t launch_count, launch_capacity;
    cuda_launch *launches;
    size_t scratch_size;
    hlo_overwrites overwrites;
} cuda_code;

/* Generates the code of the job's group, in the arena. Returns NULL if that is impossible, with
 * `why` as for cuda_part. Reads the job's operands, results and group, but not their data. */
cuda_code *cuda_code_new(const cuda_device *device, const hlo_job *job, hlo_arena *arena,
                         const char **why);

/* Returns why the instruction cannot run as a group of one, as for cuda_part, or NULL. */
const char *cuda_kernel_refusal(const hlo_instr *instr);

enum { CUDA_POINTERS = 60 }; /* maximum number of pointers of a kernel */

/* Creates an empty program, which keeps the order of kernels and merges equal ones; NULL if memory
 * runs out. The caller frees it with cuda_program_free(). */
cuda_program *cuda_program_new(void);
void cuda_program_free(cuda_program *program);
/* Returns the name of the launch's kernel in the program, "loop_3", after adding the kernel unless
 * an equal one exists. Owned by the program; NULL if memory runs out. */
const char *cuda_program_add(cuda_program *program, const cuda_launch *launch);
/* Prints all kernels as CUDA C, without the helper functions. */
void cuda_program_print(const cuda_program *program, int sm, FILE *out);
/* Returns all kernels as CUDA C, after the helper functions (cuda_helpers). The caller frees it;
 * NULL if memory runs out. */
char *cuda_program_source(const cuda_program *program);

/* The result of compiling a program. */
typedef struct cuda_image {
    void *bytes; /* a cubin */
    size_t size;
    char *log;   /* may be NULL */
    int result;  /* status of NVRTC */
    bool unkept; /* writing it to the cache folder failed */
} cuda_image;
void cuda_image_free(cuda_image *image);
/* Compiles CUDA C for an architecture. HLO_INVALID_INPUT: NVRTC rejects it; the log has the reason.
 * The caller always frees *out. */
hlo_status cuda_image_compile(const cuda_library *lib, const char *source, int sm, cuda_image *out);
/* Compiles CUDA C, or reads the cubin from `folder` if it is cached there. Stores new cubins in
 * `folder`; NULL: no cache. */
hlo_status cuda_image_find(const cuda_library *lib, const char *folder, const char *source, int sm,
                           cuda_image *out);

#endif
