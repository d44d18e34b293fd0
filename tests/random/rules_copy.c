/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in rules under another name: clauses.c passes copies of them to the engine. */
#define hlo_rules_builtin hlo_rules_real
#define hlo_rules_builtin_count hlo_rules_real_count
#include "rules.c"
