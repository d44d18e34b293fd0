/* SPDX-License-Identifier: Apache-2.0 */
/* Runs generated kernels as jobs. */
#include "runtime/cuda/codegen/kernel.h"
#include "ir/memory.h"
#include "ir/text/writer.h"

#include <stdlib.h>
#include <string.h>

#include "ir/float/literal.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"
#include "runtime/cuda/driver/library.h"
#include "runtime/group/group.h"
#include "runtime/grow.h"

/* The "pack" kernels pack 4-bit elements, two per byte. A thread packs a few elements that are
 * consecutive in the packed order. It loads the elements at once if they are contiguous, and stores
 * their bytes at once. */
enum { WIDEST = 16, NARROWEST = 4 }; /* elements per thread */

static void emit_pack(emit *e, cuda_code *code) {
    int64_t strides[HLO_EVAL_MAX_RANK];
    hlo_view view = e->job->operands[0];
    const hlo_view *bytes = &e->job->results[0];
    for (uint32_t d = 0; d < view.rank; d++)
        strides[d] = view.dims[d] == bytes->dims[d] ? 2 * bytes->strides[d] : 1;
    view.strides = strides;
    const emit_space space = emit_space_of(&view);
    const int64_t along = space.dims[space.order[0]];
    emit_lines lines = {0}, inner;
    emit_restart(e, &lines);
    e->offset = emit_offset_type(e, space.count);
    e->width = WIDEST;
    while (e->width > NARROWEST && along % e->width) e->width /= 2;
    if (along % e->width) {
        emit_refuse(e, "has too few elements to pack");
        return;
    }
    const emit_index *index = emit_loop_index(e, &space, &inner);
    const char *cells = emit_name(e, "w"), *all = e->base;
    emit_text(e, "%s.v[u] = %s;", cells, emit_load(e, 0, index));
    e->out = &e->before;
    emit_text(e, "pack<uchar, %d> %s;", e->width, cells);
    e->out = &e->after;
    emit_text(e, "*(pack<uchar, %d> *)(%s + %s / 2) = halved(%s);", e->width / 2, emit_result(e, 0),
              all, cells);
    e->out = &inner;
    emit_loop_end(e, &space);
    emit_add_launch(e, code, emit_launch(e, "pack", &lines, emit_blocks(e, space.count), 0, NULL));
}

cuda_code *cuda_code_new(const cuda_device *device, const hlo_job *job, hlo_arena *arena,
                         const char **why) {
    emit *e = hlo_arena_alloc(arena, sizeof *e);
    emit_init(e, device, job, arena);
    cuda_code *code = hlo_arena_zero(arena, sizeof *code);
    const hlo_group *group = &e->job->group;
    bool reduces = false;
    for (uint32_t i = 0; i < group->instr_count; i++)
        reduces |=
            group->instrs[i]->op == HLO_OP_REDUCE && !cuda_reduce_is_single(group->instrs[i]);
    hlo_op op = group->instr_count ? group->results[0]->op : HLO_OP_COPY;
    if (!group->instr_count && job->operand_count == 1 &&
        hlo_view_count(&job->operands[0]) != hlo_view_count(&job->results[0]))
        emit_pack(e, code);
    else if (op == HLO_OP_SORT)
        emit_sort(e, code);
    else if (op == HLO_OP_SCATTER)
        emit_scatter(e, code);
    else if (op == HLO_OP_RAGGED_DOT)
        emit_ragged(e, code);
    else if (reduces)
        emit_reduce(e, code);
    else if ((op != HLO_OP_DYNAMIC_UPDATE_SLICE || !emit_update(e, code)) &&
             (op != HLO_OP_CONCATENATE || !emit_parts(e, code)))
        emit_loop(e, code);
    *why = e->why;
    return e->why ? NULL : code;
}

typedef struct program_kernel {
    char *name, *text;
} program_kernel;

struct cuda_program {
    program_kernel *kernels;
    size_t count, capacity;
};

cuda_program *cuda_program_new(void) {
    return hlo_calloc(1, sizeof(cuda_program));
}

void cuda_program_free(cuda_program *program) {
    if (!program) return;
    for (size_t i = 0; i < program->count; i++) {
        hlo_free(program->kernels[i].name);
        hlo_free(program->kernels[i].text);
    }
    hlo_free(program->kernels);
    hlo_free(program);
}

const char *cuda_program_add(cuda_program *program, const cuda_launch *launch) {
    size_t form = strlen(launch->form);
    for (size_t i = 0; i < program->count; i++)
        if (strcmp(program->kernels[i].text, launch->text) == 0 &&
            strncmp(program->kernels[i].name, launch->form, form) == 0)
            return program->kernels[i].name;
    if (!hlo_heap_grow(&program->kernels, program->count + 1, &program->capacity,
                       sizeof *program->kernels))
        return NULL;
    program_kernel kernel = {hlo_malloc(form + 24), hlo_strdup(launch->text)};
    if (!kernel.name || !kernel.text) {
        hlo_free(kernel.name);
        hlo_free(kernel.text);
        return NULL;
    }
    snprintf(kernel.name, form + 24, "%s_%zu", launch->form, program->count);
    program->kernels[program->count++] = kernel;
    return kernel.name;
}

static void write_kernels(const cuda_program *program, FILE *out) {
    for (size_t i = 0; i < program->count; i++)
        fprintf(out, "\nextern \"C\" __global__ void __launch_bounds__(%d) %s%s", CUDA_BLOCK,
                program->kernels[i].name, program->kernels[i].text);
}

void cuda_program_print(const cuda_program *program, int sm, FILE *out) {
    if (program->count) fprintf(out, "kernels for sm_%d:\n", sm);
    write_kernels(program, out);
}

char *cuda_program_source(const cuda_program *program) {
    char *source = NULL;
    size_t size = 0;
    FILE *out = hlo_text_stream(&source, &size);
    if (!out) return NULL;
    for (const char *const *text = cuda_helpers; *text; text++) fputs(*text, out);
    write_kernels(program, out);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        hlo_free(source);
        return NULL;
    }
    return source;
}

_Static_assert(GROUP_INPUTS + GROUP_RESULTS < CUDA_POINTERS, "and places of scratch memory");

static group_class class_of(const hlo_instruction *instr) {
    if (instr->op == HLO_OP_PARAMETER || cuda_kernel_refusal(instr)) return GROUP_OTHER;
    if (instr->op == HLO_OP_CONSTANT)
        return instr->u.literal->data && (hlo_shape_count(instr->shape) == 1 ||
                                          hlo_literal_is_splat(instr->u.literal))
                   ? GROUP_CHEAP
                   : GROUP_OTHER;
    if (hlo_shape_is_array(instr->shape) && hlo_shape_count(instr->shape) == 0) return GROUP_OTHER;
    switch (instr->op) {
    case HLO_OP_IOTA:
    case HLO_OP_BROADCAST: return GROUP_CHEAP;
    case HLO_OP_BITCAST: return GROUP_ALIAS;
    case HLO_OP_RESHAPE:
    case HLO_OP_COPY:
        return hlo_shape_same_memory(instr->shape, hlo_instr_operand(instr, 0)->shape) ? GROUP_ALIAS
                                                                                       : GROUP_PULL;
    case HLO_OP_REDUCE: return cuda_reduce_is_single(instr) ? GROUP_PULL : GROUP_REDUCE;
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return GROUP_ALONE;
    case HLO_OP_BITCAST_CONVERT: /* several elements of the operand form one element */
        return hlo_instr_operand(instr, 0)->shape->rank > instr->shape->rank ? GROUP_OTHER
                                                                             : GROUP_PULL;
    case HLO_OP_REDUCE_WINDOW:
    case HLO_OP_RAGGED_DOT:
    case HLO_OP_SORT:
    case HLO_OP_SCATTER: return GROUP_OTHER;
    default: return GROUP_PULL;
    }
}

/* True if the opcode compiles to tens of instructions, which may use local memory. */
static bool is_slow(const hlo_instruction *instr) {
    switch (instr->op) {
    case HLO_OP_ATAN2:
    case HLO_OP_CBRT:
    case HLO_OP_COSINE:
    case HLO_OP_ERF:
    case HLO_OP_POWER:
    case HLO_OP_SINE:
    case HLO_OP_TAN: return true;
    default: return false;
    }
}

uint32_t cuda_kernel_group(void *device, const hlo_instruction *const *live, uint32_t count,
                           hlo_arena *arena, hlo_group **out_groups) {
    static const group_rules rules = {.class_of = class_of,
                                      .is_chunked = cuda_reduce_is_chunked,
                                      .is_slow = is_slow,
                                      .recomputes = true};
    (void)device;
    return group_instrs(&rules, live, count, arena, out_groups);
}

/* A job's code, and the kernel of each of its launches. */
typedef struct kernel_state {
    cuda_code *code;
    const char **names;
    cuda_function **functions;
} kernel_state;

static bool is_array(const hlo_shape *shape) {
    return shape->type != HLO_TYPE_TUPLE && hlo_types[shape->type].bytes;
}

const char *cuda_kernel_refusal(const hlo_instruction *instr) {
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

static bool kernel_supports(const cuda_device *device, const hlo_instruction *instr,
                            hlo_arena *arena, const char **why) {
    (void)device;
    const char *reason = cuda_kernel_refusal(instr);
    if (!reason) return true;
    *why = hlo_arena_format(arena, "%s", reason);
    return false;
}

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

/* Returns the memory of an array, or NULL if the array has no elements: its address may then be
 * that of another array. */
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
