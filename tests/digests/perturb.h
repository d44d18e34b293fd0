/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the outcomes of texts and messages with one mutation. */
#ifndef HLO_TESTS_DIGESTS_PERTURB_H
#define HLO_TESTS_DIGESTS_PERTURB_H

#include <stdio.h>

#include "hlo/diag.h"

/* Prints the severity, the column and the length of a diagnostic to the file `user`, and the
 * numbers, the quoted parts and the names in its message, but not the wording. */
void print_diag(void *user, const hlo_diag *diag);

/* Calls `outcome` for `text` with each of its words changed, in several ways. `outcome` prints
 * the outcome of one text. */
void perturb_words(const char *text, void (*outcome)(const char *text, FILE *out), FILE *out);

/* Like perturb_words(), but each byte is changed, and the text is truncated at each byte. */
void perturb_bytes(const char *bytes, size_t size,
                   void (*outcome)(const char *bytes, size_t size, FILE *out), FILE *out);

#endif
