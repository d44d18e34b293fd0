/* SPDX-License-Identifier: Apache-2.0 */
/* Finds values of the entry computation that depend only on certain parameters, so that they can be
 * computed once for many executions. */
#ifndef HLO_PASSES_ANALYSIS_AHEAD_H
#define HLO_PASSES_ANALYSIS_AHEAD_H

#include "ir/ir.h"

enum {
    HLO_AHEAD_NO,       /* the value depends on another parameter, or must stay where it is */
    HLO_AHEAD_CONSTANT, /* the value depends on no parameter */
    HLO_AHEAD_YES       /* the value depends only on parameters that `names` selects */
};

/* True if a word of the list `names` is the name of the parameter, or a glob (fnmatch(3)) that
 * matches it. `names` may be NULL. */
bool hlo_ahead_selects(const char *names, const hlo_instruction *parameter);

/* Returns HLO_AHEAD_*, by instruction id. A value is HLO_AHEAD_NO if it is pinned, is inside a
 * manual region, has an effect, is random, or differs between devices although its operands do not;
 * if it has a dynamic size; or if it is a tuple that is used as a whole, unless it is the result of
 * `tuple`. Instructions must be pinned (pin.h). */
const unsigned char *hlo_ahead_find(const hlo_module *module, const char *names, hlo_arena *arena);

#endif
