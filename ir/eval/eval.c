/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches an instruction to its kernel, by op.def. */
#include "ir/eval/eval.h"
#include "ir/eval/apply.h"

/* The kernel of opcodes whose op.def row has NONE. */
const hlo_kernel hlo_eval_NONE = {0};

static const hlo_kernel *const kernels[HLO_OP_COUNT] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    [HLO_OP_##id] = &hlo_eval_##eval,
#include "ir/table/op.def"
#undef HLO_OP
};

const hlo_kernel *hlo_kernel_of(hlo_op op) {
    return kernels[op]->run ? kernels[op] : NULL;
}

static const char *shape_refusal(const hlo_shape *shape) {
    for (uint32_t i = 0; i < hlo_call_leaves(shape); i++) {
        const hlo_shape *leaf = shape->type == HLO_TYPE_TUPLE ? shape->elements[i] : shape;
        if (!hlo_shape_is_array(leaf)) return "an operand or result is not an array";
        if (leaf->rank > HLO_EVAL_MAX_RANK)
            return "an array has more dimensions than the evaluator supports";
        if (hlo_shape_count(leaf) < 0) return "a dimension is unbounded";
        if (!hlo_shape_is_addressable(leaf)) return "an array is too large to address";
    }
    return NULL;
}

const char *hlo_kernel_refusal(const hlo_instruction *instr) {
    const hlo_kernel *kernel = hlo_kernel_of(instr->op);
    if (!kernel) return "the opcode is not supported on the CPU";
    const char *why = shape_refusal(instr->shape);
    for (uint32_t i = 0; i < instr->operand_count && !why; i++)
        why = shape_refusal(hlo_instr_operand(instr, i)->shape);
    if (why) return why;
    if (kernel->ops) {
        const hlo_elementwise *op = hlo_kernel_elementwise(instr);
        if (!op) return "invalid attributes";
        hlo_type type = hlo_instr_operand(instr, instr->operand_count - 1)->shape->type;
        if (!hlo_elementwise_loop(op, type))
            return "the operation is not defined for this element type";
    }
    return kernel->refuse ? kernel->refuse(instr) : NULL;
}

const char *hlo_call_refusal(const hlo_instruction *instr) {
    const char *why = hlo_kernel_refusal(instr);
    const hlo_instruction *unused;
    for (size_t i = 0; i < HLO_REGION_ATTRS && !why; i++) {
        const hlo_computation *applied = hlo_instr_comp(instr, hlo_region_attrs[i]);
        if (hlo_instr_attr(instr, hlo_region_attrs[i]) && hlo_region_refusal(applied))
            why = hlo_interpreter_refusal(applied, &unused);
    }
    return why;
}

bool hlo_eval_interprets(const hlo_instruction *instr) {
    for (size_t i = 0; i < HLO_REGION_ATTRS; i++)
        if (hlo_instr_attr(instr, hlo_region_attrs[i]) &&
            hlo_region_refusal(hlo_instr_comp(instr, hlo_region_attrs[i])))
            return true;
    return false;
}

bool hlo_eval_supports(const hlo_instruction *instr, const char **why) {
    const char *reason = hlo_call_refusal(instr);
    if (why) *why = reason;
    return !reason;
}

hlo_status hlo_eval(const hlo_eval_env *env, const hlo_instruction *instr, const hlo_view *operands,
                    const hlo_view *results, hlo_arena *scratch, const char **why) {
    hlo_call call;
    hlo_call_init(&call, env, instr, operands, results, scratch);
    call.why = hlo_call_refusal(instr);
    hlo_status status = HLO_INVALID_INPUT;
    if (!call.why) {
        hlo_arena_mark mark = hlo_arena_here(scratch);
        status = hlo_kernel_of(instr->op)->run(&call);
        if (call.why) status = HLO_INVALID_INPUT; /* of an applied computation */
        hlo_arena_release(scratch, mark);
    }
    if (why) *why = call.why;
    return status;
}
