/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenations, reversals and sorts of dynamic dimensions, in which padding would precede real
 * elements. */
#include "ir/expand/expansion.h"

/* Writes each operand after the real elements of the previous ones, over their padding. */
hlo_instr *dynamic_concatenate(expansion *x, hlo_instr **sizes) {
    hlo_instr *old = x->build->at;
    const int64_t dim = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS)->v[0];
    const hlo_shape *shape = dynamic_bound(x->module, old->shape);
    hlo_instr *at = expand_number(x, 0), *joined = NULL;
    bool along = false;
    for (uint32_t i = 0; i < old->operand_count; i++)
        for (uint32_t d = 0; d < shape->rank; d++) {
            hlo_instr *size = dynamic_size(x, hlo_instr_operand(old, i), d);
            along |= size && d == dim;
            if (d == dim || !size) continue;
            sizes[d] = !sizes[d] || sizes[d] == size
                           ? size
                           : hlo_build_binary(x->build, HLO_OP_MINIMUM, sizes[d], size);
        }
    if (!along) return old;
    hlo_instr *operands[2 + HLO_LARGEST_RANK];
    operands[0] = expand_splat(x, expand_zero(x, shape->type), shape);
    for (uint32_t i = 0; i < old->operand_count; i++) {
        hlo_instr *part = operands[1] = hlo_instr_operand(old, i);
        hlo_instr *size = dynamic_size(x, part, dim);
        /* The part starts at `at` along `dim`, otherwise at 0. */
        hlo_instr *zero = expand_number(x, 0);
        for (uint32_t d = 0; d < shape->rank; d++) operands[2 + d] = d == dim ? at : zero;
        at = hlo_build_binary(x->build, HLO_OP_ADD, at,
                              size ? size : expand_number(x, part->shape->dims[dim]));
        const bool last = i + 1 == old->operand_count;
        sizes[dim] = at;
        const uint32_t count = 2 + shape->rank;
        joined = last ? expand_replace(x, HLO_OP_DYNAMIC_UPDATE_SLICE, shape, count, operands)
                      : hlo_build(x->build, HLO_OP_DYNAMIC_UPDATE_SLICE, shape, count, operands);
        operands[0] = joined;
    }
    return joined;
}

/* Reverses the array with its padding, and then slices the real elements from after the padding. */
hlo_instr *dynamic_reverse(expansion *x, hlo_instr **sizes) {
    hlo_instr *old = x->build->at, *array = hlo_instr_operand(old, 0);
    const hlo_ints *dims = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS);
    const hlo_shape *shape = dynamic_bound(x->module, old->shape);
    for (uint32_t d = 0; d < shape->rank; d++) sizes[d] = dynamic_size(x, array, d);
    hlo_instr *starts[HLO_LARGEST_RANK], *value = NULL;
    int64_t padding[3 * HLO_LARGEST_RANK] = {0}, wide[HLO_LARGEST_RANK];
    hlo_instr *zero = expand_number(x, 0);
    bool any = false;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const bool moved = sizes[d] && hlo_ints_contain(dims, d);
        starts[d] = moved ? hlo_build_binary(x->build, HLO_OP_SUBTRACT,
                                             expand_number(x, shape->dims[d]), sizes[d])
                          : zero;
        padding[3 * d + 1] = moved ? shape->dims[d] : 0;
        wide[d] = shape->dims[d] + padding[3 * d + 1];
        any |= moved;
    }
    if (!any) return old;
    value = hlo_build(x->build, HLO_OP_REVERSE, shape, 1, &array);
    hlo_instr_set_ints(value, HLO_ATTR_DIMENSIONS, dims->count, dims->v);
    hlo_instr *padded[] = {value, expand_zero(x, shape->type)};
    value = hlo_build(x->build, HLO_OP_PAD,
                      hlo_shape_array(x->module, shape->type, shape->rank, wide), 2, padded);
    hlo_instr_set_ints(value, HLO_ATTR_PADDING, 3 * shape->rank, padding);
    hlo_instr *operands[1 + HLO_LARGEST_RANK] = {value};
    for (uint32_t d = 0; d < shape->rank; d++) operands[1 + d] = starts[d];
    value = expand_replace(x, HLO_OP_DYNAMIC_SLICE, shape, 1 + shape->rank, operands);
    hlo_instr_set_ints(value, HLO_ATTR_DYNAMIC_SLICE_SIZES, shape->rank, shape->dims);
    return value;
}

/* Builds a comparator of a sort's operands followed by a flag that marks padding. Padding is sorted
 * last; other elements are compared by `less`. */
static hlo_computation *padding_last(expansion *x, hlo_computation *less) {
    hlo_computation *caller = x->build->at->parent;
    hlo_computation *comp = hlo_computation_new(x->module, less->name);
    const uint32_t count = less->parameter_count;
    const hlo_shape *pred = hlo_shape_array(x->module, HLO_TYPE_PRED, 0, NULL);
    hlo_instr **p = hlo_arena_array(x->module->arena, count + 2, sizeof(hlo_instr *));
    for (uint32_t i = 0; i < count + 2; i++) {
        const hlo_shape *shape = i < count ? less->parameters[i]->shape : pred;
        p[i] = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, shape, 0, NULL, NULL);
        hlo_instr_set_parameter(p[i], i);
    }
    hlo_instr *call = hlo_instr_new(comp, NULL, HLO_OP_CALL, pred, count, p, NULL);
    hlo_instr_set_comp(call, HLO_ATTR_TO_APPLY, less);
    hlo_instr *differ = hlo_instr_new(comp, NULL, HLO_OP_XOR, pred, 2, p + count, NULL);
    hlo_instr *choice[] = {differ, p[count + 1], call};
    hlo_computation_set_root(comp, hlo_instr_new(comp, NULL, HLO_OP_SELECT, pred, 3, choice, NULL));
    hlo_computation_move(comp, caller);
    return comp;
}

/* Sorts with an additional operand, which is true in the padding. */
hlo_instr *dynamic_sort(expansion *x, hlo_instr **sizes) {
    hlo_instr *old = x->build->at, *size = NULL;
    const int64_t dim = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS)->v[0];
    const uint32_t rank = hlo_instr_operand(old, 0)->shape->rank;
    for (uint32_t i = 0; i < old->operand_count; i++, sizes += rank) {
        for (uint32_t d = 0; d < rank; d++)
            sizes[d] = dynamic_size(x, hlo_instr_operand(old, i), d);
        if (i && size != sizes[dim])
            return expand_refuse(x, "has operands with different dynamic sizes");
        size = sizes[dim];
    }
    if (!size) return old;
    const uint32_t count = old->operand_count;
    hlo_arena *arena = x->module->arena;
    hlo_instr **parts = hlo_arena_array(arena, count + 1, sizeof(hlo_instr *));
    const hlo_shape **shapes = hlo_arena_array(arena, count + 1, sizeof *shapes);
    hlo_instr *index = expand_index(x, hlo_instr_operand(old, 0)->shape, dim);
    for (uint32_t i = 0; i < count; i++) parts[i] = hlo_instr_operand(old, i);
    parts[count] = hlo_build_compare(x->build, index, "GE", expand_splat(x, size, index->shape));
    for (uint32_t i = 0; i <= count; i++) shapes[i] = parts[i]->shape;
    hlo_instr *sorted = hlo_build(x->build, HLO_OP_SORT,
                                  hlo_shape_tuple(x->module, count + 1, shapes), count + 1, parts);
    hlo_instr_set_ints(sorted, HLO_ATTR_DIMENSIONS, 1, &dim);
    hlo_instr_set_int(sorted, HLO_ATTR_IS_STABLE, hlo_instr_int(old, HLO_ATTR_IS_STABLE, 0));
    hlo_instr_set_comp(sorted, HLO_ATTR_TO_APPLY,
                       padding_last(x, hlo_instr_comp(old, HLO_ATTR_TO_APPLY)));
    for (uint32_t i = 0; i < count; i++) parts[i] = hlo_build_element(x->build, sorted, i);
    const bool one = old->shape->type != HLO_TYPE_TUPLE;
    return expand_replace(x, one ? HLO_OP_COPY : HLO_OP_TUPLE, dynamic_bound(x->module, old->shape),
                          count, parts);
}
