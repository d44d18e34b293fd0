/* The instructions that dynamic shapes are expanded to. */
#include "ir/dynamic/expansion.h"

hlo_instr *dynamic_make(dynamic_expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                        hlo_instr *const *operands) {
    hlo_instr *made = hlo_instr_new(x->at->parent, x->at, op, shape, count, operands, NULL);
    const hlo_attr *metadata = hlo_instr_attr(x->at, HLO_ATTR_METADATA);
    made->offset = x->at->offset;
    if (metadata) hlo_instr_set_attr(made, *metadata);
    return made;
}

hlo_instr *dynamic_replace(dynamic_expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
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

hlo_instr *dynamic_number(dynamic_expansion *x, int64_t value) {
    return hlo_constant_scalar(x->at->parent, x->at, HLO_TYPE_S32, (double)value);
}

hlo_instr *dynamic_zero(dynamic_expansion *x, hlo_type type) {
    if (hlo_types[type].class != HLO_CLASS_COMPLEX)
        return hlo_constant_scalar(x->at->parent, x->at, type, 0);
    hlo_instr *zero = dynamic_zero(x, type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64);
    return dynamic_make(x, HLO_OP_CONVERT, hlo_shape_array(x->module, type, 0, NULL), 1, &zero);
}

hlo_instr *dynamic_binary(dynamic_expansion *x, hlo_op op, hlo_instr *a, hlo_instr *b) {
    hlo_instr *operands[] = {a, b};
    return dynamic_make(x, op, a->shape, 2, operands);
}

hlo_instr *dynamic_compare(dynamic_expansion *x, const char *direction, hlo_instr *a,
                           hlo_instr *b) {
    hlo_instr *operands[] = {a, b};
    const hlo_shape *shape = hlo_shape_retype(x->module, a->shape, HLO_TYPE_PRED);
    hlo_instr *made = dynamic_make(x, HLO_OP_COMPARE, shape, 2, operands);
    hlo_instr_set_str(made, HLO_ATTR_DIRECTION, direction);
    return made;
}

hlo_instr *dynamic_splat(dynamic_expansion *x, hlo_instr *scalar, const hlo_shape *like) {
    if (!like->rank) return scalar;
    const hlo_shape *shape = hlo_shape_retype(x->module, like, scalar->shape->type);
    hlo_instr *made = dynamic_make(x, HLO_OP_BROADCAST, shape, 1, &scalar);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, 0, NULL);
    return made;
}

hlo_instr *dynamic_index(dynamic_expansion *x, const hlo_shape *like, int64_t dim) {
    const hlo_shape *shape = hlo_shape_retype(x->module, like, HLO_TYPE_S32);
    hlo_instr *made = dynamic_make(x, HLO_OP_IOTA, shape, 0, NULL);
    hlo_instr_set_int(made, HLO_ATTR_IOTA_DIMENSION, dim);
    return made;
}

hlo_instr *dynamic_element(dynamic_expansion *x, hlo_instr *tuple, uint32_t index) {
    hlo_instr *made =
        dynamic_make(x, HLO_OP_GET_TUPLE_ELEMENT, tuple->shape->elements[index], 1, &tuple);
    hlo_instr_set_int(made, HLO_ATTR_INDEX, index);
    return made;
}

hlo_instr *dynamic_mask(dynamic_expansion *x, hlo_instr *array, int64_t dim, hlo_instr *size,
                        hlo_instr *fill) {
    if (!size) return array;
    hlo_instr *index = dynamic_index(x, array->shape, dim);
    hlo_instr *operands[] = {dynamic_compare(x, "LT", index, dynamic_splat(x, size, index->shape)),
                             array, dynamic_splat(x, fill, array->shape)};
    return dynamic_make(x, HLO_OP_SELECT, array->shape, 3, operands);
}
