/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a rewrite of a module is right: it verifies, and computes the module's values. */
#ifndef HLO_TESTS_RANDOM_CHECK_CHECK_H
#define HLO_TESTS_RANDOM_CHECK_CHECK_H

#include "hlo/pass.h"
#include "hlo/runtime.h"
#include "passes/verdict/remark.h"
#include "tests/random/module/draw.h"

enum { RULES_MOST = 256, WHY_SIZE = 4096 };

typedef enum outcome {
    OUTCOME_SAME,     /* nothing is wrong */
    OUTCOME_NO_CASE,  /* the module itself does not verify or run: says nothing */
    OUTCOME_NO_END,   /* the passes failed: a phase does not end, the result does not verify */
    OUTCOME_DIFFERENT /* another value, or more matmuls */
} outcome;

/* Counts over many modules. */
typedef struct census {
    uint64_t modules, no_case, rewrites, verdicts[3]; /* by hlo_verdict_kind */
    uint64_t fired[RULES_MOST];                       /* by rule_index() */
    uint64_t reasons[HLO_REASON_COUNT];
} census;

/* Rules in the order of their files. NULL: no such index. */
const char *rule_name(int index);
/* -1: no such rule. */
int rule_index(const char *name);
/* True if the rule changes nothing, and only gives a reason. */
bool rule_only_remarks(int index);

/* Adds how often each rule fired, by rule_index(): RULES_MOST numbers. */
void count_rules(const hlo_report *report, uint64_t *fired);

/* NULL when the text is no module that verifies. The caller frees it. */
hlo_module *read_module(const char *text, const char *name);

/* Draws passes, target, form of the call and order of work. */
hlo_pass_options draw_options(dice *d);

/* Parameters whose names begin with m are factors, with d divisors: negative, tiny, 0, infinite and
 * NaN as well. Some values are NaN. The caller frees the arrays; NULL: they cannot be drawn. */
hlo_arrays *draw_inputs(const hlo_module *module, uint64_t seed);

/* Optimizes a copy and compares on inputs drawn from the seed. `counts` may be NULL; `why` receives
 * the fault, in WHY_SIZE bytes. */
outcome check_rewrite(const hlo_module *module, const hlo_pass_options *options, uint64_t seed,
                      census *counts, char *why);
/* Compares a module with an existing rewrite. */
outcome check_values(const hlo_module *before, const hlo_module *after, uint64_t seed, char *why);

/* Removes parts of a failing module as long as it still fails, and returns the rest: the caller
 * frees it. */
hlo_module *reduce_module(const hlo_module *module, const hlo_pass_options *options, uint64_t seed);

/* Keeps the process on one of the processors, so that parallel jobs do not wait for each other's
 * threads. */
void use_processor(int job);
/* Ends the process when it has computed for so long from now on, however busy the machine is. */
void limit_seconds(int seconds);

/* kept.c: true if a rewrite kept the constraints of module/places.h: a scheduled module is
 * unchanged, so is the code of another thread; ends of control dependencies are there, with them
 * and in their order, and so are instructions with effects or operands in another memory space.
 * False: `why` (of `size` bytes) names the one that is not. */
bool places_kept(const hlo_module *before, const hlo_module *after, char *why, size_t size);

#endif
