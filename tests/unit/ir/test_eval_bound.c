/* Error bounds: where they are zero, where they are a step, that they are about as large as what
 * random errors do, and what a comparison counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "ir/error/error.h"
#include "ir/float/float.h"

enum { MAX_COUNT = 4096 };

/* One instruction, the root of a module's entry, on f32 parameters. */
typedef struct setup {
    hlo_module *module;
    const hlo_instr *root;
    hlo_view operands[3], operand_sigmas[3], result, sigma;
} setup;

static hlo_view dense_view(hlo_arena *arena, hlo_type type, const hlo_shape *shape) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1, sizeof *strides), stride = 1;
    for (uint32_t d = shape->rank; d-- > 0; stride *= shape->dims[d]) strides[d] = stride;
    size_t count = (size_t)hlo_shape_count(shape);
    void *data = hlo_arena_zero(arena, count * hlo_types[type].bytes);
    return (hlo_view){type, shape->rank, shape->dims, strides, data};
}

/* Operands and sigmas are zero until the test sets them. */
static setup prepare(const char *text, jmp_buf *recover) {
    setup s = {0};
    assert_int_equal(hlo_module_parse(text, strlen(text), "test", NULL, &s.module), HLO_OK);
    hlo_arena *arena = s.module->arena;
    hlo_arena_set_recover(arena, recover);
    s.root = s.module->entry->root;
    s.result = dense_view(arena, s.root->shape->type, s.root->shape);
    s.sigma = dense_view(arena, HLO_TYPE_F32, s.root->shape);
    for (uint32_t o = 0; o < s.root->operand_count; o++) {
        const hlo_shape *shape = hlo_instr_operand(s.root, o)->shape;
        s.operands[o] = dense_view(arena, shape->type, shape);
        s.operand_sigmas[o] = dense_view(arena, HLO_TYPE_F32, shape);
    }
    return s;
}

static void run(setup *s, bool dropped) {
    hlo_error_options options = {.roundings_may_be_dropped = dropped};
    const char *why = NULL;
    hlo_arena *arena = s->module->arena;
    assert_int_equal(hlo_eval(NULL, s->root, s->operands, &s->result, arena, &why), HLO_OK);
    assert_int_equal(hlo_error_sigmas(NULL, s->root, s->operands, s->operand_sigmas, &s->result,
                                      &s->sigma, &options, arena, &why),
                     HLO_OK);
}

static void set(hlo_view *view, int64_t index, double value) {
    hlo_number_store(view->type, (char *)view->data + index * hlo_types[view->type].bytes, value);
}

static double at(const hlo_view *view, int64_t index) {
    return hlo_number_load(view->type,
                           (const char *)view->data + index * hlo_types[view->type].bytes);
}

#define MODULE(parameters, root) "HloModule m\n\nENTRY %e " parameters " {\n" root "\n}\n"
#define X "  %x = f32[4]{0} parameter(0)\n"
#define DOT(type, k)                                                                               \
    MODULE("(x: " type "[" k "], y: " type "[" k "]) -> " type "[]",                               \
           "  %x = " type "[" k "]{0} parameter(0)\n  %y = " type "[" k "]{0} parameter(1)\n"      \
           "  ROOT %r = " type "[] dot(%x, %y), lhs_contracting_dims={0}, "                        \
           "rhs_contracting_dims={0}")
#define Y "  %y = f32[4]{0} parameter(1)\n"

static void fp8_moves_by_a_step_only_near_a_boundary(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4]) -> f8e4m3fn[4]", X "  ROOT %r = f8e4m3fn[4]{0} convert(%x)"), &recover);
    static const double x[] = {16.5, 16.999, 16.999, 16}, sigma[] = {0.01, 0.01, 0, 0.06};
    /* NaN whichever way they are moved, and not in between. */
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, 1e5), set(&s.operand_sigmas[0], i, 5e4);
    run(&s, true);
    assert_true(isinf(at(&s.sigma, 0)));
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, x[i]);
        set(&s.operand_sigmas[0], i, sigma[i]);
    }
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 0);
    assert_true(at(&s.sigma, 1) == 2 / HLO_ERROR_FLIP);
    assert_true(at(&s.sigma, 2) == 0);
    assert_true(at(&s.sigma, 3) == 0);
    hlo_module_free(s.module);
}

static void exact_operations_stay_exact(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} maximum(%x, %y)"),
        &recover);
    set(&s.operands[0], 0, 1.0 / 3);
    set(&s.operands[0], 1, 5);
    set(&s.operand_sigmas[0], 1, 0.25);
    set(&s.operands[1], 2, 5);
    set(&s.operand_sigmas[0], 2, 0.25);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    assert_true(at(&s.sigma, 1) == 0.25);
    assert_true(at(&s.sigma, 2) == 0);
    hlo_module_free(s.module);
}

static void arithmetic_rounds(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} divide(%x, %y)"),
        &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, 3);
        set(&s.operands[1], i, 4);
    }
    set(&s.operand_sigmas[0], 1, 0.4);
    set(&s.operand_sigmas[1], 2, 1); /* the divisor may be zero */
    run(&s, false);
    assert_true(at(&s.sigma, 0) > 0 && at(&s.sigma, 0) < 1e-6);
    assert_true(fabs(at(&s.sigma, 1) - 0.1) < 1e-6);
    assert_true(isinf(at(&s.sigma, 2)));
    hlo_module_free(s.module);
}

static void compares_may_differ_within_the_bound(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[4], y: f32[4]) -> pred[4]",
                             X Y "  ROOT %r = pred[4]{0} compare(%x, %y), direction=LT"),
                      &recover);
    for (int i = 0; i < 4; i++) set(&s.operands[1], i, 1);
    set(&s.operand_sigmas[0], 0, 0.2);
    set(&s.operand_sigmas[0], 1, 0.1);
    run(&s, false);
    assert_true(at(&s.sigma, 0) > 0);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

static void bf16_roundings_that_may_be_dropped(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s =
        prepare(MODULE("(x: f32[4]) -> bf16[4]", X "  ROOT %r = bf16[4]{0} convert(%x)"), &recover);
    set(&s.operands[0], 0, 1.001);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    run(&s, true);
    double ulp = 0x1p-7;
    assert_true(at(&s.sigma, 0) > 0.3 * ulp && at(&s.sigma, 0) < ulp);
    hlo_module_free(s.module);
    /* f16 has all bits of bf16, but not below its normal numbers. */
    s = prepare(MODULE("(x: bf16[4]) -> f16[4]", "  %x = bf16[4]{0} parameter(0)\n"
                                                 "  ROOT %r = f16[4]{0} convert(%x)"),
                &recover);
    set(&s.operands[0], 0, 3.375 * 0x1p-24), set(&s.operands[0], 1, 1.5);
    run(&s, true);
    assert_true(at(&s.sigma, 0) > 0.3 * 0x1p-24 && at(&s.sigma, 0) < 0x1p-24);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

/* A number from a normal distribution, by the sum of twelve uniform ones. */
static double normal(uint64_t *seed) {
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 11) * 0x1p-53;
    }
    return sum;
}

/* The root-mean-square difference that random errors of the operands' sigmas make, in sigmas. */
static void errors_are_about_as_large_as_the_bound(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const char *const modules[] = {
        MODULE("(x: f32[16,32], y: f32[32,8]) -> f32[16,8]",
               "  %x = f32[16,32]{1,0} parameter(0)\n  %y = f32[32,8]{1,0} parameter(1)\n"
               "  ROOT %r = f32[16,8]{1,0} dot(%x, %y), lhs_contracting_dims={1}, "
               "rhs_contracting_dims={0}"),
        MODULE("(x: f32[64], y: f32[64]) -> f32[64]",
               "  %x = f32[64]{0} parameter(0)\n  %y = f32[64]{0} parameter(1)\n"
               "  ROOT %r = f32[64]{0} multiply(%x, %y)"),
        MODULE("(x: f32[64]) -> f32[64]",
               "  %x = f32[64]{0} parameter(0)\n  ROOT %r = f32[64]{0} tanh(%x)"),
    };
    for (size_t m = 0; m < sizeof modules / sizeof modules[0]; m++) {
        setup s = prepare(modules[m], &recover);
        uint64_t seed = 1;
        double x[2][MAX_COUNT], square = 0;
        int64_t counts[2] = {0}, count = hlo_shape_count(s.root->shape);
        for (uint32_t o = 0; o < s.root->operand_count; o++) {
            counts[o] = hlo_shape_count(hlo_instr_operand(s.root, o)->shape);
            for (int64_t i = 0; i < counts[o]; i++) {
                set(&s.operands[o], i, x[o][i] = normal(&seed));
                set(&s.operand_sigmas[o], i, 0.001 * fabs(normal(&seed)));
            }
        }
        run(&s, false);
        double value[MAX_COUNT];
        for (int64_t i = 0; i < count; i++) value[i] = at(&s.result, i);
        const int trials = 50;
        for (int t = 0; t < trials; t++) {
            for (uint32_t o = 0; o < s.root->operand_count; o++)
                for (int64_t i = 0; i < counts[o]; i++)
                    set(&s.operands[o], i, x[o][i] + at(&s.operand_sigmas[o], i) * normal(&seed));
            const char *why;
            assert_int_equal(hlo_eval(NULL, s.root, s.operands, &s.result, s.module->arena, &why),
                             HLO_OK);
            for (int64_t i = 0; i < count; i++)
                square += pow((at(&s.result, i) - value[i]) / at(&s.sigma, i), 2);
        }
        double ratio = sqrt(square / (double)(count * trials));
        if (!(ratio > 0.8 && ratio < 1.2)) fail_msg("module %zu: %g of the bound", m, ratio);
        hlo_module_free(s.module);
    }
}

static void comparing_counts_every_case(void **state) {
    (void)state;
    static const int64_t dims[] = {6}, strides[] = {1};
    float a[] = {1, NAN, 2, 3, INFINITY, 5}, b[] = {1, NAN, 2.5f, 4, 7, 6};
    float s[] = {0, 0, 0.1f, 0.1f, 0.1f, INFINITY};
    hlo_view va = {HLO_TYPE_F32, 1, dims, strides, a}, vb = {HLO_TYPE_F32, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 2);
    assert_int_equal(c.within, 2);
    assert_int_equal(c.violations, 2);
    assert_int_equal(c.nonfinite, 1);
    assert_int_equal(c.worst_index, 4);
    hlo_error_compare(&va, &vb, NULL, &c);
    assert_int_equal(c.violations, 4);
    unsigned char p[] = {0x38, 0x38, 0x80, 0x38, 0x7f, 0}, q[] = {0x39, 0x3a, 0x01, 0x38, 0x7f, 0};
    float step[] = {0.03125f, 0.03125f, 0.01f, 0, 0, 0};
    hlo_view vp = {HLO_TYPE_F8E4M3FN, 1, dims, strides, p},
             vq = {HLO_TYPE_F8E4M3FN, 1, dims, strides, q},
             vt = {HLO_TYPE_F32, 1, dims, strides, step};
    hlo_error_compare(&vp, &vq, &vt, &c);
    assert_int_equal(c.steps, 2);
    assert_int_equal(c.violations, 1);
    assert_int_equal(c.equal, 3);
}

/* However little is known of its size, an infinity is no NaN; where nothing is known it may be. */
static void an_infinity_is_no_nan(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    float a[] = {INFINITY, NAN, INFINITY, INFINITY}, b[] = {NAN, INFINITY, 5, NAN};
    float s[] = {INFINITY, INFINITY, INFINITY, NAN};
    hlo_view va = {HLO_TYPE_F32, 1, dims, strides, a}, vb = {HLO_TYPE_F32, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.violations, 2);
    assert_int_equal(c.within, 2);
}

/* A product of infinities is infinite, and nothing about it is unsure. */
static void a_dot_of_infinities_is_exact(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "4"), &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, i == 2 ? (double)INFINITY : 3);
        set(&s.operands[1], i, 2);
    }
    for (int dropped = 0; dropped < 2; dropped++) {
        run(&s, dropped);
        assert_true(isinf(at(&s.result, 0)) && at(&s.sigma, 0) == 0);
    }
    set(&s.operand_sigmas[1], 1, 10); /* not what the infinity is multiplied with */
    run(&s, false);
    assert_true(!isnan(at(&s.sigma, 0)));
    set(&s.operand_sigmas[1], 2, 10); /* which may be 0, or less */
    run(&s, false);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

#define TWO(op)                                                                                    \
    MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} " op "(%x, %y)")

/* Of an infinity that may be NaN elsewhere, or a NaN that may be an infinity, nothing is known; a
 * number that may be either is of infinite sigma, and not beyond judging. */
static void what_may_be_nan_is_anything(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    const double inf = (double)INFINITY, nan = (double)NAN;
    static const char *const modules[] = {TWO("multiply"), TWO("divide"), TWO("maximum"),
                                          TWO("add"), TWO("subtract")};
    const struct {
        int module;
        double x, x_sigma, y, y_sigma, sigma; /* 0: finite */
    } cases[] = {
        {0, 0.001, 0.001, 4, inf, inf}, /* a number */
        {0, 0.001, 0.001, inf, 0, nan}, /* 0 times infinity in between */
        {0, 0, 0.001, inf, 0, nan},     /* NaN here */
        {0, 3, 0.001, inf, 0, 0},       /* infinite in both */
        {0, 0, 0, inf, 0, 0},           /* NaN in both */
        {0, nan, inf, 3, 0, inf},       /* a number elsewhere */
        {1, 0.001, 0.001, 0.001, 0.001, inf},
        {1, 0.001, 0.001, 0, 0.001, nan}, /* 0 over 0 in between */
        {1, 3, 0, 0, 0.001, inf},         /* never 0 over 0 */
        {1, 3, 0.001, 0, 0, 0},
        {2, inf, 0, 4, inf, nan}, /* the greatest of infinity and what may be NaN */
        {2, inf, 0, 4, 0.001, 0},
        {3, inf, 0, 4, inf, nan},
        {3, inf, 0, nan, inf, nan},
        {4, inf, 0, 4, 0.001, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        setup s = prepare(modules[cases[c].module], &recover);
        set(&s.operands[0], 0, cases[c].x), set(&s.operand_sigmas[0], 0, cases[c].x_sigma);
        set(&s.operands[1], 0, cases[c].y), set(&s.operand_sigmas[1], 0, cases[c].y_sigma);
        run(&s, false);
        double sigma = at(&s.sigma, 0), wanted = cases[c].sigma;
        if (isnan(sigma) != isnan(wanted) || isinf(sigma) != isinf(wanted))
            fail_msg("case %zu: %g", c, sigma);
        hlo_module_free(s.module);
    }
}

/* So of a sum with an infinity and what may be NaN. */
static void a_sum_may_be_nan(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                      "  ROOT r = f32[] add(a, b)\n}\n"
                      "ENTRY e {\n  x = f32[4] parameter(0)\n  z = f32[] parameter(1)\n"
                      "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum\n}\n",
                      &recover);
    set(&s.operands[0], 0, (double)INFINITY);
    set(&s.operand_sigmas[0], 1, 3);
    run(&s, true);
    assert_true(isinf(at(&s.result, 0)) && at(&s.sigma, 0) == 0);
    set(&s.operand_sigmas[0], 1, (double)INFINITY);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    set(&s.operands[0], 0, 3);
    run(&s, true);
    assert_true(isinf(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

static void perturbing_moves_by_sigma(void **state) {
    (void)state;
    enum { COUNT = 4096 };
    static float sigma[COUNT], values[COUNT], again[COUNT];
    static uint16_t narrow[COUNT];
    const int64_t dims[] = {64, 64}, strides[] = {1, 64};
    hlo_view view = {HLO_TYPE_F32, 2, dims, strides, values};
    for (int i = 0; i < COUNT; i++) {
        sigma[i] = i < 64 ? 0 : 0.125f;
        values[i] = again[i] = 1;
        narrow[i] = 0x3f80;
    }
    hlo_error_perturb(&view, sigma, 2, 7);
    double mean = 0, square = 0;
    for (int i = 0; i < COUNT; i++) {
        double moved = values[i] - 1.0;
        mean += moved / COUNT;
        square += moved * moved / COUNT;
        assert_true(fabs(moved) <= 0.25 * 3.5);
        if (i % 64 == 0) assert_true(moved == 0);
    }
    assert_true(fabs(mean) < 0.02);
    assert_true(fabs(sqrt(square) - 0.25) < 0.02);
    view.data = again;
    hlo_error_perturb(&view, sigma, 2, 7);
    assert_memory_equal(values, again, sizeof values);
    hlo_error_perturb(&view, sigma, 2, 8);
    assert_memory_not_equal(values, again, sizeof values);
    /* Of bf16, whose next number is 1/128 away: to a neighbour now and then. */
    view = (hlo_view){HLO_TYPE_BF16, 2, dims, strides, narrow};
    for (int i = 0; i < COUNT; i++) sigma[i] = 0x1p-9f;
    hlo_error_perturb(&view, sigma, 1, 7);
    int changed = 0;
    for (int i = 0; i < COUNT; i++) changed += narrow[i] != 0x3f80;
    assert_in_range(changed, COUNT / 100, COUNT / 3);
}

static void exact_sums_have_no_error(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s =
        prepare(MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} add(%x, %y)"),
                &recover);
    set(&s.operands[0], 0, 1), set(&s.operands[1], 0, 2);
    set(&s.operands[0], 1, 1), set(&s.operands[1], 1, 0x1p-30);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    assert_true(at(&s.sigma, 1) > 0);
    hlo_module_free(s.module);
}

static void a_value_twice_moves_in_both_places(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const char *const ops[] = {"multiply", "divide"};
    setup s[2];
    for (int o = 0; o < 2; o++) {
        char text[256];
        snprintf(
            text, sizeof text,
            "HloModule m\n\nENTRY %%e (x: f32[4]) -> f32[4] {\n  %%x = f32[4]{0} parameter(0)\n"
            "  ROOT %%r = f32[4]{0} %s(%%x, %%x)\n}\n",
            ops[o]);
        s[o] = prepare(text, &recover);
        for (int i = 0; i < 2; i++) { /* both operands are the one parameter */
            set(&s[o].operands[i], 0, 3), set(&s[o].operand_sigmas[i], 0, 0.01);
            set(&s[o].operands[i], 1, 0), set(&s[o].operand_sigmas[i], 1, 0.5);
            set(&s[o].operands[i], 2, 3);
        }
        run(&s[o], false);
    }
    const hlo_view *square = &s[0].sigma, *ratio = &s[1].sigma;
    assert_true(fabs(at(square, 0) - (0.06 + HLO_ERROR_LAMBDA * 0.0001)) < 1e-6);
    assert_true(fabs(at(square, 1) - HLO_ERROR_LAMBDA * 0.25) < 1e-6);
    assert_true(at(square, 2) == 0);
    assert_true(isinf(at(ratio, 1))); /* one may be divided by zero, the other not */
    assert_true(at(ratio, 2) < 1e-6);
    for (int o = 0; o < 2; o++) hlo_module_free(s[o].module);
}

static void factors_near_zero_move_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4], y: f32[4]) -> f32[4]", X Y "  ROOT %r = f32[4]{0} multiply(%x, %y)"),
        &recover);
    for (int i = 0; i < 2; i++) set(&s.operand_sigmas[0], i, 0.5);
    for (int i = 0; i < 3; i++) set(&s.operands[1], i, i == 1 ? 3 : 0);
    set(&s.operand_sigmas[1], 0, 0.25);
    run(&s, false);
    assert_true(fabs(at(&s.sigma, 0) - HLO_ERROR_LAMBDA * 0.125) < 1e-6);
    assert_true(fabs(at(&s.sigma, 1) - 1.5) < 1e-6);
    assert_true(at(&s.sigma, 2) == 0);
    hlo_module_free(s.module);
}

/* Two numbers 3 sigmas apart on either side of a step become neighbours but one. */
static void fp8_counts_from_before_its_rounding(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    const double step = 0.5, sigma = 0.13;
    float s = (float)hypot(sigma, step / HLO_ERROR_FLIP);
    float coarse = (float)hypot(sigma, 2 * step / HLO_ERROR_FLIP);
    float sigmas[] = {s, s, coarse, (float)(step / HLO_ERROR_FLIP)};
    /* 6 and 7, 6 and 7.5, 8 and 6.5, whose steps differ, and 6 and 7 where one boundary is near */
    unsigned char a[] = {0x4c, 0x4c, 0x50, 0x4c}, b[] = {0x4e, 0x4f, 0x4d, 0x4e};
    hlo_view va = {HLO_TYPE_F8E4M3FN, 1, dims, strides, a},
             vb = {HLO_TYPE_F8E4M3FN, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, sigmas};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.within, 3);
    assert_int_equal(c.violations, 1);
    assert_int_equal(c.worst_index, 3);
    for (int i = 0; i < 3; i++)
        sigmas[i] = (float)hypot(0.05, (i == 2 ? 2 : 1) * step / HLO_ERROR_FLIP);
    hlo_error_compare(&va, &vb, &vs, &c); /* a gap of a step is 10 sigmas */
    assert_int_equal(c.violations, 4);
}

/* A tie may become a neighbour, and nothing else. Off a boundary, or known to less, nothing is one.
 */
static void ties_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(
        MODULE("(x: f32[4]) -> f8e4m3fn[4]", X "  ROOT %r = f8e4m3fn[4]{0} convert(%x)"), &recover);
    static const double x[] = {17, 15.5, 17.0001, 17};
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, x[i]);
        set(&s.operand_sigmas[0], i, i == 3 ? 0.01 : 2e-5);
    }
    run(&s, true);
    assert_true(at(&s.sigma, 0) == (double)(float)(2 / HLO_ERROR_FLIP_TIE));
    assert_true(at(&s.sigma, 1) == (double)(float)(1 / HLO_ERROR_FLIP_TIE));
    assert_true(at(&s.sigma, 2) == 2 / HLO_ERROR_FLIP);
    assert_true(at(&s.sigma, 3) == 2 / HLO_ERROR_FLIP);
    static const unsigned char others[] = {0x59, 0x57, 0x5a};
    for (int o = 0; o < 3; o++) { /* of 16: 18, 15, and 20, two steps away */
        unsigned char codes[] = {others[o], 0x58, 0x59, 0x58};
        hlo_view other = s.result;
        other.data = codes;
        hlo_error_comparison c;
        hlo_error_compare(&s.result, &other, &s.sigma, &c);
        assert_int_equal(c.steps, o < 2);
        assert_int_equal(c.violations, o == 2);
    }
    hlo_module_free(s.module);
}

/* -0.999 and 0.999 are -1 and 1 of bf16. */
static void ends_of_types_are_rounded(void **state) {
    (void)state;
    static const int64_t dims[] = {2}, strides[] = {1};
    uint16_t a[] = {0xbf80, 0xbf80}, b[] = {0x3f80, 0x3f82};
    float s[] = {0.24975f, 0.24975f};
    hlo_view va = {HLO_TYPE_BF16, 1, dims, strides, a}, vb = {HLO_TYPE_BF16, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.within, 1);
    assert_int_equal(c.worst_index, 1);
}

/* Errors of a sum's terms add up like random ones, and are no less than what one that all of them
 * share makes. */
static void a_shared_error_moves_a_sum_linearly(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "1024"), &recover);
    for (int sign = 0; sign < 2; sign++) {
        for (int i = 0; i < 1024; i++) {
            set(&s.operands[0], i, 1 + i * 1e-6), set(&s.operand_sigmas[0], i, 0.001);
            set(&s.operands[1], i, sign && i % 2 ? -1 : 1);
        }
        run(&s, false);
        double shared = sqrt(6) * 0.001 * 1024 / HLO_ERROR_LAMBDA;
        double expected = sign ? 0.001 * 32 : shared;
        if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    }
    hlo_module_free(s.module);
}

/* They are one number that has been quantised: either all are a step away or none is. */
static void equal_operands_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "1024"), &recover);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < 1024; i++) {
            set(&s.operands[which], i, 1), set(&s.operand_sigmas[which], i, 0.001);
            set(&s.operands[!which], i, i % 3 - 0.5), set(&s.operand_sigmas[!which], i, 0);
        }
        run(&s, false);
        double expected = 0.001 * (341 * (-0.5 + 0.5 + 1.5) - 0.5);
        if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    }
    hlo_module_free(s.module);
}

/* Columns that are repeated flip together in each row, others by themselves. */
static void repeated_columns_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[2,64], y: f32[64]) -> f32[2]",
                             "  %x = f32[2,64]{1,0} parameter(0)\n"
                             "  %y = f32[64]{0} parameter(1)\n"
                             "  ROOT %r = f32[2]{0} dot(%x, %y), lhs_contracting_dims={1}, "
                             "rhs_contracting_dims={0}"),
                      &recover);
    for (int apart = 0; apart < 2; apart++) {
        for (int i = 0; i < 128; i++) {
            int column = i % 64, first = apart && i >= 64 ? column : column % 4;
            set(&s.operands[0], i, 1 + first), set(&s.operand_sigmas[0], i, 0.001);
            set(&s.operands[1], column, 1), set(&s.operand_sigmas[1], column, 0);
        }
        run(&s, false);
        double expected = apart ? 0 : 0.001 * 16 * 2;
        double shared = sqrt(6) / HLO_ERROR_LAMBDA * 0.001 * 64 * 2.5 / sqrt(7.5);
        expected = fmax(expected, shared);
        if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    }
    hlo_module_free(s.module);
}

/* So do they where a reduce adds them. */
static void repeated_terms_of_a_reduce_flip_together(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare("HloModule m\n%add (a: f32[], b: f32[]) -> f32[] {\n"
                      "  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
                      "  ROOT %s = f32[] add(%a, %b)\n}\n"
                      "ENTRY %e (x: f32[2,64], z: f32[]) -> f32[2] {\n"
                      "  %x = f32[2,64]{1,0} parameter(0)\n  %z = f32[] parameter(1)\n"
                      "  ROOT %r = f32[2]{0} reduce(%x, %z), dimensions={1}, to_apply=%add\n}\n",
                      &recover);
    for (int i = 0; i < 128; i++)
        set(&s.operands[0], i, i % 2 ? 1 : -1), set(&s.operand_sigmas[0], i, 0.001);
    set(&s.operands[1], 0, 0), set(&s.operand_sigmas[1], 0, 0);
    run(&s, false);
    double expected = 0.001 * 32 * sqrt(2);
    if (fabs(at(&s.sigma, 0) / expected - 1) > 0.01) fail_msg("%g", at(&s.sigma, 0));
    hlo_module_free(s.module);
}

/* Sixteen equal terms and sixteen others, of the other sign: each addition loses the same. What the
 * sum is off by is 17 * 2^-24 of it, more than 8 sigmas of independent errors. */
static void what_an_execution_is_off_by_is_known(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "32"), &recover);
    double exact = 0, squares = 0;
    for (int i = 0; i < 32; i++) {
        float x = -0.112121075F, y = i < 16 ? -1.5e-06F : 4.0625e-07F;
        double term = (double)x * (double)y;
        set(&s.operands[0], i, (double)x), set(&s.operands[1], i, (double)y);
        exact += term;
        squares += term * term;
    }
    run(&s, false);
    double off = fabs(at(&s.result, 0) - exact), bound = HLO_ERROR_LAMBDA * at(&s.sigma, 0);
    double other = HLO_ERROR_LAMBDA * 0x1p-24 * sqrt(32.0 / 6 * squares + 32.0 / 9 * exact * exact);
    assert_true(off > other);
    assert_true(fabs(bound - (off + other)) < 1e-3 * bound);
    hlo_module_free(s.module);
}

/* A column that is 2^80 times as large as another hides nothing of that one's errors. */
static void columns_may_differ_much(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(MODULE("(x: f32[4], y: f32[4,2]) -> f32[2]",
                             X "  %y = f32[4,2]{1,0} parameter(1)\n"
                               "  ROOT %r = f32[2]{0} dot(%x, %y), lhs_contracting_dims={0}, "
                               "rhs_contracting_dims={0}"),
                      &recover);
    for (int i = 0; i < 4; i++) {
        set(&s.operands[0], i, i % 2 ? 1 : -1);
        for (int j = 0; j < 2; j++) {
            double size = j ? 0x1p-20 : 0x1p60;
            set(&s.operands[1], 2 * i + j, size);
            set(&s.operand_sigmas[1], 2 * i + j, size / 1024);
        }
    }
    run(&s, true);
    assert_true(fabs(at(&s.sigma, 0) / 0x1p51 - 1) < 1e-3);
    assert_true(fabs(at(&s.sigma, 1) / 0x1p-29 - 1) < 1e-3);
    hlo_module_free(s.module);
}

/* What is NaN here and any number elsewhere makes its maximum and its square that, too. */
static void a_nan_may_be_a_number(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    static const char *const modules[] = {
        "HloModule m\n\nmost {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT r = f32[] maximum(a, b)\n}\n"
        "ENTRY e {\n  x = f32[4] parameter(0)\n  z = f32[] parameter(1)\n"
        "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=most\n}\n",
        "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] multiply(x, "
        "x)\n}\n"};
    for (int m = 0; m < 2; m++) {
        setup s = prepare(modules[m], &recover);
        for (uint32_t o = 0; o < 2; o++) {
            if (m || !o) set(&s.operands[o], 0, (double)NAN);
            if (m || !o) set(&s.operand_sigmas[o], 0, (double)INFINITY);
        }
        run(&s, true);
        assert_true(isnan(at(&s.result, 0)) && isinf(at(&s.sigma, 0)));
        for (uint32_t o = 0; o < 2; o++) set(&s.operand_sigmas[o], 0, 0);
        run(&s, true);
        assert_true(isnan(at(&s.result, 0)) && at(&s.sigma, 0) == 0);
        hlo_module_free(s.module);
    }
}

static void tiny_products_may_be_zero(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(DOT("f32", "4"), &recover);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    for (int i = 0; i < 2; i++) set(&s.operands[i], 0, 0x1p-64);
    run(&s, false);
    assert_true(HLO_ERROR_LAMBDA * at(&s.sigma, 0) >= 0x1p-127);
    hlo_module_free(s.module);
}

#define ROW(type) type "[4]{0}"
#define NARROW(root)                                                                               \
    MODULE("(x: f16[4], y: f16[4]) -> f16[4]", "  %x = " ROW("f16") " parameter(0)\n  %y = " ROW(  \
                                                   "f16") " parameter(1)\n"                        \
                                                          "  ROOT %r = " ROW("f16") " " root)

static void overflows_are_kept_apart(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(NARROW("multiply(%x, %y)"), &recover);
    /* 90000 overflows; 0 times infinity is NaN in both; a number that overflowed times 0.5 and 2 */
    static const double x[] = {300, 0, INFINITY, INFINITY}, y[] = {300, INFINITY, 0.5, 2};
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, x[i]), set(&s.operands[1], i, y[i]);
    for (int i = 2; i < 4; i++) set(&s.operand_sigmas[0], i, 70000);
    run(&s, false);
    assert_true(at(&s.sigma, 0) == 0);
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 90000);
    assert_true(at(&s.sigma, 1) == 0); /* %y is no scale */
    assert_true(isnan(at(&s.sigma, 2)));
    assert_true(at(&s.sigma, 3) == 140000);
    hlo_module_free(s.module);
    s = prepare(DOT("f16", "4"), &recover);
    set(&s.operands[0], 0, INFINITY), set(&s.operand_sigmas[0], 0, 70000);
    set(&s.operands[1], 0, 1);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

static void an_overflow_is_the_same_in_both(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, strides[] = {1};
    float a[] = {INFINITY, INFINITY, NAN, 1}, b[] = {INFINITY, 65504, 1, NAN};
    float s[] = {70000, 70000, (float)HLO_ERROR_ANYTHING, (float)HLO_ERROR_ANYTHING};
    hlo_view va = {HLO_TYPE_F32, 1, dims, strides, a}, vb = {HLO_TYPE_F32, 1, dims, strides, b},
             vs = {HLO_TYPE_F32, 1, dims, strides, s};
    hlo_error_comparison c;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 1);
    assert_int_equal(c.within, 2);
    assert_int_equal(c.worst_index, 1);
    /* A call's fp8 result is its largest number, of the same sign: infinity is 0x7c of e5m2. */
    unsigned char p[] = {0x7c, 0x7c, 0xfc, 0x7c}, q[] = {0x7b, 0xfb, 0xfb, 0x7a};
    for (int i = 0; i < 4; i++) s[i] = 70000;
    va.type = vb.type = HLO_TYPE_F8E5M2;
    va.data = p, vb.data = q;
    hlo_error_compare(&va, &vb, &vs, &c);
    assert_int_equal(c.equal, 2);
    assert_int_equal(c.violations, 2);
}

/* Where scales move, 1/0 may be an infinity of the other sign; 0/0 is NaN either way. */
static void zeros_may_have_the_other_sign(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(NARROW("divide(%x, %y)"), &recover);
    static const double x[] = {1, 0, NAN, 1}, y[] = {-0.0, 0, 0, 0.5};
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, x[i]), set(&s.operands[1], i, y[i]);
    run(&s, false);
    for (int i = 0; i < 4; i++) assert_true(at(&s.sigma, i) <= 0.001);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    assert_true(at(&s.sigma, 1) == 0 && at(&s.sigma, 2) == 0 && at(&s.sigma, 3) < 0.01);
    hlo_module_free(s.module);
    s = prepare(NARROW("atan2(%x, %y)"), &recover);
    set(&s.operands[1], 0, -1), set(&s.operands[1], 1, 1);
    run(&s, true);
    assert_true(fabs(at(&s.sigma, 0) * HLO_ERROR_LAMBDA / 6.2832 - 1) < 0.01);
    assert_true(at(&s.sigma, 1) == 0);
    hlo_module_free(s.module);
}

#define THIN(type, wide)                                                                           \
    MODULE("(q: " type "[4,1], m: " wide "[4,1]) -> " wide "[4,1]",                                \
           "  %q = " type "[4,1]{1,0} parameter(0)\n  %m = " wide "[4,1]{1,0} parameter(1)\n"      \
           "  %w = " wide "[4,1]{1,0} convert(%q)\n"                                               \
           "  ROOT %r = " wide "[4,1]{1,0} multiply(%w, %m)")

/* Scales of rows of one element look like any factor; quantised values do not look like scales. */
static void rows_of_one_element_are_scaled(void **state) {
    (void)state;
    jmp_buf recover;
    if (setjmp(recover)) fail();
    setup s = prepare(THIN("f8e5m2", "f32"), &recover);
    static const double q[] = {0, NAN, INFINITY, 1}, m[] = {INFINITY, INFINITY, 2, 2};
    for (int i = 0; i < 4; i++) set(&s.operands[0], i, q[i]), set(&s.operands[1], i, m[i]);
    run(&s, true);
    for (int i = 0; i < 4; i++) assert_true(i < 2 ? isnan(at(&s.sigma, i)) : at(&s.sigma, i) == 0);
    hlo_module_free(s.module);
    s = prepare(THIN("f32", "f32"), &recover);
    set(&s.operands[1], 0, INFINITY);
    run(&s, true);
    assert_true(at(&s.sigma, 0) == 0);
    hlo_module_free(s.module);
    s = prepare(THIN("f8e5m2", "f16"),
                &recover); /* by what overflowed, here and perhaps elsewhere */
    set(&s.operands[0], 0, 1), set(&s.operands[1], 0, INFINITY);
    set(&s.operand_sigmas[1], 0, 70000);
    run(&s, true);
    assert_true(isnan(at(&s.sigma, 0)));
    hlo_module_free(s.module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp8_moves_by_a_step_only_near_a_boundary),
        cmocka_unit_test(exact_operations_stay_exact),
        cmocka_unit_test(arithmetic_rounds),
        cmocka_unit_test(compares_may_differ_within_the_bound),
        cmocka_unit_test(bf16_roundings_that_may_be_dropped),
        cmocka_unit_test(errors_are_about_as_large_as_the_bound),
        cmocka_unit_test(comparing_counts_every_case),
        cmocka_unit_test(an_infinity_is_no_nan),
        cmocka_unit_test(a_dot_of_infinities_is_exact),
        cmocka_unit_test(what_may_be_nan_is_anything),
        cmocka_unit_test(a_sum_may_be_nan),
        cmocka_unit_test(perturbing_moves_by_sigma),
        cmocka_unit_test(exact_sums_have_no_error),
        cmocka_unit_test(a_value_twice_moves_in_both_places),
        cmocka_unit_test(factors_near_zero_move_together),
        cmocka_unit_test(fp8_counts_from_before_its_rounding),
        cmocka_unit_test(ties_flip_together),
        cmocka_unit_test(ends_of_types_are_rounded),
        cmocka_unit_test(tiny_products_may_be_zero),
        cmocka_unit_test(a_shared_error_moves_a_sum_linearly),
        cmocka_unit_test(equal_operands_flip_together),
        cmocka_unit_test(repeated_columns_flip_together),
        cmocka_unit_test(repeated_terms_of_a_reduce_flip_together),
        cmocka_unit_test(what_an_execution_is_off_by_is_known),
        cmocka_unit_test(columns_may_differ_much),
        cmocka_unit_test(a_nan_may_be_a_number),
        cmocka_unit_test(overflows_are_kept_apart),
        cmocka_unit_test(an_overflow_is_the_same_in_both),
        cmocka_unit_test(zeros_may_have_the_other_sign),
        cmocka_unit_test(rows_of_one_element_are_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
