/* SPDX-License-Identifier: Apache-2.0 */
/* Tests shape inference on instructions built here: the result and its layout, or the error
 * message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/infer/infer.h"
#include "ir/intern.h"
#include "ir/ir.h"

typedef struct bench {
    jmp_buf recover;
    hlo_module *m;
    hlo_computation *c;
} bench;

static int set_up(void **state) {
    bench *b = test_calloc(1, sizeof *b);
    *state = b;
    b->m = hlo_module_make(&b->recover);
    b->c = hlo_comp_new(b->m, "main");
    return 0;
}

static int tear_down(void **state) {
    bench *b = *state;
    hlo_module_free(b->m);
    test_free(b);
    return 0;
}

static const hlo_shape *shape_of(bench *b, hlo_type type, uint32_t rank, const int64_t *dims,
                                 const int64_t *order) {
    return hlo_shape_with_layout(b->m, type, rank, dims, order);
}

#define DIMS(...)                                                                                  \
    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {                      \
        __VA_ARGS__                                                                                \
    }
#define ORDER(...) ((const int64_t[]){__VA_ARGS__})
#define SCALAR 0, NULL

/* Creates a parameter of that shape; the layout is row-major if `order` is NULL. */
static hlo_instruction *operand(bench *b, hlo_type type, uint32_t rank, const int64_t *dims,
                                const int64_t *order) {
    hlo_instruction *p = hlo_instr_new(b->c, NULL, HLO_OP_PARAMETER,
                                       shape_of(b, type, rank, dims, order), 0, NULL, "p");
    hlo_instr_set_parameter(p, b->c->parameter_count);
    return p;
}

/* Creates a computation (T, T) -> T that applies `op` to scalars. */
static hlo_computation *combiner(bench *b, hlo_op op, hlo_type type) {
    hlo_computation *comp = hlo_comp_new(b->m, "combine");
    const hlo_shape *scalar = hlo_shape_array(b->m, type, 0, NULL);
    hlo_instruction *both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, "x");
        hlo_instr_set_parameter(both[i], i);
    }
    const hlo_shape *result =
        hlo_shape_array(b->m, op == HLO_OP_COMPARE ? HLO_TYPE_PRED : type, 0, NULL);
    hlo_comp_set_root(comp, hlo_instr_new(comp, NULL, op, result, 2, both, NULL));
    return comp;
}

#define MAX_ATTRS 8
typedef struct attrs {
    uint32_t count;
    hlo_attr v[MAX_ATTRS];
} attrs;

static void ints(bench *b, attrs *list, hlo_attr_id id, uint32_t count, const int64_t *values) {
    list->v[list->count++] = (hlo_attr){.id = id, .u.ints = hlo_ints_new(b->m, count, values)};
}

/* Infers a shape, and compares its text (with layout) or the reason for failure. */
static void expect(bench *b, hlo_op op, const attrs *list, const char *wanted, uint32_t count,
                   hlo_instruction *const *operands) {
    char text[512];
    const hlo_shape *shape = hlo_infer(b->m, op, count, operands, list ? list->count : 0,
                                       list ? list->v : NULL, text, sizeof text);
    if (shape) hlo_shape_format(shape, true, text, sizeof text);
    assert_string_equal(text, wanted);
}
#define EXPECT(b, op, list, wanted, ...)                                                           \
    expect(b, op, list, wanted,                                                                    \
           sizeof((hlo_instruction *[]){__VA_ARGS__}) / sizeof(hlo_instruction *),                 \
           (hlo_instruction *[]){__VA_ARGS__})

static void elementwise_keeps_the_first_operands_layout(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(2, 3), ORDER(0, 1));
    hlo_instruction *y = operand(b, HLO_TYPE_F32, DIMS(2, 3), NULL);
    hlo_instruction *h = operand(b, HLO_TYPE_BF16, DIMS(2, 3), NULL);
    hlo_instruction *z = operand(b, HLO_TYPE_F32, DIMS(2, 4), NULL);
    hlo_instruction *s = operand(b, HLO_TYPE_F32, SCALAR, NULL);
    hlo_instruction *p = operand(b, HLO_TYPE_PRED, DIMS(2, 3), NULL);
    hlo_instruction *c = operand(b, HLO_TYPE_C64, DIMS(5), NULL);
    attrs lt = {1, {{.id = HLO_ATTR_DIRECTION, .u.str = hlo_intern_string(b->m, "LT")}}};
    EXPECT(b, HLO_OP_ADD, NULL, "f32[2,3]{0,1}", x, y);
    EXPECT(b, HLO_OP_ADD, NULL, "f32[2,3]{1,0}", y, x);
    EXPECT(b, HLO_OP_TANH, NULL, "f32[2,3]{0,1}", x);
    EXPECT(b, HLO_OP_COMPARE, &lt, "pred[2,3]{0,1}", x, y);
    EXPECT(b, HLO_OP_CLAMP, NULL, "f32[2,3]{0,1}", s, x, y);
    EXPECT(b, HLO_OP_SELECT, NULL, "f32[2,3]{1,0}", p, x, y);
    EXPECT(b, HLO_OP_ABS, NULL, "f32[5]{0}", c);
    EXPECT(b, HLO_OP_ADD, NULL,
           "add of f32[2,3] and bf16[2,3]: the operands have different element types", x, h);
    EXPECT(b, HLO_OP_ADD, NULL,
           "add of f32[2,3] and f32[2,4]: the operands have different dimensions", x, z);
    EXPECT(b, HLO_OP_ADD, NULL, "add of f32[2,3] and f32[]: the operands have different dimensions",
           x, s);
    EXPECT(b, HLO_OP_ADD, NULL, "add of f32[2,3]: takes 2 operands, found 1", x);
    EXPECT(b, HLO_OP_NOT, NULL, "not of f32[2,3]: not defined for f32", x);
    EXPECT(b, HLO_OP_NEGATE, NULL, "negate of pred[2,3]: not defined for pred", p);
    EXPECT(b, HLO_OP_DYNAMIC_UPDATE_SLICE, NULL,
           "dynamic-update-slice of f32[2,3]: takes at least 3 operands, found 1", x);
    EXPECT(b, HLO_OP_COMPARE, NULL,
           "compare of f32[2,3] and f32[2,3]: needs the attribute 'direction'", x, y);
    EXPECT(b, HLO_OP_SELECT, NULL,
           "select of f32[2,3], f32[2,3] and f32[2,3]: operand 0 must be pred", x, x, x);
    EXPECT(b, HLO_OP_CONVERT, NULL, "convert of f32[2,3]: the shape of the result must be given",
           x);
}

static void a_transpose_keeps_the_bytes(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(2, 3, 4), NULL);
    hlo_instruction *y = operand(b, HLO_TYPE_F32, DIMS(2, 3, 4), ORDER(1, 2, 0));
    attrs list = {0}, swap = {0}, twice = {0}, few = {0};
    ints(b, &list, HLO_ATTR_DIMENSIONS, DIMS(2, 0, 1));
    ints(b, &swap, HLO_ATTR_DIMENSIONS, DIMS(1, 0, 2));
    ints(b, &twice, HLO_ATTR_DIMENSIONS, DIMS(1, 1, 2));
    ints(b, &few, HLO_ATTR_DIMENSIONS, DIMS(1, 0));
    EXPECT(b, HLO_OP_TRANSPOSE, &list, "f32[4,2,3]{0,2,1}", x);
    EXPECT(b, HLO_OP_TRANSPOSE, &swap, "f32[3,2,4]{0,2,1}", y);
    EXPECT(b, HLO_OP_TRANSPOSE, &twice, "transpose of f32[2,3,4]: dimension 1 is repeated", x);
    EXPECT(b, HLO_OP_TRANSPOSE, &few,
           "transpose of f32[2,3,4]: 'dimensions' has 2 elements, but the operand has rank 3", x);
}

static void movement(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(2, 3, 4), ORDER(0, 1, 2));
    hlo_instruction *y = operand(b, HLO_TYPE_F32, DIMS(2, 5, 4), NULL);
    hlo_instruction *huge = operand(b, HLO_TYPE_S8, DIMS(INT64_MAX), NULL);
    hlo_instruction *zero = operand(b, HLO_TYPE_F32, SCALAR, NULL);
    hlo_instruction *byte = operand(b, HLO_TYPE_S8, SCALAR, NULL);
    hlo_instruction *i = operand(b, HLO_TYPE_S32, SCALAR, NULL);
    attrs slice = {0}, past = {0}, inside = {0}, pad = {0}, shrink = {0}, more = {0}, along = {0},
          sizes = {0};
    ints(b, &slice, HLO_ATTR_SLICE, DIMS(0, 1, 1, 1, 3, 1, 0, 4, 3));
    ints(b, &past, HLO_ATTR_SLICE, DIMS(0, 1, 1, 1, 4, 1, 0, 4, 3));
    ints(b, &pad, HLO_ATTR_PADDING, DIMS(0, 1, 0, -1, 0, 0, 2, 2, 1));
    ints(b, &shrink, HLO_ATTR_PADDING, DIMS(-2, -1, 0, 0, 0, 0, 0, 0, 0));
    ints(b, &more, HLO_ATTR_PADDING, DIMS(1, 0, 0));
    ints(b, &inside, HLO_ATTR_PADDING, DIMS(0, 0, 0, 0, 0, -1, 0, 0, 0));
    ints(b, &along, HLO_ATTR_DIMENSIONS, DIMS(1));
    ints(b, &sizes, HLO_ATTR_DYNAMIC_SLICE_SIZES, DIMS(1, 3, 2));
    EXPECT(b, HLO_OP_SLICE, &slice, "f32[1,2,2]{2,1,0}", x);
    EXPECT(b, HLO_OP_SLICE, &past,
           "slice of f32[2,3,4]: [1:4:1] is not a valid range for dimension 1 of size 3", x);
    EXPECT(b, HLO_OP_PAD, &pad, "f32[3,2,11]{2,1,0}", x, zero);
    EXPECT(b, HLO_OP_PAD, &shrink, "f32[0,3,4]{2,1,0}", x, zero);
    EXPECT(b, HLO_OP_PAD, &more,
           "pad of s8[9223372036854775807] and s8[]: the padded size of dimension 0 is "
           "too large",
           huge, byte);
    EXPECT(b, HLO_OP_PAD, &inside,
           "pad of f32[2,3,4] and f32[]: the interior padding of dimension 1 is negative", x, zero);
    EXPECT(b, HLO_OP_CONCATENATE, &along, "f32[2,8,4]{2,1,0}", x, y);
    attrs first = {0};
    ints(b, &first, HLO_ATTR_DIMENSIONS, DIMS(0));
    EXPECT(b, HLO_OP_CONCATENATE, &first,
           "concatenate of f32[2,3,4] and f32[2,5,4]: operands 0 and 1 have different sizes in "
           "dimension 1",
           x, y);
    EXPECT(b, HLO_OP_CONCATENATE, &first,
           "concatenate of s8[9223372036854775807] and s8[9223372036854775807]: the result is too "
           "large",
           huge, huge);
    EXPECT(b, HLO_OP_REVERSE, &along, "f32[2,3,4]{0,1,2}", x);
    EXPECT(b, HLO_OP_DYNAMIC_SLICE, &sizes, "f32[1,3,2]{2,1,0}", x, i, i, i);
    EXPECT(b, HLO_OP_DYNAMIC_SLICE, &sizes,
           "dynamic-slice of f32[2,3,4], s32[] and s32[]: the operand has rank 3, but there are 2 "
           "start indices",
           x, i, i);
    EXPECT(b, HLO_OP_DYNAMIC_UPDATE_SLICE, NULL, "f32[2,5,4]{2,1,0}", y, x, i, i, i);
}

static void gathered_windows(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(9, 3, 4), NULL);
    hlo_instruction *rows = operand(b, HLO_TYPE_S32, DIMS(7, 1), NULL);
    attrs list = {0};
    ints(b, &list, HLO_ATTR_OFFSET_DIMS, DIMS(0, 2));
    ints(b, &list, HLO_ATTR_COLLAPSED_SLICE_DIMS, DIMS(0));
    ints(b, &list, HLO_ATTR_START_INDEX_MAP, DIMS(0));
    ints(b, &list, HLO_ATTR_SLICE_SIZES, DIMS(1, 3, 2));
    list.v[list.count++] = (hlo_attr){.id = HLO_ATTR_INDEX_VECTOR_DIM, .u.i = 1};
    EXPECT(b, HLO_OP_GATHER, &list, "f32[3,7,2]{2,1,0}", x, rows);
    list.v[list.count - 1].u.i = 2; /* two dimensions of indices, each a vector of one */
    EXPECT(b, HLO_OP_GATHER, &list, "f32[3,7,2,1]{3,2,1,0}", x, rows);
    list.v[list.count - 1].u.i = 0;
    EXPECT(b, HLO_OP_GATHER, &list,
           "gather of f32[9,3,4] and s32[7,1]: index vectors have length 7, but there are 1 "
           "indexed dimensions",
           x, rows);
}

static void dots(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_BF16, DIMS(8, 2, 3), ORDER(0, 1, 2));
    hlo_instruction *y = operand(b, HLO_TYPE_BF16, DIMS(3, 8, 5), NULL);
    hlo_instruction *q = operand(b, HLO_TYPE_F8E4M3FN, DIMS(2, 3), NULL);
    hlo_instruction *w = operand(b, HLO_TYPE_F8E4M3FN, DIMS(4, 5), NULL);
    attrs list = {0}, plain = {0}, far = {0}, both = {0};
    ints(b, &list, HLO_ATTR_LHS_BATCH_DIMS, DIMS(0));
    ints(b, &list, HLO_ATTR_RHS_BATCH_DIMS, DIMS(1));
    ints(b, &list, HLO_ATTR_LHS_CONTRACTING_DIMS, DIMS(2));
    ints(b, &list, HLO_ATTR_RHS_CONTRACTING_DIMS, DIMS(0));
    EXPECT(b, HLO_OP_DOT, &list, "bf16[8,2,5]{2,1,0}", x, y);
    ints(b, &plain, HLO_ATTR_LHS_CONTRACTING_DIMS, DIMS(1));
    ints(b, &plain, HLO_ATTR_RHS_CONTRACTING_DIMS, DIMS(0));
    EXPECT(b, HLO_OP_DOT, &plain,
           "dot of f8e4m3fn[2,3] and f8e4m3fn[4,5]: contracting dimension 1 of the left operand "
           "has size 3, but dimension 0 of the right operand has size 4",
           q, w);
    EXPECT(b, HLO_OP_DOT, NULL, "f8e4m3fn[2,3,4,5]{3,2,1,0}", q, w);
    ints(b, &far, HLO_ATTR_LHS_CONTRACTING_DIMS, DIMS(9));
    EXPECT(b, HLO_OP_DOT, &far,
           "dot of f8e4m3fn[2,3] and f8e4m3fn[4,5]: left contracting dimension 9 is out of range "
           "for rank 2",
           q, w);
    ints(b, &both, HLO_ATTR_LHS_CONTRACTING_DIMS, DIMS(0));
    ints(b, &both, HLO_ATTR_LHS_BATCH_DIMS, DIMS(0));
    EXPECT(b, HLO_OP_DOT, &both,
           "dot of f8e4m3fn[2,3] and f8e4m3fn[4,5]: dimension 0 of the left operand is both a "
           "batch and a contracting dimension",
           q, w);
    /* The HLO text may specify a wider result type. */
    hlo_instruction *pair[] = {q, q};
    const hlo_shape *wide = shape_of(b, HLO_TYPE_BF16, DIMS(2, 2), NULL);
    hlo_instruction *dot = hlo_instr_new(b->c, NULL, HLO_OP_DOT, wide, 2, pair, NULL);
    hlo_instr_set_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS, DIMS(1));
    hlo_instr_set_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS, DIMS(1));
    char why[256];
    uint32_t blamed;
    assert_true(hlo_infer_check(dot, b->m->arena, why, sizeof why, &blamed));
    dot->shape = shape_of(b, HLO_TYPE_BF16, DIMS(2, 3), NULL);
    assert_false(hlo_infer_check(dot, b->m->arena, why, sizeof why, &blamed));
    assert_string_equal(why, "dot of f8e4m3fn[2,3] and f8e4m3fn[2,3]: the inferred shape is "
                             "bf16[2,2], but the declared shape is bf16[2,3]");
}

static void reductions(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(2, 3, 4), ORDER(0, 1, 2));
    hlo_instruction *zero = operand(b, HLO_TYPE_F32, SCALAR, NULL);
    hlo_instruction *half = operand(b, HLO_TYPE_F16, SCALAR, NULL);
    attrs list = {0};
    ints(b, &list, HLO_ATTR_DIMENSIONS, DIMS(1));
    list.v[list.count++] =
        (hlo_attr){.id = HLO_ATTR_TO_APPLY, .u.comp = combiner(b, HLO_OP_ADD, HLO_TYPE_F32)};
    EXPECT(b, HLO_OP_REDUCE, &list, "f32[2,4]{1,0}", x, zero);
    EXPECT(b, HLO_OP_REDUCE, &list,
           "reduce of f32[2,3,4] and f16[]: initial value 0 and its array have different element "
           "types",
           x, half);
    EXPECT(b, HLO_OP_REDUCE, &list,
           "reduce of f32[2,3,4], f32[2,3,4] and f32[]: requires an even number of operands", x, x,
           zero);
    list.v[1].u.comp = combiner(b, HLO_OP_ADD, HLO_TYPE_F16);
    EXPECT(b, HLO_OP_REDUCE, &list,
           "reduce of f32[2,3,4] and f32[]: parameter 0 of %combine.1 is f16[], expected f32[]", x,
           zero);

    list.v[1].u.comp = combiner(b, HLO_OP_COMPARE, HLO_TYPE_F32);
    EXPECT(b, HLO_OP_SORT, &list, "f32[2,3,4]{0,1,2}", x);
    attrs apply = {1, {list.v[1]}};
    EXPECT(b, HLO_OP_MAP, &apply, "pred[2,3,4]{2,1,0}", x, x);
}

static void windows_are_parsed(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(1, 8), NULL);
    hlo_instruction *zero = operand(b, HLO_TYPE_F32, SCALAR, NULL);
    hlo_attrs *window = hlo_arena_zero(b->m->arena, sizeof *window + 4 * sizeof *window->v);
    window->count = 4;
    window->v[0] =
        (hlo_attr){.id = HLO_ATTR_SIZE, .u.ints = hlo_ints_new(b->m, 2, (int64_t[]){1, 3})};
    window->v[1] =
        (hlo_attr){.id = HLO_ATTR_STRIDE, .u.ints = hlo_ints_new(b->m, 2, (int64_t[]){1, 2})};
    window->v[2] =
        (hlo_attr){.id = HLO_ATTR_PAD, .u.ints = hlo_ints_new(b->m, 4, (int64_t[]){0, 0, -1, 4})};
    window->v[3] =
        (hlo_attr){.id = HLO_ATTR_RHS_DILATE, .u.ints = hlo_ints_new(b->m, 2, (int64_t[]){1, 2})};
    attrs list = {2,
                  {{.id = HLO_ATTR_WINDOW, .u.attrs = window},
                   {.id = HLO_ATTR_TO_APPLY, .u.comp = combiner(b, HLO_OP_ADD, HLO_TYPE_F32)}}};
    EXPECT(b, HLO_OP_REDUCE_WINDOW, &list, "f32[1,4]{1,0}", x, zero);
    window->v[0].u.ints = hlo_ints_new(b->m, 3, (int64_t[]){1, 3, 1});
    EXPECT(b, HLO_OP_REDUCE_WINDOW, &list,
           "reduce-window of f32[1,8] and f32[]: window size=1x3x1 does not have 2 dimensions", x,
           zero);
    window->v[0].u.ints = hlo_ints_new(b->m, 2, (int64_t[]){3, 1});
    EXPECT(b, HLO_OP_REDUCE_WINDOW, &list, "f32[0,6]{1,0}", x, zero);

    hlo_instruction *image = operand(b, HLO_TYPE_F32, DIMS(2, 8, 6), NULL);
    hlo_instruction *kernel = operand(b, HLO_TYPE_F32, DIMS(3, 6, 5), NULL);
    window->count = 1;
    window->v[0].u.ints = hlo_ints_new(b->m, 1, (int64_t[]){3});
    list.v[1] =
        (hlo_attr){.id = HLO_ATTR_DIM_LABELS, .u.str = hlo_intern_string(b->m, "b0f_0io->bf0")};
    EXPECT(b, HLO_OP_CONVOLUTION, &list, "f32[2,5,6]{2,1,0}", image, kernel);
    list.v[1].u.str = hlo_intern_string(b->m, "b0f_0io->b01f");
    EXPECT(b, HLO_OP_CONVOLUTION, &list,
           "convolution of f32[2,8,6] and f32[3,6,5]: dim_labels b0f_0io->b01f must name 3 "
           "dimensions of each array",
           image, kernel);
}

static void tuples_and_tokens(void **state) {
    bench *b = *state;
    hlo_instruction *x = operand(b, HLO_TYPE_F32, DIMS(2, 3), ORDER(0, 1));
    hlo_instruction *none = NULL;
    attrs list = {1, {{.id = HLO_ATTR_INDEX, .u.i = 1}}};
    EXPECT(b, HLO_OP_TUPLE, NULL, "(f32[2,3]{0,1}, f32[2,3]{0,1})", x, x);
    hlo_instruction *pair[] = {x, x};
    char text[64];
    const hlo_shape *shape = hlo_infer(b->m, HLO_OP_TUPLE, 2, pair, 0, NULL, NULL, 0);
    hlo_instruction *tuple = hlo_instr_new(b->c, NULL, HLO_OP_TUPLE, shape, 2, pair, NULL);
    EXPECT(b, HLO_OP_GET_TUPLE_ELEMENT, &list, "f32[2,3]{0,1}", tuple);
    list.v[0].u.i = 2;
    EXPECT(b, HLO_OP_GET_TUPLE_ELEMENT, &list,
           "get-tuple-element of (f32[2,3], f32[2,3]): the tuple has 2 elements, so index 2 is out "
           "of range",
           tuple);
    EXPECT(b, HLO_OP_ASYNC_UPDATE, NULL,
           "async-update of f32[2,3] and f32[2,3]: the operand must be a tuple ((operands), "
           "result, ...)",
           x, x);
    hlo_shape_format(hlo_infer(b->m, HLO_OP_AFTER_ALL, 0, &none, 0, NULL, NULL, 0), true, text,
                     sizeof text);
    assert_string_equal(text, "token[]");
    /* The buffer for the reason is optional; a long reason is truncated. */
    assert_null(hlo_infer(b->m, HLO_OP_NOT, 1, pair, 0, NULL, NULL, 0));
    assert_null(hlo_infer(b->m, HLO_OP_NOT, 1, pair, 0, NULL, text, 8));
    assert_string_equal(text, "not of ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(elementwise_keeps_the_first_operands_layout),
        TEST(a_transpose_keeps_the_bytes),
        TEST(movement),
        TEST(gathered_windows),
        TEST(dots),
        TEST(reductions),
        TEST(windows_are_parsed),
        TEST(tuples_and_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
