/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in rules with the table of their functions. */
#include "passes/rules/library.h"

static const hlo_rule_functions functions[] = {
#define HLO_TEST(name, params) {.test = hlo_test_##name},
#define HLO_MAKE(name, params) {.make = hlo_make_##name},
#define HLO_MEASURE(name, params) {.measure = hlo_measure_##name},
#include "passes/rules/builder.def"
#undef HLO_TEST
#undef HLO_MAKE
#undef HLO_MEASURE
};

const hlo_rule_library hlo_rule_library_builtin = {&hlo_rule_words, functions, hlo_rules_builtin,
                                                   &hlo_rules_builtin_count};
