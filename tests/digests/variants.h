/* SPDX-License-Identifier: Apache-2.0 */
/* Creates variants of a module that differ from it in a single point. */
#ifndef HLO_TESTS_DIGESTS_VARIANTS_H
#define HLO_TESTS_DIGESTS_VARIANTS_H

#include <stdio.h>

#include "hlo/module.h"

/* Calls `print` with each valid variant of a module. A variant has two operands exchanged,
 * another opcode, constant, element type, size or layout, or one more result. One in `share`
 * variants is created. */
void variants_of_module(const hlo_module *module, unsigned share,
                        void (*print)(const hlo_module *variant, FILE *out), FILE *out);

#endif
