/* SPDX-License-Identifier: Apache-2.0 */
/* Creates modules similar to those that rules rewrite: the rules' examples and the golden tests,
 * edited at random. So a new rule is tested without changes here. */
#ifndef HLO_TESTS_RANDOM_MODULE_EDIT_H
#define HLO_TESTS_RANDOM_MODULE_EDIT_H

#include "ir/ir.h"
#include "tests/random/module/draw.h"

typedef struct text_case {
    char *name; /* name of the rule or the file */
    char *text;
    char *head; /* text of the file's first module, with RUN lines; "--cuda=12.9" for an example */
    uint64_t key; /* hash of the module's text */
} text_case;

typedef struct text_cases {
    size_t count, capacity;
    text_case *v;
} text_cases;

/* Finds the examples of the built-in rules, and the modules of the files that match a glob. Free
 * the result with free_cases(). */
void find_cases(text_cases *out, const char *pattern);
void free_cases(text_cases *cases);

/* Creates the module of a seed. Half of the modules are generated (gen.h), the others are edited
 * cases. Returns NULL if the module is invalid or would run for seconds. The caller frees the
 * module. */
hlo_module *draw_module(const text_cases *cases, uint64_t seed);

#endif
