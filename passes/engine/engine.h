/* The rule engine: interprets the tables of grammar/rules/rules.h on a module.
 *
 *   match.c     patterns against instructions, with backtracking; guards and their reasons
 *   rewrite.c   templates to instructions; replacing roots, all or none
 *   phase.c     the rules of a phase, to their fixpoint
 *   worklist.c  the instructions that are still to be looked at */
#ifndef HLO_PASSES_MATCH_H
#define HLO_PASSES_MATCH_H

#include "grammar/rules/rules.h"
#include "passes/analysis/value.h"
#include "passes/context.h"
#include "passes/verdict/remark.h"

typedef struct hlo_engine hlo_engine;

typedef enum hlo_binding_kind {
    HLO_BOUND_NOT,
    HLO_BOUND_VALUE,  /* instr */
    HLO_BOUND_CHAIN,  /* instr: the top link; inner: where it starts (the same when it has no link)
                       */
    HLO_BOUND_ATTR,   /* attr; NULL: the instruction has none */
    HLO_BOUND_TERM,   /* a template that is made when it is used */
    HLO_BOUND_NUMBER, /* arguments of functions */
    HLO_BOUND_WORD,
    HLO_BOUND_ABSENT
} hlo_binding_kind;

typedef struct hlo_binding {
    hlo_binding_kind kind;
    bool leaf; /* bound by a variable alone: what is below was not looked at */
    hlo_instr *instr, *inner;
    const hlo_attr *attr;
    uint32_t term;
    double number;
    const char *word;
} hlo_binding;

/* One try of one rule at one root. */
typedef struct hlo_rule_env {
    hlo_pass_context *context;
    hlo_engine *engine;
    const hlo_rules *rules;
    const hlo_rule *rule;
    hlo_instr *root;
    const hlo_instr *subject; /* whose verdict it is about; NULL */
    hlo_binding slots[HLO_RULE_SLOTS];
    uint32_t next_root;      /* roots matched so far */
    uint32_t fuel;           /* steps that the match may still take */
    const hlo_instr *pinned; /* one of what is matched, but for leaves; NULL: none is */
    /* Why it did not fire: the first reason that came up; HLO_REASON_COUNT: none. */
    hlo_reason reason;
    const hlo_instr *blocker;
    bool unbuildable;  /* a term could not be made */
    const char *fault; /* what is wrong with what a rule of a file has made; NULL. In scratch */
    hlo_instr *replacement;      /* what the root has become, for the measure */
    hlo_journal *journal;        /* what has been made for it */
    struct hlo_rule_move *moves; /* to be made once all is checked */
    uint32_t move_count, move_capacity;
    uint32_t first_id; /* of what is made */
    /* Where and for what new instructions are made. */
    hlo_instr *before;
    const hlo_instr *like;
} hlo_rule_env;

typedef bool hlo_rule_test(hlo_rule_env *env, const hlo_binding *args, uint32_t count);
/* `*out` NULL: the value is absent. False: it cannot be made, env->reason may say why. */
typedef bool hlo_rule_make(hlo_rule_env *env, const hlo_binding *args, uint32_t count,
                           hlo_instr **out);
typedef int64_t hlo_rule_measure(const hlo_rule_env *env, const hlo_instr *value);

/* The functions of builder.def, by the codes that rules have. NULL for rows of another kind. */
typedef struct hlo_rule_functions {
    hlo_rule_test *test;
    hlo_rule_make *make;
    hlo_rule_measure *measure;
} hlo_rule_functions;

/* The built-in rules and what they name. The engine gets it as data, context->library. */
typedef struct hlo_rule_library {
    const hlo_rule_vocabulary *words;
    const hlo_rule_functions *functions; /* of builder.def, by the codes that rules have */
    const hlo_rules *const *files;       /* passes/rules/, in the order of their names */
    const uint32_t *file_count;
} hlo_rule_library;

/* match.c: binds env->slots. True: the roots match and the guards hold. Otherwise env->reason may
 * say which guard did not. */
bool hlo_rule_match(hlo_rule_env *env);
/* Whether the guards hold that are about words alone, such as options: without them it never fires,
 * and only those count that would give no reason. */
bool hlo_rule_may_fire(hlo_rule_env *env);
/* Index of the result in the call's tuple; -1 when it has no such result. */
int hlo_rule_result_index(const hlo_instr *call, hlo_rule_result which);
/* A scalar constant. */
hlo_instr *hlo_rule_number(hlo_rule_env *env, hlo_type type, double number);

/* `value`, which has one element or repeats one, repeated over `shape`. NULL: it cannot be made. */
hlo_instr *hlo_rule_splat(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape);

/* Whether the arguments are what builder.def says that the function takes. */
bool hlo_rule_fits(const hlo_rule_env *env, uint16_t function, const hlo_binding *args,
                   uint32_t count);

/* An argument of a guard or of a builder: a variable, a result, a number or a word. */
hlo_binding hlo_rule_argument(const hlo_rule_env *env, const hlo_rule_term *term);

/* rewrite.c: carries out the actions. False: nothing has changed, env->reason may say why. */
bool hlo_rule_rewrite(hlo_rule_env *env);
/* A new instruction before env->before, with metadata and offset of env->like. */
hlo_instr *hlo_rule_new(hlo_rule_env *env, hlo_op op, const hlo_shape *shape, uint32_t count,
                        hlo_instr *const *operands);
/* How much has been planned, and a return to there: what was made since is unmade, and nothing that
 * was to be moved since is. */
typedef struct hlo_rule_mark {
    uint32_t made, moves;
} hlo_rule_mark;
hlo_rule_mark hlo_rule_here(const hlo_rule_env *env);
void hlo_rule_back(hlo_rule_env *env, hlo_rule_mark mark);
/* Sets env->reason, when there is none yet, by name. Returns false. */
bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instr *blocker);

/* worklist.c: what the others ask of the worklist. */
/* Whether `a` stands before `b`, of the same computation. */
bool hlo_engine_before(hlo_engine *engine, const hlo_instr *a, const hlo_instr *b);
/* Whether the phase gives reasons: then one that was given may not hold any more when a rule has
 * fired, and is given again if it does. */
bool hlo_engine_judges(const hlo_engine *engine);
/* Says that the instruction is new or has other operands or users. */
void hlo_engine_push(hlo_engine *engine, hlo_instr *instr);

/* Moves it within its computation to stand before `before`. */
void hlo_engine_move(hlo_engine *engine, hlo_instr *instr, hlo_instr *before);
/* Removes it, and what only it used, if nothing uses it. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instr *instr);

/* Runs a phase to its fixpoint: the rules of that phase of every built-in file, then those of
 * context->rules. HLO_INTERNAL when it does not end: a diagnostic names the rule. */
hlo_status hlo_rules_run(hlo_pass_context *context, const char *phase);

#endif
