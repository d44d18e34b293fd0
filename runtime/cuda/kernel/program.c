/* SPDX-License-Identifier: Apache-2.0 */
/* Generates the code of a job, and combines code into a program. */
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/ragged/ragged.h"
#include "runtime/cuda/codegen/sort/sort.h"

/* -------------------------------------------------------------------------------------- packing */

/* Kernels that pack 4-bit elements, two per byte: "pack". A thread has a few elements that are
 * consecutive in the packed order, loads them at once if they are contiguous, and stores their
 * bytes at once. */
enum { WIDEST = 16, NARROWEST = 4 }; /* elements per thread */

static bool packs_elements(const hlo_job *job) {
    return !job->group.instr_count && job->operand_count == 1 &&
           hlo_view_count(&job->operands[0]) != hlo_view_count(&job->results[0]);
}

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

/* ----------------------------------------------------------------------------------------- code */

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
    if (packs_elements(e->job))
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

/* ------------------------------------------------------------------------------------- programs */

typedef struct program_kernel {
    char *name, *text;
} program_kernel;

struct cuda_program {
    program_kernel *kernels;
    size_t count, capacity;
};

cuda_program *cuda_program_new(void) {
    return calloc(1, sizeof(cuda_program));
}

void cuda_program_free(cuda_program *program) {
    if (!program) return;
    for (size_t i = 0; i < program->count; i++) {
        free(program->kernels[i].name);
        free(program->kernels[i].text);
    }
    free(program->kernels);
    free(program);
}

const char *cuda_program_add(cuda_program *program, const cuda_launch *launch) {
    size_t form = strlen(launch->form);
    for (size_t i = 0; i < program->count; i++)
        if (strcmp(program->kernels[i].text, launch->text) == 0 &&
            strncmp(program->kernels[i].name, launch->form, form) == 0)
            return program->kernels[i].name;
    if (program->count == program->capacity) {
        size_t capacity = program->capacity ? 2 * program->capacity : 16;
        program_kernel *kernels = realloc(program->kernels, capacity * sizeof *kernels);
        if (!kernels) return NULL;
        program->kernels = kernels;
        program->capacity = capacity;
    }
    program_kernel kernel = {malloc(form + 24), strdup(launch->text)};
    if (!kernel.name || !kernel.text) {
        free(kernel.name);
        free(kernel.text);
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
    FILE *out = open_memstream(&source, &size);
    if (!out) return NULL;
    for (const char *const *text = cuda_helpers; *text; text++) fputs(*text, out);
    write_kernels(program, out);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(source);
        return NULL;
    }
    return source;
}
