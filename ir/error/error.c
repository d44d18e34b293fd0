/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches an instruction to the rule for its sigmas. */
#include "ir/error/error.h"

#include "ir/error/rules.h"
#include "ir/eval/apply.h"

static const struct {
    hlo_error_rule *run;
    bool overflows;
} rules[] = {
#define FORM(id, name, overflows) {hlo_error_##name, overflows},
    HLO_ERROR_FORMS(FORM)
#undef FORM
};

hlo_status hlo_error_sigmas(const hlo_eval_env *env, const hlo_instruction *instr,
                            const hlo_view *operands, const hlo_view *operand_sigmas,
                            const hlo_view *results, const hlo_view *result_sigmas,
                            const hlo_error_options *options, hlo_arena *scratch,
                            const char **why) {
    hlo_error_call b = {
        .operand_sigmas = operand_sigmas, .result_sigmas = result_sigmas, .options = options};
    hlo_call_init(&b.call, env, instr, operands, results, scratch);
    const char *refusal = hlo_call_refusal(instr);
    hlo_status status = HLO_INVALID_INPUT;
    if (!refusal) {
        hlo_arena_mark mark = hlo_arena_here(scratch);
        const int form = hlo_kernel_of(instr->op)->error;
        status = !rules[form].overflows && hlo_error_any_overflow(&b)
                     ? hlo_error_fill_all(&b, HLO_ERROR_ANYTHING)
                     : rules[form].run(&b);
        hlo_arena_release(scratch, mark);
        if (status != HLO_OK) refusal = "the error bound of this operation is not known";
    }
    if (why) *why = refusal;
    return status;
}
