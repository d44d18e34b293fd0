/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's elements as a rectangle: "tile". Rows are read and written in memory order, and
 * transposed values are collected until a column is complete. Eight threads along a row and four
 * along a column fill memory transactions in both orders, without shared memory. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

enum {
    ACROSS = 8,
    DOWN = 4,
    HELD = 256,      /* maximum bytes of an array in a thread's tile */
    LEAST = 4,       /* minimum elements of a side, */
    MANY = 1 << 13,  /* preferred number of tiles, */
    ENOUGH = 1 << 12 /* and minimum number of tiles */
};

static bool same_dims(const emit_space *space, uint32_t rank, const int64_t *dims) {
    return rank == space->rank &&
           (rank == 0 || memcmp(dims, space->dims, rank * sizeof *dims) == 0);
}

/* Returns the dimension of the space that is the fastest of a result in memory, or -1. */
static int64_t fastest(const emit *e, const emit_space *space, uint32_t result) {
    const hlo_group *group = &e->job->group;
    const hlo_view *view = &e->job->results[result];
    const hlo_ints *order = NULL;
    if (group->instr_count && group->results[result]->op == HLO_OP_TRANSPOSE) {
        const hlo_shape *from = hlo_instr_operand(group->results[result], 0)->shape;
        if (same_dims(space, from->rank, from->dims))
            order = hlo_instr_ints(group->results[result], HLO_ATTR_DIMENSIONS);
    }
    if (!order && !same_dims(space, view->rank, view->dims)) return -1;
    for (uint32_t d = 0; d < view->rank; d++)
        if (view->dims[d] > 1 && view->strides[d] == 1) return order ? order->v[d] : d;
    return -1;
}

/* Finds the sizes of the narrowest and the widest element of arrays in the order of `row`, or
 * otherwise in the space's order. */
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
    /* Sets the sides: as many elements as a load or store of the narrowest arrays covers in either
     * order, but no more than registers can hold of the widest. */
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
        /* Computes the position of the tile: its number counts the threads of a warp first, then
         * tiles along the space. */
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
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int u = 0; u < %d; u++) {", tile->width);
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
