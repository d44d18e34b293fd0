/* SPDX-License-Identifier: Apache-2.0 */
/* Matches patterns against instructions, with backtracking.
 *
 * The goals that remain to be matched are a list on the C stack. Every choice (operand order,
 * alternative, length of a chain, optional root) continues with the rest of the list, and tries its
 * next option if the rest fails. So a failed match leaves no captures, and a failing guard
 * backtracks to the last choice. */
#include "passes/engine/engine.h"

#include <ctype.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/module/known.h"
#include "passes/analysis/pin.h"

enum { FUEL = 4096, USER_LIMIT = 64, HEIGHT_LIMIT = 4 };

typedef struct goal {
    const struct goal *next;
    uint32_t term;
    hlo_instruction *value;
} goal;

static bool match_goals(hlo_rule_env *env, const goal *g);
static bool match_term(hlo_rule_env *env, uint32_t term, hlo_instruction *value, const goal *next);

static uint32_t arg_of(const hlo_rule_env *env, const hlo_rule_term *t, uint32_t index) {
    return env->rules->args[t->first_arg + index];
}

/* -------------------------------------------------------------------------- values and bindings */

int hlo_rule_result_index(const hlo_instruction *call, hlo_rule_result which) {
    hlo_matmul m;
    if (!hlo_matmul_is_call(call)) return -1;
    if (which == HLO_RESULT_OUT) return 0;
    if (!hlo_matmul_read_results(call, &m)) return -1;
    switch (which) {
    case HLO_RESULT_AUX: return hlo_matmul_aux_index(&m);
    case HLO_RESULT_AMAX: return hlo_matmul_amax_index(&m);
    default: return 0;
    }
}

/* Returns the get-tuple-element of a result of a call, or NULL. */
static hlo_instruction *result_value(const hlo_instruction *call, hlo_rule_result which) {
    int index = hlo_rule_result_index(call, which);
    for (hlo_use *use = index < 0 ? NULL : call->uses; use; use = use->next)
        if (use->user->op == HLO_OP_GET_TUPLE_ELEMENT &&
            hlo_instr_int(use->user, HLO_ATTR_INDEX, -1) == index)
            return use->user;
    return NULL;
}

static bool attr_is(hlo_rule_env *env, const hlo_rule_attr *want, const hlo_attr *have) {
    switch ((hlo_rule_attr_kind)want->kind) {
    case HLO_RULE_INT: return have && have->u.i == want->number;
    case HLO_RULE_WORD: return have && have->u.str && !strcmp(have->u.str, want->word);
    case HLO_RULE_INTS:
        if (!have || have->u.ints->count != want->int_count) return !have && !want->int_count;
        return !memcmp(have->u.ints->v, env->rules->ints + want->first_int,
                       want->int_count * sizeof(int64_t));
    case HLO_RULE_SLOT: {
        hlo_binding *slot = &env->slots[want->slot];
        if (slot->kind == HLO_BOUND_ATTR) {
            if (!slot->attr || !have) return slot->attr == have;
            return hlo_attr_equal(slot->attr, have);
        }
        if (slot->kind != HLO_BOUND_NOT) return false;
        *slot = (hlo_binding){.kind = HLO_BOUND_ATTR, .attr = have};
        return true;
    }
    default: return false;
    }
}

/* ---------------------------------------------------------------------------------------- terms */

static bool fits(const hlo_binding *arg, char letter) {
    switch (letter) {
    case 'A': return hlo_has_instr(arg) && hlo_shape_is_array(arg->instr->shape);
    case 'C': return arg->kind == HLO_BOUND_CHAIN;
    case 'D': return hlo_has_instr(arg) && arg->instr->op == HLO_OP_DOT;
    case 'N':
    case 'S': return arg->kind == HLO_BOUND_NUMBER;
    case 'V': return hlo_has_instr(arg);
    case 'W': return arg->kind == HLO_BOUND_WORD;
    default: return !hlo_has_instr(arg) || fits(arg, (char)toupper((unsigned char)letter));
    }
}

bool hlo_rule_fits(const hlo_rule_env *env, uint16_t function, const hlo_binding *args,
                   uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!fits(&args[i], hlo_rule_letter(&env->context->library->words->functions[function], i)))
            return false;
    return true;
}

static bool holds(const hlo_rule_env *env, uint16_t function, const hlo_binding *args,
                  uint32_t count, const hlo_instruction **out_blocker) {
    return hlo_rule_fits(env, function, args, count) &&
           env->context->library->functions[function].test(env, args, count, out_blocker);
}

static bool match_operands(hlo_rule_env *env, const hlo_rule_term *t, const hlo_instruction *value,
                           bool swap, const goal *next) {
    goal goals[HLO_RULE_ARGS];
    for (uint32_t i = t->arg_count; i-- > 0; next = &goals[i])
        goals[i] = (goal){.next = next,
                          .term = arg_of(env, t, i),
                          .value = hlo_instr_operand(value, swap ? t->arg_count - 1 - i : i)};
    return match_goals(env, next);
}

static bool match_kind(hlo_rule_env *env, const hlo_rule_term *t, hlo_instruction *value,
                       const goal *next) {
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_ANY: return match_goals(env, next);
    case HLO_TERM_VAR: {
        hlo_binding *slot = &env->slots[t->slot];
        if (slot->kind == HLO_BOUND_VALUE || slot->kind == HLO_BOUND_CHAIN)
            return slot->instr == value && match_goals(env, next);
        if (slot->kind != HLO_BOUND_NOT) return false;
        *slot = (hlo_binding){.kind = HLO_BOUND_VALUE, .leaf = true, .instr = value};
        if (match_goals(env, next)) return true;
        slot->kind = HLO_BOUND_NOT;
        return false;
    }
    case HLO_TERM_RESULT: {
        if (value->op != HLO_OP_GET_TUPLE_ELEMENT) return false;
        hlo_instruction *call = hlo_instr_operand(value, 0);
        hlo_binding *slot = &env->slots[t->slot];
        bool free = slot->kind == HLO_BOUND_NOT;
        if (!free && (slot->kind != HLO_BOUND_VALUE || slot->instr != call)) return false;
        if (hlo_rule_result_index(call, t->code) != hlo_instr_int(value, HLO_ATTR_INDEX, -2))
            return false;
        const hlo_instruction *pinned = env->pinned;
        if (value->pin || call->pin) env->pinned = value->pin ? value : call;
        if (free) *slot = (hlo_binding){.kind = HLO_BOUND_VALUE, .instr = call};
        if (match_goals(env, next)) return true;
        env->pinned = pinned;
        if (free) slot->kind = HLO_BOUND_NOT;
        return false;
    }
    case HLO_TERM_OP: {
        if (value->op != t->code || value->operand_count < t->arg_count ||
            (value->operand_count > t->arg_count && !t->rest))
            return false;
        hlo_binding saved[HLO_RULE_ARGS];
        uint32_t i;
        const hlo_rule_attr *attrs = t->attr_count ? env->rules->attrs + t->first_attr : NULL;
        for (i = 0; i < t->attr_count; i++) {
            if (attrs[i].kind == HLO_RULE_SLOT) saved[i] = env->slots[attrs[i].slot];
            if (!attr_is(env, &attrs[i], hlo_instr_attr(value, attrs[i].id))) break;
        }
        const hlo_instruction *pinned = env->pinned;
        if (value->pin) env->pinned = value;
        const bool fits_attrs = i == t->attr_count;
        bool ok = fits_attrs && !t->anywhere && match_operands(env, t, value, false, next);
        for (uint32_t o = 0; fits_attrs && t->anywhere && !ok && o < value->operand_count; o++)
            ok = match_term(env, arg_of(env, t, 0), hlo_instr_operand(value, o), next);
        if (!ok && fits_attrs && t->arg_count == 2 && hlo_op_is(value->op, HLO_COMMUTES) &&
            hlo_instr_operand(value, 0) != hlo_instr_operand(value, 1))
            ok = match_operands(env, t, value, true, next);
        if (!ok) env->pinned = pinned;
        for (; !ok && i-- > 0;)
            if (attrs[i].kind == HLO_RULE_SLOT) env->slots[attrs[i].slot] = saved[i];
        return ok;
    }
    case HLO_TERM_CONSTANT: {
        const hlo_type type = value->shape->type;
        double known, number = t->number;
        if (hlo_type_is_float(type) && type != HLO_TYPE_F64)
            number = hlo_float_decode(type, hlo_float_encode(type, number));
        return hlo_known_number(value, &known) && known == number && match_goals(env, next);
    }
    case HLO_TERM_CHAIN:
    case HLO_TERM_CHAIN1: {
        hlo_instruction *links[HLO_CHAIN_LIMIT + 1] = {value};
        uint32_t count = 0, least = 0;
        while (count < HLO_CHAIN_LIMIT && hlo_chain_link(links[count])) {
            if (!least && links[count]->op != HLO_OP_CONVERT) least = count + 1;
            links[count + 1] = hlo_instr_operand(links[count], 0);
            count++;
        }
        if (t->kind != HLO_TERM_CHAIN1)
            least = 0;
        else if (!least)
            return false;
        hlo_binding *slot = t->slot < 0 ? NULL : &env->slots[t->slot];
        if (slot && slot->kind != HLO_BOUND_NOT) return false;
        for (uint32_t length = count + 1; length-- > least;) {
            if (slot)
                *slot =
                    (hlo_binding){.kind = HLO_BOUND_CHAIN, .instr = value, .inner = links[length]};
            if (match_term(env, arg_of(env, t, 0), links[length], next)) return true;
        }
        if (slot) slot->kind = HLO_BOUND_NOT;
        return false;
    }
    case HLO_TERM_SPLAT: {
        /* Match the argument of splat() at the nearest value with one element, or at a value with
         * one element that the nearest value repeats. */
        hlo_instruction *source = hlo_splat_source(value);
        for (unsigned depth = 0; source && depth < HLO_CHAIN_LIMIT; depth++) {
            if (match_term(env, arg_of(env, t, 0), source, next)) return true;
            if (hlo_shape_count(source->shape) != 1 || !hlo_repeats(source)) return false;
            source = hlo_instr_operand(source, 0);
            if (hlo_shape_count(source->shape) != 1) return false;
        }
        return false;
    }
    case HLO_TERM_DEFINE: {
        hlo_binding *slot = &env->slots[t->slot];
        if (slot->kind != HLO_BOUND_NOT) return false;
        *slot = (hlo_binding){.kind = HLO_BOUND_TERM, .term = arg_of(env, t, 1)};
        if (match_term(env, arg_of(env, t, 0), value, next)) return true;
        slot->kind = HLO_BOUND_NOT;
        return false;
    }
    case HLO_TERM_ALT:
        for (uint32_t i = 0; i < t->arg_count; i++)
            if (match_term(env, arg_of(env, t, i), value, next)) return true;
        return false;
    default: return false;
    }
}

static bool match_seen(hlo_rule_env *env, const hlo_rule_term *t, hlo_instruction *value,
                       const goal *next) {
    if (t->shape_kind == HLO_SHAPE_TYPE && value->shape->type != t->shape_code) return false;
    const hlo_binding arg = {.kind = HLO_BOUND_VALUE, .instr = value};
    if (t->shape_kind == HLO_SHAPE_IS && !holds(env, t->shape_code, &arg, 1, &env->blocker))
        return false;
    /* Terms of these kinds bind their slots themselves. */
    if (t->slot < 0 || t->kind == HLO_TERM_VAR || t->kind == HLO_TERM_RESULT ||
        t->kind == HLO_TERM_CHAIN || t->kind == HLO_TERM_CHAIN1 || t->kind == HLO_TERM_DEFINE)
        return match_kind(env, t, value, next);
    hlo_binding *slot = &env->slots[t->slot];
    if (slot->kind == HLO_BOUND_VALUE)
        return slot->instr == value && match_kind(env, t, value, next);
    if (slot->kind != HLO_BOUND_NOT) return false;
    *slot = (hlo_binding){.kind = HLO_BOUND_VALUE, .instr = value};
    if (match_kind(env, t, value, next)) return true;
    slot->kind = HLO_BOUND_NOT;
    return false;
}

static bool match_term(hlo_rule_env *env, uint32_t term, hlo_instruction *value, const goal *next) {
    const hlo_rule_term *t = hlo_rule_term_at(env, term);
    if (!env->fuel) return false;
    env->fuel--;
    const bool any = t->kind == HLO_TERM_VAR || t->kind == HLO_TERM_ANY;
    if (!env->looks_past || any || value == env->root) return match_seen(env, t, value, next);
    const hlo_instruction *before = env->holder, *holder = NULL;
    hlo_instruction *held = hlo_handed_on(value, &holder);
    if (!env->holder) env->holder = holder;
    if (match_seen(env, t, holder ? held : value, next)) return true;
    env->holder = before;
    return false;
}

/* ----------------------------------------------------------------------------- roots and guards */

typedef struct op_set {
    bool has[HLO_OP_COUNT];
} op_set;

static void add_ops(const hlo_rule_env *env, uint32_t term, op_set *ops) {
    const hlo_rule_term *t = hlo_rule_term_at(env, term);
    if (t->kind == HLO_TERM_OP) ops->has[t->code] = true;
    for (uint32_t i = 0; i < t->arg_count; i++) add_ops(env, arg_of(env, t, i), ops);
}

/* Matches the pattern at users of `value`, or at their users, through up to `height` more levels.
 * `ops` has the opcodes that the pattern matches. */
static bool match_from_users(hlo_rule_env *env, uint32_t term, const op_set *ops,
                             const hlo_instruction *value, unsigned height) {
    unsigned seen = 0;
    for (hlo_use *use = value->uses; use && env->fuel && seen < USER_LIMIT;
         use = use->next, seen++) {
        if (!ops->has[use->user->op]) continue;
        if (match_term(env, term, use->user, NULL)) return true;
        if (height && match_from_users(env, term, ops, use->user, height - 1)) return true;
    }
    return false;
}

/* Matches the pattern at the users of each value that is in `part` and already bound. */
static bool match_from_users_at(hlo_rule_env *env, uint32_t term, const op_set *ops,
                                uint32_t part) {
    const hlo_rule_term *t = hlo_rule_term_at(env, part);
    if (t->slot >= 0 && env->slots[t->slot].kind == HLO_BOUND_VALUE) {
        hlo_instruction *base = env->slots[t->slot].instr;
        if (t->kind == HLO_TERM_RESULT) base = result_value(base, t->code);
        return base && (match_term(env, term, base, NULL) ||
                        match_from_users(env, term, ops, base,
                                         env->looks_past ? 2 * HEIGHT_LIMIT : HEIGHT_LIMIT));
    }
    for (uint32_t i = 0; i < t->arg_count; i++)
        if (match_from_users_at(env, term, ops, arg_of(env, t, i))) return true;
    return false;
}

hlo_binding hlo_rule_argument(const hlo_rule_env *env, const hlo_rule_term *t) {
    hlo_binding absent = {.kind = HLO_BOUND_ABSENT};
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_NUMBER: return (hlo_binding){.kind = HLO_BOUND_NUMBER, .number = t->number};
    case HLO_TERM_WORD: return (hlo_binding){.kind = HLO_BOUND_WORD, .word = t->word};
    case HLO_TERM_VAR:
        return env->slots[t->slot].kind == HLO_BOUND_NOT ? absent : env->slots[t->slot];
    case HLO_TERM_RESULT: {
        const hlo_binding *call = &env->slots[t->slot];
        hlo_instruction *value =
            call->kind == HLO_BOUND_VALUE ? result_value(call->instr, t->code) : NULL;
        return value ? (hlo_binding){.kind = HLO_BOUND_VALUE, .instr = value} : absent;
    }
    default: return absent;
    }
}

static bool guard_holds(const hlo_rule_env *env, const hlo_rule_guard *g,
                        const hlo_instruction **out_blocker) {
    hlo_binding args[HLO_RULE_SLOTS];
    for (uint32_t a = 0; a < g->arg_count; a++)
        args[a] = hlo_rule_argument(env, hlo_rule_term_at(env, env->rules->args[g->first_arg + a]));
    return holds(env, g->function, args, g->arg_count, out_blocker) != g->negate;
}

bool hlo_rule_may_fire(const hlo_rule_env *env) {
    const hlo_instruction *blocker;
    for (uint32_t i = 0; i < env->rule->guard_count; i++) {
        const hlo_rule_guard *g = &env->rules->guards[env->rule->first_guard + i];
        bool words = g->reason == HLO_RULE_NO_REASON;
        for (uint32_t a = 0; a < g->arg_count; a++)
            words &=
                hlo_rule_term_at(env, env->rules->args[g->first_arg + a])->kind == HLO_TERM_WORD;
        if (words && !guard_holds(env, g, &blocker)) return false;
    }
    return true;
}

/* Sets the reason, unless an earlier guard has set one. */
static void give_reason(hlo_rule_env *env, hlo_reason reason, const hlo_instruction *blocker) {
    if (env->reason != HLO_REASON_COUNT || (env->looks_past && !env->holder)) return;
    env->reason = reason;
    env->blocker = blocker;
    if (env->rule->subject >= 0) env->subject = env->slots[env->rule->subject].instr;
}

/* Matches the remaining roots, and then evaluates the guards. */
static bool match_next_root(hlo_rule_env *env) {
    uint32_t index = env->next_root;
    for (uint32_t i = 0; index == env->rule->root_count && i < env->rule->guard_count; i++) {
        const hlo_rule_guard *g = &env->rules->guards[env->rule->first_guard + i];
        if (guard_holds(env, g, &env->blocker)) continue;
        bool at = g->at >= 0 && env->slots[g->at].kind != HLO_BOUND_NOT;
        if (g->reason != HLO_RULE_NO_REASON)
            give_reason(env, g->reason, at ? env->slots[g->at].instr : env->blocker);
        return false;
    }
    if (index == env->rule->root_count) {
        if (env->pinned) give_reason(env, hlo_pin_reason(env->pinned), env->pinned);
        if (env->looks_past) give_reason(env, HLO_REASON_BEHIND_BARRIER, env->holder);
        return !env->pinned;
    }
    const hlo_rule_root *root = &env->rules->roots[env->rule->first_root + index];
    env->next_root = index + 1;
    op_set ops = {0};
    add_ops(env, root->term, &ops);
    ops.has[HLO_OP_OPT_BARRIER] |= env->looks_past;
    ops.has[HLO_OP_TUPLE] |= env->looks_past;
    ops.has[HLO_OP_GET_TUPLE_ELEMENT] |= env->looks_past;
    bool ok = match_from_users_at(env, root->term, &ops, root->term) || match_next_root(env);
    env->next_root = index;
    return ok;
}

static bool match_goals(hlo_rule_env *env, const goal *g) {
    if (!g) return match_next_root(env);
    return match_term(env, g->term, g->value, g->next);
}

void hlo_rule_match_past(hlo_rule_env *env) {
    env->looks_past = true;
    env->holder = NULL;
    hlo_rule_match(env);
    env->looks_past = false;
}

static bool has_result(const hlo_rule_env *env, uint32_t term) {
    const hlo_rule_term *t = hlo_rule_term_at(env, term);
    if (t->kind == HLO_TERM_RESULT) return true;
    for (uint32_t i = 0; i < t->arg_count; i++)
        if (has_result(env, arg_of(env, t, i))) return true;
    return false;
}

bool hlo_rule_takes_result(const hlo_rule_env *env) {
    const uint32_t root = env->rules->roots[env->rule->first_root].term;
    return hlo_rule_term_at(env, root)->kind != HLO_TERM_RESULT && has_result(env, root);
}

bool hlo_rule_match(hlo_rule_env *env) {
    memset(env->slots, 0, env->rule->slot_count * sizeof env->slots[0]);
    env->next_root = 1;
    env->pinned = NULL;
    env->fuel = FUEL;
    env->reason = HLO_REASON_COUNT;
    env->blocker = NULL;
    return match_term(env, env->rules->roots[env->rule->first_root].term, env->root, NULL);
}
