/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that no plugin supports: they are rejected before they are passed to one. */
#ifndef HLO_RUNTIME_PJRT_CHECK_H
#define HLO_RUNTIME_PJRT_CHECK_H

#include "hlo/pjrt.h"
#include "ir/ir.h"

/* Reports an error about a value. Returns HLO_INVALID_INPUT. */
hlo_status pjrt_refuse(const hlo_module *module, const hlo_instr *value, const hlo_diag_sink *sink,
                       const char *why);
/* Finds a call whose target begins with `start`; NULL if not found. */
const hlo_instr *pjrt_find_call(const hlo_module *module, const char *start);
/* Rejects parameters, calls and partitions that no plugin supports. */
hlo_status pjrt_check_module(const hlo_module *module, const hlo_pjrt_options *options,
                             const hlo_diag_sink *sink);

#endif
