/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers block-scaled notation to plain HLO. */
#include "ir/float/float.h"
#include "ir/module/build.h"
#include "matmul/block_scaled.h"

#include <math.h>

static const hlo_shape *array(const hlo_builder *b, hlo_type type, uint32_t rank,
                              const int64_t *dims) {
    return hlo_shape_array(b->at->parent->module, type, rank, dims);
}

static hlo_instr *prefix(hlo_builder *b, hlo_instr *x, const int64_t *dims) {
    return hlo_build_prefix(b, x, array(b, x->shape->type, x->shape->rank, dims));
}

/* Repeats each element of `x` along dimension i ratio[i] times. */
static hlo_instr *repeat(hlo_builder *b, hlo_instr *x, const int64_t *ratio) {
    int64_t wide[2 * HLO_LARGEST_RANK], from[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    const uint32_t rank = x->shape->rank;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        from[i] = count;
        wide[count++] = x->shape->dims[i];
        if (ratio[i] > 1) wide[count++] = ratio[i];
        dims[i] = x->shape->dims[i] * ratio[i];
    }
    x = hlo_build_broadcast(b, x, count, wide, rank, from);
    return hlo_build_reshape(b, x, rank, dims);
}

/* Multiplies values by scales, both converted to `type`. Each scale covers a part of every
 * dimension. */
static hlo_instr *dequantize(hlo_builder *b, hlo_instr *x, hlo_instr *scale, const int64_t *ratio,
                             hlo_type type) {
    hlo_instr *scales = repeat(b, hlo_build_convert(b, scale, type), ratio);
    scales = prefix(b, scales, x->shape->dims);
    return hlo_build_binary(b, HLO_OP_MULTIPLY, hlo_build_convert(b, x, type), scales);
}

/* Makes an operand of a product in `type`. */
static hlo_instr *operand(hlo_builder *b, const hlo_block_dot *dot, bool right, hlo_type type) {
    hlo_instr *x = right ? dot->b : dot->a, *scale = right ? dot->b_scale : dot->a_scale;
    int64_t ratio[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    const uint32_t rank = x->shape->rank;
    if (!scale) return hlo_build_convert(b, x, type);
    if (dot->tiled) {
        /* Reorders scales in tiles of 128 by 4 to rows and columns. */
        const uint32_t scale_rank = scale->shape->rank, row = scale_rank - 2;
        const int64_t rows = scale->shape->dims[row], columns = scale->shape->dims[row + 1];
        int64_t tiles[] = {row ? scale->shape->dims[0] : 1, rows / 128, columns / 4, 32, 4, 4};
        hlo_instr *apart = hlo_build_reshape(b, scale, 6, tiles);
        apart = hlo_build_transpose(b, apart, (int64_t[]){0, 1, 4, 3, 2, 5});
        scale = hlo_build_reshape(b, apart, scale_rank, scale->shape->dims);
    }
    for (uint32_t i = 0; i < rank; i++) {
        const bool padded = dot->rows_padded && i + 2 == rank;
        dims[i] = padded ? x->shape->dims[i] : scale->shape->dims[i];
        ratio[i] = padded ? 1 : x->shape->dims[i] / dims[i];
    }
    if (dot->block) {
        const int64_t size = x->shape->dims[rank - 1];
        ratio[rank - 1] = dot->block < size ? dot->block : size;
        dims[rank - 1] = (size - 1) / dot->block + 1;
    }
    return dequantize(b, x, prefix(b, scale, dims), ratio, type);
}

/* Returns the type that an operand of scaled-dot is dequantized to. */
static hlo_type scaled_type(const hlo_instr *x, const hlo_instr *scale) {
    const hlo_type type = x->shape->type, other = scale ? scale->shape->type : type;
    const int bits = hlo_types[type].bits, other_bits = hlo_types[other].bits;
    if (bits < 16 && other_bits < 16) return HLO_TYPE_BF16;
    if (bits == other_bits) return type == other ? type : HLO_TYPE_F32;
    return bits > other_bits ? type : other;
}

/* Returns the wider of two types, which holds every value of both. */
static hlo_type wider(hlo_type x, hlo_type y) {
    if (x == y) return x;
    if (hlo_types[x].bits == hlo_types[y].bits) return HLO_TYPE_F32;
    return hlo_types[x].bits > hlo_types[y].bits ? x : y;
}

static hlo_instr *expand_dot(hlo_builder *b) {
    hlo_block_dot dot;
    if (hlo_block_dot_read(b->at, &dot)) return NULL;
    hlo_type type = dot.d->type, a_type = type, b_type = type, result = type;
    if (b->at->op == HLO_OP_SCALED_DOT) {
        a_type = scaled_type(dot.a, dot.a_scale);
        b_type = scaled_type(dot.b, dot.b_scale);
        type = wider(a_type, b_type);
        result = wider(type, result);
    }
    if (hlo_block_kind_of(b->at) == HLO_BLOCK_HIPBLAS_DOT)
        a_type = b_type = type = result = HLO_TYPE_F32;
    hlo_instr *operands[] = {hlo_build_convert(b, operand(b, &dot, false, a_type), type),
                             hlo_build_convert(b, operand(b, &dot, true, b_type), type)};
    hlo_module *module = b->at->parent->module;
    const hlo_dot_lists dims = {{dot.a_batch, dot.b_batch}, {dot.a_contracting, dot.b_contracting}};
    hlo_instr *made = hlo_build_dot(b, hlo_shape_retype(module, dot.d, result), operands, &dims);
    made = hlo_build_convert(b, made, dot.d->type);
    if (!dot.global_scale) return made;
    return hlo_build_by_scalar(b, HLO_OP_MULTIPLY, made, dot.global_scale);
}

hlo_instr *hlo_block_expand_dot(hlo_instr *product) {
    return expand_dot(&(hlo_builder){.at = product});
}

/* Builds the plain HLO of `instr`. Returns NULL if `instr` is not block-scaled notation or is
 * invalid. */
static hlo_instr *expand(hlo_instr *instr, hlo_computation **maximum) {
    hlo_builder b = {.at = instr};
    if (hlo_block_fault(instr)) return NULL;
    switch (hlo_block_kind_of(instr)) {
    case HLO_BLOCK_NONE: return NULL;
    case HLO_BLOCK_SCALED_DOT:
    case HLO_BLOCK_OP_DOT: return expand_dot(&b);
    case HLO_BLOCK_CUDNN_DOT:
    case HLO_BLOCK_HIPBLAS_DOT: {
        /* The call returns a tuple with a workspace, which nothing reads. */
        hlo_instr *product = expand_dot(&b);
        const hlo_shape *shape = b.at->shape;
        hlo_instr *results[2] = {product};
        if (shape->type != HLO_TYPE_TUPLE) return product;
        if (shape->rank == 2) results[1] = hlo_build_filled(&b, shape->elements[1], 0);
        return hlo_build(&b, HLO_OP_TUPLE, shape, shape->rank, results);
    }
    case HLO_BLOCK_QUANTIZE: {
        /* Quantize blocks as XLA does: the scale is the amax divided by the power of two of the
         * largest value. */
        hlo_instr *x = hlo_instr_operand(b.at, 0);
        const hlo_shape *values = b.at->shape->elements[0], *scales = b.at->shape->elements[1];
        const hlo_type type = x->shape->type;
        const uint32_t rank = values->rank;
        int64_t apart[HLO_LARGEST_RANK + 1], ratio[HLO_LARGEST_RANK], last = rank;
        for (uint32_t i = 0; i < rank; i++) {
            apart[i] = scales->dims[i];
            ratio[i] = values->dims[i] / scales->dims[i];
        }
        apart[rank] = ratio[rank - 1];
        hlo_instr *sizes =
            hlo_build_unary(&b, HLO_OP_ABS, hlo_build_reshape(&b, x, rank + 1, apart));
        hlo_instr *amax = hlo_build_reduce(&b, HLO_OP_MAXIMUM, sizes, 0,
                                           array(&b, type, rank, scales->dims), 1, &last, maximum);
        const double power = ldexp(1, ilogb(hlo_float_max(values->type)));
        hlo_instr *scale = hlo_build_by_number(&b, HLO_OP_DIVIDE, amax, power);
        scale = hlo_build(&b, HLO_OP_CONVERT, scales, 1, &scale);
        hlo_instr *factor = repeat(&b, hlo_build_convert(&b, scale, type), ratio);
        hlo_instr *scaled = hlo_build_binary(&b, HLO_OP_DIVIDE, x, factor);
        hlo_instr *results[] = {hlo_build(&b, HLO_OP_CONVERT, values, 1, &scaled), scale};
        return hlo_build(&b, HLO_OP_TUPLE, b.at->shape, 2, results);
    }
    case HLO_BLOCK_DEQUANTIZE: {
        hlo_instr *x = hlo_instr_operand(b.at, 0), *scale = hlo_instr_operand(b.at, 1);
        int64_t ratio[HLO_LARGEST_RANK];
        for (uint32_t i = 0; i < x->shape->rank; i++)
            ratio[i] = x->shape->dims[i] / scale->shape->dims[i];
        return dequantize(&b, x, scale, ratio, b.at->shape->type);
    }
    }
    return NULL;
}

void hlo_block_expand(hlo_module *module) {
    hlo_computation *maximum = NULL;
    uint32_t last = module->next_computation_id;
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        if (comp->id >= last) continue;
        for (hlo_instr *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            hlo_instr *made = expand(instr, &maximum);
            if (!made) continue;
            hlo_instr_replace_uses(instr, made);
            hlo_instr_inherit(made, instr);
            hlo_instr_remove(instr);
        }
    }
}
