/* SPDX-License-Identifier: Apache-2.0 */
/* Tests device groups: their number, sizes and members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grammar/attr/notation.h"
#include "hlo/memory.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "ir/arena.h"
#include "ir/device_list.h"
#include "ir/intern.h"

typedef struct fixture {
    hlo_module *module;
    hlo_arena *scratch;
} fixture;

static int set_up(void **state) {
    static fixture f;
    static jmp_buf recover;
    if (setjmp(recover)) return 1;
    f = (fixture){hlo_module_make(&recover), hlo_arena_new(&recover)};
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    hlo_module_free(f->module);
    hlo_arena_free(f->scratch);
    return 0;
}

static const hlo_attr *read_as(fixture *f, hlo_attr_id id, const char *value) {
    hlo_notation form;
    const char *text = hlo_intern_string(f->module, value);
    return hlo_notation_of(f->module, f->scratch, id, text, NULL, &form);
}

static const hlo_groups *groups_of(fixture *f, const char *value) {
    const hlo_attr *attr = read_as(f, HLO_ATTR_REPLICA_GROUPS, value);
    assert_non_null(attr);
    return attr->u.groups;
}

static void assert_groups(fixture *f, const char *value, int64_t count, int64_t size,
                          int64_t devices) {
    const hlo_groups *groups = groups_of(f, value);
    assert_string_equal(groups->parsed.text, value);
    assert_int_equal(groups->count, count);
    assert_int_equal(groups->size, size);
    assert_int_equal(groups->devices, devices);
}

static void listed_groups(void **state) {
    fixture *f = *state;
    assert_groups(f, "{}", 0, 0, 0);
    assert_groups(f, "{{0,2},{1,3}}", 2, 2, 4);
    assert_groups(f, "{{0},{1,2}}", 2, -1, 3);
    assert_true(groups_of(f, "{{0},{}}")->empty);
    assert_false(groups_of(f, "{{0},{1}}")->empty);
}

static void counted_groups(void **state) {
    fixture *f = *state;
    assert_groups(f, "[2,4]<=[8]", 2, 4, 8);
    assert_groups(f, "[2,4]<=[4,2]T(1,0)", 2, 4, 8);
    assert_groups(f, "[2,4]<=[4,4]T(1,0)", 2, 4, 16);
    assert_groups(f, "[1,1]<=[4000000000,4000000000]T(1,0)", 1, 1, -1);
    assert_null(groups_of(f, "[2,4]<=[8]")->sizes);
}

static void groups_along_axes(void **state) {
    fixture *f = *state;
    assert_groups(f, "mesh['a'=2,'b'=4] {'b'}", 2, 4, 8);
    assert_groups(f, "mesh['a'=2,'b'=4] {'a','b'}", 1, 8, 8);
    assert_groups(f, "mesh['a'=2,'b'=4] {'b':(2)2}", 4, 2, 8);
    assert_groups(f, "mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'a'}", 4, 2, 8);
    assert_groups(f, "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}", 4, 2, 8);
}

static void misfits(void **state) {
    static const struct {
        const char *value;
        int64_t odd;
    } wanted[] = {{"{{0,2},{1,30}}", 30}, {"{{0,1},{1,2}}", 1}, {"{{0,-2}}", -2}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const hlo_groups *groups = groups_of(*state, wanted[i].value);
        assert_true(groups->misfit);
        assert_int_equal(groups->odd, wanted[i].odd);
    }
    assert_false(groups_of(*state, "{{0,2},{1,3}}")->misfit);
}

/* Equal values share one struct, even if their texts differ. */
static void equal_values(void **state) {
    fixture *f = *state;
    const hlo_groups *groups = groups_of(f, "{ {0, 1} }");
    assert_ptr_equal(groups, groups_of(f, "{{0,1}}"));
    assert_null(read_as(f, HLO_ATTR_SOURCE_TARGET_PAIRS, "{{0,1},{2}}"));
}

/* A clone has separate values, equal to the original's. */
static void values_of_a_clone(void **state) {
    (void)state;
    static const char text[] =
        "HloModule m, input_output_alias={ {1}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }\n"
        "ENTRY e {\n"
        " a = f32[4]{0} parameter(0), sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual} "
        "metadata={op_name=\"a\"}}\n"
        " b = f32[4]{0} parameter(1), sharding={mesh['x'=2,'y'=4], [{'x', ?}], "
        "replicated={'y':(2)2}}\n"
        " p = f32[4]{0} collective-permute(a), source_target_pairs={{0,1},{1,0}}\n"
        " g = f32[8]{0} all-gather(b), replica_groups=mesh['x'=2,'y'=4] {'x'}, dimensions={0}\n"
        " h = f32[4]{0} custom-call(a, b), custom_call_target=\"h\", "
        "output_to_operand_aliasing={{}: (1, {})}\n"
        " ROOT t = (f32[8]{0}, f32[4]{0}, f32[4]{0}) tuple(g, p, h), "
        "sharding={{replicated}, {maximal device=1}, {replicated}}\n"
        "}\n";
    hlo_module *module, *clone;
    char *before, *after;
    size_t size;
    assert_int_equal(hlo_module_parse(text, sizeof text - 1, "m", NULL, &module), HLO_OK);
    assert_int_equal(hlo_module_to_text(module, NULL, &before, &size), HLO_OK);
    assert_int_equal(hlo_module_clone(module, &clone), HLO_OK);
    hlo_module_free(module);
    assert_int_equal(hlo_module_to_text(clone, NULL, &after, &size), HLO_OK);
    assert_string_equal(before, after);
    assert_non_null(strstr(after, "{mesh['x'=2,'y'=4], [{'x', ?}], replicated={'y':(2)2}}"));
    const hlo_sharding *tuple = hlo_instr_sharding(clone->entry->root);
    assert_int_equal(tuple->count, 3);
    assert_ptr_equal(tuple->v[0], tuple->v[2]);
    hlo_free(before);
    hlo_free(after);
    hlo_module_free(clone);
}

static void entries_of_attributes(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_arena *arena = hlo_arena_new(&recover);
    static const char entries[] = "{a=\"x,b=\\\"y\\\"\",b={m = <[\"}\"=2]>, n},xla.c=\"\",d=\"{\"}";
    assert_string_equal(hlo_value_entry(arena, entries, "a"), "x,b=\"y\"");
    assert_string_equal(hlo_value_entry(arena, entries, "b"), "{m = <[\"}\"=2]>, n}");
    assert_string_equal(hlo_value_entry(arena, entries, "xla.c"), "");
    assert_string_equal(hlo_value_entry(arena, entries, "d"), "{");
    assert_null(hlo_value_entry(arena, entries, "c"));
    static const char *const wrong[] = {
        "", "{", "{}", "{c", "{a=", "{a=\"", "{a=\"\\", "{a={", "c"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(hlo_value_entry(arena, wrong[i], "c"));
    hlo_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(listed_groups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counted_groups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_along_axes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(misfits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_values, set_up, tear_down),
        cmocka_unit_test(values_of_a_clone),
        cmocka_unit_test(entries_of_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
