/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and reads constant values. */
#include <string.h>

#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/ir.h"

hlo_literal *hlo_literal_new(hlo_module *module, const hlo_shape *shape) {
    hlo_literal *literal = hlo_arena_zero(module->arena, sizeof *literal);
    literal->shape = shape;
    literal->data = hlo_arena_array(module->arena, (size_t)hlo_shape_count(shape),
                                    hlo_types[shape->type].bytes);
    return literal;
}

hlo_literal *hlo_literal_tuple(hlo_module *module, const hlo_shape *shape) {
    hlo_literal *literal = hlo_arena_zero(module->arena, sizeof *literal);
    literal->shape = shape;
    literal->elements = hlo_arena_array(module->arena, shape->rank, sizeof *literal->elements);
    return literal;
}

hlo_literal *hlo_literal_elided(hlo_module *module, const hlo_shape *shape) {
    hlo_literal *literal = hlo_arena_zero(module->arena, sizeof *literal);
    literal->shape = shape;
    literal->elided = true;
    return literal;
}

bool hlo_literal_is_splat(const hlo_literal *literal) {
    if (!literal->data) return false;
    int64_t count = hlo_shape_count(literal->shape);
    size_t size = hlo_types[literal->shape->type].bytes;
    const char *data = literal->data;
    for (int64_t i = 1; i < count; i++)
        if (memcmp(data, data + (size_t)i * size, size) != 0) return false;
    return count > 0;
}

void hlo_literal_set_number(hlo_literal *literal, int64_t index, double value) {
    hlo_type type = literal->shape->type;
    hlo_number_store(type, (char *)literal->data + index * hlo_types[type].bytes, value);
}

hlo_instruction *hlo_constant_new(hlo_computation *comp, hlo_instruction *before,
                                  const hlo_literal *literal) {
    hlo_instruction *instr =
        hlo_instr_new(comp, before, HLO_OP_CONSTANT, literal->shape, 0, NULL, NULL);
    instr->u.literal = literal;
    return instr;
}

hlo_instruction *hlo_constant_scalar(hlo_computation *comp, hlo_instruction *before, hlo_type type,
                                     double value) {
    hlo_literal *literal =
        hlo_literal_new(comp->module, hlo_shape_array(comp->module, type, 0, NULL));
    hlo_literal_set_number(literal, 0, value);
    return hlo_constant_new(comp, before, literal);
}
