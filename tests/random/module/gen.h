/* SPDX-License-Identifier: Apache-2.0 */
/* Modules with dots of fp8 values, drawn from a seed.
 *
 *   gen.c          the text of a module: names, shapes, layouts, parameters, results, wrapping
 *   operand.c      operands of dots: quantized values, dequantized and moved
 *   result.c       users of the product: bias, activation, scale, clamp, amax
 *   table.c        numbers taken from tables
 *   collectives.c  collectives among four devices, scales that differ between them
 *   regions.c      manual regions and their operands
 *   loops.c        loops and branches with dequantized operands
 *   rare.c         forms that the other files seldom make
 *   products.c     products that no rule rewrites */
#ifndef HLO_TESTS_RANDOM_MODULE_GEN_H
#define HLO_TESTS_RANDOM_MODULE_GEN_H

#include <stdio.h>

#include "tests/random/module/draw.h"

enum { MAX_RANK = 8, MAX_ARRAYS = 64 };

typedef struct array {
    char name[16];
    const char *type;
    int rank, dims[MAX_RANK];
    bool replicated; /* of a parameter: it is the same on all devices */
} array;

typedef struct arrays {
    int count;
    array v[MAX_ARRAYS];
} arrays;

/* A side of a dot: the kinds of its dimensions. */
typedef struct side {
    array shape;
    int batch[MAX_RANK], contracting[MAX_RANK];
} side;

/* The left side of a dot, which others may multiply as well. */
typedef struct left {
    side side;
    array value, batch, contracting, m; /* sizes of the dimensions of each kind */
    bool bare;                          /* fp8 as it is */
} left;

typedef struct gen {
    dice dice;
    FILE *body;        /* instructions, parameters left out */
    unsigned next;     /* number of the next name */
    const char *wide;  /* the element type that most of the module computes in */
    bool layouts;      /* physical orders are drawn too */
    const char *order; /* the one that values have, while it is set */
    int devices;       /* that the module is for; 0: one, as a rule */
    int channels;      /* numbers that are in use */
    bool regions;      /* the module is not partitioned: all is in regions, one in another */
    bool older;        /* regions with shardings of HLO, not Shardy's */
    bool swapped;      /* the mesh has its devices in another order */
    arrays parameters, results;
    arrays scales;   /* scalars that other places may use again */
    arrays products; /* results of dots */
    left left;       /* of the dot before; no rank: none */
} gen;

/* The text of the module of that seed; the caller frees it. NULL: out of memory. */
char *random_module(uint64_t seed);

/* gen.c: for the other two. */
array gen_shape(const char *type, int rank, const int *dims);
/* Writes `%v1 = type[dims]{layout} ` and the formatted rest; the value has `shape`. */
array gen_emit(gen *g, array shape, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Makes a parameter. `prefix` begins its name: `m` for factors that may be 0, `d` for divisors, `n`
 * for divisors near 1, `p` for anything. */
array gen_parameter(gen *g, char prefix, array shape);
array gen_constant(gen *g, const char *type, double value); /* now and then gen_of_table() */
/* `scalar` at every place of an array of that shape and the scalar's type. */
array gen_splat(gen *g, array scalar, array shape);
array gen_convert(gen *g, array value, const char *type);
/* An operation on two values of one shape, in either order if `swap`. */
array gen_binary(gen *g, const char *op, array a, array b, bool swap);
void gen_result(gen *g, array value);                      /* makes it a result of the module */
const char *gen_dims(array shape, char *out, size_t size); /* `16,32` */
int64_t gen_count(array shape);
/* A scalar of that type to scale with; it never is 0 if it `divides`. */
array gen_scale(gen *g, const char *type, bool divides);
const char *gen_wide_type(gen *g);
bool gen_is_fp8(const char *type);

/* table.c: a scalar, taken out of a constant that has other numbers as well. */
array gen_of_table(gen *g, const char *type, double number);
/* A value of that wide type that has the bytes of a parameter of another one. */
array gen_bits(gen *g, array shape);

/* collectives.c: a value of that shape from other devices; `make` makes each device's part. */
typedef array gen_maker(gen *g, array shape, void *arg);
array gen_sent(gen *g, array shape, gen_maker *make, void *arg);
/* The largest of all devices' values. */
array gen_agreed(gen *g, array scalar);
/* A scalar that differs between devices; gen_called(): one that a computation returns to each. */
array gen_own(gen *g, array scalar);
array gen_called(gen *g, array scalar);

/* regions.c: the mesh in the module's header. */
const char *gen_mesh(const gen *g);
/* Makes both regions' operand from a parameter of the entry. */
array gen_handed(gen *g, array shape, array whole_parameter(gen *g, array shape, char prefix),
                 char prefix);
/* The scalar left the inner region, and is in it again: that of either device along 'y'. */
array gen_come_back(gen *g, array scalar);

/* operand.c: a dot; its result is in `products`. */
array gen_dot(gen *g);

/* rare.c: a dot and its results, of a form that the others seldom have. */
void gen_rare(gen *g);

/* handed.c: the text of a module; the caller frees it. NULL: out of memory. */
char *random_handed_in(dice *d);

/* others.c: the same. */
char *random_others(dice *d);

/* result.c: epilogues, quantizing, amax. */
void gen_epilogue(gen *g, array product);
/* The amax over all dimensions but `kept`, which is -1 if none is. */
array gen_amax(gen *g, array value, int kept);
/* The tanh form, or one number of it a little off. */
array gen_gelu(gen *g, array value);
/* Clamped to about +-most. */
array gen_clamped(gen *g, array value, double most);

#endif
