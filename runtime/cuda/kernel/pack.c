/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that pack 4-bit elements, two per byte: "pack". A thread has a few elements that are
 * consecutive in the packed order, loads them at once if they are contiguous, and stores their
 * bytes at once. */
#include "runtime/cuda/kernel/pack.h"

#include "ir/kernel/kernel.h"

enum { WIDEST = 16, NARROWEST = 4 }; /* elements per thread */

bool cuda_packs(const hlo_job *job) {
    return !job->group.instr_count && job->operand_count == 1 &&
           hlo_view_count(&job->operands[0]) != hlo_view_count(&job->results[0]);
}

void emit_pack(emit *e, cuda_code *code) {
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
