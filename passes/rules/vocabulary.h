/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the rule language that the passes define: builder.def, reason.def, field.def. */
#ifndef HLO_PASSES_RULES_VOCABULARY_H
#define HLO_PASSES_RULES_VOCABULARY_H

#include "grammar/rules/rules.h"

extern const hlo_rule_vocabulary hlo_rule_words;

#endif
