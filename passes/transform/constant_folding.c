/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates instructions that depend only on constants.
 *
 * Needs: operands before users.
 * Does not change: pinned instructions; values with more than LIMIT elements; broadcasts, because
 * rules match them; fp8 arrays, which a matmul may need unchanged; matmuls, which have a verdict;
 * and windowed reductions. Dead code elimination removes the operands of folded instructions.
 * Numerics: values are computed by the evaluator, like on the CPU backend. Tests:
 * testdata/passes/constant-folding/ */
#include "ir/eval/eval.h"
#include "ir/float/literal.h"
#include "passes/analysis/module_facts.h"
#include "passes/passes.h"

enum { LIMIT = 256 }; /* maximum number of elements of a folded value */

static bool is_small_array(const hlo_shape *shape) {
    int64_t count = hlo_shape_is_array(shape) ? hlo_shape_count(shape) : -1;
    return count >= 0 && count <= LIMIT;
}

static bool can_fold(const hlo_instruction *instr) {
    if (instr->operand_count == 0 || !is_small_array(instr->shape)) return false;
    switch (instr->op) {
    case HLO_OP_BROADCAST: /* a broadcast to one element is folded like a scalar */
        if (hlo_shape_count(instr->shape) != 1) return false;
        break;
    case HLO_OP_DOT: /* a matmul must keep its verdict */
    case HLO_OP_RAGGED_DOT:
    case HLO_OP_CONVOLUTION:
    case HLO_OP_REDUCE_WINDOW: /* not folded, because windows may be larger than any array */
    case HLO_OP_SELECT_AND_SCATTER:
    case HLO_OP_CUSTOM_CALL:
    case HLO_OP_CALL:
    case HLO_OP_FUSION:
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_OPT_BARRIER:
    case HLO_OP_DOMAIN: return false;
    default: break;
    }
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        if (operand->op != HLO_OP_CONSTANT || operand->pin || !is_small_array(operand->shape) ||
            operand->u.literal->elided)
            return false;
        if (hlo_type_is_fp8(operand->shape->type) && hlo_shape_count(operand->shape) != 1)
            return false;
    }
    return hlo_eval_supports(instr, NULL) && !hlo_eval_interprets(instr);
}

hlo_status hlo_pass_fold(hlo_pass_context *context) {
    hlo_effects effects = hlo_facts_side_effects(context->module, context->scratch);
    for (hlo_computation *comp = context->module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = hlo_instr_next(instr);
            if (instr->pin || hlo_facts_has(effects.random, instr->id) ||
                hlo_instr_user_count(instr) == 0 || !can_fold(instr))
                continue;
            hlo_arena *scratch = context->scratch;
            hlo_arena_mark mark = hlo_arena_here(scratch);
            hlo_view *operands = hlo_arena_array(scratch, instr->operand_count, sizeof *operands);
            for (uint32_t i = 0; i < instr->operand_count; i++) {
                const hlo_literal *known = hlo_instr_operand(instr, i)->u.literal;
                operands[i] = hlo_view_of(scratch, known->shape, known->data);
            }
            hlo_literal *made = hlo_literal_new(context->module, instr->shape);
            hlo_view result = hlo_view_of(scratch, made->shape, made->data);
            const char *why;
            hlo_status status = hlo_eval(NULL, instr, operands, &result, scratch, &why);
            hlo_arena_release(scratch, mark);
            if (status != HLO_OK) continue;
            hlo_instruction *constant = hlo_constant_new(comp, instr, made);
            hlo_instr_inherit(constant, instr);
            constant->offset = instr->offset;
            hlo_instr_replace_uses(instr, constant);
            hlo_instr_remove(instr);
            context->changes++;
        }
    return HLO_OK;
}
