/* Where and when a module's instructions run: what says so, and whether a rewrite has kept to it.
 */
#ifndef HLO_TESTS_RANDOM_PLACES_H
#define HLO_TESTS_RANDOM_PLACES_H

#include "ir/ir.h"
#include "tests/random/draw.h"

/* Adds some of: control dependencies, a schedule, other memory spaces, effects, calls that stay or
 * that the host runs, threads. What comes out need not verify. */
void edit_places(hlo_module *module, dice *d);

/* Whether what had to stay has: a scheduled module is the same, what another thread runs too, what
 * a control dependency names is there, with it, and in that order, and so is what reads or writes
 * another memory space or has an effect. Otherwise `why` (of `size` bytes) says what is not. */
bool places_kept(const hlo_module *before, const hlo_module *after, char *why, size_t size);

#endif
