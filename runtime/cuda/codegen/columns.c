/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce columns, with several columns per thread. */
#include <string.h>

#include "runtime/cuda/codegen/reduce.h"

enum { SHARED = 1 << 15 }; /* maximum bytes of shared memory for accumulators */

void reduce_open_columns(reduction *s) {
    if (s->each == 1) return;
    emit_text(s->e, "#pragma unroll");
    emit_open(s->e, "for (int u = 0; u < %d; u++) {", s->each);
}

void reduce_close_columns(reduction *s) {
    if (s->each > 1) emit_close(s->e);
}

/* Returns the dimension in which a thread's columns are contiguous. */
static uint32_t column_dim(const reduction *s) {
    for (uint32_t i = 0; i < s->kept_count; i++)
        if (s->shape->dims[s->kept_order[i]] > 1) return s->kept_order[i];
    return 0;
}

const emit_index *reduce_columns_index(reduction *s, const char *step, emit_lines *inner) {
    emit *e = s->e;
    const char *at[HLO_EVAL_MAX_RANK];
    const uint32_t minor = column_dim(s);
    memcpy(at, s->at, s->shape->rank * sizeof *at);
    emit_split(e, step, s->shape->dims, s->order, s->order_count, at);
    if (s->tile.width) {
        memcpy(s->tile.at, at, s->shape->rank * sizeof *at);
        s->tile.row_base = at[s->tile.row];
        s->tile.column_base = at[minor];
        return emit_tile_begin(e, &s->space, &s->tile, NULL, inner);
    }
    e->base = e->linear = NULL;
    e->minor_base = at[minor];
    e->outer = hlo_arena_copy(e->arena, at, s->shape->rank * sizeof *at);
    e->outer_count = s->shape->rank;
    emit_elements_begin(e, inner);
    at[minor] = e->minor = emit_offset(e, "%s + u", e->minor_base);
    return emit_index_new(e, s->shape->rank, s->shape->dims, at, NULL, NULL);
}

int reduce_find_columns(reduction *s) {
    if (s->row || s->phases != 1 || !s->reduced ||
        s->e->job->group.result_count != s->e->job->result_count)
        return 1;
    int each = emit_width(s->e, &s->space, s->shape->dims[column_dim(s)]);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++) bytes += (int64_t)s->reduces[i].arrays * 8 * CUDA_BLOCK;
    while (each > 1 && each * bytes > SHARED) each /= 2;
    /* A tile has columns that belong to one thread and rows that are contiguous in the columns. */
    emit_tile tile;
    uint32_t fastest = 0;
    for (uint32_t i = s->order_count; i-- > 0;)
        if (s->shape->dims[s->order[i]] > 1) fastest = s->order[i];
    if (!emit_find_tile(s->e, &s->space, &tile) || tile.column != column_dim(s) ||
        tile.row != fastest || tile.width > each)
        return each;
    s->tile = tile;
    return tile.width;
}

void reduce_enter_column(reduction *s) {
    const uint32_t d = column_dim(s);
    reduce_open_columns(s);
    s->k = emit_offset(s->e, "%s + u", s->k);
    s->at[d] = emit_offset(s->e, "%s + u", s->at[d]);
}
