/* SPDX-License-Identifier: Apache-2.0 */
/* Tests resident plans on a device whose driver fails. */
#include "runtime/cuda/driver/library.h"
#include "tests/unit/runtime/buffer_fixture.h"

static const char EITHER[] =
    "HloModule m\n\n"
    "%minus (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0)\n"
    "  ROOT %n = f32[4]{0} negate(%x)\n}\n\n"
    "%twice (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0)\n"
    "  ROOT %n = f32[4]{0} add(%x, %x)\n}\n\n"
    "ENTRY %e (p: pred[], x: f32[4]) -> f32[4] {\n"
    "  %p = pred[] parameter(0)\n  %x = f32[4]{0} parameter(1)\n"
    "  ROOT %c = f32[4]{0} conditional(%p, %x, %x), true_computation=%minus, "
    "false_computation=%twice\n}\n";

static const char SCALED[] =
    "HloModule m\n\n"
    "ENTRY %e (a: f8e4m3fn[16,16], b: f8e4m3fn[16,16], s: f32[]) -> f32[1,4] {\n"
    "  %a = f8e4m3fn[16,16]{1,0} parameter(0)\n  %b = f8e4m3fn[16,16]{1,0} parameter(1)\n"
    "  %s = f32[] parameter(2)\n  %k = f32[] constant(1)\n"
    "  %c = (f32[16,16]{1,0}, s8[33554432]{0}) custom-call(%a, %b, %s, %k, %k, %k), "
    "custom_call_target=\"__cublas$lt$matmul$f8\", backend_config={\"gemm_backend_config\":{"
    "\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,\"dot_dimension_numbers\":{"
    "\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"1\"],"
    "\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]},\"precision_config\":{"
    "\"operand_precision\":[\"DEFAULT\",\"DEFAULT\"],\"algorithm\":\"ALG_UNSET\"},"
    "\"epilogue\":\"DEFAULT\",\"damax_output\":false}}\n"
    "  %d = f32[16,16]{1,0} get-tuple-element(%c), index=0\n"
    "  ROOT %o = f32[1,4]{1,0} slice(%d), slice={[0:1], [0:4]}\n}\n";

static void streams_of_other_contexts_are_refused(void **state) {
    (void)state;
    static char stream[64];
    fixture f = open_loop();
    setenv("HLO_STANDIN_CONTEXT", "other", 1);
    misused(run(&f, stream, NULL), "does not belong to the primary context");
    unsetenv("HLO_STANDIN_CONTEXT");
    runs(&f); /* the donated input still exists */
    close_all(&f);
}

static void failures_are_told(void **state) {
    (void)state;
    static const struct {
        const char *call, *why;
    } rows[] = {
        {"cuLaunchKernel", "launch its kernel"},
        {"cuEventRecord", "queue the run"},
        {"cuEventCreate", "queue the run"},
        {"cuStreamGetCtx", "use the stream"},
    };
    cuda_library lib = {0};
    cuda_stream *stream;
    fixture last = open_loop(); /* the stream belongs to the context of this plan */
    assert_int_equal(cuda_library_load(&lib, CUDA_DRIVER, &sink), HLO_OK);
    assert_int_equal(lib.cuStreamCreate(&stream, 1), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f = open_loop();
        setenv("HLO_STANDIN_FAIL_ALL", rows[i].call, 1);
        refused(run(&f, stream, NULL), rows[i].why);
        unsetenv("HLO_STANDIN_FAIL_ALL");
        assert_null(f.out[0]);
        close_all(&f);
    }
    setenv("HLO_STANDIN_FAIL_ALL", "cuMemAlloc", 1);
    assert_int_equal(run(&last, stream, NULL), HLO_OUT_OF_MEMORY);
    unsetenv("HLO_STANDIN_FAIL_ALL");
    assert_non_null(strstr(said, "for output"));
    runs(&last);
    assert_int_equal(lib.cuStreamDestroy(stream), 0);
    close_all(&last);
    cuda_library_unload(&lib);
}

/* A run whose recording fails reports one error, and its recording is not replayed. */
static void failed_recordings_are_not_replayed(void **state) {
    (void)state;
    static const char *const calls[] = {"cuGraphInstantiate", "cuStreamEndCapture",
                                        "cuMemcpyDtoDAsync"};
    static const float twos[] = {2, 2, 2, 2, 2, 2};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fixture f = open_with(NARROW, NULL);
        put(&f, 1, HLO_TYPE_S4, 1, (const int64_t[]){3}, "\1\2\3");
        for (int step = 0; step < 8; step++) {
            const bool failing = step > 0 && step < 4;
            put(&f, 0, HLO_TYPE_F8E4M3FN, 2, dims23,
                step % 2 ? "\x38\x38\x38\x38\x38\x38" : "@@@@@@");
            if (failing) setenv("HLO_STANDIN_FAIL_ALL", calls[i], 1);
            errors = 0;
            const hlo_status status = run(&f, NULL, NULL);
            unsetenv("HLO_STANDIN_FAIL_ALL");
            assert_int_equal(errors, status != HLO_OK);
            assert_true(status == HLO_OK || failing);
            if (status == HLO_OK) reads(f.out[0], step % 2 ? ones : twos, 6);
            for (int o = 0; o < 2; o++) {
                hlo_buffer_free(f.out[o]);
                f.out[o] = NULL;
            }
            hlo_buffer_free(f.in[0]);
            f.in[0] = NULL;
        }
        close_all(&f);
    }
}

/* If setting the pointers of a matmul's descriptor fails, the next run sets them. */
static void scales_are_those_of_the_run(void **state) {
    (void)state;
    static const int64_t dims[] = {16, 16};
    char values[256];
    const float two = 2;
    memset(values, 0x38, sizeof values); /* 1 in f8e4m3fn */
    fixture f = open_with(SCALED, NULL);
    for (size_t i = 0; i < 2; i++) put(&f, i, HLO_TYPE_F8E4M3FN, 2, dims, values);
    put(&f, 2, HLO_TYPE_F32, 0, NULL, &two);
    setenv("HLO_STANDIN_FAIL_ALL", "cublasLtMatmulDescSetAttribute", 1);
    refused(run(&f, NULL, NULL), "is rejected by cuBLASLt: a descriptor");
    unsetenv("HLO_STANDIN_FAIL_ALL");
    runs(&f);
    reads(f.out[0], (const float[]){32, 32, 32, 32}, 4);
    close_all(&f);
}

/* Records a graph with conditional nodes, after a trial of such nodes, and then fails to record the
 * graph for other addresses. */
static void a_branch_fails_for_a_reason(void **state) {
    (void)state;
    fixture f = open_with(EITHER, NULL);
    hlo_buffer *kept[2] = {NULL};
    put(&f, 0, HLO_TYPE_PRED, 0, NULL, "\1");
    put(&f, 1, HLO_TYPE_F32, 1, dims4, numbers);
    for (int step = 0; step < 6; step++) {
        hlo_buffer_free(kept[step % 2]);
        kept[step % 2] = NULL;
        if (step == 3) setenv("HLO_STANDIN_FAIL_ALL", "cuGraphConditionalHandleCreate", 1);
        const hlo_status status = run(&f, NULL, NULL);
        unsetenv("HLO_STANDIN_FAIL_ALL");
        if (step == 3) refused(status, "cannot record a branch: CUDA_ERROR_1");
        if (step != 3) reads(f.out[0], (const float[]){-0.0f, -1, -2, -3}, 4);
        kept[step % 2] = f.out[0];
        f.out[0] = NULL;
    }
    hlo_buffer_free(kept[0]);
    hlo_buffer_free(kept[1]);
    close_all(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_other_contexts_are_refused),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(failed_recordings_are_not_replayed),
        cmocka_unit_test(scales_are_those_of_the_run),
        cmocka_unit_test(a_branch_fails_for_a_reason),
    };
    backend = "cuda";
    unsetenv("HLO_TEST_DEVICE");
    return cmocka_run_group_tests(tests, set_up_all, NULL);
}
