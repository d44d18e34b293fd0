/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are independent of the inputs, computed by the evaluator. Opcodes that it does not
 * support, including parameters and random numbers, count as inputs. */
#include "passes/analysis/fixed.h"

#include "ir/eval/eval.h"
#include "ir/float/float.h"
#include "ir/module/known.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/value.h"

enum { ELEMENT_LIMIT = 1 << 18, STEP_LIMIT = 256 };

typedef struct search {
    hlo_arena *scratch;
    unsigned steps;
    int64_t elements; /* sum of the elements of all computed values */
} search;

static bool compute(const hlo_instr *value, search *s, hlo_view *out) {
    const hlo_instr *from = hlo_handed_on(value, NULL);
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
        !hlo_eval_supports(value, NULL))
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

const double *hlo_fixed_elements(hlo_arena *scratch, const hlo_instr *value, int64_t *out_count) {
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
