/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined passes. */
#ifndef HLO_PASSES_PIPELINE_USER_PASS_H
#define HLO_PASSES_PIPELINE_USER_PASS_H

#include "passes/context.h"

/* Finds a pass by name among options->user_passes. Returns false if not found. */
bool hlo_user_pass_find(const hlo_pass_options *options, const char *name, size_t length,
                        hlo_user_pass *out);
/* Writes the first error in options->user_passes to `out`. Returns false if there are no errors.
 * `is_taken` returns true for names of other passes. */
bool hlo_user_pass_fault(const hlo_pass_options *options, bool (*is_taken)(const char *name),
                         char *out, size_t size);
/* Runs the pass, and updates the facts about the module that the run caches. */
hlo_status hlo_user_pass_run(hlo_pass_context *context, const hlo_user_pass *pass);

#endif
