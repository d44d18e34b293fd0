/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any bytes. The grammar of rewrite rules rejects the bytes, or reads tables whose
 * indices are in range. A run with these rules, on their own examples and on a built-in one, then
 * produces a valid module or reports an error in the rules. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hlo/text.h"
#include "passes/rules/library.h"
#include "tests/every_phase.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

static void check_range(uint32_t first, uint32_t count, uint32_t capacity) {
    expect(first <= capacity && count <= capacity - first);
}

static void check_terms(const hlo_rules *rules) {
    for (uint32_t i = 0; i < rules->term_count; i++) {
        const hlo_rule_term *term = &rules->terms[i];
        check_range(term->first_arg, term->arg_count, rules->arg_count);
        check_range(term->first_attr, term->attr_count, rules->attr_count);
    }
    for (uint32_t i = 0; i < rules->arg_count; i++) expect(rules->args[i] < rules->term_count);
    for (uint32_t i = 0; i < rules->attr_count; i++)
        if (rules->attrs[i].kind == HLO_RULE_INTS)
            check_range(rules->attrs[i].first_int, rules->attrs[i].int_count, rules->int_count);
}

static void check_rule(const hlo_rules *rules, const hlo_rule *rule) {
    expect(rule->name && rule->phase && rule->slot_count <= HLO_RULE_SLOTS);
    expect(rule->root < rule->slot_count && rule->subject < rule->slot_count);
    check_range(rule->first_root, rule->root_count, rules->root_count);
    check_range(rule->first_guard, rule->guard_count, rules->guard_count);
    check_range(rule->first_action, rule->action_count, rules->action_count);
}

static void run_on(const char *example, const char *path) {
    hlo_module *module = NULL;
    if (hlo_module_parse(example, strlen(example), "fuzz", NULL, &module) != HLO_OK) return;
    if (hlo_module_verify(module, NULL, NULL) == HLO_OK) {
        hlo_pass_options options;
        hlo_pass_options_init(&options);
        options.rules = path;
        options.passes = every_phase;
        options.cuda = "12.9";
        options.verify_each = options.merge_dots = options.allow_bias_rounding = true;
        if (hlo_module_optimize(module, &options, NULL) == HLO_INTERNAL) abort();
    }
    hlo_module_free(module);
}

/* Returns the built-in example with a number. */
static const char *our_example(size_t number) {
    const hlo_rules *file = hlo_rules_builtin[number % hlo_rules_builtin_count];
    const hlo_rule *rule = &file->rules[number / hlo_rules_builtin_count % file->rule_count];
    return rule->example ? rule->example : file->rules[0].example;
}

static void run_with(const uint8_t *data, size_t size, const hlo_rules *rules) {
    enum { EXAMPLES = 4 };
    const int file = memfd_create("rules", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (uint32_t i = 0; i < rules->rule_count && i < EXAMPLES; i++)
        if (rules->rules[i].example) run_on(rules->rules[i].example, path);
    run_on(our_example(size), path);
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hlo_module *owner;
    const hlo_rules *rules;
    if (hlo_rules_read((const char *)data, size, "fuzz", 0, NULL, &owner, &rules) != HLO_OK)
        return 0;
    check_terms(rules);
    for (uint32_t i = 0; i < rules->rule_count; i++) check_rule(rules, &rules->rules[i]);
    run_with(data, size, rules);
    hlo_module_free(owner);
    return 0;
}
