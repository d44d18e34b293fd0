/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which XLA prints the instructions of a computation inline. */
#ifndef HLO_IR_TEXT_PRINT_ORDER_H
#define HLO_IR_TEXT_PRINT_ORDER_H

#include "ir/ir.h"

/* Postorder from unused instructions, operands first. Writes the position of each instruction to
 * `numbers`, by id. The caller frees the array with free(); NULL if memory runs out. */
const hlo_instr **hlo_print_order(const hlo_computation *comp, uint32_t *numbers);

#endif
