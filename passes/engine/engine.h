/* SPDX-License-Identifier: Apache-2.0 */
/* The rule engine: interprets the tables of grammar/rules/rules.h on a module.
 *
 *   match.c    patterns against instructions, with backtracking; guards and their reasons
 *   rewrite.c  applies a rule: position, templates, calls and actions
 *   phase.c    applies the rules of a phase to a fixpoint
 *   worklist.c the instructions that remain to be visited, and their order */
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
    HLO_BOUND_TERM,   /* a template that is built at its first use */
    HLO_BOUND_NUMBER, /* arguments of functions */
    HLO_BOUND_WORD,
    HLO_BOUND_ABSENT
} hlo_binding_kind;

typedef struct hlo_binding {
    hlo_binding_kind kind;
    bool leaf; /* bound by a variable without a pattern: its operands were not matched */
    hlo_instr *instr, *inner;
    const hlo_attr *attr;
    uint32_t term;
    double number;
    const char *word;
} hlo_binding;

/* True if the argument is a present instruction. */
static inline bool hlo_has_instr(const hlo_binding *arg) {
    return arg->kind == HLO_BOUND_VALUE || arg->kind == HLO_BOUND_CHAIN;
}

/* The attempt to apply one rule at one root. */
typedef struct hlo_rule_env {
    hlo_builder build[1]; /* builder of the new instructions */
    hlo_pass_context *context;
    hlo_engine *engine;
    const hlo_rules *rules;
    const hlo_rule *rule;
    hlo_instr *root;
    const hlo_instr *subject; /* the matmul that receives the verdict, or NULL */
    hlo_binding slots[HLO_RULE_SLOTS];
    uint32_t next_root;      /* number of roots matched so far */
    uint32_t fuel;           /* remaining steps of the match */
    bool looks_past;         /* skip barriers and sharding annotations below the root, to report a
                              * result that they separate         from its users */
    const hlo_instr *holder; /* barrier or sharding annotation that the match skipped, or NULL */
    const hlo_instr *pinned; /* a pinned instruction in the match that is not a leaf, or NULL */
    /* First reason for not applying the rule, or HLO_REASON_COUNT. */
    hlo_reason reason;
    const hlo_instr *blocker;
    bool unbuildable;  /* building a term failed */
    const char *fault; /* error in the instructions that a rule from a file created, or NULL; in
                        * scratch */
    hlo_instr *replacement;      /* of the root, for the measure */
    hlo_journal *journal;        /* new instructions */
    struct hlo_rule_move *moves; /* planned moves */
    uint32_t move_count, move_capacity;
    uint32_t first_id; /* id of the first new instruction */
} hlo_rule_env;

static inline const hlo_rule_term *hlo_rule_term_at(const hlo_rule_env *env, uint32_t index) {
    return &env->rules->terms[index];
}

/* A test, which makes no instructions. May set `*out_blocker` to the instruction that made it
 * fail. */
typedef bool hlo_rule_test(const hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           const hlo_instr **out_blocker);
/* Builds a value, `*out`; NULL means absent. Returns false on failure, possibly with a reason in
 * env->reason. */
typedef bool hlo_rule_make(hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           hlo_instr **out);
typedef int64_t hlo_rule_measure(const hlo_rule_env *env, const hlo_instr *value);

/* The functions of builder.def, by the codes in rules. NULL for rows of another kind. */
typedef struct hlo_rule_functions {
    hlo_rule_test *test;
    hlo_rule_make *make;
    hlo_rule_measure *measure;
} hlo_rule_functions;

/* The built-in rules with their vocabulary and functions, passed to the engine as data:
 * context->library. */
typedef struct hlo_rule_library {
    const hlo_rule_vocabulary *words;
    const hlo_rule_functions *functions; /* of builder.def, by the codes in rules */
    const hlo_rules *const *files;       /* the files of passes/rules/, sorted by name */
    const uint32_t *file_count;
} hlo_rule_library;

/* match.c: binds env->slots. Returns true if the roots match and the guards hold; otherwise
 * env->reason may be that of a guard. */
bool hlo_rule_match(hlo_rule_env *env);
/* Matches as if barriers and sharding annotations were absent. env->reason then shows if they
 * separate a result from its users. */
void hlo_rule_match_past(hlo_rule_env *env);
/* True if the pattern contains, below its root, a result of a call. */
bool hlo_rule_takes_result(const hlo_rule_env *env);
/* Returns false if a guard without a reason fails that depends only on words, such as options: the
 * rule never applies. */
bool hlo_rule_may_fire(const hlo_rule_env *env);
/* Returns the index of a result in the call's tuple; -1 if the call does not have it. */
int hlo_rule_result_index(const hlo_instr *call, hlo_rule_result which);
/* True if the arguments have the kinds that builder.def specifies for the function. */
bool hlo_rule_fits(const hlo_rule_env *env, uint16_t function, const hlo_binding *args,
                   uint32_t count);

/* Reads an argument of a guard or of a builder: a variable, a result, a number or a word. */
hlo_binding hlo_rule_argument(const hlo_rule_env *env, const hlo_rule_term *term);

/* rewrite.c: performs all actions of the rule. Returns false if it performed none, possibly with a
 * reason in env->reason. */
bool hlo_rule_rewrite(hlo_rule_env *env);
/* Sets env->reason by name, unless it is already set. Returns false. */
bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instr *blocker);

/* worklist.c: returns true if `a` comes before `b` in their computation. */
bool hlo_engine_before(hlo_engine *engine, const hlo_instr *a, const hlo_instr *b);
/* True if rules of the phase set reasons: applying a rule then clears earlier reasons. */
bool hlo_engine_judges(const hlo_engine *engine);
/* Queues an instruction that is new or has other operands or users. */
void hlo_engine_push(hlo_engine *engine, hlo_instr *instr);

/* Moves `instr` before `before`, of the same computation. */
void hlo_engine_move(hlo_engine *engine, hlo_instr *instr, hlo_instr *before);
/* Removes `instr` if it has no users, and its operands that lose their last user with it. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instr *instr);

/* The effects of a user-defined rule; in context->uses. */
typedef struct hlo_rule_use {
    uint64_t fired; /* number of applications that were not undone */
    bool undone;    /* applications of the rule, or of `by`, were undone with the whole sequence */
    hlo_instr *match; /* an instruction that the rule matched at the start of the phase, or NULL */
    const char
        *by; /* the rule that was applied first, so that `match` no longer matches, or NULL */
    const char *at; /* name of `match` */
} hlo_rule_use;
/* Subtracts the applications since `before`, a copy of context->uses. */
void hlo_given_undone(hlo_pass_context *context, const hlo_rule_use *before);

/* Applies a phase to its fixpoint: its rules in every built-in file, then those in context->rules.
 * Returns HLO_INTERNAL if it does not terminate; a diagnostic names the rule. */
hlo_status hlo_rules_run(hlo_pass_context *context, const char *phase);

#endif
