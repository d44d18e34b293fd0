/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and messages with one mutation, and the outcome of each. */
#ifndef HLO_TESTS_DIGESTS_PERTURB_H
#define HLO_TESTS_DIGESTS_PERTURB_H

#include <stdio.h>

#include "hlo/diag.h"

/* Prints the severity, the column and the length of a diagnostic to the file `user`, and the
 * numbers, the quoted parts and the names in its message, but not the wording. */
void print_diag(void *user, const hlo_diag *diag);

/* Prints the outcome of `text` with each of its words changed, in several ways. `outcome` prints
 * that of one text. */
void perturb_words(const char *text, void (*outcome)(const char *text, FILE *out), FILE *out);

/* Like perturb_words(), with each byte changed, and truncated there. */
void perturb_bytes(const char *bytes, size_t size,
                   void (*outcome)(const char *bytes, size_t size, FILE *out), FILE *out);

#endif
