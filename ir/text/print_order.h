/* The order in which XLA shows the instructions of a computation that stands in place of its name.
 */
#ifndef HLO_IR_WALK_H
#define HLO_IR_WALK_H

#include "ir/ir.h"

/* That of a walk from what nothing uses to what it is computed from, written behind that. The place
 * of each is left in `numbers`, by its id. The caller frees the array with free(); NULL when there
 * is no memory. */
const hlo_instr **hlo_print_order(const hlo_computation *comp, uint32_t *numbers);

#endif
