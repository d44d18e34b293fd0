/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of builder.def. */
#include "matmul/product.h"
#include "passes/analysis/dequantize.h"
#include "passes/builders/collective.h"
#include "passes/builders/operand_layout.h"
#include "passes/rules/functions.h"

static bool is_leaf(const hlo_rule_env *env, const hlo_instr *value) {
    if (!value->operand_count || value->op == HLO_OP_CUSTOM_CALL) return true;
    for (uint32_t i = 0; i < env->rule->slot_count; i++)
        if (env->slots[i].leaf && env->slots[i].kind == HLO_BOUND_VALUE &&
            env->slots[i].instr == value)
            return true;
    return false;
}

static int64_t size_of(const hlo_rule_env *env, const hlo_instr *value, unsigned depth) {
    if (!depth || is_leaf(env, value)) return 1;
    int64_t size = 2;
    if (value->op == HLO_OP_DOT) size = 16;
    if (hlo_op_is(value->op, HLO_REORDERS)) size = 4;
    if (value->op == HLO_OP_BROADCAST && hlo_instr_operand(value, 0)->shape->rank) size = 8;
    if (value->op == HLO_OP_CONVERT)
        for (const hlo_instr *v = hlo_instr_operand(value, 0); v->op == HLO_OP_BROADCAST;
             v = hlo_instr_operand(v, 0))
            size++;
    for (uint32_t i = 0; i < value->operand_count; i++)
        size += size_of(env, hlo_instr_operand(value, i), depth - 1);
    return size;
}

MEASURE(expression_size) {
    enum { DEPTH = 10 };
    return size_of(env, value, DEPTH);
}

MEASURE(dots) {
    hlo_matmul m;
    return value->op == HLO_OP_DOT || hlo_matmul_from_block(value, &m);
}

MEASURE(wide_ragged) {
    if (value->op != HLO_OP_RAGGED_DOT) return 0;
    return 2 - (hlo_type_is_fp8_operand(hlo_instr_operand(value, 0)->shape->type) &&
                hlo_type_is_fp8_operand(hlo_instr_operand(value, 1)->shape->type));
}

MEASURE(wide_collectives) {
    return hlo_collective_wide(value);
}

/* Counts the links of a chain down to and including the first branching link. */
MEASURE(wide_links) {
    int64_t links = 0;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        const hlo_instr *v = hlo_instr_operand(value, i);
        for (; hlo_chain_link(v); v = hlo_instr_operand(v, 0))
            links += v->op != HLO_OP_CONVERT && hlo_types[v->shape->type].bits > 8;
        links += hlo_op_is(v->op, HLO_JOINS);
    }
    return links;
}

MEASURE(fp8_operands) {
    int64_t operands = 0;
    for (uint32_t i = 0; i < value->operand_count; i++)
        operands += hlo_type_is_fp8(hlo_instr_operand(value, i)->shape->type);
    return operands;
}

/* A misaligned size weighs more than an addend that may be overwritten: padding creates such an
 * addend. */
MEASURE(misplaced_operands) {
    while (value->op == HLO_OP_SLICE || value->op == HLO_OP_RESHAPE ||
           value->op == HLO_OP_GET_TUPLE_ELEMENT)
        value = hlo_instr_operand(value, 0);
    hlo_matmul m;
    if (!hlo_decode_call(value, &m)) return 0;
    int64_t misplaced = 2 * hlo_call_misaligned_sizes(&m) + 2 * (m.a_batch->count > 1) +
                        hlo_call_overwrites_addend(&m);
    for (int b = 0; b < 2; b++)
        misplaced +=
            hlo_redundant_transposes(env, &m, b) + hlo_operand_layout_is_missing(env, &m, b);
    return misplaced;
}
