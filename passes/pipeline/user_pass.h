/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that a program brings along. */
#ifndef HLO_PASSES_PIPELINE_USER_PASS_H
#define HLO_PASSES_PIPELINE_USER_PASS_H

#include "passes/context.h"

/* Finds the pass of that name among options->user_passes; false: there is none. */
bool hlo_user_pass_find(const hlo_pass_options *options, const char *name, size_t length,
                        hlo_user_pass *out);
/* Writes the first fault of options->user_passes to `out`; false: there is none. `is_taken` knows
 * the names of other passes. */
bool hlo_user_pass_fault(const hlo_pass_options *options, bool (*is_taken)(const char *name),
                         char *out, size_t size);
/* Runs the pass, and updates the facts that the run keeps of the module. */
hlo_status hlo_user_pass_run(hlo_pass_context *context, const hlo_user_pass *pass);

#endif
