/* Groups of devices: how many, of how many, and which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/arena.h"
#include "ir/device_list.h"

static void assert_groups(const char *value, int64_t count, int64_t size, int64_t devices) {
    hlo_device_list groups = hlo_device_list_read(value);
    assert_int_equal(groups.count, count);
    assert_int_equal(groups.size, size);
    assert_int_equal(groups.devices, devices);
}

static void listed_groups(void **state) {
    (void)state;
    assert_groups(NULL, 0, 0, 0);
    assert_groups("{}", 0, 0, 0);
    assert_groups("{{0,2},{1,3}}", 2, 2, 4);
    assert_groups("{{0},{1,2}}", 2, -1, 3);
    assert_true(hlo_device_list_read("{{0},{}}").empty);
    assert_false(hlo_device_list_read("{{0},{1}}").empty);
}

static void counted_groups(void **state) {
    (void)state;
    assert_groups("[2,4]<=[8]", 2, 4, 8);
    assert_groups("[2,4]<=[4,2]T(1,0)", 2, 4, 8);
    assert_groups("[2,4]<=[4,4]T(1,0)", 2, 4, 16);
    assert_null(hlo_device_list_read("[2,4]<=[8]").list);
    assert_int_equal(hlo_device_list_read("[1,1]<=[4000000000,4000000000]T(1,0)").devices, -1);
}

static void groups_along_axes(void **state) {
    (void)state;
    assert_groups("mesh['a'=2,'b'=4] {'b'}", 2, 4, 8);
    assert_groups("mesh['a'=2,'b'=4] {'a','b'}", 1, 8, 8);
    assert_groups("mesh['a'=2,'b'=4] {'b':(2)2}", 4, 2, 8);
    assert_groups("mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'a'}", 4, 2, 8);
}

static void their_devices(void **state) {
    (void)state;
    static const int64_t wanted[] = {0, 2, 1, 30};
    const char *at = hlo_device_list_read("{{0,2},{1,30}}").list;
    int64_t device;
    for (size_t i = 0; i < 4; i++) {
        assert_true(hlo_device_list_next(&at, &device));
        assert_int_equal(device, wanted[i]);
    }
    assert_false(hlo_device_list_next(&at, &device));
}

static void malformed_text_ends(void **state) {
    (void)state;
    static const char *const values[] = {"{{x",    "{{0,x},{1}}",    "[",
                                         "mesh['", "mesh['a'=2] {'", "?"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int64_t device;
        hlo_device_list groups = hlo_device_list_read(values[i]);
        for (const char *at = groups.list ? groups.list : ""; hlo_device_list_next(&at, &device);) {
        }
    }
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
        cmocka_unit_test(listed_groups),       cmocka_unit_test(counted_groups),
        cmocka_unit_test(groups_along_axes),   cmocka_unit_test(their_devices),
        cmocka_unit_test(malformed_text_ends), cmocka_unit_test(entries_of_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
