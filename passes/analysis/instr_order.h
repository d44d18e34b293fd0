/* SPDX-License-Identifier: Apache-2.0 */
/* Order of the instructions of a computation in O(1), by sort keys with gaps for new instructions.
 * Keys remain valid from pass to pass. */
#ifndef HLO_PASSES_ANALYSIS_INSTR_ORDER_H
#define HLO_PASSES_ANALYSIS_INSTR_ORDER_H

#include "ir/ir.h"

typedef struct hlo_order hlo_order;

/* Numbers the instructions of the module. The order is allocated in `arena`. */
hlo_order *hlo_order_new(const hlo_module *module, hlo_arena *arena);
/* True if `a` comes before `b`. */
bool hlo_order_before(hlo_order *order, const hlo_instr *a, const hlo_instr *b);
/* Renumbers an instruction that was moved. */
void hlo_order_moved(hlo_order *order, const hlo_instr *instr);

#endif
