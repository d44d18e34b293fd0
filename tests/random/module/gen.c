/* SPDX-License-Identifier: Apache-2.0 */
/* Generates the text of a module: see gen.h. */
#include "tests/random/module/gen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const wide_types[] = {"f32", "f32", "f32", "bf16", "bf16", "f16"};

const char *gen_wide_type(gen *g) {
    return dice_chance(&g->dice, 85) ? g->wide : DICE_PICK(&g->dice, wide_types);
}

bool gen_is_fp8(const char *type) {
    return !strncmp(type, "f8", 2);
}

array gen_shape(const char *type, int rank, const int *dims) {
    array a = {.type = type, .rank = rank};
    if (rank) memcpy(a.dims, dims, (size_t)rank * sizeof *dims);
    return a;
}

const char *gen_dims(array shape, char *out, size_t size) {
    size_t at = 0;
    *out = 0;
    for (int i = 0; i < shape.rank; i++)
        at += (size_t)snprintf(out + at, size - at, i ? ",%d" : "%d", shape.dims[i]);
    return out;
}

int64_t gen_count(array shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.dims[i];
    return count;
}

static void write_shape(FILE *out, array shape) {
    char dims[128];
    fprintf(out, "%s[%s]", shape.type, gen_dims(shape, dims, sizeof dims));
}

/* Writes the default layout, or a random one if g->layouts is set. */
static void write_layout(gen *g, int rank) {
    if (g->order) fprintf(g->body, "{%s}", g->order);
    if (g->order || !g->layouts || rank < 2 || dice_chance(&g->dice, 60)) return;
    int order[MAX_RANK];
    for (int i = 0; i < rank; i++) order[i] = i;
    fputc('{', g->body);
    for (int i = 0; i < rank; i++) {
        int j = i + dice_below(&g->dice, (size_t)(rank - i)), taken = order[j];
        order[j] = order[i];
        fprintf(g->body, i ? ",%d" : "%d", taken);
    }
    fputc('}', g->body);
}

array gen_emit(gen *g, array shape, const char *format, ...) {
    snprintf(shape.name, sizeof shape.name, "%%v%u", g->next++);
    fprintf(g->body, "  %s = ", shape.name);
    write_shape(g->body, shape);
    write_layout(g, shape.rank);
    fputc(' ', g->body);
    va_list args;
    va_start(args, format);
    vfprintf(g->body, format, args);
    va_end(args);
    fputc('\n', g->body);
    return shape;
}

static void keep(arrays *list, array value) {
    if (list->count < MAX_ARRAYS) list->v[list->count++] = value;
}

static array parameter(gen *g, array shape, char prefix) {
    if (g->parameters.count == MAX_ARRAYS) abort();
    int alike = !g->devices || g->regions ? 0 : prefix == 'p' ? 15 : 60;
    shape.replicated = alike && dice_chance(&g->dice, alike);
    snprintf(shape.name, sizeof shape.name, "%%%c%d", prefix, g->parameters.count);
    keep(&g->parameters, shape);
    return shape;
}

array gen_parameter(gen *g, char prefix, array shape) {
    return g->regions ? gen_handed(g, shape, parameter, prefix) : parameter(g, shape, prefix);
}

void gen_result(gen *g, array value) {
    keep(&g->results, value);
}

array gen_constant(gen *g, const char *type, double value) {
    if (dice_chance(&g->dice, 8)) return gen_of_table(g, type, value);
    return gen_emit(g, gen_shape(type, 0, NULL), "constant(%.17g)", value);
}

array gen_splat(gen *g, array scalar, array shape) {
    shape.type = scalar.type;
    if (!shape.rank) return scalar;
    if (dice_chance(&g->dice, 10) && shape.rank == 2) { /* broadcast in two steps */
        array row = gen_emit(g, gen_shape(scalar.type, 1, shape.dims),
                             "broadcast(%s), dimensions={}", scalar.name);
        return gen_emit(g, shape, "broadcast(%s), dimensions={0}", row.name);
    }
    return gen_emit(g, shape, "broadcast(%s), dimensions={}", scalar.name);
}

array gen_convert(gen *g, array value, const char *type) {
    if (!strcmp(value.type, type)) return value;
    array to = gen_shape(type, value.rank, value.dims);
    return gen_emit(g, to, "convert(%s)", value.name);
}

array gen_binary(gen *g, const char *op, array a, array b, bool swap) {
    if (swap && dice_chance(&g->dice, 50)) return gen_emit(g, a, "%s(%s, %s)", op, b.name, a.name);
    return gen_emit(g, a, "%s(%s, %s)", op, a.name, b.name);
}

/* Creates a scalar of that type, sometimes from an array of one element; `prefix` as in
 * gen_parameter(). */
static array fresh_scale(gen *g, const char *type, char prefix) {
    static const double constants[] = {1, 0.5, 2, -0.25, 3, 0.125, 0.1};
    static const int ones[] = {1, 1};
    switch (dice_below(&g->dice, 8)) {
    case 0: return gen_constant(g, type, DICE_PICK(&g->dice, constants));
    case 1:
        if (prefix != 'm') break;
        return gen_constant(g, type,
                            dice_chance(&g->dice, 50)                       ? 0
                            : strcmp(type, "f16") && strcmp(g->wide, "f16") ? 1e-6
                                                                            : 0.01);
    case 2:
    case 3: {
        int rank = 1 + dice_below(&g->dice, 2);
        array one = gen_parameter(g, prefix, gen_shape(type, rank, ones));
        return gen_emit(g, gen_shape(type, 0, NULL), "reshape(%s)", one.name);
    }
    default: break;
    }
    array one = gen_parameter(g, prefix, gen_shape(type, 0, NULL));
    bool wide = type[0] != 'f' || (type[1] != '8' && type[1] != '6');
    if (!g->devices || !wide) return one;
    if (dice_chance(&g->dice, 15)) one = gen_own(g, one);
    if (dice_chance(&g->dice, 15)) one = gen_called(g, one);
    if (g->regions && dice_chance(&g->dice, 20)) one = gen_come_back(g, one);
    return dice_chance(&g->dice, 25) ? gen_agreed(g, one) : one;
}

array gen_scale(gen *g, const char *type, bool divides) {
    if (g->scales.count && dice_chance(&g->dice, 25)) {
        array old = g->scales.v[dice_below(&g->dice, (size_t)g->scales.count)];
        return gen_convert(g, old, type);
    }
    if (g->products.count && dice_chance(&g->dice, 4)) {
        array of = g->products.v[dice_below(&g->dice, (size_t)g->products.count)];
        if (!gen_is_fp8(of.type)) return gen_convert(g, gen_amax(g, of, -1), type);
    }
    static const char *const scale_types[] = {"f32", "bf16", "f16", "f64", "f8e5m2", "f8e4m3fn"};
    array s = fresh_scale(g, dice_chance(&g->dice, 70) ? type : DICE_PICK(&g->dice, scale_types),
                          divides ? 'd' : 'm');
    s = gen_convert(g, s, type);
    if (dice_chance(&g->dice, 10))
        s = gen_binary(g, "multiply", s, fresh_scale(g, type, 'n'), true);
    if (divides) keep(&g->scales, s);
    return s;
}

/* ------------------------------------------------------------------------------------- wrapping */

static void write_maxima(FILE *out) {
    static const char *const types[] = {"f32", "bf16", "f16"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        fprintf(out,
                "%%max_%s {\n  %%x_%s = %s[] parameter(0)\n  %%y_%s = %s[] parameter(1)\n"
                "  ROOT %%m_%s = %s[] maximum(%%x_%s, %%y_%s)\n}\n",
                types[i], types[i], types[i], types[i], types[i], types[i], types[i], types[i],
                types[i]);
}

static void write_twice(FILE *out) {
    static const char *const types[] = {"f32", "bf16", "f16"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        fprintf(out,
                "%%twice_%s {\n  %%once_%s = %s[] parameter(0)\n"
                "  ROOT %%sum_%s = %s[] add(%%once_%s, %%once_%s)\n}\n",
                types[i], types[i], types[i], types[i], types[i], types[i], types[i]);
}

static void write_shapes(FILE *out, const arrays *list, bool more) {
    for (int i = 0; i < list->count; i++) {
        if (more || i) fputs(", ", out);
        write_shape(out, list->v[i]);
    }
}

static void write_names(FILE *out, const arrays *list, bool more) {
    for (int i = 0; i < list->count; i++) fprintf(out, more || i ? ", %s" : "%s", list->v[i].name);
}

static void write_parameters(FILE *out, const gen *g) {
    for (int i = 0; i < g->parameters.count; i++) {
        fprintf(out, "  %s = ", g->parameters.v[i].name);
        write_shape(out, g->parameters.v[i]);
        fprintf(out, " parameter(%d)%s\n", i,
                g->parameters.v[i].replicated ? ", sharding={replicated}" : "");
    }
}

static void write_tuple(FILE *out, const gen *g) {
    fputs("  ROOT %results = (", out);
    write_shapes(out, &g->results, false);
    fputs(") tuple(", out);
    write_names(out, &g->results, false);
    fputs(")\n", out);
}

static void write_computation(FILE *out, const gen *g, const char *head, const char *body) {
    fprintf(out, "%s {\n", head);
    write_parameters(out, g);
    fputs(body, out);
    write_tuple(out, g);
    fputs("}\n", out);
}

static void write_called(FILE *out, const gen *g, const char *body) {
    write_computation(out, g, "%called", body);
    fputs("ENTRY %entry {\n", out);
    write_parameters(out, g);
    fputs("  ROOT %call = (", out);
    write_shapes(out, &g->results, false);
    fputs(") call(", out);
    write_names(out, &g->parameters, false);
    fputs("), to_apply=%called\n}\n", out);
}

static void write_state(FILE *out, const gen *g) {
    fputs("(s32[]", out);
    write_shapes(out, &g->parameters, true);
    write_shapes(out, &g->results, true);
    fputc(')', out);
}

static void write_elements(FILE *out, const arrays *list, const char *tuple, int first,
                           const char *suffix) {
    for (int i = 0; i < list->count; i++) {
        fprintf(out, "  %s%s = ", list->v[i].name, suffix);
        write_shape(out, list->v[i]);
        fprintf(out, " get-tuple-element(%s), index=%d\n", tuple, first + i);
    }
}

/* Writes an array of zeros for each result of the module. */
static arrays write_zeros(FILE *out, const gen *g) {
    arrays zeros = g->results;
    for (int i = 0; i < zeros.count; i++) {
        snprintf(zeros.v[i].name, sizeof zeros.v[i].name, "%%z%d", i);
        fprintf(out, "  %s_scalar = %s[] constant(0)\n  %s = ", zeros.v[i].name, zeros.v[i].type,
                zeros.v[i].name);
        write_shape(out, zeros.v[i]);
        fprintf(out, " broadcast(%s_scalar), dimensions={}\n", zeros.v[i].name);
    }
    return zeros;
}

/* Writes a loop that runs the body twice, with equal results. */
static void write_loop(FILE *out, const gen *g, const char *body) {
    fputs("%again {\n  %s1 = ", out);
    write_state(out, g);
    fputs(" parameter(0)\n  %i1 = s32[] get-tuple-element(%s1), index=0\n"
          "  %two = s32[] constant(2)\n  ROOT %less = pred[] compare(%i1, %two), direction=LT\n}\n"
          "%round {\n  %s2 = ",
          out);
    write_state(out, g);
    fputs(" parameter(0)\n  %i2 = s32[] get-tuple-element(%s2), index=0\n"
          "  %one = s32[] constant(1)\n  %inc = s32[] add(%i2, %one)\n",
          out);
    write_elements(out, &g->parameters, "%s2", 1, "");
    fputs(body, out);
    fputs("  ROOT %next = ", out);
    write_state(out, g);
    fputs(" tuple(%inc", out);
    write_names(out, &g->parameters, true);
    write_names(out, &g->results, true);
    fputs(")\n}\nENTRY %entry {\n", out);
    write_parameters(out, g);
    arrays zeros = write_zeros(out, g);
    fputs("  %none = s32[] constant(0)\n  %start = ", out);
    write_state(out, g);
    fputs(" tuple(%none", out);
    write_names(out, &g->parameters, true);
    write_names(out, &zeros, true);
    fputs(")\n  %end = ", out);
    write_state(out, g);
    fputs(" while(%start), condition=%again, body=%round\n", out);
    write_elements(out, &zeros, "%end", 1 + g->parameters.count, "_end");
    fputs("  ROOT %results = (", out);
    write_shapes(out, &g->results, false);
    fputs(") tuple(", out);
    for (int i = 0; i < zeros.count; i++) fprintf(out, i ? ", %s_end" : "%s_end", zeros.v[i].name);
    fputs(")\n}\n", out);
}

/* Writes a conditional that computes the results, or returns zeros. */
static void write_branch(FILE *out, const gen *g, const char *body) {
    fputs("%computed {\n  %given = (", out);
    write_shapes(out, &g->parameters, false);
    fputs(") parameter(0)\n", out);
    write_elements(out, &g->parameters, "%given", 0, "");
    fputs(body, out);
    write_tuple(out, g);
    fputs("}\n%none {\n  %not_used = (", out);
    write_shapes(out, &g->parameters, false);
    fputs(") parameter(0)\n", out);
    arrays zeros = write_zeros(out, g);
    fputs("  ROOT %instead = (", out);
    write_shapes(out, &zeros, false);
    fputs(") tuple(", out);
    write_names(out, &zeros, false);
    fputs(")\n}\nENTRY %entry {\n", out);
    write_parameters(out, g);
    fprintf(out, "  %%p_which = pred[] parameter(%d)\n  %%all = (", g->parameters.count);
    write_shapes(out, &g->parameters, false);
    fputs(") tuple(", out);
    write_names(out, &g->parameters, false);
    fputs(")\n  ROOT %either = (", out);
    write_shapes(out, &g->results, false);
    fputs(") conditional(%p_which, %all, %all), true_computation=%computed, "
          "false_computation=%none\n}\n",
          out);
}

char *random_module(uint64_t seed) {
    gen g = {.dice = {.state = seed}};
    dice other = {.state = ~seed}, kind = {.state = seed ^ UINT64_MAX / 5};
    if (dice_chance(&other, 2)) return random_handed_in(&other);
    if (dice_chance(&kind, 8)) return random_others(&kind);
    g.wide = DICE_PICK(&g.dice, wide_types);
    g.layouts = dice_chance(&g.dice, 30);
    if (dice_chance(&other, 8)) g.devices = 4;
    if (g.devices && dice_chance(&other, 60)) g.regions = true;
    g.older = dice_chance(&other, 40);
    g.swapped = !g.older && dice_chance(&other, 30);
    char *body = NULL, *text = NULL;
    size_t body_size, size;
    g.body = open_memstream(&body, &body_size);
    if (!g.body) return NULL;
    int dots = dice_chance(&g.dice, 75) ? 1 : 2 + dice_below(&g.dice, 2);
    for (int i = 0; i < dots; i++) {
        array product = gen_dot(&g);
        bool twice = dice_chance(&g.dice, 12);
        if (gen_is_fp8(product.type)) /* a second rounding could move a value by two steps */
            gen_result(&g, product);
        else
            for (int way = 0; way <= twice; way++) gen_epilogue(&g, product);
    }
    if (dice_chance(&kind, 50)) {
        g.dice = kind;
        gen_rare(&g);
    }
    fclose(g.body);
    FILE *out = open_memstream(&text, &size);
    if (out) {
        fprintf(out, g.devices ? "HloModule random, num_partitions=%d%s\n" : "HloModule random\n",
                g.devices, gen_mesh(&g));
        write_maxima(out);
        if (g.devices) write_twice(out);
        int wrap = g.devices ? -1 : dice_below(&g.dice, 10);
        if (wrap == 0)
            write_called(out, &g, body);
        else if (wrap == 1)
            write_loop(out, &g, body);
        else if (wrap == 2 && dice_chance(&other, 40))
            write_branch(out, &g, body);
        else
            write_computation(out, &g, "ENTRY %entry", body);
        fclose(out);
    }
    free(body);
    return text;
}
