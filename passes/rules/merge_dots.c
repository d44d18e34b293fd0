/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the functions that merge dots that share an operand. The other operands are
 * concatenated in fp8, and each result becomes a slice of the merged result. */
#include <string.h>

#include "passes/builders/move_chain.h"
#include "passes/rules/library.h"

enum { EXTENT_LIMIT = 1 << 30 }; /* sums of extents up to this limit do not overflow */

/* A dot and the operand that it does not share. */
typedef struct share {
    const hlo_instruction *dot;
    unsigned side;         /* number of the operand that is not shared */
    hlo_dequantized other; /* the operand that is not shared; HLO_OP_COPY: a plain fp8 value */
    int64_t free;          /* the only free dimension of that operand */
} share;

static bool read_share(const hlo_instruction *dot, const hlo_instruction *shared, share *out) {
    if (dot->op != HLO_OP_DOT || dot->operand_count != 2) return false;
    unsigned side = hlo_instr_operand(dot, 0) == shared;
    hlo_instruction *other = hlo_instr_operand(dot, side);
    if (other == shared || hlo_instr_operand(dot, !side) != shared) return false;
    *out = (share){.dot = dot, .side = side};
    hlo_type type = other->shape->type;
    if (hlo_type_is_fp8_operand(type))
        out->other = (hlo_dequantized){other, NULL, HLO_OP_COPY, type, type};
    else if (!hlo_dequantized_read(other, &out->other))
        return false;
    out->free = hlo_dot_free_dim(dot, side);
    return out->free >= 0 && !other->shape->dynamic && other->shape->rank <= HLO_RULE_ARGS;
}

static bool same_but_free(const share *a, const share *b) {
    const hlo_shape *x = a->other.fp8->shape, *y = b->other.fp8->shape;
    if (a->free != b->free || x->rank != y->rank || x->dims[a->free] > EXTENT_LIMIT ||
        y->dims[b->free] > EXTENT_LIMIT)
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != a->free && x->dims[i] != y->dims[i]) return false;
    return true;
}

/* Two dots can be merged if the shared operand is on the same side of both, the other operands have
 * the same dequantization, and contracting and batch dimensions, types and attributes are equal. */
TEST(dots_alike) {
    const hlo_instruction *first = args[0].instr, *second = args[1].instr, *shared = args[2].instr;
    share a, b;
    if (first == second || !read_share(first, shared, &a) || !read_share(second, shared, &b) ||
        !hlo_engine_before(env->engine, first, second))
        return false;
    for (unsigned side = 0; side < 2; side++)
        if (!hlo_ints_equal(hlo_dot_contracting(first, side), hlo_dot_contracting(second, side)) ||
            !hlo_ints_equal(hlo_dot_batch(first, side), hlo_dot_batch(second, side)))
            return false;
    static const hlo_attr_id same[] = {HLO_ATTR_OPERAND_PRECISION, HLO_ATTR_ALGORITHM,
                                       HLO_ATTR_FRONTEND_ATTRIBUTES, HLO_ATTR_SHARDING};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *x = hlo_instr_str(first, same[i]), *y = hlo_instr_str(second, same[i]);
        if (x != y && !(x && y && strcmp(x, y) == 0)) return false;
    }
    return a.side == b.side && same_but_free(&a, &b) && hlo_dequantized_alike(&a.other, &b.other) &&
           first->shape->type == second->shape->type;
}

static hlo_instruction *join(hlo_builder *b, uint32_t count, hlo_instruction *const *values,
                             int64_t dim) {
    const hlo_shape *shape = values[0]->shape;
    int64_t dims[HLO_RULE_ARGS];
    memcpy(dims, shape->dims, shape->rank * sizeof dims[0]);
    for (uint32_t i = 1; i < count; i++) dims[dim] += values[i]->shape->dims[dim];
    /* If all values are transposed by the same permutation, transpose the concatenation once. */
    const hlo_ints *order = hlo_instr_ints(values[0], HLO_ATTR_DIMENSIONS);
    for (uint32_t i = 0; order && i < count; i++)
        if (values[i]->op != HLO_OP_TRANSPOSE || values[i]->pin ||
            !hlo_ints_equal(order, hlo_instr_ints(values[i], HLO_ATTR_DIMENSIONS)))
            order = NULL;
    if (order) {
        hlo_instruction *below[HLO_RULE_ARGS];
        for (uint32_t i = 0; i < count; i++) below[i] = hlo_instr_operand(values[i], 0);
        return hlo_build_transpose(b, join(b, count, below, order->v[dim]), order->v);
    }
    shape = hlo_shape_array(b->at->parent->module, shape->type, shape->rank, dims);
    return hlo_build_ints(b, HLO_OP_CONCATENATE, shape, count, values, HLO_ATTR_DIMENSIONS, 1,
                          &dim);
}

/* Appends the value to `parts`, or its operands if it is a concatenation along the dimension. */
static bool add_parts(hlo_instruction *value, int64_t dim, hlo_instruction **parts,
                      uint32_t *count) {
    const hlo_ints *along = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS);
    bool joins = value->op == HLO_OP_CONCATENATE && along->v[0] == dim && !value->pin;
    uint32_t more = joins ? value->operand_count : 1;
    if (*count + more > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < more; i++)
        parts[(*count)++] = joins ? hlo_instr_operand(value, i) : value;
    return true;
}

MAKE(merged) {
    const hlo_instruction *first = args[0].instr, *second = args[1].instr, *shared = args[2].instr;
    share a, b;
    hlo_instruction *parts[HLO_RULE_ARGS];
    uint32_t part_count = 0;
    if (!read_share(first, shared, &a) || !read_share(second, shared, &b) ||
        !add_parts(a.other.fp8, a.free, parts, &part_count) ||
        !add_parts(b.other.fp8, b.free, parts, &part_count) || !same_but_free(&a, &b) ||
        first->shape->rank != second->shape->rank)
        return false;
    hlo_builder *build = env->build;
    hlo_instruction *value = join(build, part_count, parts, a.free);
    value = hlo_build_convert(build, value, a.other.to);
    if (a.other.scale) value = hlo_build_by_scalar(build, a.other.op, value, a.other.scale);
    if (!value) return false;
    hlo_instruction *operands[2];
    operands[a.side] = value;
    operands[!a.side] = hlo_instr_operand(first, !a.side);
    int64_t dims[HLO_RULE_ARGS];
    const hlo_shape *shape = first->shape;
    if (shape->rank > HLO_RULE_ARGS) return false;
    memcpy(dims, shape->dims, shape->rank * sizeof dims[0]);
    uint32_t at = a.side ? shape->rank - 1 : hlo_dot_batch(first, 0)->count;
    dims[at] += second->shape->dims[at];
    shape = hlo_shape_array(env->context->module, shape->type, shape->rank, dims);
    *out = hlo_build(build, HLO_OP_DOT, shape, 2, operands);
    if (*out) hlo_instr_copy_attrs(*out, first);
    return *out != NULL;
}

MAKE(split_merged) {
    hlo_instruction *merged = args[0].instr;
    const hlo_shape *shape = args[1].instr->shape;
    const bool last = args[2].number != 0;
    int64_t slices[3 * HLO_RULE_ARGS];
    if (shape->rank > HLO_RULE_ARGS || shape->rank != merged->shape->rank) return false;
    for (uint32_t i = 0; i < shape->rank; i++) {
        slices[3 * i] = last ? merged->shape->dims[i] - shape->dims[i] : 0;
        slices[3 * i + 1] = slices[3 * i] + shape->dims[i];
        slices[3 * i + 2] = 1;
    }
    return (*out = hlo_build_slice(env->build, merged, shape, slices)) != NULL;
}
