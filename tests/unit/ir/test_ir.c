/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the IR: names, shapes, use lists, bytes of quoted strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir/device_list.h"
#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/module/build.h"
#include "ir/module/clone.h"
#include "ir/module/undo.h"
#include "ir/text/plain.h"

static const char *unique(hlo_module *m, const char *name) {
    return hlo_unique_name(m, HLO_NAME_INSTR, hlo_intern_string(m, name));
}

static void names_are_unique(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    assert_string_equal(unique(m, "add"), "add");
    assert_string_equal(unique(m, "add"), "add.1");
    assert_string_equal(unique(m, "add.1"), "add.2");
    assert_string_equal(unique(m, "mul.7"), "mul.7");
    assert_string_equal(unique(m, "mul.7"), "mul.1");
    hlo_module_free(m);
}

static void equal_shapes_are_one_pointer(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    int64_t dims[] = {2, 3}, order[] = {0, 1};
    const hlo_shape *a = hlo_shape_array(m, HLO_TYPE_F32, 2, dims);
    const hlo_shape *b = hlo_shape_with_layout(m, HLO_TYPE_F32, 2, dims, order);
    assert_ptr_equal(a, hlo_shape_array(m, HLO_TYPE_F32, 2, dims));
    assert_ptr_not_equal(a, b);
    assert_true(hlo_shape_compatible(a, b));
    assert_true(hlo_shape_is_row_major(a));
    assert_false(hlo_shape_is_row_major(b));
    char text[64];
    const hlo_shape *pair[] = {a, b};
    size_t length = hlo_shape_format(hlo_shape_tuple(m, 2, pair), true, text, sizeof text);
    assert_string_equal(text, "(f32[2,3]{1,0}, f32[2,3]{0,1})");
    assert_int_equal(length, strlen(text));
    hlo_module_free(m);
}

static void uses_follow_their_definition(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *c = hlo_comp_new(m, "main");
    hlo_instruction *one = hlo_constant_scalar(c, NULL, HLO_TYPE_F32, 1);
    hlo_instruction *two = hlo_constant_scalar(c, NULL, HLO_TYPE_F32, 2);
    hlo_instruction *twice[] = {one, one};
    hlo_instruction *add = hlo_instr_new(c, NULL, HLO_OP_ADD, one->shape, 2, twice, NULL);
    hlo_comp_set_root(c, add);
    assert_int_equal(one->use_count, 2);
    hlo_instr_replace_uses(one, two);
    assert_int_equal(one->use_count, 0);
    assert_null(one->uses);
    assert_int_equal(two->use_count, 2);
    assert_ptr_equal(hlo_instr_operand(add, 1), two);
    hlo_instr_remove(one);
    assert_int_equal(c->instr_count, 2);
    assert_int_equal(hlo_instr_user_count(add), 1);
    hlo_module *copy;
    assert_int_equal(hlo_module_clone(m, &copy), HLO_OK);
    assert_string_equal(copy->first->root->name, "add");
    hlo_module_free(m);
    assert_true(hlo_number_load(HLO_TYPE_F32, copy->first->first->u.literal->data) == 2);
    hlo_module_free(copy);
}

static void a_snapshot_brings_all_back(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *c = hlo_comp_new(m, "main");
    hlo_instruction *one = hlo_constant_scalar(c, NULL, HLO_TYPE_F32, 1);
    hlo_instruction *two = hlo_constant_scalar(c, NULL, HLO_TYPE_F32, 2);
    hlo_instruction *both[] = {one, two};
    hlo_instruction *add = hlo_instr_new(c, NULL, HLO_OP_ADD, one->shape, 2, both, NULL);
    hlo_instr_set_str(add, HLO_ATTR_ORIGIN, "{{\"a\"}}");
    hlo_comp_set_root(c, add);
    const hlo_attr *attrs = m->attrs = hlo_arena_array(m->arena, 1, sizeof *attrs);
    const hlo_snapshot *before = hlo_snapshot_take(m, m->arena);
    for (int times = 0; times < 2; times++) {
        hlo_instruction *made = hlo_instr_new(c, add, HLO_OP_NEGATE, one->shape, 1, &one, "add");
        assert_string_equal(made->name, "add.1");
        hlo_instr_replace_uses(add, made);
        hlo_instr_drop_attr(add, HLO_ATTR_ORIGIN);
        hlo_instr_append_operand(add, made);
        hlo_instr_set_operand(add, 0, two);
        hlo_instr_move(one, two);
        hlo_instr_remove(add);
        (void)hlo_comp_new(m, "other");
        hlo_module_compact(m, m->arena);
        m->attrs = hlo_arena_array(m->arena, 1, sizeof *attrs);
        hlo_snapshot_restore(m, before);
        assert_ptr_equal(m->attrs, attrs);
        assert_ptr_equal(m->last, c);
        assert_ptr_equal(c->root, add);
        assert_int_equal(c->instr_count, 3);
        assert_ptr_equal(c->first, one);
        assert_ptr_equal(one->next, two);
        assert_ptr_equal(c->last, add);
        assert_int_equal(add->operand_count, 2);
        assert_ptr_equal(hlo_instr_operand(add, 0), one);
        assert_ptr_equal(one->uses, &add->operands[0]);
        assert_int_equal(one->use_count, 1);
        assert_string_equal(hlo_instr_str(add, HLO_ATTR_ORIGIN), "{{\"a\"}}");
        assert_int_equal(m->op_counts[HLO_OP_NEGATE], 0);
        assert_int_equal(m->op_counts[HLO_OP_CONSTANT], 2);
    }
    hlo_module_free(m);
}

static void laid_side_by_side_all_is_the_same(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *c = hlo_comp_new(m, "main");
    const hlo_shape *scalar = hlo_shape_array(m, HLO_TYPE_F32, 0, NULL);
    hlo_instruction *x = hlo_instr_new(c, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, "x");
    hlo_instr_set_parameter(x, 0);
    hlo_instruction *twice[] = {x, x};
    hlo_instruction *add = hlo_instr_new(c, NULL, HLO_OP_ADD, scalar, 2, twice, NULL);
    hlo_instruction *first = hlo_instr_new(c, add, HLO_OP_NEGATE, scalar, 1, &x, NULL);
    hlo_instr_set_operand(add, 1, first);
    hlo_instrs *named = hlo_arena_alloc(m->arena, sizeof *named + sizeof *named->v);
    named->count = 1;
    named->v[0] = first;
    hlo_instr_set_attr(add, (hlo_attr){.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = named});
    hlo_comp_set_root(c, add);
    assert_false(hlo_module_is_fragmented(m));
    for (int i = 0; i < 9; i++)
        hlo_instr_remove(hlo_instr_new(c, NULL, HLO_OP_NEGATE, scalar, 1, &x, NULL));
    assert_true(hlo_module_is_fragmented(m));
    hlo_instruction **relocated = hlo_module_compact(m, m->arena);
    assert_false(hlo_module_is_fragmented(m));
    assert_null(relocated[first->id + 1]);
    hlo_instruction *new_x = relocated[x->id], *new_first = relocated[first->id],
                    *new_add = relocated[add->id];
    assert_ptr_equal(new_x + 1, new_first);
    assert_ptr_equal(new_first + 1, new_add);
    assert_ptr_equal(c->first, new_x);
    assert_ptr_equal(new_x->next, new_first);
    assert_ptr_equal(new_first->next, new_add);
    assert_null(new_add->next);
    assert_ptr_equal(c->last, new_add);
    assert_ptr_equal(new_add->prev, new_first);
    assert_ptr_equal(new_first->prev, new_x);
    assert_null(new_x->prev);
    assert_int_equal(new_add->id, add->id);
    assert_ptr_equal(c->parameters[0], new_x);
    assert_ptr_equal(c->root, new_add);
    assert_ptr_equal(hlo_instr_operand(new_add, 0), new_x);
    assert_ptr_equal(hlo_instr_operand(new_add, 1), new_first);
    assert_int_equal(new_x->use_count, 2);
    assert_ptr_equal(new_x->uses, new_first->operands); /* newest first, as in the original */
    assert_ptr_equal(new_x->uses->user, new_first);
    assert_ptr_equal(new_x->uses->next, new_add->operands);
    assert_ptr_equal(new_x->uses->next->prev, new_x->uses);
    assert_ptr_equal(new_x->uses->next->user, new_add);
    assert_null(new_x->uses->next->next);
    const hlo_attr *control = hlo_instr_attr(new_add, HLO_ATTR_CONTROL_PREDECESSORS);
    assert_ptr_equal(control->u.instrs->v[0], new_first);
    hlo_module_free(m);
}

/* Undoing a change also restores names and the order of use lists. Objects that are created later
 * have the same names as without the change. */
static void what_was_made_is_unmade(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *c = hlo_comp_new(m, "main");
    const hlo_shape *scalar = hlo_shape_array(m, HLO_TYPE_F32, 0, NULL);
    hlo_instruction *x = hlo_instr_new(c, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, "x");
    hlo_instr_set_parameter(x, 0);
    hlo_instruction *twice[] = {x, x};
    hlo_instruction *add = hlo_instr_new(c, NULL, HLO_OP_ADD, scalar, 2, twice, "negate.2");
    hlo_comp_set_root(c, add);
    const uint64_t print = hlo_module_fingerprint(m);
    hlo_journal *journal = hlo_journal_new(m->arena);
    for (int times = 0; times < 2; times++) {
        hlo_journal_open(journal, m);
        hlo_instruction *first = hlo_instr_new(c, add, HLO_OP_NEGATE, scalar, 1, &x, NULL);
        assert_string_equal(first->name, "negate");
        hlo_instruction *made = hlo_instr_new(c, first, HLO_OP_NEGATE, scalar, 1, &x, NULL);
        assert_string_equal(made->name, "negate.1");
        made = hlo_instr_new(c, add, HLO_OP_NEGATE, scalar, 1, &made, NULL);
        assert_string_equal(made->name, "negate.3");
        hlo_computation *other = hlo_comp_new(m, "main");
        assert_string_equal(other->name, "main.1");
        hlo_instruction *root = hlo_instr_new(other, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, "x");
        hlo_instr_set_parameter(root, 0);
        hlo_comp_set_root(other, root);
        assert_true(hlo_module_fingerprint(m) != print);
        hlo_journal_undo(m);
        assert_int_equal(c->instr_count, 2);
        assert_ptr_equal(m->last, c);
        hlo_journal_close(m);
        assert_true(hlo_module_fingerprint(m) == print);
        assert_ptr_equal(x->uses, &add->operands[1]);
    }
    assert_string_equal(hlo_comp_new(m, "main")->name, "main.1");
    hlo_module_free(m);
}

static bool admits_none(hlo_builder *b, const hlo_shape *shape, uint32_t count,
                        hlo_instruction *const *operands) {
    (void)b, (void)shape, (void)count, (void)operands;
    return false;
}

static void test_builder(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *c = hlo_comp_new(m, "main");
    const int64_t dims[] = {1, 3}, turned[] = {3, 1}, order[] = {1, 0}, wide[] = {2, 3},
                  last[] = {1};
    const hlo_shape *shape = hlo_shape_array(m, HLO_TYPE_F32, 2, dims);
    hlo_instruction *x = hlo_instr_new(c, NULL, HLO_OP_PARAMETER, shape, 0, NULL, "x");
    hlo_instr_set_parameter(x, 0);
    hlo_instruction *end = hlo_instr_new(c, NULL, HLO_OP_NEGATE, shape, 1, &x, NULL);
    end->offset = 7;
    hlo_builder b = {.at = end};
    /* If the result would equal the operand, the builder returns the operand. */
    assert_ptr_equal(hlo_build_convert(&b, x, HLO_TYPE_F32), x);
    assert_ptr_equal(hlo_build_reshape(&b, x, 2, dims), x);
    assert_ptr_equal(hlo_build_prefix(&b, x, shape), x);
    assert_ptr_equal(end->prev, x);
    /* A transpose that only moves dimensions of size 1 becomes a reshape. */
    hlo_instruction *moved = hlo_build_transpose(&b, x, order);
    assert_int_equal(moved->op, HLO_OP_RESHAPE);
    assert_int_equal(moved->offset, 7);
    assert_ptr_equal(moved->next, end);
    hlo_instruction *line = hlo_build_reshape(&b, moved, 1, turned);
    assert_int_equal(hlo_build_broadcast(&b, line, 2, wide, 1, last)->op, HLO_OP_BROADCAST);
    assert_int_equal(hlo_build_broadcast(&b, line, 2, dims, 1, last)->op, HLO_OP_RESHAPE);
    /* A scalar is converted before it is broadcast. */
    hlo_instruction *two = hlo_build_number(&b, HLO_TYPE_BF16, 2);
    hlo_instruction *splat = hlo_build_splat(&b, two, shape);
    assert_int_equal(splat->op, HLO_OP_BROADCAST);
    assert_int_equal(hlo_instr_operand(splat, 0)->op, HLO_OP_CONVERT);
    assert_null(hlo_build_splat(&b, x, shape)); /* x does not repeat one element */
    /* A reduction reuses the computation of a reduction with the same operation. */
    hlo_computation *kept = NULL;
    const int64_t along[] = {0, 1};
    const hlo_shape *scalar = hlo_shape_array(m, HLO_TYPE_F32, 0, NULL);
    hlo_build_reduce(&b, HLO_OP_ADD, x, scalar, 2, along, &kept);
    const hlo_computation *first = kept;
    assert_ptr_equal(m->first, first); /* the computation comes before its caller */
    hlo_build_reduce(&b, HLO_OP_ADD, x, scalar, 2, along, &kept);
    assert_ptr_equal(kept, first);
    hlo_build_reduce(&b, HLO_OP_MAXIMUM, x, scalar, 2, along, &kept);
    assert_ptr_not_equal(kept, first);
    /* A NULL operand gives a NULL result. */
    assert_null(hlo_build_binary(&b, HLO_OP_ADD, x, NULL));
    assert_null(hlo_build_reshape(&b, hlo_build_unary(&b, HLO_OP_ABS, NULL), 1, turned));
    b.admits = admits_none;
    const uint32_t made = m->next_id;
    assert_null(hlo_build_filled(&b, shape, 1));
    assert_null(hlo_build_reduce(&b, HLO_OP_ADD, x, scalar, 2, along, &kept));
    assert_int_equal(m->next_id, made);
    hlo_module_free(m);
}

static void what_is_said_is_inherited(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *c = hlo_comp_new(m, "main");
    const hlo_shape *row = hlo_shape_array(m, HLO_TYPE_F32, 1, (int64_t[]){4});
    const hlo_shape *scalar = hlo_shape_array(m, HLO_TYPE_F32, 0, NULL);
    hlo_instruction *x = hlo_instr_new(c, NULL, HLO_OP_PARAMETER, row, 0, NULL, "x");
    hlo_instruction *like = hlo_instr_new(c, NULL, HLO_OP_NEGATE, row, 1, &x, NULL);
    hlo_instruction *other = hlo_instr_new(c, NULL, HLO_OP_RESHAPE, scalar, 1, &x, NULL);
    const hlo_sharding replicated = {.parsed.text = hlo_intern_string(m, "{replicated}")};
    hlo_instr_set_attr(x, (hlo_attr){.id = HLO_ATTR_SHARDING, .u.sharding = &replicated});
    hlo_instr_set_str(x, HLO_ATTR_FRONTEND_ATTRIBUTES, "{a=\"1\"}");
    hlo_instr_set_str(like, HLO_ATTR_FRONTEND_ATTRIBUTES, "{b=\"2\"}");
    hlo_instr_inherit(like, x);
    hlo_instr_inherit(other, x);
    assert_string_equal(hlo_instr_str(like, HLO_ATTR_SHARDING), "{replicated}");
    assert_string_equal(hlo_instr_str(like, HLO_ATTR_FRONTEND_ATTRIBUTES), "{b=\"2\"}");
    assert_null(hlo_instr_str(other, HLO_ATTR_SHARDING));
    assert_string_equal(hlo_instr_str(other, HLO_ATTR_FRONTEND_ATTRIBUTES), "{a=\"1\"}");
    hlo_module_free(m);
}

static void attributes_are_equal_by_value(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_module *m = hlo_module_make(&recover);
    hlo_attr dims = {.id = HLO_ATTR_DIMENSIONS, .u.ints = hlo_ints_new(m, 2, (int64_t[]){1, 2})};
    hlo_attr same = {.id = HLO_ATTR_LHS_BATCH_DIMS, .u.ints = hlo_ints_new(m, 2, dims.u.ints->v)};
    hlo_attr shorter = {.id = HLO_ATTR_DIMENSIONS, .u.ints = hlo_ints_new(m, 1, dims.u.ints->v)};
    assert_true(hlo_attr_equal(&dims, &same));
    assert_false(hlo_attr_equal(&dims, &shorter));
    assert_false(hlo_attrs_equal(&dims, 1, &same, 1));
    hlo_attr zero = {.id = HLO_ATTR_EPSILON, .u.f = 0.0}, minus = {.id = zero.id, .u.f = -0.0};
    assert_true(hlo_attr_equal(&zero, &minus));
    assert_false(hlo_attr_equal(&zero, &(hlo_attr){.id = HLO_ATTR_INDEX, .u.i = 0}));
    hlo_instrs none = {0};
    hlo_attr control = {.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = &none};
    assert_false(hlo_attr_equal(&control, &control));
    hlo_attrs nothing = {0};
    const hlo_attr list[] = {{.id = HLO_ATTR_METADATA, .u.attrs = &nothing}, dims, zero};
    assert_true(hlo_attrs_equal(list, 3, (hlo_attr[]){dims, minus}, 2));
    assert_false(hlo_attrs_equal(list, 3, (hlo_attr[]){minus, dims}, 2));
    hlo_module_free(m);
}

/* Tests each byte at each position of a string of each length. */
static void plain_bytes_are_told_many_at_once(void **state) {
    (void)state;
    char text[20];
    for (size_t size = 1; size <= sizeof text; size++)
        for (size_t at = 0; at < size; at++)
            for (int byte = 0; byte < 256; byte++) {
                memset(text, at % 2 ? '~' : ' ', sizeof text);
                text[at] = (char)byte;
                assert_int_equal(hlo_all_plain(text, size), hlo_is_plain((unsigned char)byte));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builder),
        cmocka_unit_test(what_was_made_is_unmade),
        cmocka_unit_test(what_is_said_is_inherited),
        cmocka_unit_test(attributes_are_equal_by_value),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(equal_shapes_are_one_pointer),
        cmocka_unit_test(uses_follow_their_definition),
        cmocka_unit_test(a_snapshot_brings_all_back),
        cmocka_unit_test(laid_side_by_side_all_is_the_same),
        cmocka_unit_test(plain_bytes_are_told_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
