/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the limits of a target: which matmuls can be calls, and the layouts of their operands. */
#include "tests/unit/matmul/matmul_fixture.h"

static const char *check(fixture *f, hlo_matmul m) {
    const char *reason = hlo_matmul_check(&m, f->target, f->cuda, f->scales);
    return reason ? reason : "";
}

static void limits_have_reasons(void **state) {
    fixture *f = *state;
    const hlo_matmul m = f->matmul;
    hlo_matmul x = m;
    assert_string_equal(check(f, m), "");
    f->target = hlo_target_find(80);
    assert_string_equal(check(f, m), "target-without-fp8");
    f->target = hlo_target_find(120);
    f->cuda = 11080;
    assert_string_equal(check(f, m), "cuda-before-12");
    f->cuda = 12030;
    assert_string_equal(check(f, m), "");
    x.epilogue = HLO_EPILOGUE_GELU;
    assert_string_equal(check(f, x), "gelu-before-cuda-12-4");
    f->cuda = 12040;
    assert_string_equal(check(f, x), "");
    x = m, x.a = f->c;
    assert_string_equal(check(f, x), "operand-not-fp8");
    x = m, x.a = m.b, x.a_contracting = m.b_contracting;
    assert_string_equal(check(f, x), "both-operands-e5m2");
    x = m, x.d = array(f, HLO_TYPE_F64, 3, 2, 16, 32);
    assert_string_equal(check(f, x), "type-combination");
    x = m, x.d = array(f, HLO_TYPE_F32, 3, 2, 16, 32), x.c = f->c, x.beta = 1;
    assert_string_equal(check(f, x), "type-combination");
    x = m, x.b = m.a, x.b_contracting = m.a_contracting;
    x.d = array(f, HLO_TYPE_F8E5M2, 3, 2, 16, 16);
    assert_string_equal(check(f, x), "type-combination");
    x = m, x.d = array(f, HLO_TYPE_F32, 3, 2, 16, 32), x.bias = f->bias;
    assert_string_equal(check(f, x), "");
    x = m, x.epilogue = HLO_EPILOGUE_GELU_AUX, x.aux = m.d;
    assert_string_equal(check(f, x), "");
    x.aux = array(f, HLO_TYPE_F32, 3, 2, 16, 32);
    assert_string_equal(check(f, x), "aux-output");
    x = m, x.d_scale = f->scale[3];
    assert_string_equal(check(f, x), "output-scale-not-fp8");
    x = m, x.amax = true;
    assert_string_equal(check(f, x), "amax-not-fp8");
    x = m, x.c_scale = f->scale[2];
    assert_string_equal(check(f, x), "c-scale");
    x = m, x.c = f->c, x.beta = 1, x.bias = f->bias;
    assert_string_equal(check(f, x), "");
    x = m, x.algorithm = "dot_bf16_bf16_f32";
    assert_string_equal(check(f, x), "algorithm-not-fp8");
    x = m, x.a_batch = x.b_batch = hlo_ints_new(f->module, 0, NULL);
    assert_string_equal(check(f, x), "not-one-free-dimension");
    x.a_contracting = hlo_ints_new(f->module, 2, (int64_t[]){0, 2});
    assert_string_equal(check(f, x), "not-one-contracting-dimension");
}

static void the_result_lies_as_it_must(void **state) {
    fixture *f = *state;
    hlo_matmul m = f->matmul;
    int64_t m_minor[] = {1, 2, 0}, batch_minor[] = {0, 2, 1};
    m.d = hlo_shape_with_layout(f->module, HLO_TYPE_BF16, 3, m.d->dims, batch_minor);
    assert_string_equal(check(f, m), "batch-is-minor");
    m.d = hlo_shape_with_layout(f->module, HLO_TYPE_BF16, 3, m.d->dims, m_minor);
    assert_string_equal(check(f, m), "");
    m.bias = f->bias;
    assert_string_equal(check(f, m), "bias-not-along-minor");
}

static bool lies(hlo_matmul m, int sm, bool b) {
    return hlo_matmul_layout_ok(&m, hlo_target_find(sm), b);
}

static void operands_lie_as_the_target_wants(void **state) {
    fixture *f = *state;
    hlo_matmul m = f->matmul;
    assert_true(lies(m, 90, false));
    assert_false(lies(m, 90, true));
    assert_true(lies(m, 100, true));
    const hlo_ints *second = hlo_ints_new(f->module, 1, (int64_t[]){1});
    const hlo_ints *last = hlo_ints_new(f->module, 1, (int64_t[]){2});
    hlo_matmul x = m;
    x.a_batch = second;
    assert_true(lies(x, 90, false));
    x.a_batch = last;
    assert_false(lies(x, 100, false));
    x.a_batch = hlo_ints_new(f->module, 2, (int64_t[]){1, 0});
    assert_false(lies(x, 90, false));
    const int64_t k_minor[] = {1, 2, 0}, batch_minor[] = {0, 2, 1};
    const hlo_shape *b = m.b->shape;
    m.b = parameter(f, hlo_shape_with_layout(f->module, b->type, 3, b->dims, k_minor));
    assert_false(lies(m, 90, true));
    assert_true(lies(m, 100, true));
    m.b = parameter(f, hlo_shape_with_layout(f->module, b->type, 3, b->dims, batch_minor));
    assert_false(lies(m, 100, true));
}

static void epilogues_add_up(void **state) {
    (void)state;
    assert_int_equal(hlo_epilogue_add(HLO_EPILOGUE_DEFAULT, HLO_EPILOGUE_BIAS), HLO_EPILOGUE_BIAS);
#define HLO_ACTIVATION(id, homogeneous, never_negative)                                            \
    assert_int_equal(hlo_epilogues[HLO_EPILOGUE_##id].activation, HLO_ACTIVATION_##id);            \
    assert_int_equal(hlo_epilogue_add(HLO_EPILOGUE_BIAS, HLO_EPILOGUE_##id),                       \
                     HLO_EPILOGUE_BIAS_##id);
#include "matmul/table/activation.def"
#undef HLO_ACTIVATION
    assert_int_equal(hlo_epilogue_add(HLO_EPILOGUE_RELU, HLO_EPILOGUE_BIAS), HLO_EPILOGUE_COUNT);
    assert_int_equal(hlo_epilogue_add(HLO_EPILOGUE_RELU, HLO_EPILOGUE_GELU), HLO_EPILOGUE_COUNT);
    assert_int_equal(hlo_epilogue_add(HLO_EPILOGUE_BIAS, HLO_EPILOGUE_BIAS), HLO_EPILOGUE_COUNT);
    assert_int_equal(hlo_epilogue_find("BIAS_GELU_AUX"), HLO_EPILOGUE_BIAS_GELU_AUX);
    assert_int_equal(hlo_epilogue_find("SWISH"), HLO_EPILOGUE_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limits_have_reasons, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_result_lies_as_it_must, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operands_lie_as_the_target_wants, set_up, tear_down),
        cmocka_unit_test(epilogues_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
