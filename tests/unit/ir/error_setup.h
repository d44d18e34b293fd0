/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture for tests of error bounds: one instruction, and operands and sigmas that a test sets. */
#ifndef HLO_TESTS_UNIT_IR_ERROR_SETUP_H
#define HLO_TESTS_UNIT_IR_ERROR_SETUP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "ir/error/error.h"
#include "ir/float/float.h"

enum { MAX_COUNT = 4096 };

/* A module with one instruction, the root of its entry, on parameters. */
typedef struct setup {
    hlo_module *module;
    const hlo_instruction *root;
    hlo_view operands[3], operand_sigmas[3], result, sigma;
} setup;

static inline hlo_view dense_view(hlo_arena *arena, hlo_type type, const hlo_shape *shape) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1, sizeof *strides), stride = 1;
    for (uint32_t d = shape->rank; d-- > 0; stride *= shape->dims[d]) strides[d] = stride;
    size_t count = (size_t)hlo_shape_count(shape);
    void *data = hlo_arena_zero(arena, count * hlo_types[type].bytes);
    return (hlo_view){type, shape->rank, shape->dims, strides, data};
}

/* Operands and sigmas are zero until the test sets their elements. */
static inline setup prepare(const char *text, jmp_buf *recover) {
    setup s = {0};
    assert_int_equal(hlo_module_parse(text, strlen(text), "test", NULL, &s.module), HLO_OK);
    hlo_arena *arena = s.module->arena;
    hlo_arena_set_recover(arena, recover);
    s.root = s.module->entry->root;
    s.result = dense_view(arena, s.root->shape->type, s.root->shape);
    s.sigma = dense_view(arena, HLO_TYPE_F32, s.root->shape);
    for (uint32_t o = 0; o < s.root->operand_count; o++) {
        const hlo_shape *shape = hlo_instr_operand(s.root, o)->shape;
        s.operands[o] = dense_view(arena, shape->type, shape);
        s.operand_sigmas[o] = dense_view(arena, HLO_TYPE_F32, shape);
    }
    return s;
}

static inline void run(setup *s, bool dropped) {
    hlo_error_options options = {.roundings_may_be_dropped = dropped};
    const char *why = NULL;
    hlo_arena *arena = s->module->arena;
    assert_int_equal(hlo_eval(NULL, s->root, s->operands, &s->result, arena, &why), HLO_OK);
    assert_int_equal(hlo_error_sigmas(NULL, s->root, s->operands, s->operand_sigmas, &s->result,
                                      &s->sigma, &options, arena, &why),
                     HLO_OK);
}

static inline void set(hlo_view *view, int64_t index, double value) {
    hlo_number_store(view->type, (char *)view->data + index * hlo_types[view->type].bytes, value);
}

static inline double at(const hlo_view *view, int64_t index) {
    return hlo_number_load(view->type,
                           (const char *)view->data + index * hlo_types[view->type].bytes);
}

#define MODULE(parameters, root) "HloModule m\n\nENTRY %e " parameters " {\n" root "\n}\n"
#define X "  %x = f32[4]{0} parameter(0)\n"
#define DOT(type, k)                                                                               \
    MODULE("(x: " type "[" k "], y: " type "[" k "]) -> " type "[]",                               \
           "  %x = " type "[" k "]{0} parameter(0)\n  %y = " type "[" k "]{0} parameter(1)\n"      \
           "  ROOT %r = " type "[] dot(%x, %y), lhs_contracting_dims={0}, "                        \
           "rhs_contracting_dims={0}")
#define Y "  %y = f32[4]{0} parameter(1)\n"

#endif
