/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of results, by opcode. Opcodes without a rule are rejected. */
#include "ir/expand/expansion.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"

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

/* Uses the smaller of two sizes, as XLA does. */
static void join(expansion *x, hlo_instr **size, hlo_instr *other) {
    if (!*size || *size == other)
        *size = other;
    else if (other)
        *size = hlo_build_binary(x->build, HLO_OP_MINIMUM, *size, other);
}

/* Sets the size of each dimension to that of any operand. Operands are scalars or have the same
 * shape. */
static hlo_instr *elementwise(expansion *x, hlo_instr **sizes) {
    const uint32_t rank = dynamic_dims(x->build->at->shape);
    for (uint32_t i = 0; i < x->build->at->operand_count; i++)
        for (uint32_t d = 0; d < rank && operand_of(x, i)->shape->rank == rank; d++)
            join(x, &sizes[d], size_of(x, i, d));
    return x->build->at;
}

/* Propagates the sizes of an operand, including tuples. */
static hlo_instr *forwarded(expansion *x, hlo_instr **sizes) {
    hlo_instr **known = dynamic_value_of(x, operand_of(x, 0))->sizes;
    for (uint32_t i = 0; known && i < dynamic_dims(x->build->at->shape); i++) sizes[i] = known[i];
    return x->build->at;
}

/* Builds max(size, 0). */
static hlo_instr *at_least_0(expansion *x, hlo_instr *size) {
    return hlo_build_binary(x->build, HLO_OP_MAXIMUM, size, expand_number(x, 0));
}

static hlo_instr *plus(expansion *x, hlo_instr *size, int64_t more) {
    return more ? hlo_build_binary(x->build, HLO_OP_ADD, size, expand_number(x, more)) : size;
}

/* Counts the real elements of a part. As in XLA, a dimension of one element is not dynamic.
 * Dimensions whose start is only known at run time must be declared static. */
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

/* Padding of a reduced dimension is replaced by the initial value, as in XLA: HLO's reductions may
 * use it any number of times. */
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

hlo_instr *dynamic_rule(expansion *x, hlo_instr **sizes) {
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
