/* SPDX-License-Identifier: Apache-2.0 */
/* Error bounds of every instruction of a module, for operands whose bounds are given. */
#ifndef HLO_TESTS_DIGESTS_BOUNDS_H
#define HLO_TESTS_DIGESTS_BOUNDS_H

#include <stdio.h>

#include "hlo/module.h"

/* Computes the entry's instructions from made-up parameters with made-up sigmas, in several ways,
 * and prints the sigmas. Instructions that call a whole computation have made-up results, too. */
void bounds_of_module(const hlo_module *module, FILE *out);

/* Prints the sigmas of each elementwise operation, for each element type that it is defined for:
 * of all pairs of some numbers, infinities and NaN, with some sigmas. `shown` NULL: digests, a row
 * each; else the text of the row of that name. */
void bounds_of_operations(const char *shown, FILE *out);

#endif
