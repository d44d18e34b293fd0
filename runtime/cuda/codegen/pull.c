/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls the value of an instruction at an index: maps the index to indices of operands, and writes
 * elementwise opcodes, literals, roundings and regions. */
#include <math.h>
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/eval/range.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "ir/module/known.h"
#include "runtime/cuda/codegen/emit.h"

/* Calls of emit_pull() are nested up to GROUP_MEMBERS deep. Therefore functions with large local
 * arrays must not be inlined into the frame of each call. */
#define DEEP __attribute__((noinline))

/* A value of a region or a constant. `name` has the value. `cell` has the form in memory, or is
 * NULL if this form must be derived from `name`. */
typedef struct region_value {
    const char *name, *cell;
} region_value;

static const char *cell_of(emit *e, hlo_type type, region_value value) {
    return value.cell ? value.cell : emit_cell(e, type, value.name);
}

/* ------------------------------------------------------------------------------------- rounding */

const char *emit_cell(emit *e, hlo_type type, const char *value) {
    if (emit_is_wide(type)) return value;
    return emit_value(e, "c", cuda_types[type].cell, "to_%s(%s)", hlo_types[type].name, value);
}

const char *emit_decoded(emit *e, hlo_type type, const char *cell) {
    if (emit_is_wide(type)) return cell;
    return emit_value(e, "v", cuda_types[type].compute, "from_%s(%s)", hlo_types[type].name, cell);
}

const char *emit_as(emit *e, hlo_type type, const char *it, bool is_cell, bool cell) {
    if (is_cell == cell) return it;
    return cell ? emit_cell(e, type, it) : emit_decoded(e, type, it);
}

const char *emit_round(emit *e, hlo_type type, const char *expression, bool cell) {
    if (emit_is_wide(type)) return emit_value(e, "v", cuda_types[type].compute, "%s", expression);
    if (type == HLO_TYPE_PRED && !cell) return emit_value(e, "v", "bool", "%s", expression);
    const char *name = emit_cell(e, type, expression);
    return cell ? name : emit_decoded(e, type, name);
}

static const char *code_of(emit *e, hlo_type type, const char *cell) {
    if (type == HLO_TYPE_F32) return emit_value(e, "k", "uint64", "bits_as<uint>(%s)", cell);
    if (type == HLO_TYPE_F64) return emit_value(e, "k", "uint64", "bits_as<uint64>(%s)", cell);
    return emit_value(e, "k", "uint64", "(uint64)%s & 0x%llxull", cell,
                      (unsigned long long)(UINT64_MAX >> (64 - hlo_types[type].bits)));
}

static const char *from_code(emit *e, hlo_type type, const char *code) {
    const char *cell = cuda_types[type].cell;
    if (type == HLO_TYPE_F32) return emit_value(e, "c", cell, "bits_as<float>((uint)(%s))", code);
    if (type == HLO_TYPE_F64) return emit_value(e, "c", cell, "bits_as<double>(%s)", code);
    if (hlo_types[type].class == HLO_CLASS_SIGNED && hlo_types[type].bits < 8)
        return emit_value(e, "c", cell, "to_%s((int)(%s))", hlo_types[type].name, code);
    return emit_value(e, "c", cell, "(%s)(%s)", cell, code);
}

/* ------------------------------------------------------------------------------------- literals */

static const char *float_text(emit *e, double value, bool wide) {
    if (isinf(value))
        return hlo_arena_format(e->arena, "(%s%sfloat_inf())", wide ? "(double)" : "",
                                value < 0 ? "-" : "");
    const char *suffix = wide ? "" : "f";
    if (value == trunc(value) && fabs(value) < 1e6)
        return hlo_arena_format(e->arena, signbit(value) ? "(%.1f%s)" : "%.1f%s", value, suffix);
    return hlo_arena_format(e->arena, signbit(value) ? "(%a%s)" : "%a%s", value, suffix);
}

/* Returns the literal's element. A NaN keeps its bits, because they include its sign. */
static region_value literal(emit *e, const hlo_literal *literal) {
    hlo_type type = literal->shape->type;
    if (!literal->data)
        return (region_value){emit_refuse(e, "requires a constant whose values are elided"), NULL};
    hlo_chunk lane;
    hlo_lane_load(type, literal->data, 0, 1, &lane);
    if ((hlo_lane_of(type) == HLO_LANE_F32 && isnan(lane.f32[0])) ||
        (hlo_lane_of(type) == HLO_LANE_F64 && isnan(lane.f64[0]))) {
        unsigned long long code = 0;
        memcpy(&code, literal->data, hlo_types[type].bytes);
        const char *cell = from_code(e, type, hlo_arena_format(e->arena, "0x%llxull", code));
        return (region_value){emit_decoded(e, type, cell), cell};
    }
    const char *suffix = hlo_types[type].bits == 64 ? "ll" : "";
    const long long number = (long long)lane.s64[0];
    switch (hlo_lane_of(type)) {
    case HLO_LANE_F32: return (region_value){float_text(e, (double)lane.f32[0], false), NULL};
    case HLO_LANE_F64: return (region_value){float_text(e, lane.f64[0], true), NULL};
    case HLO_LANE_S64: /* C has no literal for the smallest number */
        return (region_value){number >= 0
                                  ? hlo_arena_format(e->arena, "%lld%s", number, suffix)
                                  : hlo_arena_format(e->arena, "(%lld%s - 1)", number + 1, suffix),
                              NULL};
    case HLO_LANE_U64:
        if (type == HLO_TYPE_PRED) return (region_value){number ? "true" : "false", NULL};
        return (region_value){
            hlo_arena_format(e->arena, "%lluu%s", (unsigned long long)lane.u64[0], suffix), NULL};
    default:
        return (region_value){
            emit_refuse(e, "has no CUDA kernel for elements of type %s", hlo_types[type].name),
            NULL};
    }
}

/* ---------------------------------------------------------------------------------- elementwise */

static const char *type_refusal(const hlo_shape *shape) {
    return cuda_types[shape->type].cell ? NULL : "has no CUDA kernel for its element type";
}

static const char *elementwise_refusal(const hlo_instruction *instr) {
    const char *why = type_refusal(instr->shape);
    for (uint32_t i = 0; i < instr->operand_count && !why; i++)
        why = type_refusal(hlo_instr_operand(instr, i)->shape);
    if (why || instr->op == HLO_OP_CONVERT) return why;
    const hlo_elementwise *op = hlo_kernel_elementwise(instr);
    const hlo_instruction *last = hlo_instr_operand(instr, instr->operand_count - 1);
    if (!op || !hlo_elementwise_loop(op, last->shape->type))
        return "is not defined for this element type";
    return NULL;
}

/* True if an elementwise instruction operates on its operands' cells, not on their values. */
static bool takes_codes(const hlo_instruction *instr) {
    const char *order = hlo_instr_str(instr, HLO_ATTR_TYPE);
    return instr->op == HLO_OP_COMPARE && order && strcmp(order, "TOTALORDER") == 0 &&
           hlo_type_is_float(hlo_instr_operand(instr, 0)->shape->type);
}

const char *emit_operation(emit *e, const hlo_instruction *instr, const char *const *in) {
    hlo_type type = hlo_instr_operand(instr, 0)->shape->type;
    if (instr->op == HLO_OP_SELECT)
        return hlo_arena_format(e->arena, "%s ? %s : %s", in[0], in[1], in[2]);
    if (takes_codes(instr)) {
        /* Compare codes in the total order. */
        const char *bits = type == HLO_TYPE_F32   ? "bits_as<uint>"
                           : type == HLO_TYPE_F64 ? "bits_as<uint64>"
                                                  : "";
        uint64_t sign = hlo_float_sign(type);
        return hlo_arena_format(e->arena, "compare_%s_total(%s(%s), %s(%s), %lluull, %s)",
                                hlo_instr_str(instr, HLO_ATTR_DIRECTION), bits, in[0], bits, in[1],
                                (unsigned long long)sign,
                                sign && isnan(hlo_float_decode(type, sign)) ? "false" : "true");
    }
    if (instr->op == HLO_OP_DIVIDE && type == HLO_TYPE_BF16)
        return hlo_arena_format(e->arena, "op_divide_bf16(%s, %s)", in[0],
                                emit_value(e, "d", "divisor_bf16", "divide_by(%s)", in[1]));
    char *name =
        instr->op == HLO_OP_COMPARE
            ? hlo_arena_format(e->arena, "compare_%s", hlo_instr_str(instr, HLO_ATTR_DIRECTION))
            : hlo_arena_format(e->arena, "op_%s", hlo_ops[instr->op].name);
    for (char *at = name; *at; at++)
        if (*at == '-') *at = '_';
    const char *text = hlo_arena_format(e->arena, "%s(%s", name, in[0]);
    for (uint32_t i = 1; i < instr->operand_count; i++)
        text = hlo_arena_format(e->arena, "%s, %s", text, in[i]);
    switch (instr->op) {
    case HLO_OP_NOT:
    case HLO_OP_POPCNT:
    case HLO_OP_CLZ:
    case HLO_OP_SHIFT_LEFT:
    case HLO_OP_SHIFT_RIGHT_ARITHMETIC:
    case HLO_OP_SHIFT_RIGHT_LOGICAL:
    case HLO_OP_MULHI: /* the operation needs the number of bits of an element */
        return hlo_arena_format(e->arena, "%s, %d)", text, hlo_types[type].bits);
    case HLO_OP_REDUCE_PRECISION: {
        hlo_type reduced = hlo_reduced_type(type);
        int digits = hlo_float_precision(reduced);
        return hlo_arena_format(e->arena, "%s, %d, %d, %d, %d)", text,
                                hlo_types[reduced].bits - digits, digits,
                                (int)hlo_instr_int(instr, HLO_ATTR_EXPONENT_BITS, 8),
                                (int)hlo_instr_int(instr, HLO_ATTR_MANTISSA_BITS, 23));
    }
    default: return hlo_arena_format(e->arena, "%s)", text);
    }
}

/* True for a conversion between float types whose result is computed as a cell. */
static bool is_rounding(hlo_type from, hlo_type to) {
    return from != to && hlo_lane_of(from) == HLO_LANE_F32 && hlo_lane_of(to) == HLO_LANE_F32 &&
           !emit_is_wide(to);
}

/* True if the result of the instruction is always representable in its type. */
static bool needs_no_rounding(const hlo_instruction *instr) {
    switch (instr->op) {
    case HLO_OP_MAXIMUM:
    case HLO_OP_MINIMUM:
    case HLO_OP_CLAMP:
    case HLO_OP_SELECT: return true;
    case HLO_OP_ABS:
    case HLO_OP_NEGATE:
        return instr->shape->type == HLO_TYPE_BF16 || instr->shape->type == HLO_TYPE_F16;
    default: return instr->shape->type == HLO_TYPE_PRED;
    }
}

const char *emit_cast(emit *e, hlo_type from, hlo_type to, bool within, const char *in, bool cell) {
    const char *name = hlo_types[to].name;
    if (from == to) return cell ? emit_cell(e, to, in) : in;
    if (is_rounding(from, to)) {
        const char *bits = within
                               ? emit_value(e, "c", cuda_types[to].cell, "clamped_%s(%s)", name, in)
                               : emit_cell(e, to, in);
        return cell ? bits : emit_decoded(e, to, bits);
    }
    const char *value = emit_value(e, "v", cuda_types[to].compute, "convert_%s(%s)", name, in);
    return cell ? emit_cell(e, to, value) : value;
}

/* Returns a variable with the rounded result of an elementwise instruction. */
static const char *apply_elementwise(emit *e, const hlo_instruction *instr, const char *const *in,
                                     bool cell) {
    if (instr->op == HLO_OP_CONVERT) {
        hlo_type from = hlo_instr_operand(instr, 0)->shape->type, to = instr->shape->type;
        /* The hardware instruction needs no comparison if the operand is in the type's range. */
        bool within = false;
        if (from != to && (to == HLO_TYPE_F8E4M3FN || to == HLO_TYPE_F8E5M2)) {
            const hlo_range range = hlo_range_of(hlo_instr_operand(instr, 0));
            const double most = hlo_float_max(to);
            within = range.low >= -most && range.high <= most;
        }
        return emit_cast(e, from, to, within, in[0], cell);
    }
    const char *expression = emit_operation(e, instr, in);
    hlo_type type = instr->shape->type;
    if (!needs_no_rounding(instr)) return emit_round(e, type, expression, cell);
    const char *value = emit_value(e, "v", cuda_types[type].compute, "%s", expression);
    return cell ? emit_cell(e, type, value) : value;
}

/* -------------------------------------------------------------------------------------- regions */

const char *cuda_region_refusal(const hlo_computation *region) {
    static const char unsupported[] = "applies a computation that is not supported on CUDA";
    const char *why = hlo_region_refusal(region) ? unsupported : NULL;
    for (const hlo_instruction *i = region->first; i && !why; i = hlo_instr_next(i)) {
        const bool root_tuple = i->op == HLO_OP_TUPLE && i == region->root;
        if (i->op == HLO_OP_CONDITIONAL || (i->shape->type == HLO_TYPE_TUPLE && !root_tuple))
            why = unsupported;
        else if (hlo_instr_called(i))
            why = cuda_region_refusal(hlo_instr_called(i));
        else if (i->op != HLO_OP_TUPLE && i->op != HLO_OP_PARAMETER && i->op != HLO_OP_CONSTANT &&
                 !hlo_region_passes_on(i))
            why = elementwise_refusal(i);
        else if (i->op != HLO_OP_TUPLE)
            why = type_refusal(i->shape);
    }
    return why;
}

bool emit_region_moves(const hlo_computation *region) {
    const hlo_instruction *root = region->root;
    bool any = false;
    for (const hlo_instruction *i = region->first; i && !any; i = hlo_instr_next(i)) {
        if (hlo_instr_called(i)) {
            any = emit_region_moves(hlo_instr_called(i));
            continue;
        }
        const bool orders = takes_codes(i);
        const hlo_type type = (orders ? hlo_instr_operand(i, 0) : i)->shape->type;
        bool result = i == root;
        for (uint32_t o = 0; root->op == HLO_OP_TUPLE && o < root->operand_count; o++)
            result |= hlo_instr_operand(root, o) == i;
        any = hlo_type_is_float(type) && !emit_is_wide(type) &&
              (orders || i->op == HLO_OP_SELECT || hlo_region_passes_on(i) ||
               (result && i->op == HLO_OP_PARAMETER));
    }
    return any;
}

static void write_region(emit *e, const hlo_computation *region, const region_value *in,
                         region_value *out) {
    uint32_t first = UINT32_MAX, last = 0;
    for (const hlo_instruction *i = region->first; i; i = hlo_instr_next(i)) {
        if (i->id < first) first = i->id;
        if (i->id > last) last = i->id;
    }
    region_value *values = hlo_arena_zero(e->arena, (last - first + 1) * sizeof *values);
    for (const hlo_instruction *i = region->first; i; i = hlo_instr_next(i)) {
        region_value *own = &values[i->id - first];
        region_value *operands = hlo_arena_array(e->arena, i->operand_count + 1, sizeof *operands);
        for (uint32_t o = 0; o < i->operand_count; o++)
            operands[o] = values[hlo_instr_operand(i, o)->id - first];
        if (i->op == HLO_OP_PARAMETER)
            *own = in[i->u.parameter];
        else if (i->op == HLO_OP_CONSTANT)
            *own = literal(e, i->u.literal);
        else if (i->op == HLO_OP_TUPLE)
            memcpy(out, operands, i->operand_count * sizeof *operands);
        else if (hlo_region_passes_on(i))
            *own = operands[0];
        else if (hlo_instr_called(i))
            write_region(e, hlo_instr_called(i), operands, own);
        else {
            /* Also select the cells of narrow floats, so that a NaN keeps its bits. */
            const char **texts = hlo_arena_array(e->arena, i->operand_count + 1, sizeof *texts);
            for (uint32_t o = 0; o < i->operand_count; o++) {
                const hlo_type type = hlo_instr_operand(i, o)->shape->type;
                texts[o] = takes_codes(i) ? cell_of(e, type, operands[o]) : operands[o].name;
            }
            region_value made = {apply_elementwise(e, i, texts, false), NULL};
            const hlo_type type = i->shape->type;
            if (i->op == HLO_OP_SELECT && (operands[1].cell || operands[2].cell) &&
                !emit_is_wide(type))
                made.cell =
                    emit_value(e, "c", cuda_types[type].cell, "%s ? %s : %s", texts[0],
                               cell_of(e, type, operands[1]), cell_of(e, type, operands[2]));
            *own = made;
        }
    }
    if (region->root->op != HLO_OP_TUPLE) out[0] = values[region->root->id - first];
}

void emit_region(emit *e, const hlo_computation *region, const char *const *in, bool in_cells,
                 const char **out, bool out_cells) {
    const hlo_instruction *root = region->root;
    const bool tuple = root->op == HLO_OP_TUPLE;
    const uint32_t outputs = tuple ? root->operand_count : 1;
    region_value *given = hlo_arena_zero(e->arena, (region->parameter_count + 1) * sizeof *given);
    region_value *made = hlo_arena_zero(e->arena, (outputs + 1) * sizeof *made);
    for (const hlo_instruction *i = region->first; i; i = hlo_instr_next(i)) {
        if (i->op != HLO_OP_PARAMETER) continue;
        const char *it = in[i->u.parameter];
        given[i->u.parameter] = (region_value){it, NULL};
        if (in_cells)
            given[i->u.parameter] = (region_value){emit_decoded(e, i->shape->type, it), it};
    }
    write_region(e, region, given, made);
    for (uint32_t o = 0; o < outputs; o++) {
        const hlo_instruction *leaf = tuple ? hlo_instr_operand(root, o) : root;
        out[o] = out_cells ? cell_of(e, leaf->shape->type, made[o]) : made[o].name;
    }
}

DEEP const char *emit_pull_scalar(emit *e, const hlo_instruction *instr, bool cell) {
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < instr->shape->rank; d++) at[d] = "0";
    return emit_pull(e, instr, emit_index_in(e, instr->shape, at), cell);
}

/* ------------------------------------------------------------------------------- index to index */

/* Returns the index in an array whose dimension order[d] is dimension d of the array of `index`. */
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

DEEP static const emit_index *bitcast_index(emit *e, const hlo_instruction *instr,
                                            const emit_index *index) {
    const hlo_shape *to = instr->shape, *from = hlo_instr_operand(instr, 0)->shape;
    int64_t order[HLO_EVAL_MAX_RANK], inverse[HLO_EVAL_MAX_RANK], dims[HLO_EVAL_MAX_RANK];
    physical(to, order, dims);
    for (uint32_t d = 0; d < to->rank; d++) inverse[order[d]] = d;
    const emit_index *bytes = permuted(e, index, inverse, dims);
    physical(from, order, dims);
    return permuted(e, emit_reshape(e, bytes, from->rank, dims), order, from->dims);
}

DEEP const char *emit_index_element(emit *e, const hlo_instruction *indices, int64_t vector,
                                    int64_t k, const char *const *place) {
    const char *at[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0, next = 0; d < indices->shape->rank; d++)
        at[d] = d == vector ? hlo_arena_format(e->arena, "%lld", (long long)k) : place[next++];
    return emit_pull(e, indices, emit_index_in(e, indices->shape, at), false);
}

DEEP const char *emit_start(emit *e, const hlo_index_map *map, const hlo_index *x,
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

/* Returns the index along a dimension of an operand of which the result is a part. `i` is one of
 * the `count` indices in the result. `start` is a start at run time; if NULL, x->start applies. */
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
 * `*inside`, unless `inside` is NULL, the condition that the index is inside the operand. */
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

/* Returns the index in a map's operand. Appends to `*inside` the condition that the index
 * is inside the operand. */
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

/* A variable that is set in the branches of an `if`. */
typedef struct choice {
    const char *name, *type;
    bool cell;
} choice;

static choice begin_choice(emit *e, hlo_type type, bool cell) {
    choice c = {emit_name(e, "v"), cell ? cuda_types[type].cell : cuda_types[type].compute, cell};
    emit_set(e, c.name, "%s %s;", c.type, c.name);
    return c;
}

static void choose(emit *e, choice c, const hlo_instruction *instr, const emit_index *index) {
    emit_set(e, c.name, "%s = %s;", c.name, emit_pull(e, instr, index, c.cell));
    emit_close(e);
}

/* -------------------------------------------------------------------------------- other opcodes */

/* Returns the bits of a wide element whose parts are elements of the operand, low bits first. */
static const char *joined(emit *e, const hlo_instruction *operand, const emit_index *index) {
    const hlo_shape *parts = operand->shape;
    const char *at[HLO_EVAL_MAX_RANK], *all = "0";
    memcpy(at, index->at, index->rank * sizeof *at);
    for (int64_t i = 0; i < parts->dims[index->rank]; i++) {
        at[index->rank] = hlo_arena_format(e->arena, "%lld", (long long)i);
        const emit_index *part = emit_index_in(e, parts, at);
        const char *code = code_of(e, parts->type, emit_pull(e, operand, part, true));
        all = i ? emit_value(e, "k", "uint64", "%s | %s << %d", all, code,
                             (int)i * hlo_types[parts->type].bits)
                : code;
    }
    return all;
}

DEEP static const char *pull_bits(emit *e, const hlo_instruction *instr, const emit_index *index,
                                  bool cell) {
    const hlo_instruction *operand = hlo_instr_operand(instr, 0);
    const hlo_shape *from = operand->shape, *shape = instr->shape;
    const char *name, *type = cuda_types[shape->type].cell;
    const int bits = hlo_types[shape->type].bits;
    if (instr->op == HLO_OP_BITCAST_CONVERT && from->rank > shape->rank)
        name = from_code(e, shape->type, joined(e, operand, index));
    else if (instr->op == HLO_OP_BITCAST_CONVERT && from->rank < shape->rank) {
        const hlo_shape *wide = operand->shape;
        const emit_index *whole = emit_index_in(e, wide, index->at);
        const char *all = code_of(e, wide->type, emit_pull(e, operand, whole, true));
        name = from_code(e, shape->type,
                         emit_value(e, "k", "uint64", "%s >> (%s * %d) & 0x%llxull", all,
                                    index->at[wide->rank], bits,
                                    (unsigned long long)(UINT64_MAX >> (64 - bits))));
    } else if (bits < 8)
        name =
            from_code(e, shape->type, code_of(e, from->type, emit_pull(e, operand, index, true)));
    else
        name =
            emit_value(e, "c", type, "bits_as<%s>(%s)", type, emit_pull(e, operand, index, true));
    return cell ? name : emit_decoded(e, shape->type, name);
}

static const char *apply(emit *e, const hlo_instruction *instr, const char *const *in,
                         bool in_cells, bool cell) {
    const char *out;
    emit_region(e, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), in, in_cells, &out, cell);
    return out;
}

DEEP static const char *pull_window(emit *e, const hlo_instruction *instr, const emit_index *index,
                                    bool cell) {
    const hlo_instruction *operand = hlo_instr_operand(instr, 0);
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
    const char *in[] = {acc, emit_pull(e, operand, emit_index_in(e, operand->shape, at), cells)};
    emit_text(e, "%s = %s;", acc, apply(e, instr, in, cells, cells));
    for (loops++; loops > 0; loops--) emit_close(e);
    return emit_as(e, type, acc, cells, cell);
}

bool cuda_reduce_is_single(const hlo_instruction *instr) {
    const hlo_shape *shape = hlo_instr_operand(instr, 0)->shape;
    return instr->operand_count == 2 && hlo_shape_count(shape) == hlo_shape_count(instr->shape);
}

/* ----------------------------------------------------------------------------------- the switch */

DEEP const char *cuda_pull_refusal(const hlo_instruction *instr) {
    hlo_index_map map;
    if (!cuda_types[instr->shape->type].cell) return "has no CUDA kernel for its element type";
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) return elementwise_refusal(instr);
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

static const char *pull_moved(emit *e, const hlo_instruction *instr, const emit_index *index,
                              bool cell) {
    hlo_index_map *map = hlo_arena_array(e->arena, 1, sizeof *map); /* not in the stack frame of
                                                                     * nested calls */
    if (!hlo_index_map_first(instr, map)) return emit_refuse(e, "has no CUDA kernel");
    const hlo_shape *from = map->from->shape;
    switch (map->form) {
    case HLO_INDEX_PLACED: {
        /* Pull from the operand that contains the element. */
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

static const char *pull_member(emit *e, const hlo_instruction *instr, const emit_index *index,
                               bool cell) {
    const char *why = cuda_pull_refusal(instr);
    if (why) return emit_refuse(e, "%s", why);
    if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) {
        const char *in[3] = {NULL};
        const hlo_type type = instr->shape->type;
        /* Select cells, so that a NaN keeps its bits. */
        const bool chooses = instr->op == HLO_OP_SELECT && cell && hlo_type_is_float(type);
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            const hlo_instruction *from = hlo_instr_operand(instr, i);
            const emit_index *at = from->shape->rank == index->rank
                                       ? index
                                       : emit_index_new(e, 0, NULL, NULL, NULL, NULL);
            in[i] = emit_pull(e, from, at, chooses ? i > 0 : takes_codes(instr));
        }
        return chooses
                   ? emit_value(e, "c", cuda_types[type].cell, "%s", emit_operation(e, instr, in))
                   : apply_elementwise(e, instr, in, cell);
    }
    switch (instr->op) {
    case HLO_OP_CONSTANT: {
        const region_value value = literal(e, instr->u.literal);
        return cell ? cell_of(e, instr->shape->type, value) : value.name;
    }
    case HLO_OP_DOT: return cell ? emit_cell(e, instr->shape->type, "0") : "0";
    case HLO_OP_IOTA: {
        hlo_type type = instr->shape->type;
        const char *value =
            emit_value(e, "v", cuda_types[type].compute, "convert_%s((%s)%s)", hlo_types[type].name,
                       e->offset, index->at[hlo_instr_int(instr, HLO_ATTR_IOTA_DIMENSION, 0)]);
        return cell ? emit_cell(e, type, value) : value;
    }
    case HLO_OP_MAP: {
        const char **in = hlo_arena_array(e->arena, instr->operand_count + 1, sizeof *in);
        const bool cells = emit_region_moves(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
        for (uint32_t i = 0; i < instr->operand_count; i++)
            in[i] = emit_pull(e, hlo_instr_operand(instr, i), index, cells);
        return apply(e, instr, in, cells, cell);
    }
    case HLO_OP_BITCAST_CONVERT: return pull_bits(e, instr, index, cell);
    case HLO_OP_REDUCE: { /* a reduce of one element: cuda_reduce_is_single() */
        const hlo_instruction *operand = hlo_instr_operand(instr, 0);
        const hlo_shape *shape = operand->shape;
        const bool cells = emit_region_moves(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
        const char *in[] = {
            emit_pull_scalar(e, hlo_instr_operand(instr, 1), cells),
            emit_pull(e, operand, emit_reshape(e, index, shape->rank, shape->dims), cells)};
        return apply(e, instr, in, cells, cell);
    }
    case HLO_OP_REDUCE_WINDOW: return pull_window(e, instr, index, cell);
    default: return pull_moved(e, instr, index, cell);
    }
}

const char *emit_pull(emit *e, const hlo_instruction *instr, const emit_index *index, bool cell) {
    if (e->why) return "0";
    const hlo_type type = instr->shape->type;
    cell = cell && !emit_is_wide(type);
    const char *name = emit_remembered(e, instr, index, cell);
    if (name) return name;
    for (uint32_t i = 0; i < e->known_count && !name; i++)
        if (e->known[i].instr == instr)
            name = emit_as(e, type, e->known[i].name, e->known[i].cell, cell);
    const bool member = emit_is_member(e, instr);
    /* Some elementwise instructions compute the cell first, and the value from the cell. */
    const bool from_cell =
        !member ||
        (hlo_op_is(instr->op, HLO_ELEMENTWISE) &&
         (instr->op == HLO_OP_CONVERT ? is_rounding(hlo_instr_operand(instr, 0)->shape->type, type)
                                      : !needs_no_rounding(instr)));
    if (!name && !cell && !emit_is_wide(type) && from_cell)
        name = emit_decoded(e, type, emit_pull(e, instr, index, true));
    if (!name)
        name =
            member ? pull_member(e, instr, index, cell) : emit_load(e, emit_leaf(e, instr), index);
    emit_remember(e, instr, index, cell, name);
    return name;
}
