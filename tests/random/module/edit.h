/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that are nearly one that a rule is for: the rules' examples and the golden tests, edited
 * at random. A new rule is tried so without anything written here. */
#ifndef HLO_TESTS_RANDOM_MODULE_EDIT_H
#define HLO_TESTS_RANDOM_MODULE_EDIT_H

#include "ir/ir.h"
#include "tests/random/module/draw.h"

typedef struct text_case {
    char *name; /* of the rule or the file */
    char *text;
    char *head; /* the first module of the file, where the RUN lines are; "" for a rule's example */
    uint64_t key; /* of the text */
} text_case;

typedef struct text_cases {
    size_t count, capacity;
    text_case *v;
} text_cases;

/* The examples of the built-in rules, and the modules of the files of that glob pattern. Released
 * by free_cases(). */
void find_cases(text_cases *out, const char *pattern);
void free_cases(text_cases *cases);

/* Makes the module of a seed: every other one is drawn from nothing (gen.h), the others are edited
 * cases. NULL: it does not verify. The caller frees it. */
hlo_module *draw_module(const text_cases *cases, uint64_t seed);

#endif
