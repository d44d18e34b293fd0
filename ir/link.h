/* Putting an instruction, a computation or a use into its list: what module.c, snapshot.c and
 * journal.c share. None of them may be in one already. */
#ifndef HLO_IR_LINK_H
#define HLO_IR_LINK_H

#include "ir/ir.h"

/* Last in its module. */
void hlo_computation_place(hlo_computation *comp);
/* Before `before`, or last when that is NULL. */
void hlo_instr_place(hlo_instr *instr, hlo_computation *comp, hlo_instr *before);
/* First in the use list of `def`. */
void hlo_use_link(hlo_use *use, hlo_instr *def, hlo_instr *user);

/* An instruction, or a computation, to be unmade. */
typedef struct hlo_made {
    hlo_instr *instr; /* NULL: the computation */
    hlo_computation *comp;
    const char *interned; /* what its name was made of; NULL: it has none */
} hlo_made;

struct hlo_journal {
    hlo_arena *arena;
    hlo_made *v;
    uint32_t count, capacity;
};

/* Notes what was made, the one that is not NULL, in module->journal: its name was made of
 * `interned`, NULL: it has none. */
void hlo_journal_note(hlo_module *module, hlo_instr *instr, hlo_computation *comp,
                      const char *interned);

#endif
