/* Asynchronous operations that wrap a single instruction. */
#include "ir/ir.h"

bool hlo_op_is_async(hlo_op op) {
    return op == HLO_OP_ASYNC_START || op == HLO_OP_ASYNC_UPDATE || op == HLO_OP_ASYNC_DONE;
}

const hlo_instr *hlo_async_start(const hlo_instr *instr) {
    while (instr->op == HLO_OP_ASYNC_UPDATE || instr->op == HLO_OP_ASYNC_DONE)
        instr = hlo_instr_operand(instr, 0);
    return instr->op == HLO_OP_ASYNC_START ? instr : NULL;
}

static bool has_own_attrs_only(const hlo_instr *instr) {
    for (uint32_t i = 0; i < instr->attr_count; i++)
        if (!hlo_op_has(instr->op, instr->attrs[i].id)) return false;
    return true;
}

const hlo_instr *hlo_async_wrapped(const hlo_computation *comp) {
    const hlo_instr *root = comp->root;
    if (root != comp->last || comp->instr_count != comp->parameter_count + 1 ||
        root->operand_count != comp->parameter_count || root->op == HLO_OP_PARAMETER ||
        root->op == HLO_OP_CONSTANT || hlo_op_is_async(root->op) || !has_own_attrs_only(root))
        return NULL;
    for (uint32_t i = 0; i < root->operand_count; i++) {
        const hlo_instr *parameter = comp->parameters[i];
        if (hlo_instr_operand(root, i) != parameter || parameter->attr_count) return NULL;
    }
    return root;
}
