/* Indices of a ragged-dot's operands. */
#include "runtime/cuda/codegen/ragged/ragged.h"

void ragged_split(ragging *g, const char *linear, const ragged_side *s, const ragged_dims *d,
                  const char **at) {
    emit_split(g->e, linear, s->operand->shape->dims, d->order, d->count, at);
}

void ragged_pair_summed(ragging *g) {
    for (uint32_t i = 0; i < g->side[0].summed->count; i++)
        g->side[1].at[g->side[1].summed->v[i]] = g->side[0].at[g->side[0].summed->v[i]];
}
