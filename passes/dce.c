/* Removes what nothing needs: instructions, and computations that nothing calls.
 *
 * Needs: operands before users, callees before callers.
 * Keeps: parameters, side effects, control predecessors of what is kept, the entry computation.
 * Numerics: unchanged.
 * Tests: testdata/passes/dce/ */
#include "passes/passes.h"
#include "passes/walk.h"

static void need_computation(void *needed, hlo_computation *called) {
    ((bool *)needed)[called->id] = true;
}

static void need_inputs(const hlo_instr *instr, bool *needed) {
    for (uint32_t i = 0; i < instr->operand_count; i++)
        needed[hlo_instr_operand(instr, i)->id] = true;
    const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
    if (!control) return;
    for (uint32_t i = 0; i < control->u.instrs->count; i++)
        needed[control->u.instrs->v[i]->id] = true;
}

hlo_status hlo_pass_dce(hlo_pass_context *context) {
    hlo_module *module = context->module;
    hlo_effects effects = hlo_walk_effects(module, context->scratch);
    bool *needed = hlo_arena_zero(context->scratch, module->next_id);
    bool *called = hlo_arena_zero(context->scratch, module->next_computation_id);
    if (module->entry) called[module->entry->id] = true;
    for (hlo_computation *comp = module->last, *earlier; comp; comp = earlier) {
        earlier = comp->prev;
        if (!called[comp->id]) {
            hlo_computation_remove(comp);
            context->changes++;
            continue;
        }
        for (hlo_instr *instr = comp->last, *before; instr; instr = before) {
            before = instr->prev;
            if (instr == comp->root || instr->op == HLO_OP_PARAMETER || effects.side[instr->id] ||
                needed[instr->id]) {
                need_inputs(instr, needed);
                hlo_instr_visit_called(instr, need_computation, called);
            } else {
                hlo_instr_remove(instr);
                context->changes++;
            }
        }
    }
    return HLO_OK;
}
