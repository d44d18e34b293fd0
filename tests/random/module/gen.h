/* SPDX-License-Identifier: Apache-2.0 */
/* Generates random modules with dots of fp8 values.
 *
 *   gen.c          the text of a module: names, shapes, layouts, parameters, results, wrapping
 *   operand.c      operands of dots: quantized values, dequantized and moved
 *   result.c       users of the product: bias, activation, scale, clamp, amax
 *   table.c        numbers taken from tables
 *   collectives.c  collectives among four devices, scales that differ between them
 *   regions.c      manual regions and their operands
 *   loops.c        loops and branches with dequantized operands
 *   rare.c         forms that are rare in the other files
 *   products.c     modules of other products: ragged, block-scaled, convolutions, library calls */
#ifndef HLO_TESTS_RANDOM_MODULE_GEN_H
#define HLO_TESTS_RANDOM_MODULE_GEN_H

#include <stdio.h>

#include "tests/random/module/draw.h"

enum { MAX_RANK = 8, MAX_ARRAYS = 64 };

typedef struct array {
    char name[16];
    const char *type;
    int rank, dims[MAX_RANK];
    bool replicated; /* true for a parameter that is equal on all devices */
} array;

typedef struct arrays {
    int count;
    array v[MAX_ARRAYS];
} arrays;

/* The kinds of the dimensions of a dot's operand. */
typedef struct side {
    array shape;
    int batch[MAX_RANK], contracting[MAX_RANK];
} side;

/* The left operand of a dot, which other dots may share. */
typedef struct left {
    side side;
    array value, batch, contracting, m; /* the operand, and the sizes of its dimensions by kind */
    bool bare;                          /* true if the operand is fp8 without dequantization */
} left;

typedef struct gen {
    dice dice;
    FILE *body;        /* the text of all instructions except parameters */
    unsigned next;     /* number of the next name */
    const char *wide;  /* the element type in which most of the module computes */
    bool layouts;      /* true if layouts are also random */
    const char *order; /* layout of new values; NULL: the default layout */
    int devices;       /* number of devices; 0: usually one */
    int channels;      /* number of used channels */
    bool regions;      /* true if the module is not partitioned, and all of it is in nested manual
                          regions */
    bool older;        /* true for regions with HLO shardings instead of Shardy's */
    bool swapped;      /* true if the mesh has reordered devices */
    arrays parameters, results;
    arrays scales;   /* scalars that may be reused */
    arrays products; /* results of dots */
    left left;       /* the left operand of the previous dot; rank 0 at first */
} gen;

/* Returns the text of the module of a seed; NULL if memory runs out. The caller frees the text. */
char *random_module(uint64_t seed);

/* Functions of gen.c that the other files use. */
array gen_shape(const char *type, int rank, const int *dims);
/* Writes `%v1 = type[dims]{layout} ` and the formatted rest; the value has `shape`. */
array gen_emit(gen *g, array shape, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Creates a parameter. `prefix` begins its name: `m` for factors that may be 0, `d` for divisors,
 * `n` for divisors near 1, `p` for others. */
array gen_parameter(gen *g, char prefix, array shape);
array gen_constant(gen *g, const char *type, double value); /* sometimes by gen_of_table() */
/* Broadcasts `scalar` to the given shape, in the scalar's type. */
array gen_splat(gen *g, array scalar, array shape);
array gen_convert(gen *g, array value, const char *type);
/* Writes an operation on two values of one shape; with `swap`, the operands may be exchanged. */
array gen_binary(gen *g, const char *op, array a, array b, bool swap);
void gen_result(gen *g, array value);                      /* makes it a result of the module */
const char *gen_dims(array shape, char *out, size_t size); /* writes dimensions such as `16,32` */
int64_t gen_count(array shape);
/* Creates a scalar scale of that type. If `divides`, only a scale that is an amax may be 0. */
array gen_scale(gen *g, const char *type, bool divides);
const char *gen_wide_type(gen *g);
bool gen_is_fp8(const char *type);

/* table.c: creates a scalar that is one element of a constant array. */
array gen_of_table(gen *g, const char *type, double number);
/* Creates a value of that wide type, if possible with the bytes of a parameter of another type. */
array gen_bits(gen *g, array shape);

/* collectives.c: creates a value of that shape that a collective receives; `make` creates each
 * device's part. */
typedef array gen_maker(gen *g, array shape, void *arg);
array gen_sent(gen *g, array shape, gen_maker *make, void *arg);
/* Returns the maximum over all devices or over two. */
array gen_agreed(gen *g, array scalar);
/* Creates a scalar that differs between devices; gen_called() creates one that a computation
 * returns on each device. */
array gen_own(gen *g, array scalar);
array gen_called(gen *g, array scalar);

/* regions.c: returns the text of the mesh for the module's header. */
const char *gen_mesh(const gen *g);
/* Creates the operand of both regions from a parameter of the entry. */
array gen_handed(gen *g, array shape, array whole_parameter(gen *g, array shape, char prefix),
                 char prefix);
/* Passes the scalar out of the inner region and into it again, with the value of either device
 * along 'y'. */
array gen_come_back(gen *g, array scalar);

/* operand.c: creates a dot, and adds its result to `products`. */
array gen_dot(gen *g);

/* rare.c: creates a dot and its results, of a rare form. */
void gen_rare(gen *g);

/* Returns the text of a module with a loop or a branch (loops.c); NULL if memory runs out. The
 * caller frees the text. */
char *random_handed_in(dice *d);

/* Returns the text of a module of other products (products.c). The caller frees the text. */
char *random_others(dice *d);

/* result.c: creates epilogues, quantization and amax. */
void gen_epilogue(gen *g, array product);
/* Creates the amax over all dimensions except `kept` (-1: over all). */
array gen_amax(gen *g, array value, int kept);
/* Creates a tanh gelu, or an expression with one slightly different constant. */
array gen_gelu(gen *g, array value);
/* Clamps to exactly or approximately +-most. */
array gen_clamped(gen *g, array value, double most);

#endif
