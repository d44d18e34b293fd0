/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on matmuls that no pass has turned into a call. */
#ifndef HLO_PASSES_VERDICT_JUDGE_H
#define HLO_PASSES_VERDICT_JUDGE_H

#include "passes/verdict/remark.h"

typedef struct hlo_judge_context hlo_judge_context;

typedef struct hlo_judgment {
    hlo_verdict_kind kind;
    hlo_reason reason;        /* HLO_REASON_COUNT: it is FP8 */
    const hlo_instr *blocker; /* NULL: none, or the blocker that the pass gave with its reason */
    const char *epilogue;     /* of an FP8 matmul: what multiplies it, if no call does. Static */
    const char *fusion; /* the fusion that contains it, "a Triton fusion"; NULL: none. Static */
} hlo_judgment;

/* Makes the context of a module that does not change any more; it computes facts on demand, in
 * `arena`. `keeps_ragged`: ragged-dots of fp8 values are what was asked for. */
hlo_judge_context *hlo_judge_context_new(const hlo_module *module, bool keeps_ragged,
                                         hlo_arena *arena);
/* Judges a matmul; `said`: the reason that a pass gave, HLO_REASON_COUNT: none. */
hlo_judgment hlo_judge(hlo_judge_context *judging, const hlo_instr *instr, hlo_reason said);

#endif
