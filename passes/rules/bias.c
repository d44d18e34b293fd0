/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the functions for biases: vectors that are added to each row of a matmul's result. */
#include "ir/float/float.h"
#include "ir/module/known.h"
#include "passes/builders/granularity.h"
#include "passes/rules/library.h"

enum { STEP_LIMIT = 256, KNOWN_LIMIT = 1 << 12 };

/* Finds the granularity of a value that repeats one row along all dimensions except the last ones,
 * which form the row. The arguments are the value, the result of the matmul, and a view of the
 * result: the result itself, or a reshape or slice of it. */
static bool row_granularity(const hlo_binding *args, hlo_granularity *granularity, int64_t *row) {
    const hlo_instruction *view = args[2].instr;
    const hlo_shape *shape = args[0].instr->shape;
    const hlo_shape *d = view->op == HLO_OP_SLICE ? view->shape : args[1].instr->shape;
    if (!hlo_shape_is_array(shape) || shape->rank > HLO_RULE_ARGS || shape->dynamic) return false;
    if (!hlo_shape_is_array(d) || !d->rank) return false;
    uint32_t first = shape->rank;
    int64_t size = 1;
    *row = d->dims[d->rank - 1];
    while (first && size < *row) size *= shape->dims[--first];
    for (uint32_t i = 0; i < shape->rank; i++) granularity->v[i] = i < first ? shape->dims[i] : 1;
    return size == *row && hlo_shape_count(shape) > 0;
}

/* A value in another memory space passes this test, so that MAKE(row) reports the reason. */
TEST(broadcasts_row) {
    hlo_instruction *value = args->instr;
    hlo_granularity granularity;
    const hlo_instruction *held;
    int64_t row;
    return row_granularity(args, &granularity, &row) &&
           (hlo_shape_count(value->shape) > row || value->op == HLO_OP_BROADCAST) &&
           hlo_granularity_holds_elsewhere(value, &granularity, &held);
}

MAKE(row) {
    hlo_instruction *value = args[0].instr;
    const hlo_instruction *result = args[1].instr, *view = args[2].instr, *held;
    hlo_granularity granularity;
    int64_t row;
    if (!row_granularity(args, &granularity, &row)) return false;
    if (hlo_granularity_holds_elsewhere(value, &granularity, &held) && held)
        return hlo_rule_refuse(env, "memory-space", held);
    hlo_instruction *packed = hlo_granularity_compact(env, value, &granularity);
    hlo_instruction *vector = *out = hlo_build_reshape(env->build, packed, 1, &row);
    if (!vector || view->op != HLO_OP_SLICE) return vector;
    /* Pad the row, so that each element has the index that it has in the unsliced result. */
    const uint32_t last = result->shape->rank - 1;
    const int64_t *s = hlo_instr_ints(view, HLO_ATTR_SLICE)->v + 3 * last;
    const int64_t size = result->shape->dims[last];
    const int64_t padding[3] = {s[0], size - s[0] - (row - 1) * s[2] - 1, s[2] - 1};
    if (row == size) return true;
    const hlo_type type = vector->shape->type;
    *out = hlo_build_pad(env->build, vector, hlo_build_number(env->build, type, 0),
                         hlo_shape_array(env->context->module, type, 1, &size), padding);
    return *out != NULL;
}

/* True if each element is a constant that bf16 represents. */
static bool elements_fit(const hlo_instruction *value) {
    int64_t count = hlo_shape_count(value->shape);
    if (count > KNOWN_LIMIT && value->op != HLO_OP_CONSTANT) return false;
    for (int64_t i = 0; i < count; i++) {
        double number;
        if (!hlo_known_element(value, i, &number)) return false;
        double again = hlo_float_decode(HLO_TYPE_BF16, hlo_float_encode(HLO_TYPE_BF16, number));
        if (again != number && number == number) return false;
    }
    return true;
}

TEST(fits_bf16) {
    const hlo_instruction *value = args->instr;
    for (unsigned step = 0; step < STEP_LIMIT; step++) {
        if (!hlo_shape_is_array(value->shape)) return false;
        if (value->shape->type == HLO_TYPE_BF16 || elements_fit(value)) return true;
        bool sign = value->op == HLO_OP_ABS || value->op == HLO_OP_NEGATE;
        if (!sign && value->op != HLO_OP_CONVERT && !hlo_instr_moves_by(value, HLO_REARRANGES))
            return false;
        const hlo_instruction *from = hlo_instr_operand(value, 0);
        if (value->op == HLO_OP_CONVERT && /* a convert does not round if its type is wider */
            hlo_types[from->shape->type].bits >= hlo_types[value->shape->type].bits)
            return false;
        value = from;
    }
    return false;
}
