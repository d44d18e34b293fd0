/* SPDX-License-Identifier: Apache-2.0 */
/* Derives verdicts on matmuls that no pass has converted to a call. */
#ifndef HLO_PASSES_VERDICT_JUDGE_H
#define HLO_PASSES_VERDICT_JUDGE_H

#include "passes/analysis/fp8_provenance.h"
#include "passes/verdict/remark.h"

typedef struct hlo_judge_context hlo_judge_context;

typedef struct hlo_judgment {
    hlo_verdict_kind kind;
    hlo_reason reason;              /* HLO_REASON_COUNT if the matmul is FP8 */
    const hlo_instruction *blocker; /* the instruction that prevents FP8; NULL if unknown, or to
                                     * keep the blocker that the pass set with `said` */
    const char *epilogue; /* epilogue of an FP8 matmul that is not a call (static), or "" */
    const char *fusion;   /* the kind of fusion that contains the matmul, such as "a Triton
                           * fusion" (static text), or NULL */
} hlo_judgment;

/* Creates the context for context->module, which no longer changes. Facts are computed on demand,
 * in scratch memory. */
hlo_judge_context *hlo_judge_context_new(const hlo_pass_context *context);
/* Judges a matmul. `said` is the reason that a pass set, or HLO_REASON_COUNT. */
hlo_judgment hlo_judge(hlo_judge_context *judging, const hlo_instruction *instr, hlo_reason said);

/* Follows movement and conversion from `value` to a straight-through estimator and returns it: x +
 * (q - x) or q + (x - x), where q comes from fp8. Returns NULL if there is no estimator. */
const hlo_instruction *hlo_straight_through(const hlo_fp8_provenance *provenance,
                                            const hlo_instruction *value);

#endif
