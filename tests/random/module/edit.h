/* SPDX-License-Identifier: Apache-2.0 */
/* Modules similar to those that rules rewrite: the rules' examples and the golden tests, edited at
 * random. A new rule is thereby tested without changes here. */
#ifndef HLO_TESTS_RANDOM_MODULE_EDIT_H
#define HLO_TESTS_RANDOM_MODULE_EDIT_H

#include "ir/ir.h"
#include "tests/random/module/draw.h"

typedef struct text_case {
    char *name; /* name of the rule or the file */
    char *text;
    char *head; /* the first module of the file, which has the RUN lines; "" for a rule's example */
    uint64_t key; /* hash of the text */
} text_case;

typedef struct text_cases {
    size_t count, capacity;
    text_case *v;
} text_cases;

/* Finds the examples of the built-in rules, and the modules of the files matching that glob. Free
 * with free_cases(). */
void find_cases(text_cases *out, const char *pattern);
void free_cases(text_cases *cases);

/* Creates the module of a seed: half of them are generated (gen.h), the others are edited cases.
 * Returns NULL if it does not verify. The caller frees it. */
hlo_module *draw_module(const text_cases *cases, uint64_t seed);

#endif
