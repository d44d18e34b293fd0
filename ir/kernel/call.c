/* SPDX-License-Identifier: Apache-2.0 */
/* The call of a kernel: its views, and the reason for a rejection. */
#include "ir/kernel/kernel.h"

uint32_t hlo_call_leaves(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

hlo_status hlo_call_refuse(hlo_call *call, const char *why) {
    call->why = why;
    return HLO_INVALID_INPUT;
}

void hlo_call_init(hlo_call *call, const hlo_eval_env *env, const hlo_instr *instr,
                   const hlo_view *operands, const hlo_view *results, hlo_arena *scratch) {
    static const hlo_eval_env alone = {0};
    *call = (hlo_call){.env = env ? env : &alone,
                       .instr = instr,
                       .operands = operands,
                       .results = results,
                       .result_count = hlo_call_leaves(instr->shape),
                       .scratch = scratch};
    for (uint32_t i = 0; i < instr->operand_count; i++)
        call->operand_count += hlo_call_leaves(hlo_instr_operand(instr, i)->shape);
}
