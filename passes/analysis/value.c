/* Links of chains, and values that repeat one element. */
#include "passes/analysis/value.h"

static bool wide(const hlo_instr *value) {
    hlo_type type = value->shape->type;
    return type == HLO_TYPE_F32 || type == HLO_TYPE_BF16 || type == HLO_TYPE_F16;
}

bool hlo_chain_link(const hlo_instr *instr) {
    if (instr->pin) return false;
    if (instr->op == HLO_OP_CONVERT) return wide(instr) && wide(hlo_instr_operand(instr, 0));
    return hlo_instr_moves(instr);
}

/* Whether each element is one of operand 0, and no other operand says which. */
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
