/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes dequantized values. */
#include "passes/analysis/dequantize.h"

#include "passes/analysis/value.h"

static bool is_conversion(const hlo_instruction *value) {
    return value->op == HLO_OP_CONVERT && !value->pin &&
           hlo_type_is_fp8_operand(hlo_instr_operand(value, 0)->shape->type) &&
           hlo_type_is_wide(value->shape->type);
}

/* Returns how many operands may be the scaled value: 2 of a product, 1 of a quotient. */
static uint32_t scalable_operands(const hlo_instruction *value) {
    if (value->pin) return 0;
    return value->op == HLO_OP_MULTIPLY ? 2 : value->op == HLO_OP_DIVIDE;
}

static hlo_dequantized describe(const hlo_instruction *convert, hlo_op op, hlo_instruction *scale) {
    hlo_instruction *fp8 = hlo_instr_operand(convert, 0);
    return (hlo_dequantized){fp8, scale, op, fp8->shape->type, convert->shape->type};
}

bool hlo_dequantized_read(hlo_instruction *value, hlo_dequantized *out) {
    hlo_instruction *convert = value, *scale = NULL;
    if (value->pin) return false;
    if (scalable_operands(value)) {
        bool second = value->op == HLO_OP_MULTIPLY && !is_conversion(hlo_instr_operand(value, 0));
        convert = hlo_instr_operand(value, second);
        scale = hlo_splat_source(hlo_instr_operand(value, !second));
        if (!scale) return false;
    }
    if (!is_conversion(convert)) return false;
    *out = describe(convert, value->op, scale);
    return true;
}

bool hlo_dequantized_read_scaled(const hlo_instruction *value, hlo_dequantized *out) {
    for (uint32_t i = 0; i < scalable_operands(value); i++) {
        const hlo_instruction *scaled = hlo_instr_operand(value, i);
        while (hlo_chain_link(scaled)) scaled = hlo_instr_operand(scaled, 0);
        if (!is_conversion(scaled)) continue;
        *out = describe(scaled, HLO_OP_CONVERT, hlo_instr_operand(value, !i));
        return true;
    }
    return false;
}

bool hlo_dequantized_read_rows(const hlo_instruction *value, hlo_dequantized *out,
                               const hlo_ints **out_dims) {
    for (uint32_t i = 0; i < scalable_operands(value); i++) {
        const hlo_instruction *scaled = hlo_instr_operand(value, i),
                              *scale = hlo_instr_operand(value, !i);
        if (scale->op == HLO_OP_CONVERT && !scale->pin &&
            hlo_instr_operand(scale, 0)->shape->type == HLO_TYPE_F8E8M0FNU)
            scale = hlo_instr_operand(scale, 0);
        if (scale->op != HLO_OP_BROADCAST || scale->pin || !is_conversion(scaled)) continue;
        *out = describe(scaled, value->op, hlo_instr_operand(scale, 0));
        *out_dims = hlo_instr_ints(scale, HLO_ATTR_DIMENSIONS);
        return true;
    }
    return false;
}

static bool same_types(const hlo_dequantized *a, const hlo_dequantized *b) {
    return a->op == b->op && a->from == b->from && a->to == b->to;
}

bool hlo_dequantized_alike(const hlo_dequantized *a, const hlo_dequantized *b) {
    return same_types(a, b) && a->scale == b->scale;
}

bool hlo_dequantized_same_form(const hlo_dequantized *a, const hlo_dequantized *b) {
    return same_types(a, b) && !a->scale == !b->scale &&
           (!a->scale || a->scale->shape == b->scale->shape);
}
