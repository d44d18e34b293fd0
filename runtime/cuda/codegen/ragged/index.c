/* SPDX-License-Identifier: Apache-2.0 */
/* Indices of a ragged-dot's operands. */
#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/ragged/ragged.h"

void ragged_split(ragging *g, const char *linear, const ragged_side *s, const ragged_dims *d,
                  const char **at) {
    emit_split(g->e, linear, s->operand->shape->dims, d->order, d->count, at);
}

ragged_place ragged_open_tile(ragging *g, unsigned number, const ragged_part *part, int width,
                              int terms, int run) {
    emit *e = g->e;
    const ragged_side *s = &g->side[number];
    ragged_place p = {.end = part->end,
                      .first = number ? "0" : part->first,
                      .last = number ? hlo_arena_format(e->arena, "%lld", (long long)s->open.size)
                                     : part->last};
    int64_t strides[HLO_EVAL_MAX_RANK];
    hlo_shape_strides(s->operand->shape, strides);
    p.by_terms = !s->open.count || strides[s->open.order[0]] != 1;
    const char *t = emit_name(e, "i");
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int %s = threadIdx.x; %s < %d; %s += %d) {", t, t, width * terms / run, t,
              CUDA_BLOCK);
    const int runs = (p.by_terms ? terms : width) / run;
    const char *low = run == 1 ? emit_offset(e, "%s %% %d", t, runs)
                               : emit_offset(e, "%s %% %d * %d", t, runs, run),
               *high = emit_offset(e, "%s / %d", t, runs);
    p.term = p.by_terms ? low : high;
    p.row = p.by_terms ? high : low;
    p.k = emit_offset(e, "%s + %s", part->step, p.term);
    p.at = emit_offset(e, "%s + %s", s->base, p.row);
    return p;
}

void ragged_open_inside(ragging *g, unsigned number, const ragged_place *p) {
    ragged_side *s = &g->side[number];
    emit_open(g->e, "if (%s < %s && %s >= %s && %s < %s) {", p->k, p->end, p->at, p->first, p->at,
              p->last);
    ragged_split(g, p->at, s, &s->open, s->at);
    ragged_split(g, p->k, &g->side[0], &g->summed, g->side[0].at);
    /* Sets the right operand's indices of contracting dimensions to those of the left operand. */
    for (uint32_t i = 0; i < g->side[0].summed->count; i++)
        g->side[1].at[g->side[1].summed->v[i]] = g->side[0].at[g->side[0].summed->v[i]];
}
