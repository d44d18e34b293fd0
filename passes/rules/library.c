/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in rules with the table of their functions, and rules from a file, which are parsed at
 * run time with the grammar that rulec uses at build time. */
#include "passes/rules/library.h"

#include <stdlib.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/text/file.h"
#include "passes/rules/functions.h"

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
    owner = hlo_module_new(&recover);
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
    free(text.bytes);
    return status;
}
