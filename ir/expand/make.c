/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions that dynamic shapes are expanded to. */
#include "ir/expand/expansion.h"

hlo_instr *expand_replace(expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                          hlo_instr *const *operands) {
    hlo_instr *old = x->build->at;
    hlo_instr *made = hlo_instr_new_unnamed(old->parent, old, op, shape, count, operands);
    made->offset = old->offset;
    made->name = old->name;
    *dynamic_value_of(x, made) = *dynamic_value_of(x, old);
    hlo_instr_replace_uses(old, made);
    hlo_instr_inherit(made, old);
    hlo_instr_remove(old);
    x->build->at = made;
    return made;
}

hlo_instr *expand_number(expansion *x, int64_t value) {
    return hlo_build_number(x->build, HLO_TYPE_S32, (double)value);
}

hlo_instr *expand_zero(expansion *x, hlo_type type) {
    if (hlo_types[type].class != HLO_CLASS_COMPLEX) return hlo_build_number(x->build, type, 0);
    hlo_instr *zero = expand_zero(x, type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64);
    return hlo_build_convert(x->build, zero, type);
}

hlo_instr *expand_splat(expansion *x, hlo_instr *scalar, const hlo_shape *like) {
    return hlo_build_splat(x->build, scalar,
                           hlo_shape_retype(x->module, like, scalar->shape->type));
}

hlo_instr *expand_index(expansion *x, const hlo_shape *like, int64_t dim) {
    return hlo_build_iota(x->build, hlo_shape_retype(x->module, like, HLO_TYPE_S32), dim);
}

hlo_instr *expand_mask(expansion *x, hlo_instr *array, int64_t dim, hlo_instr *size,
                       hlo_instr *fill) {
    if (!size) return array;
    hlo_instr *index = expand_index(x, array->shape, dim);
    index = hlo_build_compare(x->build, index, "LT", expand_splat(x, size, index->shape));
    return hlo_build_select(x->build, index, array, expand_splat(x, fill, array->shape));
}
