/* Any bytes: the grammar of rewrite rules refuses them, or reads tables whose indices stay inside
 * them. */
#include <stdint.h>
#include <stdlib.h>

#include "passes/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

static void check_range(uint32_t first, uint32_t count, uint32_t room) {
    expect(first <= room && count <= room - first);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hlo_module *owner;
    const hlo_rules *rules;
    if (hlo_rules_read((const char *)data, size, "fuzz", 0, NULL, &owner, &rules) != HLO_OK)
        return 0;
    check_terms(rules);
    for (uint32_t i = 0; i < rules->rule_count; i++) check_rule(rules, &rules->rules[i]);
    hlo_module_free(owner);
    return 0;
}
