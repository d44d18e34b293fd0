/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the library, and rules from files. */
#ifndef HLO_PASSES_RULES_LIBRARY_H
#define HLO_PASSES_RULES_LIBRARY_H

#include "grammar/rules/rules.h"
#include "passes/engine/engine.h"

/* The words of the rule language that the passes define: builder.def, reason.def, field.def. */
extern const hlo_rule_vocabulary hlo_rule_words;

/* The files in passes/rules/, sorted by name. */
extern const hlo_rules *const hlo_rules_builtin[];
extern const uint32_t hlo_rules_builtin_count;

/* The rules of all files, with the functions that they call. */
extern const hlo_rule_library hlo_rule_library_builtin;

/* Loads the file at `path` for context->rules. `owner` is a module without instructions that owns
 * the tables; the caller frees it after the last run that uses them. HLO_INVALID_INPUT, with at
 * most `max_errors` diagnostics (0: HLO_MOST_ERRORS) and a note about the others. */
hlo_status hlo_rules_load(const char *path, unsigned max_errors, const hlo_diag_sink *sink,
                          hlo_module **out_owner, const hlo_rules **out_rules);

/* Reads rules from memory, which is copied; `name` is the file name in diagnostics. */
hlo_status hlo_rules_read(const char *text, size_t size, const char *name, unsigned max_errors,
                          const hlo_diag_sink *sink, hlo_module **out_owner,
                          const hlo_rules **out_rules);

#endif
