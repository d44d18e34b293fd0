/* Verdicts on matmuls that no pass has made a call of. */
#ifndef HLO_PASSES_JUDGE_H
#define HLO_PASSES_JUDGE_H

#include "passes/verdict/remark.h"

typedef struct hlo_judge_context hlo_judge_context;

typedef struct hlo_judgement {
    hlo_verdict_kind kind;
    hlo_reason reason;        /* HLO_REASON_COUNT of an FP8 one */
    const hlo_instr *blocker; /* NULL: none, or as the pass has said that gave the reason */
    const char *epilogue;     /* of an FP8 one: what multiplies it, where that is no call. Static */
    const char *fusion;       /* around it, "a Triton fusion"; NULL: none. Static */
} hlo_judgement;

/* Of a module that does not change any more. Lives, and computes what it is asked for, in `arena`.
 */
hlo_judge_context *hlo_judge_context_new(const hlo_module *module, hlo_arena *arena);
/* `said`: the reason that a pass has given; HLO_REASON_COUNT: none has. */
hlo_judgement hlo_judge(hlo_judge_context *judging, const hlo_instr *instr, hlo_reason said);

#endif
