/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a run: converts FP8 calls to the form that --emit selects. */
#ifndef HLO_PASSES_EMIT_EMIT_H
#define HLO_PASSES_EMIT_EMIT_H

#include "passes/context.h"

/* Converts every FP8 call of context->module to the form options->emit. The form HLO_EMIT_CUBLAS
 * does not change a scheduled module. For other forms, returns HLO_INVALID_INPUT, with an error in
 * context->sink, if a call is pinned or the module is scheduled. */
hlo_status hlo_emit(hlo_pass_context *context);

#endif
