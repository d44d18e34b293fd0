/* SPDX-License-Identifier: Apache-2.0 */
/* The preflight reports every row of preflight.def by name, before any library call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "runtime/cuda/cublaslt/matmul.h"

/* A batch of two that has all features of an FP8 call with an auxiliary result. */
static const char text[] =
    "HloModule calls\n"
    "ENTRY %main (x: f8e4m3fn[2,32,64], w: f8e4m3fn[2,48,64], s: f32[], b: bf16[48]) -> "
    "(bf16[2,32,48], bf16[2,32,48], s8[4]) {\n"
    "  %x = f8e4m3fn[2,32,64]{2,1,0} parameter(0)\n"
    "  %w = f8e4m3fn[2,48,64]{2,1,0} parameter(1)\n"
    "  %s = f32[] parameter(2)\n"
    "  %b = bf16[48]{0} parameter(3)\n"
    "  ROOT %call = (bf16[2,32,48]{2,1,0}, bf16[2,32,48]{2,1,0}, s8[4]{0}) custom-call(%x, %w, %s, "
    "%s, %b), custom_call_target=\"__cublas$lt$matmul$f8\", "
    "backend_config={\"gemm_backend_config\":"
    "{\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,\"dot_dimension_numbers\":{"
    "\"lhs_contracting_dimensions\":[\"2\"],\"rhs_contracting_dimensions\":[\"2\"],"
    "\"lhs_batch_dimensions\":[\"0\"],\"rhs_batch_dimensions\":[\"0\"]},"
    "\"epilogue\":\"BIAS_GELU_AUX\",\"damax_output\":false}}\n"
    "}\n";

static cuda_matmul_options options = {.cuda = 13010, .workspace = 1 << 20, .alignment = 256};

typedef struct fixture {
    jmp_buf recover;
    hlo_module *module;
    hlo_arena *arena;
    cuda_matmul matmul;
} fixture;

static int set_up(void **state) {
    static fixture f;
    const char *why;
    if (hlo_module_parse(text, sizeof text - 1, "calls", NULL, &f.module) != HLO_OK) return -1;
    f.arena = hlo_arena_new(&f.recover);
    if (!f.arena || setjmp(f.recover)) return -1;
    *state = &f;
    options.target = hlo_target_find(90);
    return cuda_matmul_plan(f.module->entry->root, &options, f.arena, &f.matmul, &why) ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    hlo_arena_free(f->arena);
    hlo_module_free(f->module);
    return 0;
}

static void change_setting(cuda_matmul *matmul, int attribute, int64_t value) {
    for (uint32_t i = 0; i < matmul->setting_count; i++)
        if (matmul->settings[i].attribute == attribute) matmul->settings[i].value = value;
}

static void refused(fixture *f, const cuda_matmul *matmul, const char *name) {
    const char *why = cuda_matmul_preflight(matmul, &options, f->arena);
    if (!why) fail_msg("%s: taken", name);
    assert_string_equal(why, name);
}

static void test_taken(void **state) {
    fixture *f = *state;
    assert_null(cuda_matmul_preflight(&f->matmul, &options, f->arena));
}

static void test_sizes(void **state) {
    fixture *f = *state;
    cuda_matmul m = f->matmul;
    m.m = INT64_C(1) << 31;
    refused(f, &m, "m-too-large (2147483648)");
    m = f->matmul;
    m.n = INT64_C(1) << 31;
    refused(f, &m, "n-too-large (2147483648)");
    m = f->matmul;
    m.k = INT64_C(1) << 31;
    refused(f, &m, "k-too-large (2147483648)");
    m = f->matmul;
    m.matrices[LT_PART_A].ld = INT64_C(1) << 31;
    refused(f, &m, "leading-dimension-too-large (2147483648)");
    m = f->matmul;
    m.m = 40;
    refused(f, &m, "m-not-multiple-of-16 (40)");
    m = f->matmul;
    m.k = 72;
    refused(f, &m, "k-not-multiple-of-16 (72)");
    m = f->matmul;
    m.n = 31; /* the library's n may have any size */
    assert_null(cuda_matmul_preflight(&m, &options, f->arena));
}

static void test_memory(void **state) {
    fixture *f = *state;
    static const char *const names[] = {
        "a-leading-dimension-not-16-bytes (65)", "b-leading-dimension-not-16-bytes (65)",
        "c-leading-dimension-not-16-bytes (49)", "d-leading-dimension-not-16-bytes (49)"};
    for (int part = LT_PART_A; part <= LT_PART_D; part++) {
        cuda_matmul m = f->matmul;
        m.matrices[part].ld++;
        refused(f, &m, names[part]);
    }
    cuda_matmul m = f->matmul;
    m.matrices[LT_PART_B].stride = 2056;
    refused(f, &m, "batch-stride-not-16-bytes (2056)");
    m = f->matmul;
    m.alignment = 8;
    refused(f, &m, "memory-not-aligned-to-16 (8)");
    m.fp8 = false;
    refused(f, &m, "bias-not-aligned (8)");
}

static void test_transposition(void **state) {
    fixture *f = *state;
    cuda_matmul m = f->matmul;
    change_setting(&m, LT_DESC_TRANSA, LT_OPERATION_N);
    refused(f, &m, "transposed-not-normal (90)");
    cuda_matmul_options free_options = options;
    free_options.target = hlo_target_find(100);
    assert_null(cuda_matmul_preflight(&m, &free_options, f->arena));
    m.fp8 = false;
    assert_null(cuda_matmul_preflight(&m, &options, f->arena));
}

/* 16 bytes are 32 4-bit elements. With block scales, operands must be contiguous along k, also on
 * sm_100. */
static void test_fp4(void **state) {
    fixture *f = *state;
    cuda_matmul m = f->matmul;
    m.matrices[LT_PART_A].type = m.matrices[LT_PART_B].type = LT_TYPE_4F_E2M1;
    assert_null(cuda_matmul_preflight(&m, &options, f->arena));
    m.k = 48;
    refused(f, &m, "k-not-multiple-of-32 (48)");
    m.k = 64;
    m.matrices[LT_PART_B].ld = 80;
    refused(f, &m, "b-leading-dimension-not-16-bytes (80)");
    m.matrices[LT_PART_B].ld = 64;
    m.matrices[LT_PART_B].stride = 2064;
    refused(f, &m, "batch-stride-not-16-bytes (2064)");
    m = f->matmul;
    change_setting(&m, LT_DESC_TRANSA, LT_OPERATION_N);
    m.settings[m.setting_count++] = (lt_setting){LT_DESC_A_SCALE_MODE, 1};
    m.batch = 1;
    cuda_matmul_options other = options;
    other.target = hlo_target_find(100);
    assert_string_equal(cuda_matmul_preflight(&m, &other, f->arena), "transposed-not-normal (100)");
}

static void test_no_epilogue(void **state) {
    fixture *f = *state;
    cuda_matmul m = f->matmul;
    change_setting(&m, LT_DESC_EPILOGUE, 0);
    refused(f, &m, "no-such-epilogue (0)");
}

static void test_aux(void **state) {
    fixture *f = *state;
    cuda_matmul m = f->matmul;
    change_setting(&m, LT_DESC_EPILOGUE_AUX_LD, 52);
    refused(f, &m, "aux-leading-dimension-not-multiple-of-8 (52)");
    change_setting(&m, LT_DESC_EPILOGUE_AUX_LD, 40);
    refused(f, &m, "aux-leading-dimension-too-small (40)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_transposition),
        cmocka_unit_test(test_fp4),    cmocka_unit_test(test_no_epilogue),
        cmocka_unit_test(test_aux),
    };
    return cmocka_run_group_tests_name("cuda matmul", tests, set_up, tear_down);
}
