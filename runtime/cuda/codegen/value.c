/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an instruction at an index: elementwise opcodes, literals, rounding, regions. */
#include <math.h>
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/eval/range.h"
#include "ir/float/float.h"
#include "ir/module/known.h"
#include "runtime/cuda/codegen/emit.h"

/* A value of a region or a constant. `cell`: its form in memory; NULL: derived from `name`. */
typedef struct region_value {
    const char *name, *cell;
} region_value;

static const char *cell_of(emit *e, hlo_type type, region_value value) {
    return value.cell ? value.cell : emit_cell(e, type, value.name);
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

static const char *literal_text(emit *e, hlo_type type, const hlo_chunk *lane) {
    const bool wide = hlo_types[type].bits == 64;
    switch (hlo_lane_of(type)) {
    case HLO_LANE_F32: return float_text(e, (double)lane->f32[0], false);
    case HLO_LANE_F64: return float_text(e, lane->f64[0], true);
    case HLO_LANE_S64: {
        const char *suffix = wide ? "ll" : "";
        return lane->s64[0] >= 0
                   ? hlo_arena_format(e->arena, "%lld%s", (long long)lane->s64[0], suffix)
                   : hlo_arena_format(e->arena, "(%lld%s - 1)", (long long)(lane->s64[0] + 1),
                                      suffix);
    }
    case HLO_LANE_U64:
        if (type == HLO_TYPE_PRED) return lane->u64[0] ? "true" : "false";
        return hlo_arena_format(e->arena, "%lluu%s", (unsigned long long)lane->u64[0],
                                wide ? "ll" : "");
    case HLO_LANE_C128:
    case HLO_LANE_NONE: break;
    }
    return emit_refuse(e, "has no CUDA kernel for elements of type %s", hlo_types[type].name);
}

/* Returns the element as a value. A NaN keeps its bits, because they include its sign. */
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
        const char *cell = emit_coded(e, type, hlo_arena_format(e->arena, "0x%llxull", code));
        return (region_value){emit_decoded(e, type, cell), cell};
    }
    return (region_value){literal_text(e, type, &lane), NULL};
}

const char *emit_literal(emit *e, const hlo_literal *of, bool cell) {
    const region_value value = literal(e, of);
    return cell ? cell_of(e, of->shape->type, value) : value.name;
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

const char *emit_code(emit *e, hlo_type type, const char *cell) {
    if (type == HLO_TYPE_F32) return emit_value(e, "k", "uint64", "bits_as<uint>(%s)", cell);
    if (type == HLO_TYPE_F64) return emit_value(e, "k", "uint64", "bits_as<uint64>(%s)", cell);
    return emit_value(e, "k", "uint64", "(uint64)%s & 0x%llxull", cell,
                      (unsigned long long)(UINT64_MAX >> (64 - hlo_types[type].bits)));
}

const char *emit_coded(emit *e, hlo_type type, const char *code) {
    const char *cell = cuda_types[type].cell;
    if (type == HLO_TYPE_F32) return emit_value(e, "c", cell, "bits_as<float>((uint)(%s))", code);
    if (type == HLO_TYPE_F64) return emit_value(e, "c", cell, "bits_as<double>(%s)", code);
    if (hlo_types[type].class == HLO_CLASS_SIGNED && hlo_types[type].bits < 8)
        return emit_value(e, "c", cell, "to_%s((int)(%s))", hlo_types[type].name, code);
    return emit_value(e, "c", cell, "(%s)(%s)", cell, code);
}

/* ---------------------------------------------------------------------------------- elementwise */

static const char *type_refusal(const hlo_shape *shape) {
    return cuda_types[shape->type].cell ? NULL : "has no CUDA kernel for its element type";
}

const char *cuda_elementwise_refusal(const hlo_instr *instr) {
    const char *why = type_refusal(instr->shape);
    for (uint32_t i = 0; i < instr->operand_count && !why; i++)
        why = type_refusal(hlo_instr_operand(instr, i)->shape);
    if (why || instr->op == HLO_OP_CONVERT) return why;
    const hlo_elementwise *op = hlo_kernel_elementwise(instr);
    const hlo_instr *last = hlo_instr_operand(instr, instr->operand_count - 1);
    if (!op || !hlo_elementwise_loop(op, last->shape->type))
        return "is not defined for this element type";
    return NULL;
}

/* True for opcodes whose functions need an element's number of bits. */
static bool counts_bits(hlo_op op) {
    switch (op) {
    case HLO_OP_NOT:
    case HLO_OP_POPCNT:
    case HLO_OP_CLZ:
    case HLO_OP_SHIFT_LEFT:
    case HLO_OP_SHIFT_RIGHT_ARITHMETIC:
    case HLO_OP_SHIFT_RIGHT_LOGICAL:
    case HLO_OP_MULHI: return true;
    default: return false;
    }
}

bool emit_takes_codes(const hlo_instr *instr) {
    const char *order = hlo_instr_str(instr, HLO_ATTR_TYPE);
    return instr->op == HLO_OP_COMPARE && order && strcmp(order, "TOTALORDER") == 0 &&
           hlo_type_is_float(hlo_instr_operand(instr, 0)->shape->type);
}

const char *emit_operation(emit *e, const hlo_instr *instr, const char *const *in) {
    hlo_type type = hlo_instr_operand(instr, 0)->shape->type;
    if (instr->op == HLO_OP_SELECT)
        return hlo_arena_format(e->arena, "%s ? %s : %s", in[0], in[1], in[2]);
    if (emit_takes_codes(instr)) {
        /* Compares codes in the total order. */
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
    if (counts_bits(instr->op))
        text = hlo_arena_format(e->arena, "%s, %d", text, hlo_types[type].bits);
    if (instr->op == HLO_OP_REDUCE_PRECISION) {
        hlo_type reduced = hlo_reduced_type(type);
        int digits = hlo_float_precision(reduced);
        text =
            hlo_arena_format(e->arena, "%s, %d, %d, %d, %d", text, hlo_types[reduced].bits - digits,
                             digits, (int)hlo_instr_int(instr, HLO_ATTR_EXPONENT_BITS, 8),
                             (int)hlo_instr_int(instr, HLO_ATTR_MANTISSA_BITS, 23));
    }
    return hlo_arena_format(e->arena, "%s)", text);
}

/* True if a conversion rounds from one float to another one in memory. */
static bool is_rounding(hlo_type from, hlo_type to) {
    return from != to && hlo_lane_of(from) == HLO_LANE_F32 && hlo_lane_of(to) == HLO_LANE_F32 &&
           !emit_is_wide(to);
}

/* True if the result is always a value of the type. */
static bool needs_no_rounding(const hlo_instr *instr) {
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

bool emit_makes_cell(const hlo_instr *instr) {
    const hlo_type type = instr->shape->type;
    if (!hlo_op_is(instr->op, HLO_ELEMENTWISE) || emit_is_wide(type)) return false;
    return instr->op == HLO_OP_CONVERT ? is_rounding(hlo_instr_operand(instr, 0)->shape->type, type)
                                       : !needs_no_rounding(instr);
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

const char *emit_elementwise(emit *e, const hlo_instr *instr, const char *const *in, bool cell) {
    if (instr->op == HLO_OP_CONVERT) {
        hlo_type from = hlo_instr_operand(instr, 0)->shape->type, to = instr->shape->type;
        /* If the operand cannot exceed the type's range, the hardware instruction needs no
         * comparison. */
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
    const char *why = hlo_region_refusal(region);
    if (why) return "applies a computation that is not supported on CUDA";
    for (const hlo_instr *i = region->first; i && !why; i = hlo_instr_next(i)) {
        if (hlo_region_called(i))
            why = cuda_region_refusal(hlo_region_called(i));
        else if (i->op != HLO_OP_TUPLE && i->op != HLO_OP_PARAMETER && i->op != HLO_OP_CONSTANT &&
                 !hlo_region_passes_on(i))
            why = cuda_elementwise_refusal(i);
        else if (i->op != HLO_OP_TUPLE)
            why = type_refusal(i->shape);
    }
    return why;
}

bool emit_region_moves(const hlo_computation *region) {
    const hlo_instr *root = region->root;
    bool any = false;
    for (const hlo_instr *i = region->first; i && !any; i = hlo_instr_next(i)) {
        if (hlo_region_called(i)) {
            any = emit_region_moves(hlo_region_called(i));
            continue;
        }
        const bool orders = emit_takes_codes(i);
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
    for (const hlo_instr *i = region->first; i; i = hlo_instr_next(i)) {
        if (i->id < first) first = i->id;
        if (i->id > last) last = i->id;
    }
    region_value *values = hlo_arena_zero(e->arena, (last - first + 1) * sizeof *values);
    for (const hlo_instr *i = region->first; i; i = hlo_instr_next(i)) {
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
        else if (hlo_region_called(i))
            write_region(e, hlo_region_called(i), operands, own);
        else {
            /* A select of narrow floats also selects their cells, so that a NaN keeps its bits. */
            const char **texts = hlo_arena_array(e->arena, i->operand_count + 1, sizeof *texts);
            for (uint32_t o = 0; o < i->operand_count; o++) {
                const hlo_type type = hlo_instr_operand(i, o)->shape->type;
                texts[o] = emit_takes_codes(i) ? cell_of(e, type, operands[o]) : operands[o].name;
            }
            region_value made = {emit_elementwise(e, i, texts, false), NULL};
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
    const hlo_instr *root = region->root;
    const bool tuple = root->op == HLO_OP_TUPLE;
    const uint32_t outputs = tuple ? root->operand_count : 1;
    region_value *given = hlo_arena_zero(e->arena, (region->parameter_count + 1) * sizeof *given);
    region_value *made = hlo_arena_zero(e->arena, (outputs + 1) * sizeof *made);
    for (const hlo_instr *i = region->first; i; i = hlo_instr_next(i)) {
        if (i->op != HLO_OP_PARAMETER) continue;
        const char *it = in[i->u.parameter];
        given[i->u.parameter] = (region_value){it, NULL};
        if (in_cells)
            given[i->u.parameter] = (region_value){emit_decoded(e, i->shape->type, it), it};
    }
    write_region(e, region, given, made);
    for (uint32_t o = 0; o < outputs; o++) {
        const hlo_instr *leaf = tuple ? hlo_instr_operand(root, o) : root;
        out[o] = out_cells ? cell_of(e, leaf->shape->type, made[o]) : made[o].name;
    }
}
