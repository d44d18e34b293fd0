/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the passes that are implemented in C, and the last step of a run. pass.def lists all
 * passes. */
#ifndef HLO_PASSES_PASSES_H
#define HLO_PASSES_PASSES_H

#include "passes/context.h"

#define FUNCTION(f) hlo_pass_function f;
#define RULES(phases)
#define SEQUENCE(list)
#define PASS(name, body, role, help) body
#include "passes/pass.def"
#undef PASS
#undef SEQUENCE
#undef RULES
#undef FUNCTION

/* Converts every FP8 call of context->module to the form options->emit. The form HLO_EMIT_CUBLAS
 * does not change a scheduled module. For other forms, returns HLO_INVALID_INPUT, with an error in
 * context->sink, if a call is pinned or the module is scheduled. */
hlo_status hlo_emit(hlo_pass_context *context);

#endif
