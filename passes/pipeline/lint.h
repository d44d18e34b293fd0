/* SPDX-License-Identifier: Apache-2.0 */
/* Lints: likely mistakes with the scales of a program. They are rows of
 * passes/reason/reason.def, named lint-*. */
#ifndef HLO_PASSES_PIPELINE_LINT_H
#define HLO_PASSES_PIPELINE_LINT_H

#include "passes/verdict/remark.h"

/* Lints a copy of the module, *copy, before any pass. The caller frees *copy, also after an error.
 * `recover`: where the arenas jump if memory runs out. May fail with HLO_OUT_OF_MEMORY. */
hlo_status hlo_lint_as_read(hlo_pass_context *context, hlo_module **copy, jmp_buf *recover);
/* Reports lints of the module after all passes. */
void hlo_lint_as_left(hlo_pass_context *context);

#endif
