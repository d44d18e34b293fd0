/* SPDX-License-Identifier: Apache-2.0 */
/* Builds instructions, each before one position in a computation.
 *
 * A function that takes operands returns NULL if one of them is NULL, or if hlo_builder.admits
 * rejects the instruction. Calls can therefore be nested, and only the last result needs to be
 * checked. If `admits` is NULL, only hlo_build_splat() and hlo_build_by_scalar() return NULL for
 * operands that are not NULL.
 *
 * If the caller does not pass the shape of a result, the shape has the default layout, unless it is
 * the shape of an operand. */
#ifndef HLO_IR_MODULE_BUILD_H
#define HLO_IR_MODULE_BUILD_H

#include "ir/ir.h"

/* A struct that has a builder declares it as `hlo_builder build[1]`: `s->build` is then a pointer.
 */
typedef struct hlo_builder hlo_builder;
struct hlo_builder {
    hlo_instruction *at;         /* new instructions are inserted before this one */
    const hlo_instruction *like; /* source of metadata and source offset; NULL: `at` */
    /* Returns true if the instruction may be created. NULL: all instructions may be created. */
    bool (*admits)(hlo_builder *b, const hlo_shape *shape, uint32_t count,
                   hlo_instruction *const *operands);
};

hlo_instruction *hlo_build(hlo_builder *b, hlo_op op, const hlo_shape *shape, uint32_t count,
                           hlo_instruction *const *operands);
hlo_instruction *hlo_build_ints(hlo_builder *b, hlo_op op, const hlo_shape *shape, uint32_t count,
                                hlo_instruction *const *operands, hlo_attr_id id,
                                uint32_t int_count, const int64_t *ints);
/* Builds an instruction with the opcode and the attributes of `of`. */
hlo_instruction *hlo_build_clone(hlo_builder *b, const hlo_instruction *of, const hlo_shape *shape,
                                 hlo_instruction *const *operands);

/* Build an elementwise instruction in the shape of `x`. */
hlo_instruction *hlo_build_unary(hlo_builder *b, hlo_op op, hlo_instruction *x);
hlo_instruction *hlo_build_binary(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                  hlo_instruction *y);
hlo_instruction *hlo_build_compare(hlo_builder *b, hlo_instruction *x, const char *direction,
                                   hlo_instruction *y);
hlo_instruction *hlo_build_select(hlo_builder *b, hlo_instruction *where, hlo_instruction *x,
                                  hlo_instruction *y);
/* Converts `x`. Returns `x` if it already has the type. */
hlo_instruction *hlo_build_convert(hlo_builder *b, hlo_instruction *x, hlo_type type);

/* Reshapes, transposes or broadcasts `x`. `order` maps each dimension of the result to a dimension
 * of `x`. `from` maps each dimension of `x` to a dimension of the result. Each function returns `x`
 * if nothing would change, and builds a reshape if only dimensions of one element move. */
hlo_instruction *hlo_build_reshape(hlo_builder *b, hlo_instruction *x, uint32_t rank,
                                   const int64_t *dims);
hlo_instruction *hlo_build_transpose(hlo_builder *b, hlo_instruction *x, const int64_t *order);
hlo_instruction *hlo_build_broadcast(hlo_builder *b, hlo_instruction *x, uint32_t rank,
                                     const int64_t *dims, uint32_t count, const int64_t *from);
hlo_instruction *hlo_build_broadcast_like(hlo_builder *b, hlo_instruction *x, const hlo_shape *like,
                                          uint32_t count, const int64_t *from);
/* Slices `x` to `shape`. `slices` has the start, limit and stride of each dimension. Returns `x` if
 * `shape` has the dimensions of `x`. */
hlo_instruction *hlo_build_slice(hlo_builder *b, hlo_instruction *x, const hlo_shape *shape,
                                 const int64_t *slices);
/* Slices the first elements of each dimension. */
hlo_instruction *hlo_build_prefix(hlo_builder *b, hlo_instruction *x, const hlo_shape *shape);
/* Pads `x` to `shape` with the scalar `fill`. `padding` has, for each dimension, the number of
 * elements to add before, after and between the elements of `x`. */
hlo_instruction *hlo_build_pad(hlo_builder *b, hlo_instruction *x, hlo_instruction *fill,
                               const hlo_shape *shape, const int64_t *padding);

hlo_instruction *hlo_build_iota(hlo_builder *b, const hlo_shape *shape, int64_t dim);
hlo_instruction *hlo_build_number(hlo_builder *b, hlo_type type, double number);
hlo_instruction *hlo_build_filled(hlo_builder *b, const hlo_shape *shape, double number);
/* Converts `x`, which has one element or repeats one known number (known.h), to the type of `shape`
 * and broadcasts it. Returns NULL if `x` or `shape` is not such an array. */
hlo_instruction *hlo_build_splat(hlo_builder *b, hlo_instruction *x, const hlo_shape *shape);

typedef struct hlo_dot_lists {
    const hlo_ints *batch[2], *contracting[2];
} hlo_dot_lists;
hlo_instruction *hlo_build_dot(hlo_builder *b, const hlo_shape *shape,
                               hlo_instruction *const *operands, const hlo_dot_lists *dims);

/* Combine each element of `x` with a scalar, which is broadcast as by hlo_build_splat(), or with a
 * number. */
hlo_instruction *hlo_build_by_scalar(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                     hlo_instruction *scalar);
hlo_instruction *hlo_build_by_number(hlo_builder *b, hlo_op op, hlo_instruction *x, double number);

hlo_instruction *hlo_build_tuple(hlo_builder *b, uint32_t count, hlo_instruction *const *elements);
hlo_instruction *hlo_build_element(hlo_builder *b, hlo_instruction *tuple, int64_t index);

/* Reduces the dimensions `dims` of `x` by the binary opcode `op`, starting from 0, to `shape`.
 * `kept` caches the computation across calls: the computation is reused if it fits, and otherwise
 * replaced. If `kept` is NULL, a new computation is created. */
hlo_instruction *hlo_build_reduce(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                  const hlo_shape *shape, uint32_t count, const int64_t *dims,
                                  hlo_computation **kept);

#endif
