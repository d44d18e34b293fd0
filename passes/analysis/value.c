/* Links of chains, and values that repeat one element. */
#include "passes/analysis/value.h"
#include "ir/float/literal.h"
#include "ir/module/known.h"

#include "passes/analysis/dequantise.h"

bool hlo_chain_link(const hlo_instr *instr) {
    if (instr->pin) return false;
    if (instr->op == HLO_OP_CONVERT)
        return hlo_type_is_wide(instr->shape->type) &&
               hlo_type_is_wide(hlo_instr_operand(instr, 0)->shape->type);
    return hlo_instr_moves(instr);
}

bool hlo_repeats(const hlo_instr *value) {
    return !value->pin && hlo_instr_moves(value) && value->operand_count == 1;
}

hlo_instr *hlo_splat_source(hlo_instr *value) {
    for (unsigned depth = 0; depth < HLO_CHAIN_LIMIT; depth++) {
        if (!hlo_shape_is_array(value->shape)) return NULL;
        if (hlo_shape_count(value->shape) == 1) return value;
        if (value->op == HLO_OP_CONSTANT)
            return hlo_literal_is_splat(value->u.literal) ? value : NULL;
        if (!hlo_repeats(value)) return NULL;
        value = hlo_instr_operand(value, 0);
    }
    return NULL;
}
