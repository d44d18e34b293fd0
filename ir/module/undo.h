/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes changes of a module. A journal undoes the creation of objects, a snapshot undoes all
 * changes. */
#ifndef HLO_IR_MODULE_UNDO_H
#define HLO_IR_MODULE_UNDO_H

#include "ir/ir.h"

hlo_journal *hlo_journal_new(hlo_arena *arena);
/* Empties the journal and logs every instruction and computation created in `module` until
 * hlo_journal_close(). */
void hlo_journal_open(hlo_journal *journal, hlo_module *module);
void hlo_journal_close(hlo_module *module);
/* Removes the logged objects, newest first. The module then has the same state as when the journal
 * was opened, including names and the order of use lists. Ids are not reused. No older object may
 * use a removed one, and no older object may have changed. */
void hlo_journal_undo(hlo_module *module);

/* A saved state of a module. It is much smaller than a copy: opcodes, shapes and attribute values
 * never change, so a snapshot records only the list of instructions, their operands, and pointers
 * to their names and attributes. */
typedef struct hlo_snapshot hlo_snapshot;

/* Saves the state of a module in `arena`, which need not be the module's arena. The snapshot is
 * valid while the module exists. */
const hlo_snapshot *hlo_snapshot_take(const hlo_module *module, hlo_arena *arena);
/* Restores the saved state, including ids. Names reserved since then are free again, and use lists
 * have the order of a newly parsed module. Instructions and computations created since then are no
 * longer in the module. A snapshot can be restored any number of times. Allocates no memory. */
void hlo_snapshot_restore(hlo_module *module, const hlo_snapshot *snapshot);

/* Returns a hash of everything that passes may change, including names, order and use lists. Two
 * fingerprints of a module differ if the module has changed in between. */
uint64_t hlo_module_fingerprint(const hlo_module *module);

#endif
