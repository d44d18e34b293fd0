/* SPDX-License-Identifier: Apache-2.0 */
/* Copies instructions to another module, or to contiguous memory. */
#ifndef HLO_IR_MODULE_CLONE_H
#define HLO_IR_MODULE_CLONE_H

#include "ir/ir.h"

typedef struct hlo_copier {
    hlo_module *to;
    hlo_instruction **instrs; /* copies by the original's id */
    hlo_computation **comps;  /* copies by the original's id */
} hlo_copier;

hlo_copier hlo_copier_new(hlo_module *to, const hlo_module *from, hlo_arena *scratch);
const hlo_shape *hlo_copy_shape(hlo_copier *c, const hlo_shape *shape);
/* Copies attributes. The computations and instructions that they name must have copies. */
const hlo_attr *hlo_copy_attrs(hlo_copier *c, const hlo_attr *attrs, uint32_t count);
void hlo_copy_computations(hlo_copier *c, const hlo_module *from);

/* True if over two thirds of the instruction slots in the arena are dead or out of order. Loops
 * over instructions then read mostly unused memory, and hlo_module_compact() is worth its time. */
bool hlo_module_is_fragmented(const hlo_module *module);
/* Copies all instructions and their operands to contiguous memory in list order, as in a newly
 * parsed module. Ids and the order of use lists are kept. Returns the new address of each
 * instruction by id, allocated in `arena`; NULL for ids that are in no computation. Invalidates all
 * hlo_instruction pointers outside the module, except those in snapshots. */
hlo_instruction **hlo_module_compact(hlo_module *module, hlo_arena *arena);

#endif
