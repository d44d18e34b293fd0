/* Pulling: from an instruction at an index to its operands at theirs. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

/* A group nests up to GROUP_MEMBERS operands, each a call of emit_pull(). These functions have
 * arrays of indices, which must not be part of every call's frame. */
#define DEEP __attribute__((noinline))

const char *emit_pull_scalar(emit *e, const hlo_instr *instr, bool cell) {
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < instr->shape->rank; d++) at[d] = "0";
    return emit_pull(
        e, instr, emit_index_new(e, instr->shape->rank, instr->shape->dims, at, NULL, NULL), cell);
}

/* ------------------------------------------------------------------------------- index to index */

static const emit_index *broadcast_index(emit *e, const hlo_instr *instr, const emit_index *index) {
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
    const hlo_ints *dims = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS);
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < from->rank; d++)
        at[d] = from->dims[d] == 1 ? "0" : index->at[dims->v[d]];
    return emit_index_new(e, from->rank, from->dims, at, NULL, NULL);
}

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

static const emit_index *bitcast_index(emit *e, const hlo_instr *instr, const emit_index *index) {
    const hlo_shape *to = instr->shape, *from = hlo_instr_operand(instr, 0)->shape;
    int64_t order[HLO_EVAL_MAX_RANK], inverse[HLO_EVAL_MAX_RANK], dims[HLO_EVAL_MAX_RANK];
    physical(to, order, dims);
    for (uint32_t d = 0; d < to->rank; d++) inverse[order[d]] = d;
    const emit_index *bytes = permuted(e, index, inverse, dims);
    physical(from, order, dims);
    return permuted(e, emit_reshape(e, bytes, from->rank, dims), order, from->dims);
}

static const emit_index *slice_index(emit *e, const hlo_instr *instr, const emit_index *index) {
    const hlo_ints *slices = hlo_instr_ints(instr, HLO_ATTR_SLICE);
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < index->rank; d++) {
        long long start = slices->v[3 * d], step = slices->v[3 * d + 2];
        if (index->dims[d] == 1)
            at[d] = hlo_arena_format(e->arena, "%lld", start);
        else if (step != 1)
            at[d] = emit_offset(e, "%lld + %s * %lld", start, index->at[d], step);
        else
            at[d] = emit_behind(e, index->at[d], start);
    }
    return emit_index_new(e, index->rank, hlo_instr_operand(instr, 0)->shape->dims, at, NULL, NULL);
}

static const emit_index *reverse_index(emit *e, const hlo_instr *instr, const emit_index *index) {
    const hlo_ints *dims = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS);
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < index->rank; d++)
        at[d] = hlo_ints_contain(dims, d) && index->dims[d] > 1
                    ? emit_offset(e, "%lld - %s", (long long)index->dims[d] - 1, index->at[d])
                    : index->at[d];
    return emit_index_new(e, index->rank, index->dims, at, NULL, NULL);
}

void emit_starts(emit *e, const hlo_instr *instr, uint32_t first, uint32_t rank,
                 const int64_t *dims, const int64_t *sizes, const char **out_start) {
    for (uint32_t d = 0; d < rank; d++) {
        const hlo_instr *from = hlo_instr_operand(instr, first);
        const char *at = hlo_arena_format(e->arena, "%u", d), *value;
        if (from->shape->rank == 1)
            value =
                emit_pull(e, from, emit_index_new(e, 1, from->shape->dims, &at, NULL, NULL), false);
        else
            value = emit_pull_scalar(e, hlo_instr_operand(instr, first + d), false);
        out_start[d] = dims[d] == sizes[d] ? "0"
                                           : emit_offset(e, "(%s)place(%s, %lld)", e->offset, value,
                                                         (long long)(dims[d] - sizes[d]));
        emit_note_start(e, out_start[d]);
    }
}

static const emit_index *dynamic_slice_index(emit *e, const hlo_instr *instr,
                                             const emit_index *index) {
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
    const char *start[HLO_EVAL_MAX_RANK], *at[HLO_EVAL_MAX_RANK];
    emit_starts(e, instr, 1, from->rank, from->dims, instr->shape->dims, start);
    for (uint32_t d = 0; d < from->rank; d++) {
        at[d] = index->at[d];
        if (strcmp(start[d], "0") != 0)
            at[d] = index->dims[d] == 1 ? start[d] : emit_offset(e, "%s + %s", start[d], at[d]);
    }
    return emit_index_new(e, from->rank, from->dims, at, NULL, NULL);
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

static const emit_index *gather_index(emit *e, const hlo_instr *instr, const emit_index *index) {
    const hlo_instr *indices = hlo_instr_operand(instr, 1);
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
    const hlo_ints *window = hlo_instr_ints(instr, HLO_ATTR_OFFSET_DIMS);
    const hlo_ints *dropped = hlo_instr_ints(instr, HLO_ATTR_COLLAPSED_SLICE_DIMS);
    const hlo_ints *batching = hlo_instr_ints(instr, HLO_ATTR_OPERAND_BATCHING_DIMS);
    const hlo_ints *with = hlo_instr_ints(instr, HLO_ATTR_START_INDICES_BATCHING_DIMS);
    const hlo_ints *map = hlo_instr_ints(instr, HLO_ATTR_START_INDEX_MAP);
    const hlo_ints *sizes = hlo_instr_ints(instr, HLO_ATTR_SLICE_SIZES);
    int64_t vector = hlo_instr_int(instr, HLO_ATTR_INDEX_VECTOR_DIM, 0);
    const char *place[HLO_EVAL_MAX_RANK], *at[HLO_EVAL_MAX_RANK];
    uint32_t places = 0, windows = 0;
    for (uint32_t d = 0; d < index->rank; d++)
        if (!hlo_ints_contain(window, d)) place[places++] = index->at[d];
    for (uint32_t d = 0; d < from->rank; d++) {
        at[d] = "0";
        if (!hlo_ints_contain(dropped, d) && !hlo_ints_contain(batching, d))
            at[d] = index->at[window->v[windows++]];
    }
    for (uint32_t i = 0; i < batching->count; i++)
        at[batching->v[i]] = place[with->v[i] - (with->v[i] > vector)];
    for (uint32_t k = 0; k < map->count; k++) {
        int64_t d = map->v[k];
        const char *value = emit_index_element(e, indices, vector, k, place);
        const char *start = emit_offset(e, "(%s)place(%s, %lld)", e->offset, value,
                                        (long long)(from->dims[d] - sizes->v[d]));
        emit_note_start(e, start);
        at[d] = strcmp(at[d], "0") == 0 ? start : emit_offset(e, "%s + %s", start, at[d]);
    }
    return emit_index_new(e, from->rank, from->dims, at, NULL, NULL);
}

/* Returns the index of operand 0 for opcodes that only move its elements; NULL for others. */
static const emit_index *moved(emit *e, const hlo_instr *instr, const emit_index *index) {
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
    switch (instr->op) {
    case HLO_OP_COPY: return index;
    case HLO_OP_BROADCAST: return broadcast_index(e, instr, index);
    case HLO_OP_RESHAPE: return emit_reshape(e, index, from->rank, from->dims);
    case HLO_OP_BITCAST: return bitcast_index(e, instr, index);
    case HLO_OP_TRANSPOSE:
        return permuted(e, index, hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v, from->dims);
    case HLO_OP_SLICE: return slice_index(e, instr, index);
    case HLO_OP_REVERSE: return reverse_index(e, instr, index);
    case HLO_OP_DYNAMIC_SLICE: return dynamic_slice_index(e, instr, index);
    case HLO_OP_GATHER: return gather_index(e, instr, index);
    default: return NULL;
    }
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

static const emit_index *scalar_index(emit *e) {
    return emit_index_new(e, 0, NULL, NULL, NULL, NULL);
}

DEEP static const char *pull_concatenate(emit *e, const hlo_instr *instr, const emit_index *index,
                                         bool cell) {
    int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0], start = 0;
    choice c = begin_choice(e, instr->shape->type, cell);
    const char *at[HLO_EVAL_MAX_RANK];
    memcpy(at, index->at, index->rank * sizeof *at);
    const char *head = "";
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *operand = hlo_instr_operand(instr, i);
        int64_t end = start + operand->shape->dims[dim];
        if (start == end) continue;
        if (end < index->dims[dim])
            emit_open(e, "%sif (%s < %lld) {", head, index->at[dim], (long long)end);
        else
            emit_open(e, "%s{", head);
        head = "else ";
        at[dim] =
            start ? emit_offset(e, "%s - %lld", index->at[dim], (long long)start) : index->at[dim];
        if (operand->shape->dims[dim] == 1) at[dim] = "0";
        choose(e, c, operand, emit_index_new(e, index->rank, operand->shape->dims, at, NULL, NULL));
        start = end;
    }
    return c.name;
}

DEEP static const char *pull_pad(emit *e, const hlo_instr *instr, const emit_index *index,
                                 bool cell) {
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    const hlo_ints *padding = hlo_instr_ints(instr, HLO_ATTR_PADDING);
    const char *at[HLO_EVAL_MAX_RANK], *inside = "true";
    for (uint32_t d = 0; d < index->rank; d++) {
        long long below = padding->v[3 * d], step = padding->v[3 * d + 2] + 1;
        long long size = operand->shape->dims[d];
        at[d] = index->at[d];
        if (index->dims[d] == size && below == 0 && step == 1) continue;
        const char *shifted = below ? emit_offset(e, "%s - %lld", index->at[d], below) : at[d];
        inside = hlo_arena_format(e->arena, "%s && %s >= 0 && %s < %lld", inside, shifted, shifted,
                                  (size - 1) * step + 1);
        if (step > 1)
            inside = hlo_arena_format(e->arena, "%s && %s %% %lld == 0", inside, shifted, step);
        at[d] = size == 1 ? "0" : step > 1 ? emit_offset(e, "%s / %lld", shifted, step) : shifted;
    }
    choice c = begin_choice(e, instr->shape->type, cell);
    emit_open(e, "if (%s) {", inside);
    choose(e, c, operand, emit_index_new(e, index->rank, operand->shape->dims, at, NULL, NULL));
    emit_open(e, "else {");
    choose(e, c, hlo_instr_operand(instr, 1), scalar_index(e));
    return c.name;
}

DEEP static const char *pull_update(emit *e, const hlo_instr *instr, const emit_index *index,
                                    bool cell) {
    const hlo_instr *update = hlo_instr_operand(instr, 1);
    const char *start[HLO_EVAL_MAX_RANK], *at[HLO_EVAL_MAX_RANK], *inside = "true";
    emit_starts(e, instr, 2, index->rank, index->dims, update->shape->dims, start);
    for (uint32_t d = 0; d < index->rank; d++) {
        at[d] = index->at[d];
        if (update->shape->dims[d] == index->dims[d]) continue;
        at[d] = emit_offset(e, "%s - %s", index->at[d], start[d]);
        inside = hlo_arena_format(e->arena, "%s && %s >= 0 && %s < %lld", inside, at[d], at[d],
                                  (long long)update->shape->dims[d]);
        if (update->shape->dims[d] == 1) at[d] = "0";
    }
    choice c = begin_choice(e, instr->shape->type, cell);
    emit_open(e, "if (%s) {", inside);
    choose(e, c, update, emit_index_new(e, index->rank, update->shape->dims, at, NULL, NULL));
    emit_open(e, "else {");
    choose(e, c, hlo_instr_operand(instr, 0), index);
    return c.name;
}

/* -------------------------------------------------------------------------------- other opcodes */

/* Returns the bits of a wide element, which the operand has in parts, low bits first. */
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

/* Returns the bits of a part of the operand's wide element; the last index numbers the parts. */
static const char *part_of(emit *e, const hlo_instr *operand, const emit_index *index, int bits) {
    const hlo_shape *wide = operand->shape;
    const emit_index *whole = emit_index_new(e, wide->rank, wide->dims, index->at, NULL, NULL);
    const char *all = emit_code(e, wide->type, emit_pull(e, operand, whole, true));
    return emit_value(e, "k", "uint64", "%s >> (%s * %d) & 0x%llxull", all, index->at[wide->rank],
                      bits, (unsigned long long)(UINT64_MAX >> (64 - bits)));
}

DEEP static const char *pull_bits(emit *e, const hlo_instr *instr, const emit_index *index,
                                  bool cell) {
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    const hlo_shape *from = operand->shape, *shape = instr->shape;
    const char *name, *type = cuda_types[shape->type].cell;
    const int bits = hlo_types[shape->type].bits;
    if (instr->op == HLO_OP_BITCAST_CONVERT && from->rank > shape->rank)
        name = emit_coded(e, shape->type, joined(e, operand, index));
    else if (instr->op == HLO_OP_BITCAST_CONVERT && from->rank < shape->rank)
        name = emit_coded(e, shape->type, part_of(e, operand, index, bits));
    else if (bits < 8)
        name = emit_coded(e, shape->type,
                          emit_code(e, from->type, emit_pull(e, operand, index, true)));
    else
        name =
            emit_value(e, "c", type, "bits_as<%s>(%s)", type, emit_pull(e, operand, index, true));
    return cell ? name : emit_decoded(e, shape->type, name);
}

static const char *pull_elementwise(emit *e, const hlo_instr *instr, const emit_index *index,
                                    bool cell) {
    const char *in[3] = {NULL};
    const hlo_type type = instr->shape->type;
    /* A NaN that is chosen keeps its bits. */
    const bool chooses = instr->op == HLO_OP_SELECT && cell && hlo_type_is_float(type);
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *from = hlo_instr_operand(instr, i);
        const emit_index *at = from->shape->rank == index->rank ? index : scalar_index(e);
        in[i] = emit_pull(e, from, at, chooses ? i > 0 : emit_takes_codes(instr));
    }
    if (chooses)
        return emit_value(e, "c", cuda_types[type].cell, "%s", emit_operation(e, instr, in));
    return emit_elementwise(e, instr, in, cell);
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

static const char *pull_iota(emit *e, const hlo_instr *instr, const emit_index *index, bool cell) {
    hlo_type type = instr->shape->type;
    const char *value =
        emit_value(e, "v", cuda_types[type].compute, "convert_%s((%s)%s)", hlo_types[type].name,
                   e->offset, index->at[hlo_instr_int(instr, HLO_ATTR_IOTA_DIMENSION, 0)]);
    return cell ? emit_cell(e, type, value) : value;
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

/* Returns why the bits of the operand cannot be reinterpreted as the result, or NULL. */
static const char *bits_refusal(const hlo_instr *instr) {
    const hlo_type from = hlo_instr_operand(instr, 0)->shape->type, to = instr->shape->type;
    const bool same = hlo_types[from].bits == hlo_types[to].bits;
    if (from == to || (same && hlo_types[to].bits >= 8)) return NULL;
    if (instr->op == HLO_OP_BITCAST) return "has no CUDA kernel for elements of different widths";
    return from == HLO_TYPE_PRED || to == HLO_TYPE_PRED ? "has no CUDA kernel for the bits of pred"
                                                        : NULL;
}

/* True if a dot sums no products, so that all its elements are 0. */
static bool is_sum_of_none(const hlo_instr *dot) {
    return hlo_shape_count(hlo_instr_operand(dot, 0)->shape) == 0 ||
           hlo_shape_count(hlo_instr_operand(dot, 1)->shape) == 0;
}

const char *cuda_pull_refusal(const hlo_instr *instr) {
    if (!cuda_types[instr->shape->type].cell) return "has no CUDA kernel for its element type";
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) return cuda_elementwise_refusal(instr);
    switch (instr->op) {
    case HLO_OP_CONSTANT:
    case HLO_OP_CONCATENATE:
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return NULL;
    case HLO_OP_DOT: return is_sum_of_none(instr) ? NULL : "has no CUDA kernel";
    case HLO_OP_IOTA: return instr->shape->rank ? NULL : "must have at least one dimension";
    case HLO_OP_BITCAST:
    case HLO_OP_BITCAST_CONVERT: return bits_refusal(instr);
    case HLO_OP_MAP: return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    case HLO_OP_REDUCE:
        if (!cuda_reduce_is_single(instr)) return "has no CUDA kernel";
        return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    case HLO_OP_REDUCE_WINDOW:
        if (instr->operand_count != 2) return "has no CUDA kernel for several operands";
        return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    default: return hlo_op_is(instr->op, HLO_MOVEMENT) ? NULL : "has no CUDA kernel";
    }
}

static const char *pull_member(emit *e, const hlo_instr *instr, const emit_index *index,
                               bool cell) {
    const char *why = cuda_pull_refusal(instr);
    if (why) return emit_refuse(e, "%s", why);
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) return pull_elementwise(e, instr, index, cell);
    switch (instr->op) {
    case HLO_OP_CONSTANT: return emit_literal(e, instr->u.literal, cell);
    case HLO_OP_DOT: return cell ? emit_cell(e, instr->shape->type, "0") : "0";
    case HLO_OP_IOTA: return pull_iota(e, instr, index, cell);
    case HLO_OP_MAP: return pull_map(e, instr, index, cell);
    case HLO_OP_CONCATENATE: return pull_concatenate(e, instr, index, cell);
    case HLO_OP_PAD: return pull_pad(e, instr, index, cell);
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return pull_update(e, instr, index, cell);
    case HLO_OP_BITCAST_CONVERT: return pull_bits(e, instr, index, cell);
    case HLO_OP_REDUCE: return pull_single(e, instr, index, cell);
    case HLO_OP_REDUCE_WINDOW: return pull_window(e, instr, index, cell);
    default: break;
    }
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    if (instr->op == HLO_OP_BITCAST && operand->shape->type != instr->shape->type)
        return pull_bits(e, instr, moved(e, instr, index), cell);
    return emit_pull(e, operand, moved(e, instr, index), cell);
}

static const char *known_value(emit *e, const hlo_instr *instr, bool cell) {
    for (uint32_t i = 0; i < e->known_count; i++)
        if (e->known[i].instr == instr)
            return emit_as(e, instr->shape->type, e->known[i].name, e->known[i].cell, cell);
    return NULL;
}

const char *emit_pull(emit *e, const hlo_instr *instr, const emit_index *index, bool cell) {
    if (e->why) return "0";
    const hlo_type type = instr->shape->type;
    cell = cell && !emit_is_wide(type);
    const char *name = emit_remembered(e, instr, index, cell);
    if (name) return name;
    name = known_value(e, instr, cell);
    const bool member = emit_is_member(e, instr);
    if (!name && !cell && !emit_is_wide(type) && (!member || emit_makes_cell(instr)))
        name = emit_decoded(e, type, emit_pull(e, instr, index, true));
    if (!name)
        name =
            member ? pull_member(e, instr, index, cell) : emit_load(e, emit_leaf(e, instr), index);
    emit_remember(e, instr, index, cell, name);
    return name;
}
