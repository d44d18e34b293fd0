/* The rules that the program gave, and why one of them changed nothing. */
#ifndef HLO_PASSES_ENGINE_GIVEN_H
#define HLO_PASSES_ENGINE_GIVEN_H

#include "passes/engine/worklist.h"

typedef struct hlo_rule_use {
    uint64_t fired;   /* firings that were not undone */
    bool undone;      /* firings of the rule, or of `by`, were undone with the whole sequence */
    hlo_instr *match; /* an instruction that the rule matched when the phase began; NULL */
    const char *by;   /* the rule that fired first, so that `match` no longer matches; NULL */
    const char *at;   /* name of `match` */
} hlo_rule_use;

/* Finds a match of each rule of the program before any rule of the phase fires. */
void hlo_given_begin(hlo_engine *e, hlo_rule_env *env);
/* Records a firing, and which matches it removed. Uses `env` for matching. */
void hlo_given_fired(hlo_engine *e, hlo_rule_env *env, const hlo_rules *of, const hlo_rule *fired);
/* Takes back the firings since `before`, a copy of context->uses. */
void hlo_given_undone(hlo_pass_context *context, const hlo_rule_use *before);

#endif
