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

#include "ir/module/undo.h"
#include "ir/text/diag.h"
#include "passes/analysis/module_facts.h"
#include "passes/engine/engine.h"

enum {
    BATCH = 1024, /* number of instructions in a batch, limited by cache size */
    FIRINGS_AT_LEAST = 256,
    FIRINGS_PER_INSTR = 16,
    SWEEP_LIMIT = 64
};

typedef struct candidate {
    const hlo_rules *rules;
    const hlo_rule *rule;
    bool holds; /* barriers or sharding annotations may separate a result from the operations that
                 * the rule fuses with it */
    struct candidate *next;
} candidate;

typedef struct worklist {
    hlo_instr **items;
    uint32_t count, capacity;
} worklist;

struct hlo_engine {
    hlo_pass_context *context;
    const char *phase;
    candidate *by_op[HLO_OP_COUNT];
    uint32_t sweep;
    const bool *fused; /* by computation id: true if its instructions are not rewritten. Has no
                        * entries for computations created by rules */
    uint32_t fused_count;
    bool judges; /* at least one rule of the phase sets reasons */
    /* The part of the module that the sweep has not reached: instructions from `rest` on, then
     * computations from `later` on. */
    hlo_instr *rest;
    hlo_computation *later;
    worklist batch;     /* instructions to visit next */
    worklist follow_up; /* instructions to visit before the rest of the batch */
    worklist dead;      /* operands that hlo_engine_remove_dead() must check; empty outside this
                         * function */
    uint64_t fired, fuel;
    const hlo_rule *last; /* last rule that was applied; a rule from a file has precedence */
    bool given;           /* `last` is from a file */
    hlo_status status;    /* if this is not HLO_OK, the phase ends */
};

/* ---------------------------------------------------------------------------------------- order */

/* The order of two instructions of a computation is known in O(1), by sort keys that remain valid
 * from pass to pass. `key_gap` is the gap between the keys of instructions that get keys at the
 * same time. */
static const uint64_t key_gap = UINT64_C(1) << 40;

typedef struct hlo_order {
    hlo_arena *arena;
    uint64_t *keys; /* by instruction id; 0 for an instruction without a key */
    uint32_t capacity;
} hlo_order;

static void grow(hlo_order *order, uint32_t ids) {
    const uint32_t capacity = ids + ids / 2 + 256;
    uint64_t *keys = hlo_arena_array(order->arena, capacity, sizeof *keys);
    if (order->capacity) memcpy(keys, order->keys, order->capacity * sizeof *keys);
    memset(keys + order->capacity, 0, (capacity - order->capacity) * sizeof *keys);
    order->keys = keys;
    order->capacity = capacity;
}

/* Returns the address of the key of `instr`, growing the table if needed. */
static uint64_t *at(hlo_order *order, const hlo_instr *instr) {
    if (instr->id >= order->capacity) grow(order, instr->id);
    return &order->keys[instr->id];
}

static void number(hlo_order *order, const hlo_computation *comp) {
    uint64_t key = 0;
    for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i)) *at(order, i) = key += key_gap;
}

/* Returns the key of `instr`. If it has none, assigns keys to `instr` and its neighbors without
 * keys, between the keys of the nearest other instructions. If the gap is too small, renumbers the
 * computation. */
static uint64_t key_of(hlo_order *order, const hlo_instr *instr) {
    if (*at(order, instr)) return *at(order, instr);
    const hlo_instr *first = instr, *end = instr->next;
    while (first->prev && !*at(order, first->prev)) first = first->prev;
    while (end && !*at(order, end)) end = end->next;
    const uint64_t low = first->prev ? *at(order, first->prev) : 0;
    const uint64_t high = end ? *at(order, end) : low + key_gap;
    uint64_t count = 1;
    for (const hlo_instr *i = first; i != end; i = i->next) count++;
    const uint64_t step = (high - low) / 16 / count;
    if ((!first->prev && !end) || !step) {
        number(order, instr->parent);
        return *at(order, instr);
    }
    uint64_t key = low;
    for (const hlo_instr *i = first; i != end; i = i->next) *at(order, i) = key += step;
    return *at(order, instr);
}

bool hlo_engine_before(hlo_engine *engine, const hlo_instr *a, const hlo_instr *b) {
    hlo_pass_context *context = engine->context;
    hlo_order *order = context->order;
    if (!order) {
        order = context->order = hlo_arena_zero(context->lasting, sizeof *order);
        order->arena = context->lasting;
        grow(order, context->module->next_id);
        for (const hlo_computation *comp = context->module->first; comp; comp = comp->next)
            number(order, comp);
    }
    (void)key_of(order, a); /* may renumber `b`, so read both keys afterwards */
    const uint64_t other = key_of(order, b);
    return key_of(order, a) < other;
}

static void append(hlo_engine *e, worklist *to, hlo_instr *instr) {
    hlo_arena_grow(e->context->scratch, &to->items, to->count, &to->capacity, sizeof *to->items);
    instr->queued = true;
    to->items[to->count++] = instr;
}

void hlo_engine_move(hlo_engine *engine, hlo_instr *instr, hlo_instr *before) {
    if (engine->rest == instr) engine->rest = instr->next;
    hlo_instr_move(instr, before);
    if (engine->context->order) *at(engine->context->order, instr) = 0;
}

/* Queues an instruction before the rest of the batch, if a rule may start at its opcode and it is
 * not queued yet. */
static void push_one(hlo_engine *e, hlo_instr *instr) {
    if (!instr->queued && e->by_op[instr->op]) append(e, &e->follow_up, instr);
}

enum { USERS_ABOVE = 2 };

static void push_users(hlo_engine *e, hlo_instr *instr, unsigned above) {
    push_one(e, instr);
    if (!above || instr->use_count > FIRINGS_PER_INSTR) return;
    for (hlo_use *use = instr->uses; use; use = use->next) push_users(e, use->user, above - 1);
}

void hlo_engine_push(hlo_engine *engine, hlo_instr *instr) {
    push_users(engine, instr, USERS_ABOVE);
}

/* This function is not recursive, because a chain of dead instructions may be as long as the
 * module. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instr *instr) {
    worklist *list = &engine->dead;
    for (;; instr = list->items[--list->count]) {
        if (instr->parent && !instr->use_count && instr->parent->root != instr &&
            instr->op != HLO_OP_PARAMETER && !instr->pin) {
            for (uint32_t i = instr->operand_count; i-- > 0;) {
                hlo_arena_grow(engine->context->scratch, &list->items, list->count, &list->capacity,
                               sizeof *list->items);
                list->items[list->count++] = hlo_instr_operand(instr, i);
            }
            if (engine->rest == instr) engine->rest = instr->next;
            hlo_instr_remove(instr);
        }
        if (!list->count) return;
    }
}

bool hlo_engine_judges(const hlo_engine *engine) {
    return engine->judges;
}

/* ----------------------------------------------------------------------------------- candidates */

static void add_candidate(hlo_engine *e, hlo_op op, const hlo_rule_env *env) {
    const hlo_module *module = e->context->module;
    const bool marks =
        module->op_counts[HLO_OP_CUSTOM_CALL] && module->attrs_seen[HLO_ATTR_SHARDING];
    candidate **end = &e->by_op[op];
    while (*end) {
        if ((*end)->rule == env->rule) return;
        end = &(*end)->next;
    }
    *end = hlo_arena_alloc(e->context->scratch, sizeof **end);
    **end = (candidate){.rules = env->rules,
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
                    hlo_instr *root) {
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
                       const hlo_instr *blocker) {
    const hlo_instr *subject = env->subject;
    if (env->rule->subject < 0 || reason == HLO_REASON_COUNT || !subject || !subject->parent)
        return;
    if (!blocker && env->root != subject) blocker = env->root;
    hlo_remark_reason(e->context, subject, reason, blocker);
}

static int64_t measure(const hlo_rule_env *env, const hlo_instr *value) {
    return env->context->library->functions[env->rule->measure_code].measure(env, value);
}

/* Reports an error in a rule. The error is located at the rule if the rule comes from a file;
 * otherwise it is an internal error at offset `at` of the module. */
static void report_fault(hlo_engine *e, const hlo_rule *rule, bool given, uint32_t at,
                         const char *what) {
    const hlo_module *source = given ? e->context->rules_source : e->context->module;
    if (e->status != HLO_OK) return;
    e->status = given ? HLO_INVALID_INPUT : HLO_INTERNAL;
    hlo_diag_emit(source, e->context->sink, HLO_ERROR, given ? rule->offset : at,
                  given ? strlen(rule->name) : 0, "rule %s %s", rule->name, what);
    if (given && at) hlo_diag_emit(e->context->module, e->context->sink, HLO_NOTE, at, 1, "here");
}

static void report_endless(hlo_engine *e) {
    char what[128];
    snprintf(what, sizeof what, "keeps firing: phase %s does not terminate", e->phase);
    report_fault(e, e->last, e->given, 0, what);
}

/* Returns a hash of the module in builds with checks, otherwise 0. */
static uint64_t fingerprint(const hlo_engine *e) {
#ifdef HLO_CHECKS
    enum { MOST_INSTRS = 2048 };
    if (e->context->module->instr_count <= MOST_INSTRS)
        return hlo_module_fingerprint(e->context->module);
#endif
    (void)e;
    return 0;
}

/* Tries the rule at `root`. Returns true if it was applied. */
static bool try_rule(hlo_engine *e, hlo_rule_env *env, const candidate *c, hlo_instr *root) {
    const uint32_t next_id = e->context->module->next_id;
    const bool matched = matches(env, c->rules, c->rule, root);
    if (e->context->module->next_id != next_id)
        report_fault(e, c->rule, false, root->offset, "creates instructions in its guards");
    const hlo_rule_action *remark = &env->rules->actions[env->rule->first_action];
    if (matched && env->rule->action_count == 1 && remark->kind == HLO_ACTION_REMARK) {
        const hlo_instr *at = remark->operand < 0 ? NULL : env->slots[remark->operand].instr;
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
            /* Record the application, and which matches it removed. */
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

static void visit(hlo_engine *e, hlo_rule_env *env, hlo_instr *instr) {
    instr->queued = false;
    if (!instr->use_count && !hlo_instr_user_count(instr))
        return; /* the instruction is dead, or only its effects are needed */
    for (const candidate *c = e->by_op[instr->op]; c && instr->parent && e->status == HLO_OK;
         c = c->next)
        if (try_rule(e, env, c, instr)) {
            if (instr->parent) push_one(e, instr);
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
        hlo_instr *instr = e->rest;
        if (instr) {
            e->rest = hlo_instr_next(instr);
            __builtin_prefetch(instr->operands);
            __builtin_prefetch(instr->attrs);
            if (e->by_op[instr->op]) append(e, &e->batch, instr);
        } else {
            hlo_computation *comp = e->later;
            if (!comp) break;
            e->later = comp->next;
            if (!is_fused(e, comp)) e->rest = comp->first;
        }
    }
    const size_t n = e->batch.count;
    hlo_instr **items = e->batch.items;
    const uint64_t order = e->context->options->rule_order;
    uint64_t state = order + e->sweep;
    for (size_t i = order == 1 ? n / 2 : order ? n : 0; i > 0; i--) {
        state += UINT64_C(0x9e3779b97f4a7c15); /* random numbers by splitmix64 */
        uint64_t z = state;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        const size_t other = order == 1 ? n - i : (size_t)((z ^ z >> 31) % i);
        hlo_instr *first = items[i - 1];
        items[i - 1] = items[other];
        items[other] = first;
    }
    return e->batch.count;
}

/* Visits every instruction once. Returns true if a rule was applied. */
static bool sweep(hlo_engine *e, hlo_rule_env *env) {
    uint64_t before = e->fired;
    e->sweep++;
    hlo_remark_begin(e->context);
    e->rest = NULL;
    e->later = e->context->module->first;
    while (e->status == HLO_OK && take_batch(e))
        for (size_t i = 0; i < e->batch.count && e->status == HLO_OK; i++) {
            if (e->batch.items[i]->parent) visit(e, env, e->batch.items[i]);
            for (size_t f = 0; f < e->follow_up.count && e->status == HLO_OK; f++)
                if (e->follow_up.items[f]->parent) visit(e, env, e->follow_up.items[f]);
            e->follow_up.count = 0;
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
        for (const candidate *c = module->op_counts[op] ? e->by_op[op] : NULL; c; c = c->next)
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
    e->fuel = FIRINGS_AT_LEAST + FIRINGS_PER_INSTR * (uint64_t)context->module->instr_count;
    /* Find a match of each user-defined rule before any rule of the phase is applied. Include
     * user-defined rules of other phases, because a rule of this phase may end their matches. */
    const hlo_rules *rules = e->context->rules;
    for (uint32_t r = 0; rules && r < rules->rule_count; r++) {
        hlo_rule_use *use = &e->context->uses[r];
        use->match = NULL;
        for (hlo_computation *comp = e->context->module->first; comp; comp = comp->next) {
            if (is_fused(e, comp)) continue;
            for (hlo_instr *i = comp->first; i && !use->fired && !use->match; i = hlo_instr_next(i))
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
