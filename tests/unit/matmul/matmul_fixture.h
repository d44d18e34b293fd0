/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture for tests of matmul calls: a module with the possible operands of a call. */
#ifndef HLO_TESTS_UNIT_MATMUL_MATMUL_FIXTURE_H
#define HLO_TESTS_UNIT_MATMUL_MATMUL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "grammar/attr/notation.h"
#include "matmul/call.h"

/* A module with a = f8e4m3fn[2,16,64], b = f8e5m2[2,64,32], batched over dimension 0, and the other
 * operands of a call. */
typedef struct fixture {
    jmp_buf recover;
    hlo_module *module;
    hlo_computation *comp;
    hlo_instruction *c, *bias, *scale[4];
    hlo_matmul matmul; /* a batched matmul without scales and with a bf16 result */
    const hlo_target *target;
    int cuda;
    hlo_scale_form scales;
} fixture;

static const hlo_shape *array(fixture *f, hlo_type type, uint32_t rank, int64_t d0, int64_t d1,
                              int64_t d2) {
    int64_t dims[] = {d0, d1, d2};
    return hlo_shape_array(f->module, type, rank, dims);
}

static hlo_instruction *parameter(fixture *f, const hlo_shape *shape) {
    hlo_instruction *p = hlo_instr_new(f->comp, NULL, HLO_OP_PARAMETER, shape, 0, NULL, "p");
    hlo_instr_set_parameter(p, f->comp->parameter_count);
    return p;
}

static int set_up(void **state) {
    static fixture f;
    f = (fixture){.target = hlo_target_find(90), .cuda = 12080, .scales = HLO_SCALES_ALL};
    if (setjmp(f.recover)) return -1;
    f.module = hlo_module_make(&f.recover);
    f.module->read = hlo_notation_read;
    f.comp = hlo_comp_new(f.module, "main");
    f.matmul = (hlo_matmul){
        .a = parameter(&f, array(&f, HLO_TYPE_F8E4M3FN, 3, 2, 16, 64)),
        .b = parameter(&f, array(&f, HLO_TYPE_F8E5M2, 3, 2, 64, 32)),
        .alpha = 1,
        .a_batch = hlo_ints_new(f.module, 1, (int64_t[]){0}),
        .a_contracting = hlo_ints_new(f.module, 1, (int64_t[]){2}),
        .b_batch = hlo_ints_new(f.module, 1, (int64_t[]){0}),
        .b_contracting = hlo_ints_new(f.module, 1, (int64_t[]){1}),
        .d = array(&f, HLO_TYPE_BF16, 3, 2, 16, 32),
    };
    f.c = parameter(&f, f.matmul.d);
    f.bias = parameter(&f, array(&f, HLO_TYPE_BF16, 1, 32, 0, 0));
    for (int i = 0; i < 4; i++) f.scale[i] = parameter(&f, array(&f, HLO_TYPE_F32, 0, 0, 0, 0));
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    hlo_module_free(((fixture *)*state)->module);
    return 0;
}

#endif
