/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the granularity of values, and builds compact forms. */
#include "passes/builders/granularity.h"
#include "ir/float/literal.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"

#include <string.h>

enum { STEP_LIMIT = 256 };

static int64_t parts(int64_t size, int64_t each) {
    return (size + each - 1) / each;
}

void hlo_granularity_dims(const hlo_shape *shape, const hlo_granularity *granularity,
                          int64_t *out_dims) {
    for (uint32_t i = 0; i < shape->rank; i++)
        out_dims[i] = parts(shape->dims[i], granularity->v[i]);
}

const hlo_shape *hlo_granularity_shape(hlo_rule_env *env, const hlo_shape *shape, hlo_type type,
                                       const hlo_granularity *granularity) {
    int64_t dims[HLO_RULE_ARGS];
    hlo_granularity_dims(shape, granularity, dims);
    return hlo_shape_array(env->context->module, type, shape->rank, dims);
}

static bool is_trivial(const hlo_shape *shape, const hlo_granularity *granularity) {
    for (uint32_t i = 0; i < shape->rank; i++)
        if (granularity->v[i] > 1 && shape->dims[i] > 1) return false;
    return true;
}

/* A group of adjacent dimensions that a reshape maps to a group with the same number of elements.
 * Equal elements that are contiguous in a group remain contiguous. If equal elements of the result
 * are not contiguous, the operand must be constant throughout the group. */
typedef struct run {
    uint32_t from, from_end, to, to_end; /* ranges of dimensions */
    bool exact;                          /* equal elements of the result are contiguous */
} run;

static bool next_run(const hlo_shape *from, const hlo_shape *to, run *r) {
    r->from = r->from_end;
    r->to = r->to_end;
    if (r->from == from->rank && r->to == to->rank) return false;
    int64_t size = r->from_end < from->rank ? from->dims[r->from_end++] : 1;
    int64_t other = r->to_end < to->rank ? to->dims[r->to_end++] : 1;
    while (size != other) {
        if (size < other)
            size *= from->dims[r->from_end++];
        else
            other *= to->dims[r->to_end++];
    }
    return true;
}

static int64_t product(const hlo_shape *shape, uint32_t first, uint32_t end) {
    int64_t size = 1;
    for (uint32_t i = first; i < end; i++) size *= shape->dims[i];
    return size;
}

/* Returns the length of the runs of equal elements in memory; 0 if they are not contiguous. */
static int64_t flat_run(const hlo_shape *to, const run *r, const hlo_granularity *granularity) {
    int64_t flat = 1;
    bool open = false;
    for (uint32_t i = r->to_end; i-- > r->to;) {
        int64_t size = to->dims[i], g = granularity->v[i] < size ? granularity->v[i] : size;
        if (open && g > 1) return 0;
        flat *= g;
        if (open || g == size) continue;
        open = true;
        if (size % g && product(to, r->to, i) > 1) return 0;
    }
    return flat;
}

static void below_run(const hlo_shape *from, const hlo_shape *to, run *r,
                      const hlo_granularity *granularity, hlo_granularity *below) {
    int64_t rest = flat_run(to, r, granularity);
    r->exact = rest > 0;
    for (uint32_t i = r->from_end; r->exact && i-- > r->from;) {
        int64_t size = from->dims[i], outer = product(from, r->from, i);
        below->v[i] = rest < size ? rest : size;
        r->exact = outer == 1 || (rest < size ? size % rest : rest % size) == 0;
        rest = rest < size ? 1 : parts(rest, size);
    }
    for (uint32_t i = r->from; !r->exact && i < r->from_end; i++) below->v[i] = from->dims[i];
}

/* Finds the granularity along a dimension of the operand. The dimension has size `from` in the
 * operand, and size `to` and granularity `g` in the result. */
static bool below_dim(const hlo_index *x, bool placed, int64_t from, int64_t to, int64_t g,
                      int64_t *below) {
    const bool whole = g >= to, first = !x->start && x->stride == 1;
    if (placed) {
        *below = whole && to > 1 ? from : g;
        return *below && (whole || g == 1 || (first && from <= to));
    }
    *below = g;
    if (x->stride < 0) return whole || to % g == 0;
    if (x->varies || x->at) { /* the start index is unknown */
        *below = to == 1 ? 1 : whole ? from : g;
        return g == 1 || whole || to == from;
    }
    if (first && from == to) return true;
    const int64_t each = whole ? to : g;
    const bool aligned = x->stride == 1 && x->start % each == 0;
    *below = aligned || each == 1 ? each : from;
    return aligned || whole || g == 1;
}

static bool below_any(const hlo_instruction *link, const hlo_granularity *granularity,
                      hlo_granularity *out_below) {
    const hlo_instruction *operand = hlo_instr_operand(link, 0);
    hlo_index_map map;
    if (!hlo_shape_is_array(operand->shape) || operand->shape->rank > HLO_RULE_ARGS ||
        hlo_shape_count(operand->shape) < 1)
        return false;
    *out_below = *granularity;
    if (link->op == HLO_OP_CONVERT) return true;
    if (hlo_instr_is_mark(link)) return hlo_instr_moves(link);
    if (!hlo_index_map_first(link, &map) || map.from != operand) return false;
    switch (map.form) {
    case HLO_INDEX_JOINED: return false;
    case HLO_INDEX_PART:
    case HLO_INDEX_PLACED: {
        const hlo_shape *from = map.from->shape, *to = map.instr->shape;
        const hlo_ints *offset = hlo_instr_ints(map.instr, HLO_ATTR_OFFSET_DIMS);
        hlo_index x;
        for (uint32_t i = 0; i < from->rank; i++) {
            out_below->v[i] = 1;
            if (!hlo_index_along(&map, i, &x)) return false;
            for (uint32_t d = 0; x.varies && d < to->rank; d++)
                if (!hlo_ints_contain(offset, d) && granularity->v[d] > 1 && to->dims[d] > 1)
                    return false;
            if (x.of >= 0 && !below_dim(&x, map.form == HLO_INDEX_PLACED, from->dims[i],
                                        to->dims[x.of], granularity->v[x.of], &out_below->v[i]))
                return false;
        }
        return true;
    }
    case HLO_INDEX_ORDER:
    case HLO_INDEX_MEMORY: break;
    }
    if (!hlo_index_keeps_order(link) || !hlo_instr_moves(link)) return false;
    const hlo_shape *from = hlo_instr_operand(link, 0)->shape;
    run r = {0};
    while (next_run(from, link->shape, &r))
        below_run(from, link->shape, &r, granularity, out_below);
    return true;
}

bool hlo_granularity_of_operand(const hlo_instruction *link, const hlo_granularity *granularity,
                                hlo_granularity *out_below) {
    return !link->pin && link->operand_count && below_any(link, granularity, out_below);
}

/* True if the value has the granularity. If `held` is not NULL, links may be pinned because of
 * their memory space, and the first such link is stored in `*held`. */
static bool holds(hlo_instruction *value, const hlo_granularity *granularity,
                  const hlo_instruction **held, unsigned *steps) {
    hlo_granularity here = *granularity, below;
    while ((*steps)++ < STEP_LIMIT) {
        if (!hlo_shape_is_array(value->shape) || value->shape->rank > HLO_RULE_ARGS) return false;
        if (hlo_shape_count(value->shape) < 1 || value->shape->dynamic) return false;
        if (is_trivial(value->shape, &here)) return true;
        if (value->op == HLO_OP_CONSTANT) return hlo_literal_is_splat(value->u.literal);
        const bool open = !value->pin || (held && value->pin == HLO_PIN_SPACE);
        if (open && value->op != HLO_OP_PAD && value->operand_count &&
            below_any(value, &here, &below)) {
            if (value->pin && !*held) *held = value;
            here = below;
            value = hlo_instr_operand(value, 0);
            continue;
        }
        if (!hlo_op_is(value->op, HLO_ELEMENTWISE) || !value->operand_count) return false;
        for (uint32_t i = 0; i < value->operand_count; i++) {
            hlo_instruction *operand = hlo_instr_operand(value, i);
            if (operand->shape->rank && !holds(operand, &here, held, steps)) return false;
        }
        return true;
    }
    return false;
}

bool hlo_granularity_holds(hlo_instruction *value, const hlo_granularity *granularity) {
    unsigned steps = 0;
    return holds(value, granularity, NULL, &steps);
}

bool hlo_granularity_holds_elsewhere(hlo_instruction *value, const hlo_granularity *granularity,
                                     const hlo_instruction **out_held) {
    unsigned steps = 0;
    *out_held = NULL;
    return holds(value, granularity, out_held, &steps);
}

static hlo_instruction *carry_reshape(hlo_rule_env *env, const hlo_instruction *link,
                                      const hlo_granularity *granularity, hlo_instruction *packed) {
    const hlo_shape *from = hlo_instr_operand(link, 0)->shape, *to = link->shape;
    int64_t extents[HLO_RULE_ARGS], bridge[HLO_RULE_ARGS];
    hlo_granularity below;
    run r = {0};
    hlo_granularity_dims(to, granularity, extents);
    while (next_run(from, to, &r)) {
        below_run(from, to, &r, granularity, &below);
        for (uint32_t i = r.to; i < r.to_end; i++) bridge[i] = r.exact ? extents[i] : 1;
    }
    packed = hlo_build_reshape(env->build, packed, to->rank, bridge);
    if (!packed) return NULL;
    int64_t kept[HLO_RULE_ARGS], dims[HLO_RULE_ARGS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < to->rank; i++) {
        if (packed->shape->dims[i] != extents[i]) continue;
        kept[count] = extents[i];
        dims[count++] = i;
    }
    if (count == to->rank) return packed;
    packed = hlo_build_reshape(env->build, packed, count, kept);
    return hlo_build_broadcast(env->build, packed, to->rank, extents, count, dims);
}

/* Clones the link onto the compact value, and adapts the list in attribute `id`. */
static hlo_instruction *carry_as(hlo_rule_env *env, const hlo_instruction *link,
                                 const hlo_granularity *granularity, hlo_instruction *packed,
                                 hlo_attr_id id, const int64_t *list, uint32_t count) {
    hlo_instruction *operands[HLO_RULE_ARGS] = {packed};
    if (link->operand_count > HLO_RULE_ARGS) return NULL;
    for (uint32_t i = 1; i < link->operand_count; i++) operands[i] = hlo_instr_operand(link, i);
    if (link->op == HLO_OP_PAD) operands[1] = hlo_build_number(env->build, packed->shape->type, 1);
    hlo_instruction *made = hlo_build_clone(
        env->build, link, hlo_granularity_shape(env, link->shape, packed->shape->type, granularity),
        operands);
    if (made) hlo_instr_set_ints(made, id, count, list);
    return made;
}

static hlo_instruction *carry_slice(hlo_rule_env *env, const hlo_instruction *link,
                                    const hlo_granularity *granularity, hlo_instruction *packed) {
    const hlo_ints *slices = hlo_instr_ints(link, HLO_ATTR_SLICE);
    int64_t list[3 * HLO_RULE_ARGS], extents[HLO_RULE_ARGS];
    hlo_granularity below;
    below_any(link, granularity, &below);
    hlo_granularity_dims(link->shape, granularity, extents);
    bool same = true;
    for (uint32_t i = 0; i < link->shape->rank; i++) {
        const int64_t *s = &slices->v[3 * i];
        bool each = below.v[i] == 1, one = packed->shape->dims[i] == 1;
        list[3 * i] = one ? 0 : s[0] / below.v[i];
        list[3 * i + 1] = one ? 1 : each ? s[1] : list[3 * i] + extents[i];
        list[3 * i + 2] = each && !one ? s[2] : 1;
        same &= extents[i] == packed->shape->dims[i];
    }
    return same ? packed
                : carry_as(env, link, granularity, packed, HLO_ATTR_SLICE, list,
                           3 * link->shape->rank);
}

static hlo_instruction *carry_pad(hlo_rule_env *env, const hlo_instruction *link,
                                  const hlo_granularity *granularity, hlo_instruction *packed) {
    const hlo_ints *padding = hlo_instr_ints(link, HLO_ATTR_PADDING);
    int64_t list[3 * HLO_RULE_ARGS], extents[HLO_RULE_ARGS];
    hlo_granularity_dims(link->shape, granularity, extents);
    bool same = true;
    for (uint32_t i = 0; i < link->shape->rank; i++) {
        bool each = granularity->v[i] == 1;
        list[3 * i] = each ? padding->v[3 * i] : 0;
        list[3 * i + 1] = each ? padding->v[3 * i + 1] : extents[i] - packed->shape->dims[i];
        list[3 * i + 2] = each ? padding->v[3 * i + 2] : 0;
        for (uint32_t j = 0; j < 3; j++) same &= !list[3 * i + j];
    }
    return same ? packed
                : carry_as(env, link, granularity, packed, HLO_ATTR_PADDING, list,
                           3 * link->shape->rank);
}

hlo_instruction *hlo_granularity_carry(hlo_rule_env *env, const hlo_instruction *link,
                                       const hlo_granularity *granularity,
                                       hlo_instruction *packed) {
    int64_t extents[HLO_RULE_ARGS];
    const hlo_ints *dims = hlo_instr_ints(link, HLO_ATTR_DIMENSIONS);
    uint32_t rank = link->shape->rank;
    hlo_granularity_dims(link->shape, granularity, extents);
    switch (link->op) {
    case HLO_OP_BROADCAST:
        return hlo_build_broadcast(env->build, packed, rank, extents, dims->count, dims->v);
    case HLO_OP_TRANSPOSE: return hlo_build_transpose(env->build, packed, dims->v);
    case HLO_OP_CONVERT: return hlo_build_convert(env->build, packed, link->shape->type);
    case HLO_OP_CUSTOM_CALL:
    case HLO_OP_COPY: return packed;
    case HLO_OP_RESHAPE:
    case HLO_OP_BITCAST: return carry_reshape(env, link, granularity, packed);
    case HLO_OP_SLICE: return carry_slice(env, link, granularity, packed);
    case HLO_OP_DYNAMIC_SLICE:
        return carry_as(env, link, granularity, packed, HLO_ATTR_DYNAMIC_SLICE_SIZES, extents,
                        rank);
    case HLO_OP_GATHER: {
        const hlo_ints *sizes = hlo_instr_ints(link, HLO_ATTR_SLICE_SIZES);
        int64_t list[HLO_RULE_ARGS];
        hlo_granularity below;
        below_any(link, granularity, &below);
        for (uint32_t i = 0; i < sizes->count; i++) list[i] = parts(sizes->v[i], below.v[i]);
        return carry_as(env, link, granularity, packed, HLO_ATTR_SLICE_SIZES, list, sizes->count);
    }
    case HLO_OP_REVERSE:
        return carry_as(env, link, granularity, packed, HLO_ATTR_DIMENSIONS, dims->v, dims->count);
    case HLO_OP_PAD: return carry_pad(env, link, granularity, packed);
    default: return NULL;
    }
}

/* Slices the first element of each run. */
static hlo_instruction *first_of(hlo_rule_env *env, hlo_instruction *value,
                                 const hlo_granularity *granularity) {
    const hlo_shape *shape = value->shape;
    const hlo_shape *less = hlo_granularity_shape(env, shape, shape->type, granularity);
    int64_t list[3 * HLO_RULE_ARGS];
    for (uint32_t i = 0; i < shape->rank; i++) {
        bool one = less->dims[i] == 1;
        list[3 * i] = 0;
        list[3 * i + 1] = one ? 1 : shape->dims[i];
        list[3 * i + 2] = one ? 1 : granularity->v[i];
    }
    return hlo_build_slice(env->build, value, less, list);
}

hlo_instruction *hlo_granularity_compact(hlo_rule_env *env, hlo_instruction *value,
                                         const hlo_granularity *granularity) {
    hlo_granularity below;
    if (is_trivial(value->shape, granularity)) return value;
    if (value->pin) return first_of(env, value, granularity);
    if (hlo_op_is(value->op, HLO_ELEMENTWISE) && value->op != HLO_OP_CONVERT &&
        value->operand_count) {
        hlo_instruction *operands[HLO_RULE_ARGS];
        if (value->operand_count > HLO_RULE_ARGS) return NULL;
        for (uint32_t i = 0; i < value->operand_count; i++) {
            operands[i] = hlo_instr_operand(value, i);
            if (operands[i]->shape->rank)
                operands[i] = hlo_granularity_compact(env, operands[i], granularity);
            if (!operands[i]) return NULL;
        }
        return hlo_build_clone(
            env->build, value,
            hlo_granularity_shape(env, value->shape, value->shape->type, granularity), operands);
    }
    bool spreads = hlo_op_is(value->op, HLO_MOVES_DIMENSIONS) || value->op == HLO_OP_CONVERT;
    if (!spreads || !hlo_granularity_of_operand(value, granularity, &below))
        return first_of(env, value, granularity);
    hlo_instruction *packed = hlo_granularity_compact(env, hlo_instr_operand(value, 0), &below);
    return packed ? hlo_granularity_carry(env, value, granularity, packed) : NULL;
}

hlo_instruction *hlo_granularity_expand(hlo_rule_env *env, hlo_instruction *packed,
                                        const hlo_shape *shape,
                                        const hlo_granularity *granularity) {
    int64_t kept[HLO_RULE_ARGS], dims[HLO_RULE_ARGS], wide[HLO_RULE_ARGS], merged[HLO_RULE_ARGS];
    uint32_t count = 0, rank = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t size = shape->dims[i], g = granularity->v[i], runs = parts(size, g);
        if (rank + 2 > HLO_RULE_ARGS) return NULL;
        if (runs > 1) dims[count] = rank;
        if (runs > 1) kept[count++] = runs;
        wide[rank++] = runs > 1 ? runs : size;
        if (runs > 1 && g > 1) wide[rank++] = g;
        merged[i] = runs > 1 ? runs * g : size;
    }
    hlo_builder *b = env->build;
    packed = hlo_build_reshape(b, packed, count, kept);
    packed = hlo_build_broadcast(b, packed, rank, wide, count, dims);
    packed = hlo_build_reshape(b, packed, shape->rank, merged);
    if (!packed) return NULL;
    return hlo_build_prefix(
        b, packed,
        hlo_shape_array(env->context->module, packed->shape->type, shape->rank, shape->dims));
}
