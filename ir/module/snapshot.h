/* What passes may change of a module, remembered so that it can be as it was again. Much less than
 * a copy: what an instruction is never changes, nor do its attributes' values, so that only which
 * instructions there are, where, and with which operands and attributes is written down. */
#ifndef HLO_IR_SNAPSHOT_H
#define HLO_IR_SNAPSHOT_H

#include "ir/ir.h"

typedef struct hlo_snapshot hlo_snapshot;

/* In `arena`, which may be another than the module's; valid as long as the module is. */
const hlo_snapshot *hlo_snapshot_take(const hlo_module *module, hlo_arena *arena);
/* The module is as it was, down to ids, and the names that others have got since are free; use
 * lists have the order that they have in a module that was just read. Instructions and computations
 * made since are no longer in it. May be done any number of times. */
void hlo_snapshot_restore(hlo_module *module, const hlo_snapshot *snapshot);

/* A hash of all that passes may change, with names, order and use lists: where two differ, the
 * module has changed in between. */
uint64_t hlo_module_fingerprint(const hlo_module *module);

#endif
