/* SPDX-License-Identifier: Apache-2.0 */
/* Generates products that gen_dot() does not create: some that the rewriter supports, such as
 * ragged and block-scaled ones, and others, such as library calls. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tests/random/module/gen.h"

typedef struct others {
    dice *dice;
    FILE *body, *called, *results, *shapes; /* entry; computations; result tuple */
    const char *wide;
    int parameters, values, fusions, count;
    int m, n, k, groups;
} others;

/* Writes an instruction. Returns the number of its value. */
static int emit(others *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int emit(others *o, const char *format, ...) {
    fprintf(o->body, "  %%v%d = ", o->values);
    va_list args;
    va_start(args, format);
    vfprintf(o->body, format, args);
    va_end(args);
    fputc('\n', o->body);
    return o->values++;
}

static int parameter2(others *o, const char *type, int rows, int columns) {
    return emit(o, "%s[%d,%d] parameter(%d)", type, rows, columns, o->parameters++);
}

static int parameter3(others *o, const char *type, int depth, int rows, int columns) {
    return emit(o, "%s[%d,%d,%d] parameter(%d)", type, depth, rows, columns, o->parameters++);
}

static void add_result(others *o, const char *shape, int value) {
    fprintf(o->shapes, o->count ? ", %s" : "%s", shape);
    fprintf(o->results, o->count ? ", %%v%d" : "%%v%d", value);
    o->count++;
}

static void add_matrix(others *o, const char *type, int value) {
    char shape[48];
    snprintf(shape, sizeof shape, "%s[%d,%d]", type, o->m, o->n);
    add_result(o, shape, value);
}

static const char *some_fp8(others *o) {
    return dice_chance(o->dice, 80) ? "f8e4m3fn" : "f8e5m2";
}

/* Creates a matrix of wide values converted from the type, scaled or not. */
static int dequantized(others *o, const char *type, int rows, int columns) {
    int stored = parameter2(o, type, rows, columns);
    int value = emit(o, "%s[%d,%d] convert(%%v%d)", o->wide, rows, columns, stored);
    if (dice_chance(o->dice, 40)) return value;
    int scale = emit(o, "%s[] parameter(%d)", o->wide, o->parameters++);
    scale = emit(o, "%s[%d,%d] broadcast(%%v%d), dimensions={}", o->wide, rows, columns, scale);
    return emit(o, "%s[%d,%d] multiply(%%v%d, %%v%d)", o->wide, rows, columns, value, scale);
}

static void add_dot(others *o, int a, int b) {
    add_matrix(o, o->wide,
               emit(o,
                    "%s[%d,%d] dot(%%v%d, %%v%d), lhs_contracting_dims={1}, "
                    "rhs_contracting_dims={1}",
                    o->wide, o->m, o->n, a, b));
}

static void quantized(others *o) {
    int a = dequantized(o, some_fp8(o), o->m, o->k);
    add_dot(o, a, dequantized(o, "f8e4m3fn", o->n, o->k));
}

/* Converts a parameter of a narrow type, and optionally subtracts a zero point, which need not be
 * an integer. */
static int shifted(others *o, const char *type) {
    static const char *const points[] = {"8", "-3", "0.5", "40"};
    int value =
        emit(o, "%s[%d,%d] convert(%%v%d)", o->wide, o->n, o->k, parameter2(o, type, o->n, o->k));
    if (dice_chance(o->dice, 50)) return value;
    int point = emit(o, "%s[] constant(%s)", o->wide, DICE_PICK(o->dice, points));
    point = emit(o, "%s[%d,%d] broadcast(%%v%d), dimensions={}", o->wide, o->n, o->k, point);
    return emit(o, "%s[%d,%d] subtract(%%v%d, %%v%d)", o->wide, o->n, o->k, value, point);
}

static void narrow(others *o) {
    static const char *const types[] = {"s4",       "u4",       "s2",       "u2",
                                        "f4e2m1fn", "f6e2m3fn", "f6e3m2fn", "s8"};
    int a = dequantized(o, some_fp8(o), o->m, o->k);
    const char *type = DICE_PICK(o->dice, types);
    bool scaled = dice_chance(o->dice, 40);
    if (dice_chance(o->dice, 20)) {
        a = dice_chance(o->dice, 50) ? a : parameter2(o, some_fp8(o), o->m, o->k);
        add_dot(o, a, parameter2(o, type, o->n, o->k));
        return;
    }
    add_dot(o, a, scaled ? dequantized(o, type, o->n, o->k) : shifted(o, type));
}

/* Writes a product with a scale for each block along the contracting dimension, on one side or on
 * both. */
static void blocks(others *o) {
    static const int lengths[] = {64, 256}, each[] = {8, 16, 32, 64};
    const int k = DICE_PICK(o->dice, lengths), rows[] = {o->m, o->n}, was = o->k;
    const bool both = dice_chance(o->dice, 50);
    int sides[2];
    o->k = k;
    for (int i = 0; i < 2; i++) {
        sides[i] = dequantized(o, i ? "f8e4m3fn" : some_fp8(o), rows[i], k);
        if (i && !both) continue;
        const int part = DICE_PICK(o->dice, each);
        int scale = parameter2(o, o->wide, rows[i], k / part);
        scale = emit(o, "%s[%d,%d,%d] broadcast(%%v%d), dimensions={0,1}", o->wide, rows[i],
                     k / part, part, scale);
        scale = emit(o, "%s[%d,%d] reshape(%%v%d)", o->wide, rows[i], k, scale);
        sides[i] =
            emit(o, "%s[%d,%d] multiply(%%v%d, %%v%d)", o->wide, rows[i], k, sides[i], scale);
    }
    if (o->m % 2 || o->n % 2 || dice_chance(o->dice, 70)) {
        add_dot(o, sides[0], sides[1]);
    } else { /* the rows are split into halves */
        char shape[48];
        for (int i = 0; i < 2; i++)
            sides[i] = emit(o, "%s[2,%d,%d] reshape(%%v%d)", o->wide, rows[i] / 2, k, sides[i]);
        snprintf(shape, sizeof shape, "%s[2,%d,%d]", o->wide, o->m / 2, o->n / 2);
        add_result(o, shape,
                   emit(o,
                        "%s dot(%%v%d, %%v%d), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                        "lhs_contracting_dims={2}, rhs_contracting_dims={2}",
                        shape, sides[0], sides[1]));
    }
    o->k = was;
}

/* Writes a fusion for some kernel generator, with a product of converted or of fp8 values. */
static void fusion(others *o) {
    static const char *const makers[] = {"", /* XLA's own generator */
                                         "",
                                         "",
                                         "__triton_gemm",
                                         "__triton_nested_gemm_fusion",
                                         "__cudnn$fusion",
                                         "__cudnn$fusion",
                                         "__onednn_fusion"};
    const char *maker = DICE_PICK(o->dice, makers), *type = some_fp8(o);
    const bool bare = dice_chance(o->dice, 25);
    int f = o->fusions++;
    fprintf(o->called,
            "%%fused%d {\n  %%a%d = %s[%d,%d] parameter(0)\n  %%b%d = f8e4m3fn[%d,%d] "
            "parameter(1)\n",
            f, f, type, o->m, o->k, f, o->n, o->k);
    if (!bare)
        fprintf(o->called,
                "  %%c%d = %s[%d,%d] convert(%%a%d)\n  %%d%d = %s[%d,%d] convert(%%b%d)\n", f,
                o->wide, o->m, o->k, f, f, o->wide, o->n, o->k, f);
    fprintf(o->called,
            "  ROOT %%e%d = %s[%d,%d] dot(%%%c%d, %%%c%d), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={1}\n}\n",
            f, o->wide, o->m, o->n, bare ? 'a' : 'c', f, bare ? 'b' : 'd', f);
    int a = parameter2(o, type, o->m, o->k), b = parameter2(o, "f8e4m3fn", o->n, o->k);
    char config[128] = "kind=kLoop";
    if (*maker)
        snprintf(config, sizeof config,
                 "kind=kCustom, backend_config={\"fusion_backend_config\":{\"kind\":\"%s\"}}",
                 maker);
    add_matrix(o, o->wide,
               emit(o, "%s[%d,%d] fusion(%%v%d, %%v%d), calls=%%fused%d, %s", o->wide, o->m, o->n,
                    a, b, f, config));
}

/* Creates an operand of a ragged-dot: fp8 without conversion, or times a factor for each index of
 * dimension `free`, or for all. */
static int ragged_operand(others *o, const char *type, const char *dims, int free, int size) {
    int value = emit(o, "%s[%s] parameter(%d)", type, dims, o->parameters++);
    if (dice_chance(o->dice, 30)) return value;
    value = emit(o, "%s[%s] convert(%%v%d)", o->wide, dims, value);
    const bool rows = dice_chance(o->dice, 60);
    char extent[16] = "", along[16] = "";
    if (rows) snprintf(extent, sizeof extent, "%d", size);
    if (rows) snprintf(along, sizeof along, "%d", free);
    int scale = emit(o, "%s[%s] parameter(%d)", o->wide, extent, o->parameters++);
    scale = emit(o, "%s[%s] broadcast(%%v%d), dimensions={%s}", o->wide, dims, scale, along);
    return emit(o, "%s[%s] multiply(%%v%d, %%v%d)", o->wide, dims, value, scale);
}

/* Writes a ragged-dot in each mode: groups of rows, of terms, of batches. */
static void ragged(others *o) {
    static const char *const attributes[] = {
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}",
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}, lhs_ragged_dims={0}"};
    const int mode = dice_below(o->dice, 3);
    char lhs[32], rhs[32], shape[48];
    if (mode == 2)
        snprintf(lhs, sizeof lhs, "3,%d,%d", o->m, o->k);
    else
        snprintf(lhs, sizeof lhs, "%d,%d", o->m, o->k);
    if (mode == 1)
        snprintf(rhs, sizeof rhs, "%d,%d", o->k, o->n);
    else
        snprintf(rhs, sizeof rhs, "%d,%d,%d", mode ? 3 : o->groups, o->k, o->n);
    const char *type = dice_chance(o->dice, 20) ? "f8e4m3fn" : o->wide;
    if (mode == 0)
        snprintf(shape, sizeof shape, "%s[%d,%d]", type, o->m, o->n);
    else
        snprintf(shape, sizeof shape, "%s[%d,%d,%d]", type, mode == 1 ? o->groups : 3, o->m, o->n);
    int a = ragged_operand(o, some_fp8(o), lhs, 0, mode == 2 ? 3 : o->m);
    int b = ragged_operand(o, "f8e4m3fn", rhs, mode == 1,
                           mode == 0   ? o->groups
                           : mode == 1 ? o->n
                                       : 3);
    int sizes = emit(o, "s32[%d] parameter(%d)", o->groups, o->parameters++);
    add_result(
        o, shape,
        emit(o, "%s ragged-dot(%%v%d, %%v%d, %%v%d), %s", shape, a, b, sizes, attributes[mode]));
}

/* A matmul with an 8-bit scale for each block: MXFP8, NVFP4, or another combination of types. */
typedef struct scaled {
    bool written; /* true if it is written as plain HLO */
    int batch;    /* number of batches; 0: matrices without a batch dimension */
    const char *types[2], *scale;
    int k, each; /* contracting size; number of elements that share a scale */
} scaled;

/* Writes the shape of an operand or of its scales: the batches, the rows, and `columns`. */
static void block_shape(const scaled *b, const char *type, int rows, const char *columns,
                        char out[64]) {
    char batch[8] = "";
    if (b->batch) snprintf(batch, sizeof batch, "%d,", b->batch);
    snprintf(out, 64, "%s[%s%d,%s]", type, batch, rows, columns);
}

/* Creates values times the scales of their blocks, optionally multiplied or divided by a scalar. */
static int dequantized_blocks(others *o, const scaled *b, const char *type, int value, int scale,
                              int rows) {
    const bool apart = dice_chance(o->dice, 50);
    const char *along = b->batch ? "0,1,2" : "0,1";
    char columns[16], blocks[24], steps[16], whole[64], parts[64], few[64], stored[64];
    snprintf(columns, sizeof columns, "%d", b->k);
    snprintf(blocks, sizeof blocks, "%d,%d", b->k / b->each, b->each);
    snprintf(steps, sizeof steps, "%d", b->k / b->each);
    block_shape(b, o->wide, rows, columns, whole);
    block_shape(b, o->wide, rows, blocks, parts);
    block_shape(b, o->wide, rows, steps, few);
    block_shape(b, type, rows, blocks, stored);
    if (apart) value = emit(o, "%s reshape(%%v%d)", stored, value);
    value = emit(o, "%s convert(%%v%d)", apart ? parts : whole, value);
    if (scale >= 0) {
        scale = emit(o, "%s convert(%%v%d)", few, scale);
        scale = emit(o, "%s broadcast(%%v%d), dimensions={%s}", parts, scale, along);
        if (!apart) scale = emit(o, "%s reshape(%%v%d)", whole, scale);
        value = emit(o, "%s multiply(%%v%d, %%v%d)", apart ? parts : whole, value, scale);
    }
    if (apart) value = emit(o, "%s reshape(%%v%d)", whole, value);
    if (dice_chance(o->dice, 50)) return value;
    scale = emit(o, "%s[] parameter(%d)", o->wide, o->parameters++);
    scale = emit(o, "%s broadcast(%%v%d), dimensions={}", whole, scale);
    return emit(o, "%s %s(%%v%d, %%v%d)", whole, dice_chance(o->dice, 50) ? "multiply" : "divide",
                value, scale);
}

static scaled draw_scaled(others *o) {
    static const char *const narrow[] = {"f8e4m3fn", "f8e4m3fn", "f8e4m3fn", "f8e5m2", "f4e2m1fn"};
    static const int blocks[] = {32, 32, 64, 16};
    const bool fp4 = dice_chance(o->dice, 35);
    scaled b = {.written = dice_chance(o->dice, 50),
                .batch = dice_chance(o->dice, 25) ? 3 : 0,
                .types = {"f4e2m1fn", "f4e2m1fn"},
                .scale = "f8e4m3fn",
                .k = 64,
                .each = 16};
    if (fp4) return b;
    for (int i = 0; i < 2; i++) b.types[i] = DICE_PICK(o->dice, narrow);
    if (!b.written && dice_chance(o->dice, 8)) b.types[1] = "bf16";
    b.scale = dice_chance(o->dice, 95) ? "f8e8m0fnu" : "f8e4m3fn";
    b.each = DICE_PICK(o->dice, blocks);
    return b;
}

static void scaled_product(others *o) {
    const scaled b = draw_scaled(o);
    const int rows[] = {o->m, o->n}, bare = dice_chance(o->dice, 20) || *b.types[1] == 'b';
    const char *batched = b.batch ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "";
    char columns[16], steps[16], shape[64];
    int v[4] = {0}, count = 0;
    snprintf(columns, sizeof columns, "%d", b.k);
    for (int i = 0; i < 2; i++, count++) {
        block_shape(&b, b.types[i], rows[i], columns, shape);
        v[count] = emit(o, "%s parameter(%d)", shape, o->parameters++);
    }
    snprintf(steps, sizeof steps, "%d", b.k / b.each);
    for (int i = 0; i < 2 - bare; i++, count++) {
        block_shape(&b, b.scale, rows[i], steps, shape);
        v[count] = emit(o, "%s parameter(%d)", shape, o->parameters++);
    }
    snprintf(columns, sizeof columns, "%d", o->n);
    const char *type = b.written || dice_chance(o->dice, 90) ? o->wide : "f16";
    block_shape(&b, type, o->m, columns, shape);
    if (!b.written && (bare || dice_chance(o->dice, 50))) {
        char scales[40] = "";
        if (!bare) snprintf(scales, sizeof scales, ", %%v%d", v[3]);
        add_result(o, shape,
                   emit(o,
                        "%s custom-call(%%v%d, %%v%d, %%v%d%s), "
                        "custom_call_target=\"__op$block_scaled_dot\"",
                        shape, v[0], v[1], v[2], scales));
        return;
    }
    if (b.written)
        for (int i = 0; i < 2; i++)
            v[i] = dequantized_blocks(o, &b, b.types[i], v[i], i && bare ? -1 : v[2 + i], rows[i]);
    char operands[48];
    snprintf(operands, sizeof operands, b.written ? "%%v%d, %%v%d" : "%%v%d, %%v%d, %%v%d, %%v%d",
             v[0], v[1], v[2], v[3]);
    const int last = b.batch ? 2 : 1;
    add_result(o, shape,
               emit(o, "%s %s(%s), %slhs_contracting_dims={%d}, rhs_contracting_dims={%d}", shape,
                    b.written ? "dot" : "scaled-dot", operands, batched, last, last));
}

/* Writes a convolution with one or two fp8 operands. Windows have one element, cover the whole
 * input, or are adjacent, overlapping or padded. */
static void convolution(others *o) {
    static const struct {
        int size, stride, pad; /* size 0: the whole input */
    } windows[] = {{1, 1, 0}, {1, 2, 0}, {1, 3, -1}, {0, 1, 0},
                   {2, 2, 0}, {3, 5, 0}, {2, 1, 0},  {2, 2, 1}};
    static const char *const labels[] = {"b0f_0io->b0f", "b0f_0io->0bf", "b0f_0io->fb0"};
    const int form = dice_below(o->dice, sizeof windows / sizeof *windows);
    const int order = dice_below(o->dice, sizeof labels / sizeof *labels);
    const int size = windows[form].size ? windows[form].size : o->m, stride = windows[form].stride,
              pad = windows[form].pad, out = (o->m + 2 * pad - size) / stride + 1;
    const char *type = dice_chance(o->dice, 70) ? some_fp8(o) : o->wide;
    const int groups = o->k % 2 || o->n % 2 || dice_chance(o->dice, 70) ? 1 : 2;
    const int summed = o->k / groups;
    int a = parameter3(o, type, 2, o->m, o->k), b = parameter3(o, "f8e4m3fn", size, summed, o->n);
    char shape[48];
    if (order == 0) snprintf(shape, sizeof shape, "%s[2,%d,%d]", o->wide, out, o->n);
    if (order == 1) snprintf(shape, sizeof shape, "%s[%d,2,%d]", o->wide, out, o->n);
    if (order == 2) snprintf(shape, sizeof shape, "%s[%d,2,%d]", o->wide, o->n, out);
    a = emit(o, "%s[2,%d,%d] convert(%%v%d)", o->wide, o->m, o->k, a);
    b = emit(o, "%s[%d,%d,%d] convert(%%v%d)", o->wide, size, summed, o->n, b);
    add_result(o, shape,
               emit(o,
                    "%s convolution(%%v%d, %%v%d), window={size=%d stride=%d pad=%d_%d}, "
                    "dim_labels=%s, feature_group_count=%d",
                    shape, a, b, size, stride, pad, pad, labels[order], groups));
}

/* Writes a wide library call that could have been FP8. */
static void library(others *o) {
    int a = parameter2(o, "bf16", o->m, o->k), b = parameter2(o, "bf16", o->n, o->k);
    int call = emit(o,
                    "(bf16[%d,%d], s8[1024]) custom-call(%%v%d, %%v%d), "
                    "custom_call_target=\"__cublas$lt$matmul\", backend_config={"
                    "\"gemm_backend_config\":{\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,"
                    "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
                    "\"rhs_contracting_dimensions\":[\"1\"],\"lhs_batch_dimensions\":[],"
                    "\"rhs_batch_dimensions\":[]},\"epilogue\":\"DEFAULT\"}}",
                    o->m, o->n, a, b);
    add_matrix(o, "bf16",
               emit(o, "bf16[%d,%d] get-tuple-element(%%v%d), index=0", o->m, o->n, call));
}

/* Writes calls of CPU libraries. */
static void cpu_call(others *o) {
    static const char *const targets[] = {"__onednn$matmul", "__xla_cpu_runtime_EigenMatMulF32"};
    int a = parameter2(o, "f32", o->m, o->k), b = parameter2(o, "f32", o->k, o->n);
    add_matrix(o, "f32",
               emit(o, "f32[%d,%d] custom-call(%%v%d, %%v%d), custom_call_target=\"%s\"", o->m,
                    o->n, a, b, DICE_PICK(o->dice, targets)));
}

static void attention(others *o) {
    char shape[48];
    snprintf(shape, sizeof shape, "bf16[2,%d,4,%d]", o->m, o->k);
    int v[3];
    for (int i = 0; i < 3; i++) v[i] = emit(o, "%s parameter(%d)", shape, o->parameters++);
    int call = emit(o,
                    "(%s, u8[0]) custom-call(%%v%d, %%v%d, %%v%d), "
                    "custom_call_target=\"__cudnn$fmhaSoftmax\", "
                    "backend_config={\"cudnn_fmha_backend_config\":{\"intermediate_tensor_shape\":"
                    "{\"element_type\":\"BF16\",\"dimensions\":[\"2\",\"4\",\"%d\",\"%d\"]}}}",
                    shape, v[0], v[1], v[2], o->m, o->m);
    add_result(o, shape, emit(o, "%s get-tuple-element(%%v%d), index=0", shape, call));
}

/* Makes the number of an operand's rows dynamic. */
static void dynamic(others *o) {
    char rows[32], shape[48];
    snprintf(rows, sizeof rows, "[<=%d,%d]", o->m, o->k);
    snprintf(shape, sizeof shape, "%s[<=%d,%d]", o->wide, o->m, o->n);
    int a = emit(o, "%s%s parameter(%d)", some_fp8(o), rows, o->parameters++);
    a = emit(o, "%s%s convert(%%v%d)", o->wide, rows, a);
    int b = dequantized(o, "f8e4m3fn", o->n, o->k);
    add_result(o, shape,
               emit(o, "%s dot(%%v%d, %%v%d), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
                    shape, a, b));
}

/* Writes a product that exceeds any memory after padding. */
static void huge(others *o) {
    char shape[48];
    const int64_t n = INT64_C(1) << 58;
    int a = parameter2(o, some_fp8(o), 1, 16);
    int b = emit(o, "f8e4m3fn[%" PRId64 ",16] parameter(%d)", n, o->parameters++);
    snprintf(shape, sizeof shape, "f32[1,%" PRId64 "]", n);
    add_result(o, shape,
               emit(o, "%s dot(%%v%d, %%v%d), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
                    shape, a, b));
}

char *random_others(dice *d) {
    static const char *const wides[] = {"f32", "bf16", "f16"};
    static const int sizes[] = {16, 32, 48, 17};
    static void (*const kinds[])(others *) = {
        quantized,   narrow,         blocks,         fusion,  ragged,
        convolution, scaled_product, scaled_product, /* supported by the rewriter */
        cpu_call,    attention,      library,        dynamic, huge /* and not supported */};
    const size_t all = sizeof kinds / sizeof *kinds, running = 8;
    char *parts[4] = {0}, *text = NULL;
    size_t size[5];
    others o = {.dice = d, .wide = DICE_PICK(d, wides)};
    FILE **files[] = {&o.body, &o.called, &o.results, &o.shapes};
    for (int i = 0; i < 4; i++)
        if (!(*files[i] = open_memstream(&parts[i], &size[i]))) abort();
    bool runs = dice_chance(d, 40);
    for (int i = 1 + dice_below(d, 5); i > 0; i--) {
        o.m = DICE_PICK(d, sizes), o.n = DICE_PICK(d, sizes), o.k = DICE_PICK(d, sizes);
        o.groups = 1 + dice_below(d, 4);
        kinds[dice_below(d, runs ? running : all)](&o);
    }
    for (int i = 0; i < 4; i++) fclose(*files[i]);
    FILE *out = open_memstream(&text, &size[4]);
    if (!out) abort();
    fprintf(out, "HloModule others\n%sENTRY %%entry {\n%s  ROOT %%all = (%s) tuple(%s)\n}\n",
            parts[1], parts[0], parts[3], parts[2]);
    fclose(out);
    for (int i = 0; i < 4; i++) free(parts[i]);
    return text;
}
