/* Putting an instruction, a computation or a use into its list: what module.c and snapshot.c share.
 * None of them may be in one already. */
#ifndef HLO_IR_LINK_H
#define HLO_IR_LINK_H

#include "ir/ir.h"

/* Last in its module. */
void hlo_computation_place(hlo_computation *comp);
/* Before `before`, or last when that is NULL. */
void hlo_instr_place(hlo_instr *instr, hlo_computation *comp, hlo_instr *before);
/* First in the use list of `def`. */
void hlo_use_link(hlo_use *use, hlo_instr *def, hlo_instr *user);

#endif
