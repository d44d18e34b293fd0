/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the words that rules may use, and loads rules from a file or from memory. The rule
 * compiler links this file without the functions that the words name. */
#include "ir/memory.h"
#include "passes/rules/library.h"

#include <stdlib.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/text/file.h"

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

hlo_status hlo_rules_read(const char *text, size_t size, const char *name, unsigned max_errors,
                          const hlo_diag_sink *sink, hlo_module **out_owner,
                          const hlo_rules **out_rules) {
    jmp_buf recover;
    hlo_module *volatile owner = NULL;
    *out_owner = NULL;
    *out_rules = NULL;
    if (setjmp(recover)) {
        hlo_module_free(owner);
        return HLO_OUT_OF_MEMORY;
    }
    owner = hlo_module_make(&recover);
    if (!owner) return HLO_OUT_OF_MEMORY;
    char *copy = hlo_arena_alloc(owner->arena, size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    owner->source = copy;
    owner->source_size = size;
    owner->file = hlo_intern_string(owner, name);
    hlo_status status = hlo_rules_parse(owner, &hlo_rule_words, max_errors, sink, out_rules);
    if (status == HLO_OK)
        *out_owner = owner;
    else
        hlo_module_free(owner);
    return status;
}

hlo_status hlo_rules_load(const char *path, unsigned max_errors, const hlo_diag_sink *sink,
                          hlo_module **out_owner, const hlo_rules **out_rules) {
    hlo_content text;
    hlo_status status = hlo_file_read(path, sink, &text);
    if (status == HLO_OK)
        status =
            hlo_rules_read(text.bytes, text.size, path, max_errors, sink, out_owner, out_rules);
    hlo_free(text.bytes);
    return status;
}
