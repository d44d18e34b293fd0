/* The mode of loop invariants, and of elements that enter branches. */
#include "passes/transform/sink_dequantize.h"

static bool matches(const hlo_sink_region *e, uint32_t index) {
    return e->user->op != HLO_OP_WHILE ||
           hlo_sink_index(hlo_sink_next(e, index), e->called[0]->parameters[0]) == index;
}

const hlo_sink_mode hlo_sink_invariant = {.matches = matches,
                                          .read = hlo_sink_read_first,
                                          .first = hlo_sink_first_carried,
                                          .next = hlo_sink_same_scale,
                                          .lasts = true};
