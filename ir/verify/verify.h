/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of the verifier. */
#ifndef HLO_IR_VERIFY_VERIFY_H
#define HLO_IR_VERIFY_VERIFY_H

#include "hlo/diag.h"
#include "ir/ir.h"

/* Verifies a module that has not been verified. Passes and backends rely on a verified module and
 * call this first. `max_errors`: see hlo_verify_options. */
hlo_status hlo_module_ensure_verified(const hlo_module *module, unsigned max_errors,
                                      const hlo_diag_sink *sink);

/* Returns the first violation that hlo_module_verify() would report for this instruction; NULL if
 * the instruction is valid. An asynchronous start need not have a user. The operands must come
 * before the instruction. The text is allocated in `scratch`. */
const char *hlo_instr_fault(const hlo_instruction *instr, hlo_arena *scratch);

#endif
