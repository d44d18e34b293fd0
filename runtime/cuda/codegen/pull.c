/* SPDX-License-Identifier: Apache-2.0 */
/* Pulling: from an instruction at an index to its operands at their indices. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

/* Calls of emit_pull() are nested up to GROUP_MEMBERS deep. These functions have arrays of indices,
 * which must not be part of every call's frame. */
#define DEEP __attribute__((noinline))

const char *emit_pull_scalar(emit *e, const hlo_instr *instr, bool cell) {
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < instr->shape->rank; d++) at[d] = "0";
    return emit_pull(
        e, instr, emit_index_new(e, instr->shape->rank, instr->shape->dims, at, NULL, NULL), cell);
}

/* ------------------------------------------------------------------------------- index to index */

/* Returns the index of `from`, whose dimension order[d] is dimension d of the array of `index`. */
static const emit_index *permuted(emit *e, const emit_index *index, const int64_t *order,
                                  const int64_t *dims) {
    const char *at[HLO_EVAL_MAX_RANK];
    int64_t strides[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < index->rank; d++) {
        at[order[d]] = index->at[d];
        if (index->linear) strides[order[d]] = index->linear_strides[d];
    }
    return emit_index_new(e, index->rank, dims, at, index->linear, strides);
}

/* Lists dimensions from the slowest in memory to the fastest, and their sizes. */
static void physical(const hlo_shape *shape, int64_t *order, int64_t *dims) {
    for (uint32_t d = 0; d < shape->rank; d++) {
        order[d] = shape->layout ? shape->layout->minor_to_major[shape->rank - 1 - d] : d;
        dims[d] = shape->dims[order[d]];
    }
}

DEEP static const emit_index *bitcast_index(emit *e, const hlo_instr *instr,
                                            const emit_index *index) {
    const hlo_shape *to = instr->shape, *from = hlo_instr_operand(instr, 0)->shape;
    int64_t order[HLO_EVAL_MAX_RANK], inverse[HLO_EVAL_MAX_RANK], dims[HLO_EVAL_MAX_RANK];
    physical(to, order, dims);
    for (uint32_t d = 0; d < to->rank; d++) inverse[order[d]] = d;
    const emit_index *bytes = permuted(e, index, inverse, dims);
    physical(from, order, dims);
    return permuted(e, emit_reshape(e, bytes, from->rank, dims), order, from->dims);
}

const char *emit_index_element(emit *e, const hlo_instr *indices, int64_t vector, int64_t k,
                               const char *const *place) {
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0, next = 0; d < indices->shape->rank; d++)
        at[d] = d == vector ? hlo_arena_format(e->arena, "%lld", (long long)k) : place[next++];
    return emit_pull(e, indices,
                     emit_index_new(e, indices->shape->rank, indices->shape->dims, at, NULL, NULL),
                     false);
}

const char *emit_start(emit *e, const hlo_index_map *map, const hlo_index *x,
                       const emit_index *index) {
    const hlo_ints *window = hlo_instr_ints(map->instr, HLO_ATTR_OFFSET_DIMS);
    const char *place[HLO_EVAL_MAX_RANK];
    uint32_t places = 0;
    for (uint32_t d = 0; x->varies && d < index->rank; d++)
        if (!hlo_ints_contain(window, d)) place[places++] = index->at[d];
    const char *value = emit_index_element(
        e, hlo_instr_operand(map->instr, x->at),
        x->varies ? hlo_instr_int(map->instr, HLO_ATTR_INDEX_VECTOR_DIM, 0) : 0, x->element, place);
    const char *start = emit_offset(e, "(%s)place(%s, %lld)", e->offset, value, (long long)x->last);
    emit_note_start(e, start);
    return start;
}

/* Returns the index along a dimension of an operand of which the result is a part; `i` are `count`
 * indices of the result. `start`: start at run time; NULL: x->start. */
static const char *part_index(emit *e, const hlo_index *x, const char *start, const char *i,
                              int64_t count, int64_t size) {
    if (start) return count == 1 ? start : emit_offset(e, "%s + %s", start, i);
    if (size == 1) return "0";
    if (count == 1) return hlo_arena_format(e->arena, "%lld", (long long)x->start);
    if (x->stride == -1) return emit_offset(e, "%lld - %s", (long long)x->start, i);
    if (x->stride == 1) return emit_behind(e, i, x->start);
    return emit_offset(e, "%lld + %s * %lld", (long long)x->start, i, (long long)x->stride);
}

/* Returns the index along a dimension of an operand that is placed in the result. Appends to
 * `*inside` (NULL: nothing) the condition that it is inside the operand. */
static const char *placed_index(emit *e, const hlo_index *x, const char *start, const char *i,
                                int64_t size, const char **inside) {
    const long long step = x->stride;
    if (start)
        i = emit_offset(e, "%s - %s", i, start);
    else if (x->start)
        i = emit_offset(e, "%s - %lld", i, (long long)x->start);
    if (inside)
        *inside = hlo_arena_format(e->arena, "%s && %s >= 0 && %s < %lld", *inside, i, i,
                                   (long long)(size - 1) * step + 1);
    if (inside && step > 1)
        *inside = hlo_arena_format(e->arena, "%s && %s %% %lld == 0", *inside, i, step);
    if (size == 1) return "0";
    return step > 1 ? emit_offset(e, "%s / %lld", i, step) : i;
}

/* Returns the index in the operand of a map. Appends to `*inside` the condition that the operand
 * has the element. */
DEEP static const emit_index *operand_index(emit *e, const hlo_index_map *map,
                                            const emit_index *index, const char **inside) {
    const hlo_shape *from = map->from->shape;
    const char *at[HLO_EVAL_MAX_RANK];
    int64_t strides[HLO_EVAL_MAX_RANK];
    bool whole = index->linear && from->rank == index->rank;
    for (uint32_t d = 0; d < from->rank; d++) {
        hlo_index x;
        hlo_index_along(map, d, &x);
        const char *i = x.of < 0 ? "0" : index->at[x.of];
        const int64_t size = from->dims[d], count = x.of < 0 ? 1 : index->dims[x.of];
        const char *start = x.at ? emit_start(e, map, &x, index) : NULL;
        const bool same = count == size && !start && !x.start && x.stride == 1;
        whole &= same && x.of >= 0;
        if (whole) strides[d] = index->linear_strides[x.of];
        at[d] = same                            ? i
                : map->form == HLO_INDEX_PART   ? part_index(e, &x, start, i, count, size)
                : map->form == HLO_INDEX_JOINED ? placed_index(e, &x, start, i, size, NULL)
                                                : placed_index(e, &x, start, i, size, inside);
    }
    return emit_index_new(e, from->rank, from->dims, at, whole ? index->linear : NULL, strides);
}

/* ---------------------------------------------------------------------- one of several operands */

/* A variable that the branches of an `if` set. */
typedef struct choice {
    const char *name, *type;
    bool cell;
} choice;

static choice begin_choice(emit *e, hlo_type type, bool cell) {
    choice c = {emit_name(e, "v"), cell ? cuda_types[type].cell : cuda_types[type].compute, cell};
    emit_set(e, c.name, "%s %s;", c.type, c.name);
    return c;
}

static void choose(emit *e, choice c, const hlo_instr *instr, const emit_index *index) {
    emit_set(e, c.name, "%s = %s;", c.name, emit_pull(e, instr, index, c.cell));
    emit_close(e);
}

/* -------------------------------------------------------------------------------- other opcodes */

/* Returns the bits of a wide element whose parts, low bits first, are in the operand. */
static const char *joined(emit *e, const hlo_instr *operand, const emit_index *index) {
    const hlo_shape *parts = operand->shape;
    const char *at[HLO_EVAL_MAX_RANK], *all = "0";
    memcpy(at, index->at, index->rank * sizeof *at);
    for (int64_t i = 0; i < parts->dims[index->rank]; i++) {
        at[index->rank] = hlo_arena_format(e->arena, "%lld", (long long)i);
        const emit_index *part = emit_index_new(e, parts->rank, parts->dims, at, NULL, NULL);
        const char *code = emit_code(e, parts->type, emit_pull(e, operand, part, true));
        all = i ? emit_value(e, "k", "uint64", "%s | %s << %d", all, code,
                             (int)i * hlo_types[parts->type].bits)
                : code;
    }
    return all;
}

DEEP static const char *pull_bits(emit *e, const hlo_instr *instr, const emit_index *index,
                                  bool cell) {
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    const hlo_shape *from = operand->shape, *shape = instr->shape;
    const char *name, *type = cuda_types[shape->type].cell;
    const int bits = hlo_types[shape->type].bits;
    if (instr->op == HLO_OP_BITCAST_CONVERT && from->rank > shape->rank)
        name = emit_coded(e, shape->type, joined(e, operand, index));
    else if (instr->op == HLO_OP_BITCAST_CONVERT && from->rank < shape->rank) {
        const hlo_shape *wide = operand->shape;
        const emit_index *whole = emit_index_new(e, wide->rank, wide->dims, index->at, NULL, NULL);
        const char *all = emit_code(e, wide->type, emit_pull(e, operand, whole, true));
        name = emit_coded(e, shape->type,
                          emit_value(e, "k", "uint64", "%s >> (%s * %d) & 0x%llxull", all,
                                     index->at[wide->rank], bits,
                                     (unsigned long long)(UINT64_MAX >> (64 - bits))));
    } else if (bits < 8)
        name = emit_coded(e, shape->type,
                          emit_code(e, from->type, emit_pull(e, operand, index, true)));
    else
        name =
            emit_value(e, "c", type, "bits_as<%s>(%s)", type, emit_pull(e, operand, index, true));
    return cell ? name : emit_decoded(e, shape->type, name);
}

static const char *apply(emit *e, const hlo_instr *instr, const char *const *in, bool in_cells,
                         bool cell) {
    const char *out;
    emit_region(e, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), in, in_cells, &out, cell);
    return out;
}

DEEP static const char *pull_map(emit *e, const hlo_instr *instr, const emit_index *index,
                                 bool cell) {
    const char **in = hlo_arena_array(e->arena, instr->operand_count + 1, sizeof *in);
    const bool cells = emit_region_moves(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    for (uint32_t i = 0; i < instr->operand_count; i++)
        in[i] = emit_pull(e, hlo_instr_operand(instr, i), index, cells);
    return apply(e, instr, in, cells, cell);
}

DEEP static const char *pull_window(emit *e, const hlo_instr *instr, const emit_index *index,
                                    bool cell) {
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    hlo_type type = instr->shape->type;
    const bool cells = emit_region_moves(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    const char *acc = emit_name(e, "a"), *at[HLO_EVAL_MAX_RANK], *inside = "true";
    emit_text(e, "%s %s = %s;", cells ? cuda_types[type].cell : cuda_types[type].compute, acc,
              emit_pull_scalar(e, hlo_instr_operand(instr, 1), cells));
    uint32_t loops = 0;
    for (uint32_t d = 0; d < index->rank; d++) {
        hlo_window w = hlo_window_of(instr, d);
        long long size = operand->shape->dims[d];
        const char *step = "0";
        if (w.size > 1) {
            step = emit_name(e, "i");
            emit_open(e, "for (%s %s = 0; %s < %lld; %s++) {", e->offset, step, step,
                      (long long)w.size, step);
            loops++;
        }
        const char *place =
            emit_offset(e, "%s * %lld + %s * %lld - %lld", index->at[d], (long long)w.stride, step,
                        (long long)w.dilate, (long long)w.low);
        inside = hlo_arena_format(e->arena, "%s && %s >= 0 && %s < %lld", inside, place, place,
                                  (size - 1) * (long long)w.base + 1);
        if (w.base > 1)
            inside = hlo_arena_format(e->arena, "%s && %s %% %lld == 0", inside, place,
                                      (long long)w.base);
        at[d] = w.base > 1 ? emit_offset(e, "%s / %lld", place, (long long)w.base) : place;
    }
    emit_open(e, "if (%s) {", inside);
    const char *in[] = {
        acc,
        emit_pull(e, operand, emit_index_new(e, index->rank, operand->shape->dims, at, NULL, NULL),
                  cells)};
    emit_text(e, "%s = %s;", acc, apply(e, instr, in, cells, cells));
    for (loops++; loops > 0; loops--) emit_close(e);
    return emit_as(e, type, acc, cells, cell);
}

bool cuda_reduce_is_single(const hlo_instr *instr) {
    const hlo_shape *shape = hlo_instr_operand(instr, 0)->shape;
    return instr->operand_count == 2 && hlo_shape_count(shape) == hlo_shape_count(instr->shape);
}

DEEP static const char *pull_single(emit *e, const hlo_instr *instr, const emit_index *index,
                                    bool cell) {
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    const hlo_shape *shape = operand->shape;
    const bool cells = emit_region_moves(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    const char *in[] = {
        emit_pull_scalar(e, hlo_instr_operand(instr, 1), cells),
        emit_pull(e, operand, emit_reshape(e, index, shape->rank, shape->dims), cells)};
    return apply(e, instr, in, cells, cell);
}

/* ----------------------------------------------------------------------------------- the switch */

const char *cuda_pull_refusal(const hlo_instr *instr) {
    hlo_index_map map;
    if (!cuda_types[instr->shape->type].cell) return "has no CUDA kernel for its element type";
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) return cuda_elementwise_refusal(instr);
    switch (instr->op) {
    case HLO_OP_CONSTANT: return NULL;
    case HLO_OP_DOT:
        if (hlo_shape_count(hlo_instr_operand(instr, 0)->shape) == 0) return NULL;
        if (hlo_shape_count(hlo_instr_operand(instr, 1)->shape) == 0) return NULL;
        return "has no CUDA kernel";
    case HLO_OP_IOTA: return instr->shape->rank ? NULL : "must have at least one dimension";
    case HLO_OP_BITCAST:
    case HLO_OP_BITCAST_CONVERT: {
        const hlo_type from = hlo_instr_operand(instr, 0)->shape->type, to = instr->shape->type;
        const bool same = hlo_types[from].bits == hlo_types[to].bits;
        if (from == to || (same && hlo_types[to].bits >= 8)) return NULL;
        if (instr->op == HLO_OP_BITCAST)
            return "has no CUDA kernel for elements of different widths";
        return from == HLO_TYPE_PRED || to == HLO_TYPE_PRED
                   ? "has no CUDA kernel for the bits of pred"
                   : NULL;
    }
    case HLO_OP_MAP: return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    case HLO_OP_REDUCE:
        if (!cuda_reduce_is_single(instr)) return "has no CUDA kernel";
        return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    case HLO_OP_REDUCE_WINDOW:
        if (instr->operand_count != 2) return "has no CUDA kernel for several operands";
        return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    default: return hlo_index_map_first(instr, &map) ? NULL : "has no CUDA kernel";
    }
}

static const char *pull_moved(emit *e, const hlo_instr *instr, const emit_index *index, bool cell) {
    hlo_index_map *map = hlo_arena_array(e->arena, 1, sizeof *map); /* not in a nested frame */
    if (!hlo_index_map_first(instr, map)) return emit_refuse(e, "has no CUDA kernel");
    const hlo_shape *from = map->from->shape;
    switch (map->form) {
    case HLO_INDEX_PLACED: {
        /* Pulls from the one of two operands that has the element. */
        const char *inside = "true";
        const emit_index *at = operand_index(e, map, index, &inside);
        const choice c = begin_choice(e, map->instr->shape->type, cell);
        emit_open(e, "if (%s) {", inside);
        choose(e, c, map->from, at);
        emit_open(e, "else {");
        hlo_index_map_next(map);
        choose(e, c, map->from, operand_index(e, map, index, &inside));
        return c.name;
    }
    case HLO_INDEX_JOINED: {
        const int64_t dim = hlo_instr_ints(map->instr, HLO_ATTR_DIMENSIONS)->v[0];
        choice c = begin_choice(e, map->instr->shape->type, cell);
        const char *head = "";
        do {
            const int64_t size = map->from->shape->dims[dim], end = map->joined + size;
            if (!size) continue;
            if (end < index->dims[dim])
                emit_open(e, "%sif (%s < %lld) {", head, index->at[dim], (long long)end);
            else
                emit_open(e, "%s{", head);
            head = "else ";
            choose(e, c, map->from, operand_index(e, map, index, NULL));
        } while (hlo_index_map_next(map));
        return c.name;
    }
    case HLO_INDEX_PART: index = operand_index(e, map, index, NULL); break;
    case HLO_INDEX_ORDER: index = emit_reshape(e, index, from->rank, from->dims); break;
    case HLO_INDEX_MEMORY:
        index = bitcast_index(e, instr, index);
        if (from->type != instr->shape->type) return pull_bits(e, instr, index, cell);
    }
    return emit_pull(e, map->from, index, cell);
}

static const char *pull_member(emit *e, const hlo_instr *instr, const emit_index *index,
                               bool cell) {
    const char *why = cuda_pull_refusal(instr);
    if (why) return emit_refuse(e, "%s", why);
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) {
        const char *in[3] = {NULL};
        const hlo_type type = instr->shape->type;
        /* A selected NaN keeps its bits. */
        const bool chooses = instr->op == HLO_OP_SELECT && cell && hlo_type_is_float(type);
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            const hlo_instr *from = hlo_instr_operand(instr, i);
            const emit_index *at = from->shape->rank == index->rank
                                       ? index
                                       : emit_index_new(e, 0, NULL, NULL, NULL, NULL);
            in[i] = emit_pull(e, from, at, chooses ? i > 0 : emit_takes_codes(instr));
        }
        return chooses
                   ? emit_value(e, "c", cuda_types[type].cell, "%s", emit_operation(e, instr, in))
                   : emit_elementwise(e, instr, in, cell);
    }
    switch (instr->op) {
    case HLO_OP_CONSTANT: return emit_literal(e, instr->u.literal, cell);
    case HLO_OP_DOT: return cell ? emit_cell(e, instr->shape->type, "0") : "0";
    case HLO_OP_IOTA: {
        hlo_type type = instr->shape->type;
        const char *value =
            emit_value(e, "v", cuda_types[type].compute, "convert_%s((%s)%s)", hlo_types[type].name,
                       e->offset, index->at[hlo_instr_int(instr, HLO_ATTR_IOTA_DIMENSION, 0)]);
        return cell ? emit_cell(e, type, value) : value;
    }
    case HLO_OP_MAP: return pull_map(e, instr, index, cell);
    case HLO_OP_BITCAST_CONVERT: return pull_bits(e, instr, index, cell);
    case HLO_OP_REDUCE: return pull_single(e, instr, index, cell);
    case HLO_OP_REDUCE_WINDOW: return pull_window(e, instr, index, cell);
    default: return pull_moved(e, instr, index, cell);
    }
}

const char *emit_pull(emit *e, const hlo_instr *instr, const emit_index *index, bool cell) {
    if (e->why) return "0";
    const hlo_type type = instr->shape->type;
    cell = cell && !emit_is_wide(type);
    const char *name = emit_remembered(e, instr, index, cell);
    if (name) return name;
    for (uint32_t i = 0; i < e->known_count && !name; i++)
        if (e->known[i].instr == instr)
            name = emit_as(e, type, e->known[i].name, e->known[i].cell, cell);
    const bool member = emit_is_member(e, instr);
    if (!name && !cell && !emit_is_wide(type) && (!member || emit_makes_cell(instr)))
        name = emit_decoded(e, type, emit_pull(e, instr, index, true));
    if (!name)
        name =
            member ? pull_member(e, instr, index, cell) : emit_load(e, emit_leaf(e, instr), index);
    emit_remember(e, instr, index, cell, name);
    return name;
}
