/* SPDX-License-Identifier: Apache-2.0 */
/* Creates random arrays, and computes every instruction on the CPU, for the tests of generated
 * kernels. */
#ifndef HLO_TESTS_UNIT_CUDA_CUDA_REFERENCE_H
#define HLO_TESTS_UNIT_CUDA_CUDA_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/error/error.h"
#include "ir/eval/eval.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"

/* ----------------------------------------------------------------------------------------- data */

static uint64_t random_state;

static uint64_t random_bits(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool draws_specials; /* true if some numbers are large, infinite or NaN */

/* Draws numbers. Integers are from -2 to 9, so that indices are within and out of bounds. */
static void draw(const hlo_view *view, int64_t count) {
    size_t bytes = hlo_types[view->type].bytes;
    for (int64_t i = 0; i < count; i++) {
        double a = (double)(random_bits() >> 11) * 0x1p-53,
               b = (double)(random_bits() >> 11) * 0x1p-53;
        double value = hlo_type_is_float(view->type) ? 4 * (a + b - 1) : floor(a * 12) - 2;
        if (view->type == HLO_TYPE_PRED) value = a < 0.5;
        if (draws_specials && i % 8 == 5) value *= exp2(floor(b * 40));
        if (draws_specials && i % 16 == 7)
            value = i % 32 == 7 ? (double)NAN : b < 0.5 ? (double)INFINITY : -(double)INFINITY;
        hlo_number_store(view->type, (char *)view->data + (size_t)i * bytes, value);
    }
}

/* ------------------------------------------------------------------------------------ reference */

typedef struct value {
    hlo_view view, sigma;
} value;

static hlo_view new_view(hlo_arena *arena, const hlo_shape *shape, hlo_type type) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1, sizeof *strides);
    hlo_shape_strides(shape, strides);
    size_t size = (size_t)hlo_shape_count(shape) * hlo_types[type].bytes;
    char *data = hlo_arena_alloc(arena, size + 128);
    data += 64 - (uintptr_t)data % 64;
    return (hlo_view){type, shape->rank, shape->dims, strides, data};
}

static value new_value(hlo_arena *arena, const hlo_shape *shape) {
    value v = {new_view(arena, shape, shape->type), new_view(arena, shape, HLO_TYPE_F32)};
    memset(v.sigma.data, 0, (size_t)hlo_shape_count(shape) * sizeof(float));
    return v;
}

static uint32_t leaf_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

static const hlo_shape *leaf(const hlo_shape *shape, uint32_t index) {
    return shape->type == HLO_TYPE_TUPLE ? shape->elements[index] : shape;
}

static value constant_value(hlo_arena *arena, const hlo_instruction *instr) {
    value v = new_value(arena, instr->shape);
    int64_t *strides = hlo_arena_array(arena, instr->shape->rank + 1, sizeof *strides), stride = 1;
    for (uint32_t d = instr->shape->rank; d-- > 0; stride *= instr->shape->dims[d])
        strides[d] = stride;
    v.view.strides = strides;
    v.view.data = instr->u.literal->data;
    return v;
}

/* Computes an instruction; `values` has the leaves of each value, by instruction id. */
static void evaluate(hlo_arena *arena, const hlo_instruction *instr, value **values) {
    hlo_view operands[128], sigmas[128], results[64], result_sigmas[64];
    uint32_t count = 0;
    if (instr->op == HLO_OP_CONSTANT) {
        values[instr->id] = hlo_arena_alloc(arena, sizeof **values);
        *values[instr->id] = constant_value(arena, instr);
        return;
    }
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        for (uint32_t l = 0; l < leaf_count(operand->shape); l++) {
            operands[count] = values[operand->id][l].view;
            sigmas[count++] = values[operand->id][l].sigma;
        }
    }
    uint32_t leaves = leaf_count(instr->shape);
    values[instr->id] = hlo_arena_array(arena, leaves, sizeof **values);
    for (uint32_t l = 0; l < leaves; l++) {
        value v = values[instr->id][l] = new_value(arena, leaf(instr->shape, l));
        results[l] = v.view;
        result_sigmas[l] = v.sigma;
    }
    const char *why = NULL;
    hlo_error_options options = {0};
    if (hlo_eval(NULL, instr, operands, results, arena, &why) != HLO_OK ||
        hlo_error_sigmas(NULL, instr, operands, sigmas, results, result_sigmas, &options, arena,
                         &why) != HLO_OK)
        fail_msg("%%%s: %s", instr->name, why);
}

#endif
