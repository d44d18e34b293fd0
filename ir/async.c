/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous operations that wrap a single instruction. */
#include <stdio.h>
#include <string.h>

#include "ir/async.h"
#include "ir/ir.h"

const char hlo_main_thread[] = "main";

static const hlo_attr *thread_of(const hlo_computation *comp) {
    return hlo_attrs_find(comp->attrs, comp->attr_count, HLO_ATTR_EXECUTION_THREAD);
}

const char *hlo_computation_thread(const hlo_computation *comp) {
    const hlo_attr *thread = thread_of(comp);
    return thread ? thread->u.str : hlo_main_thread;
}

bool hlo_computation_set_thread(hlo_computation *comp, const char *interned) {
    const char *wanted = interned ? interned : hlo_main_thread;
    if (strcmp(hlo_computation_thread(comp), wanted) == 0) return false;
    hlo_attr *attrs = hlo_arena_array(comp->module->arena, comp->attr_count + 1, sizeof *attrs);
    uint32_t count = 0;
    for (uint32_t i = 0; i < comp->attr_count; i++)
        if (&comp->attrs[i] != thread_of(comp)) attrs[count++] = comp->attrs[i];
    if (interned) attrs[count++] = (hlo_attr){.id = HLO_ATTR_EXECUTION_THREAD, .u.str = interned};
    comp->attrs = attrs;
    comp->attr_count = count;
    return true;
}

bool hlo_op_is_async(hlo_op op) {
    return op == HLO_OP_ASYNC_START || op == HLO_OP_ASYNC_UPDATE || op == HLO_OP_ASYNC_DONE;
}

const hlo_instr *hlo_async_start(const hlo_instr *instr) {
    while (instr->op == HLO_OP_ASYNC_UPDATE || instr->op == HLO_OP_ASYNC_DONE)
        instr = hlo_instr_operand(instr, 0);
    return instr->op == HLO_OP_ASYNC_START ? instr : NULL;
}

const hlo_instr *hlo_async_wrapped(const hlo_computation *comp) {
    const hlo_instr *root = comp->root;
    if (root != comp->last || comp->instr_count != comp->parameter_count + 1 ||
        root->operand_count != comp->parameter_count || root->op == HLO_OP_PARAMETER ||
        root->op == HLO_OP_CONSTANT || hlo_op_is_async(root->op))
        return NULL;
    for (uint32_t i = 0; i < root->attr_count; i++)
        if (!hlo_op_has(root->op, root->attrs[i].id)) return NULL;
    for (uint32_t i = 0; i < root->operand_count; i++) {
        const hlo_instr *parameter = comp->parameters[i];
        if (hlo_instr_operand(root, i) != parameter || parameter->attr_count) return NULL;
    }
    return root;
}

bool hlo_async_tells(const hlo_instr *start, const hlo_computation *called) {
    const hlo_instr *wrapped = hlo_async_wrapped(called);
    if (!wrapped) return false;
    /* all-gather and other opcodes have a separate start opcode, such as `all-gather-start`. */
    char name[64];
    const int length = snprintf(name, sizeof name, "%s-start", hlo_ops[wrapped->op].name);
    if (hlo_op_find(name, (size_t)length) != HLO_OP_INVALID) return false;
    /* Text may write the start's attributes among those of the wrapped instruction: the reader
     * assigns each attribute that the wrapped opcode may have to the wrapped instruction. */
    for (uint32_t i = 0; i < start->attr_count; i++)
        if (start->attrs[i].id != HLO_ATTR_CALLS && hlo_op_has(wrapped->op, start->attrs[i].id))
            return false;
    return start->operand_count == called->parameter_count &&
           start->shape->type == HLO_TYPE_TUPLE && start->shape->rank > 1 &&
           hlo_shape_compatible(start->shape->elements[1], wrapped->shape);
}
