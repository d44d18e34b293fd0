/* See journal.h. */
#include "ir/module/journal.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/link.h"

hlo_journal *hlo_journal_new(hlo_arena *arena) {
    hlo_journal *j = hlo_arena_zero(arena, sizeof *j);
    j->arena = arena;
    return j;
}

void hlo_journal_open(hlo_journal *journal, hlo_module *module) {
    journal->count = 0;
    module->journal = journal;
}

void hlo_journal_close(hlo_module *module) {
    module->journal = NULL;
}

uint32_t hlo_journal_count(const hlo_module *module) {
    return module->journal->count;
}

static void unmake(hlo_module *module, const hlo_made *m) {
    const hlo_namespace space = m->instr ? HLO_NAME_INSTR : HLO_NAME_COMPUTATION;
    const char *name = m->instr ? m->instr->name : m->comp->name;
    if (m->instr) {
        if (m->instr->parent->root == m->instr) m->instr->parent->root = NULL;
        hlo_instr_remove(m->instr);
    } else {
        hlo_computation_remove(m->comp);
    }
    if (m->interned) hlo_name_release(module, space, name, m->interned);
}

void hlo_journal_back(hlo_module *module, uint32_t kept) {
    hlo_journal *j = module->journal;
    while (j->count > kept) unmake(module, &j->v[--j->count]);
}
