/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a rewrite is correct: the result verifies and computes the same values. */
#ifndef HLO_TESTS_RANDOM_CHECK_CHECK_H
#define HLO_TESTS_RANDOM_CHECK_CHECK_H

#include "hlo/pass.h"
#include "hlo/runtime.h"
#include "passes/verdict/remark.h"
#include "tests/random/module/draw.h"

enum { MAX_RULES = 256, WHY_SIZE = 4096 };

typedef enum outcome {
    OUTCOME_SAME,     /* the rewrite is correct */
    OUTCOME_NO_CASE,  /* the module itself does not verify or run, so there is no result */
    OUTCOME_NO_END,   /* the passes failed: a phase does not terminate, or the result does not
                       * verify */
    OUTCOME_DIFFERENT /* the rewrite changes a value, the number of products or a constraint of
                       * module/places.h, or products lack a verdict */
} outcome;

/* Counts over many random modules. */
typedef struct census {
    uint64_t modules, no_case, rewrites, verdicts[3]; /* verdicts by hlo_verdict_kind */
    uint64_t fired[MAX_RULES]; /* number of applications of each rule, by rule_index() */
    uint64_t reasons[HLO_REASON_COUNT];
} census;

/* Returns a rule in the order of the files; NULL if the index is out of range. */
const char *rule_name(int index);
/* Returns the index of a rule; -1 if there is no such rule. */
int rule_index(const char *name);
/* Returns true if the rule only sets a reason. */
bool rule_only_remarks(int index);

/* Adds the applications of each rule to an array of MAX_RULES numbers, by rule_index(). */
void count_rules(const hlo_report *report, uint64_t *fired);

/* Parses a module. Returns NULL if the text is not a valid module. The caller frees the module. */
hlo_module *read_module(const char *text, const char *name);

/* Draws options: passes, target, form of the call and order of work. */
hlo_pass_options draw_options(dice *d);

/* Draws inputs. A parameter whose name begins with m is a factor, with d a divisor. Either may be
 * negative or tiny; factors may also be 0. Some values are NaN or infinite. The caller frees the
 * arrays; NULL if they cannot be drawn. */
hlo_arrays *draw_inputs(const hlo_module *module, uint64_t seed);

/* Optimizes a copy and compares it with the module on inputs drawn from the seed. `counts` may be
 * NULL; `why` receives the error, in WHY_SIZE bytes. */
outcome check_rewrite(const hlo_module *module, const hlo_pass_options *options, uint64_t seed,
                      census *counts, char *why);
/* Compares a module with an existing rewrite. */
outcome check_values(const hlo_module *before, const hlo_module *after, uint64_t seed, char *why);

/* Removes parts of a failing module while it still fails, and returns the rest; the caller frees
 * it. */
hlo_module *reduce_module(const hlo_module *module, const hlo_pass_options *options, uint64_t seed);

/* Binds the process to one of the processors, so that parallel jobs do not wait for each other's
 * threads. */
void use_processor(int job);
/* Ends the process after the given CPU time from now on, regardless of other load. */
void limit_seconds(int seconds);

/* kept.c: returns true if a rewrite kept the constraints of module/places.h. A scheduled module and
 * the code of another thread must not change. Ends of control dependencies, instructions with side
 * effects, and instructions that read or write another memory space must still exist; the ends must
 * still be ordered. Otherwise `why` (of `size` bytes) names the violation. */
bool places_kept(const hlo_module *before, const hlo_module *after, char *why, size_t size);

#endif
