/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and messages with one mistake, and what becomes of each. */
#ifndef HLO_TESTS_DIGESTS_PERTURB_H
#define HLO_TESTS_DIGESTS_PERTURB_H

#include <stdio.h>

#include "hlo/diag.h"

/* Prints the severity, the column and the length of a diagnostic to the file `user`, and of its
 * message the numbers, the quoted parts and the names: no wording. */
void print_diag(void *user, const hlo_diag *diag);

/* Prints the outcome of `text` with each of its words changed, in each of several ways. `outcome`
 * prints that of one text. */
void perturb_words(const char *text, void (*outcome)(const char *text, FILE *out), FILE *out);

/* As perturb_words(), with each byte changed, and cut off there. */
void perturb_bytes(const char *bytes, size_t size,
                   void (*outcome)(const char *bytes, size_t size, FILE *out), FILE *out);

#endif
