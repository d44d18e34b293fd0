/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and bounds of values; errors. */
#include <string.h>

#include "ir/expand/expansion.h"
#include "ir/text/diag.h"

void *expand_refuse(expansion *x, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hlo_diag_emit(x->module, x->sink, HLO_ERROR, x->build->at->offset, strlen(x->build->at->name),
                  "`%s` %s", hlo_ops[x->build->at->op].name, text);
    x->failed = true;
    return NULL;
}

dynamic_value *dynamic_value_of(expansion *x, const hlo_instr *instr) {
    if (instr->id >= x->capacity) {
        const uint32_t capacity = 2 * instr->id + 64;
        dynamic_value *values = hlo_arena_zero(x->module->arena, capacity * sizeof *values);
        if (x->capacity) memcpy(values, x->values, x->capacity * sizeof *values);
        x->values = values;
        x->capacity = capacity;
    }
    return &x->values[instr->id];
}

hlo_instr *dynamic_size(expansion *x, const hlo_instr *array, int64_t dim) {
    hlo_instr **sizes = dynamic_value_of(x, array)->sizes;
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
