/* SPDX-License-Identifier: Apache-2.0 */
/* See build.h. */
#include "ir/module/build.h"

#include "ir/float/literal.h"
#include "ir/module/known.h"

static hlo_module *module_of(const hlo_builder *b) {
    return b->at->parent->module;
}

hlo_instruction *hlo_build(hlo_builder *b, hlo_op op, const hlo_shape *shape, uint32_t count,
                           hlo_instruction *const *operands) {
    for (uint32_t i = 0; i < count; i++)
        if (!operands[i]) return NULL;
    if (b->admits && !b->admits(b, shape, count, operands)) return NULL;
    hlo_instruction *made = hlo_instr_new(b->at->parent, b->at, op, shape, count, operands, NULL);
    const hlo_instruction *like = b->like ? b->like : b->at;
    const hlo_attr *metadata = hlo_instr_attr(like, HLO_ATTR_METADATA);
    made->offset = like->offset;
    if (metadata) hlo_instr_set_attr(made, *metadata);
    return made;
}

hlo_instruction *hlo_build_ints(hlo_builder *b, hlo_op op, const hlo_shape *shape, uint32_t count,
                                hlo_instruction *const *operands, hlo_attr_id id,
                                uint32_t int_count, const int64_t *ints) {
    hlo_instruction *made = hlo_build(b, op, shape, count, operands);
    if (made) hlo_instr_set_ints(made, id, int_count, ints);
    return made;
}

hlo_instruction *hlo_build_clone(hlo_builder *b, const hlo_instruction *of, const hlo_shape *shape,
                                 hlo_instruction *const *operands) {
    hlo_instruction *made = hlo_build(b, of->op, shape, of->operand_count, operands);
    if (!made) return NULL;
    hlo_instr_drop_attr(made, HLO_ATTR_METADATA);
    hlo_instr_copy_attrs(made, of);
    return made;
}

hlo_instruction *hlo_build_unary(hlo_builder *b, hlo_op op, hlo_instruction *x) {
    return x ? hlo_build(b, op, x->shape, 1, &x) : NULL;
}

hlo_instruction *hlo_build_binary(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                  hlo_instruction *y) {
    return x ? hlo_build(b, op, x->shape, 2, (hlo_instruction *[]){x, y}) : NULL;
}

hlo_instruction *hlo_build_compare(hlo_builder *b, hlo_instruction *x, const char *direction,
                                   hlo_instruction *y) {
    if (!x) return NULL;
    const hlo_shape *shape = hlo_shape_retype(module_of(b), x->shape, HLO_TYPE_PRED);
    hlo_instruction *made = hlo_build(b, HLO_OP_COMPARE, shape, 2, (hlo_instruction *[]){x, y});
    if (made) hlo_instr_set_str(made, HLO_ATTR_DIRECTION, direction);
    return made;
}

hlo_instruction *hlo_build_select(hlo_builder *b, hlo_instruction *where, hlo_instruction *x,
                                  hlo_instruction *y) {
    return x ? hlo_build(b, HLO_OP_SELECT, x->shape, 3, (hlo_instruction *[]){where, x, y}) : NULL;
}

hlo_instruction *hlo_build_convert(hlo_builder *b, hlo_instruction *x, hlo_type type) {
    if (!x || x->shape->type == type) return x;
    return hlo_build(b, HLO_OP_CONVERT, hlo_shape_retype(module_of(b), x->shape, type), 1, &x);
}

hlo_instruction *hlo_build_reshape(hlo_builder *b, hlo_instruction *x, uint32_t rank,
                                   const int64_t *dims) {
    if (!x) return NULL;
    const hlo_shape *shape = hlo_shape_array(module_of(b), x->shape->type, rank, dims);
    return hlo_shape_same_dims(shape, x->shape) ? x : hlo_build(b, HLO_OP_RESHAPE, shape, 1, &x);
}

/* Builds a transpose or a broadcast, or its simplification as described in build.h. */
static hlo_instruction *move(hlo_builder *b, hlo_op op, hlo_instruction *x, const hlo_shape *shape,
                             uint32_t count, const int64_t *dims) {
    const hlo_shape *from = x->shape;
    bool same = hlo_shape_same_dims(shape, from),
         ordered = hlo_shape_count(from) == hlo_shape_count(shape);
    int64_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        same &= dims[i] == i;
        if (from->dims[op == HLO_OP_TRANSPOSE ? dims[i] : i] == 1) continue;
        ordered &= dims[i] > last;
        last = dims[i];
    }
    if (same) return x;
    if (ordered) return hlo_build(b, HLO_OP_RESHAPE, shape, 1, &x);
    return hlo_build_ints(b, op, shape, 1, &x, HLO_ATTR_DIMENSIONS, count, dims);
}

hlo_instruction *hlo_build_transpose(hlo_builder *b, hlo_instruction *x, const int64_t *order) {
    int64_t dims[HLO_LARGEST_RANK];
    if (!x || !x->shape->rank) return x;
    const uint32_t rank = x->shape->rank;
    for (uint32_t i = 0; i < rank; i++) dims[i] = x->shape->dims[order[i]];
    const hlo_shape *shape = hlo_shape_array(module_of(b), x->shape->type, rank, dims);
    return move(b, HLO_OP_TRANSPOSE, x, shape, rank, order);
}

hlo_instruction *hlo_build_broadcast(hlo_builder *b, hlo_instruction *x, uint32_t rank,
                                     const int64_t *dims, uint32_t count, const int64_t *from) {
    if (!x) return NULL;
    const hlo_shape *shape = hlo_shape_array(module_of(b), x->shape->type, rank, dims);
    return move(b, HLO_OP_BROADCAST, x, shape, count, from);
}

hlo_instruction *hlo_build_broadcast_like(hlo_builder *b, hlo_instruction *x, const hlo_shape *like,
                                          uint32_t count, const int64_t *from) {
    if (!x) return NULL;
    const hlo_shape *shape = hlo_shape_retype(module_of(b), like, x->shape->type);
    return move(b, HLO_OP_BROADCAST, x, shape, count, from);
}

hlo_instruction *hlo_build_slice(hlo_builder *b, hlo_instruction *x, const hlo_shape *shape,
                                 const int64_t *slices) {
    if (!x || hlo_shape_same_dims(x->shape, shape)) return x;
    return hlo_build_ints(b, HLO_OP_SLICE, shape, 1, &x, HLO_ATTR_SLICE, 3 * shape->rank, slices);
}

hlo_instruction *hlo_build_prefix(hlo_builder *b, hlo_instruction *x, const hlo_shape *shape) {
    int64_t slices[3 * HLO_LARGEST_RANK];
    for (uint32_t i = 0; i < shape->rank; i++) {
        slices[3 * i] = 0;
        slices[3 * i + 1] = shape->dims[i];
        slices[3 * i + 2] = 1;
    }
    return hlo_build_slice(b, x, shape, slices);
}

hlo_instruction *hlo_build_pad(hlo_builder *b, hlo_instruction *x, hlo_instruction *fill,
                               const hlo_shape *shape, const int64_t *padding) {
    return hlo_build_ints(b, HLO_OP_PAD, shape, 2, (hlo_instruction *[]){x, fill}, HLO_ATTR_PADDING,
                          3 * shape->rank, padding);
}

hlo_instruction *hlo_build_iota(hlo_builder *b, const hlo_shape *shape, int64_t dim) {
    hlo_instruction *made = hlo_build(b, HLO_OP_IOTA, shape, 0, NULL);
    if (made) hlo_instr_set_int(made, HLO_ATTR_IOTA_DIMENSION, dim);
    return made;
}

hlo_instruction *hlo_build_number(hlo_builder *b, hlo_type type, double number) {
    hlo_module *module = module_of(b);
    hlo_literal *literal = hlo_literal_new(module, hlo_shape_array(module, type, 0, NULL));
    hlo_literal_set_number(literal, 0, number);
    hlo_instruction *made = hlo_build(b, HLO_OP_CONSTANT, literal->shape, 0, NULL);
    if (made) made->u.literal = literal;
    return made;
}

hlo_instruction *hlo_build_filled(hlo_builder *b, const hlo_shape *shape, double number) {
    return hlo_build_splat(b, hlo_build_number(b, shape->type, number), shape);
}

hlo_instruction *hlo_build_splat(hlo_builder *b, hlo_instruction *x, const hlo_shape *shape) {
    double number;
    if (!x || !hlo_shape_is_array(x->shape) || !hlo_shape_is_array(shape)) return NULL;
    if (hlo_shape_count(x->shape) != 1) {
        if (!hlo_known_number(x, &number)) return NULL;
        x = hlo_build_number(b, x->shape->type, number);
    }
    x = hlo_build_convert(b, hlo_build_reshape(b, x, 0, NULL), shape->type);
    if (!x || !shape->rank) return x;
    return hlo_build_ints(b, HLO_OP_BROADCAST, shape, 1, &x, HLO_ATTR_DIMENSIONS, 0, NULL);
}

hlo_instruction *hlo_build_by_scalar(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                     hlo_instruction *scalar) {
    return x ? hlo_build_binary(b, op, x, hlo_build_splat(b, scalar, x->shape)) : NULL;
}

hlo_instruction *hlo_build_by_number(hlo_builder *b, hlo_op op, hlo_instruction *x, double number) {
    return x ? hlo_build_binary(b, op, x, hlo_build_filled(b, x->shape, number)) : NULL;
}

hlo_instruction *hlo_build_dot(hlo_builder *b, const hlo_shape *shape,
                               hlo_instruction *const *operands, const hlo_dot_lists *dims) {
    static const hlo_attr_id ids[] = {HLO_ATTR_LHS_BATCH_DIMS, HLO_ATTR_LHS_CONTRACTING_DIMS,
                                      HLO_ATTR_RHS_BATCH_DIMS, HLO_ATTR_RHS_CONTRACTING_DIMS};
    hlo_instruction *made = hlo_build(b, HLO_OP_DOT, shape, 2, operands);
    for (int i = 0; made && i < 4; i++) {
        const hlo_ints *list = (i % 2 ? dims->contracting : dims->batch)[i / 2];
        if (list->count) hlo_instr_set_attr(made, (hlo_attr){.id = ids[i], .u.ints = list});
    }
    return made;
}

hlo_instruction *hlo_build_tuple(hlo_builder *b, uint32_t count, hlo_instruction *const *elements) {
    hlo_module *module = module_of(b);
    const hlo_shape **shapes = hlo_arena_array(module->arena, count, sizeof *shapes);
    for (uint32_t i = 0; i < count; i++) {
        if (!elements[i]) return NULL;
        shapes[i] = elements[i]->shape;
    }
    return hlo_build(b, HLO_OP_TUPLE, hlo_shape_tuple(module, count, shapes), count, elements);
}

hlo_instruction *hlo_build_element(hlo_builder *b, hlo_instruction *tuple, int64_t index) {
    if (!tuple) return NULL;
    const hlo_shape *shape = tuple->shape->elements[index];
    hlo_instruction *made = hlo_build(b, HLO_OP_GET_TUPLE_ELEMENT, shape, 1, &tuple);
    if (made) hlo_instr_set_int(made, HLO_ATTR_INDEX, index);
    return made;
}

hlo_instruction *hlo_build_reduce(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                  const hlo_shape *shape, uint32_t count, const int64_t *dims,
                                  hlo_computation **kept) {
    if (!x) return NULL;
    const hlo_type type = x->shape->type;
    hlo_computation *caller = b->at->parent, *own = NULL, **combiner = kept ? kept : &own;
    hlo_instruction *operands[] = {x, hlo_build_number(b, type, 0)};
    hlo_instruction *made =
        hlo_build_ints(b, HLO_OP_REDUCE, shape, 2, operands, HLO_ATTR_DIMENSIONS, count, dims);
    if (!made) return NULL;
    if (!*combiner || (*combiner)->root->op != op || (*combiner)->root->shape->type != type ||
        hlo_computation_thread(*combiner) != hlo_computation_thread(caller)) {
        /* Create a computation of one binary operation on scalars, on the same thread, before
         * `caller` or, if reductions of other computations may use it too, before all of them. */
        const char *thread = hlo_computation_thread(caller);
        hlo_computation *comp =
            hlo_comp_new(caller->module, op == HLO_OP_MAXIMUM ? "max" : hlo_ops[op].name);
        const hlo_shape *scalar = hlo_shape_array(caller->module, type, 0, NULL);
        hlo_instruction *terms[2];
        for (int i = 0; i < 2; i++) {
            terms[i] = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, NULL);
            hlo_instr_set_parameter(terms[i], i);
        }
        hlo_comp_set_root(comp, hlo_instr_new(comp, NULL, op, scalar, 2, terms, NULL));
        hlo_computation_set_thread(comp, thread == hlo_main_thread ? NULL : thread);
        hlo_comp_move(comp, kept ? caller->module->first : caller);
        *combiner = comp;
    }
    hlo_instr_set_comp(made, HLO_ATTR_TO_APPLY, *combiner);
    return made;
}
