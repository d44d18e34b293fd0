/* SPDX-License-Identifier: Apache-2.0 */
/* Removes dead instructions, and computations without callers.
 *
 * Needs: operands before users, callees before callers.
 * Does not remove: parameters, pinned instructions, the entry computation.
 * Numerics: unchanged.
 * Tests: testdata/passes/dce/ */
#include "passes/passes.h"

/* Visits instructions in reverse, so that dead users are removed before their operands. */
hlo_status hlo_pass_dce(hlo_pass_context *context) {
    hlo_module *module = context->module;
    bool *called = hlo_arena_zero(context->scratch, module->next_computation_id);
    if (module->entry) called[module->entry->id] = true;
    for (hlo_computation *comp = module->last, *earlier; comp; comp = earlier) {
        earlier = comp->prev;
        if (!called[comp->id]) {
            hlo_comp_remove(comp);
            context->changes++;
            continue;
        }
        for (hlo_instruction *instr = comp->last, *before; instr; instr = before) {
            before = hlo_instr_prev(instr);
            if (instr->use_count || instr == comp->root || instr->op == HLO_OP_PARAMETER ||
                instr->pin) {
                hlo_instr_visit_called(instr, hlo_mark_called, called);
                continue;
            }
            hlo_instr_remove(instr);
            context->changes++;
        }
    }
    return HLO_OK;
}
