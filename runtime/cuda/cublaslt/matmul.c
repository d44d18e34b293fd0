/* SPDX-License-Identifier: Apache-2.0 */
/* Matmuls as jobs of the CUDA backend: copies of operands whose layouts cuBLASLt does not support,
 * the call, and copies to results whose layouts it does not support. */
#include "runtime/cuda/cublaslt/matmul.h"
#include "ir/kernel/kernel.h"

/* Alignment of the plan's buffers in bytes. cuBLASLt's algorithms require no more than this. */
enum { ALIGNMENT = 256 };

typedef struct matmul_job {
    cuda_matmul problem;
    hlo_job copies[CUDA_COPIES];      /* parallel to problem.copies */
    size_t copy_scratch[CUDA_COPIES]; /* offset of each copy's scratch in the job's scratch */
    int workspace;                    /* the result leaf of the workspace, or -1 */
    cuda_call *call;
    lt_heuristic chosen;
    char why[1024];
} matmul_job;

/* Plans the instruction's problem with cuda_matmul_plan(). On failure for a device without FP8,
 * `why` names the missing feature. */
static bool plan_for(const cuda_device *device, const hlo_instruction *instr, hlo_arena *arena,
                     cuda_matmul *problem, const char **why) {
    const cuda_matmul_options options = {
        .target = device->target,
        .cuda = cuda_cublaslt_version(device),
        .workspace = device->workspace,
        .alignment = ALIGNMENT,
    };
    if (cuda_matmul_plan(instr, &options, arena, problem, why)) return true;
    if (hlo_matmul_is_call(instr) && !device->target->fp8) {
        const int first = hlo_target_first_fp8()->sm;
        *why = hlo_arena_format(
            arena,
            "requires FP8 tensor cores (compute capability %d.%d or later), but %s has %d.%d",
            first / 10, first % 10, device->name, device->sm / 10, device->sm % 10);
    }
    return false;
}

static bool matmul_supports(const cuda_device *device, const hlo_instruction *instr,
                            hlo_arena *arena, const char **why) {
    cuda_matmul problem;
    return plan_for(device, instr, arena, &problem, why);
}

static hlo_status matmul_prepare(cuda_device *device, hlo_job *job, hlo_arena *arena,
                                 const char **why) {
    matmul_job *state = hlo_arena_zero(arena, sizeof *state);
    if (!plan_for(device, job->instr, arena, &state->problem, why)) return HLO_INVALID_INPUT;
    cuda_matmul *p = &state->problem;
    for (uint32_t i = 0; i < p->copy_count; i++) {
        /* Create a job without instructions, which is a copy. */
        hlo_job *copy = &state->copies[i];
        *copy = (hlo_job){
            .instr = job->instr,
            .operand_count = 1,
            .result_count = 1,
            .operands = &p->copies[i].from_view,
            .results = &p->copies[i].to_view,
            .untouched = -1,
        };
        hlo_status status = cuda_kernel_part.prepare(device, copy, arena, why);
        if (status != HLO_OK) return status;
        state->copy_scratch[i] = p->scratch;
        p->scratch += (copy->scratch_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    uint32_t known = 1u + (p->present >> LT_PART_AUX & 1) + (p->present >> LT_PART_AMAX & 1);
    state->workspace = job->result_count > known ? (int)known : -1;
    job->untouched = state->workspace;
    if (p->overwrites >= 0) hlo_overwrites_add(&job->overwrites, arena, 0, (uint32_t)p->overwrites);
    job->scratch_size = p->scratch;
    job->state = state;
    return HLO_OK;
}

static void find_addresses(const hlo_job *job, void *out_addresses[LT_PART_COUNT]) {
    const matmul_job *state = job->state;
    for (int part = 0; part < LT_PART_COUNT; part++)
        out_addresses[part] = state->problem.present >> part & 1
                                  ? cuda_pointer_of(job, &state->problem.places[part])
                                  : NULL;
}

/* Returns a copy's job after setting its memory for this run. */
static hlo_job *placed_copy(const hlo_job *job, uint32_t index) {
    matmul_job *state = job->state;
    const cuda_copy *copy = &state->problem.copies[index];
    hlo_job *copy_job = &state->copies[index];
    copy_job->operands->data = cuda_pointer_of(job, &copy->from);
    copy_job->results->data = cuda_pointer_of(job, &copy->to);
    copy_job->scratch = (char *)job->scratch + state->copy_scratch[index];
    return copy_job;
}

static hlo_status run_copies(cuda_device *device, const hlo_job *job, uint32_t begin, uint32_t end,
                             const char **why) {
    hlo_status status = HLO_OK;
    for (uint32_t i = begin; i < end && status == HLO_OK; i++)
        status = cuda_kernel_part.execute(device, placed_copy(job, i), why);
    return status;
}

enum { MAX_RANGES = 64 };

static hlo_status matmul_execute(cuda_device *device, const hlo_job *job, const char **why) {
    matmul_job *state = job->state;
    const cuda_matmul *p = &state->problem;
    void *addresses[LT_PART_COUNT];
    cuda_range ranges[MAX_RANGES];
    hlo_status status = run_copies(device, job, 0, p->copies_before, why);
    if (status != HLO_OK) return status;
    find_addresses(job, addresses);
    /* List the memory that the call accesses: all operands and results, and all scratch memory
     * except the part of the workspace that the algorithm does not use. */
    const char *scratch = job->scratch;
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->operand_count; i++)
        ranges[count++] =
            (cuda_range){job->operands[i].data, hlo_view_bytes(&job->operands[i]), false};
    for (uint32_t i = 0; i < job->result_count; i++)
        if (job->results[i].data)
            ranges[count++] =
                (cuda_range){job->results[i].data, hlo_view_bytes(&job->results[i]), true};
    size_t before = job->scratch_size, behind = before;
    if (p->present >> LT_PART_WORKSPACE & 1) {
        before = p->places[LT_PART_WORKSPACE].offset + state->chosen.workspace;
        behind = p->places[LT_PART_WORKSPACE].offset + p->workspace;
    }
    ranges[count++] = (cuda_range){scratch, before, true};
    ranges[count++] = (cuda_range){scratch + behind, job->scratch_size - behind, true};
    int result = cuda_node_begin(device, ranges, count);
    if (result) return cuda_fails(device, "be recorded", result, why);
    *why = state->why;
    for (int64_t i = 0; i < p->times && status == HLO_OK; i++) {
        status =
            cuda_call_launch(state->call, &state->chosen, addresses, state->why, sizeof state->why);
        for (int part = LT_PART_A; part <= LT_PART_D; part++)
            if (addresses[part]) addresses[part] = (char *)addresses[part] + p->steps[part];
    }
    if (status != HLO_OK) return status;
    result = cuda_node_end(device, false);
    if (result) return cuda_fails(device, "be recorded", result, why);
    if (state->workspace >= 0 && job->results[state->workspace].data) {
        const hlo_view *unused = &job->results[state->workspace];
        cuda_fill(device, unused->data, 0, (size_t)unused->dims[0]);
    }
    return run_copies(device, job, p->copies_before, p->copy_count, why);
}

static void release_call(cuda_device *device, void *object) {
    (void)device;
    cuda_call_free(object);
}

/* Binds the call, and runs the job once: the library initializes itself in the first run, which
 * therefore cannot be captured. */
static hlo_status matmul_bind(cuda_device *device, hlo_job *job, const char **why) {
    matmul_job *state = job->state;
    hlo_status status = HLO_OK;
    for (uint32_t i = 0; i < state->problem.copy_count && status == HLO_OK; i++)
        status = cuda_kernel_part.bind(device, placed_copy(job, i), why);
    if (status != HLO_OK) return status;
    void *addresses[LT_PART_COUNT];
    find_addresses(job, addresses);
    *why = state->why;
    status = cuda_call_new(device, &state->problem, addresses, state->why, sizeof state->why,
                           &state->call);
    if (status != HLO_OK) return status;
    if (!cuda_own(device, state->call, release_call)) return HLO_OUT_OF_MEMORY;
    uint32_t found;
    if (device->autotune)
        status = cuda_autotune(device, job, &state->problem, state->call, addresses, &state->chosen,
                               state->why, sizeof state->why);
    else
        status = cuda_call_heuristic(state->call, 1, &state->chosen, &found, state->why,
                                     sizeof state->why);
    return status == HLO_OK ? matmul_execute(device, job, why) : status;
}

static void matmul_print(const cuda_device *device, const hlo_job *job, FILE *out) {
    (void)device;
    const matmul_job *state = job->state;
    cuda_matmul_print(&state->problem, "    ", out);
}

const cuda_part cuda_matmul_part = {
    .name = "cublaslt",
    .supports = matmul_supports,
    .prepare = matmul_prepare,
    .bind = matmul_bind,
    .execute = matmul_execute,
    .print = matmul_print,
};
