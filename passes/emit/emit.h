/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a run: FP8 calls in the form that --emit names. */
#ifndef HLO_PASSES_EMIT_EMIT_H
#define HLO_PASSES_EMIT_EMIT_H

#include "passes/context.h"

/* Puts every FP8 call of context->module in the form options->emit; HLO_EMIT_CUBLAS changes nothing
 * in a scheduled module. HLO_INVALID_INPUT, with an error in context->sink: a call is pinned, or
 * the module is scheduled. */
hlo_status hlo_emit(hlo_pass_context *context);

#endif
