/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts while passes run: what each matmul became, and why not FP8.
 *
 * Everything that multiplies matrices (matmul/product.h), in a computation that the entry reaches,
 * has a slot from the start. A pass that replaces a dot by another, or by a call, calls
 * hlo_remark_follow(), so that the slot follows it; copies of a dot made by inlining get slots of
 * their own with hlo_remark_copy(). All these functions ignore instructions without a slot: no
 * matmuls, or matmuls when the report was never opened. */
#ifndef HLO_PASSES_VERDICT_REMARK_H
#define HLO_PASSES_VERDICT_REMARK_H

#include "passes/context.h"
#include "passes/reason/reason.h"

/* Makes `to` stand for the matmul `from`; also if `to` stands for another one already (two equal
 * ones became one). */
void hlo_remark_follow(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);
/* Updates the slots after hlo_module_compact(). */
void hlo_remark_relocated(hlo_pass_context *context, hlo_instr *const *relocated);
/* Gives the copy `to` of the matmul `from` a slot of its own. Called when `to` has its metadata. */
void hlo_remark_copy(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);

/* Allows another reason for every matmul from here on. */
void hlo_remark_begin(hlo_pass_context *context);
/* Gives the reason for `matmul` (a dot or a call), unless it was given one since
 * hlo_remark_begin(). The last one counts; hlo_remark_clear() removes it. `blocker` may be NULL. */
void hlo_remark_reason(hlo_pass_context *context, const hlo_instr *matmul, hlo_reason reason,
                       const hlo_instr *blocker);
void hlo_remark_clear(hlo_pass_context *context, const hlo_instr *matmul);

/* Adds a lint about `at` to the report, with particulars to follow its sentence; NULL: none. */
void hlo_remark_lint(hlo_pass_context *context, hlo_reason reason, const hlo_instr *at,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns why `dot` is to stay wide, the name of a reason: FP8 gains too little, or options->wide
 * names it; NULL: it is not. */
const char *hlo_remark_kept_wide(const hlo_pass_context *context, const hlo_instr *dot);

/* Adds to the times of hlo_report_print_times(): a rule's firings, a pass's duration. */
void hlo_remark_fired(hlo_pass_context *context, const char *rule, uint64_t times);
void hlo_remark_time(hlo_pass_context *context, const char *pass, double seconds);

/* Makes an empty report, for the runner; NULL when memory runs out. `frameworks` as in
 * hlo_pass_options, borrowed until the report is closed. */
hlo_report *hlo_report_new(const char *frameworks, jmp_buf *recover);
/* True if a closed report has FP8 matmuls that must stay wide in another run: they gain less than
 * options->min_gain, or hlo_report_keep_outputs() found them. */
bool hlo_report_needs_rerun(const hlo_report *report);
/* Makes an empty report for another run over the module, in which these matmuls stay wide; NULL
 * when memory runs out. */
hlo_report *hlo_report_again(const hlo_report *closed, jmp_buf *recover);
/* Gives every matmul of context->module its slot. */
void hlo_report_open(hlo_pass_context *context);
/* Keeps the matmuls wide in the next run that a word of `wide` names by their FP8 calls in the
 * output of a closed report. A word that selects a matmul of the input names no call. */
void hlo_report_keep_outputs(hlo_report *report, const char *wide);
/* Makes the verdicts. Nothing can be added afterwards, and the module is no longer used. */
void hlo_report_close(hlo_pass_context *context);

/* A sequence of passes that can be undone: a snapshot of the module, with the slots and their
 * instructions. In the scratch arena. */
typedef struct hlo_attempt hlo_attempt;
const hlo_attempt *hlo_attempt_begin(hlo_pass_context *context);
/* Restores the module, its slots and context->changes. Reasons given during the attempt are kept.
 */
void hlo_attempt_undo(hlo_pass_context *context, const hlo_attempt *attempt);

#endif
