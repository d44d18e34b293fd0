/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the rules of a phase to a fixpoint.
 *
 * A sweep visits every instruction once. It immediately revisits instructions that an application
 * created or changed, while they are in the processor's caches. Sweeps repeat until a sweep applies
 * no rule. So a rule may match at any depth, and the engine need not track which changes affect the
 * rule. Every application decreases the phase's measure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/module/undo.h"
#include "ir/text/diag.h"
#include "passes/analysis/module_facts.h"
#include "passes/engine/worklist.h"

enum {
    BATCH = 1024, /* number of instructions in a batch, limited by cache size */
    FIRINGS_AT_LEAST = 256,
    SWEEP_LIMIT = 64
};

static void add_candidate(hlo_engine *e, hlo_op op, const hlo_rule_env *env) {
    const hlo_module *module = e->context->module;
    const bool marks =
        module->op_counts[HLO_OP_CUSTOM_CALL] && module->attrs_seen[HLO_ATTR_SHARDING];
    hlo_rule_candidate **end = &e->by_op[op];
    while (*end) {
        if ((*end)->rule == env->rule) return;
        end = &(*end)->next;
    }
    *end = hlo_arena_alloc(e->context->scratch, sizeof **end);
    **end = (hlo_rule_candidate){.rules = env->rules,
                                 .rule = env->rule,
                                 .holds = (marks || module->op_counts[HLO_OP_OPT_BARRIER]) &&
                                          hlo_rule_takes_result(env)};
}

/* Registers the rule under every opcode that its root may have. */
static void enter(hlo_engine *e, const hlo_rule_env *env, uint32_t term) {
    const hlo_rules *rules = env->rules;
    const hlo_rule_term *t = &rules->terms[term];
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_OP: add_candidate(e, t->code, env); break;
    case HLO_TERM_CONSTANT: add_candidate(e, HLO_OP_CONSTANT, env); break;
    case HLO_TERM_RESULT: add_candidate(e, HLO_OP_GET_TUPLE_ELEMENT, env); break;
    case HLO_TERM_DEFINE: enter(e, env, rules->args[t->first_arg]); break;
    case HLO_TERM_ALT:
        for (uint32_t i = 0; i < t->arg_count; i++) enter(e, env, rules->args[t->first_arg + i]);
        break;
    default:
        for (unsigned op = 0; op < HLO_OP_COUNT; op++) add_candidate(e, op, env);
        break;
    }
}

static void enter_phase(hlo_engine *e, hlo_rule_env *env, const hlo_rules *rules) {
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        const hlo_rule *rule = &rules->rules[i];
        if (strcmp(rule->phase, e->phase)) continue;
        e->judges |= rules->actions[rule->first_action].kind == HLO_ACTION_REMARK;
        for (uint32_t g = 0; g < rule->guard_count; g++)
            e->judges |= rules->guards[rule->first_guard + g].reason != HLO_RULE_NO_REASON;
        env->rules = rules;
        env->rule = rule;
        if (hlo_rule_may_fire(env)) enter(e, env, rules->roots[rule->first_root].term);
    }
}

static bool is_fused(const hlo_engine *e, const hlo_computation *comp) {
    return comp->id < e->fused_count && hlo_facts_has(e->fused, comp->id);
}

static bool matches(hlo_rule_env *env, const hlo_rules *rules, const hlo_rule *rule,
                    hlo_instruction *root) {
    env->rules = rules;
    env->rule = rule;
    env->root = root;
    env->subject = NULL;
    return root->parent && hlo_rule_match(env);
}

void hlo_given_undone(hlo_pass_context *context, const hlo_rule_use *before) {
    for (uint32_t i = 0; context->rules && i < context->rules->rule_count; i++) {
        hlo_rule_use *use = &context->uses[i];
        use->undone |= use->fired > before[i].fired || (use->by && !before[i].by);
        use->fired = before[i].fired;
        use->match = NULL;
    }
}

/* Sets the reason of the subject, unless the sweep has already set one. If `blocker` is NULL, the
 * reason names the rule's root. */
static void set_reason(hlo_engine *e, const hlo_rule_env *env, hlo_reason reason,
                       const hlo_instruction *blocker) {
    const hlo_instruction *subject = env->subject;
    if (env->rule->subject < 0 || reason == HLO_REASON_COUNT || !subject || !subject->parent)
        return;
    if (!blocker && env->root != subject) blocker = env->root;
    hlo_remark_reason(e->context, subject, reason, blocker);
}

static int64_t measure(const hlo_rule_env *env, const hlo_instruction *value) {
    return env->context->library->functions[env->rule->measure_code].measure(env, value);
}

/* Reports an error in a rule. The error is located at the rule if the rule comes from a file;
 * otherwise it is an internal error at offset `at` of the module. */
static void report_fault(hlo_engine *e, const hlo_rule *rule, bool given, uint32_t at,
                         const char *what) {
    const hlo_module *source = given ? e->context->rules_source : e->context->module;
    if (e->status != HLO_OK) return;
    e->status = given ? HLO_INVALID_INPUT : HLO_INTERNAL;
    hlo_diag_emit(source, e->context->sink, HLO_ERROR, given ? HLO_DIAG_RULE : HLO_DIAG_INTERNAL,
                  given ? rule->offset : at, given ? strlen(rule->name) : 0, "rule %s %s",
                  rule->name, what);
    if (given && at)
        hlo_diag_emit(e->context->module, e->context->sink, HLO_NOTE, HLO_DIAG_RULE, at, 1, "here");
}

static void report_endless(hlo_engine *e) {
    char what[128];
    snprintf(what, sizeof what, "keeps firing: phase %s does not terminate", e->phase);
    report_fault(e, e->last, e->given, 0, what);
}

/* Returns a hash of the module if it is small and the build has checks, otherwise 0. */
static uint64_t fingerprint(const hlo_engine *e) {
#ifdef HLO_CHECKS
    enum { MAX_INSTRS = 2048 };
    if (e->context->module->instr_count <= MAX_INSTRS)
        return hlo_module_fingerprint(e->context->module);
#endif
    (void)e;
    return 0;
}

/* Tries the rule at `root`. Returns true if it was applied. */
static bool try_rule(hlo_engine *e, hlo_rule_env *env, const hlo_rule_candidate *c,
                     hlo_instruction *root) {
    const uint32_t next_id = e->context->module->next_id;
    const bool matched = matches(env, c->rules, c->rule, root);
    if (e->context->module->next_id != next_id)
        report_fault(e, c->rule, false, root->offset, "creates instructions in its guards");
    const hlo_rule_action *remark = &env->rules->actions[env->rule->first_action];
    if (matched && env->rule->action_count == 1 && remark->kind == HLO_ACTION_REMARK) {
        const hlo_instruction *at = remark->operand < 0 ? NULL : env->slots[remark->operand].instr;
        env->subject = env->slots[c->rule->subject].instr;
        set_reason(e, env, remark->reason, at);
        return false;
    }
    if (matched) {
        if (c->rule->subject >= 0) env->subject = env->slots[c->rule->subject].instr;
        int64_t before = measure(env, root);
        const uint64_t print = fingerprint(e);
        const bool given = c->rules == e->context->rules, fired = hlo_rule_rewrite(env);
        if (fired) {
            e->fired++;
            if (given || !e->given) e->last = c->rule;
            e->given |= given;
            e->context->changes++;
            hlo_remark_fired(e->context, c->rule->name);
            if (e->fired >= e->fuel) report_endless(e);
        }
        if (fired || env->fault) {
            char what[1024];
            *what = '\0';
            if (env->fault)
                snprintf(what, sizeof what, "produces invalid HLO: %s", env->fault);
            else if (env->replacement && measure(env, env->replacement) >= before)
                snprintf(what, sizeof what, "does not decrease %s", env->rule->measure);
            if (*what) report_fault(e, env->rule, given, env->build->like->offset, what);
        }
        if (fired) {
            /* Record the application, and the matches of other rules that it ended. */
            const hlo_rules *rules = e->context->rules;
            if (rules && given) e->context->uses[c->rule - rules->rules].fired++;
            for (uint32_t i = 0; rules && i < rules->rule_count; i++) {
                hlo_rule_use *use = &e->context->uses[i];
                if (!use->match || use->fired || use->by ||
                    matches(env, rules, &rules->rules[i], use->match))
                    continue;
                use->by = c->rule->name;
                use->at = hlo_arena_format(e->context->lasting, "%s", use->match->name);
            }
            return true;
        }
        if (print != fingerprint(e))
            report_fault(e, c->rule, false, root->offset, "changed the module, but was rejected");
    }
    set_reason(e, env, env->reason, env->blocker);
    if (matched || !c->holds) return false;
    hlo_rule_match_past(env);
    set_reason(e, env, env->reason, env->blocker);
    return false;
}

static void visit(hlo_engine *e, hlo_rule_env *env, hlo_instruction *instr) {
    instr->queued = false;
    if (!instr->use_count && !hlo_instr_user_count(instr))
        return; /* the instruction is dead, or only its effects are needed */
    for (const hlo_rule_candidate *c = e->by_op[instr->op];
         c && instr->parent && e->status == HLO_OK; c = c->next)
        if (try_rule(e, env, c, instr)) {
            if (instr->parent) hlo_engine_push_one(e, instr);
            return;
        }
}

/* Queues the next batch of the module, or the whole module if the option `rule_order` is set.
 * Returns false at the end of the module. Prefetches the instructions from which rules start, and
 * the instructions that patterns reach from there. */
static bool take_batch(hlo_engine *e) {
    const size_t most = e->context->options->rule_order ? SIZE_MAX : BATCH;
    e->batch.count = 0;
    for (size_t seen = 0; seen < most || !e->batch.count; seen++) {
        hlo_instruction *instr = e->rest;
        if (instr) {
            e->rest = hlo_instr_next(instr);
            __builtin_prefetch(instr->operands);
            __builtin_prefetch(instr->attrs);
            if (e->by_op[instr->op]) hlo_worklist_add(e, &e->batch, instr);
        } else {
            hlo_computation *comp = e->later;
            if (!comp) break;
            e->later = comp->next;
            if (!is_fused(e, comp)) e->rest = comp->first;
        }
    }
    const size_t n = e->batch.count;
    hlo_instruction **items = e->batch.items;
    const uint64_t order = e->context->options->rule_order;
    uint64_t state = order + e->sweep;
    for (size_t i = order == 1 ? n / 2 : order ? n : 0; i > 0; i--) {
        state += UINT64_C(0x9e3779b97f4a7c15); /* random numbers by splitmix64 */
        uint64_t z = state;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        const size_t other = order == 1 ? n - i : (size_t)((z ^ z >> 31) % i);
        hlo_instruction *first = items[i - 1];
        items[i - 1] = items[other];
        items[other] = first;
    }
    return e->batch.count;
}

bool hlo_pass_goes_on(hlo_pass_context *context, const char *pass) {
    enum { PER_SECOND = 10 };
    hlo_pass_clock *c = &context->clock;
    if (!context->options->progress) return true;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const double now = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
    if (pass) c->pass = pass;
    if (!c->start) c->start = now;
    if (c->stopped || now < c->next) return !c->stopped;
    const hlo_pass_progress progress = {.struct_size = sizeof progress,
                                        .seconds = now - c->start,
                                        .pass = c->pass,
                                        .changes = context->changes};
    c->stopped = !context->options->progress(context->options->progress_user, &progress);
    c->next = now + 1.0 / PER_SECOND;
    return !c->stopped;
}

/* Visits every instruction once. Returns true if a rule was applied. */
static bool sweep(hlo_engine *e, hlo_rule_env *env) {
    uint64_t before = e->fired;
    e->sweep++;
    hlo_remark_begin(e->context);
    e->rest = NULL;
    e->later = e->context->module->first;
    while (e->status == HLO_OK && take_batch(e)) {
        for (size_t i = 0; i < e->batch.count && e->status == HLO_OK; i++) {
            if (e->batch.items[i]->parent) visit(e, env, e->batch.items[i]);
            for (size_t f = 0; f < e->follow_up.count && e->status == HLO_OK; f++)
                if (e->follow_up.items[f]->parent) visit(e, env, e->follow_up.items[f]);
            e->follow_up.count = 0;
        }
        if (!hlo_pass_goes_on(e->context, NULL)) e->status = HLO_STOPPED;
    }
    return e->fired > before;
}

/* Returns false if the module lacks an opcode that the pattern needs. */
static bool may_match(const hlo_module *module, const hlo_rules *rules, uint32_t term) {
    const hlo_rule_term *t = &rules->terms[term];
    const uint32_t *args = rules->args + t->first_arg;
    uint32_t i = 0;
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_OP:
        while (i < t->arg_count && may_match(module, rules, args[i])) i++;
        return module->op_counts[t->code] && i == t->arg_count;
    case HLO_TERM_CONSTANT: return module->op_counts[HLO_OP_CONSTANT];
    case HLO_TERM_RESULT: return module->op_counts[HLO_OP_GET_TUPLE_ELEMENT];
    case HLO_TERM_CHAIN:
    case HLO_TERM_CHAIN1:
    case HLO_TERM_SPLAT:
    case HLO_TERM_DEFINE: return may_match(module, rules, *args);
    case HLO_TERM_ALT:
        while (i < t->arg_count && !may_match(module, rules, args[i])) i++;
        return i < t->arg_count;
    default: return true;
    }
}

static bool any_may_match(const hlo_engine *e) {
    const hlo_module *module = e->context->module;
    for (unsigned op = 0; op < HLO_OP_COUNT; op++)
        for (const hlo_rule_candidate *c = module->op_counts[op] ? e->by_op[op] : NULL; c;
             c = c->next)
            if (may_match(module, c->rules, c->rules->roots[c->rule->first_root].term)) return true;
    return false;
}

hlo_status hlo_rules_run(hlo_pass_context *context, const char *phase) {
    hlo_engine *e = hlo_arena_zero(context->scratch, sizeof *e);
    e->context = context;
    e->phase = phase;
    hlo_rule_env *env = hlo_arena_zero(context->scratch, sizeof *env);
    env->context = context;
    env->engine = e;
    env->journal = hlo_journal_new(context->scratch);
    const hlo_rule_library *library = context->library;
    for (uint32_t i = 0; i < *library->file_count; i++) enter_phase(e, env, library->files[i]);
    if (context->rules) enter_phase(e, env, context->rules);
    if (!any_may_match(e)) return HLO_OK;
    e->fused = hlo_facts_fused(context->module, context->scratch);
    e->fused_count = context->module->next_computation_id;
    e->fuel =
        FIRINGS_AT_LEAST + HLO_ENGINE_FIRINGS_PER_INSTR * (uint64_t)context->module->instr_count;
    /* Find a match of each user-defined rule before any rule of the phase is applied. Include
     * user-defined rules of other phases, because a rule of this phase may end their matches. */
    const hlo_rules *rules = e->context->rules;
    for (uint32_t r = 0; rules && r < rules->rule_count; r++) {
        hlo_rule_use *use = &e->context->uses[r];
        use->match = NULL;
        for (hlo_computation *comp = e->context->module->first; comp; comp = comp->next) {
            if (is_fused(e, comp)) continue;
            for (hlo_instruction *i = comp->first; i && !use->fired && !use->match;
                 i = hlo_instr_next(i))
                if ((i->use_count || hlo_instr_user_count(i)) &&
                    matches(env, rules, &rules->rules[r], i))
                    use->match = i;
        }
        if (use->match) use->by = NULL;
    }
    for (uint32_t sweeps = 0; any_may_match(e) && sweep(e, env) && e->status == HLO_OK; sweeps++) {
        if (sweeps < SWEEP_LIMIT) continue;
        report_endless(e);
    }
    if (!e->given || e->status != HLO_OK) return e->status;
    const hlo_verify_options few = {.struct_size = sizeof few, .max_errors = 1};
    e->status = hlo_module_verify(context->module, &few, context->sink);
    if (e->status != HLO_INVALID_INPUT) return e->status;
    e->status = HLO_OK; /* report_fault() sets the status */
    report_fault(e, e->last, true, 0, "leaves a module that fails verification");
    return e->status;
}
