/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels, which run all jobs except matmuls.
 *
 * A group of instructions (runtime/group/) becomes code (cuda_code_new): CUDA C whose text depends
 * only on the instructions and layouts of the job, and the launches that run it. The code of all
 * groups of a plan forms one program, which is compiled at once (nvrtc.c). Kernels receive the
 * addresses of arrays as arguments. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_KERNEL_H
#define HLO_RUNTIME_CUDA_CODEGEN_KERNEL_H

#include "runtime/cuda/driver/cuda.h"

typedef enum cuda_pointer_kind {
    CUDA_OPERAND,
    CUDA_RESULT,
    CUDA_SCRATCH,
    CUDA_NUMBER /* an integer argument, not an address */
} cuda_pointer_kind;

typedef struct cuda_pointer {
    cuda_pointer_kind kind;
    uint32_t index; /* index of the leaf in the job's operands or results */
    size_t offset;  /* CUDA_SCRATCH: byte offset in the job's scratch; CUDA_NUMBER: the number */
} cuda_pointer;

/* kernel.c: returns the address of a pointer of the job, or the number of a CUDA_NUMBER. */
void *cuda_pointer_of(const hlo_job *job, const cuda_pointer *pointer);

/* A kernel with its arguments, or a copy. */
typedef struct cuda_launch {
    const char *form;     /* for the plan's text: "copy", or the form of the kernel, such as "loop"
                           * or "row" */
    const char *text;     /* text after the kernel's name: `(const float *p0, ...) {...}`. If NULL,
                           * the launch copies `bytes` bytes from pointers[0] to pointers[1] unless
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

/* Generates the code of the job's group, in the arena. Returns NULL and sets `why`, as in
 * cuda_part, if that is impossible. Reads the job's operands, results and group, but not their
 * data. */
cuda_code *cuda_code_new(const cuda_device *device, const hlo_job *job, hlo_arena *arena,
                         const char **why);

/* Returns NULL if the instruction can run alone, otherwise the reason, as in cuda_part. */
const char *cuda_kernel_refusal(const hlo_instruction *instr);

enum { CUDA_POINTERS = 60 }; /* maximum number of pointers of a kernel */

/* Creates an empty program, which keeps the order of kernels and merges equal ones. Returns NULL if
 * memory runs out. The caller frees it with cuda_program_free(). */
cuda_program *cuda_program_new(void);
void cuda_program_free(cuda_program *program);
/* Adds the launch's kernel to the program unless it contains an equal kernel. Returns the kernel's
 * name, e.g. "loop_3", which the program owns, or NULL if memory runs out. */
const char *cuda_program_add(cuda_program *program, const cuda_launch *launch);
/* Prints all kernels as CUDA C, without the helper functions. */
void cuda_program_print(const cuda_program *program, int sm, FILE *out);
/* Returns all kernels as CUDA C, after the helper functions (cuda_helpers). The caller frees the
 * text. Returns NULL if memory runs out. */
char *cuda_program_source(const cuda_program *program);

/* The result of compiling a program. */
typedef struct cuda_image {
    void *bytes; /* the cubin */
    size_t size;
    char *log;   /* may be NULL */
    int result;  /* status of NVRTC */
    bool unkept; /* writing the cubin to the cache folder failed */
} cuda_image;
void cuda_image_free(cuda_image *image);
/* Compiles CUDA C for an architecture. Returns HLO_INVALID_INPUT if NVRTC rejects the source; the
 * log has the reason. The caller always frees *out. */
hlo_status cuda_image_compile(const cuda_library *lib, const char *source, int sm, cuda_image *out);
/* Reads the cubin of CUDA C source from `folder` or, if `folder` does not contain it, compiles the
 * source and stores the cubin there. If `folder` is NULL, there is no cache. */
hlo_status cuda_image_find(const cuda_library *lib, const char *folder, const char *source, int sm,
                           cuda_image *out);

#endif
