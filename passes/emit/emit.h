/* The last step of a run: FP8 calls in the form that --emit names. */
#ifndef HLO_PASSES_EMIT_H
#define HLO_PASSES_EMIT_H

#include "passes/context.h"

/* Puts every FP8 call of context->module, which may have a schedule, in the form options->emit.
 * HLO_INVALID_INPUT, with an error in context->sink for the call: it has to stay as and where it
 * is, and a form without calls was asked for. */
hlo_status hlo_emit(hlo_pass_context *context);

#endif
