/* Removes what nothing needs: instructions, and computations that nothing calls.
 *
 * Needs: operands before users, callees before callers.
 * Keeps: parameters, side effects, control predecessors of what is kept, the entry computation.
 * Numerics: unchanged.
 * Tests: testdata/passes/dce/ */
#include "passes/passes.h"
#include "passes/walk.h"

hlo_status hlo_pass_dce(hlo_pass_context *context) {
    hlo_module *module = context->module;
    const bool *needed = hlo_walk_needed(module, context->scratch);
    for (hlo_computation *comp = module->last, *earlier; comp; comp = earlier) {
        earlier = comp->prev;
        if (!needed[comp->root->id]) {
            hlo_computation_remove(comp);
            context->changes++;
            continue;
        }
        for (hlo_instr *instr = comp->last, *before; instr; instr = before) {
            before = instr->prev;
            if (needed[instr->id]) continue;
            hlo_instr_remove(instr);
            context->changes++;
        }
    }
    return HLO_OK;
}
