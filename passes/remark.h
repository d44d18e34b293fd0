/* Verdicts while passes run: which matmul became what, and why not.
 *
 * Every dot of the module has a slot from the start. A pass that replaces a dot by another, or by a
 * call, says so with hlo_remark_follow(), so that the slot follows it; copies of a dot made by
 * inlining get slots of their own. */
#ifndef HLO_PASSES_REMARK_H
#define HLO_PASSES_REMARK_H

#include "passes/context.h"

/* Why a dot is not FP8, or not the cheapest FP8. */
typedef enum hlo_reason {
#define HLO_WHY(id, name, text) HLO_WHY_##id,
#include "passes/why.def"
#undef HLO_WHY
    HLO_WHY_COUNT
} hlo_reason;

/* HLO_WHY_COUNT when no reason is called so. */
hlo_reason hlo_reason_find(const char *name);

/* `to` stands for the matmul `from` from now on; when `from` keeps standing for itself (it was
 * copied), `to` gets a slot of its own that starts as a copy. */
void hlo_remark_follow(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);
void hlo_remark_copy(hlo_pass_context *context, const hlo_instr *from, const hlo_instr *to);

/* Gives the reason for `matmul` (a dot or a call). The last one given before the end of the run
 * counts; hlo_remark_clear() takes it back. `blocker` may be NULL. */
void hlo_remark_reason(hlo_pass_context *context, const hlo_instr *matmul, hlo_reason reason,
                       const hlo_instr *blocker);
void hlo_remark_clear(hlo_pass_context *context, const hlo_instr *matmul);

#endif
