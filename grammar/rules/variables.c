/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: the slots of a rule, and the slots that every alternative binds. */
#include "grammar/rules/compile.h"
#include "ir/intern.h"

#include <string.h>

const node *rules_parameter(rules_parser *p, const let_frame *f, const char *name,
                            uint32_t *out_index) {
    if (!f) return NULL;
    const node *arg = f->args;
    *out_index = 0;
    for (const node *v = f->let->params; v; v = v->next, arg = arg->next, ++*out_index)
        if (rules_name(p, v->name) == name) return arg;
    return NULL;
}

static void check_holds(rules_parser *p, span where, const char *name, int holds, int wanted) {
    if (holds == wanted) return;
    rules_fault(p, where, "%s is bound to %s", name,
                holds == HOLDS_VALUE    ? "a value and cannot be used as an attribute"
                : wanted == HOLDS_VALUE ? "an attribute and cannot be used as a value"
                                        : "an attribute of another kind");
}

int16_t rules_slot_holding(rules_parser *p, const let_frame *f, span where, bool bind, int holds) {
    struct rules_draft *d = p->draft;
    const char *name = rules_name(p, where);
    uint32_t index;
    const node *arg = rules_parameter(p, f, name, &index);
    if (arg) {
        if (arg->kind == NODE_VAR) return rules_slot_holding(p, f->caller, arg->name, bind, holds);
        rules_fault(p, arg->where, "argument %s of this definition must be a variable", name);
        return 0;
    }
    if (f) {
        char *local = hlo_arena_format(p->owner->arena, "%s'%u", name, f->number);
        name = hlo_intern_string(p->owner, local);
    }
    for (uint32_t i = 0; i < d->slot_count; i++) {
        if (d->slots[i] != name) continue;
        check_holds(p, where, name, d->holds[i], holds);
        if (d->acting && !bind && d->partial.has[i])
            rules_fault(p, where, "not every alternative of the pattern binds %s", name);
        return (int16_t)i;
    }
    if (!bind)
        rules_fault(p, where, "%s is not bound by the pattern", name);
    else if (d->slot_count == HLO_RULE_SLOTS)
        rules_fault(p, where, "too many variables");
    if (!bind || d->slot_count == HLO_RULE_SLOTS) return 0;
    d->chain[d->slot_count] = false;
    d->holds[d->slot_count] = (int8_t)holds;
    d->slots[d->slot_count] = name;
    return (int16_t)d->slot_count++;
}

int16_t rules_slot(rules_parser *p, const let_frame *f, span where, bool bind) {
    return rules_slot_holding(p, f, where, bind, HOLDS_VALUE);
}

/* Adds the variables that every match of the pattern binds to `always`, and those that some match
 * binds to `ever`. */
static void add_bound(rules_parser *p, uint32_t index, slot_set *always, slot_set *ever) {
    const hlo_rule_term t = *rules_term_at(p, index);
    const uint32_t *args = t.arg_count ? (const uint32_t *)p->draft->args.data + t.first_arg : NULL;
    if (t.slot >= 0) always->has[t.slot] = ever->has[t.slot] = true;
    for (uint32_t i = 0; i < t.attr_count; i++) {
        const int16_t slot = ((const hlo_rule_attr *)p->draft->attrs.data)[t.first_attr + i].slot;
        if (slot >= 0) always->has[slot] = ever->has[slot] = true;
    }
    if (t.kind != HLO_TERM_ALT) {
        const uint32_t patterns = t.kind == HLO_TERM_DEFINE ? 1 : t.arg_count;
        for (uint32_t i = 0; i < patterns; i++) add_bound(p, args[i], always, ever);
        return;
    }
    uint8_t times[HLO_RULE_SLOTS] = {0};
    for (uint32_t i = 0; i < t.arg_count; i++) {
        slot_set one = {{false}};
        add_bound(p, args[i], &one, ever);
        for (uint32_t s = 0; s < p->draft->slot_count; s++) times[s] += one.has[s];
    }
    for (uint32_t s = 0; s < p->draft->slot_count; s++) always->has[s] |= times[s] == t.arg_count;
}

void rules_find_partial(rules_parser *p, uint32_t first_root) {
    slot_set always = {{false}}, ever = {{false}};
    add_bound(p, first_root, &always, &ever);
    for (uint32_t s = 0; s < HLO_RULE_SLOTS; s++)
        p->draft->partial.has[s] = ever.has[s] && !always.has[s];
}

int16_t rules_nameless_slot(rules_parser *p, span where) {
    struct rules_draft *d = p->draft;
    if (d->slot_count == HLO_RULE_SLOTS) {
        rules_fault(p, where, "too many variables");
        return 0;
    }
    d->chain[d->slot_count] = false;
    d->holds[d->slot_count] = HOLDS_VALUE;
    d->slots[d->slot_count] = hlo_intern_string(p->owner, "%root");
    return (int16_t)d->slot_count++;
}
