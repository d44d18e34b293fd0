/* The actions of a rule, all or none. */
#include "passes/engine/rewrite.h"
#include "ir/module/undo.h"
#include "ir/verify/verify.h"

typedef struct change {
    hlo_instr *from, *to; /* replaced */
    bool follow;          /* only the verdict of `from` goes to `to` */
} change;

typedef struct operand_change {
    hlo_instr *user, *from, *to;
} operand_change;

/* Changes of a firing, none of which is made before all are known to be possible. */
typedef struct plan {
    change changes[2 * HLO_RULE_ARGS];
    operand_change operands[HLO_RULE_ARGS];
    uint32_t change_count, operand_count;
} plan;

/* Returns the replacement of the root by a `call %mm with ..` without a name. */
static hlo_instr *call_replacement(hlo_rule_env *env, hlo_instr *call) {
    if (env->root->op == HLO_OP_CUSTOM_CALL && env->root->shape == call->shape) return call;
    return hlo_matmul_result(call, 0);
}

static bool keeps_attr(const hlo_instr *from, const hlo_instr *to, hlo_attr_id id) {
    const char *text = hlo_instr_str(from, id), *other = hlo_instr_str(to, id);
    return !text || text == other;
}

/* True if frontend attributes or the sharding of `from` would be lost with it: `to` is not new, and
 * has others. */
static bool loses(const hlo_rule_env *env, const hlo_instr *from, const hlo_instr *to) {
    return to->id < env->first_id && (!keeps_attr(from, to, HLO_ATTR_FRONTEND_ATTRIBUTES) ||
                                      !keeps_attr(from, to, HLO_ATTR_SHARDING));
}

static bool add_change(hlo_rule_env *env, plan *p, hlo_instr *from, hlo_instr *to) {
    if (!from) return true; /* an optional root that was not found */
    if (!to || from == to || loses(env, from, to) ||
        (to->shape != from->shape && !hlo_shape_compatible(from->shape, to->shape)))
        return hlo_rule_refuse(env, NULL, NULL);
    if (to != env->build->at && !hlo_rule_hoist_before(env, to)) return false;
    if (from == env->root) env->replacement = to;
    p->changes[p->change_count++] = (change){.from = from, .to = to};
    return true;
}

/* Sets the place: before the first instruction, in list order, that the actions replace. */
static void find_place(hlo_rule_env *env) {
    const hlo_rule *rule = env->rule;
    *env->build = (hlo_builder){.at = env->root, .admits = hlo_rule_admits};
    for (uint32_t i = 0; i < rule->action_count; i++) {
        const hlo_rule_action *a = &env->rules->actions[rule->first_action + i];
        if (a->slot < 0 || (a->kind != HLO_ACTION_REPLACE && a->kind != HLO_ACTION_OPERAND))
            continue;
        hlo_instr *instr = env->slots[a->slot].instr;
        if (env->slots[a->slot].kind == HLO_BOUND_VALUE && instr != env->build->at &&
            hlo_engine_before(env->engine, instr, env->build->at))
            env->build->at = instr;
    }
    const hlo_instr *subject = rule->subject < 0 ? NULL : env->slots[rule->subject].instr;
    env->build->like = subject ? subject : env->root;
}

static void replace_operand(hlo_instr *user, const hlo_instr *from, hlo_instr *to) {
    for (uint32_t i = 0; i < user->operand_count; i++)
        if (hlo_instr_operand(user, i) == from) hlo_instr_set_operand(user, i, to);
}

static bool is_dot(const hlo_instr *instr) {
    return instr->op == HLO_OP_DOT || instr->op == HLO_OP_RAGGED_DOT;
}

/* Hands the verdicts of the dots that the rule replaces on to `dot`. */
static void follow_replaced(const hlo_rule_env *env, hlo_instr *dot, plan *p) {
    for (uint32_t i = 0; i < env->rule->action_count; i++) {
        const hlo_rule_action *a = &env->rules->actions[env->rule->first_action + i];
        if (a->kind != HLO_ACTION_REPLACE || env->slots[a->slot].kind != HLO_BOUND_VALUE) continue;
        hlo_instr *from = env->slots[a->slot].instr;
        if (is_dot(from))
            p->changes[p->change_count++] = (change){.from = from, .to = dot, .follow = true};
    }
}

/* Plans one action. False: it is refused. */
static bool plan_action(hlo_rule_env *env, const hlo_rule_action *a, plan *p) {
    if (a->kind == HLO_ACTION_REPLACE && env->slots[a->slot].kind != HLO_BOUND_VALUE) return true;
    hlo_instr *value =
        a->kind == HLO_ACTION_CALL ? hlo_rule_build_call(env, a) : hlo_rule_build(env, a->term);
    if (env->unbuildable) return false;
    hlo_binding *slot = a->slot < 0 ? NULL : &env->slots[a->slot];
    hlo_instr *target = slot ? slot->instr : NULL;
    switch ((hlo_rule_action_kind)a->kind) {
    case HLO_ACTION_CALL: {
        hlo_instr *source = env->slots[a->operand].instr;
        if (slot)
            *slot = (hlo_binding){.kind = HLO_BOUND_VALUE, .instr = value};
        else if (!add_change(env, p, env->root, call_replacement(env, value)))
            return false;
        p->changes[p->change_count++] = (change){.from = source, .to = value, .follow = true};
        return true;
    }
    case HLO_ACTION_LET:
        env->slots[a->slot] =
            (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
        if (value && is_dot(value)) follow_replaced(env, value, p);
        return true;
    case HLO_ACTION_REPLACE: return add_change(env, p, target, value);
    default:
        if (!value || !target) return hlo_rule_refuse(env, NULL, NULL);
        p->operands[p->operand_count++] =
            (operand_change){.user = target, .from = env->slots[a->operand].instr, .to = value};
        if (target == env->root) env->replacement = target;
        return true;
    }
}

static bool plan_actions(hlo_rule_env *env, plan *p) {
    for (uint32_t i = 0; i < env->rule->action_count; i++)
        if (!plan_action(env, &env->rules->actions[env->rule->first_action + i], p)) return false;
    return true;
}

/* True for a dot that becomes a call: reasons why it was wide hold no more. */
static bool is_fused(const change *c) {
    return c->from->op == HLO_OP_DOT && hlo_matmul_is_call(c->to);
}

static const char *fault_of(const hlo_instr *instr, hlo_arena *scratch) {
    const char *fault = hlo_instr_fault(instr, scratch);
    hlo_matmul m;
    if (!fault && hlo_matmul_is_call(instr) && hlo_matmul_decode(instr, &m, &fault) == HLO_OK)
        fault = NULL;
    return fault;
}

/* Verifies, at once, all instructions that a rule of a file has made: the rest of a run relies on a
 * valid module. Users that the rule did not make are verified after the phase (phase.c). */
static void check_made(hlo_rule_env *env, const hlo_instr *mark, const plan *p) {
    hlo_arena *scratch = env->context->scratch;
    for (const hlo_instr *i = env->build->at->prev; i != mark && !env->fault; i = i->prev)
        if (i->id >= env->first_id) env->fault = fault_of(i, scratch);
    for (uint32_t i = 0; i < p->operand_count && !env->fault; i++)
        if (p->operands[i].user->parent) env->fault = fault_of(p->operands[i].user, scratch);
}

/* Hands the verdict of a matmul on to its replacement. */
static void follow(hlo_rule_env *env, const change *c) {
    hlo_remark_follow(env->context, c->from, c->to);
    if (hlo_engine_judges(env->engine) || is_fused(c)) hlo_remark_clear(env->context, c->to);
    hlo_instr_inherit(c->to, c->from);
}

static void replace(hlo_rule_env *env, const change *c) {
    hlo_engine_push(env->engine, c->to);
    for (hlo_use *use = c->from->uses; use; use = use->next)
        hlo_engine_push(env->engine, use->user);
    if (c->to->id >= env->first_id) hlo_instr_inherit(c->to, c->from);
    hlo_instr_replace_uses(c->from, c->to);
}

/* Carries the plan out. `mark`: the last instruction before the new ones. */
static void commit(hlo_rule_env *env, const hlo_instr *mark, const plan *p) {
    hlo_rule_move_all(env);
    for (uint32_t i = 0; i < p->change_count; i++)
        if (p->changes[i].follow) follow(env, &p->changes[i]);
    for (hlo_instr *i = env->build->at->prev; i != mark; i = i->prev)
        hlo_engine_push(env->engine, i);
    for (uint32_t i = 0; i < p->change_count; i++)
        if (!p->changes[i].follow) replace(env, &p->changes[i]);
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const operand_change *o = &p->operands[i];
        replace_operand(o->user, o->from, o->to);
        hlo_engine_push(env->engine, o->user);
        hlo_engine_remove_dead(env->engine, o->from);
    }
    if (env->rules == env->context->rules) check_made(env, mark, p);
    for (uint32_t i = 0; i < p->change_count; i++)
        if (!p->changes[i].follow) hlo_engine_remove_dead(env->engine, p->changes[i].from);
}

bool hlo_rule_rewrite(hlo_rule_env *env) {
    plan p;
    p.change_count = p.operand_count = 0;
    hlo_module *module = env->context->module;
    env->first_id = module->next_id;
    find_place(env);
    const hlo_instr *mark = env->build->at->prev;
    env->unbuildable = false;
    env->replacement = NULL;
    env->fault = NULL;
    env->move_count = 0;
    hlo_journal_open(env->journal, module);
    const bool whole = plan_actions(env, &p);
    if (!whole) hlo_journal_undo(module);
    hlo_journal_close(module);
    if (whole) commit(env, mark, &p);
    return whole;
}
