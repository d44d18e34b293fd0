/* The instructions that dynamic shapes are expanded to. */
#include "ir/expand/expansion.h"

hlo_instr *expand_make(expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                       hlo_instr *const *operands) {
    hlo_instr *made = hlo_instr_new(x->at->parent, x->at, op, shape, count, operands, NULL);
    const hlo_attr *metadata = hlo_instr_attr(x->at, HLO_ATTR_METADATA);
    made->offset = x->at->offset;
    if (metadata) hlo_instr_set_attr(made, *metadata);
    return made;
}

hlo_instr *expand_replace(expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                          hlo_instr *const *operands) {
    hlo_instr *old = x->at;
    hlo_instr *made = hlo_instr_new_unnamed(old->parent, old, op, shape, count, operands);
    made->offset = old->offset;
    made->name = old->name;
    *dynamic_value_of(x, made) = *dynamic_value_of(x, old);
    hlo_instr_replace_uses(old, made);
    hlo_instr_inherit(made, old);
    hlo_instr_remove(old);
    x->at = made;
    return made;
}

void expand_place_before(hlo_computation *caller, hlo_computation *made) {
    for (hlo_computation *moved = caller, *next; moved != made; moved = next) {
        next = moved->next;
        hlo_computation_move_last(moved);
    }
}

hlo_instr *expand_number(expansion *x, int64_t value) {
    return hlo_constant_scalar(x->at->parent, x->at, HLO_TYPE_S32, (double)value);
}

hlo_instr *expand_zero(expansion *x, hlo_type type) {
    if (hlo_types[type].class != HLO_CLASS_COMPLEX)
        return hlo_constant_scalar(x->at->parent, x->at, type, 0);
    hlo_instr *zero = expand_zero(x, type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64);
    return expand_make(x, HLO_OP_CONVERT, hlo_shape_array(x->module, type, 0, NULL), 1, &zero);
}

hlo_instr *expand_binary(expansion *x, hlo_op op, hlo_instr *a, hlo_instr *b) {
    hlo_instr *operands[] = {a, b};
    return expand_make(x, op, a->shape, 2, operands);
}

hlo_instr *expand_compare(expansion *x, const char *direction, hlo_instr *a, hlo_instr *b) {
    hlo_instr *operands[] = {a, b};
    const hlo_shape *shape = hlo_shape_retype(x->module, a->shape, HLO_TYPE_PRED);
    hlo_instr *made = expand_make(x, HLO_OP_COMPARE, shape, 2, operands);
    hlo_instr_set_str(made, HLO_ATTR_DIRECTION, direction);
    return made;
}

hlo_instr *expand_splat(expansion *x, hlo_instr *scalar, const hlo_shape *like) {
    if (!like->rank) return scalar;
    const hlo_shape *shape = hlo_shape_retype(x->module, like, scalar->shape->type);
    hlo_instr *made = expand_make(x, HLO_OP_BROADCAST, shape, 1, &scalar);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, 0, NULL);
    return made;
}

hlo_instr *expand_index(expansion *x, const hlo_shape *like, int64_t dim) {
    const hlo_shape *shape = hlo_shape_retype(x->module, like, HLO_TYPE_S32);
    hlo_instr *made = expand_make(x, HLO_OP_IOTA, shape, 0, NULL);
    hlo_instr_set_int(made, HLO_ATTR_IOTA_DIMENSION, dim);
    return made;
}

hlo_instr *expand_element(expansion *x, hlo_instr *tuple, uint32_t index) {
    hlo_instr *made =
        expand_make(x, HLO_OP_GET_TUPLE_ELEMENT, tuple->shape->elements[index], 1, &tuple);
    hlo_instr_set_int(made, HLO_ATTR_INDEX, index);
    return made;
}

hlo_instr *expand_mask(expansion *x, hlo_instr *array, int64_t dim, hlo_instr *size,
                       hlo_instr *fill) {
    if (!size) return array;
    hlo_instr *index = expand_index(x, array->shape, dim);
    hlo_instr *operands[] = {expand_compare(x, "LT", index, expand_splat(x, size, index->shape)),
                             array, expand_splat(x, fill, array->shape)};
    return expand_make(x, HLO_OP_SELECT, array->shape, 3, operands);
}
