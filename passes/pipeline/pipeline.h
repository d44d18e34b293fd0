/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files of this folder share. */
#ifndef HLO_PASSES_PIPELINE_PIPELINE_H
#define HLO_PASSES_PIPELINE_PIPELINE_H

#include "passes/verdict/remark.h"

/* Fills in the defaults and checks the options, as hlo_pass_options_check() does. */
hlo_status hlo_pass_options_take(const hlo_pass_options *options, hlo_pass_options *out);

/* Lints: likely mistakes with the scales of a program. They are rows of
 * passes/reason/reason.def, named lint-*. */

/* Lints a copy of the module, *copy, before any pass. The caller frees *copy, also after an error.
 * `recover`: where the arenas jump if memory runs out. May fail with HLO_OUT_OF_MEMORY. */
hlo_status hlo_lint_as_read(hlo_pass_context *context, hlo_module **copy, jmp_buf *recover);
/* Reports lints of the module after all passes. */
void hlo_lint_as_left(hlo_pass_context *context);

#endif
