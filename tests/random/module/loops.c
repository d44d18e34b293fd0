/* SPDX-License-Identifier: Apache-2.0 */
/* Generates matmuls in loops and branches, with operands that are dequantized outside. */
#include <stdlib.h>

#include "tests/random/module/gen.h"

enum { INSIDE, PLAIN, MULTIPLIED, DIVIDED, CONSTANT, HOWS };

typedef struct operand {
    char name;
    int rows;
    int how;     /* kind of dequantization; INSIDE: the operand is passed in as fp8 */
    bool stack;  /* true if one of two operands is selected inside, by index */
    bool slices; /* true if each of the two operands has a scale */
    bool changes;
} operand;

typedef struct handed {
    dice *dice;
    FILE *out;
    const char *wide;
    operand v[2];
    bool loop, negated, turned;
    int parameters;
} handed;

static void shape(const handed *h, const operand *o, const char *type) {
    fprintf(h->out, o->stack ? "%s[2,%d,32]" : "%s[%d,32]", type, o->rows);
}

static void element(const handed *h, const operand *o) {
    shape(h, o, o->how == INSIDE ? "f8e4m3fn" : h->wide);
}

static void state(const handed *h) {
    fputs("(s32[], ", h->out);
    element(h, &h->v[0]);
    fputs(", ", h->out);
    element(h, &h->v[1]);
    fprintf(h->out, ", %s[16,48])", h->wide);
}

/* Writes the operands outside the loop or branch. */
static void write_outside(handed *h, const operand *o) {
    char n = o->name;
    fprintf(h->out, "  %%p_%c = ", n);
    shape(h, o, "f8e4m3fn");
    fprintf(h->out, " parameter(%d)\n", h->parameters++);
    if (o->how == INSIDE) return;
    bool scaled = o->how != PLAIN;
    fprintf(h->out, "  %%%s_%c = ", scaled ? "w" : "given", n);
    shape(h, o, h->wide);
    fprintf(h->out, " convert(%%p_%c)\n", n);
    if (!scaled) return;
    char kind = o->how == DIVIDED ? 'd' : 'm';
    fprintf(h->out, "  %%%c_%c = %s[%s] ", kind, n, h->wide, o->slices ? "2" : "");
    if (o->how == CONSTANT)
        fputs("constant(0.375)\n", h->out);
    else
        fprintf(h->out, "parameter(%d)\n", h->parameters++);
    fprintf(h->out, "  %%b_%c = ", n);
    shape(h, o, h->wide);
    fprintf(h->out, " broadcast(%%%c_%c), dimensions={%s}\n  %%given_%c = ", kind, n,
            o->slices ? "0" : "", n);
    shape(h, o, h->wide);
    fprintf(h->out, " %s(%%w_%c, %%b_%c)\n", o->how == DIVIDED ? "divide" : "multiply", n, n);
}

static void write_inside(const handed *h, const operand *o, int index) {
    char n = o->name;
    const char *type = o->how == INSIDE ? "f8e4m3fn" : h->wide;
    fprintf(h->out, "  %%in_%c = ", n);
    element(h, o);
    fprintf(h->out, " get-tuple-element(%%s), index=%d\n", index);
    if (o->stack)
        fprintf(h->out,
                "  %%slice_%c = %s[1,%d,32] dynamic-slice(%%in_%c, %%j, %%nought, %%nought), "
                "dynamic_slice_sizes={1,%d,32}\n  %%r_%c = %s[%d,32] reshape(%%slice_%c)\n",
                n, type, o->rows, n, o->rows, n, type, o->rows, n);
    const char *got = o->stack ? "r" : "in";
    fprintf(h->out, "  %%x_%c = %s[%d,32] %s(%%%s_%c)\n", n, h->wide, o->rows,
            o->how == INSIDE ? "convert" : "copy", got, n);
}

static void write_body(const handed *h) {
    fputs("%body {\n  %s = ", h->out);
    state(h);
    fputs(" parameter(0)\n  %j = s32[] get-tuple-element(%s), index=0\n"
          "  %one = s32[] constant(1)\n  %next = s32[] add(%j, %one)\n"
          "  %nought = s32[] constant(0)\n",
          h->out);
    write_inside(h, &h->v[0], 1);
    write_inside(h, &h->v[1], 2);
    if (h->turned)
        fprintf(h->out, "  %%t = %s[32,48] transpose(%%x_b), dimensions={1,0}\n", h->wide);
    fprintf(h->out,
            "  %%d = %s[16,48] dot(%%x_a, %s), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={%d}\n",
            h->wide, h->turned ? "%t" : "%x_b", !h->turned);
    if (h->negated)
        fprintf(h->out,
                "  %%n = %s[48,32] negate(%%x_b)\n  %%e = %s[16,48] dot(%%x_a, %%n), "
                "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
                "  %%f = %s[16,48] maximum(%%d, %%e)\n",
                h->wide, h->wide, h->wide);
    const char *result = h->negated ? "%f" : "%d";
    for (int i = 0; i < 2; i++) {
        if (!h->v[i].changes) continue;
        fprintf(h->out, "  %%new_%c = ", h->v[i].name);
        element(h, &h->v[i]);
        fprintf(h->out, " negate(%%in_%c)\n", h->v[i].name);
    }
    if (!h->loop) {
        fprintf(h->out, "  ROOT %%out = %s[16,48] negate(%s)\n}\n", h->wide, result);
        return;
    }
    fputs("  ROOT %out = ", h->out);
    state(h);
    fprintf(h->out, " tuple(%%next, %%%s_a, %%%s_b, %s)\n}\n", h->v[0].changes ? "new" : "in",
            h->v[1].changes ? "new" : "in", result);
}

static void write_other(const handed *h) {
    fprintf(h->out, "%%other {\n  %%q = ");
    state(h);
    fputs(" parameter(0)\n", h->out);
    if (h->loop)
        fputs("  %i = s32[] get-tuple-element(%q), index=0\n  %two = s32[] constant(2)\n"
              "  ROOT %less = pred[] compare(%i, %two), direction=LT\n}\n",
              h->out);
    else
        fprintf(h->out, "  ROOT %%kept = %s[16,48] get-tuple-element(%%q), index=3\n}\n", h->wide);
}

static void write_entry(handed *h) {
    fputs("ENTRY %entry {\n", h->out);
    write_outside(h, &h->v[0]);
    write_outside(h, &h->v[1]);
    fprintf(h->out,
            "  %%zero = %s[] constant(0)\n  %%zeros = %s[16,48] broadcast(%%zero), dimensions={}\n"
            "  %%first = s32[] constant(0)\n  %%start = ",
            h->wide, h->wide);
    state(h);
    const char *given[2];
    for (int i = 0; i < 2; i++) given[i] = h->v[i].how == INSIDE ? "p" : "given";
    fprintf(h->out, " tuple(%%first, %%%s_a, %%%s_b, %%zeros)\n", given[0], given[1]);
    if (!h->loop) {
        fprintf(
            h->out,
            "  %%p_p = pred[] parameter(%d)\n  ROOT %%y = %s[16,48] conditional(%%p_p, %%start, "
            "%%start), true_computation=%%body, false_computation=%%other\n}\n",
            h->parameters, h->wide);
        return;
    }
    fputs("  %end = ", h->out);
    state(h);
    fprintf(h->out,
            " while(%%start), condition=%%other, body=%%body\n"
            "  ROOT %%y = %s[16,48] get-tuple-element(%%end), index=3\n}\n",
            h->wide);
}

char *random_handed_in(dice *d) {
    char *text = NULL;
    size_t size;
    static const char *const types[] = {"f32", "bf16", "f16"};
    handed h = {.dice = d, .out = open_memstream(&text, &size), .wide = DICE_PICK(d, types)};
    if (!h.out) return NULL;
    h.loop = dice_chance(d, 60);
    h.negated = dice_chance(d, 15);
    h.turned = dice_chance(d, 50);
    for (int i = 0; i < 2; i++) {
        operand *o = &h.v[i];
        *o = (operand){.name = "ab"[i], .rows = i ? 48 : 16, .how = dice_below(d, HOWS)};
        o->stack = dice_chance(d, 40);
        o->slices = o->stack && (o->how == MULTIPLIED || o->how == DIVIDED) && dice_chance(d, 60);
        o->changes = h.loop && o->how != INSIDE && dice_chance(d, 15);
    }
    fputs("HloModule handed_in\n", h.out);
    write_body(&h);
    write_other(&h);
    write_entry(&h);
    fclose(h.out);
    return text;
}
