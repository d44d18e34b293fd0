/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles statements of a `.rules` file to checked tables. */
#include "grammar/rules/compile.h"

#include <string.h>

void rules_let(rules_parser *p, span name, node *params, node *body) {
    const char *text = rules_name(p, name);
    if (rules_find_let(p, name)) rules_fault(p, name, "'%s' is already defined", text);
    if (hlo_op_find(text, strlen(text)) != HLO_OP_INVALID || rules_find_function(p, text) >= 0)
        rules_fault(p, name, "'%s' is an opcode or a function", text);
    let_node *let = rules_new(p, sizeof *let);
    *let = (let_node){.next = p->lets, .name = name, .params = params, .body = body};
    p->lets = let;
}

static int reason_code(rules_parser *p, span name) {
    const char *text = rules_name(p, name);
    int reason = rules_find_word(p->words->reasons, p->words->reason_count, text);
    if (reason < 0) rules_fault(p, name, "unknown reason '%s'", text);
    return reason < 0 ? 0 : reason;
}

void rules_phase(rules_parser *p, span name, span measure) {
    struct rules_draft *d = p->draft;
    d->phase = rules_name(p, name);
    d->measure = rules_name(p, measure);
    int code = rules_find_function(p, d->measure);
    if (code < 0 || p->words->functions[code].kind != HLO_FUNCTION_MEASURE)
        rules_fault(p, measure, "unknown measure '%s'", d->measure);
    else
        d->measure_code = (uint16_t)code;
}

static void lower_guard(rules_parser *p, const guard_node *g) {
    const char *name = rules_name(p, g->call->name);
    int code = rules_find_function(p, name);
    uint32_t count, first = rules_push_args(p, NULL, g->call->args, ARGUMENT, &count);
    if (code < 0 || p->words->functions[code].kind != HLO_FUNCTION_TEST) {
        rules_fault(p, g->call->name, "unknown test '%s'", name);
        code = 0;
    } else {
        rules_check_call(p, g->call->where, &p->words->functions[code], first, count);
    }
    uint16_t reason = g->reason.last ? (uint16_t)reason_code(p, g->reason) : HLO_RULE_NO_REASON;
    int16_t at = g->at.last ? rules_slot(p, NULL, g->at, false) : -1;
    hlo_rule_guard *guard = rules_push(p, &p->draft->guards, sizeof *guard);
    *guard = (hlo_rule_guard){.negate = g->negate,
                              .function = (uint16_t)code,
                              .reason = reason,
                              .at = at,
                              .arg_count = count,
                              .first_arg = first};
}

static void lower_sets(rules_parser *p, const set_node *list, hlo_rule_action *action) {
    hlo_rule_set sets[HLO_RULE_ARGS];
    uint32_t count = 0;
    for (const set_node *s = list; s; s = s->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, s->field, "too many fields");
            break;
        }
        const char *name = rules_name(p, s->field);
        int field = rules_find_word(p->words->fields, p->words->field_count, name);
        if (field < 0) rules_fault(p, s->field, "unknown matmul field '%s'", name);
        sets[count++] = (hlo_rule_set){.field = (uint16_t)(field < 0 ? 0 : field),
                                       .add = s->add,
                                       .term = rules_lower(p, NULL, s->value, ARGUMENT)};
    }
    action->first_set = p->draft->sets.count;
    action->set_count = count;
    for (uint32_t i = 0; i < count; i++)
        *(hlo_rule_set *)rules_push(p, &p->draft->sets, sizeof sets[0]) = sets[i];
}

/* Compiles an action. `root`: the slot that a bare term replaces. */
static void lower_action(rules_parser *p, const action_node *a, int16_t root,
                         hlo_rule_action *out) {
    *out = (hlo_rule_action){.kind = (uint8_t)a->kind, .slot = -1, .operand = -1};
    switch (a->kind) {
    case HLO_ACTION_REPLACE:
        out->slot = a->target.last ? rules_slot(p, NULL, a->target, false) : root;
        out->term = rules_lower(p, NULL, a->value, TEMPLATE);
        break;
    case HLO_ACTION_LET:
        out->term = rules_lower(p, NULL, a->value, TEMPLATE);
        out->slot = rules_slot(p, NULL, a->target, true);
        break;
    case HLO_ACTION_OPERAND:
        out->slot = rules_slot(p, NULL, a->target, false);
        out->operand = rules_slot(p, NULL, a->operand, false);
        out->term = rules_lower(p, NULL, a->value, TEMPLATE);
        break;
    case HLO_ACTION_CALL:
        out->operand = rules_slot(p, NULL, a->operand, false);
        lower_sets(p, a->sets, out);
        if (a->target.last) out->slot = rules_slot(p, NULL, a->target, true);
        break;
    case HLO_ACTION_REMARK:
        out->reason = (uint16_t)reason_code(p, a->reason);
        if (a->operand.last) out->operand = rules_slot(p, NULL, a->operand, false);
        break;
    }
}

static int16_t lower_roots(rules_parser *p, const root_node *roots) {
    hlo_rule_root lowered[HLO_RULE_ARGS] = {{0}};
    uint32_t count = 0;
    for (const root_node *r = roots; r; r = r->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, r->pattern->where, "too many roots");
            break;
        }
        uint32_t index = rules_lower(p, NULL, r->pattern, PATTERN);
        if (rules_term_at(p, index)->slot < 0) {
            const int16_t slot = rules_nameless_slot(p, r->pattern->where);
            rules_term_at(p, index)->slot = slot;
        }
        lowered[count++] = (hlo_rule_root){.term = index, .optional = r->optional};
    }
    const int16_t first = rules_term_at(p, lowered[0].term)->slot;
    rules_find_partial(p, lowered[0].term);
    for (uint32_t i = 0; i < count; i++)
        *(hlo_rule_root *)rules_push(p, &p->draft->roots, sizeof lowered[0]) = lowered[i];
    return first;
}

void rules_rule(rules_parser *p, span name, span subject, root_node *roots, guard_node *guards,
                action_node *actions, span example) {
    struct rules_draft *d = p->draft;
    d->slot_count = d->expansions = d->depth = 0;
    d->acting = false;
    if (!d->phase) rules_fault(p, name, "a rule must be in a phase");
    hlo_rule rule = {.name = rules_name(p, name),
                     .phase = d->phase,
                     .measure = d->measure,
                     .measure_code = d->measure_code,
                     .subject = -1};
    rule.example = example.last ? rules_name(p, example) : NULL;
    rule.offset = (uint32_t)name.first;
    while (p->counted < name.first) p->lines += p->owner->source[p->counted++] == '\n';
    rule.line = p->lines + 1;

    rule.first_root = d->roots.count;
    rule.root = lower_roots(p, roots);
    rule.root_count = d->roots.count - rule.first_root;
    rule.first_guard = d->guards.count;
    for (const guard_node *g = guards; g; g = g->next) lower_guard(p, g);
    rule.guard_count = d->guards.count - rule.first_guard;
    if (subject.last) rule.subject = rules_slot(p, NULL, subject, false);

    d->acting = true;
    hlo_rule_action lowered[HLO_RULE_ARGS];
    uint32_t count = 0;
    bool remark = false;
    for (const action_node *a = actions; a; a = a->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, name, "too many actions");
            break;
        }
        lower_action(p, a, rule.root, &lowered[count++]);
        remark |= a->kind == HLO_ACTION_REMARK;
    }
    if (remark && (count > 1 || rule.subject < 0))
        rules_fault(p, name, "a remark must be the only action of a rule `for` a matmul");
    if (!remark && !example.last) rules_fault(p, name, "a rule requires an example");
    rule.first_action = d->actions.count;
    rule.action_count = count;
    for (uint32_t i = 0; i < count; i++)
        *(hlo_rule_action *)rules_push(p, &d->actions, sizeof lowered[0]) = lowered[i];

    rule.slot_count = (uint16_t)d->slot_count;
    rule.slots = hlo_arena_copy(p->owner->arena, d->slots, d->slot_count * sizeof d->slots[0]);
    for (uint32_t i = 0; i < d->rules.count; i++)
        if (((hlo_rule *)d->rules.data)[i].name == rule.name)
            rules_fault(p, name, "rule '%s' is already defined", rule.name);
    *(hlo_rule *)rules_push(p, &d->rules, sizeof rule) = rule;
}

const hlo_rules *rules_take(rules_parser *p) {
    hlo_rules *rules = hlo_arena_zero(p->owner->arena, sizeof *rules);
    rules->file = p->owner->file;
#define TABLE(name)                                                                                \
    rules->name##s = p->draft->name##s.data;                                                       \
    rules->name##_count = p->draft->name##s.count;
    HLO_RULE_TABLES(TABLE)
#undef TABLE
    return rules;
}
