/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps of the opcodes that move elements. */
#include "ir/module/index_map.h"

/* A rule sets one dimension of a map. On entry, `out` is the identity: operand and result have the
 * same indices along `dim`. The rule returns false if an attribute or an operand is missing. */

static bool read_number(const hlo_ints *list, int64_t index, int64_t *out) {
    if (index < 0 || index >= list->count) return false;
    *out = list->v[index];
    return true;
}

static bool same(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    (void)map, (void)dim, (void)out;
    return true;
}

static bool broadcast(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    return read_number(map->list, dim, &out->of);
}

static bool transpose(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    out->of = hlo_ints_find(map->list, dim);
    return out->of >= 0;
}

static bool reverse(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    if (hlo_ints_find(map->list, dim) < 0) return true;
    out->start = map->from->shape->dims[dim] - 1;
    out->stride = -1;
    return true;
}

static bool slice(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    return read_number(map->list, 3 * dim, &out->start) &&
           read_number(map->list, 3 * dim + 2, &out->stride);
}

static bool pad(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    return read_number(map->list, 3 * dim, &out->start) &&
           read_number(map->list, 3 * dim + 2, &out->stride) && ++out->stride > 0;
}

static bool concatenate(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    if (hlo_ints_find(map->list, dim) == 0) out->start = map->joined;
    return true;
}

/* A dynamic-slice has its starts in the elements of one operand, or in one scalar operand for each
 * dimension. */
static bool dynamic_slice(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    const hlo_instruction *instr = map->instr;
    const bool updates = instr->op == HLO_OP_DYNAMIC_UPDATE_SLICE;
    if (updates && !map->operand) return true;
    const uint32_t first = updates ? 2 : 1;
    const hlo_shape *whole = updates ? instr->shape : map->from->shape;
    const hlo_shape *part = updates ? map->from->shape : instr->shape;
    const bool list =
        first < instr->operand_count && hlo_instr_operand(instr, first)->shape->rank == 1;
    if (dim >= whole->rank || dim >= part->rank) return false;
    out->last = whole->dims[dim] - part->dims[dim];
    out->at = out->last <= 0 ? 0 : list ? first : first + dim;
    out->element = list ? dim : 0;
    return out->at < instr->operand_count;
}

/* Returns the `index`-th of the dimensions below `rank` that are in neither list. */
static int64_t find_other(uint32_t rank, const hlo_ints *a, const hlo_ints *b, int64_t index) {
    for (uint32_t d = 0; d < rank; d++)
        if (hlo_ints_find(a, d) < 0 && hlo_ints_find(b, d) < 0 && !index--) return d;
    return -1;
}

static bool gather(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    const hlo_instruction *instr = map->instr;
    const hlo_ints *window = hlo_instr_ints(instr, HLO_ATTR_OFFSET_DIMS);
    const hlo_ints *gone = hlo_instr_ints(instr, HLO_ATTR_COLLAPSED_SLICE_DIMS);
    const hlo_ints *batching = hlo_instr_ints(instr, HLO_ATTR_OPERAND_BATCHING_DIMS);
    const hlo_ints *paired = hlo_instr_ints(instr, HLO_ATTR_START_INDICES_BATCHING_DIMS);
    const int64_t vector = hlo_instr_int(instr, HLO_ATTR_INDEX_VECTOR_DIM, 0);
    int64_t size, with;
    out->of = -1;
    if (read_number(paired, hlo_ints_find(batching, dim), &with))
        out->of = find_other(instr->shape->rank, window, window, with - (with > vector));
    for (uint32_t i = 0; i < window->count; i++)
        if (find_other(map->from->shape->rank, gone, batching, i) == dim) out->of = window->v[i];
    out->element = hlo_ints_find(hlo_instr_ints(instr, HLO_ATTR_START_INDEX_MAP), dim);
    out->at = out->varies = out->element >= 0;
    if (!read_number(map->list, dim, &size)) return false;
    out->last = map->from->shape->dims[dim] - size;
    return true;
}

/* RULE(op, form, rule, list): an opcode that moves elements, the form of its maps, its rule, and
 * the attribute that the rule reads, if any. */
#define RULES(RULE)                                                                                \
    RULE(BITCAST, MEMORY, same, DIMENSIONS)                                                        \
    RULE(BROADCAST, PART, broadcast, DIMENSIONS)                                                   \
    RULE(CONCATENATE, JOINED, concatenate, DIMENSIONS)                                             \
    RULE(COPY, PART, same, DIMENSIONS)                                                             \
    RULE(DYNAMIC_SLICE, PART, dynamic_slice, DIMENSIONS)                                           \
    RULE(DYNAMIC_UPDATE_SLICE, PLACED, dynamic_slice, DIMENSIONS)                                  \
    RULE(GATHER, PART, gather, SLICE_SIZES)                                                        \
    RULE(PAD, PLACED, pad, PADDING)                                                                \
    RULE(RESHAPE, ORDER, same, DIMENSIONS)                                                         \
    RULE(REVERSE, PART, reverse, DIMENSIONS)                                                       \
    RULE(SLICE, PART, slice, SLICE)                                                                \
    RULE(TRANSPOSE, PART, transpose, DIMENSIONS)

static const struct {
    hlo_index_form form;
    hlo_index_rule *rule; /* NULL: the opcode does not move elements */
    hlo_attr_id list;
} rules[HLO_OP_COUNT] = {
#define RULE(op, form, rule, list) [HLO_OP_##op] = {HLO_INDEX_##form, rule, HLO_ATTR_##list},
    RULES(RULE)
#undef RULE
};

/* Each opcode with a movement flag in op.def has a rule. */
enum {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    MOVES_##id = !!((flags) & (HLO_MOVEMENT | HLO_JOINS)) && !((flags)&HLO_ELEMENTWISE),
#include "ir/table/op.def"
#undef HLO_OP
#define RULE(op, form, rule, list) +MOVES_##op
    RULED = RULES(RULE),
#undef RULE
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) +MOVES_##id
    MOVING =
#include "ir/table/op.def"
#undef HLO_OP
};
_Static_assert(MOVING == RULED, "an opcode that moves elements has no rule");

#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) +!!((flags)&HLO_PADS)
enum {
    PADDERS =
#include "ir/table/op.def"
};
#undef HLO_OP
_Static_assert(PADDERS == 1, "these files expect that only `pad` has HLO_PADS: known.c, "
                             "ir/eval/range.c, passes/analysis/scale_range.c, and granularity.c, "
                             "move_chain.c, operand_layout.c and scaled_operand.c in "
                             "passes/builders/");

static bool set_operand(hlo_index_map *map, uint32_t operand) {
    if (operand >= map->instr->operand_count) return false;
    map->operand = operand;
    map->from = hlo_instr_operand(map->instr, operand);
    return hlo_shape_is_array(map->from->shape) && map->from->shape->rank <= HLO_LARGEST_RANK;
}

bool hlo_index_map_first(const hlo_instruction *instr, hlo_index_map *out_map) {
    *out_map = (hlo_index_map){
        .instr = instr, .form = rules[instr->op].form, .rule = rules[instr->op].rule};
    if (!out_map->rule) return false;
    out_map->list = hlo_instr_ints(instr, rules[instr->op].list);
    return hlo_shape_is_array(instr->shape) && instr->shape->rank <= HLO_LARGEST_RANK &&
           set_operand(out_map, instr->op == HLO_OP_DYNAMIC_UPDATE_SLICE);
}

bool hlo_index_map_next(hlo_index_map *map) {
    int64_t dim;
    switch (map->form) {
    case HLO_INDEX_PLACED: map->form = HLO_INDEX_PART; return set_operand(map, !map->operand);
    case HLO_INDEX_JOINED:
        if (!read_number(map->list, 0, &dim) || (uint64_t)dim >= map->from->shape->rank)
            return false;
        map->joined += map->from->shape->dims[dim];
        return set_operand(map, map->operand + 1);
    case HLO_INDEX_PART:
    case HLO_INDEX_ORDER:
    case HLO_INDEX_MEMORY: break;
    }
    return false;
}

bool hlo_index_along(const hlo_index_map *map, uint32_t dim, hlo_index *out) {
    *out = (hlo_index){.of = dim, .stride = 1};
    return map->rule(map, dim, out) && out->of < map->instr->shape->rank;
}

bool hlo_index_dim(const hlo_index_map *map, uint32_t dim, int64_t *out_dim) {
    const hlo_shape *from = map->from->shape, *to = map->instr->shape;
    hlo_index x;
    *out_dim = -1;
    if (from->dims[dim] == 1) return true;
    if (map->form == HLO_INDEX_PART) {
        if (!hlo_index_along(map, dim, &x) || x.of < 0 || x.at || x.start || x.stride != 1)
            return false;
        *out_dim = x.of;
        return to->dims[x.of] == from->dims[dim];
    }
    if (!hlo_index_keeps_order(map->instr)) return false;
    for (uint32_t k = 0, d = 0; k <= dim; k++) {
        if (from->dims[k] == 1) continue;
        while (d < to->rank && to->dims[d] == 1) d++;
        if (d == to->rank || to->dims[d] != from->dims[k]) return false;
        *out_dim = d++;
    }
    return true;
}

bool hlo_index_keeps_order(const hlo_instruction *instr) {
    hlo_index_map map;
    int64_t last = -1, dim;
    if (!hlo_index_map_first(instr, &map)) return false;
    const hlo_shape *from = map.from->shape;
    if (map.form == HLO_INDEX_MEMORY)
        return hlo_shape_is_row_major(instr->shape) && hlo_shape_is_row_major(from);
    if (map.form != HLO_INDEX_PART) return map.form == HLO_INDEX_ORDER;
    for (uint32_t d = 0; d < from->rank; d++) {
        if (!hlo_index_dim(&map, d, &dim) || (dim >= 0 && dim < last)) return false;
        if (dim >= 0) last = dim;
    }
    return hlo_shape_count(from) == hlo_shape_count(instr->shape);
}
