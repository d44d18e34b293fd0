/* SPDX-License-Identifier: Apache-2.0 */
/* Generates operands of dots from the dot upward: a shape, then the instruction that computes it,
 * then its operands. */
#include <math.h>
#include <string.h>

#include "tests/random/module/gen.h"

static const char *fp8_type(gen *g) {
    return dice_chance(&g->dice, 75) ? "f8e4m3fn" : "f8e5m2";
}

/* --------------------------------------------------------------------------------------- moving */

/* Creates a value of that shape, to which movement is then applied. */
typedef array source(gen *g, array shape);

static array moved(gen *g, array shape, int links, source *from);

static array link_transpose(gen *g, array shape, int links, source *from) {
    array in = shape;
    int order[MAX_RANK];
    for (int i = 0; i < shape.rank; i++) order[i] = i;
    for (int i = shape.rank; i > 1; i--) {
        int j = dice_below(&g->dice, (size_t)i), taken = order[j];
        order[j] = order[i - 1];
        order[i - 1] = taken;
    }
    for (int i = 0; i < shape.rank; i++) in.dims[order[i]] = shape.dims[i];
    in = moved(g, in, links, from);
    char list[64];
    gen_dims(gen_shape("", shape.rank, order), list, sizeof list);
    return gen_emit(g, shape, "transpose(%s), dimensions={%s}", in.name, list);
}

/* Writes a reshape that merges two neighboring dimensions, or splits one. */
static array link_reshape(gen *g, array shape, int links, source *from) {
    array in = shape;
    int at = shape.rank ? dice_below(&g->dice, (size_t)shape.rank) : 0;
    if (shape.rank > 1 && at + 1 < shape.rank && dice_chance(&g->dice, 60)) {
        in.dims[at] *= in.dims[at + 1];
        memmove(in.dims + at + 1, in.dims + at + 2, (size_t)(in.rank - at - 2) * sizeof in.dims[0]);
        in.rank--;
    } else if (shape.rank && shape.rank + 1 < MAX_RANK) {
        int factor = shape.dims[at] % 2 ? 1 : 2;
        memmove(in.dims + at + 1, in.dims + at, (size_t)(in.rank - at) * sizeof in.dims[0]);
        in.rank++;
        in.dims[at] = factor;
        in.dims[at + 1] /= factor;
    }
    in = moved(g, in, links, from);
    const char *op = !g->layouts && dice_chance(&g->dice, 20) ? "bitcast" : "reshape";
    return gen_emit(g, shape, "%s(%s)", op, in.name);
}

static array link_broadcast(gen *g, array shape, int links, source *from) {
    if (shape.rank < 2) return moved(g, shape, links, from);
    int dropped = dice_below(&g->dice, (size_t)shape.rank), count = 0, dims[MAX_RANK];
    array in = shape;
    in.rank = 0;
    for (int i = 0; i < shape.rank; i++) {
        if (i == dropped) continue;
        dims[count++] = i;
        in.dims[in.rank++] = shape.dims[i];
    }
    in = moved(g, in, links, from);
    char list[64];
    gen_dims(gen_shape("", count, dims), list, sizeof list);
    return gen_emit(g, shape, "broadcast(%s), dimensions={%s}", in.name, list);
}

static array link_slice(gen *g, array shape, int links, source *from) {
    array in = shape;
    int first[MAX_RANK] = {0}, step[MAX_RANK];
    for (int i = 0; i < shape.rank; i++) {
        step[i] = dice_chance(&g->dice, 10) ? 2 : 1;
        first[i] = dice_chance(&g->dice, 50) ? dice_below(&g->dice, 5) : 0;
        in.dims[i] = first[i] + shape.dims[i] * step[i] + dice_below(&g->dice, 3);
    }
    in = moved(g, in, links, from);
    char list[256] = "";
    size_t at = 0;
    for (int i = 0; i < shape.rank; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s[%d:%d:%d]", i ? ", " : "", first[i],
                               first[i] + shape.dims[i] * step[i], step[i]);
    return gen_emit(g, shape, "slice(%s), slice={%s}", in.name, list);
}

static array link_dynamic_slice(gen *g, array shape, int links, source *from) {
    array in = shape;
    for (int i = 0; i < shape.rank; i++) in.dims[i] += dice_below(&g->dice, 4);
    in = moved(g, in, links, from);
    char list[256] = "", sizes[64];
    size_t at = 0;
    for (int i = 0; i < shape.rank; i++) {
        array index = gen_parameter(g, 'p', gen_shape("s32", 0, NULL));
        at += (size_t)snprintf(list + at, sizeof list - at, ", %s", index.name);
    }
    gen_dims(shape, sizes, sizeof sizes);
    return gen_emit(g, shape, "dynamic-slice(%s%s), dynamic_slice_sizes={%s}", in.name, list,
                    sizes);
}

static double filler(gen *g) {
    static const double others[] = {1, 1, -0.3, -0.3, -0.0};
    return dice_chance(&g->dice, 65) ? 0 : DICE_PICK(&g->dice, others);
}

static array link_pad(gen *g, array shape, int links, source *from) {
    array in = shape;
    char list[256] = "";
    size_t at = 0;
    for (int i = 0; i < shape.rank; i++) {
        int low = dice_below(&g->dice, 4), high = dice_below(&g->dice, 4);
        if (shape.dims[i] < 8) low = high = 0;
        in.dims[i] -= low + high;
        at += (size_t)snprintf(list + at, sizeof list - at, i ? "x%d_%d" : "%d_%d", low, high);
    }
    if (!shape.rank) return moved(g, shape, links, from);
    in = moved(g, in, links, from);
    array value = dice_chance(&g->dice, 90) ? gen_constant(g, shape.type, filler(g))
                                            : gen_parameter(g, 'm', gen_shape(shape.type, 0, NULL));
    return gen_emit(g, shape, "pad(%s, %s), padding=%s", in.name, value.name, list);
}

static array link_select(gen *g, array shape, int links, source *from) {
    array in = moved(g, shape, links, from);
    array mask = shape;
    mask.type = "pred";
    mask = gen_parameter(g, 'p', mask);
    array other = dice_chance(&g->dice, 80)
                      ? gen_splat(g, gen_constant(g, shape.type, filler(g)), shape)
                      : gen_parameter(g, 'p', shape);
    bool first = dice_chance(&g->dice, 60);
    return gen_emit(g, shape, "select(%s, %s, %s)", mask.name, first ? in.name : other.name,
                    first ? other.name : in.name);
}

static array link_concatenate(gen *g, array shape, int links, source *from) {
    int at = shape.rank ? dice_below(&g->dice, (size_t)shape.rank) : 0;
    if (!shape.rank || shape.dims[at] < 2) return moved(g, shape, links, from);
    array a = shape, b = shape;
    a.dims[at] = shape.dims[at] / 2;
    b.dims[at] -= a.dims[at];
    a = moved(g, a, links, from);
    b = moved(g, b, links / 2, from);
    return gen_emit(g, shape, "concatenate(%s, %s), dimensions={%d}", a.name, b.name, at);
}

/* Writes a gather of rows along the first dimension. */
static array link_gather(gen *g, array shape, int links, source *from) {
    if (shape.rank < 2) return moved(g, shape, links, from);
    array in = shape;
    in.dims[0] = 8 + dice_below(&g->dice, 16);
    array index = gen_parameter(g, 'p', gen_shape("s32", 1, shape.dims));
    in = moved(g, in, links, from);
    int offsets[MAX_RANK], sizes[MAX_RANK];
    for (int i = 0; i < shape.rank; i++) {
        offsets[i] = i + 1;
        sizes[i] = i ? shape.dims[i] : 1;
    }
    char offset_list[64], size_list[64];
    gen_dims(gen_shape("", shape.rank - 1, offsets), offset_list, sizeof offset_list);
    gen_dims(gen_shape("", shape.rank, sizes), size_list, sizeof size_list);
    return gen_emit(g, shape,
                    "gather(%s, %s), offset_dims={%s}, collapsed_slice_dims={0}, "
                    "start_index_map={0}, index_vector_dim=1, slice_sizes={%s}",
                    in.name, index.name, offset_list, size_list);
}

static array link_other(gen *g, array shape, int links, source *from) {
    static const char *const ops[] = {"copy", "opt-barrier", "reverse", "negate", "abs"};
    const char *op = DICE_PICK(&g->dice, ops);
    if (gen_is_fp8(shape.type)) op = "copy";
    array in = moved(g, shape, links, from);
    if (!strcmp(op, "reverse") && shape.rank)
        return gen_emit(g, shape, "reverse(%s), dimensions={%d}", in.name,
                        dice_below(&g->dice, (size_t)shape.rank));
    return gen_emit(g, shape, "%s(%s)", strcmp(op, "reverse") ? op : "copy", in.name);
}

/* Writes converts of a wide value to another type and back. */
static array link_convert(gen *g, array shape, int links, source *from) {
    array in = shape;
    if (strchr("bf", shape.type[0]) && shape.type[1] != '8') in.type = gen_wide_type(g);
    return gen_convert(g, moved(g, in, links, from), shape.type);
}

typedef struct sending {
    int links;
    source *from;
} sending;

static array before_sent(gen *g, array shape, void *arg) {
    const sending *s = arg;
    return moved(g, shape, s->links, s->from);
}

static array link_sent(gen *g, array shape, int links, source *from) {
    sending s = {links, from};
    return gen_sent(g, shape, before_sent, &s);
}

/* Writes a relu in one of its forms. */
static array link_relu(gen *g, array shape, int links, source *from) {
    array in = moved(g, shape, links, from);
    if (gen_is_fp8(shape.type)) return in;
    array zero = gen_constant(g, shape.type, dice_chance(&g->dice, 90) ? 0 : -0.0);
    array zeros = gen_splat(g, zero, shape);
    if (dice_chance(&g->dice, 70)) return gen_binary(g, "maximum", in, zeros, true);
    array most = gen_constant(g, shape.type, INFINITY);
    return gen_emit(g, shape, "clamp(%s, %s, %s)", zero.name, in.name, most.name);
}

static array moved(gen *g, array shape, int links, source *from) {
    static array (*const kinds[])(gen *, array, int, source *) = {
        link_transpose, link_transpose, link_reshape, link_reshape,       link_broadcast,
        link_slice,     link_pad,       link_pad,     link_select,        link_concatenate,
        link_gather,    link_other,     link_convert, link_dynamic_slice, link_relu};
    if (links <= 0 || gen_count(shape) > 8192 || g->parameters.count > MAX_ARRAYS / 2)
        return from(g, shape);
    bool sends = g->devices && dice_chance(&g->dice, 40);
    array value = sends ? link_sent(g, shape, links - 1, from)
                        : DICE_PICK(&g->dice, kinds)(g, shape, links - 1, from);
    if (dice_chance(&g->dice, 4)) gen_result(g, value);
    return value;
}

/* --------------------------------------------------------------------------------- dequantizing */

static array stored(gen *g, array shape) {
    return gen_parameter(g, 'p', shape);
}

/* Creates an fp8 value: a parameter, or the result of a quantization. */
static array quantized(gen *g, array shape) {
    const char *type = fp8_type(g);
    if (dice_chance(&g->dice, 10)) {
        array in = shape;
        in.type = g->wide;
        return gen_convert(g, gen_parameter(g, 'p', in), type);
    }
    shape.type = type;
    return moved(g, shape, dice_chance(&g->dice, 20) ? 2 : 0, stored);
}

/* Creates a scale for each run of 128 along some dimensions, for each element along others, and for
 * all elements along the rest: a parameter that is repeated and sliced. */
static array block_scale(gen *g, array shape, bool divides) {
    array scales = {.type = shape.type}, wide = scales, merged = shape;
    int dims[2 * MAX_RANK], count = 0;
    for (int i = 0; i < shape.rank; i++) {
        int each = shape.dims[i] > 128 || dice_chance(&g->dice, 30) ? 128
                   : dice_chance(&g->dice, 60)                      ? 1
                                                                    : 0;
        int parts = each ? (shape.dims[i] + each - 1) / each : shape.dims[i];
        if (each) dims[count++] = wide.rank;
        if (each) scales.dims[scales.rank++] = parts;
        wide.dims[wide.rank++] = parts;
        if (each > 1) wide.dims[wide.rank++] = each;
        merged.dims[i] = each > 1 ? parts * each : shape.dims[i];
    }
    scales = gen_parameter(g, divides ? 'd' : 'm', scales);
    char list[64], slices[256] = "";
    size_t at = 0;
    gen_dims(gen_shape("", count, dims), list, sizeof list);
    wide = gen_emit(g, wide, "broadcast(%s), dimensions={%s}", scales.name, list);
    merged = gen_emit(g, merged, "reshape(%s)", wide.name);
    for (int i = 0; i < shape.rank; i++)
        at += (size_t)snprintf(slices + at, sizeof slices - at, "%s[0:%d]", i ? ", " : "",
                               shape.dims[i]);
    return gen_emit(g, shape, "slice(%s), slice={%s}", merged.name, slices);
}

/* Creates a scale that varies along all dimensions except `same`. */
static array along_others(gen *g, array shape, int same, bool divides) {
    array scales = {.type = shape.type}, kept = shape;
    int dims[MAX_RANK];
    for (int i = 0; i < shape.rank; i++) {
        if (i == same) continue;
        dims[scales.rank] = i;
        scales.dims[scales.rank++] = shape.dims[i];
    }
    kept.dims[same] = 1;
    if (dice_chance(&g->dice, 50)) {
        kept = gen_parameter(g, divides ? 'd' : 'm', kept);
        scales = gen_emit(g, scales, "reshape(%s)", kept.name);
    } else {
        scales = gen_parameter(g, divides ? 'd' : 'm', scales);
    }
    char list[64];
    gen_dims(gen_shape("", scales.rank, dims), list, sizeof list);
    return gen_emit(g, shape, "broadcast(%s), dimensions={%s}", scales.name, list);
}

static bool is_long(array shape) {
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] > 128) return true;
    return false;
}

/* Creates a scale that varies along at least one dimension. */
static array uneven_scale(gen *g, array shape, bool divides) {
    if (is_long(shape) && shape.rank < MAX_RANK / 2 && dice_chance(&g->dice, 85))
        return block_scale(g, shape, divides);
    if (!shape.rank || dice_chance(&g->dice, 15))
        return gen_parameter(g, divides ? 'd' : 'm', shape);
    int at = dice_below(&g->dice, (size_t)shape.rank);
    if (dice_chance(&g->dice, 30)) return along_others(g, shape, at, divides);
    array row = gen_parameter(g, divides ? 'd' : 'm', gen_shape(shape.type, 1, shape.dims + at));
    return gen_emit(g, shape, "broadcast(%s), dimensions={%d}", row.name, at);
}

/* Quantizes by the given scale, and dequantizes by the same or another scale. */
static array requantized_by(gen *g, array x, array s) {
    bool e5m2 = dice_chance(&g->dice, 15);
    array by = gen_splat(g, s, x);
    array q = gen_clamped(g, gen_binary(g, "multiply", x, by, true), e5m2 ? 57344 : 448);
    q = gen_convert(g, gen_convert(g, q, e5m2 ? "f8e5m2" : "f8e4m3fn"), x.type);
    if (dice_chance(&g->dice, 70)) return gen_binary(g, "divide", q, by, false);
    by = gen_splat(g, gen_scale(g, x.type, false), x);
    return gen_binary(g, "multiply", q, by, true);
}

/* Quantizes by the current amax, of the whole array or of each row, and dequantizes. */
static array requantized(gen *g, array x) {
    array shape = x;
    int kept =
        shape.rank && dice_chance(&g->dice, 50) ? dice_below(&g->dice, (size_t)shape.rank) : -1;
    array s = gen_amax(g, x, kept);
    array most = gen_splat(g, gen_constant(g, shape.type, 448), s);
    bool inverse = dice_chance(&g->dice, 30);
    s = inverse ? gen_binary(g, "divide", most, s, false) : gen_binary(g, "divide", s, most, false);
    if (kept >= 0)
        s = gen_emit(g, shape, "broadcast(%s), dimensions={%d}", s.name, kept);
    else
        s = gen_splat(g, s, shape);
    array q = gen_binary(g, inverse ? "multiply" : "divide", x, s, inverse);
    q = gen_convert(g, gen_clamped(g, q, 448), "f8e4m3fn");
    q = gen_convert(g, q, shape.type);
    return gen_binary(g, inverse ? "divide" : "multiply", q, s, !inverse);
}

static array dequantized(gen *g, array shape) {
    int form = dice_below(&g->dice, 20);
    if (form == 0)
        return dice_chance(&g->dice, 20) ? gen_bits(g, shape) : gen_parameter(g, 'p', shape);
    if (dice_chance(&g->dice, 6)) return requantized(g, gen_parameter(g, 'p', shape));
    array value = gen_convert(g, quantized(g, shape), shape.type);
    if (form < 4) return value;
    bool divides = form % 4 == 3, twice = dice_chance(&g->dice, 8);
    if (twice)
        value = gen_binary(g, "multiply", value,
                           gen_splat(g, gen_scale(g, shape.type, false), shape), true);
    array scale = form < 7 || is_long(shape)
                      ? uneven_scale(g, shape, divides)
                      : gen_splat(g, gen_scale(g, shape.type, divides), shape);
    if (divides && dice_chance(&g->dice, 4)) return gen_binary(g, "divide", scale, value, false);
    if (dice_chance(&g->dice, 10)) scale = gen_emit(g, shape, "abs(%s)", scale.name);
    return gen_binary(g, divides ? "divide" : "multiply", value, scale, !divides);
}

/* ----------------------------------------------------------------------------------------- dots */

static int size_of_dim(gen *g) {
    static const int sizes[] = {16, 16, 32, 32, 48, 64, 8, 17, 24, 1, 40};
    return dice_chance(&g->dice, 1) ? 0 : DICE_PICK(&g->dice, sizes);
}

/* Draws batch, free and contracting dimensions in any order. */
static side draw_side(gen *g, const char *type, const array *batch, const array *freed,
                      const array *contracting) {
    side s = {.shape = {.type = type}};
    int kinds[MAX_RANK], rank = 0, total[] = {batch->rank, freed->rank, contracting->rank};
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < total[kind]; i++) kinds[rank++] = kind;
    if (dice_chance(&g->dice, 40))
        for (int i = rank; i > 1; i--) {
            int j = dice_below(&g->dice, (size_t)i), taken = kinds[j];
            kinds[j] = kinds[i - 1];
            kinds[i - 1] = taken;
        }
    const array *lists[] = {batch, freed, contracting};
    int seen[3] = {0};
    for (int i = 0; i < rank; i++) {
        int kind = kinds[i], index = seen[kind]++;
        s.shape.dims[s.shape.rank++] = lists[kind]->dims[index];
        if (kind == 0) s.batch[index] = i;
        if (kind == 2) s.contracting[index] = i;
    }
    return s;
}

/* The first of several dimensions may be large. */
static array draw_dims(gen *g, int rank, int most) {
    enum { MAX_OF_OTHERS = 8 };
    array a = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        a.dims[i] = size_of_dim(g);
        if (i && most > MAX_OF_OTHERS) most = MAX_OF_OTHERS;
        if (a.dims[i] > most) a.dims[i] = most;
    }
    return a;
}

static array draw_operand(gen *g, array shape, bool bare) {
    static const int lengths[] = {0, 0, 0, 1, 1, 2, 3, 4};
    if (!bare) return moved(g, shape, DICE_PICK(&g->dice, lengths), dequantized);
    shape.type = fp8_type(g);
    return moved(g, shape, DICE_PICK(&g->dice, lengths) / 2, stored);
}

/* Draws the algorithm attribute of a dot, which is usually absent. */
static const char *draw_algorithm(gen *g) {
    static const char *const algorithms[] = {", algorithm=dot_any_f8_any_f8_f32",
                                             ", algorithm=dot_f32_f32_f32"};
    return dice_chance(&g->dice, 96) ? "" : DICE_PICK(&g->dice, algorithms);
}

/* Draws the left operand and the sizes of the right operand's free dimensions. */
static left draw_left(gen *g, array *out_n) {
    bool plain = dice_chance(&g->dice, 65);
    left l = {.batch = draw_dims(g, plain ? 0 : dice_below(&g->dice, 3), 3)};
    l.contracting = draw_dims(g, plain || dice_chance(&g->dice, 60) ? 1 : 2, plain ? 64 : 16);
    l.m = draw_dims(g, plain || dice_chance(&g->dice, 50) ? 1 : dice_below(&g->dice, 3), 48);
    *out_n = draw_dims(g, plain || dice_chance(&g->dice, 50) ? 1 : dice_below(&g->dice, 3),
                       plain ? 48 : 16);
    bool blocks = plain && dice_chance(&g->dice, 6);
    if (blocks) l.contracting.dims[0] = dice_chance(&g->dice, 50) ? 256 : 200;
    if (plain && !blocks && dice_chance(&g->dice, 25))
        out_n->dims[0] = l.contracting.dims[0] = l.m.dims[0];
    l.bare = dice_chance(&g->dice, 12);
    l.side = draw_side(g, gen_wide_type(g), &l.batch, &l.m, &l.contracting);
    l.value = draw_operand(g, l.side.shape, l.bare);
    return l;
}

/* Uses a quantized product as the left operand; its last dimension is contracted. */
static left chain_left(gen *g, array product) {
    int last = product.rank - 1;
    left l = {.side = {.shape = product, .contracting = {last}}};
    l.m = gen_shape("", last, product.dims);
    l.contracting = gen_shape("", 1, product.dims + last);
    l.value = dice_chance(&g->dice, 30)
                  ? requantized(g, product)
                  : requantized_by(g, product, gen_scale(g, product.type, true));
    return l;
}

static bool is_wide_matrix(array a) {
    return a.rank > 0 && a.rank < 5 && !gen_is_fp8(a.type) && gen_count(a) <= 8192;
}

static bool same_shape(array a, array b) {
    return !strcmp(a.type, b.type) && a.rank == b.rank &&
           !memcmp(a.dims, b.dims, (size_t)a.rank * sizeof *a.dims);
}

array gen_dot(gen *g) {
    array n = draw_dims(g, 1, 48);
    array before = g->products.count ? g->products.v[g->products.count - 1] : (array){0};
    if (is_wide_matrix(before) && dice_chance(&g->dice, 35))
        g->left = chain_left(g, before);
    else if (!g->left.value.rank || dice_chance(&g->dice, 60))
        g->left = draw_left(g, &n);
    const left *l = &g->left;
    const char *type = l->side.shape.type;
    side b = draw_side(g, type, &l->batch, &n, &l->contracting);
    bool itself = same_shape(b.shape, l->value) && dice_chance(&g->dice, 25);
    array y = itself ? l->value : draw_operand(g, b.shape, l->bare);
    array d = {.type = dice_chance(&g->dice, 85) ? type : gen_wide_type(g)};
    if (dice_chance(&g->dice, l->bare ? 25 : 4)) d.type = fp8_type(g);
    const array *parts[] = {&l->batch, &l->m, &n};
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < parts[p]->rank; i++) d.dims[d.rank++] = parts[p]->dims[i];
    char lists[4][64];
    gen_dims(gen_shape("", l->batch.rank, l->side.batch), lists[0], sizeof lists[0]);
    gen_dims(gen_shape("", l->contracting.rank, l->side.contracting), lists[1], sizeof lists[1]);
    gen_dims(gen_shape("", l->batch.rank, b.batch), lists[2], sizeof lists[2]);
    gen_dims(gen_shape("", l->contracting.rank, b.contracting), lists[3], sizeof lists[3]);
    d = gen_emit(g, d,
                 "dot(%s, %s), lhs_batch_dims={%s}, lhs_contracting_dims={%s}, "
                 "rhs_batch_dims={%s}, rhs_contracting_dims={%s}%s",
                 l->value.name, y.name, lists[0], lists[1], lists[2], lists[3], draw_algorithm(g));
    if (g->products.count < MAX_ARRAYS) g->products.v[g->products.count++] = d;
    return d;
}
