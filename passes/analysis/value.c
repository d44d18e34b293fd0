/* SPDX-License-Identifier: Apache-2.0 */
/* Computes facts about single values. */
#include "passes/analysis/value.h"

#include <math.h>
#include <xxhash.h>

#include "ir/eval/eval.h"
#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/module/known.h"

#include "passes/analysis/dequantize.h"

bool hlo_chain_link(const hlo_instruction *instr) {
    if (instr->pin) return false;
    if (instr->op == HLO_OP_CONVERT)
        return hlo_type_is_wide(instr->shape->type) &&
               hlo_type_is_wide(hlo_instr_operand(instr, 0)->shape->type);
    return hlo_instr_moves(instr);
}

int64_t hlo_dot_free_dim(const hlo_instruction *dot, unsigned side) {
    int64_t dim = -1;
    for (int64_t i = 0; i < (int64_t)hlo_instr_operand(dot, side)->shape->rank; i++) {
        if (hlo_ints_contain(hlo_dot_contracting(dot, side), i) ||
            hlo_ints_contain(hlo_dot_batch(dot, side), i))
            continue;
        if (dim >= 0) return -1;
        dim = i;
    }
    return dim;
}

bool hlo_repeats(const hlo_instruction *value) {
    return !value->pin && hlo_instr_moves(value) && value->operand_count == 1;
}

hlo_instruction *hlo_splat_source(hlo_instruction *value) {
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

/* True if opcode, shape, operands and `dimensions` alone determine the value. */
static bool is_plain(const hlo_instruction *value) {
    for (uint32_t i = 0; i < value->attr_count; i++)
        if (value->attrs[i].id != HLO_ATTR_METADATA && value->attrs[i].id != HLO_ATTR_DIMENSIONS)
            return false;
    return value->operand_count > 0;
}

static bool same(hlo_instruction *x, hlo_instruction *y, unsigned depth) {
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

bool hlo_same_expression(hlo_instruction *x, hlo_instruction *y) {
    enum { SAME_DEPTH = 8 };
    return same(x, y, SAME_DEPTH);
}

static bool is_number(hlo_instruction *value, double wanted) {
    double number;
    return hlo_known_number(value, &number) && number == wanted;
}

bool hlo_is_relu(const hlo_instruction *value, uint32_t *out_index) {
    const bool clamp = value->op == HLO_OP_CLAMP;
    if (value->pin || (!clamp && value->op != HLO_OP_MAXIMUM)) return false;
    const bool first = is_number(hlo_instr_operand(value, 0), 0);
    if (out_index) *out_index = first;
    if (clamp) return first && is_number(hlo_instr_operand(value, 2), INFINITY);
    return first || is_number(hlo_instr_operand(value, 1), 0);
}

/* Fixed values are computed by the evaluator. Opcodes that the evaluator does not support,
 * including parameters and random numbers, count as inputs. */

/* Limits and state of the evaluation of a fixed value. */
enum { ELEMENT_LIMIT = 1 << 18, STEP_LIMIT = 256 };

typedef struct search {
    hlo_arena *scratch;
    unsigned steps;
    int64_t elements; /* total number of elements of all computed values */
} search;

static bool compute(const hlo_instruction *value, search *s, hlo_view *out) {
    const hlo_instruction *from = hlo_handed_on(value, NULL);
    if (from) value = from;
    if (value->op == HLO_OP_CONSTANT && value->u.literal->data &&
        (hlo_type_is_wide(value->shape->type) || hlo_shape_count(value->shape) <= ELEMENT_LIMIT)) {
        *out = hlo_view_of(s->scratch, value->u.literal->shape, value->u.literal->data);
        return true;
    }
    const bool reduces = value->op == HLO_OP_REDUCE;
    if (!hlo_shape_is_array(value->shape) || value->shape->dynamic ||
        (!reduces && value->op != HLO_OP_IOTA &&
         !hlo_op_is(value->op, HLO_ELEMENTWISE | HLO_MOVEMENT | HLO_JOINS)) ||
        !hlo_eval_supports(value, NULL) || hlo_eval_interprets(value))
        return false;
    const hlo_shape *most = reduces ? hlo_instr_operand(value, 0)->shape : value->shape;
    const int64_t count = hlo_shape_count(most);
    if (count > ELEMENT_LIMIT || s->steps >= STEP_LIMIT) return false;
    s->steps++;
    s->elements += count;
    if (s->elements > ELEMENT_LIMIT) return false;
    hlo_view *operands = hlo_arena_array(s->scratch, value->operand_count, sizeof *operands);
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!compute(hlo_instr_operand(value, i), s, &operands[i])) return false;
    void *data = hlo_arena_array(s->scratch, (size_t)hlo_shape_count(value->shape),
                                 hlo_types[value->shape->type].bytes);
    *out = hlo_view_of(s->scratch, value->shape, data);
    return hlo_eval(NULL, value, operands, out, s->scratch, NULL) == HLO_OK;
}

const double *hlo_fixed_elements(hlo_arena *scratch, const hlo_instruction *value,
                                 int64_t *out_count) {
    search s = {.scratch = scratch};
    const hlo_type type = value->shape->type;
    hlo_view view;
    if ((!hlo_type_is_float(type) && !hlo_type_is_integer(type)) || !compute(value, &s, &view))
        return NULL;
    const size_t size = hlo_types[type].bytes;
    *out_count = hlo_shape_count(value->shape);
    double *numbers = hlo_arena_array(scratch, (size_t)*out_count, sizeof *numbers);
    for (int64_t i = 0; i < *out_count; i++)
        numbers[i] = hlo_number_load(type, (const char *)view.data + (size_t)i * size);
    return numbers;
}
