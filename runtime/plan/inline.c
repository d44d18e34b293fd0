/* SPDX-License-Identifier: Apache-2.0 */
/* Inlines calls in the plan's copy of the module. Groups can then extend across former calls, and
 * values of callees share memory with values of their callers. */
#include "ir/device_list.h"
#include "runtime/plan/plan.h"

/* Maximum number of instructions that inlining copies, for all calls together: with nested calls,
 * the module could grow exponentially. */
enum { MAX_COPIES = 1 << 18 };

/* True if a value of one shape can replace one of the other, after a copy of the layout. */
static bool is_convertible(const hlo_shape *from, const hlo_shape *to) {
    return from == to || (hlo_shape_is_array(from) && hlo_shape_is_array(to));
}

/* Returns the computation that replaces the call, or NULL if the call is not inlined. */
static const hlo_computation *callee_of(const hlo_instruction *call) {
    if (call->op != HLO_OP_CALL) return NULL;
    const hlo_computation *callee = hlo_instr_comp(call, HLO_ATTR_TO_APPLY);
    /* The sharding of a manual region's call determines how the result leaves the region. */
    const hlo_sharding *sharding = hlo_instr_sharding(call);
    if (sharding && hlo_sharding_has(sharding, HLO_SHARDING_MANUAL)) return NULL;
    if (callee->attr_count || callee->parameter_count != call->operand_count ||
        !is_convertible(callee->root->shape, call->shape))
        return NULL;
    for (uint32_t i = 0; i < call->operand_count; i++)
        if (!is_convertible(hlo_instr_operand(call, i)->shape, callee->parameters[i]->shape))
            return NULL;
    /* Do not inline instructions with side effects, whose order matters, or with computations that
     * must have only one caller. */
    for (const hlo_instruction *i = callee->first; i; i = hlo_instr_next(i))
        if (hlo_op_is(i->op, HLO_SIDE_EFFECT | HLO_NONDET | HLO_COLLECTIVE | HLO_SOLE_CALLER))
            return NULL;
    return callee;
}

/* Returns `value`, or a copy of `value` in the layout of `shape`. */
static hlo_instruction *in_layout(hlo_instruction *call, hlo_instruction *value,
                                  const hlo_shape *shape) {
    if (value->shape == shape || hlo_shape_same_memory(value->shape, shape)) return value;
    hlo_instruction *copy = hlo_instr_new(call->parent, call, HLO_OP_COPY, shape, 1, &value, NULL);
    copy->offset = call->offset;
    return copy;
}

void plan_inline_calls(hlo_module *module, hlo_arena *scratch) {
    hlo_arena_mark mark = hlo_arena_here(scratch);
    hlo_instruction **copies = NULL; /* indexed by the id of the callee's instruction */
    uint32_t capacity = 0, budget = MAX_COPIES;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *call = comp->first, *next; call; call = next) {
            next = hlo_instr_next(call);
            const hlo_computation *callee = callee_of(call);
            if (!callee || callee->instr_count > budget) continue;
            if (callee->module->next_id > capacity) {
                capacity = 2 * callee->module->next_id;
                copies = hlo_arena_array(scratch, capacity, sizeof *copies);
            }
            budget -= callee->instr_count;
            for (const hlo_instruction *from = callee->first; from; from = hlo_instr_next(from)) {
                if (from->op == HLO_OP_PARAMETER) {
                    hlo_instruction *operand = hlo_instr_operand(call, (uint32_t)from->u.parameter);
                    copies[from->id] = in_layout(call, operand, from->shape);
                    continue;
                }
                hlo_arena_mark here = hlo_arena_here(scratch);
                hlo_instruction **operands =
                    hlo_arena_array(scratch, from->operand_count, sizeof *operands);
                for (uint32_t o = 0; o < from->operand_count; o++)
                    operands[o] = copies[hlo_instr_operand(from, o)->id];
                copies[from->id] = hlo_instr_copy(call->parent, call, from, operands);
                hlo_arena_release(scratch, here);
            }
            hlo_instr_replace_uses(call, in_layout(call, copies[callee->root->id], call->shape));
            hlo_instr_remove(call);
        }
    /* Renumber all instructions in order. Otherwise, copies would have larger ids than all other
     * instructions, and a computation's side tables, which are indexed from its smallest id to its
     * largest, would become large. */
    module->next_id = 0;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            instr->id = module->next_id++;
    hlo_arena_release(scratch, mark);
}
