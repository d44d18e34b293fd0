/* Internals: the sizes of values, rules that find them, and the instructions that they are made of.
 */
#ifndef HLO_IR_EXPAND_EXPANSION_H
#define HLO_IR_EXPAND_EXPANSION_H

#include "ir/expand/expand.h"
#include "ir/module/build.h"

/* The sizes of an instruction's value. */
typedef struct dynamic_value {
    const hlo_shape *declared; /* the shape that the text gives; NULL: it is made here, static */
    hlo_instr **sizes; /* s32[] of each dimension of its arrays, one after another through tuples;
                          NULL in the list: the dimension is static. NULL: all are */
} dynamic_value;

typedef struct expansion {
    hlo_module *module;
    const hlo_diag_sink *sink;
    dynamic_value *values; /* by instruction id */
    uint32_t capacity;
    const hlo_shape **results; /* by computation id: the shape that the text gives the root */
    hlo_builder build[1];      /* build->at is the instruction that is expanded */
    bool failed;
} expansion;

/* value.c: emits an error at x->build->at, "`OPCODE` TEXT". Returns NULL. */
void *expand_refuse(expansion *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
dynamic_value *dynamic_value_of(expansion *x, const hlo_instr *instr);
/* Returns the size of a dimension of an array; NULL: it is static. */
hlo_instr *dynamic_size(expansion *x, const hlo_instr *array, int64_t dim);
/* Counts the dimensions of a shape's arrays. */
uint32_t dynamic_dims(const hlo_shape *shape);
/* Returns the bound of a shape. */
const hlo_shape *dynamic_bound(hlo_module *module, const hlo_shape *shape);
static inline bool dynamic_declares(const hlo_shape *shape, int64_t dim) {
    return shape->dynamic && shape->dynamic[dim];
}

/* rules.c: finds the sizes of the value of x->build->at, in its shape's order, and changes its
 * operands or itself where padding would reach the result. Returns the instruction that has the
 * value, x->build->at or one made in its place; NULL: refused. */
hlo_instr *dynamic_rule(expansion *x, hlo_instr **sizes);
/* rewrite.c, reshape.c: rules that replace x->build->at. */
hlo_instr *dynamic_concatenate(expansion *x, hlo_instr **sizes);
hlo_instr *dynamic_reverse(expansion *x, hlo_instr **sizes);
hlo_instr *dynamic_sort(expansion *x, hlo_instr **sizes);
hlo_instr *dynamic_reshape(expansion *x, hlo_instr **sizes);

/* Makes an instruction in the place of x->build->at, with its name, attributes that do not change
 * what it computes, users and sizes. */
hlo_instr *expand_replace(expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                          hlo_instr *const *operands);
hlo_instr *expand_number(expansion *x, int64_t value); /* s32[] */
hlo_instr *expand_zero(expansion *x, hlo_type type);
/* Broadcasts a scalar to the dimensions of `like`, in its own type. */
hlo_instr *expand_splat(expansion *x, hlo_instr *scalar, const hlo_shape *like);
/* Makes the index along a dimension of each element of an array like `like`, in s32. */
hlo_instr *expand_index(expansion *x, const hlo_shape *like, int64_t dim);
/* Makes `array` with `fill`, a scalar, as the padding of a dimension; NULL `size`: none. */
hlo_instr *expand_mask(expansion *x, hlo_instr *array, int64_t dim, hlo_instr *size,
                       hlo_instr *fill);

#endif
