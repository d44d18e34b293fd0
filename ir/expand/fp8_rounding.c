/* SPDX-License-Identifier: Apache-2.0 */
/* Reproduces the conversions to FP8 of XLA's CPU backend before jaxlib 0.8 (EmitF32ToF8e4m3fn and
 * similar functions in elemental_ir_emitter.cc). */
#include "ir/expand/expansion.h"

static bool rounds_twice(const hlo_instruction *instr) {
    if (instr->op != HLO_OP_CONVERT) return false;
    const hlo_type from = hlo_instr_operand(instr, 0)->shape->type, to = instr->shape->type;
    return (from == HLO_TYPE_F32 || from == HLO_TYPE_F64 || hlo_type_is_integer(from)) &&
           (to == HLO_TYPE_F8E4M3FN || to == HLO_TYPE_F8E5M2 || to == HLO_TYPE_F8E4M3B11FNUZ);
}

void hlo_fp8_round_via_f16(hlo_module *module) {
    expansion x = {.module = module};
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = instr->next) {
            if (!rounds_twice(instr)) continue;
            x.build->at = instr;
            hlo_instruction *narrow = hlo_instr_operand(instr, 0);
            narrow = hlo_build_convert(x.build, narrow, HLO_TYPE_F32);
            narrow = hlo_build_convert(x.build, narrow, HLO_TYPE_F16);
            hlo_instr_set_operand(instr, 0, narrow);
        }
}
