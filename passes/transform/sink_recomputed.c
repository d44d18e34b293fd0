/* The mode of elements that each iteration replaces by a new dequantized value. */
#include "passes/transform/sink_dequantize.h"

static bool read(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out) {
    return hlo_sink_read_first(e, index, out) && !out->dims &&
           hlo_sink_read_moved(hlo_sink_next(e, index), &out->next) &&
           hlo_dequantized_same_form(&out->from, &out->next);
}

static const hlo_instr *varies_with(const hlo_sink_region *e, uint32_t index) {
    return e->elements[index].next.scale;
}

static hlo_instr *next(const hlo_sink_region *e, uint32_t index) {
    const hlo_sink_candidate *what = &e->elements[index];
    hlo_instr *root = e->called[0]->root;
    hlo_instr_set_operand(root, index, hlo_sink_carry(what, hlo_sink_next(e, index), root));
    return what->next.scale;
}

const hlo_sink_mode hlo_sink_recomputed = {
    .read = read, .varies_with = varies_with, .first = hlo_sink_first_carried, .next = next};
