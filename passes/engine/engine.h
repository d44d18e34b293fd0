/* SPDX-License-Identifier: Apache-2.0 */
/* The rule engine. It interprets the tables of grammar/rules/rules.h on a module.
 *
 *   match.c    matches patterns against instructions, with backtracking; evaluates guards and sets
 *              their reasons
 *   rewrite.c  applies a rule: position, templates, calls and actions
 *   phase.c    applies the rules of a phase to a fixpoint
 *   worklist.c keeps the instructions that remain to be visited, and their order */
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
    HLO_BOUND_VALUE,  /* `instr` is set */
    HLO_BOUND_CHAIN,  /* instr: the top link of the chain; inner: the start of the chain (equals
                       * `instr` if the chain has no link) */
    HLO_BOUND_ATTR,   /* `attr` is set; NULL if absent */
    HLO_BOUND_TERM,   /* a template, which is built at its first use */
    HLO_BOUND_NUMBER, /* a number as argument of a function */
    HLO_BOUND_WORD,
    HLO_BOUND_ABSENT
} hlo_binding_kind;

typedef struct hlo_binding {
    hlo_binding_kind kind;
    bool leaf; /* bound by a variable without a pattern: operands of `instr` were not matched */
    hlo_instruction *instr, *inner;
    const hlo_attr *attr;
    uint32_t term;
    double number;
    const char *word;
} hlo_binding;

/* True if the argument is an instruction that is present. */
static inline bool hlo_has_instr(const hlo_binding *arg) {
    return arg->kind == HLO_BOUND_VALUE || arg->kind == HLO_BOUND_CHAIN;
}

/* The state of an attempt to apply one rule at one root. */
typedef struct hlo_rule_env {
    hlo_builder build[1]; /* builder of the new instructions */
    hlo_pass_context *context;
    hlo_engine *engine;
    const hlo_rules *rules;
    const hlo_rule *rule;
    hlo_instruction *root;
    const hlo_instruction *subject; /* the matmul that receives the verdict, or NULL */
    hlo_binding slots[HLO_RULE_SLOTS];
    uint32_t next_root; /* number of roots matched so far */
    uint32_t fuel;      /* number of remaining steps of the match */
    bool looks_past;    /* skip barriers and sharding annotations below the root, in order to
                         * report that they separate a result from its users */
    const hlo_instruction
        *holder; /* barrier or sharding annotation that the match skipped, or NULL */
    const hlo_instruction
        *pinned; /* a pinned instruction in the match that is not a leaf, or NULL */
    /* First reason for not applying the rule, or HLO_REASON_COUNT. */
    hlo_reason reason;
    const hlo_instruction *blocker;
    bool unbuildable;  /* set if a term could not be built */
    const char *fault; /* error in the instructions that a rule from a file created, or NULL; in
                        * scratch */
    hlo_instruction *replacement; /* the instruction that replaces the root, for the measure */
    hlo_journal *journal;         /* records the new instructions */
    struct hlo_rule_move *moves;  /* planned moves */
    uint32_t move_count, move_capacity;
    uint32_t first_id; /* id of the first new instruction */
} hlo_rule_env;

static inline const hlo_rule_term *hlo_rule_term_at(const hlo_rule_env *env, uint32_t index) {
    return &env->rules->terms[index];
}

/* A test. It creates no instructions. If it fails, it may set `*out_blocker` to the cause. */
typedef bool hlo_rule_test(const hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           const hlo_instruction **out_blocker);
/* Builds a value and stores it in `*out`; NULL means that the value is absent. Returns false on
 * failure, possibly with a reason in env->reason. */
typedef bool hlo_rule_make(hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           hlo_instruction **out);
typedef int64_t hlo_rule_measure(const hlo_rule_env *env, const hlo_instruction *value);

/* A function of builder.def, by the codes in rules. The members for other kinds are NULL. */
typedef struct hlo_rule_functions {
    hlo_rule_test *test;
    hlo_rule_make *make;
    hlo_rule_measure *measure;
} hlo_rule_functions;

/* The built-in rules with their vocabulary and functions, for context->library. */
typedef struct hlo_rule_library {
    const hlo_rule_vocabulary *words;
    const hlo_rule_functions *functions; /* functions of builder.def, by code */
    const hlo_rules *const *files;       /* the files of passes/rules/, sorted by name */
    const uint32_t *file_count;
} hlo_rule_library;

/* match.c: binds env->slots. Returns true if the roots match and the guards hold. Otherwise
 * env->reason may be the reason of a failed guard. */
bool hlo_rule_match(hlo_rule_env *env);
/* Matches as if barriers and sharding annotations were absent. If they separate a result from its
 * users, sets env->reason. */
void hlo_rule_match_past(hlo_rule_env *env);
/* True if the pattern contains a result of a call below its root. */
bool hlo_rule_takes_result(const hlo_rule_env *env);
/* Returns false if the rule can never apply, because a guard fails that has no reason and depends
 * only on words, such as options. */
bool hlo_rule_may_fire(const hlo_rule_env *env);
/* Returns the index of a result in the call's tuple; -1 if the call does not have this result. */
int hlo_rule_result_index(const hlo_instruction *call, hlo_rule_result which);
/* True if the arguments have the kinds that builder.def specifies for the function. */
bool hlo_rule_fits(const hlo_rule_env *env, uint16_t function, const hlo_binding *args,
                   uint32_t count);

/* Reads an argument of a guard or of a builder: a variable, a result, a number or a word. */
hlo_binding hlo_rule_argument(const hlo_rule_env *env, const hlo_rule_term *term);

/* rewrite.c: performs either all actions of the rule or none. Returns false if it performed none,
 * possibly with a reason in env->reason. */
bool hlo_rule_rewrite(hlo_rule_env *env);
/* Sets env->reason by the name of the reason, unless env->reason is already set. Returns false. */
bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instruction *blocker);

/* worklist.c: returns true if `a` comes before `b` in their computation. */
bool hlo_engine_before(hlo_engine *engine, const hlo_instruction *a, const hlo_instruction *b);
/* True if rules of the phase set reasons. Applying a rule then clears earlier reasons. */
bool hlo_engine_judges(const hlo_engine *engine);
/* Queues an instruction that is new or whose operands or users have changed. */
void hlo_engine_push(hlo_engine *engine, hlo_instruction *instr);

/* Moves `instr` before `before`, which is in the same computation. */
void hlo_engine_move(hlo_engine *engine, hlo_instruction *instr, hlo_instruction *before);
/* Removes `instr` if it has no users. Also removes operands that thereby lose their last user. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instruction *instr);

/* The effects of one user-defined rule, stored in context->uses. */
typedef struct hlo_rule_use {
    uint64_t fired; /* number of applications that were not undone */
    bool undone;    /* the sequence of passes was undone, including applications of the rule or of
                     * `by` */
    hlo_instruction
        *match;     /* an instruction that the rule matched at the start of the phase, or NULL */
    const char *by; /* the rule whose application ended the match at `match`, or NULL */
    const char *at; /* name of `match` */
} hlo_rule_use;
/* Subtracts the applications since `before`, an earlier copy of context->uses. */
void hlo_given_undone(hlo_pass_context *context, const hlo_rule_use *before);

/* Applies the rules of a phase to a fixpoint: first the built-in rules, then the rules in
 * context->rules. If the phase does not terminate or a rule is faulty, a diagnostic names the rule;
 * returns HLO_INVALID_INPUT for a rule in context->rules, and HLO_INTERNAL for a built-in one. */
hlo_status hlo_rules_run(hlo_pass_context *context, const char *phase);

#endif
