/* Readers and makers of values that the modes of sinking share. */
#include "ir/module/known.h"
#include "passes/transform/sink_dequantize.h"

int64_t hlo_sink_index(const hlo_instr *value, const hlo_instr *tuple) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || hlo_instr_operand(value, 0) != tuple) return -1;
    return hlo_instr_int(value, HLO_ATTR_INDEX, -1);
}

hlo_instr *hlo_sink_next(const hlo_sink_region *e, uint32_t index) {
    return hlo_instr_operand(e->called[0]->root, index);
}

bool hlo_sink_is_next(const hlo_sink_region *e, const hlo_use *use, uint32_t index) {
    const hlo_instr *root = e->called[0]->root;
    return e->user->op == HLO_OP_WHILE && use->user == root && use == root->operands + index;
}

/* True for movement whose clone needs no other new instruction. */
static bool is_plain(const hlo_instr *link) {
    return !link->pin && hlo_instr_moves_by(link, HLO_REARRANGES);
}

bool hlo_sink_is_collective(const hlo_instr *instr) {
    return instr->operand_count == 1 && !instr->pin &&
           (instr->op == HLO_OP_ALL_GATHER || instr->op == HLO_OP_ALL_TO_ALL ||
            instr->op == HLO_OP_COLLECTIVE_PERMUTE);
}

const hlo_instr *hlo_sink_moved_from(const hlo_instr *value) {
    for (unsigned depth = 0; depth < HLO_SINK_DEPTH_LIMIT && value->operand_count; depth++) {
        if (!is_plain(value) && !hlo_sink_is_collective(value)) break;
        value = hlo_instr_operand(value, 0);
    }
    return value;
}

bool hlo_sink_read_moved(hlo_instr *value, hlo_dequantized *out) {
    for (unsigned depth = 0; depth < HLO_SINK_DEPTH_LIMIT && is_plain(value); depth++)
        value = hlo_instr_operand(value, 0);
    return hlo_dequantized_read(value, out);
}

bool hlo_sink_read_first(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out) {
    hlo_instr *value = hlo_instr_operand(e->tuple, index);
    return hlo_sink_read_moved(value, &out->from) ||
           hlo_dequantized_read_rows(value, &out->from, &out->dims);
}

hlo_instr *hlo_sink_insert(hlo_instr *before, hlo_op op, const hlo_shape *shape, uint32_t count,
                           hlo_instr *const *operands) {
    hlo_instr *made = hlo_instr_new(before->parent, before, op, shape, count, operands, NULL);
    made->offset = before->offset;
    return made;
}

hlo_instr *hlo_sink_take(hlo_instr *before, hlo_instr *tuple, int64_t index) {
    const hlo_shape *shape = tuple->shape->elements[index];
    hlo_instr *made = hlo_sink_insert(before, HLO_OP_GET_TUPLE_ELEMENT, shape, 1, &tuple);
    hlo_instr_set_attr(made, (hlo_attr){.id = HLO_ATTR_INDEX, .u.i = index});
    return made;
}

hlo_instr *hlo_sink_reshape(hlo_instr *before, hlo_instr *value, uint32_t rank,
                            const int64_t *dims) {
    const hlo_shape *shape =
        hlo_shape_array(before->parent->module, value->shape->type, rank, dims);
    return hlo_sink_insert(before, HLO_OP_RESHAPE, shape, 1, &value);
}

hlo_instr *hlo_sink_broadcast(hlo_instr *before, hlo_instr *value, const hlo_shape *shape,
                              const hlo_ints *dims) {
    hlo_instr *made = hlo_sink_insert(before, HLO_OP_BROADCAST, shape, 1, &value);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, dims ? dims->count : 0, dims ? dims->v : NULL);
    return made;
}

void hlo_sink_retype(const hlo_sink_candidate *what, hlo_instr *value) {
    value->shape = hlo_shape_retype(value->parent->module, value->shape, what->from.from);
}

hlo_instr *hlo_sink_carry(const hlo_sink_candidate *what, hlo_instr *link, hlo_instr *before) {
    hlo_dequantized made;
    if (hlo_dequantized_read(link, &made)) return made.fp8;
    hlo_instr *below = hlo_sink_carry(what, hlo_instr_operand(link, 0), before);
    hlo_instr *operands[1 + HLO_RULE_ARGS] = {below};
    for (uint32_t i = 1; i < link->operand_count; i++) operands[i] = hlo_instr_operand(link, i);
    hlo_instr *copy = hlo_instr_copy(before->parent, before, link, operands);
    hlo_sink_retype(what, copy);
    return copy;
}

hlo_instr *hlo_sink_first_carried(const hlo_sink_region *e, const hlo_sink_candidate *what,
                                  hlo_instr *wide, hlo_instr **out_scale) {
    *out_scale = what->from.scale;
    return what->dims ? what->from.fp8 : hlo_sink_carry(what, wide, e->user);
}

hlo_instr *hlo_sink_same_scale(const hlo_sink_region *e, uint32_t index) {
    int64_t scale = e->elements[index].scale_index;
    const hlo_computation *body = e->called[0];
    return scale < 0 ? NULL : hlo_sink_take(body->root, body->parameters[0], scale);
}
