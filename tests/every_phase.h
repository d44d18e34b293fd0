/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all passes that apply rules, in the order of pass.def, and then `algebra` again. */
#ifndef HLO_TESTS_EVERY_PHASE_H
#define HLO_TESTS_EVERY_PHASE_H

#define FUNCTION(function) OMIT
#define SEQUENCE(list) OMIT
#define RULES(phase) LIST
#define OMIT(name)
#define LIST(name) name ","
#define APPLY(body, name) body(name)
#define PASS(name, body, role, help) APPLY(body, name)
static const char every_phase[] =
#include "passes/pass.def"
    "algebra";
#undef PASS
#undef APPLY
#undef LIST
#undef OMIT
#undef RULES
#undef SEQUENCE
#undef FUNCTION

#endif
