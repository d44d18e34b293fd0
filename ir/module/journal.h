/* A log of new instructions and computations, for rollback. */
#ifndef HLO_IR_MODULE_JOURNAL_H
#define HLO_IR_MODULE_JOURNAL_H

#include "ir/ir.h"

/* Makes an empty journal in `arena`. */
hlo_journal *hlo_journal_new(hlo_arena *arena);
/* Empties the journal and logs every instruction and computation made in `module` until
 * hlo_journal_close(). */
void hlo_journal_open(hlo_journal *journal, hlo_module *module);
void hlo_journal_close(hlo_module *module);
/* Returns the number of entries of module->journal. */
uint32_t hlo_journal_count(const hlo_module *module);
/* Removes all entries but the first `kept`, the newest first, and the objects they log. The module
 * is then as it was at that entry, down to names and the order of use lists; ids are not reused.
 * No older object may use a removed one, and no older object may have changed. */
void hlo_journal_back(hlo_module *module, uint32_t kept);

#endif
