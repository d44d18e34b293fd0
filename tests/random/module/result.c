/* SPDX-License-Identifier: Apache-2.0 */
/* Generates users of a product: bias, activation, scale, clamp, amax. */
#include <math.h>
#include <string.h>

#include "tests/random/module/gen.h"

static array step_bias(gen *g, array v) {
    if (!v.rank) return v;
    bool wrong = dice_chance(&g->dice, 15);
    int at = wrong ? dice_below(&g->dice, (size_t)v.rank) : v.rank - 1;
    static const char *const types[] = {"bf16", "f16", "f32"};
    const char *type = dice_chance(&g->dice, 60) ? v.type : DICE_PICK(&g->dice, types);
    array row = gen_shape(type, 1, v.dims + at);
    if (dice_chance(&g->dice, 12)) {
        const int kept[] = {1, row.dims[0]};
        array flat = gen_parameter(g, 'p', gen_shape(type, 2, kept));
        row = gen_emit(g, row, "reshape(%s)", flat.name);
    } else if (dice_chance(&g->dice, 12)) {
        row = gen_splat(g, gen_parameter(g, 'p', gen_shape(type, 0, NULL)), row);
    } else {
        row = dice_chance(&g->dice, 6) ? gen_bits(g, row) : gen_parameter(g, 'p', row);
    }
    row = gen_convert(g, row, v.type);
    row = gen_emit(g, v, "broadcast(%s), dimensions={%d}", row.name, at);
    if (dice_chance(&g->dice, 8)) return gen_binary(g, "subtract", v, row, true);
    return gen_binary(g, "add", v, row, true);
}

static array step_relu(gen *g, array v) {
    static const double others[] = {0.25, 0.25, -0.0};
    double zero = dice_chance(&g->dice, 88) ? 0 : DICE_PICK(&g->dice, others);
    if (dice_chance(&g->dice, 6))
        return gen_emit(g, v, "clamp(%s, %s, %s)", gen_constant(g, v.type, zero).name, v.name,
                        gen_constant(g, v.type, dice_chance(&g->dice, 50) ? INFINITY : 6).name);
    return gen_binary(g, "maximum", v, gen_splat(g, gen_constant(g, v.type, zero), v), true);
}

/* Returns `v`, or a value of its shape that is computed from it. */
static array made_of(gen *g, array v) {
    switch (dice_below(&g->dice, 4)) {
    case 0: return v;
    case 1: return step_relu(g, v);
    case 2: return gen_splat(g, gen_amax(g, v, -1), v);
    default: break;
    }
    if (!v.rank) return v;
    array row = gen_amax(g, v, v.rank - 1);
    return gen_emit(g, v, "broadcast(%s), dimensions={%d}", row.name, v.rank - 1);
}

static array step_addend(gen *g, array v) {
    for (int i = 0; i < g->products.count; i++) {
        array other = g->products.v[i];
        if (!strcmp(other.type, v.type) && other.rank == v.rank && strcmp(other.name, v.name) &&
            !memcmp(other.dims, v.dims, (size_t)v.rank * sizeof v.dims[0]) &&
            dice_chance(&g->dice, 50))
            return gen_binary(g, "add", v, other, true);
    }
    if (dice_chance(&g->dice, 12)) return gen_binary(g, "add", v, made_of(g, v), true);
    array c = v;
    if (dice_chance(&g->dice, 20)) c.type = gen_wide_type(g);
    c = gen_convert(g, gen_parameter(g, 'p', c), v.type);
    return gen_binary(g, "add", v, c, true);
}

/* Applies a step to a value in another type, with converts before and after. */
static array converted(gen *g, array v, array (*step)(gen *, array)) {
    array w = step(g, gen_convert(g, v, gen_wide_type(g)));
    return gen_convert(g, w, dice_chance(&g->dice, 90) ? v.type : gen_wide_type(g));
}

static array times(gen *g, array v, double factor) {
    return gen_binary(g, "multiply", v, gen_splat(g, gen_constant(g, v.type, factor), v), true);
}

static array product(gen *g, array a, array b) {
    return gen_binary(g, "multiply", a, b, true);
}

static array plus(gen *g, array v, double number) {
    return gen_binary(g, "add", v, gen_splat(g, gen_constant(g, v.type, number), v), true);
}

/* Computes the operand of gelu's tanh: root * (v + small * v^3). */
static array within(gen *g, array v, double small, double root) {
    array factor;
    switch (dice_below(&g->dice, 8)) {
    case 0:
        factor = product(g, product(g, times(g, v, small), v), v);
        return times(g, gen_binary(g, "add", v, factor, true), root);
    case 1:
        factor = gen_splat(g, gen_constant(g, v.type, 3), v);
        factor = times(g, gen_binary(g, "power", v, factor, false), small);
        return times(g, gen_binary(g, "add", v, factor, true), root);
    case 2:
        factor = plus(g, times(g, product(g, v, v), small), 1);
        return times(g, product(g, v, factor), root);
    case 3:
        factor = plus(g, product(g, times(g, v, small), v), 1);
        return product(g, times(g, v, root), factor);
    default:
        factor = times(g, product(g, product(g, v, v), v), small);
        return times(g, gen_binary(g, "add", v, factor, true), root);
    }
}

array gen_gelu(gen *g, array v) {
    double numbers[] = {0.044715, 0.7978845608028654, 1, 0.5};
    if (dice_chance(&g->dice, 20)) numbers[dice_below(&g->dice, 4)] *= 1.25;
    array t = within(g, v, numbers[0], numbers[1]);
    t = plus(g, gen_emit(g, v, "tanh(%s)", t.name), numbers[2]);
    switch (dice_below(&g->dice, 5)) {
    case 0: return times(g, product(g, v, t), numbers[3]);
    case 1:
    case 2: return product(g, times(g, v, numbers[3]), t);
    default: return product(g, v, times(g, t, numbers[3]));
    }
}

static array step_gelu(gen *g, array v) {
    if (dice_chance(&g->dice, 40)) gen_result(g, v);
    return dice_chance(&g->dice, 10) ? converted(g, v, gen_gelu) : gen_gelu(g, v);
}

static array scaled(gen *g, array v) {
    bool divides = dice_chance(&g->dice, 40);
    array s = gen_splat(g, gen_scale(g, v.type, divides), v);
    return gen_binary(g, divides ? "divide" : "multiply", v, s, !divides);
}

/* Scales a value in f32, with converts before and after. */
static array step_scale_wider(gen *g, array v) {
    return gen_convert(g, scaled(g, gen_convert(g, v, "f32")), v.type);
}

static array step_convert(gen *g, array v) {
    return gen_convert(g, v, gen_wide_type(g));
}

static array step_view(gen *g, array v) {
    array out = v;
    if (v.rank == 2 && dice_chance(&g->dice, 50)) {
        if (dice_chance(&g->dice, 30)) {
            out.dims[0] = v.dims[1];
            out.dims[1] = v.dims[0];
            return gen_emit(g, out, "transpose(%s), dimensions={1,0}", v.name);
        }
        out.rank = 3;
        out.dims[0] = v.dims[0] % 2 ? 1 : 2;
        out.dims[1] = v.dims[0] / out.dims[0];
        out.dims[2] = v.dims[1];
    } else if (v.rank == 3) {
        out.rank = 2;
        out.dims[0] = v.dims[0] * v.dims[1];
        out.dims[1] = v.dims[2];
    }
    if (out.rank == v.rank) return v;
    /* A bitcast between different layouts is not equivalent to a reshape. */
    const char *op = !g->layouts && dice_chance(&g->dice, 35) ? "bitcast" : "reshape";
    return gen_emit(g, out, "%s(%s)", op, v.name);
}

/* Writes a slice that omits the end along some dimension, or a slice of any part. */
static array step_cut(gen *g, array v) {
    if (!v.rank) return v;
    array out = v;
    int at = dice_below(&g->dice, (size_t)v.rank);
    if (v.dims[at] < 2) return v;
    int first = 0, end = v.dims[at] - 1 - dice_below(&g->dice, (size_t)v.dims[at] / 2), step = 1;
    if (dice_chance(&g->dice, 40)) {
        first = dice_below(&g->dice, (size_t)end);
        step = 1 + dice_below(&g->dice, 3);
    }
    out.dims[at] = (end - first + step - 1) / step;
    char list[256] = "";
    size_t size = 0;
    for (int i = 0; i < v.rank; i++)
        size +=
            (size_t)snprintf(list + size, sizeof list - size, "%s[%d:%d:%d]", i ? ", " : "",
                             i == at ? first : 0, i == at ? end : v.dims[i], i == at ? step : 1);
    return gen_emit(g, out, "slice(%s), slice={%s}", v.name, list);
}

static array step_barrier(gen *g, array v) {
    return gen_emit(g, v, "opt-barrier(%s)", v.name);
}

static array step_observe(gen *g, array v) {
    gen_result(g, v);
    return v;
}

/* ----------------------------------------------------------------------------------- quantizing */

/* Sometimes reshapes a value to one dimension, or transposes it. */
static array moved_about(gen *g, array v) {
    if (v.rank < 2 || dice_chance(&g->dice, 92)) return v;
    array out = {.type = v.type, .rank = 1, .dims = {(int)gen_count(v)}};
    if (v.rank > 2 || dice_chance(&g->dice, 50)) return gen_emit(g, out, "reshape(%s)", v.name);
    out = v;
    out.dims[0] = v.dims[1];
    out.dims[1] = v.dims[0];
    return gen_emit(g, out, "transpose(%s), dimensions={1,0}", v.name);
}

/* Creates the largest element over all dimensions except `kept` (-1: over all). */
static array largest(gen *g, array v, double start, int kept) {
    array init = gen_constant(g, v.type, start), out = gen_shape(v.type, 0, NULL);
    int dims[MAX_RANK], count = 0;
    for (int i = 0; i < v.rank; i++)
        if (i != kept) dims[count++] = i;
    if (kept >= 0) out = gen_shape(v.type, 1, v.dims + kept);
    char list[64];
    gen_dims(gen_shape("", count, dims), list, sizeof list);
    return gen_emit(g, out, "reduce(%s, %s), dimensions={%s}, to_apply=%%max_%s", v.name, init.name,
                    list, v.type);
}

array gen_amax(gen *g, array v, int kept) {
    return largest(g, gen_emit(g, v, "abs(%s)", v.name), dice_chance(&g->dice, 50) ? 0 : -INFINITY,
                   kept);
}

/* Creates an amax, or a similar value: without abs, with another initial value, for each row, or in
 * two steps. */
static array amax(gen *g, array v) {
    static const double starts[] = {0, 0, 0, -INFINITY, -INFINITY, 0.5, 3};
    double start = DICE_PICK(&g->dice, starts);
    v = moved_about(g, v);
    if (dice_chance(&g->dice, 5)) {
        array other = gen_emit(g, v, "negate(%s)", v.name);
        v = gen_binary(g, "maximum", v, other, true);
    } else if (dice_chance(&g->dice, 85)) {
        v = gen_emit(g, v, "abs(%s)", v.name);
    }
    if (dice_chance(&g->dice, 8)) v = gen_convert(g, v, gen_wide_type(g));
    v = moved_about(g, v);
    int last = v.rank > 1 && dice_chance(&g->dice, 16) ? v.rank - 1 : -1;
    array m = largest(g, v, start, last);
    return last >= 0 && dice_chance(&g->dice, 50) ? largest(g, m, start, -1) : m;
}

array gen_clamped(gen *g, array v, double most) {
    double low = -most, high = most;
    if (dice_chance(&g->dice, 8)) high = most / 2;
    if (dice_chance(&g->dice, 8)) low = dice_chance(&g->dice, 50) ? 0 : -most * 2;
    array lo = gen_constant(g, v.type, low), hi = gen_constant(g, v.type, high);
    switch (dice_below(&g->dice, 4)) {
    case 0: return gen_emit(g, v, "clamp(%s, %s, %s)", lo.name, v.name, hi.name);
    case 1:
        lo = gen_splat(g, lo, v);
        hi = gen_splat(g, hi, v);
        return gen_emit(g, v, "clamp(%s, %s, %s)", lo.name, v.name, hi.name);
    case 2:
        v = gen_binary(g, "maximum", v, gen_splat(g, lo, v), true);
        return gen_binary(g, "minimum", v, gen_splat(g, hi, v), true);
    default:
        v = gen_binary(g, "minimum", v, gen_splat(g, hi, v), true);
        return gen_binary(g, "maximum", v, gen_splat(g, lo, v), true);
    }
}

/* Multiplies or divides by a vector along some dimension, sometimes by several vectors. */
static array step_rows(gen *g, array v) {
    if (!v.rank) return v;
    int at = dice_below(&g->dice, (size_t)v.rank);
    bool divides = dice_chance(&g->dice, 20);
    array s = gen_parameter(g, divides ? 'd' : 'm', gen_shape(v.type, 1, v.dims + at));
    if (dice_chance(&g->dice, 20)) s = gen_emit(g, s, "abs(%s)", s.name);
    s = gen_emit(g, v, "broadcast(%s), dimensions={%d}", s.name, at);
    v = gen_binary(g, divides ? "divide" : "multiply", v, s, !divides);
    return dice_chance(&g->dice, 25) ? step_rows(g, v) : v;
}

/* Multiplies a value by 448 divided by its own amax, if the amax is a scalar. */
static array self_scaled(gen *g, array v, array most) {
    if (most.rank) return v;
    array s = gen_binary(g, "divide", gen_constant(g, v.type, 448), most, false);
    return gen_binary(g, "multiply", v, gen_splat(g, s, v), true);
}

static void quantize(gen *g, array v) {
    bool e5m2 = dice_chance(&g->dice, 15);
    const char *type = e5m2 ? "f8e5m2" : "f8e4m3fn";
    double most = e5m2 ? 57344 : 448;
    if (dice_chance(&g->dice, 5)) most = e5m2 ? 448 : 240;
    array value = v;
    if (dice_chance(&g->dice, 45)) {
        array m = amax(g, dice_chance(&g->dice, 12) ? gen_convert(g, v, gen_wide_type(g)) : v);
        gen_result(g, m);
        if (dice_chance(&g->dice, 10)) value = self_scaled(g, value, gen_convert(g, m, v.type));
    }
    if (dice_chance(&g->dice, 10)) value = gen_convert(g, value, "f32");
    if (dice_chance(&g->dice, 75)) value = scaled(g, value);
    if (dice_chance(&g->dice, 8)) value = step_view(g, value);
    if (dice_chance(&g->dice, 6)) gen_result(g, amax(g, value));
    if (dice_chance(&g->dice, 92)) value = gen_clamped(g, value, most);
    if (dice_chance(&g->dice, 4)) gen_result(g, value);
    value = gen_convert(g, value, type);
    if (dice_chance(&g->dice, 10)) gen_result(g, amax(g, gen_convert(g, value, "f32")));
    gen_result(g, value);
}

void gen_epilogue(gen *g, array v) {
    static array (*const steps[])(gen *, array) = {
        step_bias, step_bias,        step_addend,  step_relu, step_relu, step_gelu, step_rows,
        scaled,    step_scale_wider, step_convert, step_view, step_view, step_cut};
    static const int lengths[] = {0, 0, 0, 1, 1, 1, 2, 2, 3};
    if (dice_chance(&g->dice, 5)) v = step_barrier(g, v);
    for (int i = DICE_PICK(&g->dice, lengths); i > 0; i--) {
        v = DICE_PICK(&g->dice, steps)(g, v);
        if (dice_chance(&g->dice, 8)) v = step_observe(g, v);
    }
    if (dice_chance(&g->dice, 50))
        quantize(g, v);
    else
        gen_result(g, v);
    if (dice_chance(&g->dice, 5)) gen_result(g, v);
}
