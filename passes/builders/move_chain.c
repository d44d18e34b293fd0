/* SPDX-License-Identifier: Apache-2.0 */
/* Moves fp8 values through links and trees of movement. */
#include "passes/builders/move_chain.h"

#include <math.h>

#include "ir/float/float.h"
#include "ir/module/known.h"

enum { TREE_LIMIT = 256 };

bool hlo_pad_value_moves(hlo_instruction *pad_value, bool scaled, hlo_type type) {
    double number;
    if (!hlo_known_number(pad_value, &number)) return false;
    /* The type must represent the number: f4e2m1fn has no NaN, and f8e8m0fnu has no zero. */
    const double held = hlo_float_decode(type, hlo_float_encode(type, number));
    return (!scaled || number == 0 || isnan(number)) &&
           (isnan(number) ? isnan(held) : held == number);
}

bool hlo_link_moves(const hlo_instruction *link, const hlo_dequantized *below) {
    if (link->op == HLO_OP_CONVERT) return hlo_chain_link(link);
    return hlo_instr_moves(link) &&
           (link->op != HLO_OP_PAD ||
            hlo_pad_value_moves(hlo_instr_operand(link, 1), below->scale, below->from));
}

/* Builds a pad value, which is a scalar or an array, in another type. Returns NULL on failure. */
static hlo_instruction *clone_pad_value(hlo_rule_env *env, hlo_instruction *pad_value,
                                        hlo_type type) {
    double number;
    if (!hlo_known_number(pad_value, &number)) return NULL;
    const hlo_shape *shape = hlo_shape_retype(env->context->module, pad_value->shape, type);
    return hlo_build_filled(env->build, shape, number);
}

static hlo_instruction *clone_as(hlo_rule_env *env, const hlo_instruction *like,
                                 hlo_instruction *const *operands, hlo_type type) {
    const hlo_shape *shape = hlo_shape_retype(env->context->module, like->shape, type);
    hlo_instruction *copy = hlo_build_clone(env->build, like, shape, operands);
    if (copy) copy->offset = like->offset;
    return copy;
}

hlo_instruction *hlo_link_clone_onto(hlo_rule_env *env, const hlo_instruction *link,
                                     hlo_instruction *value) {
    if (link->op == HLO_OP_CONVERT) return value;
    if (link->operand_count > HLO_RULE_ARGS) return NULL;
    if (link->op == HLO_OP_BITCAST) { /* the memory layout determines the elements */
        const hlo_shape *shape = hlo_shape_retype(
            env->context->module, hlo_instr_operand(link, 0)->shape, value->shape->type);
        if (value->shape != shape) value = hlo_build(env->build, HLO_OP_COPY, shape, 1, &value);
    }
    if (!value) return NULL;
    hlo_instruction *operands[HLO_RULE_ARGS] = {value};
    for (uint32_t i = 1; i < link->operand_count; i++) operands[i] = hlo_instr_operand(link, i);
    if (link->op == HLO_OP_PAD) operands[1] = clone_pad_value(env, operands[1], value->shape->type);
    if (link->op == HLO_OP_PAD && !operands[1]) return NULL;
    return clone_as(env, link, operands, value->shape->type);
}

/* Returns the shape with `from` replaced by the new type, also in tuples. */
static const hlo_shape *with_type(hlo_module *module, const hlo_shape *shape, hlo_type from,
                                  hlo_type to) {
    if (shape->type != HLO_TYPE_TUPLE)
        return shape->type == from ? hlo_shape_retype(module, shape, to) : shape;
    const hlo_shape **elements = hlo_arena_array(module->arena, shape->rank, sizeof *elements);
    for (uint32_t i = 0; i < shape->rank; i++)
        elements[i] = with_type(module, shape->elements[i], from, to);
    return hlo_shape_tuple(module, shape->rank, elements);
}

hlo_instruction *hlo_async_clone_onto(hlo_rule_env *env, const hlo_instruction *done,
                                      hlo_instruction *value) {
    hlo_module *module = env->context->module;
    hlo_instruction *start = hlo_instr_operand(done, 0), *place = env->build->at;
    hlo_type from = hlo_instr_operand(start, 0)->shape->type, to = value->shape->type;
    const hlo_shape *shape = with_type(module, start->shape, from, to);
    env->build->at = start;
    hlo_instruction *sent = hlo_build_clone(env->build, start, shape, &value);
    env->build->at = place;
    if (!sent) return NULL;
    hlo_instruction *got =
        hlo_build_clone(env->build, done, hlo_shape_retype(module, done->shape, to), &sent);
    if (!got) return NULL;
    if (start->op != HLO_OP_ASYNC_START) return got;
    /* Clone the computation that an async-start calls, with new types, before the caller. */
    hlo_computation *caller = start->parent, *callee = hlo_instr_comp(start, HLO_ATTR_CALLS);
    hlo_computation *made = hlo_comp_new(module, callee->name);
    hlo_instruction *operands[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < callee->parameter_count; i++) {
        operands[i] = hlo_instr_copy(made, NULL, callee->parameters[i], NULL);
        operands[i]->shape = with_type(module, operands[i]->shape, from, to);
    }
    hlo_instruction *root = hlo_instr_copy(made, NULL, callee->root, operands);
    root->shape = with_type(module, root->shape, from, to);
    hlo_comp_set_root(made, root);
    hlo_comp_move(made, caller);
    hlo_instr_set_comp(sent, HLO_ATTR_CALLS, made);
    if (hlo_instr_comp(got, HLO_ATTR_CALLS)) hlo_instr_set_comp(got, HLO_ATTR_CALLS, made);
    return got;
}

typedef struct tree {
    bool alike, found;
    hlo_dequantized leaf; /* the first dequantized value */
    uint32_t fuel;
} tree;

bool hlo_is_pad_value(hlo_instruction *value) {
    double number;
    return hlo_known_number(value, &number);
}

/* True if the tree can be moved. At least one branch of a concatenate or select must be
 * dequantized. Pad values are checked later, when the scale is known. */
static bool moves(tree *t, hlo_instruction *value) {
    hlo_dequantized leaf;
    if (!t->fuel) return false;
    t->fuel--;
    if (value->operand_count > HLO_RULE_ARGS || value->pin) return false;
    if (hlo_op_is(value->op, HLO_JOINS)) {
        const uint32_t first = value->op == HLO_OP_SELECT;
        bool any = false;
        for (uint32_t i = first; i < value->operand_count; i++) {
            hlo_instruction *branch = hlo_instr_operand(value, i);
            if (hlo_is_pad_value(branch)) continue;
            if (!moves(t, branch)) return false;
            any = true;
        }
        for (uint32_t i = first; any && i < value->operand_count; i++) {
            hlo_instruction *branch = hlo_instr_operand(value, i);
            if (hlo_is_pad_value(branch) &&
                !hlo_pad_value_moves(branch, t->leaf.scale, t->leaf.from))
                return false;
        }
        return any;
    }
    if (hlo_chain_link(value))
        return moves(t, hlo_instr_operand(value, 0)) && hlo_link_moves(value, &t->leaf);
    if (!hlo_dequantized_read(value, &leaf)) return false;
    if (t->found && t->alike) return hlo_dequantized_alike(&leaf, &t->leaf);
    if (!t->found) t->leaf = leaf;
    t->found = true;
    return true;
}

bool hlo_tree_moves(hlo_instruction *value, bool alike, hlo_dequantized *out) {
    tree t = {.alike = alike, .fuel = TREE_LIMIT};
    if (!moves(&t, value)) return false;
    *out = t.leaf;
    return true;
}

hlo_instruction *hlo_join_clone_onto(hlo_rule_env *env, const hlo_instruction *join,
                                     hlo_instruction **operands, hlo_type type) {
    for (uint32_t i = 0; i < join->operand_count; i++) {
        hlo_instruction *operand = hlo_instr_operand(join, i);
        if (!i && join->op == HLO_OP_SELECT) operands[i] = operand;
        if (!operands[i]) operands[i] = clone_pad_value(env, operand, type);
        if (!operands[i]) return NULL;
    }
    return clone_as(env, join, operands, type);
}

hlo_instruction *hlo_tree_clone_onto(hlo_rule_env *env, hlo_instruction *value) {
    hlo_dequantized leaf;
    if (hlo_dequantized_read(value, &leaf)) return leaf.fp8;
    if (!hlo_op_is(value->op, HLO_JOINS)) {
        hlo_instruction *below = hlo_tree_clone_onto(env, hlo_instr_operand(value, 0));
        return below ? hlo_link_clone_onto(env, value, below) : NULL;
    }
    hlo_instruction *operands[HLO_RULE_ARGS] = {NULL};
    hlo_type type = HLO_TYPE_INVALID;
    for (uint32_t i = value->op == HLO_OP_SELECT; i < value->operand_count; i++) {
        hlo_instruction *branch = hlo_instr_operand(value, i);
        if (hlo_is_pad_value(branch)) continue;
        operands[i] = hlo_tree_clone_onto(env, branch);
        if (!operands[i]) return NULL;
        type = operands[i]->shape->type;
    }
    return hlo_join_clone_onto(env, value, operands, type);
}
