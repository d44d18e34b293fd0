/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that no plugin takes: they are refused before one sees them. */
#ifndef HLO_RUNTIME_PJRT_CHECK_H
#define HLO_RUNTIME_PJRT_CHECK_H

#include "hlo/pjrt.h"
#include "ir/ir.h"

/* Reports an error about a value; returns HLO_INVALID_INPUT. */
hlo_status pjrt_refuse(const hlo_module *module, const hlo_instr *value, const hlo_diag_sink *sink,
                       const char *why);
/* Finds a call whose target begins with `start`; NULL: there is none. */
const hlo_instr *pjrt_find_call(const hlo_module *module, const char *start);
/* Refuses parameters, calls and partitions that no plugin takes. */
hlo_status pjrt_check_module(const hlo_module *module, const hlo_pjrt_options *options,
                             const hlo_diag_sink *sink);

#endif
