/* The mode of elements that each iteration moves, or receives from another device. */
#include "passes/transform/sink_dequantize.h"

static bool matches(const hlo_sink_region *e, uint32_t index) {
    const hlo_instr *start = hlo_sink_moved_from(hlo_sink_next(e, index));
    return hlo_sink_index(start, e->called[0]->parameters[0]) == index;
}

static bool read(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out) {
    return hlo_sink_read_first(e, index, out) && !out->dims;
}

const hlo_sink_mode hlo_sink_permuted = {.matches = matches,
                                         .read = read,
                                         .first = hlo_sink_first_carried,
                                         .next = hlo_sink_same_scale,
                                         .links = true};
