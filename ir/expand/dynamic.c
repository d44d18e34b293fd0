/* SPDX-License-Identifier: Apache-2.0 */
/* Expands dynamic shapes: passes sizes next to values, including across calls. */
#include <string.h>

#include "ir/expand/expansion.h"
#include "ir/module/known.h"

/* Writes, for each dimension, whether the shape declares it dynamic. */
static void list_dims(const hlo_shape *shape, bool **dynamic) {
    if (shape->type == HLO_TYPE_TUPLE)
        for (uint32_t i = 0; i < shape->rank; i++) list_dims(shape->elements[i], dynamic);
    else if (hlo_shape_is_array(shape))
        for (uint32_t i = 0; i < shape->rank; i++) *(*dynamic)++ = dynamic_declares(shape, i);
}

typedef struct dims {
    uint32_t count, dynamic_count;
    bool *dynamic;
} dims;

static dims dims_of(const expansion *x, const hlo_shape *shape) {
    dims d = {.count = dynamic_dims(shape)};
    bool *dynamic = d.dynamic = hlo_arena_array(x->module->arena, d.count + 1, sizeof *d.dynamic);
    list_dims(shape, &dynamic);
    for (uint32_t i = 0; i < d.count; i++) d.dynamic_count += d.dynamic[i];
    return d;
}

/* Returns `shape` with the given dynamic dimensions. `dynamic` advances over all dimensions. */
static const hlo_shape *declare(const expansion *x, const hlo_shape *shape, bool **dynamic) {
    if (shape->type == HLO_TYPE_TUPLE) {
        const hlo_shape **elements =
            hlo_arena_array(x->module->arena, shape->rank + 1, sizeof *elements);
        for (uint32_t i = 0; i < shape->rank; i++)
            elements[i] = declare(x, shape->elements[i], dynamic);
        return hlo_shape_tuple(x->module, shape->rank, elements);
    }
    if (!hlo_shape_is_array(shape)) return shape;
    hlo_shape changed = *shape;
    changed.dynamic = *dynamic;
    bool any = false;
    for (uint32_t i = 0; i < shape->rank; i++) any |= *(*dynamic)++;
    return any ? hlo_shape_intern(x->module, &changed) : dynamic_bound(x->module, shape);
}

static const hlo_shape *declared(expansion *x, const hlo_instruction *instr) {
    const hlo_shape *shape = dynamic_value_of(x, instr)->declared;
    return shape ? shape : instr->shape;
}

/* True if both shapes declare the same dimensions as dynamic. Otherwise, reports an error at
 * x->build->at. */
static bool agree(expansion *x, const hlo_shape *a, const hlo_shape *b) {
    const dims of_a = dims_of(x, a), of_b = dims_of(x, b);
    if (of_a.count == of_b.count && !memcmp(of_a.dynamic, of_b.dynamic, of_a.count)) return true;
    expand_refuse(x, "and the computation that it calls declare different dynamic dimensions");
    return false;
}

/* ---------------------------------------------------------------------------- values with sizes */

static const hlo_shape *packed_shape(const expansion *x, const hlo_shape *shape, uint32_t sizes) {
    const hlo_shape **parts = hlo_arena_array(x->module->arena, sizes + 1, sizeof *parts);
    parts[0] = dynamic_bound(x->module, shape);
    for (uint32_t i = 1; i <= sizes; i++)
        parts[i] = hlo_shape_array(x->module, HLO_TYPE_S32, 0, NULL);
    return sizes ? hlo_shape_tuple(x->module, sizes + 1, parts) : parts[0];
}

/* Builds the tuple of a value and its sizes if the value has dynamic dimensions. */
static hlo_instruction *pack(expansion *x, hlo_instruction *value) {
    const dims d = dims_of(x, declared(x, value));
    if (!d.dynamic_count) return value;
    hlo_instruction **parts = hlo_arena_array(x->module->arena, d.dynamic_count + 1, sizeof *parts);
    uint32_t count = 0;
    parts[count++] = value;
    for (uint32_t i = 0; i < d.count; i++)
        if (d.dynamic[i]) parts[count++] = dynamic_value_of(x, value)->sizes[i];
    const hlo_shape *shape = packed_shape(x, value->shape, d.dynamic_count);
    return hlo_build(x->build, HLO_OP_TUPLE, shape, count, parts);
}

/* Splits an instruction of a packed shape into the value, which all users then use, and the sizes.
 */
static void unpack(expansion *x, hlo_instruction *instr) {
    const hlo_shape *shape = declared(x, instr);
    const dims d = dims_of(x, shape);
    if (!d.dynamic_count) return;
    hlo_instruction *value = hlo_instr_new(instr->parent, instr->next, HLO_OP_GET_TUPLE_ELEMENT,
                                           dynamic_bound(x->module, shape), 0, NULL, NULL);
    hlo_instr_replace_uses(instr, value);
    hlo_instr_append_operand(value, instr);
    hlo_instr_set_int(value, HLO_ATTR_INDEX, 0);
    value->offset = instr->offset;
    instr->shape = packed_shape(x, shape, d.dynamic_count);
    dynamic_value known = {shape,
                           hlo_arena_zero(x->module->arena, d.count * sizeof(hlo_instruction *))};
    uint32_t index = 0;
    x->build->at = value;
    for (uint32_t i = 0; i < d.count; i++)
        if (d.dynamic[i]) known.sizes[i] = hlo_build_element(x->build, instr, ++index);
    *dynamic_value_of(x, value) = known;
}

/* Sets each size of a dynamic dimension that is NULL to the bound. `out` advances over all
 * dimensions. */
static void set_bounds(expansion *x, const hlo_shape *shape, hlo_instruction ***out) {
    if (shape->type == HLO_TYPE_TUPLE)
        for (uint32_t i = 0; i < shape->rank; i++) set_bounds(x, shape->elements[i], out);
    else if (hlo_shape_is_array(shape))
        for (uint32_t i = 0; i < shape->rank; i++, ++*out)
            if (dynamic_declares(shape, i) && !**out) **out = expand_number(x, shape->dims[i]);
}

/* Sets the sizes of an entry parameter, whose input has no run-time sizes, to its bounds. */
static void take_bound(expansion *x, hlo_instruction *parameter) {
    const hlo_shape *shape = parameter->shape;
    const dims d = dims_of(x, shape);
    if (!d.dynamic_count) return;
    parameter->shape = dynamic_bound(x->module, shape);
    dynamic_value known = {shape,
                           hlo_arena_zero(x->module->arena, d.count * sizeof(hlo_instruction *))};
    hlo_instruction **size = known.sizes;
    set_bounds(x, shape, &size);
    *dynamic_value_of(x, parameter) = known;
}

/* Sets the padding of an entry result to zeros. `sizes` advances over the dimensions of the
 * result. */
static hlo_instruction *settle(expansion *x, hlo_instruction *value, hlo_instruction ***sizes) {
    if (value->shape->type == HLO_TYPE_TUPLE) {
        hlo_instruction **parts =
            hlo_arena_array(x->module->arena, value->shape->rank + 1, sizeof *parts);
        for (uint32_t i = 0; i < value->shape->rank; i++)
            parts[i] = settle(x, hlo_build_element(x->build, value, i), sizes);
        return hlo_build(x->build, HLO_OP_TUPLE, value->shape, value->shape->rank, parts);
    }
    for (uint32_t d = 0; hlo_shape_is_array(value->shape) && d < value->shape->rank; d++) {
        hlo_instruction *size = *(*sizes)++;
        if (size) value = expand_mask(x, value, d, size, expand_zero(x, value->shape->type));
    }
    return value;
}

/* Returns the computation that receives operand `index`, and the number of the parameter that
 * receives it. Returns NULL if there is no such computation. */
static const hlo_computation *taker_of(const hlo_instruction *instr, uint32_t index,
                                       uint32_t *parameter) {
    const hlo_attr *branches = hlo_instr_attr(instr, HLO_ATTR_BRANCH_COMPUTATIONS);
    const hlo_computation *called = hlo_instr_called(instr);
    *parameter = called ? index : 0;
    switch (instr->op) {
    case HLO_OP_WHILE: return hlo_instr_comp(instr, HLO_ATTR_BODY);
    case HLO_OP_CONDITIONAL:
        if (!index) return NULL;
        if (branches) return branches->u.comps->v[index - 1];
        return hlo_instr_comp(instr,
                              index == 1 ? HLO_ATTR_TRUE_COMPUTATION : HLO_ATTR_FALSE_COMPUTATION);
    default: return called;
    }
}

static void expand_instr(expansion *x, hlo_instruction *instr) {
    x->build->at = instr;
    if (instr->op == HLO_OP_CALL || instr->op == HLO_OP_FUSION || instr->op == HLO_OP_WHILE ||
        instr->op == HLO_OP_CONDITIONAL) {
        /* Pass sizes to the called computations, and receive the sizes of the result. A dimension
         * that is static in the caller may still be dynamic in the called computation. */
        const hlo_computation *condition = hlo_instr_comp(instr, HLO_ATTR_CONDITION);
        if (condition && !agree(x, instr->shape, declared(x, condition->parameters[0]))) return;
        for (uint32_t i = 0; !i || i < instr->operand_count; i++) {
            uint32_t parameter;
            const hlo_computation *taker = taker_of(instr, i, &parameter);
            if (!taker) continue;
            if (!agree(x, instr->shape, x->results[taker->id])) return;
            if (!instr->operand_count) break;
            hlo_instruction *operand = hlo_instr_operand(instr, i);
            if (!agree(x, declared(x, operand), declared(x, taker->parameters[parameter]))) return;
            hlo_instr_set_operand(instr, i, pack(x, operand));
        }
        dynamic_value_of(x, instr)->declared = instr->shape;
        unpack(x, instr);
        return;
    }
    bool is_static = instr->op != HLO_OP_SET_DIMENSION_SIZE &&
                     instr->op != HLO_OP_DYNAMIC_RESHAPE &&
                     dynamic_bound(x->module, instr->shape) == instr->shape;
    for (uint32_t i = 0; is_static && i < instr->operand_count; i++)
        is_static = !dynamic_value_of(x, hlo_instr_operand(instr, i))->sizes;
    if (is_static) return;
    const hlo_shape *shape = instr->shape;
    const dims d = dims_of(x, shape);
    hlo_instruction **sizes = hlo_arena_zero(x->module->arena, (d.count + 1) * sizeof *sizes);
    dynamic_value_of(x, instr)->declared = shape;
    hlo_instruction *value = dynamic_rule(x, sizes);
    if (!value) return;
    /* Modules of TensorFlow omit dynamic dimensions in some shapes: the operands determine which
     * dimensions are dynamic. */
    bool *dynamic = d.dynamic;
    uint32_t dynamic_count = 0;
    hlo_instruction **size = sizes;
    set_bounds(x, shape, &size);
    for (uint32_t i = 0; i < d.count; i++) dynamic_count += d.dynamic[i] = sizes[i] != NULL;
    shape = declare(x, shape, &dynamic);
    value->shape = dynamic_bound(x->module, value->shape);
    *dynamic_value_of(x, value) = (dynamic_value){shape, dynamic_count ? sizes : NULL};
}

bool hlo_dynamic_any(const hlo_module *module) {
    return module->dynamic_seen || module->op_counts[HLO_OP_SET_DIMENSION_SIZE] ||
           module->op_counts[HLO_OP_DYNAMIC_RESHAPE];
}

hlo_status hlo_dynamic_expand(hlo_module *module, const hlo_diag_sink *sink) {
    expansion x = {.module = module, .sink = sink};
    if (!hlo_dynamic_any(module)) return HLO_OK;
    x.results = hlo_arena_zero(module->arena, module->next_computation_id * sizeof *x.results);
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        for (uint32_t i = 0; i < comp->parameter_count; i++) {
            hlo_instruction *parameter = comp->parameters[i];
            dynamic_value_of(&x, parameter)->declared = parameter->shape;
            x.build->at = parameter;
            if (comp == x.module->entry)
                take_bound(&x, parameter);
            else
                unpack(&x, parameter);
        }
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            if (instr->op != HLO_OP_PARAMETER) expand_instr(&x, instr);
            if (x.failed) return HLO_INVALID_INPUT;
        }
        x.results[comp->id] = declared(&x, comp->root);
        hlo_instruction *root = comp->root, **sizes = dynamic_value_of(&x, root)->sizes;
        if (!sizes) continue;
        /* Insert new instructions before this temporary one, at the end. */
        hlo_instruction *end = hlo_instr_new(comp, NULL, HLO_OP_TUPLE,
                                             hlo_shape_tuple(x.module, 0, NULL), 0, NULL, NULL);
        end->offset = root->offset;
        x.build->at = end;
        hlo_comp_set_root(comp,
                          comp == x.module->entry ? settle(&x, root, &sizes) : pack(&x, root));
        hlo_instr_remove(end);
    }
    return x.failed ? HLO_INVALID_INPUT : HLO_OK;
}
