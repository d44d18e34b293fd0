/* SPDX-License-Identifier: Apache-2.0 */
/* Links of chains, and splats. */
#include "passes/analysis/value.h"

#include <math.h>
#include <xxhash.h>

#include "ir/float/literal.h"
#include "ir/module/known.h"

#include "passes/analysis/dequantize.h"

bool hlo_chain_link(const hlo_instr *instr) {
    if (instr->pin) return false;
    if (instr->op == HLO_OP_CONVERT)
        return hlo_type_is_wide(instr->shape->type) &&
               hlo_type_is_wide(hlo_instr_operand(instr, 0)->shape->type);
    return hlo_instr_moves(instr);
}

bool hlo_repeats(const hlo_instr *value) {
    return !value->pin && hlo_instr_moves(value) && value->operand_count == 1;
}

hlo_instr *hlo_splat_source(hlo_instr *value) {
    for (unsigned depth = 0; depth < HLO_CHAIN_LIMIT; depth++) {
        if (!hlo_shape_is_array(value->shape)) return NULL;
        if (hlo_shape_count(value->shape) == 1) return value;
        if (value->op == HLO_OP_CONSTANT)
            return hlo_literal_is_splat(value->u.literal) ? value : NULL;
        if (!hlo_repeats(value)) return NULL;
        value = hlo_instr_operand(value, 0);
    }
    return NULL;
}

uint64_t hlo_literal_hash(const hlo_literal *literal, uint64_t seed) {
    if (literal->elided) return XXH3_64bits_withSeed(&literal, sizeof literal, seed);
    if (literal->data)
        return XXH3_64bits_withSeed(literal->data, (size_t)hlo_shape_bytes(literal->shape), seed);
    for (uint32_t i = 0; i < literal->shape->rank; i++)
        seed = hlo_literal_hash(literal->elements[i], seed);
    return seed;
}

/* True if only opcode, shape, operands and `dimensions` determine the value. */
static bool is_plain(const hlo_instr *value) {
    for (uint32_t i = 0; i < value->attr_count; i++)
        if (value->attrs[i].id != HLO_ATTR_METADATA && value->attrs[i].id != HLO_ATTR_DIMENSIONS)
            return false;
    return value->operand_count > 0;
}

static bool same(hlo_instr *x, hlo_instr *y, unsigned depth) {
    double a, b;
    if (x == y) return true;
    if (!depth || x->op != y->op || x->operand_count != y->operand_count ||
        !hlo_shape_compatible(x->shape, y->shape))
        return false;
    if (hlo_known_number(x, &a) && hlo_known_number(y, &b)) return a == b;
    if (!is_plain(x) || !is_plain(y) ||
        !hlo_ints_equal(hlo_instr_ints(x, HLO_ATTR_DIMENSIONS),
                        hlo_instr_ints(y, HLO_ATTR_DIMENSIONS)))
        return false;
    for (uint32_t i = 0; i < x->operand_count; i++)
        if (!same(hlo_instr_operand(x, i), hlo_instr_operand(y, i), depth - 1)) return false;
    return true;
}

bool hlo_same_expression(hlo_instr *x, hlo_instr *y) {
    enum { SAME_DEPTH = 8 };
    return same(x, y, SAME_DEPTH);
}

static bool is_number(hlo_instr *value, double wanted) {
    double number;
    return hlo_known_number(value, &number) && number == wanted;
}

bool hlo_is_relu(const hlo_instr *value, uint32_t *out_index) {
    const bool clamp = value->op == HLO_OP_CLAMP;
    if (value->pin || (!clamp && value->op != HLO_OP_MAXIMUM)) return false;
    const bool first = is_number(hlo_instr_operand(value, 0), 0);
    if (out_index) *out_index = first;
    if (clamp) return first && is_number(hlo_instr_operand(value, 2), INFINITY);
    return first || is_number(hlo_instr_operand(value, 1), 0);
}
