/* SPDX-License-Identifier: Apache-2.0 */
/* Adds rare forms to a module. */
#include <string.h>

#include "tests/random/module/gen.h"

enum { BLOCK = 128, LONG = 2 * BLOCK };

static array stored(gen *g, const char *type, int rows, int columns) {
    const int dims[] = {rows, columns};
    array a = gen_parameter(g, 'p', gen_shape("f8e4m3fn", 2, dims));
    return gen_convert(g, a, type);
}

/* Writes a dot of operands whose last dimension is contracted. */
static array multiplied(gen *g, array a, array b) {
    const int dims[] = {a.dims[0], b.dims[0]};
    return gen_emit(g, gen_shape(a.type, 2, dims),
                    "dot(%s, %s), lhs_contracting_dims={1}, rhs_contracting_dims={1}", a.name,
                    b.name);
}

static array plain(gen *g, const char *type) {
    static const int sizes[] = {16, 32, 48};
    array a = stored(g, type, DICE_PICK(&g->dice, sizes), 32);
    return multiplied(g, a, stored(g, type, DICE_PICK(&g->dice, sizes), 32));
}

static array times_vector(gen *g, array v, int along) {
    array s = gen_parameter(g, 'm', gen_shape(v.type, 1, v.dims + along));
    s = gen_emit(g, v, "broadcast(%s), dimensions={%d}", s.name, along);
    return gen_binary(g, "multiply", v, s, true);
}

static void give_fp8(gen *g, array v) {
    gen_result(g, gen_convert(g, gen_clamped(g, v, 448), "f8e4m3fn"));
}

/* Multiplies by a scale for each run of 128 in a row, or for 128 rows of such runs. */
static array times_blocks(gen *g, array v, bool square) {
    const int rows = v.dims[0], runs = v.dims[1] / BLOCK;
    const int few[] = {square ? rows / BLOCK : rows, runs};
    const int squares[] = {few[0], BLOCK, runs, BLOCK}, strips[] = {rows, runs, BLOCK};
    array s = gen_parameter(g, 'm', gen_shape(v.type, 2, few));
    array wide = square ? gen_shape(v.type, 4, squares) : gen_shape(v.type, 3, strips);
    wide = gen_emit(g, wide, "broadcast(%s), dimensions={%s}", s.name, square ? "0,2" : "0,1");
    s = gen_emit(g, v, "reshape(%s)", wide.name);
    return gen_binary(g, "multiply", v, s, true);
}

static void blocks(gen *g) {
    const int which = dice_below(&g->dice, 3); /* the side with square blocks; 2: neither */
    array a = stored(g, g->wide, which == 0 ? LONG : 16, LONG);
    array b = stored(g, g->wide, which == 1 ? LONG : 32, LONG);
    a = times_blocks(g, a, which == 0);
    array d = multiplied(g, a, times_blocks(g, b, which == 1));
    if (dice_chance(&g->dice, 40)) {
        gen_epilogue(g, d);
        return;
    }
    if (dice_chance(&g->dice, 60)) {
        array zeros = gen_splat(g, gen_constant(g, d.type, 0), d);
        d = gen_binary(g, "maximum", d, zeros, true);
    }
    if (dice_chance(&g->dice, 35))
        give_fp8(g, d);
    else
        gen_result(g, d);
}

static array batch(gen *g, int rows, int columns) {
    const int dims[] = {2, rows, columns};
    array a = gen_parameter(g, 'p', gen_shape("f8e4m3fn", 3, dims));
    return gen_convert(g, a, g->wide);
}

static array multiplied_batches(gen *g, array a, array b, const char *order) {
    const int dims[] = {a.dims[0], a.dims[1], b.dims[1]};
    g->order = order;
    a = gen_emit(g, gen_shape(a.type, 3, dims),
                 "dot(%s, %s), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
                 "rhs_contracting_dims={2}",
                 a.name, b.name);
    g->order = NULL;
    return a;
}

/* Creates a batched dot with a scale for each run of 128 in each row of each matrix. */
static void batched_blocks(gen *g) {
    array a = batch(g, 16, LONG), b = batch(g, 32, LONG);
    const int runs[] = {2, 16, 2, BLOCK};
    array s = gen_parameter(g, 'm', gen_shape(g->wide, 3, runs));
    s = gen_emit(g, gen_shape(g->wide, 4, runs), "broadcast(%s), dimensions={0,1,2}", s.name);
    s = gen_emit(g, a, "reshape(%s)", s.name);
    gen_result(g, multiplied_batches(g, gen_binary(g, "multiply", a, s, true), b, NULL));
}

static void batch_within(gen *g) {
    static const char *const orders[] = {"0,2,1", "0,1,2"};
    array a = batch(g, 16, 32), b = batch(g, 32, 32);
    gen_result(g, multiplied_batches(g, a, b, DICE_PICK(&g->dice, orders)));
}

/* Adds a bias along the dimension that is not contiguous. */
static void bias_across(gen *g) {
    array a = stored(g, g->wide, 16, 32), b = stored(g, g->wide, 48, 32);
    array bias = gen_parameter(g, 'p', gen_shape(g->wide, 1, b.dims));
    g->order = "0,1";
    array d = multiplied(g, a, b);
    array v = gen_emit(g, d, "broadcast(%s), dimensions={1}", bias.name);
    d = gen_binary(g, "add", d, v, true);
    g->order = NULL;
    gen_result(g, d);
}

static void rows(gen *g) {
    array d = times_vector(g, plain(g, g->wide), dice_below(&g->dice, 2));
    if (dice_chance(&g->dice, 50)) d = times_vector(g, d, dice_below(&g->dice, 2));
    gen_result(g, d);
}

static void sliced(gen *g) {
    array d = plain(g, g->wide), cut = d;
    cut.dims[0] -= 2;
    cut = gen_emit(g, cut, "slice(%s), slice={[0:%d], [0:%d]}", d.name, cut.dims[0], cut.dims[1]);
    gen_result(g, gen_amax(g, cut, -1));
    give_fp8(g, cut);
}

static void scaled_by_itself(gen *g) {
    array d = plain(g, g->wide), most = gen_amax(g, d, -1);
    array s = gen_binary(g, "divide", gen_constant(g, d.type, 448), most, false);
    give_fp8(g, gen_binary(g, "multiply", d, gen_splat(g, s, d), true));
    gen_result(g, most);
}

static void gelu_observed(gen *g) {
    array d = plain(g, g->wide);
    gen_result(g, d);
    give_fp8(g, gen_gelu(g, d));
}

static void wide_bias(gen *g) {
    array d = plain(g, "f32");
    array v = gen_parameter(g, 'p', gen_shape("f32", 1, d.dims + 1));
    v = gen_emit(g, d, "broadcast(%s), dimensions={1}", v.name);
    gen_result(g, gen_binary(g, "add", d, v, true));
}

/* Makes the output scale the result of a side effect that runs after the amax, unless there are
 * several devices. */
static void effect(gen *g) {
    array d = plain(g, g->wide);
    gen_result(g, gen_amax(g, d, -1));
    array s = gen_parameter(g, 'm', gen_shape(d.type, 0, NULL));
    if (!g->devices)
        s = gen_emit(g, s,
                     "custom-call(%s), custom_call_target=\"watch\", "
                     "custom_call_has_side_effect=true",
                     s.name);
    give_fp8(g, gen_binary(g, "multiply", d, gen_splat(g, s, d), true));
}

static void converted_relu(gen *g) {
    array d = gen_convert(g, plain(g, "bf16"), "f32");
    array zeros = gen_splat(g, gen_constant(g, "f32", 0), d);
    gen_result(g, gen_convert(g, gen_binary(g, "maximum", d, zeros, true), "bf16"));
}

static void copied(gen *g) {
    array d = plain(g, g->wide);
    d = gen_emit(g, d, "copy(%s)", d.name);
    gen_result(g, gen_emit(g, d, "copy(%s)", d.name));
}

/* A narrow type, the numbers at the ends of its range, and, for a matmul of such values, the type
 * of scales and the number of elements that share a scale. */
typedef struct narrow {
    const char *type;
    double largest, least, subnormal;
    const char *scales;
    int run;
} narrow;

/* Draws a constant, which the type may or may not represent. */
static array fill(gen *g, const char *type, const narrow *n) {
    const char *const words[] = {"0", "-0", "nan", "-nan", "inf", "-inf", "1", "-1.5", "3.0625"};
    const double edges[] = {n->largest,   -n->largest,      n->largest * 2, n->least,
                            n->subnormal, n->subnormal / 2, -n->subnormal};
    array scalar = gen_shape(type, 0, NULL);
    if (dice_chance(&g->dice, 65))
        return gen_emit(g, scalar, "constant(%s)", DICE_PICK(&g->dice, words));
    return gen_emit(g, scalar, "constant(%.17g)", DICE_PICK(&g->dice, edges));
}

/* Fills a part of the value with a constant by a pad, a select or a concatenate. */
static array filled(gen *g, array v, const narrow *n) {
    array part = v, rest = v, scalar = fill(g, v.type, n), mask = v;
    mask.type = "pred";
    const int rows = dice_chance(&g->dice, 50) ? v.dims[0] / 2 : v.dims[0] - 1;
    part.dims[0] = rows;
    rest.dims[0] = v.dims[0] - rows;
    switch (dice_below(&g->dice, 4)) {
    case 0:
        part = gen_emit(g, part, "slice(%s), slice={[0:%d],[0:%d]}", v.name, rows, v.dims[1]);
        return gen_emit(g, v, "pad(%s, %s), padding=0_%dx0_0", part.name, scalar.name,
                        rest.dims[0]);
    case 1:
        part = gen_emit(g, part, "slice(%s), slice={[0:%d],[0:%d]}", v.name, rows, v.dims[1]);
        rest = gen_splat(g, scalar, rest);
        return gen_emit(g, v, "concatenate(%s, %s), dimensions={0}", part.name, rest.name);
    case 2:
        rest = v;
        rest.dims[1] = n->run;
        part = v;
        part.dims[1] -= n->run;
        part =
            gen_emit(g, part, "slice(%s), slice={[0:%d],[0:%d]}", v.name, v.dims[0], part.dims[1]);
        rest = gen_splat(g, scalar, rest);
        return gen_emit(g, v, "concatenate(%s, %s), dimensions={1}", part.name, rest.name);
    default: break;
    }
    mask = gen_parameter(g, 'p', mask);
    rest = gen_splat(g, scalar, v);
    const bool first = dice_chance(&g->dice, 50);
    return gen_emit(g, v, "select(%s, %s, %s)", mask.name, first ? v.name : rest.name,
                    first ? rest.name : v.name);
}

/* Creates an operand of a dot with narrow values, which are filled in their type, in f8e4m3fn, in
 * the wide type, or after the scale. */
static array filled_operand(gen *g, const narrow *n, int rows, int kind) {
    const int dims[] = {rows, 4 * n->run}, few[] = {rows, 4}, runs[] = {rows, 4, n->run};
    array v = gen_parameter(g, 'p', gen_shape(n->type, 2, dims));
    if (dice_chance(&g->dice, 35)) v = filled(g, v, n);
    if (dice_chance(&g->dice, 30)) {
        v = gen_convert(g, v, "f8e4m3fn");
        if (dice_chance(&g->dice, 70)) v = filled(g, v, n);
    }
    v = gen_convert(g, v, g->wide);
    if (dice_chance(&g->dice, 45)) v = filled(g, v, n);
    if (!kind) return v;
    array s;
    if (kind == 1) {
        s = gen_splat(g, gen_parameter(g, 'm', gen_shape(g->wide, 0, NULL)), v);
    } else if (kind == 2) {
        s = gen_parameter(g, 'm', gen_shape(g->wide, 1, dims));
        s = gen_emit(g, v, "broadcast(%s), dimensions={0}", s.name);
    } else {
        s = gen_convert(g, gen_parameter(g, 'm', gen_shape(n->scales, 2, few)), g->wide);
        s = gen_emit(g, gen_shape(g->wide, 3, runs), "broadcast(%s), dimensions={0,1}", s.name);
        s = gen_emit(g, v, "reshape(%s)", s.name);
    }
    v = gen_binary(g, "multiply", v, s, true);
    if (dice_chance(&g->dice, 40)) v = filled(g, v, n);
    if (dice_chance(&g->dice, 15)) {
        array zeros = gen_splat(g, gen_constant(g, v.type, 0), v);
        v = gen_binary(g, "maximum", v, zeros, true);
    }
    return v;
}

static void fills(gen *g) {
    static const narrow types[] = {{"f4e2m1fn", 6, 1, 0.5, "f8e4m3fn", 16},
                                   {"f4e2m1fn", 6, 1, 0.5, "f8e8m0fnu", 32},
                                   {"f6e2m3fn", 7.5, 1, 0.125, "f8e8m0fnu", 32},
                                   {"f6e3m2fn", 28, 0.25, 0.0625, "f8e8m0fnu", 32},
                                   {"f8e3m4", 15.5, 0.25, 0x1p-6, "f8e8m0fnu", 32},
                                   {"f8e4m3", 240, 0x1p-6, 0x1p-9, "f8e8m0fnu", 32},
                                   {"f8e4m3b11fnuz", 30, 0x1p-10, 0x1p-13, "f8e8m0fnu", 32},
                                   {"f8e4m3fn", 448, 0x1p-6, 0x1p-9, "f8e8m0fnu", 32},
                                   {"f8e4m3fn", 448, 0x1p-6, 0x1p-9, "f32", 128},
                                   {"f8e4m3fnuz", 240, 0x1p-7, 0x1p-10, "f8e8m0fnu", 32},
                                   {"f8e5m2", 57344, 0x1p-14, 0x1p-16, "f8e8m0fnu", 32},
                                   {"f8e5m2fnuz", 57344, 0x1p-15, 0x1p-17, "f8e8m0fnu", 32},
                                   {"f8e8m0fnu", 0x1p127, 0x1p-127, 0x1p-127, "f8e8m0fnu", 32},
                                   {"s4", 7, 1, 1, "f8e8m0fnu", 32},
                                   {"u4", 15, 1, 1, "f8e8m0fnu", 32}};
    const narrow *n = &DICE_PICK(&g->dice, types);
    const int kind = dice_below(&g->dice, 2) ? 3 : dice_below(&g->dice, 3);
    array a = filled_operand(g, n, 16, kind);
    gen_result(g, multiplied(g, a, filled_operand(g, n, 32, kind)));
}

void gen_rare(gen *g) {
    static const struct {
        void (*make)(gen *);
        int often;
    } kinds[] = {{blocks, 12},        {rows, 5},           {wide_bias, 5},    {gelu_observed, 5},
                 {sliced, 2},         {effect, 3},         {copied, 2},       {scaled_by_itself, 2},
                 {converted_relu, 2}, {batched_blocks, 4}, {batch_within, 2}, {bias_across, 2},
                 {fills, 14}};
    int at = dice_below(&g->dice, 60), kind = 0;
    while (at >= kinds[kind].often) at -= kinds[kind++].often;
    kinds[kind].make(g);
}
