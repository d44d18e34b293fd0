/* SPDX-License-Identifier: Apache-2.0 */
/* Records facts for verdicts while passes run: what each matmul became, and why it is not FP8.
 *
 * Each instruction that multiplies matrices (matmul/product.h) in a reachable computation has a
 * slot from the start. A pass that replaces a dot by another dot or by a call calls
 * hlo_remark_follow(), so that the slot follows it. Copies of a dot made by inlining get separate
 * slots with hlo_remark_copy(). All these functions ignore instructions without a slot:
 * instructions that are not matmuls, or all instructions if the report was never opened. */
#ifndef HLO_PASSES_VERDICT_REMARK_H
#define HLO_PASSES_VERDICT_REMARK_H

#include "passes/context.h"
#include "passes/reason/reason.h"

/* Makes `to` the current instruction of the matmul `from`. `to` may already have another slot if
 * two equal matmuls became one. */
void hlo_remark_follow(hlo_pass_context *context, const hlo_instruction *from,
                       const hlo_instruction *to);
/* Updates the slots after hlo_module_compact(). */
void hlo_remark_relocated(hlo_pass_context *context, hlo_instruction *const *relocated);
/* Creates a slot for `to`, a copy of the matmul `from`. The metadata of `to` must be set. */
void hlo_remark_copy(hlo_pass_context *context, const hlo_instruction *from,
                     const hlo_instruction *to);

/* Starts a sweep: every matmul may get a new reason. */
void hlo_remark_begin(hlo_pass_context *context);
/* Sets the reason for `matmul` (a dot or a call), unless a reason was set since hlo_remark_begin().
 * Replaces reasons of earlier sweeps; hlo_remark_clear() removes the reason. `blocker` may be
 * NULL. */
void hlo_remark_reason(hlo_pass_context *context, const hlo_instruction *matmul, hlo_reason reason,
                       const hlo_instruction *blocker);
void hlo_remark_clear(hlo_pass_context *context, const hlo_instruction *matmul);

/* Adds a lint about `at` to the report. `format` may be NULL; it follows the reason's sentence. */
void hlo_remark_lint(hlo_pass_context *context, hlo_reason reason, const hlo_instruction *at,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Records that a pass quantized both operands of `dot`, or only one, because of options->quantize,
 * with the predicted speedup and the predicted seconds that it saves. If the dot does not become an
 * FP8 call, it stays wide in another run. */
void hlo_remark_quantized(hlo_pass_context *context, const hlo_instruction *dot, bool both,
                          double gain, double saving);

/* Returns the name of the reason why `dot` must stay wide: FP8 saves too little time, or
 * options->wide selects the dot. Returns NULL if the dot need not stay wide. */
const char *hlo_remark_kept_wide(const hlo_pass_context *context, const hlo_instruction *dot);

/* Count an application of a rule and add the duration of a pass, for hlo_report_print_times(). */
void hlo_remark_fired(hlo_pass_context *context, const char *rule);
void hlo_remark_time(hlo_pass_context *context, const char *pass, double seconds);

/* Creates an empty report. Returns NULL if memory runs out. `frameworks` is
 * hlo_pass_options.framework_files; it is borrowed until the report is closed. */
hlo_report *hlo_report_new(const char *frameworks, jmp_buf *recover);
/* True if a closed report has matmuls that must stay wide in another run: they gain less than
 * options->min_gain, hlo_report_keep_outputs() found them, or they were quantized but are not FP8
 * calls. */
bool hlo_report_needs_rerun(const hlo_report *report);
/* Prepares an empty report for another run over the module, in which the matmuls that
 * hlo_report_needs_rerun() finds in `closed` stay wide. */
void hlo_report_again(hlo_report *report, const hlo_report *closed);
/* A pass of pass.def. Its first run records the cost of each matmul before it is rewritten. */
hlo_pass_function hlo_pass_record_costs;
/* Creates the slot of every matmul in context->module. */
void hlo_report_open(hlo_pass_context *context);
/* `report` is closed. Matmuls stay wide in the next run if a word of `wide` names their FP8 calls
 * in the output. Words that select a matmul of the input are ignored here. */
void hlo_report_keep_outputs(hlo_report *report, const char *wide);
/* Creates the verdicts. Afterwards the report is fixed, and does not refer to the module. */
void hlo_report_close(hlo_pass_context *context);
/* True if a closed report has FP8 matmuls, and all their operands were quantized because of
 * options->quantize. */
bool hlo_report_is_quantized(const hlo_report *report);

/* A sequence of passes that can be undone. Contains a snapshot of the module, and of the slots with
 * their instructions, in the scratch arena. */
typedef struct hlo_attempt hlo_attempt;
const hlo_attempt *hlo_attempt_begin(hlo_pass_context *context);
/* Restores the module, the slots and context->changes, but not reasons set meanwhile. */
void hlo_attempt_undo(hlo_pass_context *context, const hlo_attempt *attempt);

#endif
