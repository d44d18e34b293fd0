/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the passes that are implemented in C; pass.def lists all passes. */
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

#endif
