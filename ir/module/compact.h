/* The layout of instructions in memory. */
#ifndef HLO_IR_MODULE_COMPACT_H
#define HLO_IR_MODULE_COMPACT_H

#include "ir/ir.h"

/* True if over two thirds of the arena's instruction slots are dead or out of order: a loop reads
 * mostly unused memory then, and hlo_module_compact() pays. */
bool hlo_module_is_fragmented(const hlo_module *module);
/* Lays all instructions and their operands out anew, side by side in their order, as in a module
 * that was just read. Ids and the order of use lists stay. Returns the new address of each
 * instruction by id, allocated in `arena`; NULL for ids that are in no computation. Invalidates
 * every hlo_instr pointer held outside the module, snapshots excepted. */
hlo_instr **hlo_module_compact(hlo_module *module, hlo_arena *arena);

#endif
