/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the built-in rules under another name: clauses.c passes copies of these rules to the
 * engine. */
#define hlo_rules_builtin hlo_rules_real
#define hlo_rules_builtin_count hlo_rules_real_count
#include "rules.c"
