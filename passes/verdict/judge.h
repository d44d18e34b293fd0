/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on matmuls that no pass has converted to a call. */
#ifndef HLO_PASSES_VERDICT_JUDGE_H
#define HLO_PASSES_VERDICT_JUDGE_H

#include "passes/analysis/fp8_provenance.h"
#include "passes/verdict/remark.h"

typedef struct hlo_judge_context hlo_judge_context;

typedef struct hlo_judgment {
    hlo_verdict_kind kind;
    hlo_reason reason;        /* HLO_REASON_COUNT: it is FP8 */
    const hlo_instr *blocker; /* the blocker that the pass set with its reason, or NULL */
    const char *epilogue;     /* of an FP8 matmul: its epilogue, if not in a call. Static */
    const char *fusion;       /* the fusion that contains it, "a Triton fusion", or NULL. Static */
} hlo_judgment;

/* Creates the context for a module that no longer changes. It computes facts on demand, in `arena`.
 * `keeps_ragged`: the options request ragged-dots of fp8 values. */
hlo_judge_context *hlo_judge_context_new(const hlo_module *module, bool keeps_ragged,
                                         hlo_arena *arena);
/* Judges a matmul. `said`: the reason that a pass set, or HLO_REASON_COUNT. */
hlo_judgment hlo_judge(hlo_judge_context *judging, const hlo_instr *instr, hlo_reason said);

/* Returns the straight-through estimator that `value` is except for movement and conversion: x + (q
 * - x) or q + (x - x), where q comes from fp8; otherwise NULL. */
const hlo_instr *hlo_straight_through(const hlo_fp8_provenance *provenance, const hlo_instr *value);

#endif
