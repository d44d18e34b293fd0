/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for module.c and undo.c that link an instruction, a computation or a use into its list.
 * The object must not be in a list. */
#ifndef HLO_IR_LINK_H
#define HLO_IR_LINK_H

#include "ir/ir.h"

/* Link a computation or an instruction before `before`, or at the end if `before` is NULL. */
void hlo_computation_place(hlo_computation *comp, hlo_computation *before);
void hlo_instr_place(hlo_instruction *instr, hlo_computation *comp, hlo_instruction *before);
/* Links a use first in the use list of `def`. */
void hlo_use_link(hlo_use *use, hlo_instruction *def, hlo_instruction *user);

/* An entry of a journal: a new instruction or computation. */
typedef struct hlo_made {
    hlo_instruction *instr; /* NULL for a computation */
    hlo_computation *comp;
    const char *interned; /* the string from which the name was derived; NULL: the object has no
                           * name */
} hlo_made;

struct hlo_journal {
    hlo_arena *arena;
    hlo_made *v;
    uint32_t count, capacity;
};

#endif
