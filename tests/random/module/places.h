/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints on where and when instructions run: control dependencies, schedules, memory spaces,
 * effects, threads. */
#ifndef HLO_TESTS_RANDOM_MODULE_PLACES_H
#define HLO_TESTS_RANDOM_MODULE_PLACES_H

#include "ir/ir.h"
#include "tests/random/module/draw.h"

/* Adds some of: control dependencies, a schedule, other memory spaces, effects, calls that stay or
 * that the host runs, threads. The module need not verify afterwards. */
void edit_places(hlo_module *module, dice *d);

#endif
