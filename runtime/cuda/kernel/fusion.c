/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for grouping instructions in one kernel. */
#include "ir/float/literal.h"
#include "runtime/cuda/codegen/emit.h"
#include "runtime/group/group.h"

_Static_assert(GROUP_INPUTS + GROUP_RESULTS < CUDA_POINTERS, "and places of scratch memory");

static group_class class_of(const hlo_instr *instr) {
    if (instr->op == HLO_OP_PARAMETER || cuda_kernel_refusal(instr)) return GROUP_OTHER;
    if (instr->op == HLO_OP_CONSTANT)
        return instr->u.literal->data && (hlo_shape_count(instr->shape) == 1 ||
                                          hlo_literal_is_splat(instr->u.literal))
                   ? GROUP_CHEAP
                   : GROUP_OTHER;
    if (hlo_shape_is_array(instr->shape) && hlo_shape_count(instr->shape) == 0) return GROUP_OTHER;
    switch (instr->op) {
    case HLO_OP_IOTA:
    case HLO_OP_BROADCAST: return GROUP_CHEAP;
    case HLO_OP_BITCAST: return GROUP_ALIAS;
    case HLO_OP_RESHAPE:
    case HLO_OP_COPY:
        return hlo_shape_same_memory(instr->shape, hlo_instr_operand(instr, 0)->shape) ? GROUP_ALIAS
                                                                                       : GROUP_PULL;
    case HLO_OP_REDUCE: return cuda_reduce_is_single(instr) ? GROUP_PULL : GROUP_REDUCE;
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return GROUP_ALONE;
    case HLO_OP_BITCAST_CONVERT: /* several elements of the operand form one element */
        return hlo_instr_operand(instr, 0)->shape->rank > instr->shape->rank ? GROUP_OTHER
                                                                             : GROUP_PULL;
    case HLO_OP_REDUCE_WINDOW:
    case HLO_OP_RAGGED_DOT:
    case HLO_OP_SORT:
    case HLO_OP_SCATTER: return GROUP_OTHER;
    default: return GROUP_PULL;
    }
}

/* True for functions of tens of instructions or more, some of which use local memory. */
static bool is_slow(const hlo_instr *instr) {
    switch (instr->op) {
    case HLO_OP_ATAN2:
    case HLO_OP_CBRT:
    case HLO_OP_COSINE:
    case HLO_OP_ERF:
    case HLO_OP_POWER:
    case HLO_OP_SINE:
    case HLO_OP_TAN: return true;
    default: return false;
    }
}

uint32_t cuda_kernel_group(void *device, const hlo_instr *const *live, uint32_t count,
                           hlo_arena *arena, hlo_group **out_groups) {
    static const group_rules rules = {.class_of = class_of,
                                      .is_chunked = cuda_reduce_is_chunked,
                                      .is_slow = is_slow,
                                      .recomputes = true};
    (void)device;
    return group_instrs(&rules, live, count, arena, out_groups);
}
