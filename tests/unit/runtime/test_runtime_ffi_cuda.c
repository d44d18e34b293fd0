/* SPDX-License-Identifier: Apache-2.0 */
/* Tests typed calls as created by XLA, on a fake CUDA device: plans, library calls, results,
 * errors. */
#include <dlfcn.h>
#include <unistd.h>

#include "runtime/cuda/driver/library.h"
#include "tests/unit/runtime/ffi_fixture.h"

static memory *m; /* device memory, which is host memory */
static call c;
static char stream_of_xla[64]; /* the fake only uses the address */

static ffi_error *get_stream(ffi_stream_get *arguments) {
    arguments->stream = stream_of_xla;
    return NULL;
}

static ffi_error *get_none(ffi_stream_get *arguments) {
    (void)arguments;
    return (ffi_error *)said;
}

static const char log_path[] = "ffi_cuda.log";

static int set_up_all(void **state) {
    (void)state;
    cuda_library lib = {0};
    cuda_context *context;
    cuda_address at = 0;
    setenv("HLO_CUDA_DRIVER", HLO_STANDIN, 1);
    if (cuda_library_load(&lib, CUDA_DRIVER, NULL) != HLO_OK ||
        lib.cuDevicePrimaryCtxRetain(&context, 0) || lib.cuCtxSetCurrent(context) ||
        lib.cuMemAlloc(&at, sizeof *m))
        return -1;
    lib.cuCtxSetCurrent(NULL); /* a call makes the stream's context current */
    m = (memory *)(uintptr_t)at;
    return 0;
}

static int set_up(void **state) {
    (void)state;
    fill_memory(m);
    make_matmul(&c, m);
    c.api.stream_get = get_stream;
    *said = '\0';
    return 0;
}

static void runs(void) {
    if (hlofp8_ffi_matmul_cuda(&c.frame)) fail_msg("%s", said);
    assert_true(is_right(m));
}

static void refuses(const char *why) {
    *said = '\0';
    assert_ptr_equal(hlofp8_ffi_matmul_cuda(&c.frame), said);
    if (!strstr(said, why)) fail_msg("'%s' is not in '%s'", why, said);
}

/* Counts the lines of the fake's log that begin with a function name. */
static int count_calls(const char *name) {
    char line[4096];
    int count = 0;
    FILE *log = fopen(log_path, "r");
    while (log && fgets(line, sizeof line, log)) {
        const char *at = strstr(line, name);
        count += at && (at == line || at[-1] == ' ');
    }
    if (log) fclose(log);
    return count;
}

/* ---------------------------------------------------------------------------------------- tests */

static void without_a_stream_nothing_runs(void **state) {
    (void)state;
    c.api.stream_get = get_none;
    refuses("has no stream");
    assert_int_equal(said_code, FFI_FAILED_PRECONDITION);
    c.api.size = FFI_SIZE(ffi_api, handler_register);
    refuses("has no stream");
}

static void without_libraries_nothing_runs(void **state) {
    (void)state;
    setenv("HLO_CUDA_DRIVER", "none/libcuda.so", 1);
    refuses("cannot be run: cannot load CUDA driver from HLO_CUDA_DRIVER");
    setenv("HLO_CUDA_DRIVER", HLO_STANDIN, 1);
    setenv("HLO_CUDA_CUBLASLT", "none/libcublasLt.so", 1);
    refuses("cannot be run: cannot load cuBLASLt from HLO_CUDA_CUBLASLT");
    setenv("HLO_CUDA_CUBLASLT", HLO_STANDIN, 1);
}

/* The next call retries the step that failed. */
static void failures_are_told(void **state) {
    (void)state;
    static const struct {
        const char *call, *why;
    } rows[] = {
        {"cuStreamGetCtx:1=400", "cannot use its stream: CUDA_ERROR_400"},
        {"cuCtxPushCurrent:1=400", "cannot use its stream: CUDA_ERROR_400"},
        {"cuCtxGetDevice:1=201", "cannot be run: failed to query the CUDA device: CUDA_ERROR_201"},
        {"cublasLtCreate:1=1", "cannot be run: failed to initialize cuBLASLt: "},
        {"cublasLtMatmulDescCreate:1=3", "is rejected by cuBLASLt: a descriptor: "},
        {"cublasLtMatmulAlgoGetHeuristic:1=15",
         "is rejected by cuBLASLt: cublasLtMatmulAlgoGetHeuristic: "},
        {"cublasLtMatmul:1=14", "is rejected by cuBLASLt: cublasLtMatmul: "},
    };
    add_string(&c, "this", "is another plan than that of the other tests");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("HLO_STANDIN_FAIL", rows[i].call, 1);
        refuses(rows[i].why);
        assert_int_equal(said_code, FFI_FAILED_PRECONDITION);
    }
    unsetenv("HLO_STANDIN_FAIL");
    runs();
    assert_int_equal(count_calls("cuCtxPopCurrent") + 1, count_calls("cuCtxPushCurrent"));
    remove(log_path);
}

/* A plan is created once; then calls are enqueued without queries, allocation or waiting. */
static void a_plan_is_kept(void **state) {
    (void)state;
    runs();
    assert_int_equal(count_calls("cublasLtMatmulAlgoGetHeuristic"), 1);
    assert_int_equal(count_calls("cublasLtMatmul "), 1);
    FILE *log = fopen(log_path, "w");
    fclose(log);
    fill_memory(m);
    runs();
    assert_int_equal(count_calls("cublasLtMatmul "), 1);
    assert_int_equal(count_calls("cublasLtMatmulAlgoGetHeuristic"), 0);
    assert_int_equal(count_calls("cublasLtCreate"), 0);
    assert_int_equal(count_calls("cuMemAlloc"), 0);
    assert_int_equal(count_calls("cuStreamSynchronize"), 0);
    assert_int_equal(count_calls("cuCtxPushCurrent"), count_calls("cuCtxPopCurrent"));
}

/* An attribute with another value requires another plan. */
static void plans_differ(void **state) {
    (void)state;
    runs();
    c.numbers[1] = 2;
    m->a_scale = 0.25f;
    runs();
    m->a_scale = 0.5f;
    c.numbers[1] = 1;
    runs();
    set_up(state);
    c.dims[1][1][0] = 700; /* less workspace, at an offset in the memory */
    c.buffers[1][1].data = m->workspace + 100;
    runs();
}

/* Makes the call, and returns the number of plans that it created. */
static int plans_made(void) {
    FILE *log = fopen(log_path, "w");
    fclose(log);
    if (hlofp8_ffi_matmul_cuda(&c.frame)) fail_msg("%s", said);
    return count_calls("cublasLtMatmulAlgoGetHeuristic");
}

/* A call with another type, dimension, alignment or attribute needs another plan. */
static void each_part_of_a_call_has_a_plan(void **state) {
    enum { PARTS = 7, ROWS = 8 };
    for (int part = 0; part < PARTS; part++) {
        set_up(state);
        plans_made();
        switch (part) {
        case 0: c.buffers[0][0].data = m->a + 16; break;
        case 1: c.buffers[1][0].data = m->d + 8; break;
        case 2: c.buffers[0][1].type = FFI_TYPE_F8E5M2; break;
        case 3: c.dims[0][0][0] = c.dims[1][0][0] = ROWS; break;
        case 4: c.dims[0][1][0] = c.dims[0][4][0] = c.dims[1][0][1] = 16; break;
        case 5: c.dims[1][1][0] = 512; break;
        case 6: c.values[3].string = (ffi_span){"BIAS", 4}; break;
        }
        assert_int_equal(plans_made(), 1);
        assert_int_equal(plans_made(), 0);
        set_up(state);
        assert_int_equal(plans_made(), 0);
    }
}

static void what_cublaslt_refuses_is_told(void **state) {
    (void)state;
    c.buffers[0][0].type = c.buffers[0][1].type = FFI_TYPE_F8E5M2;
    refuses("is not supported by cuBLASLt: both-operands-e5m2");
    set_up(state);
    add_attr(&c, "operand_layouts", FFI_ATTR_ARRAY)->array =
        (ffi_array){FFI_TYPE_S64, 5, (int64_t[]){0, 1, 1, 0, 0}};
    refuses("in a layout that cuBLASLt does not support (sm_90 requires TN layout)");
    set_up(state);
    c.frame.operands.count--;
    refuses("is not a valid matmul call: the number of operands matches neither form of the call");
    set_up(state);
    c.kinds[0][0] = 2;
    refuses("has operand 0 that is not an array");
    assert_int_equal(said_code, FFI_INVALID_ARGUMENT);
}

static void wrong_numbers_are_told(void **state) {
    (void)state;
    const ffi_api api = c.api;
    runs();
    refuses_wrong_numbers(hlofp8_ffi_matmul_cuda, &c, m, &api);
    set_up(state);
    runs();
}

int main(void) {
    setenv("HLO_STANDIN_LOG", log_path, 1);
    remove(log_path);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_stream_nothing_runs, set_up),
        cmocka_unit_test_setup(without_libraries_nothing_runs, set_up),
        cmocka_unit_test_setup(failures_are_told, set_up),
        cmocka_unit_test_setup(a_plan_is_kept, set_up),
        cmocka_unit_test_setup(plans_differ, set_up),
        cmocka_unit_test_setup(each_part_of_a_call_has_a_plan, set_up),
        cmocka_unit_test_setup(what_cublaslt_refuses_is_told, set_up),
        cmocka_unit_test_setup(wrong_numbers_are_told, set_up),
    };
    return cmocka_run_group_tests_name("ffi cuda", tests, set_up_all, NULL);
}
