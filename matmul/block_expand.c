/* Block-scaled notation, as the plain HLO that it means. */
#include "ir/float/float.h"
#include "matmul/block_scaled.h"

#include <math.h>

/* The place of new instructions: before `at`, which they replace. */
typedef struct place {
    hlo_module *module;
    hlo_instr *at;
    hlo_computation *larger; /* max(x, y) of scalars of `larger_type` */
    hlo_type larger_type;
} place;

static hlo_instr *make(const place *p, hlo_op op, const hlo_shape *shape, uint32_t count,
                       hlo_instr *const *operands) {
    hlo_instr *made = hlo_instr_new(p->at->parent, p->at, op, shape, count, operands, NULL);
    const hlo_attr *metadata = hlo_instr_attr(p->at, HLO_ATTR_METADATA);
    made->offset = p->at->offset;
    if (metadata) hlo_instr_set_attr(made, *metadata);
    return made;
}

static const hlo_shape *array(const place *p, hlo_type type, uint32_t rank, const int64_t *dims) {
    return hlo_shape_array(p->module, type, rank, dims);
}

static hlo_instr *convert(const place *p, hlo_instr *x, hlo_type type) {
    if (x->shape->type == type) return x;
    return make(p, HLO_OP_CONVERT, array(p, type, x->shape->rank, x->shape->dims), 1, &x);
}

static hlo_instr *reshape(const place *p, hlo_instr *x, uint32_t rank, const int64_t *dims) {
    const hlo_shape *shape = array(p, x->shape->type, rank, dims);
    return hlo_shape_same_dims(shape, x->shape) ? x : make(p, HLO_OP_RESHAPE, shape, 1, &x);
}

static hlo_instr *broadcast(const place *p, hlo_instr *x, uint32_t rank, const int64_t *dims,
                            uint32_t count, const int64_t *from) {
    hlo_instr *made = make(p, HLO_OP_BROADCAST, array(p, x->shape->type, rank, dims), 1, &x);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, count, from);
    return made;
}

static hlo_instr *prefix(const place *p, hlo_instr *x, const int64_t *dims) {
    int64_t slices[3 * HLO_LARGEST_RANK];
    const hlo_shape *shape = array(p, x->shape->type, x->shape->rank, dims);
    if (hlo_shape_same_dims(shape, x->shape)) return x;
    for (uint32_t i = 0; i < shape->rank; i++) {
        slices[3 * i] = 0;
        slices[3 * i + 1] = dims[i];
        slices[3 * i + 2] = 1;
    }
    hlo_instr *made = make(p, HLO_OP_SLICE, shape, 1, &x);
    hlo_instr_set_ints(made, HLO_ATTR_SLICE, 3 * shape->rank, slices);
    return made;
}

static hlo_instr *binary(const place *p, hlo_op op, hlo_instr *x, hlo_instr *y) {
    hlo_instr *operands[] = {x, y};
    return make(p, op, array(p, x->shape->type, x->shape->rank, x->shape->dims), 2, operands);
}

/* Repeats each element of `x` along dimension i ratio[i] times. */
static hlo_instr *repeat(const place *p, hlo_instr *x, const int64_t *ratio) {
    int64_t wide[2 * HLO_LARGEST_RANK], from[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    const uint32_t rank = x->shape->rank;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        from[i] = count;
        wide[count++] = x->shape->dims[i];
        if (ratio[i] > 1) wide[count++] = ratio[i];
        dims[i] = x->shape->dims[i] * ratio[i];
    }
    return count == rank ? x : reshape(p, broadcast(p, x, count, wide, rank, from), rank, dims);
}

/* Makes values times scales, both in `type`, each scale for a part of every dimension. */
static hlo_instr *dequantize(const place *p, hlo_instr *x, hlo_instr *scale, const int64_t *ratio,
                             hlo_type type) {
    hlo_instr *scales = repeat(p, convert(p, scale, type), ratio);
    return binary(p, HLO_OP_MULTIPLY, convert(p, x, type), prefix(p, scales, x->shape->dims));
}

/* Puts scales that lie in tiles of 128 by 4 in the order of rows and columns. */
static hlo_instr *untile(const place *p, hlo_instr *x) {
    const uint32_t rank = x->shape->rank, b = rank - 2;
    const int64_t rows = x->shape->dims[b], columns = x->shape->dims[b + 1];
    int64_t tiles[] = {b ? x->shape->dims[0] : 1, rows / 128, columns / 4, 32, 4, 4};
    int64_t lines[] = {tiles[0], rows / 128, 4, 32, columns / 4, 4};
    hlo_instr *apart = reshape(p, x, 6, tiles);
    hlo_instr *turned = make(p, HLO_OP_TRANSPOSE, array(p, x->shape->type, 6, lines), 1, &apart);
    hlo_instr_set_ints(turned, HLO_ATTR_DIMENSIONS, 6, (int64_t[]){0, 1, 4, 3, 2, 5});
    return reshape(p, turned, rank, x->shape->dims);
}

/* Makes an operand of a product in `type`. */
static hlo_instr *operand(const place *p, const hlo_block_dot *dot, bool b, hlo_type type) {
    hlo_instr *x = b ? dot->b : dot->a, *scale = b ? dot->b_scale : dot->a_scale;
    int64_t ratio[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    const uint32_t rank = x->shape->rank;
    if (!scale) return convert(p, x, type);
    if (dot->tiled) scale = untile(p, scale);
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
    return dequantize(p, x, prefix(p, scale, dims), ratio, type);
}

/* Returns the type that an operand of scaled-dot is dequantized to. */
static hlo_type scaled_type(const hlo_instr *x, const hlo_instr *scale) {
    const hlo_type type = x->shape->type, other = scale ? scale->shape->type : type;
    const int bits = hlo_types[type].bits, other_bits = hlo_types[other].bits;
    if (bits < 16 && other_bits < 16) return HLO_TYPE_BF16;
    if (bits == other_bits) return type == other ? type : HLO_TYPE_F32;
    return bits > other_bits ? type : other;
}

/* Returns the type that holds both. */
static hlo_type wider(hlo_type x, hlo_type y) {
    if (x == y) return x;
    if (hlo_types[x].bits == hlo_types[y].bits) return HLO_TYPE_F32;
    return hlo_types[x].bits > hlo_types[y].bits ? x : y;
}

static hlo_instr *expand_dot(const place *p) {
    hlo_block_dot dot;
    if (hlo_block_dot_read(p->at, &dot)) return NULL;
    hlo_type type = dot.d->type, a_type = type, b_type = type, result = type;
    if (p->at->op == HLO_OP_SCALED_DOT) {
        a_type = scaled_type(dot.a, dot.a_scale);
        b_type = scaled_type(dot.b, dot.b_scale);
        type = wider(a_type, b_type);
        result = wider(type, result);
    }
    if (hlo_block_kind_of(p->at) == HLO_BLOCK_HIPBLAS_DOT)
        a_type = b_type = type = result = HLO_TYPE_F32;
    hlo_instr *operands[] = {convert(p, operand(p, &dot, false, a_type), type),
                             convert(p, operand(p, &dot, true, b_type), type)};
    hlo_instr *made = make(p, HLO_OP_DOT, hlo_shape_retype(p->module, dot.d, result), 2, operands);
    if (dot.a_batch->count) {
        hlo_instr_set_ints(made, HLO_ATTR_LHS_BATCH_DIMS, dot.a_batch->count, dot.a_batch->v);
        hlo_instr_set_ints(made, HLO_ATTR_RHS_BATCH_DIMS, dot.b_batch->count, dot.b_batch->v);
    }
    hlo_instr_set_ints(made, HLO_ATTR_LHS_CONTRACTING_DIMS, 1, dot.a_contracting->v);
    hlo_instr_set_ints(made, HLO_ATTR_RHS_CONTRACTING_DIMS, 1, dot.b_contracting->v);
    if (result != dot.d->type) made = make(p, HLO_OP_CONVERT, dot.d, 1, &made);
    if (!dot.global_scale) return made;
    hlo_instr *factors[] = {made,
                            broadcast(p, dot.global_scale, dot.d->rank, dot.d->dims, 0, NULL)};
    return make(p, HLO_OP_MULTIPLY, dot.d, 2, factors);
}

hlo_instr *hlo_block_expand_dot(hlo_instr *product) {
    const place p = {.module = product->parent->module, .at = product};
    return expand_dot(&p);
}

/* Makes the tuple that a call returns, whose workspace nothing reads. */
static hlo_instr *with_workspace(const place *p, hlo_instr *product) {
    const hlo_shape *shape = p->at->shape;
    hlo_instr *results[2] = {product};
    if (shape->type != HLO_TYPE_TUPLE) return product;
    if (shape->rank == 2) {
        const hlo_shape *leaf = shape->elements[1];
        hlo_instr *zero = hlo_constant_scalar(p->at->parent, p->at, leaf->type, 0);
        results[1] = broadcast(p, zero, leaf->rank, leaf->dims, 0, NULL);
    }
    return make(p, HLO_OP_TUPLE, shape, shape->rank, results);
}

static hlo_instr *expand_dequantize(const place *p) {
    hlo_instr *x = hlo_instr_operand(p->at, 0), *scale = hlo_instr_operand(p->at, 1);
    int64_t ratio[HLO_LARGEST_RANK];
    for (uint32_t i = 0; i < x->shape->rank; i++)
        ratio[i] = x->shape->dims[i] / scale->shape->dims[i];
    return dequantize(p, x, scale, ratio, p->at->shape->type);
}

/* Makes max(x, y) the module's first computation. */
static void make_larger(place *p, hlo_type type) {
    if (p->larger && p->larger_type == type) return;
    hlo_computation *last = p->module->last;
    hlo_computation *made = p->larger = hlo_computation_new(p->module, "larger");
    const hlo_shape *scalar = array(p, type, 0, NULL);
    hlo_instr *parameters[2];
    for (int i = 0; i < 2; i++) {
        parameters[i] = hlo_instr_new(made, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, NULL);
        hlo_instr_set_parameter(parameters[i], i);
    }
    hlo_computation_set_root(
        made, hlo_instr_new(made, NULL, HLO_OP_MAXIMUM, scalar, 2, parameters, NULL));
    p->larger_type = type;
    for (hlo_computation *moved = NULL; moved != last;)
        hlo_computation_move_last(moved = p->module->first);
}

/* Quantizes blocks as XLA does: the scale is the amax over the power of two of the largest value.
 */
static hlo_instr *expand_quantize(place *p) {
    hlo_instr *x = hlo_instr_operand(p->at, 0);
    const hlo_shape *values = p->at->shape->elements[0], *scales = p->at->shape->elements[1];
    const hlo_type type = x->shape->type;
    const uint32_t rank = values->rank;
    int64_t apart[HLO_LARGEST_RANK + 1], ratio[HLO_LARGEST_RANK], last = rank;
    make_larger(p, type);
    for (uint32_t i = 0; i < rank; i++) {
        apart[i] = scales->dims[i];
        ratio[i] = values->dims[i] / scales->dims[i];
    }
    apart[rank] = ratio[rank - 1];
    hlo_instr *blocks = reshape(p, x, rank + 1, apart);
    hlo_instr *sizes = make(p, HLO_OP_ABS, blocks->shape, 1, &blocks);
    hlo_instr *reduced[] = {sizes, hlo_constant_scalar(p->at->parent, p->at, type, 0)};
    hlo_instr *amax = make(p, HLO_OP_REDUCE, array(p, type, rank, scales->dims), 2, reduced);
    hlo_instr_set_ints(amax, HLO_ATTR_DIMENSIONS, 1, &last);
    hlo_instr_set_comp(amax, HLO_ATTR_TO_APPLY, p->larger);
    const double power = ldexp(1, ilogb(hlo_float_max(values->type)));
    hlo_instr *divisor = hlo_constant_scalar(p->at->parent, p->at, type, power);
    hlo_instr *quotient =
        binary(p, HLO_OP_DIVIDE, amax, broadcast(p, divisor, rank, scales->dims, 0, NULL));
    hlo_instr *scale = make(p, HLO_OP_CONVERT, scales, 1, &quotient);
    hlo_instr *scaled = binary(p, HLO_OP_DIVIDE, x, repeat(p, convert(p, scale, type), ratio));
    hlo_instr *results[] = {make(p, HLO_OP_CONVERT, values, 1, &scaled), scale};
    return make(p, HLO_OP_TUPLE, p->at->shape, 2, results);
}

static hlo_instr *expand(place *p) {
    if (hlo_block_fault(p->at)) return NULL;
    switch (hlo_block_kind_of(p->at)) {
    case HLO_BLOCK_NONE: return NULL;
    case HLO_BLOCK_SCALED_DOT:
    case HLO_BLOCK_OP_DOT: return expand_dot(p);
    case HLO_BLOCK_CUDNN_DOT:
    case HLO_BLOCK_HIPBLAS_DOT: return with_workspace(p, expand_dot(p));
    case HLO_BLOCK_QUANTIZE: return expand_quantize(p);
    case HLO_BLOCK_DEQUANTIZE: return expand_dequantize(p);
    }
    return NULL;
}

void hlo_block_expand(hlo_module *module) {
    place p = {.module = module};
    uint32_t last = module->next_computation_id;
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        if (comp->id >= last) continue;
        for (hlo_instr *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            p.at = instr;
            hlo_instr *made = expand(&p);
            if (!made) continue;
            hlo_instr_replace_uses(instr, made);
            hlo_instr_inherit(made, instr);
            hlo_instr_remove(instr);
        }
    }
}
