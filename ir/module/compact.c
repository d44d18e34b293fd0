/* Memory layout of instructions. They are created in the order of the text, and a loop over them is
 * fast while neighbors are contiguous. Passes append new instructions phase by phase and leave
 * gaps where they remove some: a loop then misses the cache at nearly every instruction, however
 * few of them passes changed. */
#include <string.h>

#include "ir/ir.h"
#include "ir/module/compact.h"

bool hlo_module_is_fragmented(const hlo_module *module) {
    const uint32_t made = module->next_id - module->relocated_ids;
    return module->instr_count < (module->relocated + made) / 3;
}

/* Copies the instructions; their operands and attributes are not copied. */
static hlo_instr *copy_instrs(const hlo_computation *comp, hlo_instr **relocated) {
    hlo_arena *arena = comp->module->arena;
    size_t operand_count = 0;
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
        operand_count += instr->operand_count;
    hlo_instr *copies = hlo_arena_array(arena, comp->instr_count, sizeof *copies), *copy = copies;
    hlo_use *uses = hlo_arena_array(arena, operand_count, sizeof *uses);
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr), copy++) {
        relocated[instr->id] = copy;
        *copy = *instr;
        if (!instr->operand_count) continue;
        copy->operands = uses;
        memcpy(uses, instr->operands, instr->operand_count * sizeof *uses);
        uses += instr->operand_count;
    }
    return copies;
}

static hlo_use *moved_use(const hlo_use *use, hlo_instr *const *relocated) {
    return use ? relocated[use->user->id]->operands + (use - use->user->operands) : NULL;
}

static void move_named(hlo_instr *instr, hlo_instr *const *relocated) {
    const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
    if (!control) return;
    const uint32_t count = control->u.instrs->count;
    hlo_instrs *named =
        hlo_arena_alloc(instr->parent->module->arena, sizeof *named + count * sizeof *named->v);
    named->count = count;
    for (uint32_t i = 0; i < count; i++) named->v[i] = relocated[control->u.instrs->v[i]->id];
    hlo_instr_set_attr(instr, (hlo_attr){.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = named});
}

static void move_pointers(hlo_computation *comp, hlo_instr *copies, hlo_instr *const *relocated) {
    const uint32_t count = comp->instr_count;
    for (hlo_instr *instr = copies; instr < copies + count; instr++) {
        instr->prev = instr > copies ? instr - 1 : NULL;
        instr->next = instr + 1 < copies + count ? instr + 1 : NULL;
        instr->uses = moved_use(instr->uses, relocated);
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            hlo_use *use = &instr->operands[i];
            use->next = moved_use(use->next, relocated);
            use->prev = moved_use(use->prev, relocated);
            use->def = relocated[use->def->id];
            use->user = instr;
        }
        move_named(instr, relocated);
    }
    comp->first = count ? copies : NULL;
    comp->last = count ? copies + count - 1 : NULL;
    if (comp->root) comp->root = relocated[comp->root->id];
    for (uint32_t i = 0; i < comp->parameter_count; i++)
        if (comp->parameters[i]) comp->parameters[i] = relocated[comp->parameters[i]->id];
}

hlo_instr **hlo_module_compact(hlo_module *module, hlo_arena *arena) {
    hlo_instr **relocated = hlo_arena_zero(arena, module->next_id * sizeof *relocated);
    hlo_instr **first = hlo_arena_zero(arena, module->next_computation_id * sizeof *first);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        first[comp->id] = copy_instrs(comp, relocated);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        move_pointers(comp, first[comp->id], relocated);
    module->relocated = module->instr_count;
    module->relocated_ids = module->next_id;
    return relocated;
}
