/* SPDX-License-Identifier: Apache-2.0 */
/* See library.h. The rule compiler links this table without the functions that it names. */
#include "passes/rules/library.h"

static const hlo_rule_function functions[] = {
#define HLO_TEST(name, params) {#name, HLO_FUNCTION_TEST, params},
#define HLO_MAKE(name, params) {#name, HLO_FUNCTION_MAKE, params},
#define HLO_MEASURE(name, params) {#name, HLO_FUNCTION_MEASURE, params},
#include "passes/rules/builder.def"
#undef HLO_TEST
#undef HLO_MAKE
#undef HLO_MEASURE
};

static const char *const reasons[] = {
#define HLO_REASON(id, name, text, hint) name,
#include "passes/reason/reason.def"
#undef HLO_REASON
};

static const char *const fields[] = {
#define HLO_FIELD(name, member, kind) name,
#include "matmul/table/field.def"
#undef HLO_FIELD
};

const hlo_rule_vocabulary hlo_rule_words = {
    .function_count = sizeof functions / sizeof *functions,
    .reason_count = sizeof reasons / sizeof *reasons,
    .field_count = sizeof fields / sizeof *fields,
    .functions = functions,
    .reasons = reasons,
    .fields = fields,
};
