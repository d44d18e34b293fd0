/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches an opcode to its shape rule, by op.def. */
#include "ir/infer/infer.h"
#include "ir/infer/rules.h"

static hlo_infer_rule *const rules[HLO_OP_COUNT] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    [HLO_OP_##id] = hlo_infer_##infer,
#include "ir/table/op.def"
#undef HLO_OP
};

static bool check_form(const hlo_inference *q) {
    const hlo_op_info *info = &hlo_ops[q->op];
    unsigned least = info->min_operands, most = info->max_operands;
    if (q->count < least || (most != HLO_ANY && q->count > most)) {
        const char *bound = most == least ? "" : q->count < least ? "at least " : "at most ";
        unsigned wanted = q->count < least ? least : most;
        return hlo_infer_fail(q, "takes %s%u operand%s, found %u", bound, wanted,
                              wanted == 1 ? "" : "s", q->count);
    }
    for (const uint8_t *id = info->required; *id != HLO_ATTR_COUNT; id++)
        if (!hlo_infer_attr(q, *id))
            return hlo_infer_fail(q, "needs the attribute '%s'", hlo_attrs_info[*id].name);
    return true;
}

const hlo_shape *hlo_infer(hlo_module *module, hlo_op op, uint32_t operand_count,
                           hlo_instruction *const *operands, uint32_t attr_count,
                           const hlo_attr *attrs, char *why, size_t why_size) {
    hlo_inference q = {.module = module,
                       .op = op,
                       .count = operand_count,
                       .operands = operands,
                       .attr_count = attr_count,
                       .attrs = attrs,
                       .why = why,
                       .why_size = why_size,
                       .scratch = module->arena};
    return check_form(&q) ? rules[op](&q) : NULL;
}

bool hlo_infer_check(const hlo_instruction *instr, hlo_arena *scratch, char *why, size_t why_size,
                     uint32_t *out_blamed) {
    *out_blamed = HLO_NOWHERE;
    enum { FEW = 16 };
    hlo_instruction *few[FEW];
    hlo_inference q = {.module = instr->parent->module,
                       .op = instr->op,
                       .count = instr->operand_count,
                       .attr_count = instr->attr_count,
                       .attrs = instr->attrs,
                       .given = instr->shape,
                       .why = why,
                       .why_size = why_size,
                       .blamed = out_blamed,
                       .scratch = scratch};
    hlo_instruction **operands =
        q.count <= FEW ? few : hlo_infer_scratch(&q, q.count, sizeof(hlo_instruction *));
    for (uint32_t i = 0; i < q.count; i++) operands[i] = hlo_instr_operand(instr, i);
    q.operands = operands;
    if (!check_form(&q)) return false;
    const hlo_shape *shape = rules[q.op](&q);
    if (!shape) return false;
    if (!hlo_infer_fits(shape, q.given)) {
        hlo_infer_fail(&q, "the inferred shape is %s, but the declared shape is %s",
                       hlo_infer_text(&q, shape), hlo_infer_text(&q, q.given));
        return false;
    }
    return true;
}
