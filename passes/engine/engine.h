/* SPDX-License-Identifier: Apache-2.0 */
/* The rule engine: interprets the tables of grammar/rules/rules.h on a module.
 *
 *   match.c    patterns against instructions, with backtracking; guards and their reasons
 *   rewrite.c  a rewrite: places, templates, calls, and the actions of a rule
 *   phase.c    the rules of a phase, to their fixpoint
 *   worklist.c the instructions that are still to be visited */
#ifndef HLO_PASSES_ENGINE_ENGINE_H
#define HLO_PASSES_ENGINE_ENGINE_H

#include "grammar/rules/rules.h"
#include "ir/module/build.h"
#include "passes/analysis/value.h"
#include "passes/context.h"
#include "passes/verdict/remark.h"

typedef struct hlo_engine hlo_engine;

typedef enum hlo_binding_kind {
    HLO_BOUND_NOT,
    HLO_BOUND_VALUE,  /* instr */
    HLO_BOUND_CHAIN,  /* instr: the top link; inner: its start (`instr` if it has no link)
                       */
    HLO_BOUND_ATTR,   /* attr; NULL: absent */
    HLO_BOUND_TERM,   /* a template that is made at its first use */
    HLO_BOUND_NUMBER, /* arguments of functions */
    HLO_BOUND_WORD,
    HLO_BOUND_ABSENT
} hlo_binding_kind;

typedef struct hlo_binding {
    hlo_binding_kind kind;
    bool leaf; /* bound by a variable alone: its operands were not matched */
    hlo_instr *instr, *inner;
    const hlo_attr *attr;
    uint32_t term;
    double number;
    const char *word;
} hlo_binding;

/* True if the argument is an instruction, and not absent. */
static inline bool hlo_has_instr(const hlo_binding *arg) {
    return arg->kind == HLO_BOUND_VALUE || arg->kind == HLO_BOUND_CHAIN;
}

/* The attempt of one rule at one root. */
typedef struct hlo_rule_env {
    hlo_builder build[1]; /* makes the new instructions */
    hlo_pass_context *context;
    hlo_engine *engine;
    const hlo_rules *rules;
    const hlo_rule *rule;
    hlo_instr *root;
    const hlo_instr *subject; /* the matmul that gets the verdict; NULL */
    hlo_binding slots[HLO_RULE_SLOTS];
    uint32_t next_root;      /* number of roots matched so far */
    uint32_t fuel;           /* steps left to the match */
    bool looks_past;         /* skip barriers and marks below the root, to report a result that they
                                separate         from its users */
    const hlo_instr *holder; /* barrier or mark that the match skipped, or NULL */
    const hlo_instr *pinned; /* a pinned instruction in the match that is no leaf, or NULL */
    /* First reason for not firing; HLO_REASON_COUNT if there is none. */
    hlo_reason reason;
    const hlo_instr *blocker;
    bool unbuildable;  /* a term could not be made */
    const char *fault; /* error in the instructions that a rule of a file made; NULL. In scratch */
    hlo_instr *replacement;      /* of the root, for the measure */
    hlo_journal *journal;        /* new instructions */
    struct hlo_rule_move *moves; /* planned */
    uint32_t move_count, move_capacity;
    uint32_t first_id; /* of the new instructions */
} hlo_rule_env;

static inline const hlo_rule_term *hlo_rule_term_at(const hlo_rule_env *env, uint32_t index) {
    return &env->rules->terms[index];
}

/* Answers a question without making instructions. May set `*out_blocker` to the instruction for
 * which the answer is no. */
typedef bool hlo_rule_test(const hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           const hlo_instr **out_blocker);
/* Makes a value, `*out`; NULL: it is absent. False: it cannot be made, env->reason may say why. */
typedef bool hlo_rule_make(hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           hlo_instr **out);
typedef int64_t hlo_rule_measure(const hlo_rule_env *env, const hlo_instr *value);

/* The functions of builder.def, by the codes that rules have. NULL for rows of another kind. */
typedef struct hlo_rule_functions {
    hlo_rule_test *test;
    hlo_rule_make *make;
    hlo_rule_measure *measure;
} hlo_rule_functions;

/* The built-in rules with their vocabulary and functions, which are data for the engine:
 * context->library. */
typedef struct hlo_rule_library {
    const hlo_rule_vocabulary *words;
    const hlo_rule_functions *functions; /* of builder.def, by the codes that rules have */
    const hlo_rules *const *files;       /* passes/rules/, in the order of their names */
    const uint32_t *file_count;
} hlo_rule_library;

/* match.c: binds env->slots. True: the roots match and the guards hold. False: env->reason may be a
 * guard's. */
bool hlo_rule_match(hlo_rule_env *env);
/* Matches as if there were no barriers and marks; env->reason then says if they separate a result
 * from its users. */
void hlo_rule_match_past(hlo_rule_env *env);
/* True if below the root of the pattern there is a result of a call. */
bool hlo_rule_takes_result(const hlo_rule_env *env);
/* Returns false if a guard without a reason fails that depends on words alone, such as options: the
 * rule never fires. */
bool hlo_rule_may_fire(const hlo_rule_env *env);
/* Returns the index of a result in the call's tuple; -1 if the call has no such result. */
int hlo_rule_result_index(const hlo_instr *call, hlo_rule_result which);
/* True if the arguments have the kinds that builder.def gives the function. */
bool hlo_rule_fits(const hlo_rule_env *env, uint16_t function, const hlo_binding *args,
                   uint32_t count);

/* Reads an argument of a guard or of a builder: a variable, a result, a number or a word. */
hlo_binding hlo_rule_argument(const hlo_rule_env *env, const hlo_rule_term *term);

/* rewrite.c: performs all actions, or none. False: none; env->reason may say why. */
bool hlo_rule_rewrite(hlo_rule_env *env);
/* Sets env->reason by name, unless it is set. Returns false. */
bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instr *blocker);

/* worklist.c: returns true if `a` comes before `b` in their computation. */
bool hlo_engine_before(hlo_engine *engine, const hlo_instr *a, const hlo_instr *b);
/* Returns true if rules of the phase set reasons: a firing then clears earlier ones. */
bool hlo_engine_judges(const hlo_engine *engine);
/* Queues an instruction that is new or has other operands or users. */
void hlo_engine_push(hlo_engine *engine, hlo_instr *instr);

/* Moves `instr` before `before`, of the same computation. */
void hlo_engine_move(hlo_engine *engine, hlo_instr *instr, hlo_instr *before);
/* Removes `instr` if it has no users, and its operands that lose their last user with it. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instr *instr);

/* The effects of a rule of the program; in context->uses. */
typedef struct hlo_rule_use {
    uint64_t fired;   /* firings that were not undone */
    bool undone;      /* firings of the rule, or of `by`, were undone with the whole sequence */
    hlo_instr *match; /* an instruction that the rule matched when the phase began; NULL */
    const char *by;   /* the rule that fired first, so that `match` no longer matches; NULL */
    const char *at;   /* name of `match` */
} hlo_rule_use;
/* Discounts the firings since `before`, a copy of context->uses. */
void hlo_given_undone(hlo_pass_context *context, const hlo_rule_use *before);

/* Runs a phase to its fixpoint: its rules in every built-in file, then those in context->rules.
 * HLO_INTERNAL when it does not end: a diagnostic names the rule. */
hlo_status hlo_rules_run(hlo_pass_context *context, const char *phase);

#endif
