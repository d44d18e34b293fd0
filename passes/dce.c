/* Removes what nothing needs: instructions, and computations that nothing calls.
 *
 * Needs: operands before users, callees before callers.
 * Keeps: parameters, side effects, control predecessors of what is kept, the entry computation.
 * Numerics: unchanged.
 * Tests: testdata/passes/dce/ */
#include "passes/passes.h"
#include "passes/walk.h"

typedef struct kept {
    bool *called; /* by computation id: by what is kept */
    bool *named;  /* by instruction id: as a control predecessor of what is kept; NULL: none is */
} kept;

static void note_called(void *user, hlo_computation *called) {
    kept *k = user;
    k->called[called->id] = true;
}

static void keep(kept *k, const hlo_instr *instr) {
    hlo_instr_visit_called(instr, note_called, k);
    const hlo_attr *control =
        k->named ? hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS) : NULL;
    for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
        k->named[control->u.instrs->v[i]->id] = true;
}

/* Backwards: by the time that an instruction is looked at, its dead users are gone. */
hlo_status hlo_pass_dce(hlo_pass_context *context) {
    hlo_module *module = context->module;
    const hlo_effects effects = hlo_walk_effects(module, context->scratch);
    kept k = {.called = hlo_arena_zero(context->scratch, module->next_computation_id)};
    if (module->attrs_seen[HLO_ATTR_CONTROL_PREDECESSORS])
        k.named = hlo_arena_zero(context->scratch, module->next_id);
    if (module->entry) k.called[module->entry->id] = true;
    for (hlo_computation *comp = module->last, *earlier; comp; comp = earlier) {
        earlier = comp->prev;
        if (!k.called[comp->id]) {
            hlo_computation_remove(comp);
            context->changes++;
            continue;
        }
        for (hlo_instr *instr = comp->last, *before; instr; instr = before) {
            before = hlo_instr_prev(instr);
            if (instr->use_count || instr == comp->root || instr->op == HLO_OP_PARAMETER ||
                hlo_walk_says(effects.side, instr->id) || hlo_walk_says(k.named, instr->id)) {
                keep(&k, instr);
                continue;
            }
            hlo_instr_remove(instr);
            context->changes++;
        }
    }
    return HLO_OK;
}
