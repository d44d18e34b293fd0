/* Which of two instructions of a computation stands first, in O(1): by sort keys, with room between
 * them for those of instructions that are made later. Keys stay good from pass to pass. */
#ifndef HLO_PASSES_ORDER_H
#define HLO_PASSES_ORDER_H

#include "ir/ir.h"

typedef struct hlo_order hlo_order;

/* Of what there is in the module. In `arena`, from which it also grows. */
hlo_order *hlo_order_new(const hlo_module *module, hlo_arena *arena);
/* Whether `a` stands before `b`. */
bool hlo_order_before(hlo_order *order, const hlo_instr *a, const hlo_instr *b);
/* Says that the instruction, which had its place already, stands elsewhere now. */
void hlo_order_moved(hlo_order *order, const hlo_instr *instr);

#endif
