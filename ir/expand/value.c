/* SPDX-License-Identifier: Apache-2.0 */
/* Computes sizes and bounds of values, reports errors, and builds the instructions that replace
 * dynamic shapes. */
#include <string.h>

#include "ir/expand/expansion.h"
#include "ir/text/diag.h"

void *expand_refuse(expansion *x, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hlo_diag_emit(x->module, x->sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, x->build->at->offset,
                  strlen(x->build->at->name), "`%s` %s", hlo_ops[x->build->at->op].name, text);
    x->failed = true;
    return NULL;
}

dynamic_value *dynamic_value_of(expansion *x, const hlo_instruction *instr) {
    if (instr->id >= x->capacity) {
        const uint32_t capacity = 2 * instr->id + 64;
        dynamic_value *values = hlo_arena_zero(x->module->arena, capacity * sizeof *values);
        if (x->capacity) memcpy(values, x->values, x->capacity * sizeof *values);
        x->values = values;
        x->capacity = capacity;
    }
    return &x->values[instr->id];
}

hlo_instruction *dynamic_size(expansion *x, const hlo_instruction *array, int64_t dim) {
    hlo_instruction **sizes = dynamic_value_of(x, array)->sizes;
    return sizes ? sizes[dim] : NULL;
}

uint32_t dynamic_dims(const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE) return hlo_shape_is_array(shape) ? shape->rank : 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++) count += dynamic_dims(shape->elements[i]);
    return count;
}

const hlo_shape *dynamic_bound(hlo_module *module, const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        const hlo_shape **elements =
            hlo_arena_array(module->arena, shape->rank + 1, sizeof *elements);
        for (uint32_t i = 0; i < shape->rank; i++)
            elements[i] = dynamic_bound(module, shape->elements[i]);
        return hlo_shape_tuple(module, shape->rank, elements);
    }
    if (!shape->dynamic) return shape;
    hlo_shape bound = *shape;
    bound.dynamic = NULL;
    return hlo_shape_intern(module, &bound);
}

hlo_instruction *expand_replace(expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                                hlo_instruction *const *operands) {
    hlo_instruction *old = x->build->at;
    hlo_instruction *made = hlo_instr_new_unnamed(old->parent, old, op, shape, count, operands);
    made->offset = old->offset;
    made->name = old->name;
    *dynamic_value_of(x, made) = *dynamic_value_of(x, old);
    hlo_instr_replace_uses(old, made);
    hlo_instr_inherit(made, old);
    hlo_instr_remove(old);
    x->build->at = made;
    return made;
}

hlo_instruction *expand_number(expansion *x, int64_t value) {
    return hlo_build_number(x->build, HLO_TYPE_S32, (double)value);
}

hlo_instruction *expand_zero(expansion *x, hlo_type type) {
    if (hlo_types[type].class != HLO_CLASS_COMPLEX) return hlo_build_number(x->build, type, 0);
    hlo_instruction *zero = expand_zero(x, type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64);
    return hlo_build_convert(x->build, zero, type);
}

hlo_instruction *expand_splat(expansion *x, hlo_instruction *scalar, const hlo_shape *like) {
    return hlo_build_splat(x->build, scalar,
                           hlo_shape_retype(x->module, like, scalar->shape->type));
}

hlo_instruction *expand_index(expansion *x, const hlo_shape *like, int64_t dim) {
    return hlo_build_iota(x->build, hlo_shape_retype(x->module, like, HLO_TYPE_S32), dim);
}

hlo_instruction *expand_mask(expansion *x, hlo_instruction *array, int64_t dim,
                             hlo_instruction *size, hlo_instruction *fill) {
    if (!size) return array;
    hlo_instruction *index = expand_index(x, array->shape, dim);
    index = hlo_build_compare(x->build, index, "LT", expand_splat(x, size, index->shape));
    return hlo_build_select(x->build, index, array, expand_splat(x, fill, array->shape));
}
