/* SPDX-License-Identifier: Apache-2.0 */
/* Tests typed calls as created by XLA, on the CPU: properties, results, threads, and every field of
 * a frame with other values. */
#include <pthread.h>
#include <sys/resource.h>

#include "tests/unit/runtime/ffi_fixture.h"

static memory m;
static call c;

static int set_up(void **state) {
    (void)state;
    fill_memory(&m);
    make_matmul(&c, &m);
    *said = '\0';
    return 0;
}

static void runs(void) {
    if (hlofp8_ffi_matmul_cpu(&c.frame)) fail_msg("%s", said);
    assert_true(is_right(&m));
}

/* Checks that the call fails with this reason. */
static void refuses(const char *why) {
    *said = '\0';
    assert_ptr_equal(hlofp8_ffi_matmul_cpu(&c.frame), said);
    if (!strstr(said, why)) fail_msg("'%s' is not in '%s'", why, said);
    assert_memory_equal(said, HLO_FFI_TARGET, strlen(HLO_FFI_TARGET));
}

/* -------------------------------------------------------------------------------------- results */

static void a_call_runs(void **state) {
    (void)state;
    memset(m.workspace, 7, sizeof m.workspace);
    runs();
    for (size_t i = 0; i < sizeof m.workspace; i++) assert_int_equal(m.workspace[i], 7);
}

static void layouts_are_attributes(void **state) {
    (void)state;
    memory turned = m;
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++) turned.a[k * M + i] = m.a[i * K + k];
    make_matmul(&c, &turned);
    int64_t orders[] = {0, 1, 1, 0, 0}, d_orders[] = {1, 0, 0};
    add_attr(&c, "operand_layouts", FFI_ATTR_ARRAY)->array = (ffi_array){FFI_TYPE_S64, 5, orders};
    add_attr(&c, "result_layouts", FFI_ATTR_ARRAY)->array = (ffi_array){FFI_TYPE_S64, 3, d_orders};
    if (hlofp8_ffi_matmul_cpu(&c.frame)) fail_msg("%s", said);
    memcpy(m.d, turned.d, sizeof m.d);
    assert_true(is_right(&m));
    orders[1] = 0;
    refuses("has operand_layouts or result_layouts that do not match its arrays");
    orders[1] = 5;
    refuses("has operand_layouts or result_layouts that do not match its arrays");
    orders[1] = 1;
    c.values[c.frame.attrs.count - 1].array.count = 2;
    refuses("has operand_layouts or result_layouts that do not match its arrays");
    c.values[c.frame.attrs.count - 1].array.count = 0;
    static int64_t many[(1 << 16) + 1];
    c.values[c.frame.attrs.count - 2].array =
        (ffi_array){FFI_TYPE_S64, sizeof many / sizeof *many, many};
    refuses(
        "has attribute operand_layouts, which is not a string, flag, number or array of integers");
}

static long peak_kilobytes(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* The memory of a call grows with the lengths of its arrays, not with their squares. */
static void a_long_array_is_read(void **state) {
    (void)state;
    static int64_t many[1 << 13];
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) many[i] = 999999999999999999;
    add_attr(&c, "operand_layouts", FFI_ATTR_ARRAY)->array =
        (ffi_array){FFI_TYPE_S64, sizeof many / sizeof *many, many};
    const long before = peak_kilobytes();
    refuses("999999999999999999, ...>} is not a valid matmul call: operand_layouts");
    assert_true(peak_kilobytes() - before < 1 << 16);
}

static void an_error_has_the_call(void **state) {
    (void)state;
    c.values[3].string = (ffi_span){"BIAS_RELUU", 10};
    refuses(
        "hlofp8.matmul(f8e4m3fn[16,32], f8e4m3fn[48,32], f32[], f32[], bf16[48]) -> (bf16[16,48], "
        "s8[1024]) {algorithm = \"ALG_UNSET\", alpha_real = 1, beta = 0, epilogue = "
        "\"BIAS_RELUU\", lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = "
        "array<i64: 1>} is not a valid matmul call: unknown epilogue; did you mean 'BIAS_RELU'?");
    assert_int_equal(said_code, FFI_INVALID_ARGUMENT);
}

/* The reason is not truncated, however long the call is. */
static void a_reason_is_never_cut_off(void **state) {
    (void)state;
    static ffi_span names[100], *name_of[100];
    static value values[100];
    static void *value_of[100];
    static int kinds[100];
    static char letters[4096];
    memset(letters, 'x', sizeof letters);
    for (int i = 0; i < 100; i++) {
        names[i] = (ffi_span){letters, i ? (size_t)i : sizeof letters};
        values[i].string = (ffi_span){letters, sizeof letters};
        name_of[i] = &names[i];
        value_of[i] = &values[i];
        kinds[i] = FFI_ATTR_STRING;
    }
    kinds[0] = FFI_ATTR_DICTIONARY;
    c.frame.attrs = (ffi_attrs){c.frame.attrs.size, NULL, 100, kinds, name_of, value_of};
    refuses("... has attribute \"xxxxxx");
    assert_true(strlen(said) < 4096);
    assert_non_null(strstr(said, ", which is not a string, flag, number or array of integers"));
}

/* Integers and floats of any width are numbers; an empty list may have any type. */
static void attributes_have_types(void **state) {
    (void)state;
    int8_t one = 1;
    float f32 = 1;
    c.values[1].scalar = (ffi_scalar){FFI_TYPE_S8, &one};
    runs();
    c.values[1].scalar = (ffi_scalar){FFI_TYPE_F32, &f32};
    runs();
    uint16_t dims[] = {1};
    c.values[4].array = (ffi_array){FFI_TYPE_U16, 1, dims};
    add_attr(&c, "lhs_batch_dimensions", FFI_ATTR_ARRAY)->array =
        (ffi_array){FFI_TYPE_F32, 0, NULL};
    runs();
    add_attr(&c, "of.no meaning", FFI_ATTR_STRING)->string = (ffi_span){"a\"\\\n\x7f", 5};
    runs();
    c.values[4].array.type = FFI_TYPE_F64;
    refuses(
        "has attribute lhs_contracting_dimensions, which is not a string, flag, number or array");
    c.values[4].array.type = FFI_TYPE_U16;
    c.attr_kinds[c.frame.attrs.count - 1] = FFI_ATTR_DICTIONARY;
    refuses("has attribute \"of.no meaning\", which is not a string, flag, number or array");
    c.attr_kinds[c.frame.attrs.count - 1] = FFI_ATTR_STRING;
    c.values[0].string = (ffi_span){"ALG_UNSET\0", 10};
    refuses("an attribute in backend_config is not a string, flag, number or array of integers");
}

/* ----------------------------------------------------------------------------------- properties */

static void properties_are_told(void **state) {
    (void)state;
    ffi_metadata metadata = {.size = FFI_SIZE(ffi_metadata, traits), .traits = 99};
    ffi_metadata_extension extension = {
        {FFI_SIZE(ffi_metadata_extension, metadata), FFI_EXTENSION_METADATA, NULL}, &metadata};
    ffi_extension other = {FFI_SIZE(ffi_extension, next), 77, &extension.base};
    ffi_frame asking = {.size = FFI_SIZE(ffi_frame, attrs), .extensions = &other};
    assert_null(hlofp8_ffi_matmul_cpu(&asking));
    assert_int_equal(metadata.version.major, FFI_MAJOR);
    assert_int_equal(metadata.version.minor, FFI_MINOR);
    assert_int_equal(metadata.traits, 0);
    assert_null(hlofp8_ffi_matmul_cuda(&asking));
    c.api.version.minor = 1;
    asking.api = &c.api;
    assert_null(hlofp8_ffi_matmul_cpu(&asking));
    assert_int_equal(metadata.version.minor, 1);
    metadata.size = FFI_SIZE(ffi_metadata, version);
    metadata.traits = 99;
    assert_null(hlofp8_ffi_matmul_cpu(&(ffi_frame){.size = asking.size, .extensions = &other}));
    assert_int_equal(metadata.traits, 99);
}

/* Without a function that creates errors, nothing can be reported. */
static void a_frame_may_be_useless(void **state) {
    (void)state;
    assert_null(hlofp8_ffi_matmul_cpu(NULL));
    assert_null(hlofp8_ffi_matmul_cpu(&(ffi_frame){.size = 0}));
    c.api.size = FFI_SIZE(ffi_api, inside);
    assert_null(hlofp8_ffi_matmul_cpu(&c.frame));
    c.frame.api = NULL;
    assert_null(hlofp8_ffi_matmul_cpu(&c.frame));
    assert_false(is_right(&m));
}

/* -------------------------------------------------------------------------------------- threads */

enum { TASKS = 64 };
static struct {
    int64_t threads;
    int refuse_after, count;
    bool beside, later;
    ffi_task tasks[TASKS];
    pthread_t ids[TASKS];
} pool;

static ffi_error *tell_threads(ffi_thread_count *arguments) {
    *arguments->count = pool.threads;
    return NULL;
}

static void *run_task(void *task) {
    ((ffi_task *)task)->run(((ffi_task *)task)->data);
    return NULL;
}

static ffi_error *schedule(ffi_task *task) {
    assert_true(pool.count < TASKS);
    if (pool.count == pool.refuse_after) return (ffi_error *)said;
    ffi_task *kept = &pool.tasks[pool.count];
    *kept = *task;
    if (pool.beside)
        assert_int_equal(pthread_create(&pool.ids[pool.count], NULL, run_task, kept), 0);
    else if (!pool.later)
        task->run(task->data);
    pool.count++;
    return NULL;
}

/* XLA may run tasks concurrently with the caller, at once, at the end, or only some of them. */
static void threads_are_xlas(void **state) {
    (void)state;
    c.api.thread_count = tell_threads;
    c.api.thread_schedule = schedule;
    for (int way = 0; way < 4; way++) {
        memset(&pool, 0, sizeof pool);
        pool.threads = 5;
        pool.beside = way == 0;
        pool.later = way == 1;
        pool.refuse_after = way == 2 ? 2 : -1;
        fill_memory(&m);
        runs();
        assert_true(pool.count > 1);
        for (int i = 0; i < pool.count && pool.beside; i++) pthread_join(pool.ids[i], NULL);
        for (int i = 0; i < pool.count && pool.later; i++) run_task(&pool.tasks[i]);
    }
    memset(&pool, 0, sizeof pool);
    fill_memory(&m);
    runs();
    assert_int_equal(pool.count, 0);
}

static void *run_calls(void *unused) {
    (void)unused;
    memory own;
    call mine;
    fill_memory(&own);
    make_matmul(&mine, &own);
    bool good = true;
    for (int i = 0; i < 50; i++) {
        memset(own.d, 0, sizeof own.d);
        good &= !hlofp8_ffi_matmul_cpu(&mine.frame) && is_right(&own);
    }
    return good ? &m : NULL;
}

static void calls_run_at_a_time(void **state) {
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_calls, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *good;
        pthread_join(threads[i], &good);
        assert_non_null(good);
    }
}

/* ------------------------------------------------------------------------------------ mutations */

static const field sizes[] = {
    AT(frame.size, "has a call frame of"),
    AT(frame.operands.size, "has a list of operands of"),
    AT(frame.results.size, "has a list of results of"),
    AT(frame.attrs.size, "has a list of attributes of"),
    AT(buffers[0][0].size, "has operand 0 of"),
    AT(buffers[1][1].size, "has result 1 of"),
};

static const field pointers[] = {
    AT(frame.operands.kinds, "has a NULL list of operands"),
    AT(frame.operands.items, "has a NULL list of operands"),
    AT(frame.results.kinds, "has a NULL list of results"),
    AT(frame.results.items, "has a NULL list of results"),
    AT(frame.attrs.kinds, "has a NULL list of attributes"),
    AT(frame.attrs.names, "has a NULL list of attributes"),
    AT(frame.attrs.values, "has a NULL list of attributes"),
    AT(items[0][3], "has operand 3 that is not an array"),
    AT(items[1][0], "has result 0 that is not an array"),
    AT(buffers[0][1].data, "has operand 1 with NULL data"),
    AT(buffers[1][0].data, "has result 0 with NULL data"),
    AT(buffers[0][4].dims, "has operand 4 with NULL dimensions"),
    AT(name_of[2], "has attribute 2 with a NULL name"),
    AT(names[2].bytes, "has attribute 2 with a NULL name"),
    AT(value_of[2], "has attribute 2 with a NULL value"),
    AT(values[0].string.bytes, "has attribute 0 with a NULL value"),
    AT(values[1].scalar.value, "has attribute 1 with a NULL value"),
    AT(values[4].array.values, "has attribute 4 with a NULL value"),
};

static void wrong_sizes_are_told(void **state) {
    EACH(f, sizes) {
        set_up(state);
        int64_t right = 0;
        memcpy(&right, (char *)&c + f->offset, f->bytes);
        put_number(&c, f, right - 1);
        refuses(f->why);
        put_number(&c, f, 0);
        if (f != sizes) refuses(f->why); /* no member of a frame of size 0 can be read */
    }
}

static void absent_things_are_told(void **state) {
    EACH(f, pointers) {
        set_up(state);
        put_number(&c, f, 0);
        refuses(f->why);
    }
}

static void wrong_numbers_are_told(void **state) {
    (void)state;
    refuses_wrong_numbers(hlofp8_ffi_matmul_cpu, &c, &m, NULL);
}

static void wrong_memory_is_told(void **state) {
    (void)state;
    c.buffers[0][2].data = (char *)&m.a_scale + 1;
    refuses("has operand 2 whose data is not aligned for f32");
    set_up(state);
    c.dims[0][0][0] = INT64_MAX;
    refuses("has operand 0 with invalid dimensions");
    c.dims[0][0][0] = -3;
    refuses("has operand 0 with invalid dimensions");
}

/* Omits each attribute, and changes each string at each byte: the call is correct, or rejected with
 * a message. */
static void attributes_may_be_anything(void **state) {
    for (int i = 0; i < 6; i++) {
        set_up(state);
        c.names[i].size--;
        const bool error = hlofp8_ffi_matmul_cpu(&c.frame) != NULL;
        assert_int_equal(error, i >= 3); /* the other attributes have defaults: 0 or none */
    }
    for (int i = 0; i < 10; i++) {
        static const char bytes[] = {0, 1, '"', '\\', ',', 'Z', (char)0x80};
        for (size_t b = 0; b < sizeof bytes; b++) {
            char text[] = "BIAS_RELU";
            set_up(state);
            c.values[3].string = (ffi_span){text, strlen(text)};
            if (i < 9) text[i] = bytes[b];
            if (i == 9) c.values[3].string.size = b == 4 ? 8 : b; /* the prefix BIAS is valid */
            refuses("epilogue = ");
        }
    }
}

/* With an argument, makes only one call, for tests/oom. */
int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) {
        set_up(NULL);
        const ffi_error *error = hlofp8_ffi_matmul_cpu(&c.frame);
        if (error) fprintf(stderr, "%s\n", said);
        return error != NULL || !is_right(&m);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_call_runs, set_up),
        cmocka_unit_test_setup(layouts_are_attributes, set_up),
        cmocka_unit_test_setup(a_long_array_is_read, set_up),
        cmocka_unit_test_setup(an_error_has_the_call, set_up),
        cmocka_unit_test_setup(a_reason_is_never_cut_off, set_up),
        cmocka_unit_test_setup(attributes_have_types, set_up),
        cmocka_unit_test_setup(properties_are_told, set_up),
        cmocka_unit_test_setup(a_frame_may_be_useless, set_up),
        cmocka_unit_test_setup(threads_are_xlas, set_up),
        cmocka_unit_test_setup(calls_run_at_a_time, set_up),
        cmocka_unit_test_setup(wrong_sizes_are_told, set_up),
        cmocka_unit_test_setup(absent_things_are_told, set_up),
        cmocka_unit_test_setup(wrong_numbers_are_told, set_up),
        cmocka_unit_test_setup(wrong_memory_is_told, set_up),
        cmocka_unit_test_setup(attributes_may_be_anything, set_up),
    };
    return cmocka_run_group_tests_name("ffi", tests, NULL, NULL);
}
