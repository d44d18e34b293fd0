/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the built-in rules, functions that load rules from files, and the functions that rules
 * call. */
#ifndef HLO_PASSES_RULES_LIBRARY_H
#define HLO_PASSES_RULES_LIBRARY_H

#include "grammar/rules/rules.h"
#include "passes/engine/engine.h"

/* The words of the rule language that builder.def, reason.def and field.def define. */
extern const hlo_rule_vocabulary hlo_rule_words;

/* The files in passes/rules/, sorted by name. */
extern const hlo_rules *const hlo_rules_builtin[];
extern const uint32_t hlo_rules_builtin_count;

/* The rules of all files, with the functions that they call. */
extern const hlo_rule_library hlo_rule_library_builtin;

/* Loads the file at `path` for context->rules. `owner` is a module without instructions that owns
 * the tables; the caller frees it after the last run that uses them. If the rules are invalid,
 * returns HLO_INVALID_INPUT and emits at most `max_errors` diagnostics (0: HLO_MAX_ERRORS) and a
 * note with the number of further errors. */
hlo_status hlo_rules_load(const char *path, unsigned max_errors, const hlo_diag_sink *sink,
                          hlo_module **out_owner, const hlo_rules **out_rules);

/* Like hlo_rules_load(), but reads and copies `text`. `name` is the file name in diagnostics. */
hlo_status hlo_rules_read(const char *text, size_t size, const char *name, unsigned max_errors,
                          const hlo_diag_sink *sink, hlo_module **out_owner,
                          const hlo_rules **out_rules);

/* Prototypes of the functions of builder.def, and of functions that they share. */
#define HLO_TEST(name, params) hlo_rule_test hlo_test_##name;
#define HLO_MAKE(name, params) hlo_rule_make hlo_make_##name;
#define HLO_MEASURE(name, params) hlo_rule_measure hlo_measure_##name;
#include "passes/rules/builder.def"
#undef HLO_TEST
#undef HLO_MAKE
#undef HLO_MEASURE

/* These macros start the definitions of the functions, most of which use few parameters. */
#define UNUSED __attribute__((unused))
#define TEST(name)                                                                                 \
    bool hlo_test_##name(UNUSED const hlo_rule_env *env, UNUSED const hlo_binding *args,           \
                         UNUSED uint32_t count, UNUSED const hlo_instruction **out_blocker)
#define MAKE(name)                                                                                 \
    bool hlo_make_##name(UNUSED hlo_rule_env *env, UNUSED const hlo_binding *args,                 \
                         UNUSED uint32_t count, hlo_instruction **out)
#define MEASURE(name)                                                                              \
    int64_t hlo_measure_##name(UNUSED const hlo_rule_env *env, const hlo_instruction *value)

/* Reads the fused FP8 call `call`. Returns false if `call` is not such a call or is malformed. */
bool hlo_decode_call(const hlo_instruction *call, hlo_matmul *out);

/* True if two shapes with equal dimensions are the same or both row-major: they then store elements
 * in the same order. */
bool hlo_shape_same_order(const hlo_shape *a, const hlo_shape *b);

/* True if the first `batch` dimensions are the outermost in memory, in order. */
bool hlo_shape_is_batch_major(const hlo_shape *shape, uint32_t batch);

/* True for a reduce whose computation is the maximum of its two parameters. */
bool hlo_reduces_by_max(const hlo_instruction *reduce);

#endif
