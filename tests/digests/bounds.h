/* SPDX-License-Identifier: Apache-2.0 */
/* Prints error bounds of every instruction of a module, for operands with given bounds. */
#ifndef HLO_TESTS_DIGESTS_BOUNDS_H
#define HLO_TESTS_DIGESTS_BOUNDS_H

#include <stdio.h>

#include "hlo/module.h"

/* Computes the entry's instructions from synthetic parameters with synthetic sigmas, in several
 * ways, and prints the sigmas. Instructions that call a whole computation also have synthetic
 * results. */
void bounds_of_module(const hlo_module *module, FILE *out);

/* Prints the sigmas of each elementwise operation and supported element type, for all pairs
 * of some numbers, infinities and NaN, with some sigmas. `shown` NULL: digests, one row each;
 * otherwise the text of the row with that name. */
void bounds_of_operations(const char *shown, FILE *out);

#endif
