/* SPDX-License-Identifier: Apache-2.0 */
/* Expands dynamic shapes: computes the sizes of results by opcode, and passes sizes next to values,
 * including across calls. Rejects opcodes without a rule. */
#include <string.h>

#include "ir/expand/expansion.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"

/* ------------------------------------------------------------------------------------- reshapes */

/* A dynamic reshape. The dimensions of operand and result are divided into minimal groups with
 * equal products of their bounds. If only the outermost dimension of each group is dynamic, the
 * real elements keep their positions. Otherwise, each real element is gathered by its index among
 * the real elements. */
typedef struct reshape {
    hlo_instr *operand;
    const hlo_shape *from, *to; /* shapes of the operand and, as declared, of the result */
    hlo_instr **now;            /* sizes of the result's dimensions; NULL: the size is the bound */
    uint32_t dynamic_groups;
    bool fetches;
} reshape;

/* The dimensions of a group: [from, from_end) of the operand, [to, to_end) of the result. */
typedef struct group {
    uint32_t from, from_end, to, to_end;
} group;

/* Finds the group that begins with g->from and g->to. Returns false at the end. */
static bool find_group(const reshape *r, group *g) {
    int64_t from = 1, to = 1;
    g->from_end = g->from;
    g->to_end = g->to;
    if (g->from == r->from->rank && g->to == r->to->rank) return false;
    do {
        if (g->to_end == r->to->rank || (from <= to && g->from_end < r->from->rank))
            from *= r->from->dims[g->from_end++];
        else
            to *= r->to->dims[g->to_end++];
    } while (from != to);
    return true;
}

static hlo_instr *size_or_bound(expansion *x, hlo_instr *size, int64_t bound) {
    return size ? size : expand_number(x, bound);
}

/* Computes the size of the result dimension to which a reshape collapses the dimensions of a
 * group. */
static bool collapse(expansion *x, reshape *r, const group *g) {
    hlo_instr *size = NULL;
    uint32_t dim = g->to_end;
    for (uint32_t e = g->to; e < g->to_end; e++) {
        if (!dynamic_declares(r->to, e) && r->to->dims[e] == 1) continue;
        if (!dynamic_declares(r->to, e) || dim < g->to_end)
            return expand_refuse(x, "splits a dynamic dimension, which is not supported");
        dim = e;
    }
    if (dim == g->to_end)
        return expand_refuse(x, "removes a dynamic dimension, which is not supported");
    for (uint32_t d = g->from; d < g->from_end; d++) {
        hlo_instr *factor = dynamic_size(x, r->operand, d);
        if (!factor && r->from->dims[d] == 1) continue;
        factor = size_or_bound(x, factor, r->from->dims[d]);
        size = size ? hlo_build_binary(x->build, HLO_OP_MULTIPLY, size, factor) : factor;
    }
    r->now[dim] = size;
    return true;
}

static hlo_instr *fetch(expansion *x, const reshape *r, const hlo_shape *to) {
    static const int64_t first[] = {0}, one[] = {1};
    const int64_t count = hlo_shape_count(r->from);
    const hlo_shape *line = hlo_shape_array(x->module, r->from->type, 1, &count);
    /* Compute, for each element of the result, the position of its value in the operand, including
     * padding. */
    hlo_instr *number = NULL, *stride = NULL, *place = NULL;
    for (uint32_t e = to->rank; e-- > 0;) {
        hlo_instr *index = expand_index(x, to, e);
        hlo_instr *size = size_or_bound(x, r->now[e], to->dims[e]);
        if (stride)
            index = hlo_build_binary(x->build, HLO_OP_MULTIPLY, index, expand_splat(x, stride, to));
        number = number ? hlo_build_binary(x->build, HLO_OP_ADD, number, index) : index;
        stride = stride ? hlo_build_binary(x->build, HLO_OP_MULTIPLY, stride, size) : size;
    }
    int64_t step = 1;
    for (uint32_t d = r->from->rank; d-- > 0; step *= r->from->dims[d]) {
        hlo_instr *size =
            expand_splat(x, size_or_bound(x, dynamic_size(x, r->operand, d), r->from->dims[d]), to);
        hlo_instr *index = hlo_build_binary(x->build, HLO_OP_REMAINDER, number, size);
        hlo_instr *steps = expand_splat(x, expand_number(x, step), to);
        index = hlo_build_binary(x->build, HLO_OP_MULTIPLY, index, steps);
        place = place ? hlo_build_binary(x->build, HLO_OP_ADD, place, index) : index;
        number = hlo_build_binary(x->build, HLO_OP_DIVIDE, number, size);
    }
    hlo_instr *operands[] = {r->operand, place};
    operands[0] = hlo_build(x->build, HLO_OP_RESHAPE, line, 1, operands);
    hlo_instr *made = expand_replace(x, HLO_OP_GATHER, to, 2, operands);
    hlo_instr_set_ints(made, HLO_ATTR_OFFSET_DIMS, 0, NULL);
    hlo_instr_set_ints(made, HLO_ATTR_COLLAPSED_SLICE_DIMS, 1, first);
    hlo_instr_set_ints(made, HLO_ATTR_START_INDEX_MAP, 1, first);
    hlo_instr_set_int(made, HLO_ATTR_INDEX_VECTOR_DIM, to->rank);
    hlo_instr_set_ints(made, HLO_ATTR_SLICE_SIZES, 1, one);
    return made;
}

static hlo_instr *dynamic_reshape(expansion *x, hlo_instr **sizes) {
    hlo_instr *operand = hlo_instr_operand(x->build->at, 0);
    reshape r = {
        .operand = operand, .from = operand->shape, .to = x->build->at->shape, .now = sizes};
    const int64_t count = hlo_shape_count(r.from);
    if (count < 1 || count > INT32_MAX || count != hlo_shape_count(r.to) || !r.to->rank ||
        !r.from->rank)
        return expand_refuse(x, "with a dynamic shape supports only 1 to 2^31-1 elements");
    for (uint32_t e = 0; x->build->at->op == HLO_OP_DYNAMIC_RESHAPE && e < r.to->rank; e++)
        if (dynamic_declares(r.to, e)) sizes[e] = hlo_instr_operand(x->build->at, 1 + e);
    for (group g = {0}; find_group(&r, &g); g.from = g.from_end, g.to = g.to_end) {
        /* Analyze the dynamic dimensions of a group. */
        int64_t outside = 1;
        bool from = false, to = false;
        for (uint32_t d = g.from; d < g.from_end; outside *= r.from->dims[d++])
            if (dynamic_size(x, r.operand, d)) {
                from = true;
                r.fetches |= outside != 1;
            }
        if (from && x->build->at->op == HLO_OP_RESHAPE && !collapse(x, &r, &g)) return NULL;
        outside = 1;
        for (uint32_t e = g.to; e < g.to_end; outside *= r.to->dims[e++])
            if (r.now[e]) {
                to = true;
                r.fetches |= outside != 1;
            }
        r.dynamic_groups += from || to;
    }
    const hlo_shape *to = dynamic_bound(x->module, r.to);
    if (r.fetches || (x->build->at->op == HLO_OP_DYNAMIC_RESHAPE && r.dynamic_groups > 1))
        return fetch(x, &r, to);
    return expand_replace(x, HLO_OP_RESHAPE, to, 1, &operand);
}

/* ------------------------------------------------------------- concatenations, reversals, sorts */

/* Concatenations, reversals and sorts would move padding before real elements. */

/* Uses the smaller of two sizes, as XLA does. */
static void join(expansion *x, hlo_instr **size, hlo_instr *other) {
    if (!*size || *size == other)
        *size = other;
    else if (other)
        *size = hlo_build_binary(x->build, HLO_OP_MINIMUM, *size, other);
}

/* Writes each operand after the real elements of the previous ones, over their padding. */
static hlo_instr *dynamic_concatenate(expansion *x, hlo_instr **sizes) {
    hlo_instr *old = x->build->at;
    const int64_t dim = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS)->v[0];
    const hlo_shape *shape = dynamic_bound(x->module, old->shape);
    hlo_instr *at = expand_number(x, 0), *joined = NULL;
    bool along = false;
    for (uint32_t i = 0; i < old->operand_count; i++)
        for (uint32_t d = 0; d < shape->rank; d++) {
            hlo_instr *size = dynamic_size(x, hlo_instr_operand(old, i), d);
            if (d == dim)
                along |= size != NULL;
            else
                join(x, &sizes[d], size);
        }
    if (!along) return old;
    hlo_instr *operands[2 + HLO_LARGEST_RANK];
    operands[0] = expand_splat(x, expand_zero(x, shape->type), shape);
    for (uint32_t i = 0; i < old->operand_count; i++) {
        hlo_instr *part = operands[1] = hlo_instr_operand(old, i);
        hlo_instr *size = dynamic_size(x, part, dim);
        /* The operand starts at `at` along `dim`, and at 0 along the other dimensions. */
        hlo_instr *zero = expand_number(x, 0);
        for (uint32_t d = 0; d < shape->rank; d++) operands[2 + d] = d == dim ? at : zero;
        at = hlo_build_binary(x->build, HLO_OP_ADD, at,
                              size_or_bound(x, size, part->shape->dims[dim]));
        const bool last = i + 1 == old->operand_count;
        sizes[dim] = at;
        const uint32_t count = 2 + shape->rank;
        joined = last ? expand_replace(x, HLO_OP_DYNAMIC_UPDATE_SLICE, shape, count, operands)
                      : hlo_build(x->build, HLO_OP_DYNAMIC_UPDATE_SLICE, shape, count, operands);
        operands[0] = joined;
    }
    return joined;
}

/* Reverses the array with its padding, and then slices the real elements, which follow the padding.
 */
static hlo_instr *dynamic_reverse(expansion *x, hlo_instr **sizes) {
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
static hlo_instr *dynamic_sort(expansion *x, hlo_instr **sizes) {
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

/* ------------------------------------------------------------------------------ rules by opcode */

static hlo_instr *operand_of(const expansion *x, uint32_t index) {
    return hlo_instr_operand(x->build->at, index);
}

static hlo_instr *size_of(expansion *x, uint32_t operand, int64_t dim) {
    return dynamic_size(x, operand_of(x, operand), dim);
}

/* Sets the padding of a dimension of an operand of x->build->at to `fill`. */
static void mask(expansion *x, uint32_t operand, int64_t dim, hlo_instr *fill) {
    hlo_instr *array = operand_of(x, operand), *size = dynamic_size(x, array, dim);
    if (!size) return;
    hlo_instr *masked = expand_mask(x, array, dim, size, fill);
    *dynamic_value_of(x, masked) = *dynamic_value_of(x, array);
    hlo_instr_set_operand(x->build->at, operand, masked);
}

/* Sets the size of each dimension to the smallest size that an operand has for it. Operands are
 * scalars or have the same shape. */
static hlo_instr *elementwise(expansion *x, hlo_instr **sizes) {
    const uint32_t rank = dynamic_dims(x->build->at->shape);
    for (uint32_t i = 0; i < x->build->at->operand_count; i++)
        for (uint32_t d = 0; d < rank && operand_of(x, i)->shape->rank == rank; d++)
            join(x, &sizes[d], size_of(x, i, d));
    return x->build->at;
}

/* Propagates the sizes of an operand, which may be a tuple. */
static hlo_instr *forwarded(expansion *x, hlo_instr **sizes) {
    hlo_instr **known = dynamic_value_of(x, operand_of(x, 0))->sizes;
    for (uint32_t i = 0; known && i < dynamic_dims(x->build->at->shape); i++) sizes[i] = known[i];
    return x->build->at;
}

static hlo_instr *at_least_0(expansion *x, hlo_instr *size) {
    return hlo_build_binary(x->build, HLO_OP_MAXIMUM, size, expand_number(x, 0));
}

static hlo_instr *plus(expansion *x, hlo_instr *size, int64_t more) {
    return more ? hlo_build_binary(x->build, HLO_OP_ADD, size, expand_number(x, more)) : size;
}

/* Computes the sizes of a slice: the number of real elements in the part. As in XLA, a dimension of
 * one element is not dynamic. Dimensions whose start is only known at run time must be declared
 * static. */
static hlo_instr *part(expansion *x, hlo_instr **sizes) {
    const hlo_shape *from = operand_of(x, 0)->shape, *shape = x->build->at->shape;
    hlo_index_map map;
    hlo_index i;
    for (uint32_t o = 1; o < x->build->at->operand_count; o++)
        if (dynamic_value_of(x, operand_of(x, o))->sizes)
            return expand_refuse(x, "has an index with a dynamic shape, which is not supported");
    hlo_index_map_first(x->build->at, &map);
    for (uint32_t d = 0; d < from->rank; d++) {
        hlo_instr *size = size_of(x, 0, d);
        hlo_index_along(&map, d, &i);
        const int64_t count = shape->dims[i.of], end = i.start + (count - 1) * i.stride + 1;
        const bool one = count == 1 && !dynamic_declares(shape, i.of);
        if (!size || i.at || (one && hlo_op_is(x->build->at->op, HLO_TAKES_PART))) continue;
        if (i.start || i.stride != 1 || count != from->dims[d]) {
            size = hlo_build_binary(x->build, HLO_OP_MINIMUM, size, expand_number(x, end));
            size = at_least_0(x, plus(x, size, i.stride - 1 - i.start));
        }
        sizes[i.of] = i.stride == 1 ? size
                                    : hlo_build_binary(x->build, HLO_OP_DIVIDE, size,
                                                       expand_number(x, i.stride));
    }
    return x->build->at;
}

static hlo_instr *pad(expansion *x, hlo_instr **sizes) {
    const int64_t *v = hlo_instr_ints(x->build->at, HLO_ATTR_PADDING)->v;
    for (uint32_t d = 0; d < x->build->at->shape->rank; d++, v += 3) {
        hlo_instr *size = size_of(x, 0, d);
        if (!size) continue;
        mask(x, 0, d, operand_of(x, 1));
        hlo_instr *larger = size;
        if (v[2])
            larger = hlo_build_binary(x->build, HLO_OP_ADD, size,
                                      hlo_build_binary(x->build, HLO_OP_MULTIPLY,
                                                       at_least_0(x, plus(x, size, -1)),
                                                       expand_number(x, v[2])));
        sizes[d] = at_least_0(x, plus(x, larger, v[0] + v[1]));
    }
    return x->build->at;
}

/* Replaces the padding of a reduced dimension by the initial value, as XLA does. HLO allows a
 * reduction to use the initial value any number of times. */
static hlo_instr *reduce(expansion *x, hlo_instr **sizes) {
    const uint32_t count = x->build->at->operand_count / 2, rank = operand_of(x, 0)->shape->rank;
    const hlo_ints *along = hlo_instr_ints(x->build->at, HLO_ATTR_DIMENSIONS);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = 0; d < rank; d++)
            if (!hlo_ints_contain(along, d))
                *sizes++ = size_of(x, i, d);
            else
                mask(x, i, d, operand_of(x, count + i));
    return x->build->at;
}

static hlo_instr *dot(expansion *x, hlo_instr **sizes) {
    const hlo_ints *batch[] = {hlo_instr_ints(x->build->at, HLO_ATTR_LHS_BATCH_DIMS),
                               hlo_instr_ints(x->build->at, HLO_ATTR_RHS_BATCH_DIMS)};
    const hlo_ints *along[] = {hlo_instr_ints(x->build->at, HLO_ATTR_LHS_CONTRACTING_DIMS),
                               hlo_instr_ints(x->build->at, HLO_ATTR_RHS_CONTRACTING_DIMS)};
    if (x->build->at->operand_count != 2)
        return expand_refuse(x, "is sparse and has a dynamic shape, which is not supported");
    for (uint32_t i = 0; batch[0] && i < batch[0]->count; i++) {
        *sizes = size_of(x, 0, batch[0]->v[i]);
        join(x, sizes++, size_of(x, 1, batch[1]->v[i]));
    }
    for (uint32_t o = 0; o < 2; o++) /* the free dimensions */
        for (uint32_t d = 0; d < operand_of(x, o)->shape->rank; d++)
            if (!(batch[o] && hlo_ints_contain(batch[o], d)) &&
                !(along[o] && hlo_ints_contain(along[o], d)))
                *sizes++ = size_of(x, o, d);
    for (uint32_t o = 0; o < 2; o++)
        for (uint32_t i = 0; along[o] && i < along[o]->count; i++)
            mask(x, o, along[o]->v[i], expand_zero(x, operand_of(x, o)->shape->type));
    return x->build->at;
}

/* Computes the sizes of the value of x->build->at, in the order of its shape, and rewrites that
 * instruction or its operands if padding would affect the result. Returns the instruction that now
 * has the value: x->build->at, or its replacement. Returns NULL after an error. */
static hlo_instr *dynamic_rule(expansion *x, hlo_instr **sizes) {
    hlo_instr *instr = x->build->at;
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) return elementwise(x, sizes);
    if (hlo_instr_is_mark(instr)) return forwarded(x, sizes);
    switch (instr->op) {
    case HLO_OP_MAP: return elementwise(x, sizes);
    case HLO_OP_COPY:
    case HLO_OP_OPT_BARRIER:
    case HLO_OP_DOMAIN:
    case HLO_OP_ADD_DEPENDENCY: return forwarded(x, sizes);
    case HLO_OP_AFTER_ALL: return instr;
    case HLO_OP_TUPLE:
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            const uint32_t count = dynamic_dims(operand_of(x, i)->shape);
            hlo_instr **known = dynamic_value_of(x, operand_of(x, i))->sizes;
            for (uint32_t k = 0; known && k < count; k++) sizes[k] = known[k];
            sizes += count;
        }
        return instr;
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instr *whole = operand_of(x, 0);
        hlo_instr **known = dynamic_value_of(x, whole)->sizes;
        const int64_t index = hlo_instr_int(instr, HLO_ATTR_INDEX, 0);
        if (!known) return instr;
        for (int64_t i = 0; i < index; i++) known += dynamic_dims(whole->shape->elements[i]);
        for (uint32_t i = 0; i < dynamic_dims(instr->shape); i++) sizes[i] = known[i];
        return instr;
    }
    case HLO_OP_GET_DIMENSION_SIZE: {
        hlo_instr *size = size_of(x, 0, hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0]);
        return size ? expand_replace(x, HLO_OP_COPY, instr->shape, 1, &size) : instr;
    }
    case HLO_OP_SET_DIMENSION_SIZE: {
        hlo_instr *array = operand_of(x, 0), *size = operand_of(x, 1);
        const int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
        double number;
        for (uint32_t d = 0; d < array->shape->rank; d++) sizes[d] = dynamic_size(x, array, d);
        sizes[dim] = dynamic_declares(instr->shape, dim) ? size : NULL;
        if (!sizes[dim] &&
            (!hlo_known_number(size, &number) || number != (double)array->shape->dims[dim]))
            return expand_refuse(
                x, "declares dimension %lld static, but sets a size other than its bound",
                (long long)dim);
        return expand_replace(x, HLO_OP_COPY, instr->shape, 1, &array);
    }
    case HLO_OP_TRANSPOSE:
    case HLO_OP_BROADCAST:
    case HLO_OP_SLICE:
    case HLO_OP_DYNAMIC_SLICE: return part(x, sizes);
    case HLO_OP_DYNAMIC_UPDATE_SLICE:
        for (uint32_t i = 1; i < instr->operand_count; i++)
            if (dynamic_value_of(x, operand_of(x, i))->sizes)
                return expand_refuse(
                    x, "has an update or an index with a dynamic shape, which is not supported");
        return forwarded(x, sizes);
    case HLO_OP_PAD: return pad(x, sizes);
    case HLO_OP_REDUCE: return reduce(x, sizes);
    case HLO_OP_DOT: return dot(x, sizes);
    case HLO_OP_CONCATENATE: return dynamic_concatenate(x, sizes);
    case HLO_OP_REVERSE: return dynamic_reverse(x, sizes);
    case HLO_OP_SORT: return dynamic_sort(x, sizes);
    case HLO_OP_RESHAPE:
    case HLO_OP_DYNAMIC_RESHAPE: return dynamic_reshape(x, sizes);
    default: return expand_refuse(x, "does not support dynamic shapes");
    }
}

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

static const hlo_shape *declared(expansion *x, const hlo_instr *instr) {
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
static hlo_instr *pack(expansion *x, hlo_instr *value) {
    const dims d = dims_of(x, declared(x, value));
    if (!d.dynamic_count) return value;
    hlo_instr **parts = hlo_arena_array(x->module->arena, d.dynamic_count + 1, sizeof *parts);
    uint32_t count = 0;
    parts[count++] = value;
    for (uint32_t i = 0; i < d.count; i++)
        if (d.dynamic[i]) parts[count++] = dynamic_value_of(x, value)->sizes[i];
    const hlo_shape *shape = packed_shape(x, value->shape, d.dynamic_count);
    return hlo_build(x->build, HLO_OP_TUPLE, shape, count, parts);
}

/* Splits an instruction of a packed shape into the value, which all users then use, and the sizes.
 */
static void unpack(expansion *x, hlo_instr *instr) {
    const hlo_shape *shape = declared(x, instr);
    const dims d = dims_of(x, shape);
    if (!d.dynamic_count) return;
    hlo_instr *value = hlo_instr_new(instr->parent, instr->next, HLO_OP_GET_TUPLE_ELEMENT,
                                     dynamic_bound(x->module, shape), 0, NULL, NULL);
    hlo_instr_replace_uses(instr, value);
    hlo_instr_append_operand(value, instr);
    hlo_instr_set_int(value, HLO_ATTR_INDEX, 0);
    value->offset = instr->offset;
    instr->shape = packed_shape(x, shape, d.dynamic_count);
    dynamic_value known = {shape, hlo_arena_zero(x->module->arena, d.count * sizeof(hlo_instr *))};
    uint32_t index = 0;
    x->build->at = value;
    for (uint32_t i = 0; i < d.count; i++)
        if (d.dynamic[i]) known.sizes[i] = hlo_build_element(x->build, instr, ++index);
    *dynamic_value_of(x, value) = known;
}

/* Sets the padding of an entry result to zeros. `sizes` advances over the dimensions of the
 * result. */
static hlo_instr *settle(expansion *x, hlo_instr *value, hlo_instr ***sizes) {
    if (value->shape->type == HLO_TYPE_TUPLE) {
        hlo_instr **parts =
            hlo_arena_array(x->module->arena, value->shape->rank + 1, sizeof *parts);
        for (uint32_t i = 0; i < value->shape->rank; i++)
            parts[i] = settle(x, hlo_build_element(x->build, value, i), sizes);
        return hlo_build(x->build, HLO_OP_TUPLE, value->shape, value->shape->rank, parts);
    }
    for (uint32_t d = 0; hlo_shape_is_array(value->shape) && d < value->shape->rank; d++) {
        hlo_instr *size = *(*sizes)++;
        if (size) value = expand_mask(x, value, d, size, expand_zero(x, value->shape->type));
    }
    return value;
}

/* Returns the computation that receives operand `index`, and the number of the parameter that
 * receives it. Returns NULL if there is no such computation. */
static const hlo_computation *taker_of(const hlo_instr *instr, uint32_t index,
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

static void expand_instr(expansion *x, hlo_instr *instr) {
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
            hlo_instr *operand = hlo_instr_operand(instr, i);
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
    hlo_instr **sizes = hlo_arena_zero(x->module->arena, (d.count + 1) * sizeof *sizes);
    dynamic_value_of(x, instr)->declared = shape;
    hlo_instr *value = dynamic_rule(x, sizes);
    if (!value) return;
    for (uint32_t i = 0; i < d.count; i++) {
        if (!sizes[i] != d.dynamic[i]) continue;
        expand_refuse(x,
                      d.dynamic[i] ? "declares dimension %u dynamic, but no operand has its size"
                                   : "declares dimension %u static, but its size is dynamic",
                      i);
        return;
    }
    value->shape = dynamic_bound(x->module, value->shape);
    *dynamic_value_of(x, value) = (dynamic_value){shape, d.dynamic_count ? sizes : NULL};
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
            hlo_instr *parameter = comp->parameters[i];
            dynamic_value_of(&x, parameter)->declared = parameter->shape;
            x.build->at = parameter;
            if (comp != x.module->entry)
                unpack(&x, parameter);
            else if (dims_of(&x, parameter->shape).dynamic_count)
                expand_refuse(&x, "of the entry computation has a dynamic shape, but inputs have "
                                  "no run-time sizes");
        }
        for (hlo_instr *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            if (instr->op != HLO_OP_PARAMETER) expand_instr(&x, instr);
            if (x.failed) return HLO_INVALID_INPUT;
        }
        x.results[comp->id] = declared(&x, comp->root);
        hlo_instr *root = comp->root, **sizes = dynamic_value_of(&x, root)->sizes;
        if (!sizes) continue;
        /* Insert new instructions before this temporary one, at the end. */
        hlo_instr *end = hlo_instr_new(comp, NULL, HLO_OP_TUPLE, hlo_shape_tuple(x.module, 0, NULL),
                                       0, NULL, NULL);
        end->offset = root->offset;
        x.build->at = end;
        hlo_computation_set_root(comp, comp == x.module->entry ? settle(&x, root, &sizes)
                                                               : pack(&x, root));
        hlo_instr_remove(end);
    }
    return x.failed ? HLO_INVALID_INPUT : HLO_OK;
}
