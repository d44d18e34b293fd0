/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that differ from one in a single point. */
#ifndef HLO_TESTS_DIGESTS_VARIANTS_H
#define HLO_TESTS_DIGESTS_VARIANTS_H

#include <stdio.h>

#include "hlo/module.h"

/* Calls `print` with each valid variant of a module: two operands exchanged, another opcode,
 * another constant, another element type or size throughout, a value that the result has, too. One
 * in `share` of them is made. */
void variants_of_module(const hlo_module *module, unsigned share,
                        void (*print)(const hlo_module *variant, FILE *out), FILE *out);

#endif
