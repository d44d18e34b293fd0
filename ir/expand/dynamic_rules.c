/* SPDX-License-Identifier: Apache-2.0 */
/* Expands dynamic shapes of an instruction, by opcode: computes the sizes of the result, and
 * replaces padding that would affect it. Rejects opcodes without a rule. */
#include <math.h>
#include <string.h>

#include "ir/expand/expansion.h"
#include "ir/kernel/kernel.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"

/* ------------------------------------------------------------------------------------- reshapes */

/* A dynamic reshape. The dimensions of operand and result are divided into minimal groups with
 * equal products of their bounds. If only the outermost dimension of each group is dynamic, the
 * real elements keep their positions. Otherwise, each real element is gathered by its index among
 * the real elements. */
typedef struct reshape {
    hlo_instruction *operand;
    const hlo_shape *from, *to; /* shapes of the operand and, as declared, of the result */
    hlo_instruction **now;      /* sizes of the result's dimensions; NULL: the size is the bound */
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

static hlo_instruction *size_or_bound(expansion *x, hlo_instruction *size, int64_t bound) {
    return size ? size : expand_number(x, bound);
}

/* Returns the dimension of the result in a group to which XLA gives a dynamic size: the one that is
 * declared dynamic or, if none is, the only one of more than one element. Returns -1 if there are
 * several or none. */
static int64_t dynamic_dim(const reshape *r, const group *g) {
    int64_t found[2] = {-1, -1};
    uint32_t count[2] = {0, 0};
    for (uint32_t e = g->to; e < g->to_end; e++)
        for (uint32_t i = 0; i < 2; i++) {
            if (i ? r->to->dims[e] == 1 && g->to_end - g->to > 1 : !dynamic_declares(r->to, e))
                continue;
            found[i] = e;
            count[i]++;
        }
    const uint32_t i = count[0] == 0;
    return count[i] == 1 ? found[i] : -1;
}

/* Computes the size of the result's dynamic dimension in a group, from the number of real elements
 * in the operand's dimensions. */
static bool divide(expansion *x, reshape *r, const group *g) {
    const int64_t dim = dynamic_dim(r, g);
    hlo_instruction *size = NULL;
    int64_t others = 1;
    if (g->to == g->to_end) return true; /* removes a dimension of at most one element */
    if (dim < 0)
        return expand_refuse(x, "splits a dynamic dimension into several, which is not supported");
    for (uint32_t e = g->to; e < g->to_end; e++)
        if (e != dim) others *= r->to->dims[e];
    for (uint32_t d = g->from; d < g->from_end; d++) {
        hlo_instruction *factor = dynamic_size(x, r->operand, d);
        if (!factor && r->from->dims[d] == 1) continue;
        factor = size_or_bound(x, factor, r->from->dims[d]);
        size = size ? hlo_build_binary(x->build, HLO_OP_MULTIPLY, size, factor) : factor;
    }
    if (others > 1)
        size = hlo_build_binary(x->build, HLO_OP_DIVIDE, size, expand_number(x, others));
    r->now[dim] = size;
    return true;
}

static hlo_instruction *fetch(expansion *x, const reshape *r, const hlo_shape *to) {
    static const int64_t first[] = {0}, one[] = {1};
    const int64_t count = hlo_shape_count(r->from);
    const hlo_shape *line = hlo_shape_array(x->module, r->from->type, 1, &count);
    /* Compute, for each element of the result, the position of its value in the operand, including
     * padding. */
    hlo_instruction *number = NULL, *stride = NULL, *place = NULL;
    for (uint32_t e = to->rank; e-- > 0;) {
        hlo_instruction *index = expand_index(x, to, e);
        hlo_instruction *size = size_or_bound(x, r->now[e], to->dims[e]);
        if (stride)
            index = hlo_build_binary(x->build, HLO_OP_MULTIPLY, index, expand_splat(x, stride, to));
        number = number ? hlo_build_binary(x->build, HLO_OP_ADD, number, index) : index;
        stride = stride ? hlo_build_binary(x->build, HLO_OP_MULTIPLY, stride, size) : size;
    }
    int64_t step = 1;
    for (uint32_t d = r->from->rank; d-- > 0; step *= r->from->dims[d]) {
        hlo_instruction *size =
            expand_splat(x, size_or_bound(x, dynamic_size(x, r->operand, d), r->from->dims[d]), to);
        hlo_instruction *index = hlo_build_binary(x->build, HLO_OP_REMAINDER, number, size);
        hlo_instruction *steps = expand_splat(x, expand_number(x, step), to);
        index = hlo_build_binary(x->build, HLO_OP_MULTIPLY, index, steps);
        place = place ? hlo_build_binary(x->build, HLO_OP_ADD, place, index) : index;
        number = hlo_build_binary(x->build, HLO_OP_DIVIDE, number, size);
    }
    hlo_instruction *operands[] = {r->operand, place};
    operands[0] = hlo_build(x->build, HLO_OP_RESHAPE, line, 1, operands);
    hlo_instruction *made = expand_replace(x, HLO_OP_GATHER, to, 2, operands);
    hlo_instr_set_ints(made, HLO_ATTR_OFFSET_DIMS, 0, NULL);
    hlo_instr_set_ints(made, HLO_ATTR_COLLAPSED_SLICE_DIMS, 1, first);
    hlo_instr_set_ints(made, HLO_ATTR_START_INDEX_MAP, 1, first);
    hlo_instr_set_int(made, HLO_ATTR_INDEX_VECTOR_DIM, to->rank);
    hlo_instr_set_ints(made, HLO_ATTR_SLICE_SIZES, 1, one);
    return made;
}

static hlo_instruction *dynamic_reshape(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *operand = hlo_instr_operand(x->build->at, 0);
    reshape r = {
        .operand = operand, .from = operand->shape, .to = x->build->at->shape, .now = sizes};
    const int64_t count = hlo_shape_count(r.from);
    if (count < 1 || count > INT32_MAX || count != hlo_shape_count(r.to))
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
        if (from && x->build->at->op == HLO_OP_RESHAPE && !divide(x, &r, &g)) return NULL;
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
static void join(expansion *x, hlo_instruction **size, hlo_instruction *other) {
    if (!*size || *size == other)
        *size = other;
    else if (other)
        *size = hlo_build_binary(x->build, HLO_OP_MINIMUM, *size, other);
}

/* Writes each operand after the real elements of the previous ones, over their padding. */
static hlo_instruction *dynamic_concatenate(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *old = x->build->at;
    const int64_t dim = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS)->v[0];
    const hlo_shape *shape = dynamic_bound(x->module, old->shape);
    hlo_instruction *at = expand_number(x, 0), *joined = NULL;
    bool along = false;
    for (uint32_t i = 0; i < old->operand_count; i++)
        for (uint32_t d = 0; d < shape->rank; d++) {
            hlo_instruction *size = dynamic_size(x, hlo_instr_operand(old, i), d);
            if (d == dim)
                along |= size != NULL;
            else
                join(x, &sizes[d], size);
        }
    if (!along) return old;
    hlo_instruction *operands[2 + HLO_LARGEST_RANK];
    operands[0] = expand_splat(x, expand_zero(x, shape->type), shape);
    for (uint32_t i = 0; i < old->operand_count; i++) {
        hlo_instruction *part = operands[1] = hlo_instr_operand(old, i);
        hlo_instruction *size = dynamic_size(x, part, dim);
        /* The operand starts at `at` along `dim`, and at 0 along the other dimensions. */
        hlo_instruction *zero = expand_number(x, 0);
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
static hlo_instruction *dynamic_reverse(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *old = x->build->at, *array = hlo_instr_operand(old, 0);
    const hlo_ints *dims = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS);
    const hlo_shape *shape = dynamic_bound(x->module, old->shape);
    for (uint32_t d = 0; d < shape->rank; d++) sizes[d] = dynamic_size(x, array, d);
    hlo_instruction *starts[HLO_LARGEST_RANK], *value = NULL;
    int64_t padding[3 * HLO_LARGEST_RANK] = {0}, wide[HLO_LARGEST_RANK];
    hlo_instruction *zero = expand_number(x, 0);
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
    hlo_instruction *padded[] = {value, expand_zero(x, shape->type)};
    value = hlo_build(x->build, HLO_OP_PAD,
                      hlo_shape_array(x->module, shape->type, shape->rank, wide), 2, padded);
    hlo_instr_set_ints(value, HLO_ATTR_PADDING, 3 * shape->rank, padding);
    hlo_instruction *operands[1 + HLO_LARGEST_RANK] = {value};
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
    hlo_instruction **p = hlo_arena_array(x->module->arena, count + 2, sizeof(hlo_instruction *));
    for (uint32_t i = 0; i < count + 2; i++) {
        const hlo_shape *shape = i < count ? less->parameters[i]->shape : pred;
        p[i] = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, shape, 0, NULL, NULL);
        hlo_instr_set_parameter(p[i], i);
    }
    hlo_instruction *call = hlo_instr_new(comp, NULL, HLO_OP_CALL, pred, count, p, NULL);
    hlo_instr_set_comp(call, HLO_ATTR_TO_APPLY, less);
    hlo_instruction *differ = hlo_instr_new(comp, NULL, HLO_OP_XOR, pred, 2, p + count, NULL);
    hlo_instruction *choice[] = {differ, p[count + 1], call};
    hlo_computation_set_root(comp, hlo_instr_new(comp, NULL, HLO_OP_SELECT, pred, 3, choice, NULL));
    hlo_computation_move(comp, caller);
    return comp;
}

/* Sorts with an additional operand, which is true in the padding. As in XLA, the size of the first
 * dynamic operand holds for all operands. */
static hlo_instruction *dynamic_sort(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *old = x->build->at, *size = NULL;
    const int64_t dim = hlo_instr_ints(old, HLO_ATTR_DIMENSIONS)->v[0];
    const uint32_t rank = hlo_instr_operand(old, 0)->shape->rank;
    for (uint32_t i = 0; i < old->operand_count; i++, sizes += rank) {
        for (uint32_t d = 0; d < rank; d++)
            sizes[d] = dynamic_size(x, hlo_instr_operand(old, i), d);
        if (!size) size = sizes[dim];
    }
    if (!size) return old;
    const uint32_t count = old->operand_count;
    hlo_arena *arena = x->module->arena;
    hlo_instruction **parts = hlo_arena_array(arena, count + 1, sizeof(hlo_instruction *));
    const hlo_shape **shapes = hlo_arena_array(arena, count + 1, sizeof *shapes);
    hlo_instruction *index = expand_index(x, hlo_instr_operand(old, 0)->shape, dim);
    for (uint32_t i = 0; i < count; i++) parts[i] = hlo_instr_operand(old, i);
    parts[count] = hlo_build_compare(x->build, index, "GE", expand_splat(x, size, index->shape));
    for (uint32_t i = 0; i <= count; i++) shapes[i] = parts[i]->shape;
    hlo_instruction *sorted = hlo_build(
        x->build, HLO_OP_SORT, hlo_shape_tuple(x->module, count + 1, shapes), count + 1, parts);
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

static hlo_instruction *operand_of(const expansion *x, uint32_t index) {
    return hlo_instr_operand(x->build->at, index);
}

static hlo_instruction *size_of(expansion *x, uint32_t operand, int64_t dim) {
    return dynamic_size(x, operand_of(x, operand), dim);
}

/* Sets the padding of a dimension of an operand of x->build->at to `fill`. */
static void mask(expansion *x, uint32_t operand, int64_t dim, hlo_instruction *fill) {
    hlo_instruction *array = operand_of(x, operand), *size = dynamic_size(x, array, dim);
    if (!size) return;
    hlo_instruction *masked = expand_mask(x, array, dim, size, fill);
    *dynamic_value_of(x, masked) = *dynamic_value_of(x, array);
    hlo_instr_set_operand(x->build->at, operand, masked);
}

/* Replaces an operand whose size along `dim` is 1 by its first element along `dim`, repeated, if
 * `size`, the size of the result, is larger. */
static void repeat_first(expansion *x, uint32_t operand, uint32_t dim, hlo_instruction *size) {
    hlo_instruction *array = operand_of(x, operand), *own = dynamic_size(x, array, dim);
    const hlo_shape *shape = dynamic_bound(x->module, array->shape);
    int64_t dims[HLO_LARGEST_RANK], from[HLO_LARGEST_RANK];
    uint32_t rest = 0;
    for (uint32_t d = 0; d < shape->rank; d++) dims[d] = d == dim ? 1 : shape->dims[d];
    hlo_instruction *first = hlo_build_prefix(
        x->build, array, hlo_shape_array(x->module, shape->type, shape->rank, dims));
    for (uint32_t d = 0; d < shape->rank; d++)
        if (d != dim) dims[rest] = shape->dims[d], from[rest++] = d;
    first = hlo_build_reshape(x->build, first, rest, dims);
    hlo_instruction *narrow = hlo_build_compare(x->build, own, "EQ", expand_number(x, 1));
    narrow = hlo_build_binary(x->build, HLO_OP_AND, narrow,
                              hlo_build_compare(x->build, own, "LT", size));
    hlo_instruction *chosen =
        hlo_build_select(x->build, expand_splat(x, narrow, shape),
                         hlo_build_broadcast_like(x->build, first, shape, rest, from), array);
    *dynamic_value_of(x, chosen) = *dynamic_value_of(x, array);
    hlo_instr_set_operand(x->build->at, operand, chosen);
}

/* Sets the size of each dimension to the smallest size that an operand has for it. Operands are
 * scalars or have the same shape. As in XLA, an operand of run-time size 1 is repeated to the size
 * of the other operands. */
static hlo_instruction *elementwise(expansion *x, hlo_instruction **sizes) {
    const uint32_t rank = dynamic_dims(x->build->at->shape), count = x->build->at->operand_count;
    for (uint32_t d = 0; d < rank; d++) {
        bool differ = false;
        for (uint32_t i = 0; i < count; i++) {
            hlo_instruction *old = sizes[d], *size = NULL;
            if (operand_of(x, i)->shape->rank == rank) size = size_of(x, i, d);
            join(x, &sizes[d], size);
            if (!old || !size || old == size) continue;
            hlo_instruction *one = hlo_build_compare(x->build, sizes[d], "EQ", expand_number(x, 1));
            hlo_instruction *larger = hlo_build_binary(x->build, HLO_OP_MAXIMUM, old, size);
            sizes[d] = hlo_build_select(x->build, one, larger, sizes[d]);
            differ = true;
        }
        for (uint32_t i = 0; i < count && differ; i++)
            if (operand_of(x, i)->shape->rank == rank && size_of(x, i, d))
                repeat_first(x, i, d, sizes[d]);
    }
    return x->build->at;
}

/* Propagates the sizes of an operand, which may be a tuple. */
static hlo_instruction *forwarded(expansion *x, hlo_instruction **sizes) {
    hlo_instruction **known = dynamic_value_of(x, operand_of(x, 0))->sizes;
    for (uint32_t i = 0; known && i < dynamic_dims(x->build->at->shape); i++) sizes[i] = known[i];
    return x->build->at;
}

static hlo_instruction *at_least_0(expansion *x, hlo_instruction *size) {
    return hlo_build_binary(x->build, HLO_OP_MAXIMUM, size, expand_number(x, 0));
}

static hlo_instruction *plus(expansion *x, hlo_instruction *size, int64_t more) {
    return more ? hlo_build_binary(x->build, HLO_OP_ADD, size, expand_number(x, more)) : size;
}

/* Computes the sizes of a slice: the number of real elements in the part. As in XLA, a dimension of
 * one element is not dynamic. Dimensions whose start is only known at run time must be declared
 * static. */
static hlo_instruction *part(expansion *x, hlo_instruction **sizes) {
    const hlo_shape *from = operand_of(x, 0)->shape, *shape = x->build->at->shape;
    hlo_index_map map;
    hlo_index i;
    for (uint32_t o = 1; o < x->build->at->operand_count; o++)
        if (dynamic_value_of(x, operand_of(x, o))->sizes)
            return expand_refuse(x, "has an index with a dynamic shape, which is not supported");
    hlo_index_map_first(x->build->at, &map);
    for (uint32_t d = 0; d < from->rank; d++) {
        hlo_instruction *size = size_of(x, 0, d);
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

static hlo_instruction *pad(expansion *x, hlo_instruction **sizes) {
    const int64_t *v = hlo_instr_ints(x->build->at, HLO_ATTR_PADDING)->v;
    for (uint32_t d = 0; d < x->build->at->shape->rank; d++, v += 3) {
        hlo_instruction *size = size_of(x, 0, d);
        if (!size) continue;
        mask(x, 0, d, operand_of(x, 1));
        hlo_instruction *larger = size;
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
static hlo_instruction *reduce(expansion *x, hlo_instruction **sizes) {
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

static hlo_instruction *dot(expansion *x, hlo_instruction **sizes) {
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

/* -------------------------------------------------------------------------- indices and windows */

/* Returns the dimensions of 0 to `rank` - 1 that are in neither list. */
static const hlo_ints *others(expansion *x, uint32_t rank, const hlo_ints *a, const hlo_ints *b) {
    hlo_ints *rest = hlo_ints_new(x->module, rank, NULL);
    rest->count = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (!hlo_ints_contain(a, d) && !hlo_ints_contain(b, d)) rest->v[rest->count++] = d;
    return rest;
}

/* Returns the dimensions of the indices of a gather or scatter, without the dimension of the index
 * vectors. Returns NULL, with an error, if that dimension is dynamic. */
static const hlo_ints *index_dims(expansion *x, uint32_t operand) {
    const uint32_t rank = operand_of(x, operand)->shape->rank;
    const int64_t vector = hlo_instr_int(x->build->at, HLO_ATTR_INDEX_VECTOR_DIM, 0);
    const hlo_ints *one = hlo_ints_new(x->module, 1, &vector);
    if (vector < rank && size_of(x, operand, vector))
        return expand_refuse(x, "has index vectors of dynamic length, which is not supported");
    return others(x, rank, one, one);
}

/* As in XLA, a slice of one element of a dynamic dimension is static, and a slice of the whole
 * dimension has its size. */
static hlo_instruction *gather(expansion *x, hlo_instruction **sizes) {
    const hlo_instruction *instr = x->build->at;
    const hlo_ints *offset = hlo_instr_ints(instr, HLO_ATTR_OFFSET_DIMS),
                   *slices = hlo_instr_ints(instr, HLO_ATTR_SLICE_SIZES),
                   *batch = hlo_instr_ints(instr, HLO_ATTR_OPERAND_BATCHING_DIMS),
                   *of_batch = hlo_instr_ints(instr, HLO_ATTR_START_INDICES_BATCHING_DIMS);
    const hlo_ints *window = others(x, slices->count,
                                    hlo_instr_ints(instr, HLO_ATTR_COLLAPSED_SLICE_DIMS), batch),
                   *places = others(x, instr->shape->rank, offset, offset),
                   *index = index_dims(x, 1);
    if (!index) return NULL;
    for (uint32_t i = 0; i < window->count; i++) {
        const int64_t d = window->v[i];
        hlo_instruction *size = size_of(x, 0, d);
        if (slices->v[d] == 1 && !dynamic_declares(instr->shape, offset->v[i])) continue;
        if (size && slices->v[d] != operand_of(x, 0)->shape->dims[d])
            return expand_refuse(x, "takes a part of a dynamic dimension, which is not supported");
        sizes[offset->v[i]] = size;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        const int64_t b = hlo_ints_find(of_batch, index->v[i]);
        sizes[places->v[i]] = size_of(x, 1, index->v[i]);
        if (b >= 0) join(x, &sizes[places->v[i]], size_of(x, 0, batch->v[b]));
    }
    return x->build->at;
}

/* Moves the indices in the padding out of bounds, where a scatter ignores them. */
static hlo_instruction *scatter(expansion *x, hlo_instruction **sizes) {
    const hlo_instruction *instr = x->build->at;
    const uint32_t count = instr->operand_count / 2, rank = operand_of(x, 0)->shape->rank;
    const hlo_ints *window = hlo_instr_ints(instr, HLO_ATTR_UPDATE_WINDOW_DIMS),
                   *kept = others(x, rank, hlo_instr_ints(instr, HLO_ATTR_INSERTED_WINDOW_DIMS),
                                  hlo_instr_ints(instr, HLO_ATTR_INPUT_BATCHING_DIMS)),
                   *places = others(x, operand_of(x, count + 1)->shape->rank, window, window),
                   *index = index_dims(x, count);
    if (!index) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t u = count + 1 + i;
        for (uint32_t d = 0; d < rank; d++) *sizes++ = size_of(x, i, d);
        for (uint32_t w = 0; w < window->count; w++)
            if (size_of(x, u, window->v[w]) &&
                (!size_of(x, i, kept->v[w]) || operand_of(x, u)->shape->dims[window->v[w]] !=
                                                   operand_of(x, i)->shape->dims[kept->v[w]]))
                return expand_refuse(x, "has updates of a dynamic size that differs from the size "
                                        "of its operand, which is not supported");
    }
    hlo_instruction *indices = operand_of(x, count);
    for (uint32_t i = 0; i < index->count; i++) {
        hlo_instruction *size = size_of(x, count, index->v[i]);
        for (uint32_t u = count + 1; u < instr->operand_count; u++)
            join(x, &size, size_of(x, u, places->v[i]));
        if (!size) continue;
        if (hlo_shape_count(indices->shape) == 0)
            return expand_refuse(x, "has a dynamic number of empty index vectors");
        if (hlo_types[indices->shape->type].class == HLO_CLASS_UNSIGNED)
            indices = hlo_build_convert(x->build, indices, HLO_TYPE_S64);
        indices = expand_mask(x, indices, index->v[i], size,
                              hlo_build_number(x->build, indices->shape->type, -1));
    }
    hlo_instr_set_operand(x->build->at, count, indices);
    return x->build->at;
}

/* Counts the windows in a dimension of `size` elements. */
static hlo_instruction *count_windows(expansion *x, hlo_instruction *size, const hlo_window *w) {
    const int64_t extent = (w->size - 1) * w->dilate + 1;
    if (extent > INT32_MAX || w->base > INT32_MAX || w->stride > INT32_MAX)
        return expand_refuse(x, "has a window of more than 2^31-1 elements");
    if (w->base != 1) {
        size = hlo_build_binary(x->build, HLO_OP_MULTIPLY, plus(x, size, -1),
                                expand_number(x, w->base));
        size = at_least_0(x, plus(x, size, 1));
    }
    size = at_least_0(x, plus(x, size, w->low + w->high - extent + w->stride));
    return w->stride == 1
               ? size
               : hlo_build_binary(x->build, HLO_OP_DIVIDE, size, expand_number(x, w->stride));
}

static hlo_instruction *reduce_window(expansion *x, hlo_instruction **sizes) {
    const uint32_t count = x->build->at->operand_count / 2, rank = operand_of(x, 0)->shape->rank;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = 0; d < rank; d++, sizes++) {
            const hlo_window w = hlo_window_of(x->build->at, d);
            hlo_instruction *size = size_of(x, i, d);
            if (!size) continue;
            if (w.size != 1 || w.high > 0) mask(x, i, d, operand_of(x, count + i));
            if (!(*sizes = count_windows(x, size, &w))) return NULL;
        }
    return x->build->at;
}

/* Returns the lowest value of a type; NULL for an 8-bit float, of which some have no infinity. */
static hlo_instruction *lowest(expansion *x, hlo_type type) {
    const bool floats = hlo_types[type].class == HLO_CLASS_FLOAT;
    if (floats && hlo_types[type].bytes < 2) return NULL;
    if (floats) return hlo_build_number(x->build, type, (double)-INFINITY);
    const bool is_signed = hlo_types[type].class == HLO_CLASS_SIGNED;
    return hlo_build_number(x->build, type, is_signed ? -ldexp(1, hlo_types[type].bits - 1) : 0);
}

/* As in XLA, the computation must select larger elements: then the padding of the operand can be
 * replaced by the lowest value. */
static hlo_instruction *select_and_scatter(expansion *x, hlo_instruction **sizes) {
    const hlo_instruction *root = hlo_instr_comp(x->build->at, HLO_ATTR_SELECT)->root;
    const char *direction = hlo_instr_str(root, HLO_ATTR_DIRECTION);
    hlo_instruction *fill = lowest(x, x->build->at->shape->type);
    bool largest = fill && root->op == HLO_OP_COMPARE && *direction == 'G';
    for (uint32_t i = 0; i < 2 && largest; i++) {
        const hlo_instruction *parameter = hlo_instr_operand(root, i);
        largest = parameter->op == HLO_OP_PARAMETER && parameter->u.parameter == i;
    }
    if (!largest) return expand_refuse(x, "with a dynamic shape must select the largest element");
    for (uint32_t d = 0; d < x->build->at->shape->rank; d++) {
        sizes[d] = size_of(x, 0, d);
        if (hlo_window_of(x->build->at, d).size == 1) continue;
        mask(x, 0, d, fill);
        mask(x, 1, d, operand_of(x, 2));
    }
    return x->build->at;
}

static hlo_instruction *convolution(expansion *x, hlo_instruction **sizes) {
    const uint32_t rank = x->build->at->shape->rank;
    int64_t in[3 * HLO_LARGEST_RANK], *kernel = in + rank, *out = in + 2 * (size_t)rank;
    const char *labels = hlo_instr_str(x->build->at, HLO_ATTR_DIM_LABELS);
    if (!labels || !hlo_dim_labels_read(labels, rank, in))
        return expand_refuse(x, "without dim_labels is not supported");
    sizes[out[0]] = size_of(x, 0, in[0]);
    sizes[out[1]] = size_of(x, 1, kernel[1]);
    if (sizes[out[0]] && hlo_instr_int(x->build->at, HLO_ATTR_BATCH_GROUP_COUNT, 1) > 1)
        return expand_refuse(x, "divides a dynamic batch into groups, which is not supported");
    hlo_instruction *zero = expand_zero(x, operand_of(x, 0)->shape->type);
    for (uint32_t d = 1; d < rank; d++) {
        hlo_instruction *size = size_of(x, 0, in[d]);
        mask(x, 0, in[d], zero);
        if (d == 1) continue;
        const hlo_window w = hlo_window_of(x->build->at, d - 2);
        if (size_of(x, 1, kernel[d]))
            return expand_refuse(x, "has a dynamic window, which is not supported");
        if (size && !(sizes[out[d]] = count_windows(x, size, &w))) return NULL;
    }
    mask(x, 1, kernel[0], expand_zero(x, operand_of(x, 1)->shape->type));
    return x->build->at;
}

/* Keeps the padding of an update from overwriting elements: replaces it by the operand's elements.
 * An update along a whole dimension also sets its size. */
static hlo_instruction *dynamic_update_slice(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *instr = x->build->at, *base = operand_of(x, 0), *update = operand_of(x, 1);
    const hlo_shape *shape = dynamic_bound(x->module, update->shape);
    hlo_instruction *operands[1 + HLO_LARGEST_RANK] = {base}, *old = NULL;
    for (uint32_t d = 0; d < shape->rank; d++) {
        hlo_instruction *size = size_of(x, 1, d);
        const bool whole = shape->dims[d] == base->shape->dims[d];
        sizes[d] = whole && size ? size : size_of(x, 0, d);
        operands[1 + d] = operand_of(x, 2 + d);
        if (whole || !size) continue;
        if (!old) {
            for (uint32_t e = d; e < shape->rank; e++) operands[1 + e] = operand_of(x, 2 + e);
            old = hlo_build_ints(x->build, HLO_OP_DYNAMIC_SLICE, shape, 1 + shape->rank, operands,
                                 HLO_ATTR_DYNAMIC_SLICE_SIZES, shape->rank, shape->dims);
        }
        hlo_instruction *index = expand_index(x, shape, d);
        index = hlo_build_compare(x->build, index, "LT", expand_splat(x, size, index->shape));
        update = hlo_build_select(x->build, index, update, old);
    }
    hlo_instr_set_operand(instr, 1, update);
    return instr;
}

/* Replaces the padding by the value that is ordered last, -NaN for floats. */
static hlo_instruction *topk(expansion *x, hlo_instruction **sizes) {
    const hlo_shape *shape = operand_of(x, 0)->shape;
    hlo_instruction *size = size_of(x, 0, shape->rank - 1), *fill = lowest(x, shape->type);
    double nan;
    memset(&nan, -1, sizeof nan);
    if (fill && hlo_type_is_float(shape->type)) fill = hlo_build_number(x->build, shape->type, nan);
    if (size && (!fill || !hlo_instr_int(x->build->at, HLO_ATTR_LARGEST, 1)))
        return expand_refuse(x, "with a dynamic last dimension must select the largest elements");
    mask(x, 0, shape->rank - 1, fill);
    for (uint32_t i = 0; i < x->build->at->shape->rank; i++)
        for (uint32_t d = 0; d < shape->rank; d++, sizes++) {
            const bool last = d + 1 == shape->rank;
            if (last && !dynamic_declares(x->build->at->shape->elements[i], d)) continue;
            *sizes = size_of(x, 0, d);
            if (last && size)
                *sizes =
                    hlo_build_binary(x->build, HLO_OP_MINIMUM, size,
                                     expand_number(x, hlo_instr_int(x->build->at, HLO_ATTR_K, 0)));
        }
    return x->build->at;
}

/* Sizes of an operation on the last `count` dimensions of its operands, which must be static. */
static hlo_instruction *batched(expansion *x, uint32_t count, hlo_instruction **sizes) {
    const uint32_t rank = x->build->at->shape->rank;
    for (uint32_t i = 0; i < x->build->at->operand_count; i++)
        for (uint32_t d = 0; d < rank; d++)
            if (d + count < rank)
                join(x, &sizes[d], size_of(x, i, d));
            else if (size_of(x, i, d))
                return expand_refuse(x, "requires its last %u dimensions to be static", count);
    return x->build->at;
}

/* ---------------------------------------------------------------------------------- collectives */

/* Sizes of a collective that keeps all dimensions, except those that it divides or joins. */
static hlo_instruction *collective(expansion *x, hlo_instruction **sizes) {
    const hlo_ints *divided = hlo_instr_ints(x->build->at, HLO_ATTR_DIMENSIONS);
    if (x->build->at->op == HLO_OP_ALL_TO_ALL && !divided->count)
        return expand_refuse(x, "of a tuple does not support dynamic shapes");
    for (uint32_t i = 0; i < x->build->at->operand_count; i++)
        for (uint32_t d = 0; d < operand_of(x, i)->shape->rank; d++) {
            *sizes++ = size_of(x, i, d);
            if (size_of(x, i, d) && hlo_ints_contain(divided, d))
                return expand_refuse(
                    x, "divides or joins a dynamic dimension, which is not supported");
        }
    return x->build->at;
}

/* Also sends the sizes of an array that another device receives. */
static hlo_instruction *sent(expansion *x, hlo_instruction **sizes) {
    if (x->build->at->operand_count != 1)
        return expand_refuse(x, "sends several arrays of dynamic shape, which is not supported");
    for (uint32_t d = 0; d < x->build->at->shape->rank; d++) {
        hlo_instruction *size = size_of(x, 0, d);
        if (size) sizes[d] = hlo_build_clone(x->build, x->build->at, size->shape, &size);
    }
    return x->build->at;
}

/* The custom calls with which XLA passes from dynamic shapes to arrays with sizes, and back. */
static hlo_instruction *custom_call(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *instr = x->build->at, *array = instr->operand_count ? operand_of(x, 0) : NULL;
    const bool pads = hlo_is_custom_call(instr, "PadToStatic");
    const bool slices = hlo_is_custom_call(instr, "SliceToDynamic");
    const hlo_shape *shape = instr->shape;
    bool fits = array && hlo_shape_is_array(array->shape);
    const uint32_t rank = fits ? array->shape->rank : 0;
    if (pads) fits = fits && shape->type == HLO_TYPE_TUPLE && shape->rank == rank + 1;
    for (uint32_t d = 0; d < rank && fits && (pads || slices); d++) {
        if (slices && instr->operand_count != rank + 1) fits = false;
        const hlo_shape *size = !fits    ? NULL
                                : slices ? operand_of(x, 1 + d)->shape
                                         : shape->elements[1 + d];
        fits = fits && size->type == HLO_TYPE_S32 && hlo_shape_is_scalar(size);
    }
    if (pads && fits) shape = shape->elements[0];
    fits = fits && hlo_shape_compatible(dynamic_bound(x->module, shape),
                                        dynamic_bound(x->module, array->shape));
    if (!fits || !(pads || slices || hlo_is_custom_call(instr, "SetBound")))
        return expand_refuse(x, "of \"%s\" does not support dynamic shapes",
                             hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET));
    hlo_instruction *parts[1 + HLO_LARGEST_RANK] = {array};
    for (uint32_t d = 0; d < rank; d++) {
        hlo_instruction *size = slices ? operand_of(x, 1 + d) : size_of(x, 0, d);
        if (pads)
            parts[1 + d] = size_or_bound(x, size, array->shape->dims[d]);
        else if (!slices || dynamic_declares(shape, d))
            sizes[d] = size;
    }
    if (pads) return expand_replace(x, HLO_OP_TUPLE, instr->shape, 1 + rank, parts);
    return expand_replace(x, HLO_OP_COPY, shape, 1, &array);
}

hlo_instruction *dynamic_rule(expansion *x, hlo_instruction **sizes) {
    hlo_instruction *instr = x->build->at;
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) return elementwise(x, sizes);
    if (hlo_instr_is_annotation(instr)) return forwarded(x, sizes);
    switch (instr->op) {
    case HLO_OP_MAP: return elementwise(x, sizes);
    case HLO_OP_BITCAST_CONVERT:
        if (instr->shape->rank != operand_of(x, 0)->shape->rank)
            return expand_refuse(x, "changes the width of a dynamic array, which is not supported");
        return forwarded(x, sizes);
    case HLO_OP_COPY:
    case HLO_OP_ALL_REDUCE_DONE:
    case HLO_OP_OPT_BARRIER:
    case HLO_OP_DOMAIN:
    case HLO_OP_ADD_DEPENDENCY: return forwarded(x, sizes);
    case HLO_OP_AFTER_ALL: return instr;
    case HLO_OP_TUPLE:
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            const uint32_t count = dynamic_dims(operand_of(x, i)->shape);
            hlo_instruction **known = dynamic_value_of(x, operand_of(x, i))->sizes;
            for (uint32_t k = 0; known && k < count; k++) sizes[k] = known[k];
            sizes += count;
        }
        return instr;
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instruction *whole = operand_of(x, 0);
        hlo_instruction **known = dynamic_value_of(x, whole)->sizes;
        const int64_t index = hlo_instr_int(instr, HLO_ATTR_INDEX, 0);
        if (!known) return instr;
        for (int64_t i = 0; i < index; i++) known += dynamic_dims(whole->shape->elements[i]);
        for (uint32_t i = 0; i < dynamic_dims(instr->shape); i++) sizes[i] = known[i];
        return instr;
    }
    case HLO_OP_GET_DIMENSION_SIZE: {
        hlo_instruction *size = size_of(x, 0, hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0]);
        return size ? expand_replace(x, HLO_OP_COPY, instr->shape, 1, &size) : instr;
    }
    case HLO_OP_SET_DIMENSION_SIZE: {
        hlo_instruction *array = operand_of(x, 0), *size = operand_of(x, 1);
        const int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
        double number;
        for (uint32_t d = 0; d < array->shape->rank; d++) sizes[d] = dynamic_size(x, array, d);
        const bool whole =
            hlo_known_number(size, &number) && number == (double)array->shape->dims[dim];
        sizes[dim] = whole && !dynamic_declares(instr->shape, dim) ? NULL : size;
        return expand_replace(x, HLO_OP_COPY, instr->shape, 1, &array);
    }
    case HLO_OP_TRANSPOSE:
    case HLO_OP_BROADCAST:
    case HLO_OP_SLICE:
    case HLO_OP_DYNAMIC_SLICE: return part(x, sizes);
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return dynamic_update_slice(x, sizes);
    case HLO_OP_GATHER: return gather(x, sizes);
    case HLO_OP_SCATTER: return scatter(x, sizes);
    case HLO_OP_REDUCE_WINDOW: return reduce_window(x, sizes);
    case HLO_OP_SELECT_AND_SCATTER: return select_and_scatter(x, sizes);
    case HLO_OP_CONVOLUTION: return convolution(x, sizes);
    case HLO_OP_TOPK: return topk(x, sizes);
    case HLO_OP_FFT: return batched(x, hlo_instr_ints(instr, HLO_ATTR_FFT_LENGTH)->count, sizes);
    case HLO_OP_CHOLESKY:
    case HLO_OP_TRIANGULAR_SOLVE: return batched(x, 2, sizes);
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_START:
    case HLO_OP_ALL_GATHER:
    case HLO_OP_REDUCE_SCATTER:
    case HLO_OP_ALL_TO_ALL: return collective(x, sizes);
    case HLO_OP_COLLECTIVE_PERMUTE:
    case HLO_OP_COLLECTIVE_BROADCAST: return sent(x, sizes);
    case HLO_OP_CUSTOM_CALL: return custom_call(x, sizes);
    case HLO_OP_PAD: return pad(x, sizes);
    case HLO_OP_REDUCE: return reduce(x, sizes);
    case HLO_OP_DOT: return dot(x, sizes);
    case HLO_OP_CONCATENATE: return dynamic_concatenate(x, sizes);
    case HLO_OP_REVERSE: return dynamic_reverse(x, sizes);
    case HLO_OP_SORT: return dynamic_sort(x, sizes);
    case HLO_OP_RESHAPE:
    case HLO_OP_DYNAMIC_RESHAPE: return dynamic_reshape(x, sizes);
    default:
        return instr->operand_count ? expand_refuse(x, "does not support dynamic shapes") : instr;
    }
}
