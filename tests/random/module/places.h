/* SPDX-License-Identifier: Apache-2.0 */
/* Adds constraints on the place and order of instructions: control dependencies, schedules, memory
 * spaces, effects, threads. */
#ifndef HLO_TESTS_RANDOM_MODULE_PLACES_H
#define HLO_TESTS_RANDOM_MODULE_PLACES_H

#include "ir/ir.h"
#include "tests/random/module/draw.h"

/* Adds some of these: control dependencies, a schedule, other memory spaces, side effects, calls
 * that must not be inlined or that run on the host, threads. Does not change a module with
 * num_partitions. The result may be invalid. */
void edit_places(hlo_module *module, dice *d);

#endif
