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
    MANY_BLOCKS = 1 << 12 /* minimum number of blocks for PARTS parts */
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

/* Returns the qualifier `__restrict__` if no other pointer refers to the same memory. Without the
 * qualifier, loads through the pointer may not use the read-only cache. */
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

/* Returns the number of packs per thread; the packs are one block's elements apart. If there are
 * enough elements and they can be divided evenly, a thread has several packs, whose loads it begins
 * together. */
static int loop_parts(const emit *e, int64_t count) {
    const int64_t each = (int64_t)CUDA_BLOCK * e->width;
    return count % (PARTS * each) == 0 && count / each >= MANY_BLOCKS ? PARTS : 1;
}

/* Returns the dimension along which elements are contiguous in memory, or 0. */
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

/* The values that a kernel stores: those of all results, or of one part of the only result. The
 * part is an operand of the result's instruction. */
typedef struct stored {
    const char *form;            /* form of the launch */
    const hlo_instruction *part; /* NULL if the kernel stores all results */
    const int64_t *begin;        /* offset of the part in the result; NULL for an update */
} stored;

/* Finds the operands whose memory a result may reuse: each thread reads an element of the operand
 * only at the position of the result's element that it writes afterwards. Operand and result have
 * `count` elements. */
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
        const hlo_instruction *instr = e->job->group.results[0];
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
        const emit_index *to = emit_index_in(e, instr->shape, at);
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

/* Adds the launch of a kernel that computes tiles. Returns false if all arrays have the space's
 * memory order, or are small. */
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

/* Adds the launch of a kernel that loops over the space, or of one that computes tiles. */
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
    /* For tiles, use the memory order of the value that the first result only reorders. */
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

/* Adds the launch of a kernel that writes a part of the result. Rows of the part are contiguous in
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
    const hlo_instruction *instr = e->job->group.results[0], *into = hlo_instr_operand(instr, 0);
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
    const hlo_instruction *instr = e->job->group.results[0];
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

enum {
    ACROSS = 8,
    DOWN = 4,
    HELD = 256,      /* maximum bytes of an array in a thread's tile */
    LEAST = 4,       /* minimum elements of a side of a tile */
    MANY = 1 << 13,  /* preferred minimum number of tiles */
    ENOUGH = 1 << 12 /* minimum number of tiles */
};

static bool has_dims(const emit_space *space, uint32_t rank, const int64_t *dims) {
    return rank == space->rank &&
           (rank == 0 || memcmp(dims, space->dims, rank * sizeof *dims) == 0);
}

/* Returns the dimension of the space along which a result is contiguous in memory, or -1. */
static int64_t fastest(const emit *e, const emit_space *space, uint32_t result) {
    const hlo_group *group = &e->job->group;
    const hlo_view *view = &e->job->results[result];
    const hlo_ints *order = NULL;
    if (group->instr_count && group->results[result]->op == HLO_OP_TRANSPOSE) {
        const hlo_shape *from = hlo_instr_operand(group->results[result], 0)->shape;
        if (has_dims(space, from->rank, from->dims))
            order = hlo_instr_ints(group->results[result], HLO_ATTR_DIMENSIONS);
    }
    if (!order && !has_dims(space, view->rank, view->dims)) return -1;
    for (uint32_t d = 0; d < view->rank; d++)
        if (view->dims[d] > 1 && view->strides[d] == 1) return order ? order->v[d] : d;
    return -1;
}

/* Finds the narrowest and the widest element size of arrays: if `turned`, of the arrays that are
 * contiguous along `row`, otherwise of all others. */
static void find_bytes(const emit *e, const emit_space *space, uint32_t row, bool turned,
                       int *out_narrowest, int *out_widest) {
    const hlo_job *job = e->job;
    *out_narrowest = EMIT_ACCESS;
    *out_widest = 1;
    for (uint32_t i = 0; i < job->operand_count + job->result_count; i++) {
        const bool result = i >= job->operand_count;
        const uint32_t leaf = result ? i - job->operand_count : i;
        const hlo_view *view = result ? &job->results[leaf] : &job->operands[leaf];
        const bool is_turned = result ? fastest(e, space, leaf) == row : e->operands[leaf].turned;
        const int bytes = hlo_types[view->type].bytes;
        if (hlo_view_count(view) != space->count || is_turned != turned) continue;
        if (bytes < *out_narrowest) *out_narrowest = bytes;
        if (bytes > *out_widest) *out_widest = bytes;
    }
}

static int side(int narrowest, int widest) {
    const int elements = emit_pack_width(narrowest, widest);
    return elements < LEAST ? LEAST : elements;
}

bool emit_find_tile(emit *e, const emit_space *space, emit_tile *tile) {
    uint32_t column = 0;
    int64_t row = e->turned_dim;
    for (uint32_t i = space->rank; i-- > 0;)
        if (space->dims[space->order[i]] > 1) column = space->order[i];
    for (uint32_t i = 0; i < e->job->result_count; i++) {
        int64_t its = fastest(e, space, i);
        if (its < 0 || its == column) continue;
        if (row >= 0 && row != its) return false;
        row = its;
    }
    if (row < 0) return false;
    emit_tile t = {.row = (uint32_t)row, .column = column};
    /* Set the sides to the number of elements that a load or store of the narrowest array covers in
     * either order, limited by the registers for the widest array. */
    int narrowest, widest, other;
    find_bytes(e, space, t.row, true, &narrowest, &other);
    t.height = side(narrowest, other);
    find_bytes(e, space, t.row, false, &narrowest, &widest);
    t.width = side(narrowest, widest);
    if (other > widest) widest = other;
    while (t.width * t.height * widest > HELD) *(t.width > t.height ? &t.width : &t.height) /= 2;
    while (space->dims[t.column] % t.width != 0) t.width /= 2;
    while (space->dims[t.row] % t.height != 0) t.height /= 2;
    while (space->count / (t.width * t.height) < MANY && t.width * t.height > LEAST * LEAST)
        *(t.width > t.height ? &t.width : &t.height) /= 2;
    t.count = space->count / (t.width * t.height);
    if (t.width < LEAST || t.height < LEAST || t.count < ENOUGH) return false;
    *tile = t;
    return true;
}

const emit_index *emit_tile_begin(emit *e, const emit_space *space, emit_tile *tile,
                                  const char *number, emit_lines *inner) {
    uint32_t results = e->job->result_count;
    if (number) {
        /* Compute the position of the tile from its number. The threads of a warp have neighboring
         * tiles in a rectangle; the rectangles follow the order of the space. */
        int64_t dims[HLO_EVAL_MAX_RANK + 2];
        uint32_t order[HLO_EVAL_MAX_RANK + 2], count = 4;
        const char *at[HLO_EVAL_MAX_RANK + 2];
        int64_t rows = space->dims[tile->row] / tile->height;
        int64_t columns = space->dims[tile->column] / tile->width;
        dims[0] = columns % ACROSS == 0 ? ACROSS : 1;
        dims[1] = rows % DOWN == 0 ? DOWN : 1;
        dims[2] = columns / dims[0];
        dims[3] = rows / dims[1];
        for (uint32_t i = 0; i < space->rank; i++)
            if (space->order[i] != tile->row && space->order[i] != tile->column)
                dims[count++] = space->dims[space->order[i]];
        for (uint32_t i = 0; i < count; i++) order[i] = i;
        emit_split(e, number, dims, order, count, at);
        tile->column_base =
            emit_offset(e, "(%s * %lld + %s) * %d", at[2], (long long)dims[0], at[0], tile->width);
        tile->row_base =
            emit_offset(e, "(%s * %lld + %s) * %d", at[3], (long long)dims[1], at[1], tile->height);
        for (uint32_t i = 0, k = 4; i < space->rank; i++) {
            uint32_t d = space->order[i];
            tile->at[d] = d == tile->row || d == tile->column ? "0" : at[k++];
        }
    }
    e->width = tile->width;
    e->height = tile->height;
    e->turned = hlo_arena_zero(e->arena, (results + 1) * sizeof *e->turned);
    for (uint32_t i = 0; i < results; i++) {
        if (fastest(e, space, i) != tile->row) continue;
        e->turned[i] = emit_name(e, "w");
        emit_text(e, "pack<%s, %d> %s[%d];", cuda_types[e->job->results[i].type].cell, tile->height,
                  e->turned[i], tile->width);
    }
    emit_open_repeat(e, "r", tile->height);
    const char *at[HLO_EVAL_MAX_RANK];
    memcpy(at, tile->at, space->rank * sizeof *at);
    at[tile->row] = e->row = emit_value(e, "i", e->offset, "%s + r", tile->row_base);
    e->row_base = tile->row_base;
    at[tile->column] = tile->column_base;
    e->base =
        emit_dot(e, emit_index_new(e, space->rank, space->dims, at, NULL, NULL), space->strides);
    e->outer = hlo_arena_copy(e->arena, at, space->rank * sizeof *at);
    e->outer_count = space->rank;
    e->minor_base = tile->column_base;
    emit_elements_begin(e, inner);
    at[tile->column] = e->minor = emit_value(e, "i", e->offset, "%s + u", tile->column_base);
    e->linear = emit_value(e, "i", e->offset, "%s + u", e->base);
    return emit_index_new(e, space->rank, space->dims, at, e->linear, space->strides);
}

void emit_tile_end(emit *e, const emit_space *space, const emit_tile *tile) {
    emit_elements_end(e);
    emit_close(e);
    e->row = NULL;
    e->width = 1;
    bool any = false;
    for (uint32_t i = 0; i < e->job->result_count; i++) any |= e->turned[i] != NULL;
    if (!any) {
        e->turned = NULL;
        return;
    }
    const char *at[HLO_EVAL_MAX_RANK];
    memcpy(at, tile->at, space->rank * sizeof *at);
    at[tile->row] = tile->row_base;
    emit_open_unrolled(e, "u", tile->width);
    at[tile->column] = emit_value(e, "i", e->offset, "%s + u", tile->column_base);
    const emit_index *index = emit_index_new(e, space->rank, space->dims, at, NULL, NULL);
    for (uint32_t i = 0; i < e->job->result_count; i++) {
        if (!e->turned[i]) continue;
        const hlo_view *view = &e->job->results[i];
        const hlo_group *group = &e->job->group;
        const emit_index *to =
            group->instr_count ? emit_result_index(e, index, group->results[i]) : index;
        const char *type =
            hlo_arena_format(e->arena, "pack<%s, %d>", cuda_types[view->type].cell, tile->height);
        emit_text(e, "*(%s *)(%s + %s) = %s[u];", type, emit_result(e, i),
                  emit_dot(e, to, view->strides), e->turned[i]);
    }
    emit_close(e);
    e->turned = NULL;
}
