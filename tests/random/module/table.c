/* SPDX-License-Identifier: Apache-2.0 */
/* Generates numbers that are elements of a constant table, which is moved as a whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/module/gen.h"

enum { LEAST_LARGE = 257 };

/* The table, and the index of the number in it. */
typedef struct table {
    array value; /* one-dimensional */
    int at;
} table;

/* Draws a table with few elements, or with more than constant folding supports. */
static table draw_table(gen *g, const char *type, double number) {
    static const double others[] = {0, 0, 1, -1, 2, 0.5, 448, -448, 4000, INFINITY, NAN};
    int count = dice_chance(&g->dice, 40) ? LEAST_LARGE + dice_below(&g->dice, 40)
                                          : 2 + dice_below(&g->dice, 9);
    int at = dice_below(&g->dice, (size_t)count);
    double most = DICE_PICK(&g->dice, others), few = DICE_PICK(&g->dice, others);
    char *list = NULL;
    size_t size;
    FILE *out = open_memstream(&list, &size);
    if (!out) abort();
    for (int i = 0; i < count; i++)
        fprintf(out, i ? ",%.17g" : "%.17g",
                i == at                     ? number
                : dice_chance(&g->dice, 10) ? few
                                            : most);
    fclose(out);
    table t = {gen_emit(g, gen_shape(type, 1, &count), "constant({%s})", list), at};
    free(list);
    return t;
}

/* Reshapes the table to a matrix, transposes it, and reshapes it back. */
static table turned(gen *g, table t) {
    int count = t.value.dims[0], rows = 2;
    while (rows < count && count % rows) rows++;
    if (rows >= count) return t;
    const int matrix[] = {rows, count / rows}, other[] = {count / rows, rows};
    const char *type = t.value.type;
    array m = gen_emit(g, gen_shape(type, 2, matrix), "reshape(%s)", t.value.name);
    m = gen_emit(g, gen_shape(type, 2, other), "transpose(%s), dimensions={1,0}", m.name);
    t.at = t.at % matrix[1] * rows + t.at / matrix[1];
    t.value = gen_emit(g, t.value, "reshape(%s)", m.name);
    return t;
}

static table joined(gen *g, table t) {
    table other = draw_table(g, t.value.type, 3);
    int count = t.value.dims[0] + other.value.dims[0];
    bool first = dice_chance(&g->dice, 50);
    if (!first) t.at += other.value.dims[0];
    t.value =
        gen_emit(g, gen_shape(t.value.type, 1, &count), "concatenate(%s, %s), dimensions={0}",
                 first ? t.value.name : other.value.name, first ? other.value.name : t.value.name);
    return t;
}

static table padded(gen *g, table t) {
    int low = dice_below(&g->dice, 4), step = 1 + dice_below(&g->dice, 2);
    int count = low + (t.value.dims[0] - 1) * step + 1;
    array fill = gen_emit(g, gen_shape(t.value.type, 0, NULL), "constant(7)");
    t.at = low + t.at * step;
    t.value = gen_emit(g, gen_shape(t.value.type, 1, &count), "pad(%s, %s), padding=%d_0_%d",
                       t.value.name, fill.name, low, step - 1);
    return t;
}

static table moved(gen *g, table t) {
    array of = t.value;
    switch (dice_below(&g->dice, 6)) {
    case 0: return turned(g, t);
    case 1: return joined(g, t);
    case 2: return padded(g, t);
    case 3:
        t.at = of.dims[0] - 1 - t.at;
        t.value = gen_emit(g, of, "reverse(%s), dimensions={0}", of.name);
        return t;
    case 4: t.value = gen_emit(g, of, "copy(%s)", of.name); return t;
    default: break;
    }
    array one = gen_emit(g, gen_shape("s32", 0, NULL), "constant(1)");
    unsigned tuple = g->next++;
    fprintf(g->body, "  %%v%u = (%s[%d], s32[]) tuple(%s, %s)\n", tuple, of.type, of.dims[0],
            of.name, one.name);
    t.value = gen_emit(g, of, "get-tuple-element(%%v%u), index=0", tuple);
    return t;
}

/* Returns the element as a separate array. */
static array taken(gen *g, table t) {
    static const int one = 1;
    array out = gen_shape(t.value.type, 1, &one);
    if (dice_chance(&g->dice, 75))
        return gen_emit(g, out, "slice(%s), slice={[%d:%d]}", t.value.name, t.at, t.at + 1);
    /* An index beyond the end selects the last element. */
    bool last = t.at + 1 == t.value.dims[0];
    array index = gen_emit(g, gen_shape("s32", 0, NULL), "constant(%d)", last ? 1000 : t.at);
    return gen_emit(g, out, "dynamic-slice(%s, %s), dynamic_slice_sizes={1}", t.value.name,
                    index.name);
}

array gen_of_table(gen *g, const char *type, double number) {
    table t = draw_table(g, type, number);
    for (int links = dice_below(&g->dice, 3); links > 0; links--) t = moved(g, t);
    return gen_emit(g, gen_shape(type, 0, NULL), "reshape(%s)", taken(g, t).name);
}

array gen_bits(gen *g, array shape) {
    static const char *const types[] = {"bf16", "f16", "f8e4m3fn"};
    array from = shape;
    from.type = DICE_PICK(&g->dice, types);
    int wide = strcmp(shape.type, "f32") ? 2 : 4, each = gen_is_fp8(from.type) ? 1 : 2;
    if (!shape.rank || g->layouts || gen_is_fp8(shape.type)) return gen_parameter(g, 'p', shape);
    from.dims[shape.rank - 1] *= wide / each;
    return gen_emit(g, shape, "bitcast(%s)", gen_parameter(g, 'p', from).name);
}
