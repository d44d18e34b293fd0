/* Generated kernels: everything that is no matmul.
 *
 * A group of instructions (kernel/fusion.c) becomes code (cuda_code_new): CUDA C whose text depends
 * on nothing but the instructions and the layouts of the job, and the launches that run it. The
 * code of all groups of a plan is one program, compiled at once (nvrtc.h). Pointers are the only
 * arguments; shapes, strides and constants are in the text.
 *
 * Values are computed as ir/eval computes them: floats of at most 32 bits in f32 and rounded to the
 * type of every instruction, integers wrapped to theirs. Sums are accumulated in f32 (f64 for f64)
 * and rounded once. Their order is fixed by the shape: a thread adds every n-th element of its part
 * in turn, n being the threads that share it; the threads' sums are added as a tree, upper half to
 * lower half; where several blocks share a sum, a second launch does the same with theirs. Nothing
 * is added atomically, so two runs give the same bits. */
#ifndef HLO_RUNTIME_CUDA_KERNEL_H
#define HLO_RUNTIME_CUDA_KERNEL_H

#include "runtime/cuda/driver/cuda.h"

typedef enum cuda_pointer_kind { CUDA_OPERAND, CUDA_RESULT, CUDA_SCRATCH } cuda_pointer_kind;

typedef struct cuda_pointer {
    cuda_pointer_kind kind;
    uint32_t index; /* leaf of the job's operands or results */
    size_t offset;  /* CUDA_SCRATCH: bytes into the job's scratch */
} cuda_pointer;

/* A kernel with its arguments, or a copy. */
typedef struct cuda_launch {
    const char *form;     /* "loop", "row", ... as the plan's text calls it; "copy" */
    const char *text;     /* what follows the kernel's name: `(const float *p0, ...) {...}`; NULL: a
                             copy of `bytes` bytes from pointers[0] to pointers[1], nothing when
                             they are the same */
    uint32_t grid, block; /* blocks, and threads of one, along x */
    uint32_t pointer_count;
    cuda_pointer *pointers;
    size_t bytes; /* of all that the pointers point to, scratch not counted */
} cuda_launch;

typedef struct cuda_code {
    uint32_t launch_count;
    cuda_launch *launches;
    size_t scratch_size;
    int overwrites; /* as hlo_job.overwrites */
} cuda_code;

/* The code of the job's group, in the arena. NULL, with `why` as cuda_part has it: no kernel can be
 * made. The job's operands, results and group are read, their data is not. */
cuda_code *cuda_code_new(const cuda_device *device, const hlo_job *job, hlo_arena *arena,
                         const char **why);

/* NULL when the instruction can run as a group of one; else why not, as cuda_part has it. */
const char *cuda_kernel_refusal(const hlo_instr *instr);

enum { CUDA_POINTERS = 60 }; /* that a kernel takes at most */

/* Kernels under one roof, in the order in which they came; equal ones are one. */
cuda_program *cuda_program_new(void); /* NULL when memory runs out; freed by the caller */
void cuda_program_free(cuda_program *program);
/* The name of the launch's kernel in the program, to which it is added when no equal one is there:
 * "loop_3", say. Owned by the program; NULL when memory runs out. */
const char *cuda_program_add(cuda_program *program, const cuda_launch *launch);
/* All kernels as CUDA C. The helpers that they call (cuda_helpers) stand before them only when
 * `helpers`: a test puts others in their place. The caller frees it; NULL when memory runs out. */
char *cuda_program_source(const cuda_program *program, bool helpers);

/* -------------------------------------------------------------------------------------- nvrtc.c */

/* What NVRTC makes of a program. */
typedef struct cuda_image {
    void *bytes; /* a cubin */
    size_t size;
    char *log;  /* NULL: there is none */
    int result; /* NVRTC's */
} cuda_image;
void cuda_image_free(cuda_image *image);
/* Compiles CUDA C for an architecture. HLO_INVALID_INPUT: NVRTC does not take it; its log says why.
 * The caller frees *out in any case. */
hlo_status cuda_image_compile(const cuda_library *lib, const char *source, int sm, cuda_image *out);
/* The same, but what is in the folder of kept cubins is not compiled again, and what is compiled is
 * kept there. `folder` NULL: nothing is kept. */
hlo_status cuda_image_find(const cuda_library *lib, const char *folder, const char *source, int sm,
                           cuda_image *out);

#endif
