/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts while passes run: what each matmul became, and why it is not FP8.
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

/* Makes `to` the current instruction of the matmul `from`, even if `to` already has another slot
 * (two equal matmuls became one). */
void hlo_remark_follow(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);
/* Updates the slots after hlo_module_compact(). */
void hlo_remark_relocated(hlo_pass_context *context, hlo_instr *const *relocated);
/* Creates a slot for the copy `to` of the matmul `from`. Called after the metadata of `to` is
 * set. */
void hlo_remark_copy(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);

/* Allows a new reason for every matmul. */
void hlo_remark_begin(hlo_pass_context *context);
/* Sets the reason for `matmul` (a dot or a call), unless a reason was set since hlo_remark_begin().
 * The last reason counts; hlo_remark_clear() removes it. `blocker` may be NULL. */
void hlo_remark_reason(hlo_pass_context *context, const hlo_instr *matmul, hlo_reason reason,
                       const hlo_instr *blocker);
void hlo_remark_clear(hlo_pass_context *context, const hlo_instr *matmul);

/* Adds a lint about `at` to the report. `details` (may be NULL) follow its sentence. */
void hlo_remark_lint(hlo_pass_context *context, hlo_reason reason, const hlo_instr *at,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Records that a pass quantized the operands of `dot` by options->quantize, and the predicted
 * speedup. If the dot does not become an FP8 call, it stays wide in another run. */
void hlo_remark_quantized(hlo_pass_context *context, const hlo_instr *dot, double gain);

/* Returns the name of the reason why `dot` must stay wide: FP8 gains too little, or options->wide
 * names it. Returns NULL otherwise. */
const char *hlo_remark_kept_wide(const hlo_pass_context *context, const hlo_instr *dot);

/* Adds to the times of hlo_report_print_times(): applications of a rule, duration of a pass. */
void hlo_remark_fired(hlo_pass_context *context, const char *rule);
void hlo_remark_time(hlo_pass_context *context, const char *pass, double seconds);

/* Creates an empty report; NULL if memory runs out. `frameworks` as in hlo_pass_options, borrowed
 * until the report is closed. */
hlo_report *hlo_report_new(const char *frameworks, jmp_buf *recover);
/* True if a closed report has matmuls that must stay wide in another run: they gain less than
 * options->min_gain, hlo_report_keep_outputs() found them, or they were quantized but are not FP8
 * calls. */
bool hlo_report_needs_rerun(const hlo_report *report);
/* Creates an empty report for another run over the module, in which these matmuls stay wide; NULL
 * if memory runs out. */
hlo_report *hlo_report_again(const hlo_report *closed, jmp_buf *recover);
/* Records the cost of each matmul before it is rewritten, once. A pass of pass.def. */
hlo_pass_function hlo_pass_record_costs;
/* Creates the slot of every matmul in context->module. */
void hlo_report_open(hlo_pass_context *context);
/* Keeps matmuls wide in the next run if a word of `wide` names their FP8 calls in the output of a
 * closed report. A word that selects a matmul of the input does not name a call. */
void hlo_report_keep_outputs(hlo_report *report, const char *wide);
/* Creates the verdicts. Afterwards nothing can be added, and the module is no longer used. */
void hlo_report_close(hlo_pass_context *context);

/* A sequence of passes that can be undone: a snapshot of the module, with the slots and their
 * instructions, in the scratch arena. */
typedef struct hlo_attempt hlo_attempt;
const hlo_attempt *hlo_attempt_begin(hlo_pass_context *context);
/* Restores the module, its slots and context->changes. Reasons given during the attempt are kept.
 */
void hlo_attempt_undo(hlo_pass_context *context, const hlo_attempt *attempt);

#endif
