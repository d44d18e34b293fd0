/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels as jobs. */
#include "runtime/cuda/codegen/kernel.h"

#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/ragged/ragged.h"
#include "runtime/cuda/codegen/sort/sort.h"
#include "runtime/cuda/driver/library.h"

/* A job's code, and the kernel of each of its launches. */
typedef struct kernel_state {
    cuda_code *code;
    const char **names;
    cuda_function **functions;
} kernel_state;

/* ----------------------------------------------------------------------------------- supporting */

static bool is_array(const hlo_shape *shape) {
    return shape->type != HLO_TYPE_TUPLE && hlo_types[shape->type].bytes;
}

const char *cuda_kernel_refusal(const hlo_instr *instr) {
    const hlo_shape *shape = instr->shape;
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++)
            if (!is_array(shape->elements[i])) return "has no CUDA kernel";
    } else if (!is_array(shape)) {
        return "has no CUDA kernel";
    }
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (!is_array(hlo_instr_operand(instr, i)->shape)) return "has no CUDA kernel";
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (!cuda_types[hlo_instr_operand(instr, i)->shape->type].cell)
            return "has no CUDA kernel for its element type";
    switch (instr->op) {
    case HLO_OP_REDUCE: return cuda_reduce_refusal(instr);
    case HLO_OP_RAGGED_DOT: return cuda_ragged_refusal(instr);
    case HLO_OP_SCATTER:
    case HLO_OP_SORT: return cuda_applied_refusal(instr);
    default:
        return instr->shape->type == HLO_TYPE_TUPLE ? "has no CUDA kernel"
                                                    : cuda_pull_refusal(instr);
    }
}

static bool kernel_supports(const cuda_device *device, const hlo_instr *instr, hlo_arena *arena,
                            const char **why) {
    (void)device;
    const char *reason = cuda_kernel_refusal(instr);
    if (!reason) return true;
    *why = hlo_arena_format(arena, "%s", reason);
    return false;
}

/* -------------------------------------------------------------------------------------- running */

static hlo_status kernel_prepare(cuda_device *device, hlo_job *job, hlo_arena *arena,
                                 const char **why) {
    kernel_state *state = hlo_arena_zero(arena, sizeof *state);
    state->code = cuda_code_new(device, job, arena, why);
    if (!state->code) return HLO_INVALID_INPUT;
    uint32_t count = state->code->launch_count;
    state->names = hlo_arena_zero(arena, (count + 1) * sizeof *state->names);
    state->functions = hlo_arena_zero(arena, (count + 1) * sizeof *state->functions);
    for (uint32_t i = 0; i < count; i++) {
        if (!state->code->launches[i].text) continue;
        state->names[i] = cuda_program_add(device->program, &state->code->launches[i]);
        if (!state->names[i]) return HLO_OUT_OF_MEMORY;
    }
    job->scratch_size = state->code->scratch_size;
    job->overwrites = state->code->overwrites;
    job->state = state;
    return HLO_OK;
}

static hlo_status kernel_bind(cuda_device *device, hlo_job *job, const char **why) {
    const kernel_state *state = job->state;
    for (uint32_t i = 0; i < state->code->launch_count; i++) {
        if (!state->names[i]) continue;
        int result =
            device->lib->cuModuleGetFunction(&state->functions[i], device->module, state->names[i]);
        if (result) return cuda_fails(device, "find its kernel", result, why);
    }
    return HLO_OK;
}

/* Returns the memory of an array; NULL if it has no elements, because its address may then be that
 * of another array. */
static void *memory_of(const hlo_view *view) {
    return hlo_view_count(view) ? view->data : NULL;
}

void *cuda_pointer_of(const hlo_job *job, const cuda_pointer *pointer) {
    switch (pointer->kind) {
    case CUDA_OPERAND: return memory_of(&job->operands[pointer->index]);
    case CUDA_RESULT: return memory_of(&job->results[pointer->index]);
    case CUDA_SCRATCH: return (char *)job->scratch + pointer->offset;
    case CUDA_NUMBER: return (void *)(uintptr_t)pointer->offset;
    }
    return NULL;
}

static hlo_status kernel_execute(cuda_device *device, const hlo_job *job, const char **why) {
    const kernel_state *state = job->state;
    for (uint32_t i = 0; i < state->code->launch_count; i++) {
        const cuda_launch *launch = &state->code->launches[i];
        if (!state->names[i]) {
            void *from = cuda_pointer_of(job, &launch->pointers[0]),
                 *to = cuda_pointer_of(job, &launch->pointers[1]);
            if (from != to) cuda_copy_within(device, to, from, launch->bytes);
            continue;
        }
        void *data[CUDA_POINTERS], *arguments[CUDA_POINTERS];
        cuda_range ranges[CUDA_POINTERS];
        for (uint32_t p = 0; p < launch->pointer_count; p++) {
            data[p] = cuda_pointer_of(job, &launch->pointers[p]);
            arguments[p] = &data[p];
            const cuda_pointer *at = &launch->pointers[p];
            switch (at->kind) {
            case CUDA_OPERAND:
                ranges[p] = (cuda_range){data[p], hlo_view_bytes(&job->operands[at->index]), false};
                break;
            case CUDA_RESULT:
                ranges[p] = (cuda_range){data[p], hlo_view_bytes(&job->results[at->index]), true};
                break;
            case CUDA_SCRATCH:
                ranges[p] = (cuda_range){data[p], job->scratch_size - at->offset, true};
                break;
            case CUDA_NUMBER: ranges[p] = (cuda_range){NULL, 0, false};
            }
        }
        const int result =
            cuda_launch_kernel(device, state->functions[i], launch->grid, launch->block, arguments,
                               ranges, launch->pointer_count);
        if (result) return cuda_fails(device, "launch its kernel", result, why);
    }
    return HLO_OK;
}

/* ------------------------------------------------------------------------------------- printing */

static void kernel_print(const cuda_device *device, const hlo_job *job, FILE *out) {
    (void)device;
    const kernel_state *state = job->state;
    for (uint32_t i = 0; i < state->code->launch_count; i++) {
        const cuda_launch *launch = &state->code->launches[i];
        fprintf(out, "    %s(", state->names[i] ? state->names[i] : launch->form);
        for (uint32_t p = 0; p < launch->pointer_count; p++) {
            if (p) fputs(", ", out);
            switch (launch->pointers[p].kind) {
            case CUDA_OPERAND: fprintf(out, "p%u", launch->pointers[p].index); break;
            case CUDA_RESULT: fprintf(out, "q%u", launch->pointers[p].index); break;
            case CUDA_SCRATCH: fprintf(out, "work+%zu", launch->pointers[p].offset); break;
            case CUDA_NUMBER: fprintf(out, "%zu", launch->pointers[p].offset); break;
            }
        }
        fputs(")", out);
        if (state->names[i])
            fprintf(out, " in %u blocks of %u threads,", launch->grid, launch->block);
        fprintf(out, " %zu bytes\n", launch->bytes);
    }
    if (!job->group.instr_count) return;
    fputs("    for", out);
    for (uint32_t i = 0; i < job->group.instr_count; i++)
        fprintf(out, " %%%s", job->group.instrs[i]->name);
    fputs("\n", out);
}

const cuda_part cuda_kernel_part = {
    .name = "kernel",
    .supports = kernel_supports,
    .prepare = kernel_prepare,
    .bind = kernel_bind,
    .execute = kernel_execute,
    .print = kernel_print,
};
