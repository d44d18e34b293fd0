/* SPDX-License-Identifier: Apache-2.0 */
/* Tests FP8 matmul calls: the struct is converted to an instruction and back, in both operand
 * forms, and invalid calls are rejected. */
#include <math.h>
#include <stdlib.h>

#include "matmul/json.h"
#include "tests/unit/matmul/matmul_fixture.h"

static hlo_instruction *encode(fixture *f, const hlo_matmul *m) {
    return hlo_matmul_encode(m, f->target, f->scales, f->comp, NULL, f->matmul.a);
}

static hlo_matmul decode(const hlo_instruction *call) {
    hlo_matmul m = {0};
    const char *why = NULL;
    if (hlo_matmul_decode(call, &m, &why)) fail_msg("%s", why);
    return m;
}

static const char *refusal(const hlo_instruction *call) {
    hlo_matmul m;
    const char *why = NULL;
    assert_int_equal(hlo_matmul_decode(call, &m, &why), HLO_INVALID_INPUT);
    return why;
}

static void assert_ints_equal(const hlo_ints *a, const hlo_ints *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->v, b->v, a->count * sizeof *a->v);
}

static void assert_same(const hlo_matmul *x, const hlo_matmul *y) {
    assert_ptr_equal(x->a, y->a);
    assert_ptr_equal(x->b, y->b);
    assert_ptr_equal(x->c, y->c);
    assert_ptr_equal(x->a_scale, y->a_scale);
    assert_ptr_equal(x->b_scale, y->b_scale);
    assert_ptr_equal(x->c_scale, y->c_scale);
    assert_ptr_equal(x->d_scale, y->d_scale);
    assert_ptr_equal(x->bias, y->bias);
    assert_true(x->alpha == y->alpha && x->beta == y->beta);
    assert_ints_equal(x->a_batch, y->a_batch);
    assert_ints_equal(x->a_contracting, y->a_contracting);
    assert_ints_equal(x->b_batch, y->b_batch);
    assert_ints_equal(x->b_contracting, y->b_contracting);
    assert_int_equal(x->epilogue, y->epilogue);
    assert_int_equal(x->amax, y->amax);
    assert_ptr_equal(x->d, y->d);
    assert_ptr_equal(x->aux, y->aux);
    assert_string_equal(x->precision ? x->precision : "", y->precision ? y->precision : "");
    assert_string_equal(x->algorithm ? x->algorithm : "", y->algorithm ? y->algorithm : "");
}

/* The bits of `choice` select the optional parts of the call. */
static hlo_matmul choose(fixture *f, hlo_epilogue epilogue, unsigned choice, bool all) {
    hlo_matmul m = f->matmul;
    m.epilogue = epilogue;
    if (hlo_epilogues[epilogue].bias) m.bias = f->bias;
    if (hlo_epilogues[epilogue].aux) m.aux = m.d;
    if (choice & 1) m.c = f->c, m.beta = -0.5;
    if (choice & 2) m.a_scale = f->scale[0];
    if (choice & 4) m.b_scale = f->scale[1];
    if (choice & 8) m.d = hlo_shape_retype(f->module, m.d, HLO_TYPE_F8E4M3FN);
    if (choice & 16 && choice & 8) m.d_scale = f->scale[3];
    if (choice & 32) m.amax = true;
    if (choice & 64) m.precision = "{highest,default}", m.algorithm = "dot_any_f8_any_f8_f32";
    if (choice & 1 && all) m.c_scale = f->scale[2];
    return m;
}

static void every_form_comes_back(void **state) {
    fixture *f = *state;
    for (int form = 0; form < 2; form++) {
        f->scales = form ? HLO_SCALES_USED : HLO_SCALES_ALL;
        for (int epilogue = 0; epilogue < HLO_EPILOGUE_COUNT; epilogue++)
            for (unsigned choice = 0; choice < 128; choice++) {
                hlo_matmul before = choose(f, (hlo_epilogue)epilogue, choice, !form);
                hlo_instruction *call = encode(f, &before);
                hlo_matmul after = decode(call);
                assert_same(&before, &after);
                uint32_t c = before.c != NULL, bias = before.bias != NULL;
                uint32_t d_fp8 = hlo_type_is_fp8(before.d->type);
                assert_int_equal(call->operand_count, 2 + c + bias + (form ? 2 + d_fp8 : 4));
                assert_int_equal(call->shape->rank, 2u + before.amax + (before.aux != NULL));
            }
    }
    uint32_t constants = 0;
    for (hlo_instruction *i = f->comp->first; i; i = i->next) constants += i->op == HLO_OP_CONSTANT;
    assert_int_equal(constants, 1);
}

static void operands_stand_in_order(void **state) {
    fixture *f = *state;
    hlo_matmul m = choose(f, HLO_EPILOGUE_BIAS, 31, true);
    hlo_instruction *all = encode(f, &m);
    hlo_instruction *want[] = {m.a, m.b, m.c, m.a_scale, m.b_scale, m.c_scale, m.d_scale, m.bias};
    for (uint32_t i = 0; i < 8; i++) assert_ptr_equal(hlo_instr_operand(all, i), want[i]);
    f->scales = HLO_SCALES_USED;
    hlo_instruction *used = encode(f, &m);
    hlo_instruction *less[] = {m.a, m.b, m.c, m.a_scale, m.b_scale, m.bias, m.d_scale};
    assert_int_equal(used->operand_count, 7);
    for (uint32_t i = 0; i < 7; i++) assert_ptr_equal(hlo_instr_operand(used, i), less[i]);
}

/* XLA's call for a plain fp8 matmul has two scales of 1 and no output scale. */
static void an_output_scale_may_be_absent(void **state) {
    fixture *f = *state;
    f->scales = HLO_SCALES_USED;
    hlo_matmul m = choose(f, HLO_EPILOGUE_DEFAULT, 8, false);
    hlo_instruction *full = encode(f, &m), *operands[4];
    for (uint32_t i = 0; i < 4; i++) operands[i] = hlo_instr_operand(full, i);
    hlo_instruction *call =
        hlo_instr_new(f->comp, NULL, HLO_OP_CUSTOM_CALL, full->shape, 4, operands, NULL);
    hlo_instr_copy_attrs(call, full);
    hlo_matmul read = decode(call);
    assert_same(&read, &m);
    hlo_instr_set_operand(call, 3, f->scale[1]);
    assert_string_equal(refusal(call), "an fp8 result requires an output scale");
}

static void config_is_golden(void **state) {
    fixture *f = *state;
    hlo_matmul m = choose(f, HLO_EPILOGUE_RELU, 32 + 64 + 8, true);
    assert_string_equal(hlo_instr_str(encode(f, &m), HLO_ATTR_BACKEND_CONFIG),
                        "{\"gemm_backend_config\":{\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,"
                        "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"2\"],"
                        "\"rhs_contracting_dimensions\":[\"1\"],\"lhs_batch_dimensions\":[\"0\"],"
                        "\"rhs_batch_dimensions\":[\"0\"]},"
                        "\"precision_config\":{\"operand_precision\":[\"HIGHEST\",\"DEFAULT\"],"
                        "\"algorithm\":\"ALG_DOT_ANY_F8_ANY_F8_F32\"},\"epilogue\":\"RELU\","
                        "\"damax_output\":true,\"lhs_stride\":\"1024\",\"rhs_stride\":\"2048\","
                        "\"grad_x\":false,\"grad_y\":false}}");
    m = f->matmul;
    m.alpha = 0.25;
    f->scales = HLO_SCALES_USED;
    assert_string_equal(hlo_instr_str(encode(f, &m), HLO_ATTR_BACKEND_CONFIG),
                        "{\"gemm_backend_config\":{\"alpha_real\":0.25,\"alpha_imag\":0,\"beta\":0,"
                        "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"2\"],"
                        "\"rhs_contracting_dimensions\":[\"1\"],\"lhs_batch_dimensions\":[\"0\"],"
                        "\"rhs_batch_dimensions\":[\"0\"]},"
                        "\"precision_config\":{\"operand_precision\":[\"DEFAULT\",\"DEFAULT\"],"
                        "\"algorithm\":\"ALG_UNSET\"},\"epilogue\":\"DEFAULT\","
                        "\"damax_output\":false,\"lhs_stride\":\"1024\",\"rhs_stride\":\"2048\","
                        "\"grad_x\":false,\"grad_y\":false,\"scale_mode\":1}}");
}

/* A matmul of 16 by 320 and 320 by 32: three ranges of 128 along k, the last one shorter. */
static hlo_matmul unbatched(fixture *f) {
    hlo_matmul m = f->matmul;
    m.a = parameter(f, array(f, HLO_TYPE_F8E4M3FN, 2, 16, 320, 0));
    m.b = parameter(f, array(f, HLO_TYPE_F8E4M3FN, 2, 32, 320, 0));
    m.a_batch = m.b_batch = hlo_ints_new(f->module, 0, NULL);
    m.a_contracting = m.b_contracting = hlo_ints_new(f->module, 1, (int64_t[]){1});
    m.d = array(f, HLO_TYPE_BF16, 2, 16, 32, 0);
    return m;
}

static void set_scales(fixture *f, hlo_matmul *m, hlo_scale_mode a, hlo_scale_mode b) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    int64_t dims[3];
    uint32_t rank = hlo_scale_dims(a, size.batch, size.m, size.k, dims);
    m->a_mode = a;
    m->a_scale = parameter(f, hlo_shape_array(f->module, hlo_scale_modes[a].type, rank, dims));
    rank = hlo_scale_dims(b, size.batch, size.n, size.k, dims);
    m->b_mode = b;
    m->b_scale = parameter(f, hlo_shape_array(f->module, hlo_scale_modes[b].type, rank, dims));
    const hlo_type type = a == HLO_SCALE_VEC16 ? HLO_TYPE_F4E2M1FN : HLO_TYPE_F8E4M3FN;
    m->a = parameter(f, hlo_shape_retype(f->module, m->a->shape, type));
    m->b = parameter(f, hlo_shape_retype(f->module, m->b->shape, type));
}

static void every_scale_mode_comes_back(void **state) {
    fixture *f = *state;
    hlo_matmul m = unbatched(f);
    for (int form = 0; form < 2; form++)
        for (int a = 0; a < HLO_SCALE_MODE_COUNT; a++)
            for (int b = 0; b < HLO_SCALE_MODE_COUNT; b++) {
                f->scales = form ? HLO_SCALES_USED : HLO_SCALES_ALL;
                if ((hlo_scale_modes[a].tiled || hlo_scale_modes[b].tiled) && a != b) continue;
                set_scales(f, &m, (hlo_scale_mode)a, (hlo_scale_mode)b);
                hlo_matmul read = decode(encode(f, &m));
                assert_same(&m, &read);
                assert_int_equal(read.a_mode, a);
                assert_int_equal(read.b_mode, b);
            }
    set_scales(f, &m, HLO_SCALE_VEC128, HLO_SCALE_BLK128);
    assert_non_null(strstr(hlo_instr_str(encode(f, &m), HLO_ATTR_BACKEND_CONFIG),
                           "\"grad_y\":false,\"lhs_scale_mode\":\"VEC128_32F\","
                           "\"rhs_scale_mode\":\"BLK128x128_32F\"}}"));
}

/* The layouts of scales in the cuBLAS manual, row-major: [size], [k/128, size], [size/128, k/128 up
 * to 4], and tiles of 128 by 4, whose byte (o, i) is o % 32 * 16 + o % 128 / 32 * 4 + i % 4. */
static void scales_lie_as_cublaslt_wants(void **state) {
    (void)state;
    static const struct {
        hlo_scale_mode mode;
        uint32_t rank;
        int64_t dims[2],
            index; /* index of the scale of element 300 of row 200, of 256 rows of 640 */
    } cases[] = {
        {HLO_SCALE_SCALAR, 0, {0}, 0},
        {HLO_SCALE_OUTER_VEC, 1, {256}, 200},
        {HLO_SCALE_VEC128, 2, {5, 256}, 2 * 256 + 200},
        {HLO_SCALE_BLK128, 2, {2, 8}, 1 * 8 + 2},
        {HLO_SCALE_VEC32, 2, {256, 20}, (1 * 5 + 2) * 512 + 8 * 16 + 2 * 4 + 1},
        {HLO_SCALE_VEC16, 2, {256, 40}, (1 * 10 + 4) * 512 + 8 * 16 + 2 * 4 + 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t dims[3];
        uint32_t rank = hlo_scale_dims(cases[i].mode, 1, 256, 640, dims);
        assert_int_equal(rank, cases[i].rank);
        for (uint32_t d = 0; d < rank; d++) assert_int_equal(dims[d], cases[i].dims[d]);
        assert_int_equal(hlo_scale_index(cases[i].mode, 256, 640, 200, 300), cases[i].index);
    }
    /* The scale of row 200 in the third of three matrices of 300 rows. Each matrix has whole tiles:
     * 3 by 128 rows. */
    int64_t dims[3];
    assert_int_equal(hlo_scale_dims(HLO_SCALE_VEC32, 3, 300, 640, dims), 3);
    assert_int_equal(dims[0], 3);
    assert_int_equal(dims[1], 384);
    assert_int_equal(dims[2], 20);
    assert_int_equal(hlo_scale_index(HLO_SCALE_VEC32, 300, 640, 800, 300),
                     2 * 384 * 20 + (1 * 5 + 2) * 512 + 8 * 16 + 2 * 4 + 1);
    assert_int_equal(hlo_scale_mode_find("BLK128x128_32F"), HLO_SCALE_BLK128);
    assert_int_equal(hlo_scale_mode_find("VEC128"), HLO_SCALE_MODE_COUNT);
}

static void wrong_scales_are_refused(void **state) {
    fixture *f = *state;
    hlo_matmul m = unbatched(f);
    set_scales(f, &m, HLO_SCALE_VEC32, HLO_SCALE_VEC128);
    assert_string_equal(refusal(encode(f, &m)),
                        "tiled scales require the same mode for both operands");
    set_scales(f, &m, HLO_SCALE_VEC16, HLO_SCALE_VEC16);
    m.a = parameter(f, hlo_shape_retype(f->module, m.a->shape, HLO_TYPE_F8E4M3FN));
    assert_string_equal(refusal(encode(f, &m)), "a or b is not f4e2m1fn");
    set_scales(f, &m, HLO_SCALE_VEC32, HLO_SCALE_VEC32);
    hlo_instruction *other = encode(f, &m);
    hlo_instr_set_str(other, HLO_ATTR_CUSTOM_CALL_TARGET, hlo_matmul_fp8_target);
    assert_string_equal(refusal(other), "the scale modes do not match the call target");
    set_scales(f, &m, HLO_SCALE_OUTER_VEC, HLO_SCALE_OUTER_VEC);
    m.a_scale = m.b_scale;
    assert_string_equal(refusal(encode(f, &m)),
                        "a scale does not have the shape or type of its scale mode");
    m.a_scale = f->scale[0];
    assert_string_equal(refusal(encode(f, &m)),
                        "a scale does not have the shape or type of its scale mode");
    m.a_scale = parameter(f, array(f, HLO_TYPE_BF16, 1, 16, 0, 0));
    assert_string_equal(refusal(encode(f, &m)),
                        "a scale does not have the shape or type of its scale mode");
    set_scales(f, &m, HLO_SCALE_VEC128, HLO_SCALE_VEC128);
    int64_t column_major[] = {0, 1};
    m.a_scale = parameter(
        f, hlo_shape_with_layout(f->module, HLO_TYPE_F32, 2, m.a_scale->shape->dims, column_major));
    assert_string_equal(refusal(encode(f, &m)),
                        "a scale does not have the shape or type of its scale mode");
    m = f->matmul;
    set_scales(f, &m, HLO_SCALE_OUTER_VEC, HLO_SCALE_OUTER_VEC);
    assert_string_equal(refusal(encode(f, &m)), "non-scalar scales are not supported for batches");
}

static void results_are_taken_apart(void **state) {
    fixture *f = *state;
    hlo_matmul m = choose(f, HLO_EPILOGUE_GELU_AUX, 32, true);
    hlo_instruction *call = encode(f, &m);
    char text[128];
    hlo_shape_format(call->shape, true, text, sizeof text);
    assert_string_equal(text, "(bf16[2,16,32]{2,1,0}, bf16[2,16,32]{2,1,0}, f32[], "
                              "s8[33554432]{0})");
    assert_int_equal(hlo_matmul_aux_index(&m), 1);
    assert_int_equal(hlo_matmul_amax_index(&m), 2);
    hlo_instruction *d = hlo_matmul_result(call, 0), *amax = hlo_matmul_result(call, 2);
    assert_ptr_equal(d->shape, m.d);
    assert_ptr_equal(amax->shape, f->scale[0]->shape);
    assert_ptr_equal(hlo_matmul_result(call, 0), d);
    assert_int_equal(call->use_count, 2);
    m = f->matmul;
    assert_int_equal(hlo_matmul_aux_index(&m), -1);
    assert_int_equal(hlo_matmul_amax_index(&m), -1);
    f->target = hlo_target_find(89);
    assert_int_equal(encode(f, &m)->shape->elements[1]->dims[0], 4194304);
}

static void a_dot_is_read(void **state) {
    fixture *f = *state;
    hlo_instruction *operands[] = {f->matmul.a, f->matmul.b};
    hlo_instruction *dot = hlo_instr_new(f->comp, NULL, HLO_OP_DOT, f->matmul.d, 2, operands, NULL);
    hlo_instr_set_ints(dot, HLO_ATTR_LHS_BATCH_DIMS, 1, (int64_t[]){0});
    hlo_instr_set_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS, 1, (int64_t[]){2});
    hlo_instr_set_ints(dot, HLO_ATTR_RHS_BATCH_DIMS, 1, (int64_t[]){0});
    hlo_instr_set_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS, 1, (int64_t[]){1});
    hlo_instr_set_str(dot, HLO_ATTR_OPERAND_PRECISION, "{default,default}");
    hlo_matmul m;
    hlo_matmul_from_dot(dot, &m);
    assert_same(&m, &f->matmul);
    hlo_matmul_sizes size = hlo_matmul_extents(&m);
    assert_int_equal(size.batch, 2);
    assert_int_equal(size.m, 16);
    assert_int_equal(size.n, 32);
    assert_int_equal(size.k, 64);
}

static void a_wide_call_is_read(void **state) {
    fixture *f = *state;
    hlo_matmul m = f->matmul;
    hlo_instruction *call = encode(f, &m);
    hlo_instruction *operands[] = {m.a, m.b, f->c, f->bias};
    hlo_instruction *wide =
        hlo_instr_new(f->comp, NULL, HLO_OP_CUSTOM_CALL, call->shape, 4, operands, NULL);
    hlo_instr_set_str(wide, HLO_ATTR_CUSTOM_CALL_TARGET, "__cublas$lt$matmul");
    hlo_instr_set_str(
        wide, HLO_ATTR_BACKEND_CONFIG,
        "{\"gemm_backend_config\":{\"alpha_real\":2.5,\"beta\":1,\"epilogue\":\"BIAS\","
        "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[2],"
        "\"rhs_contracting_dimensions\":[\"1\"],\"lhs_batch_dimensions\":[0],"
        "\"rhs_batch_dimensions\":[\"0\"]}},\"device_type\":\"DEVICE_TYPE_INVALID\"}");
    assert_true(hlo_matmul_is_wide_call(wide) && !hlo_matmul_is_call(wide));
    assert_true(hlo_matmul_is_call(call) && !hlo_matmul_is_wide_call(call));
    hlo_matmul read = decode(wide);
    assert_true(read.wide && read.alpha == 2.5 && read.beta == 1);
    assert_ptr_equal(read.c, f->c);
    assert_ptr_equal(read.bias, f->bias);
    assert_int_equal(read.epilogue, HLO_EPILOGUE_BIAS);
}

/* Creates the first call of the fixture with `from` in its config replaced by `to`. */
static hlo_instruction *with_config(fixture *f, const char *from, const char *to) {
    hlo_instruction *call = encode(f, &f->matmul);
    char text[1024];
    const char *config = hlo_instr_str(call, HLO_ATTR_BACKEND_CONFIG);
    const char *at = strstr(config, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    hlo_instr_set_str(call, HLO_ATTR_BACKEND_CONFIG, text);
    return call;
}

static const char *refusal_with(fixture *f, const char *from, const char *to) {
    return refusal(with_config(f, from, to));
}

static void wrong_configs_are_refused(void **state) {
    fixture *f = *state;
    static const char *const cases[][3] = {
        {"{\"gemm", "{gemm", "backend_config is not a JSON object"},
        {"{\"gemm", "[\"gemm", "backend_config is not a JSON object"},
        {"}}", "}", "backend_config is not a JSON object"},
        {"gemm_backend", "conv_backend", "backend_config lacks gemm_backend_config"},
        {"\"alpha_real\":1", "\"alpha_real\":\"inf\"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":[1]", "alpha or beta is not a number"},
        {"\"alpha_imag\":0", "\"alpha_imag\":0.5", "alpha must be real"},
        {"dot_dimension", "dim_dot", "dot_dimension_numbers is missing"},
        {"[\"2\"]", "[\"2x\"]", "dot_dimension_numbers has a value that is not a list of integers"},
        {"[\"2\"]", "[\"99999999999999999999\"]",
         "dot_dimension_numbers has a value that is not a list of integers"},
        {"[\"2\"]", "\"2\"", "dot_dimension_numbers has a value that is not a list of integers"},
        {"[\"2\"]", "[\"3\"]", "the dimension numbers are invalid for the operands"},
        {"[\"2\"]", "[\"-1\"]", "the dimension numbers are invalid for the operands"},
        {"[\"2\"]", "[\"0\"]", "the dimension numbers are invalid for the operands"},
        {"[\"2\"]", "[\"1\"]", "the contracting dimensions of the operands have different sizes"},
        {"[\"2\"]", "[]", "the contracting dimensions of the operands have different sizes"},
        {"lhs_batch_dimensions\":[\"0\"]", "lhs_batch_dimensions\":[]",
         "the batch dimensions of the operands have different sizes"},
        {"DEFAULT\",\"damax", "TANH\",\"damax", "unknown epilogue"},
        {"DEFAULT\",\"damax", "GELU_AXU\",\"damax", "unknown epilogue; did you mean 'GELU_AUX'?"},
        {"\"DEFAULT\",\"damax", "5,\"damax", "epilogue is not a string"},
        {"DEFAULT\",\"damax", "BIAS\",\"damax",
         "the number of operands matches neither form of the call"},
        {"DEFAULT\",\"damax", "GELU_AUX\",\"damax",
         "the auxiliary output and the result have different dimensions"},
        {"damax_output\":false", "damax_output\":true", "the amax is not f32[]"},
        {"damax_output\":false", "damax_output\":\"no\"", "damax_output is not a boolean"},
        {"\"grad_x\"", "\"lhs_scale_mode\":\"OUTER_VEC\",\"grad_x\"", "unknown scale mode"},
        {"\"grad_x\"", "\"rhs_scale_mode\":3,\"grad_x\"", "unknown scale mode"},
        {"\"beta\":0", "\"beta\":1", "c and the result have different dimensions"},
        {"ALG_UNSET", "ALG_DOT_F9", "unknown algorithm"},
        {"ALG_UNSET", "UNSET", "unknown algorithm"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "[\"DEF AULT\"]",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "[1]",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(refusal_with(f, cases[i][0], cases[i][1]), cases[i][2]);
}

/* Tests numbers and flags in each form that a config may contain. */
static void configs_have_several_forms(void **state) {
    fixture *f = *state;
    static const struct {
        const char *from, *to;
        double alpha;
        const char *precision, *algorithm;
    } cases[] = {
        {"\"alpha_real\":1", "\"alpha_real\":-2.5e1", -25, NULL, NULL},
        {"\"alpha_real\":1", "\"alpha_real\":\"-2.5e1\"", -25, NULL, NULL},
        {"\"alpha_real\":1", "\"alpha_real\":\"0.5\"", 0.5, NULL, NULL},
        {"\"alpha_real\":1", "\"alpha_real\":\"-Infinity\"", -INFINITY, NULL, NULL},
        {"\"alpha_real\":1", "\"alpha_real\":\"Infinity\"", INFINITY, NULL, NULL},
        {"\"alpha_imag\":0", "\"alpha_imag\":\"0\"", 1, NULL, NULL},
        {"[\"2\"]", "[2]", 1, NULL, NULL},
        {"[\"DEFAULT\",\"DEFAULT\"]", "[\"HIGHEST\"]", 1, "{highest,default}", NULL},
        {"[\"DEFAULT\",\"DEFAULT\"]", "\"HIGH,HIGHEST\"", 1, "{high,highest}", NULL},
        {"[\"DEFAULT\",\"DEFAULT\"]", "\"HIGH\"", 1, "{high,default}", NULL},
        {"[\"DEFAULT\",\"DEFAULT\"]", "[]", 1, NULL, NULL},
        {"ALG_UNSET", "ALG_DOT_ANY_F8_ANY_F8_F32", 1, NULL, "dot_any_f8_any_f8_f32"},
    };
    static const char *const refused[][3] = {
        {"\"alpha_real\":1", "\"alpha_real\":\"0x1\"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":\"1 \"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":\" 1\"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":\"-\"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":\".5\"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":\"nan\"", "alpha or beta is not a number"},
        {"\"alpha_real\":1", "\"alpha_real\":true", "alpha or beta is not a number"},
        {"\"beta\":0", "\"beta\":{}", "alpha or beta is not a number"},
        {"\"alpha_imag\":0", "\"alpha_imag\":\"x\"", "alpha or beta is not a number"},
        {"[\"2\"]", "[\"\"]", "dot_dimension_numbers has a value that is not a list of integers"},
        {"[\"2\"]", "[2.0]", "dot_dimension_numbers has a value that is not a list of integers"},
        {"[\"2\"]", "[\"+2\"]", "dot_dimension_numbers has a value that is not a list of integers"},
        {"[\"2\"]", "{}", "dot_dimension_numbers has a value that is not a list of integers"},
        {"\"precision_config\":{", "\"precision_config\":3,\"unread\":{",
         "precision_config is not an object"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "[\"HIGH\",\"HIGH\",\"HIGH\"]",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "\"HIGH,HIGH,HIGH\"",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "{}",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "\"\"",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
        {"[\"DEFAULT\",\"DEFAULT\"]", "[\"HIG\"]",
         "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST"},
        {"\"ALG_UNSET\"", "5", "unknown algorithm"},
        {"ALG_UNSET", "ALG_", "unknown algorithm"},
        {"{\"gemm_backend_config\":{", "{\"gemm_backend_config\":[],\"unread\":{",
         "backend_config lacks gemm_backend_config"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hlo_instruction *call = with_config(f, cases[i].from, cases[i].to);
        const hlo_matmul read = decode(call);
        assert_true(read.alpha == cases[i].alpha);
        assert_int_equal(read.precision != NULL, cases[i].precision != NULL);
        if (read.precision) assert_string_equal(read.precision, cases[i].precision);
        assert_int_equal(read.algorithm != NULL, cases[i].algorithm != NULL);
        if (read.algorithm) assert_string_equal(read.algorithm, cases[i].algorithm);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_string_equal(refusal_with(f, refused[i][0], refused[i][1]), refused[i][2]);
}

/* Parses dictionaries as MLIR prints them. Each case has the equivalent JSON, or the error. */
static void dictionaries_are_read(void **state) {
    (void)state;
#define NONE "backend_config is not a dictionary of strings, flags, numbers and arrays of integers"
#define VALUE "an attribute in backend_config is not a string, flag, number or array of integers"
    static const char *const cases[][2] = {
        {"{}", "{}"},
        {" { } ", "{}"},
        {"{a = 1 : i64}", "{\"a\":1}"},
        {"{ a=-1:i64 , _b.c$1 = true, \"d e\" = false }",
         "{\"a\":-1,\"_b.c$1\":true,\"d e\":false}"},
        {"{a = 5}", "{\"a\":5}"},
        {"{a = 1.5 : f64}", "{\"a\":1.5}"},
        {"{a = -2.500000e-01 : f64}", "{\"a\":-0.25}"},
        {"{a = 0x3FF0000000000000 : f64}", "{\"a\":1.0}"},
        {"{a = \"\"}", "{\"a\":\"\"}"},
        {"{a = \"x\\22y\\5C\\\\\"}", "{\"a\":\"x\\\"y\\\\\\\\\"}"},
        {"{a = \"\\n\\t\\41\\7e\"}", "{\"a\":\"\\n\\tA~\"}"},
        {"{a = \"\\00\"}", VALUE},
        {"{a = \"\\4\"}", VALUE},
        {"{a = \"\\g0\"}", VALUE},
        {"{a = \"\\", VALUE},
        {"{a = 999999999999999999}", "{\"a\":999999999999999999}"},
        {"{a = 1000000000000000000}", VALUE},
        {"{a = 0x7FF0000000000000 : f64}", "{\"a\":\"Infinity\"}"},
        {"{a = 0xFFF0000000000000 : f64}", "{\"a\":\"-Infinity\"}"},
        {"{a = 0x7FF8000000000000 : f64}", "{\"a\":\"NaN\"}"},
        {"{a = 0x3FF000000000000 : f64}", VALUE},
        {"{a = 0x3FF00000000000000 : f64}", VALUE},
        {"{a = array<i64>}", "{\"a\":[]}"},
        {"{a = array<i64: 1>}", "{\"a\":[1]}"},
        {"{a = array<i32: 1, -2,3>}", "{\"a\":[1,-2,3]}"},
        {"", NONE},
        {"{", NONE},
        {"{a", NONE},
        {"{a}", NONE},
        {"{1a = 1}", NONE},
        {"{a = 1", NONE},
        {"{a = 1,}", NONE},
        {"{a = 1} x", NONE},
        {"[]", NONE},
        {"{a = 1, a = 2}", "backend_config has a repeated attribute"},
        {"{a =}", VALUE},
        {"{a = x}", VALUE},
        {"{a = \"x}", VALUE},
        {"{a = 1.5.5 : f64}", VALUE},
        {"{a = 99999999999999999999 : i64}", VALUE},
        {"{a = 1 :}", VALUE},
        {"{a = array<>}", VALUE},
        {"{a = array<i64: >}", VALUE},
        {"{a = array<i64: 1,>}", VALUE},
        {"{a = array<i64: 1.5>}", VALUE},
        {"{a = array<i64: 1}", VALUE},
        {"{a = 0x3FF0000000000000 : i64}", VALUE},
        {"{a = 0xG : f64}", VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = NULL;
        bool starved = true;
        const char *fault = hlo_mlir_read(cases[i][0], &json, &starved);
        char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        const char *found = fault ? fault : text;
        if (!found || strcmp(found, cases[i][1]) != 0) fail_msg("%s: %s", cases[i][0], found);
        assert_true(!fault == (json != NULL));
        assert_false(starved);
        free(text);
        json_decref(json);
    }
}

static void wrong_calls_are_refused(void **state) {
    fixture *f = *state;
    hlo_matmul m = choose(f, HLO_EPILOGUE_BIAS, 31, true);
    static const struct {
        int operand, by; /* `by` is the replacement: 0 for a, 1 for c, 2 for a scale */
        const char *why;
    } cases[] = {
        {0, 1, "a or b is not fp8"},
        {1, 0, "the contracting dimensions of the operands have different sizes"},
        {2, 0, "c and the result have different dimensions"},
        {3, 1, "a scale is not f32[]"},
        {6, 0, "a scale is not f32[]"},
        {7, 2, "the bias is not a vector along n"},
    };
    hlo_instruction *by[] = {f->matmul.a, f->c, f->scale[0]};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hlo_instruction *call = encode(f, &m);
        hlo_instr_set_operand(call, (uint32_t)cases[i].operand, by[cases[i].by]);
        assert_string_equal(refusal(call), cases[i].why);
    }
    hlo_instruction *call = encode(f, &m);
    hlo_instr_append_operand(call, f->scale[0]);
    assert_string_equal(refusal(call), "the number of operands matches neither form of the call");
    call = encode(f, &m);
    hlo_instr_drop_attr(call, HLO_ATTR_BACKEND_CONFIG);
    assert_string_equal(refusal(call), "backend_config is missing");
    m.d = array(f, HLO_TYPE_F8E4M3FN, 3, 2, 32, 16);
    m.c = NULL;
    m.beta = 0;
    m.bias = NULL;
    m.epilogue = HLO_EPILOGUE_DEFAULT;
    assert_string_equal(refusal(encode(f, &m)),
                        "the dimensions of the result do not match the operands");
}

static void count_error(void *user, const hlo_diag *diag) {
    assert_int_equal(diag->severity, HLO_ERROR);
    assert_string_equal(diag->message, "'cublas-gemm.1' is not a valid matmul call: the number of "
                                       "operands matches neither form of the call");
    ++*(int *)user;
}

static void a_module_is_verified(void **state) {
    fixture *f = *state;
    int errors = 0;
    hlo_diag_sink sink = {count_error, &errors};
    encode(f, &f->matmul);
    assert_int_equal(hlo_matmul_verify(f->module, 0, &sink), HLO_OK);
    hlo_instr_append_operand(encode(f, &f->matmul), f->bias);
    assert_int_equal(hlo_matmul_verify(f->module, 0, &sink), HLO_INVALID_INPUT);
    assert_int_equal(errors, 1);
}

/* Decodes a call with `bytes` bytes of memory. Returns false if the memory does not suffice. */
static bool decode_within(fixture *f, const hlo_instruction *call, size_t bytes) {
    hlo_arena *arena = f->module->arena;
    if (setjmp(f->recover)) return false;
    hlo_arena_set_limit(arena, hlo_arena_used(arena) + bytes);
    decode(call);
    return true;
}

static void a_config_is_whole_or_not_kept(void **state) {
    bool enough = false;
    size_t tries = 0;
    for (; !enough; tries++) {
        assert_int_equal(set_up(state), 0);
        fixture *f = *state;
        hlo_matmul wanted = f->matmul;
        wanted.alpha = 3;
        wanted.precision = "{highest,highest}";
        const hlo_instruction *call = encode(f, &wanted);
        enough = decode_within(f, call, 8 * tries);
        hlo_arena_set_limit(f->module->arena, 0);
        const hlo_matmul found = decode(call);
        assert_true(found.alpha == 3);
        assert_true(found.a_batch && found.a_contracting && found.b_batch && found.b_contracting);
        assert_string_equal(found.precision, wanted.precision);
        tear_down(state);
    }
    assert_true(tries > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_form_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operands_stand_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_output_scale_may_be_absent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(config_is_golden, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_scale_mode_comes_back, set_up, tear_down),
        cmocka_unit_test(scales_lie_as_cublaslt_wants),
        cmocka_unit_test_setup_teardown(wrong_scales_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_taken_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dot_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wide_call_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_configs_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(configs_have_several_forms, set_up, tear_down),
        cmocka_unit_test(dictionaries_are_read),
        cmocka_unit_test_setup_teardown(wrong_calls_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_module_is_verified, set_up, tear_down),
        cmocka_unit_test(a_config_is_whole_or_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
