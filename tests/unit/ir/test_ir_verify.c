/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the verifier on modules that text cannot express, but a pass could create. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "ir/intern.h"
#include "ir/ir.h"

typedef struct bench {
    jmp_buf recover;
    hlo_module *m;
    hlo_computation *c; /* the entry: two scalars and their sum */
    hlo_instruction *x, *y, *sum;
    unsigned errors;
    char first[512]; /* the first error message */
} bench;

static void note(void *user, const hlo_diag *diag) {
    bench *b = user;
    if (b->errors++ == 0) snprintf(b->first, sizeof b->first, "%s", diag->message);
}

static const hlo_shape *f32(bench *b, uint32_t rank, const int64_t *dims) {
    return hlo_shape_array(b->m, HLO_TYPE_F32, rank, dims);
}

static hlo_instruction *parameter(hlo_computation *c, const hlo_shape *shape, const char *name) {
    hlo_instruction *p = hlo_instr_new(c, NULL, HLO_OP_PARAMETER, shape, 0, NULL, name);
    hlo_instr_set_parameter(p, c->parameter_count);
    return p;
}

static int set_up(void **state) {
    bench *b = test_calloc(1, sizeof *b);
    *state = b;
    b->m = hlo_module_make(&b->recover);
    b->c = b->m->entry = hlo_comp_new(b->m, "main");
    b->x = parameter(b->c, f32(b, 0, NULL), "x");
    b->y = parameter(b->c, f32(b, 0, NULL), "y");
    b->sum = hlo_instr_new(b->c, NULL, HLO_OP_ADD, b->x->shape, 2,
                           (hlo_instruction *[]){b->x, b->y}, "sum");
    hlo_comp_set_root(b->c, b->sum);
    return 0;
}

static int tear_down(void **state) {
    bench *b = *state;
    hlo_module_free(b->m);
    test_free(b);
    return 0;
}

static void expect(bench *b, const char *message) {
    hlo_diag_sink sink = {note, b};
    b->errors = 0;
    hlo_status status = hlo_module_verify(b->m, NULL, &sink);
    if (!message) {
        assert_int_equal(status, HLO_OK);
        assert_int_equal(b->errors, 0);
        return;
    }
    assert_int_equal(status, HLO_INVALID_INPUT);
    assert_string_equal(b->first, message);
    assert_int_equal(hlo_module_verify(b->m, NULL, NULL), HLO_INVALID_INPUT);
}

static void a_sound_module(void **state) {
    expect(*state, NULL);
}

static void an_operand_behind_its_user(void **state) {
    bench *b = *state;
    hlo_instr_move(b->y, NULL);
    expect(b, "operand %y of %sum must be defined before it");
}

static void a_callee_behind_its_caller(void **state) {
    bench *b = *state;
    hlo_computation *callee = hlo_comp_new(b->m, "callee");
    hlo_comp_set_root(callee, parameter(callee, b->x->shape, "z"));
    hlo_instruction *call = hlo_instr_new(b->c, b->sum, HLO_OP_CALL, b->x->shape, 1, &b->x, "call");
    hlo_instr_set_comp(call, HLO_ATTR_TO_APPLY, callee);
    expect(b, "%call calls %callee, which must precede %main");
    hlo_comp_move(callee, b->c);
    expect(b, NULL);
}

static void an_operand_of_another_computation(void **state) {
    bench *b = *state;
    hlo_computation *other = hlo_comp_new(b->m, "other");
    hlo_instruction *z = parameter(other, b->x->shape, "z");
    hlo_comp_set_root(other, z);
    hlo_instr_set_operand(b->sum, 1, z);
    expect(b, "operand %z of %sum is in another computation, %other");
}

static void an_operand_that_was_removed(void **state) {
    bench *b = *state;
    hlo_instruction *n = hlo_instr_new(b->c, b->sum, HLO_OP_NEGATE, b->x->shape, 1, &b->x, "n");
    hlo_instr_set_operand(b->sum, 0, n);
    hlo_instr_remove(n);
    expect(b, "operand %n of %sum was removed");
}

static void a_control_predecessor_behind(void **state) {
    bench *b = *state;
    hlo_instrs *list = hlo_arena_zero(b->m->arena, sizeof *list + sizeof *list->v);
    list->count = 1;
    list->v[0] = b->y;
    hlo_instr_set_attr(b->x, (hlo_attr){.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = list});
    expect(b, "control predecessor %y of %x must be defined before it");
}

static void a_gap_in_the_parameters(void **state) {
    bench *b = *state;
    hlo_instruction *z = hlo_instr_new(b->c, NULL, HLO_OP_PARAMETER, b->x->shape, 0, NULL, "z");
    hlo_instr_set_parameter(z, 3);
    expect(b, "%main has 4 parameters, but no parameter 2");
}

static void a_parameter_number_twice(void **state) {
    bench *b = *state;
    b->y->u.parameter = 0;
    expect(b, "%y: parameter number 0 of %main is invalid or used twice");
}

static void no_root(void **state) {
    bench *b = *state;
    b->c->root = NULL;
    expect(b, "%main has no root");
}

static void a_root_elsewhere(void **state) {
    bench *b = *state;
    hlo_computation *other = hlo_comp_new(b->m, "other");
    hlo_comp_set_root(other, b->x);
    expect(b, "the root %x of %other is in another computation");
}

static void no_entry(void **state) {
    bench *b = *state;
    b->m->entry = NULL;
    expect(b, "the module has no entry computation");
}

static void a_call(bench *b, hlo_computation *from, hlo_computation *to) {
    hlo_instruction *p = parameter(from, b->x->shape, "p");
    hlo_instruction *q = parameter(from, b->x->shape, "q");
    hlo_instruction *call =
        hlo_instr_new(from, NULL, HLO_OP_CALL, b->x->shape, 2, (hlo_instruction *[]){p, q}, "call");
    hlo_instr_set_comp(call, HLO_ATTR_TO_APPLY, to);
    hlo_comp_set_root(from, call);
}

static void a_computation_that_calls_itself(void **state) {
    bench *b = *state;
    hlo_computation *one = hlo_comp_new(b->m, "one");
    hlo_computation *two = hlo_comp_new(b->m, "two");
    a_call(b, one, two);
    a_call(b, two, one);
    expect(b, "%call.1 calls %one, which calls itself, directly or indirectly");
}

static void a_long_circle_of_calls(void **state) {
    bench *b = *state;
    hlo_computation *links[12];
    for (int i = 0; i < 12; i++) links[i] = hlo_comp_new(b->m, "link");
    for (int i = 0; i < 12; i++) a_call(b, links[i], links[(i + 1) % 12]);
    expect(b, "%call.11 calls %link, which calls itself, directly or indirectly");
    assert_int_equal(b->errors, 11); /* an error and its ten notes, which list eight calls */
}

static void a_call_of_the_entry(void **state) {
    bench *b = *state;
    a_call(b, hlo_comp_new(b->m, "one"), b->c);
    expect(b, "%call calls the entry computation");
}

static void a_long_chain_of_calls(void **state) {
    bench *b = *state;
    enum { LONG = 20000 };
    hlo_computation *callee = hlo_comp_new(b->m, "leaf");
    hlo_comp_set_root(callee, parameter(callee, b->x->shape, "p"));
    parameter(callee, b->x->shape, "p");
    for (int i = 0; i < LONG; i++) {
        hlo_computation *caller = hlo_comp_new(b->m, "link");
        a_call(b, caller, callee);
        callee = caller;
    }
    expect(b, NULL);
}

static void two_of_one_name(void **state) {
    bench *b = *state;
    b->y->name = b->x->name;
    expect(b, "two instructions have the name %x");
    assert_int_equal(b->errors, 1);
    b->y->offset = 1;
    expect(b, "two instructions have the name %x");
    assert_int_equal(b->errors, 2); /* with a note on the other definition */
}

static void two_computations_of_one_name(void **state) {
    bench *b = *state;
    for (int i = 0; i < 2; i++) {
        hlo_computation *other = hlo_comp_new(b->m, "other");
        hlo_comp_set_root(other, parameter(other, b->x->shape, "p"));
    }
    expect(b, NULL);
    b->m->first->next->next->name = b->m->first->next->name;
    expect(b, "two computations have the name %other");
    assert_int_equal(b->errors, 1);
}

static void a_value_of_another_shape(void **state) {
    bench *b = *state;
    hlo_instruction *one = hlo_constant_scalar(b->c, NULL, HLO_TYPE_F32, 1);
    one->shape = hlo_shape_array(b->m, HLO_TYPE_BF16, 0, NULL);
    expect(b, "the value of %constant is f32[], but its shape is bf16[]");
}

static void a_constant_without_value(void **state) {
    bench *b = *state;
    hlo_instruction *one = hlo_constant_scalar(b->c, NULL, HLO_TYPE_F32, 1);
    one->u.literal = NULL;
    expect(b, "%constant has no value");
}

static void a_word_that_is_none(void **state) {
    bench *b = *state;
    hlo_instruction *less =
        hlo_instr_new(b->c, NULL, HLO_OP_COMPARE, hlo_shape_array(b->m, HLO_TYPE_PRED, 0, NULL), 2,
                      (hlo_instruction *[]){b->x, b->y}, "less");
    hlo_instr_set_str(less, HLO_ATTR_DIRECTION, "LESS");
    expect(b, "compare: invalid direction 'LESS', expected one of EQ NE GE GT LE LT");
}

static void attributes_that_do_not_belong(void **state) {
    bench *b = *state;
    hlo_instr_set_int(b->sum, HLO_ATTR_IOTA_DIMENSION, 0);
    expect(b, "add has no attribute 'iota_dimension'");
    hlo_attr twice[] = {{.id = HLO_ATTR_BACKEND_CONFIG, .u.str = hlo_intern_string(b->m, "{}")},
                        {.id = HLO_ATTR_BACKEND_CONFIG, .u.str = hlo_intern_string(b->m, "{}")}};
    hlo_instr_take_attrs(b->sum, twice, 2);
    expect(b, "attribute 'backend_config' is repeated");
}

static void layouts_that_are_no_order(void **state) {
    bench *b = *state;
    int64_t dims[] = {2, 3}, twice[] = {1, 1}, far[] = {2, 0};
    b->x->shape = hlo_shape_with_layout(b->m, HLO_TYPE_F32, 2, dims, twice);
    b->y->shape = b->sum->shape = f32(b, 2, dims);
    expect(b, "shape f32[2,3]{1,1}: layout has a dimension twice");
    b->x->shape = hlo_shape_with_layout(b->m, HLO_TYPE_F32, 2, dims, far);
    expect(b, "shape f32[2,3]{2,0}: layout is not a permutation of the dimensions");
}

static void an_array_too_large(void **state) {
    bench *b = *state;
    int64_t dims[] = {INT64_MAX / 4 + 1, 1};
    b->x->shape = b->y->shape = b->sum->shape = f32(b, 2, dims);
    expect(b, "shape f32[2305843009213693952,1]{1,0}: size exceeds 2^63 bytes");
}

static void no_more_than_twenty_errors(void **state) {
    bench *b = *state;
    int64_t dims[] = {2};
    for (int i = 0; i < 50; i++)
        hlo_instr_new(b->c, NULL, HLO_OP_NEGATE, f32(b, 1, dims), 1, &b->x, "n");
    expect(b, "negate of f32[]: the inferred shape is f32[], but the declared shape is f32[2]");
    assert_int_equal(b->errors, 21); /* 20 errors, and a note with the number of others */
}

static hlo_status verified(const char *text) {
    hlo_module *m;
    assert_int_equal(hlo_module_parse(text, strlen(text), "long", NULL, &m), HLO_OK);
    const hlo_status status = hlo_module_verify(m, NULL, NULL);
    hlo_module_free(m);
    return status;
}

/* This would take a minute if each alias searched the header, or each error searched the line. */
static void headers_and_lines_are_not_searched_again(void **state) {
    (void)state;
    enum { MANY = 60000 };
    char *text = malloc(256 * MANY), *at = text;
    at += sprintf(at, "HloModule m, input_output_alias={ ");
    for (int i = 0; i < MANY; i++) at += sprintf(at, "%s{%d}: (%d, {})", i ? ", " : "", i, i);
    at += sprintf(at, " }, buffer_donor={ ");
    for (int i = 0; i < MANY; i++) at += sprintf(at, "%s(%d, {})", i ? ", " : "", MANY + i);
    at += sprintf(at, " }\nENTRY e {\n");
    for (int i = 0; i < 2 * MANY; i++) at += sprintf(at, "p%d = f32[] parameter(%d)\n", i, i);
    at += sprintf(at, "ROOT t = (");
    for (int i = 0; i < MANY; i++) at += sprintf(at, "%sf32[]", i ? "," : "");
    at += sprintf(at, ") tuple(");
    for (int i = 0; i < MANY; i++) at += sprintf(at, "%sp%d", i ? "," : "", i);
    char *end = at;
    sprintf(at, ")\n}\n");
    assert_int_equal(verified(text), HLO_OK);
    at = end + sprintf(end, "), sharding={");
    for (int i = 0; i < MANY; i++) at += sprintf(at, "%s{devices=[2]<=[2]}", i ? "," : "");
    sprintf(at, "}\n}\n");
    assert_int_equal(verified(text), HLO_INVALID_INPUT);
    free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_and_lines_are_not_searched_again),
        TEST(a_sound_module),
        TEST(an_operand_behind_its_user),
        TEST(a_callee_behind_its_caller),
        TEST(an_operand_of_another_computation),
        TEST(an_operand_that_was_removed),
        TEST(a_control_predecessor_behind),
        TEST(a_gap_in_the_parameters),
        TEST(a_parameter_number_twice),
        TEST(no_root),
        TEST(a_root_elsewhere),
        TEST(no_entry),
        TEST(a_computation_that_calls_itself),
        TEST(a_long_circle_of_calls),
        TEST(a_call_of_the_entry),
        TEST(a_long_chain_of_calls),
        TEST(two_of_one_name),
        TEST(two_computations_of_one_name),
        TEST(a_value_of_another_shape),
        TEST(a_constant_without_value),
        TEST(a_word_that_is_none),
        TEST(attributes_that_do_not_belong),
        TEST(layouts_that_are_no_order),
        TEST(an_array_too_large),
        TEST(no_more_than_twenty_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
