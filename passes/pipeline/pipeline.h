/* SPDX-License-Identifier: Apache-2.0 */
/* Declares functions that several files of this folder use. */
#ifndef HLO_PASSES_PIPELINE_PIPELINE_H
#define HLO_PASSES_PIPELINE_PIPELINE_H

#include <jansson.h>

#include "passes/verdict/remark.h"

/* Copies the given options, fills in the defaults and checks the options as
 * hlo_pass_options_check() does. */
hlo_status hlo_pass_options_take(const hlo_pass_options *given, hlo_pass_options *options);

/* Runs the passes before "quantize-wide" with the default options. Then inserts the amax of each
 * value that --quantize may quantize, and adds its name to the object `out_names`: {VALUE: NAME}.
 * Returns the same statuses as hlo_module_optimize(). */
hlo_status hlo_module_insert_amaxes(hlo_module *module, const hlo_diag_sink *sink,
                                    json_t *out_names);

/* Removes the computations that the entry does not call, directly or indirectly. */
void hlo_remove_uncalled(hlo_module *module, hlo_arena *scratch);

/* Lints report likely mistakes with the scales of a program. Each lint is a row of
 * passes/reason/reason.def with a name lint-*. */

/* Lints a copy of the module, *copy, before any pass. The caller frees *copy and *unread, a report
 * that has no other use, also after an error. If memory runs out, the arenas jump to `recover`. May
 * also return HLO_OUT_OF_MEMORY. */
hlo_status hlo_lint_as_read(hlo_pass_context *context, hlo_module **copy, hlo_report **unread,
                            jmp_buf *recover);
/* Reports lints of the module after all passes. */
void hlo_lint_as_left(hlo_pass_context *context);

#endif
