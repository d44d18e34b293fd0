/* The mode of arrays that start as zeros and receive a dequantized slice in each iteration. */
#include "ir/module/known.h"
#include "passes/transform/sink_dequantize.h"

static bool matches(const hlo_sink_region *e, uint32_t index) {
    double number;
    const hlo_instr *value = hlo_instr_operand(e->tuple, index);
    return e->user->op == HLO_OP_WHILE && hlo_type_is_wide(value->shape->type) &&
           hlo_known_number(value, &number) && number == 0;
}

/* Reads the dynamic-update-slice that writes a dequantized slice along dimension 0. */
static bool read(const hlo_sink_region *e, uint32_t index, hlo_sink_candidate *out) {
    const hlo_instr *update = hlo_sink_next(e, index);
    if (update->op != HLO_OP_DYNAMIC_UPDATE_SLICE || update->pin || update->use_count != 1)
        return false;
    const hlo_instr *state = hlo_instr_operand(update, 0);
    hlo_instr *slice = hlo_instr_operand(update, 1);
    const hlo_shape *all = update->shape, *one = slice->shape;
    if (state->pin || state->use_count != 1 ||
        hlo_sink_index(state, e->called[0]->parameters[0]) != index || !all->rank ||
        one->dims[0] != 1 || hlo_instr_operand(update, 2)->shape->rank)
        return false;
    for (uint32_t i = 1; i < all->rank; i++)
        if (one->dims[i] != all->dims[i]) return false;
    if (!hlo_sink_read_moved(slice, &out->from)) return false;
    if (out->from.scale) out->dims = hlo_ints_new(e->context->module, 1, (int64_t[]){0});
    return true;
}

static const hlo_instr *varies_with(const hlo_sink_region *e, uint32_t index) {
    return hlo_instr_operand(hlo_sink_next(e, index), 2);
}

/* Makes an array of zeros, and a scale of 1 for each slice. */
static hlo_instr *first(const hlo_sink_region *e, const hlo_sink_candidate *what, hlo_instr *wide,
                        hlo_instr **out_scale) {
    hlo_module *module = e->context->module;
    hlo_instr *at = e->user;
    hlo_instr *zero = hlo_constant_scalar(at->parent, at, what->from.from, 0);
    hlo_instr *all =
        hlo_sink_broadcast(at, zero, hlo_shape_retype(module, wide->shape, what->from.from), NULL);
    if (!what->from.scale) return all;
    hlo_type type = what->from.scale->shape->type;
    hlo_instr *one = hlo_constant_scalar(at->parent, at, type, 1);
    *out_scale =
        hlo_sink_broadcast(at, one, hlo_shape_array(module, type, 1, wide->shape->dims), NULL);
    return all;
}

/* Stacks the fp8 slice, and its scale in an array of its own. */
static hlo_instr *next(const hlo_sink_region *e, uint32_t index) {
    const hlo_sink_candidate *what = &e->elements[index];
    hlo_instr *update = hlo_sink_next(e, index);
    hlo_instr_set_operand(update, 1, hlo_sink_carry(what, hlo_instr_operand(update, 1), update));
    if (!what->from.scale) return NULL;
    hlo_instr *all = hlo_sink_take(update, e->called[0]->parameters[0], what->scale_index);
    hlo_instr *operands[] = {all, hlo_sink_reshape(update, what->from.scale, 1, (int64_t[]){1}),
                             hlo_instr_operand(update, 2)};
    return hlo_sink_insert(update, HLO_OP_DYNAMIC_UPDATE_SLICE, all->shape, 3, operands);
}

const hlo_sink_mode hlo_sink_stacked = {.matches = matches,
                                        .read = read,
                                        .varies_with = varies_with,
                                        .first = first,
                                        .next = next,
                                        .links = true,
                                        .after = true};
