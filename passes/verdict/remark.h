/* Verdicts while passes run: which matmul became what, and why not.
 *
 * Everything that multiplies matrices (matmul/product.h), in a computation that the entry reaches,
 * has a slot from the start. A pass that replaces a dot by another, or by a call, says so with
 * hlo_remark_follow(), so that the slot follows it; copies of a dot made by inlining get slots of
 * their own with hlo_remark_copy(). What has no slot (the instruction is no matmul, or nothing is
 * to be told and the report was never opened) is ignored by all of these. */
#ifndef HLO_PASSES_REMARK_H
#define HLO_PASSES_REMARK_H

#include "passes/context.h"
#include "passes/reason/reason.h"

/* `to` stands for the matmul `from` from now on; also where `to` stands for another one already
 * (two equal ones became one). */
void hlo_remark_follow(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);
/* What stands for a matmul lies elsewhere: see hlo_module_compact(). */
void hlo_remark_relocated(hlo_pass_context *context, hlo_instr *const *relocated);
/* `from` keeps standing for itself, and its copy `to` gets a slot of its own. To be called when
 * `to` has its metadata. */
void hlo_remark_copy(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);

/* From here on, another reason may be given for every matmul. */
void hlo_remark_begin(hlo_pass_context *context);
/* Gives the reason for `matmul` (a dot or a call), unless it was given one since
 * hlo_remark_begin(). The last one counts; hlo_remark_clear() takes it back. `blocker` may be NULL.
 */
void hlo_remark_reason(hlo_pass_context *context, const hlo_instr *matmul, hlo_reason reason,
                       const hlo_instr *blocker);
void hlo_remark_clear(hlo_pass_context *context, const hlo_instr *matmul);

/* Adds a lint about `at` to the report, with particulars to follow its sentence; NULL: none. */
void hlo_remark_lint(hlo_pass_context *context, hlo_reason reason, const hlo_instr *at,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Whether `dot` is to stay wide because FP8 gains too little. */
bool hlo_remark_kept_wide(const hlo_pass_context *context, const hlo_instr *dot);

/* Adds to what hlo_report_print_times() prints: that a rule fired, that a pass took time. */
void hlo_remark_fired(hlo_pass_context *context, const char *rule, uint64_t times);
bool hlo_remark_has_fired(const hlo_pass_context *context, const char *rule);
void hlo_remark_time(hlo_pass_context *context, const char *pass, double seconds);

/* For the runner. An empty report; NULL when memory runs out. `frameworks` as hlo_pass_options has
 * it, borrowed until the report is closed. */
hlo_report *hlo_report_new(const char *frameworks, jmp_buf *recover);
/* Of a closed report: whether some matmuls became FP8 that gain less than options->min_gain. */
bool hlo_report_is_slow(const hlo_report *report);
/* An empty report for another run over the same module, in which what was slow in `closed` stays
 * wide; NULL when memory runs out. */
hlo_report *hlo_report_again(const hlo_report *closed, jmp_buf *recover);
/* Gives every matmul of context->module its slot. */
void hlo_report_open(hlo_pass_context *context);
/* Makes the verdicts; nothing can be added afterwards, and the module is not needed any more. */
void hlo_report_close(hlo_pass_context *context);

/* Which slots stood for which matmul, to be put back with the module when a run is undone. In the
 * scratch arena. */
typedef struct hlo_remark_mark hlo_remark_mark;
hlo_remark_mark *hlo_remark_here(hlo_pass_context *context);
/* context->module is again as it was at the mark. Reasons found since are kept. */
void hlo_remark_back(hlo_pass_context *context, const hlo_remark_mark *mark);

#endif
