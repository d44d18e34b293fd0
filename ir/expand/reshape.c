/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes of dynamic dimensions.
 *
 * The dimensions of operand and result are divided into minimal groups with equal products of their
 * bounds. If only the outermost dimension of each group is dynamic, the real elements keep their
 * positions. Otherwise each is gathered by its index among the real elements. */
#include "ir/expand/expansion.h"

typedef struct reshape {
    hlo_instr *operand;
    const hlo_shape *from, *to; /* `to` as declared */
    hlo_instr **now;            /* sizes of the result; NULL: the bound */
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

/* Computes the size of the result of a reshape in a group, whose dimensions are collapsed to one
 * result dimension. */
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

hlo_instr *dynamic_reshape(expansion *x, hlo_instr **sizes) {
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
