/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of expansion: dynamic sizes of values, the rules that compute these sizes, and
 * construction of instructions. */
#ifndef HLO_IR_EXPAND_EXPANSION_H
#define HLO_IR_EXPAND_EXPANSION_H

#include "ir/expand/expand.h"
#include "ir/module/build.h"

typedef struct dynamic_value {
    const hlo_shape *declared; /* the declared shape; NULL for a new, static instruction */
    hlo_instruction **sizes;   /* an s32[] per dimension of the value's arrays, flattened through
                                * tuples;   a NULL element denotes a static dimension. NULL if all
                                * dimensions are   static */
} dynamic_value;

typedef struct expansion {
    hlo_module *module;
    const hlo_diag_sink *sink;
    dynamic_value *values; /* indexed by instruction id */
    uint32_t capacity;
    const hlo_shape **results; /* indexed by computation id: the declared shape of the root */
    hlo_builder build[1];      /* build->at is the instruction that is being expanded */
    bool failed;
} expansion;

/* value.c: reports the error "`OPCODE` TEXT" at x->build->at. Returns NULL. */
void *expand_refuse(expansion *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
dynamic_value *dynamic_value_of(expansion *x, const hlo_instruction *instr);
/* Returns the size of a dimension of an array; NULL if it is static. */
hlo_instruction *dynamic_size(expansion *x, const hlo_instruction *array, int64_t dim);
uint32_t dynamic_dims(const hlo_shape *shape);
/* Returns `shape` with a static dimension of the bound in place of each dynamic dimension. */
const hlo_shape *dynamic_bound(hlo_module *module, const hlo_shape *shape);
static inline bool dynamic_declares(const hlo_shape *shape, int64_t dim) {
    return shape->dynamic && shape->dynamic[dim];
}

/* Replaces x->build->at by a new instruction. The new instruction gets the name, the users and the
 * sizes of the replaced instruction, and its attributes that do not affect the value. */
hlo_instruction *expand_replace(expansion *x, hlo_op op, const hlo_shape *shape, uint32_t count,
                                hlo_instruction *const *operands);
hlo_instruction *expand_number(expansion *x, int64_t value); /* returns an s32[] constant */
hlo_instruction *expand_zero(expansion *x, hlo_type type);
/* Broadcasts a scalar to the dimensions of `like`. The result has the scalar's type. */
hlo_instruction *expand_splat(expansion *x, hlo_instruction *scalar, const hlo_shape *like);
/* Returns an s32 array with the dimensions of `like`. Each element is its own index along dimension
 * `dim`. */
hlo_instruction *expand_index(expansion *x, const hlo_shape *like, int64_t dim);
/* Returns `array` with the padding of a dimension set to the scalar `fill`. If `size` is NULL, the
 * dimension has no padding. */
hlo_instruction *expand_mask(expansion *x, hlo_instruction *array, int64_t dim,
                             hlo_instruction *size, hlo_instruction *fill);

/* dynamic_rules.c: computes the sizes of the value of x->build->at, in the order of its shape, and
 * rewrites that instruction or its operands if padding would affect the result. Returns the
 * instruction that now has the value: x->build->at, or its replacement. Returns NULL after an
 * error. */
hlo_instruction *dynamic_rule(expansion *x, hlo_instruction **sizes);

#endif
