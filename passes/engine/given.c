/* The rules that the program gave: how often each fired, and which rule was faster. */
#include "passes/engine/given.h"

#include <string.h>

#include "passes/analysis/module_facts.h"

static bool matches(hlo_rule_env *env, const hlo_rules *rules, const hlo_rule *rule,
                    hlo_instr *root) {
    env->rules = rules;
    env->rule = rule;
    env->root = root;
    env->subject = NULL;
    return root->parent && hlo_rule_match(env);
}

/* Notes `instr` as the match of each rule of the program that has no match yet, of other phases as
 * well: a rule of this one may fire before those. */
static void note_matches(hlo_engine *e, hlo_rule_env *env, hlo_instr *instr) {
    const hlo_rules *rules = e->context->rules;
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        hlo_rule_use *use = &e->context->uses[i];
        if (use->fired || use->match || !matches(env, rules, &rules->rules[i], instr)) continue;
        use->match = instr;
        use->by = NULL;
    }
}

void hlo_given_begin(hlo_engine *e, hlo_rule_env *env) {
    const hlo_rules *rules = e->context->rules;
    for (uint32_t i = 0; rules && i < rules->rule_count; i++) e->context->uses[i].match = NULL;
    if (!rules) return;
    for (hlo_computation *comp = e->context->module->first; comp; comp = comp->next) {
        const bool fused = comp->id < e->fused_count && hlo_facts_has(e->fused, comp->id);
        for (hlo_instr *i = fused ? NULL : comp->first; i; i = hlo_instr_next(i))
            if (i->use_count || hlo_instr_user_count(i)) note_matches(e, env, i);
    }
}

void hlo_given_fired(hlo_engine *e, hlo_rule_env *env, const hlo_rules *of, const hlo_rule *fired) {
    const hlo_rules *rules = e->context->rules;
    if (rules && of == rules) e->context->uses[fired - rules->rules].fired++;
    for (uint32_t i = 0; rules && i < rules->rule_count; i++) {
        hlo_rule_use *use = &e->context->uses[i];
        if (!use->match || use->fired || use->by ||
            matches(env, rules, &rules->rules[i], use->match))
            continue;
        use->by = fired->name;
        use->at = hlo_arena_format(e->context->lasting, "%s", use->match->name);
    }
}

void hlo_given_undone(hlo_pass_context *context, const hlo_rule_use *before) {
    for (uint32_t i = 0; context->rules && i < context->rules->rule_count; i++) {
        hlo_rule_use *use = &context->uses[i];
        use->undone |= use->fired > before[i].fired || (use->by && !before[i].by);
        use->fired = before[i].fired;
        use->match = NULL;
    }
}
