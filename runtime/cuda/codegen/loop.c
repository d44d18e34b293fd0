/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in which every thread computes a few contiguous elements of the results: "loop";
 * "update", an in-place dynamic-update-slice; and "part", one operand of a concatenate with many
 * operands. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

emit_space emit_space_of(const hlo_view *view) {
    emit_space s = {.rank = view->rank, .dims = view->dims, .count = hlo_view_count(view)};
    for (uint32_t d = 0; d < s.rank; d++) {
        uint32_t at =
            d; /* slower dimensions go last, and so do dimensions of size 1 with equal strides */
        for (; at > 0; at--) {
            uint32_t other = s.order[at - 1];
            if (view->strides[other] < view->strides[d]) break;
            s.order[at] = other;
        }
        s.order[at] = d;
        s.strides[d] = view->strides[d];
    }
    return s;
}

enum {
    PARTS = 2,
    MANY = 1 << 12 /* blocks */
};

const char *emit_offset_type(const emit *e, int64_t count) {
    const hlo_job *job = e->job;
    int64_t most = count;
    for (uint32_t i = 0; i < job->group.instr_count; i++) {
        const hlo_shape *shape = job->group.instrs[i]->shape;
        if (hlo_shape_is_array(shape) && hlo_shape_count(shape) > most)
            most = hlo_shape_count(shape);
    }
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (hlo_view_count(&job->operands[i]) > most) most = hlo_view_count(&job->operands[i]);
    for (uint32_t i = 0; i < job->result_count; i++)
        if (hlo_view_count(&job->results[i]) > most) most = hlo_view_count(&job->results[i]);
    return most < (INT64_C(1) << 30) ? "int" : "int64";
}

/* ------------------------------------------------------------------------------------- launches */

static void add_pointer(emit *e, cuda_launch *launch, cuda_pointer pointer, const char **parameters,
                        const char *text) {
    const hlo_job *job = e->job;
    launch->pointers[launch->pointer_count++] = pointer;
    if (pointer.kind == CUDA_OPERAND || pointer.kind == CUDA_RESULT)
        launch->bytes +=
            hlo_view_bytes(pointer.kind == CUDA_OPERAND ? &job->operands[pointer.index]
                                                        : &job->results[pointer.index]);
    *parameters = hlo_arena_format(e->arena, "%s%s%s", *parameters, **parameters ? ", " : "", text);
}

/* Returns the qualifier of a pointer whose memory no other pointer refers to. Loads through other
 * pointers may not use the read-only cache. */
static const char *restricts(const emit *e, cuda_pointer_kind kind, uint32_t leaf) {
    const hlo_overwrites *o = &e->overwrites;
    for (uint32_t i = 0; i < o->count; i++)
        if ((kind == CUDA_OPERAND ? o->v[i].operand : o->v[i].result) == leaf) return "";
    return "__restrict__ ";
}

cuda_launch emit_launch(emit *e, const char *form, const emit_lines *lines, int64_t blocks,
                        uint32_t scratch_count, const emit_scratch *scratch) {
    cuda_launch launch = {.form = form, .grid = (uint32_t)blocks, .block = CUDA_BLOCK};
    if (blocks > INT32_MAX) emit_refuse(e, "has too many elements for a CUDA kernel");
    const char *body = emit_finish(e, lines), *parameters = "";
    const hlo_job *job = e->job;
    launch.pointers =
        hlo_arena_array(e->arena, e->array_count + scratch_count, sizeof *launch.pointers);
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (e->operands[i].occurs)
            add_pointer(e, &launch, (cuda_pointer){.kind = CUDA_OPERAND, .index = i}, &parameters,
                        hlo_arena_format(e->arena, "const %s *%sp%u",
                                         cuda_types[job->operands[i].type].cell,
                                         restricts(e, CUDA_OPERAND, i), i));
    for (uint32_t i = 0; i < job->result_count; i++)
        if (e->results[i].occurs)
            add_pointer(e, &launch, (cuda_pointer){.kind = CUDA_RESULT, .index = i}, &parameters,
                        hlo_arena_format(e->arena, "%s *%sq%u",
                                         cuda_types[job->results[i].type].cell,
                                         restricts(e, CUDA_RESULT, i), i));
    for (uint32_t i = 0; i < scratch_count; i++)
        add_pointer(e, &launch,
                    (cuda_pointer){.kind = scratch[i].number ? CUDA_NUMBER : CUDA_SCRATCH,
                                   .offset = scratch[i].offset},
                    &parameters,
                    hlo_arena_format(e->arena, "%s *__restrict__ t%u", scratch[i].type, i));
    if (launch.pointer_count > CUDA_POINTERS)
        emit_refuse(e, "has too many operands for a CUDA kernel");
    launch.text = hlo_arena_format(e->arena, "(%s) {\n%s}\n", parameters, body);
    return launch;
}

/* ----------------------------------------------------------------------------------------- loop */

/* Returns the number of positions, a block apart, in which a thread has elements. It is above 1, so
 * that a thread begins several loads together, if there are enough positions and the division is
 * exact. */
static int loop_parts(const emit *e, int64_t count) {
    const int64_t each = (int64_t)CUDA_BLOCK * e->width;
    return count % (PARTS * each) == 0 && count / each >= MANY ? PARTS : 1;
}

/* Returns the dimension of contiguous elements, or 0. */
static uint32_t minor_of(const emit_space *space) {
    for (uint32_t i = 0; i < space->rank; i++)
        if (space->dims[space->order[i]] > 1) return space->order[i];
    return 0;
}

const emit_index *emit_loop_index(emit *e, const emit_space *space, emit_lines *inner) {
    const char *at[HLO_EVAL_MAX_RANK], *minor_base = NULL;
    const uint32_t minor = minor_of(space);
    const int64_t each = (int64_t)CUDA_BLOCK * e->width;
    const int parts = loop_parts(e, space->count);
    e->base = e->linear = emit_name(e, "i");
    if (parts > 1) {
        emit_open_repeat(e, "p", parts);
        emit_set(e, e->base,
                 "const %s %s = ((%s)blockIdx.x * %d + p) * %lld + (%s)threadIdx.x * %d;",
                 e->offset, e->base, e->offset, parts, (long long)each, e->offset, e->width);
    } else {
        emit_text(e, "const %s %s = (%s)blockIdx.x * %lld + (%s)threadIdx.x * %d;", e->offset,
                  e->base, e->offset, (long long)each, e->offset, e->width);
        emit_text(e, "if (%s >= %lld) return;", e->base, (long long)space->count);
    }
    e->minor = NULL;
    bool aligned = e->width > 1 && space->dims[minor] % e->width == 0;
    if (e->width == 1 || aligned) {
        emit_split(e, e->base, space->dims, space->order, space->rank, at);
        e->outer = hlo_arena_copy(e->arena, at, space->rank * sizeof *at);
        e->outer_count = space->rank;
        if (aligned) minor_base = at[minor];
    }
    emit_elements_begin(e, inner);
    if (e->width > 1) {
        e->linear = emit_value(e, "i", e->offset, "%s + u", e->base);
        if (!aligned) emit_split(e, e->linear, space->dims, space->order, space->rank, at);
    }
    if (aligned) {
        e->minor = at[minor] = space->count == space->dims[minor]
                                   ? e->linear
                                   : emit_value(e, "i", e->offset, "%s + u", minor_base);
        e->minor_base = minor_base;
    }
    return emit_index_new(e, space->rank, space->dims, at, e->linear, space->strides);
}

void emit_loop_end(emit *e, const emit_space *space) {
    emit_elements_end(e);
    if (loop_parts(e, space->count) > 1) emit_close(e);
}

void emit_add_launch(emit *e, cuda_code *code, cuda_launch launch) {
    hlo_arena_grow(e->arena, &code->launches, code->launch_count, &code->launch_capacity,
                   sizeof *code->launches);
    code->launches[code->launch_count++] = launch;
}

int64_t emit_blocks(const emit *e, int64_t count) {
    int64_t each = (int64_t)CUDA_BLOCK * e->width * loop_parts(e, count);
    return (count + each - 1) / each;
}

/* The values that a kernel stores: those of the results, or of a part of the only result, which is
 * one of its operands. */
typedef struct stored {
    const char *form;      /* form of the launch */
    const hlo_instr *part; /* NULL: the results */
    const int64_t *begin;  /* offset of the part in the result; NULL: at the indices of an update */
} stored;

/* Finds the operands of which a thread reads an element only at the position of a result's element,
 * among `count` elements, and before it writes that. */
static void find_overwrites(emit *e, int64_t count, cuda_code *code) {
    const hlo_job *job = e->job;
    for (uint32_t r = 0; r < job->result_count; r++)
        for (uint32_t o = 0; o < job->operand_count; o++) {
            const emit_access *from = &e->operands[o].access, *to = &e->results[r].access;
            if (from->address && to->address && !from->elsewhere && !to->elsewhere &&
                strcmp(from->address, to->address) == 0 &&
                (!to->first || from->after <= to->first) &&
                job->operands[o].type == job->results[r].type &&
                hlo_view_count(&job->operands[o]) == count &&
                hlo_view_count(&job->results[r]) == count)
                hlo_overwrites_add(&e->overwrites, e->arena, r, o);
        }
    code->overwrites = e->overwrites;
}

static void store(emit *e, const emit_index *index, const stored *s) {
    if (s->part) {
        const hlo_instr *instr = e->job->group.results[0];
        const char *at[HLO_EVAL_MAX_RANK];
        hlo_index_map map;
        hlo_index x;
        hlo_index_map_first(instr, &map);
        for (uint32_t d = 0; d < index->rank; d++) {
            at[d] = s->begin ? emit_behind(e, index->at[d], s->begin[d]) : index->at[d];
            if (s->begin || !hlo_index_along(&map, d, &x) || !x.at) continue;
            const char *start = emit_start(e, &map, &x, index);
            at[d] = strcmp(at[d], "0") == 0 ? start : emit_offset(e, "%s + %s", start, at[d]);
        }
        const emit_index *to = emit_index_new(e, index->rank, instr->shape->dims, at, NULL, NULL);
        emit_store(e, 0, to, emit_pull(e, s->part, index, true));
        return;
    }
    const hlo_group *group = &e->job->group;
    if (group->instr_count == 0) {
        hlo_type from = e->job->operands[0].type, to = e->job->results[0].type;
        const char *cell = emit_load(e, 0, index);
        emit_store(e, 0, index,
                   from == to ? cell
                              : emit_cast(e, from, to, false, emit_decoded(e, from, cell), true));
    }
    for (uint32_t i = 0; i < group->result_count && group->instr_count; i++) {
        const emit_index *at = emit_result_index(e, index, group->results[i]);
        emit_store(e, i, at, emit_pull(e, group->results[i], at, true));
    }
}

/* Writes tiles. Returns false if arrays have the space's order, or are small. */
static bool emit_tiles(emit *e, cuda_code *code, emit_space space, const stored *s) {
    emit_lines lines = {0}, inner;
    emit_tile tile;
    if (!emit_find_tile(e, &space, &tile)) return false;
    emit_restart(e, &lines);
    const char *number = emit_name(e, "i");
    emit_text(e, "const %s %s = (%s)blockIdx.x * %d + (%s)threadIdx.x;", e->offset, number,
              e->offset, CUDA_BLOCK, e->offset);
    emit_text(e, "if (%s >= %lld) return;", number, (long long)tile.count);
    store(e, emit_tile_begin(e, &space, &tile, number, &inner), s);
    emit_tile_end(e, &space, &tile);
    if (!s->part) find_overwrites(e, space.count, code);
    int64_t blocks = (tile.count + CUDA_BLOCK - 1) / CUDA_BLOCK;
    emit_add_launch(e, code, emit_launch(e, s->part ? s->form : "tile", &lines, blocks, 0, NULL));
    return true;
}

/* Writes a loop over the space, or tiles if operands are in another order. */
static void emit_all(emit *e, cuda_code *code, const emit_space *space, const stored *s) {
    emit_lines lines = {0}, inner;
    emit_restart(e, &lines);
    store(e, emit_loop_index(e, space, &inner), s);
    emit_loop_end(e, space);
    int64_t blocks = emit_blocks(e, space->count);
    if (e->turned_dim >= 0 && emit_tiles(e, code, *space, s)) return;
    if (!s->part) find_overwrites(e, space->count, code);
    emit_add_launch(e, code, emit_launch(e, s->form, &lines, blocks, 0, NULL));
}

void emit_loop(emit *e, cuda_code *code) {
    const emit_space space = emit_space_of(&e->job->results[0]);
    const stored all = {.form = "loop"};
    if (space.count == 0) return;
    e->offset = emit_offset_type(e, space.count);
    /* Tiles follow the memory order of the value that the first result only reorders. */
    const hlo_group *group = &e->job->group;
    emit_space source = space;
    if (group->instr_count == 0) {
        source = emit_space_of(&e->job->operands[0]);
    } else if (hlo_op_is(group->results[0]->op, HLO_REORDERS)) {
        const hlo_view view =
            hlo_view_in_layout(e->arena, hlo_instr_operand(group->results[0], 0)->shape);
        source = emit_space_of(&view);
    }
    if (emit_tiles(e, code, source, &all)) return;
    e->width = emit_width(e, &space, space.count);
    emit_all(e, code, &space, &all);
}

/* --------------------------------------------------------------------------------------- update */

bool emit_copy(emit *e, cuda_code *code, uint32_t from, uint32_t to) {
    const hlo_view *in = &e->job->operands[from], *out = &e->job->results[to];
    for (uint32_t d = 0; d < out->rank; d++)
        if (out->dims[d] > 1 && in->strides[d] != out->strides[d]) return false;
    cuda_launch launch = {.form = "copy", .pointer_count = 2};
    launch.pointers = hlo_arena_array(e->arena, 2, sizeof *launch.pointers);
    launch.pointers[0] = (cuda_pointer){.kind = CUDA_OPERAND, .index = from};
    launch.pointers[1] = (cuda_pointer){.kind = CUDA_RESULT, .index = to};
    launch.bytes = hlo_view_bytes(out);
    emit_add_launch(e, code, launch);
    return true;
}

void emit_relayout(emit *e, cuda_code *code, uint32_t from, uint32_t to) {
    const emit_space space = emit_space_of(&e->job->results[to]);
    emit_lines lines = {0}, inner;
    emit_restart(e, &lines);
    e->offset = emit_offset_type(e, space.count);
    const emit_index *index = emit_loop_index(e, &space, &inner);
    emit_store(e, to, index, emit_load(e, from, index));
    emit_loop_end(e, &space);
    emit_add_launch(e, code, emit_launch(e, "loop", &lines, emit_blocks(e, space.count), 0, NULL));
}

/* Adds the launch of a kernel that writes a part of the result. Its elements are also contiguous in
 * the result, but may start at any element. */
static void emit_part(emit *e, cuda_code *code, const stored *s) {
    hlo_view view = e->job->results[0];
    view.dims = s->part->shape->dims;
    emit_space space = emit_space_of(&view);
    int64_t stride = 1;
    for (uint32_t i = 0; i < space.rank; i++) {
        space.strides[space.order[i]] = stride;
        stride *= space.dims[space.order[i]];
    }
    e->turned_dim = -1;
    for (uint32_t i = 0; i < e->job->operand_count; i++) e->operands[i].turned = false;
    e->offset = emit_offset_type(e, space.count);
    e->width = emit_width(e, &space, space.rank ? space.dims[minor_of(&space)] : 1);
    emit_all(e, code, &space, s);
}

bool emit_update(emit *e, cuda_code *code) {
    const hlo_instr *instr = e->job->group.results[0], *into = hlo_instr_operand(instr, 0);
    const stored update = {.form = "update", .part = hlo_instr_operand(instr, 1)};
    if (e->job->group.result_count != 1 || emit_is_member(e, into)) return false;
    if (!emit_copy(e, code, emit_leaf(e, into), 0)) return false;
    if (hlo_shape_count(update.part->shape) == 0) return true;
    emit_part(e, code, &update);
    if (!e->operands[emit_leaf(e, into)].occurs)
        hlo_overwrites_add(&code->overwrites, e->arena, 0, emit_leaf(e, into));
    return true;
}

bool emit_parts(emit *e, cuda_code *code) {
    const hlo_instr *instr = e->job->group.results[0];
    if (e->job->operand_count + e->job->result_count <= CUDA_POINTERS ||
        e->job->group.result_count != 1)
        return false;
    int64_t *begin = hlo_arena_zero(e->arena, instr->shape->rank * sizeof *begin);
    const int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const stored part = {"part", hlo_instr_operand(instr, i), begin};
        const int64_t count = hlo_shape_count(part.part->shape);
        if (count == 0) continue;
        emit_part(e, code, &part);
        code->launches[code->launch_count - 1].bytes =
            2 * (size_t)count * hlo_types[part.part->shape->type].bytes;
        begin[dim] += part.part->shape->dims[dim];
    }
    return true;
}
