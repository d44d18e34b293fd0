/* SPDX-License-Identifier: Apache-2.0 */
/* The trip count of while loops. */
#ifndef HLO_IR_MODULE_TRIP_COUNT_H
#define HLO_IR_MODULE_TRIP_COUNT_H

#include "ir/ir.h"

/* The trip count of a while loop if its condition and body determine it: the loop increments one
 * element of its state from a constant, by a constant, to a constant. */
#define HLO_TRIP_COUNT_UNKNOWN UINT64_MAX
uint64_t hlo_while_trip_count(const hlo_instr *loop);

#endif
