/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of tuples, calls, loops and branches, dimension sizes and random numbers. */
#include "ir/infer/rules.h"

const hlo_shape *hlo_infer_GIVEN(const hlo_inference *q) {
    return hlo_infer_given(q);
}

const hlo_shape *hlo_infer_FIRST(const hlo_inference *q) {
    return hlo_infer_operand(q, 0);
}

const hlo_shape *hlo_infer_TUPLE(const hlo_inference *q) {
    const hlo_shape **elements = hlo_infer_scratch(q, q->count, sizeof *elements);
    for (uint32_t i = 0; i < q->count; i++) elements[i] = hlo_infer_operand(q, i);
    return hlo_shape_tuple(q->module, q->count, elements);
}

const hlo_shape *hlo_infer_TUPLE_ELEMENT(const hlo_inference *q) {
    const hlo_shape *tuple = hlo_infer_operand(q, 0);
    int64_t index = hlo_infer_int(q, HLO_ATTR_INDEX, 0);
    if (tuple->type != HLO_TYPE_TUPLE) return hlo_infer_fail(q, "the operand is not a tuple");
    if (index < 0 || index >= tuple->rank)
        return hlo_infer_fail(q, "the tuple has %u elements, so index %lld is out of range",
                              tuple->rank, (long long)index);
    return tuple->elements[index];
}

const hlo_shape *hlo_infer_CALL(const hlo_inference *q) {
    hlo_attr_id id = q->op == HLO_OP_FUSION ? HLO_ATTR_CALLS : HLO_ATTR_TO_APPLY;
    const hlo_shape **shapes = hlo_infer_scratch(q, q->count, sizeof *shapes);
    for (uint32_t i = 0; i < q->count; i++) shapes[i] = hlo_infer_operand(q, i);
    const hlo_computation *comp = hlo_infer_called(q, id, q->count, shapes, NULL);
    return comp ? comp->root->shape : NULL;
}

const hlo_shape *hlo_infer_CUSTOM_CALL(const hlo_inference *q) {
    const hlo_attr *wanted = hlo_infer_attr(q, HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    if (!wanted) return hlo_infer_given(q);
    const hlo_shapes *shapes = wanted->u.shapes;
    if (shapes->count != q->count)
        return hlo_infer_fail(q, "operand_layout_constraints has %u shapes for %u operands",
                              shapes->count, q->count);
    for (uint32_t i = 0; i < q->count; i++)
        if (!hlo_infer_fits(shapes->v[i], hlo_infer_operand(q, i)))
            return hlo_infer_fail_at(
                q, q->operands[i]->offset,
                "operand_layout_constraints has %s for operand %u, which is %s",
                hlo_infer_text(q, shapes->v[i]), i, hlo_infer_text(q, hlo_infer_operand(q, i)));
    return hlo_infer_given(q);
}

const hlo_shape *hlo_infer_WHILE(const hlo_inference *q) {
    const hlo_shape *state = hlo_infer_operand(q, 0);
    const hlo_shape *pred = hlo_shape_array(q->module, HLO_TYPE_PRED, 0, NULL);
    if (!hlo_infer_called(q, HLO_ATTR_CONDITION, 1, &state, pred)) return NULL;
    return hlo_infer_called(q, HLO_ATTR_BODY, 1, &state, state) ? state : NULL;
}

const hlo_shape *hlo_infer_CONDITIONAL(const hlo_inference *q) {
    const hlo_attr *list = hlo_infer_attr(q, HLO_ATTR_BRANCH_COMPUTATIONS);
    const hlo_attr *on_true = hlo_infer_attr(q, HLO_ATTR_TRUE_COMPUTATION);
    const hlo_attr *on_false = hlo_infer_attr(q, HLO_ATTR_FALSE_COMPUTATION);
    if (!list && !(on_true && on_false))
        return hlo_infer_fail(
            q, "requires 'true_computation' and 'false_computation', or 'branch_computations'");
    const hlo_shape *selector = hlo_infer_operand(q, 0), *result = NULL;
    bool by_pred = hlo_shape_is_scalar(selector) && selector->type == HLO_TYPE_PRED;
    bool by_index = hlo_shape_is_scalar(selector) && selector->type == HLO_TYPE_S32;
    if (!by_pred && !(by_index && list))
        return hlo_infer_fail(q, "operand 0 must be pred[]%s", list ? " or s32[]" : "");
    uint32_t branches = list ? list->u.comps->count : 2;
    if (branches + 1 != q->count || (by_pred && branches != 2))
        return hlo_infer_fail(q, "has %u branches, but %u operands for them", branches,
                              q->count - 1);
    for (uint32_t i = 0; i < branches; i++) {
        const hlo_computation *branch =
            list ? list->u.comps->v[i] : (i == 0 ? on_true : on_false)->u.comp;
        const hlo_shape *operand = hlo_infer_operand(q, i + 1);
        if (!hlo_infer_takes(q, branch, 1, &operand, result)) return NULL;
        result = branch->root->shape;
    }
    return result ? result : hlo_infer_fail(q, "has no branches");
}

const hlo_shape *hlo_infer_GET_DIMENSION_SIZE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1) || !hlo_infer_one_dim(q, hlo_infer_operand(q, 0))) return NULL;
    return hlo_shape_array(q->module, HLO_TYPE_S32, 0, NULL);
}

const hlo_shape *hlo_infer_SET_DIMENSION_SIZE(const hlo_inference *q) {
    const hlo_shape *shape = hlo_infer_operand(q, 0);
    if (!hlo_infer_arrays(q, 0, 1) || !hlo_infer_one_dim(q, shape)) return NULL;
    const hlo_shape *size = hlo_infer_operand(q, 1);
    if (!hlo_shape_is_scalar(size) || size->type != HLO_TYPE_S32)
        return hlo_infer_fail(q, "the size operand must be s32[]");
    int64_t which = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS)->v[0];
    bool *dynamic = hlo_infer_scratch(q, shape->rank, sizeof *dynamic);
    for (uint32_t i = 0; i < shape->rank; i++)
        dynamic[i] = i == which || (shape->dynamic && shape->dynamic[i]);
    hlo_shape changed = *shape;
    changed.dynamic = dynamic;
    return hlo_shape_intern(q->module, &changed);
}

const hlo_shape *hlo_infer_RNG(const hlo_inference *q) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    if (!hlo_shape_is_scalar(a) || !hlo_shape_is_scalar(b) || a->type != b->type)
        return hlo_infer_fail(q, "the operands must be two scalars of the same type");
    if (!hlo_infer_given(q)) return NULL;
    if (q->given->type != a->type)
        return hlo_infer_fail(q, "the result has a different element type: %s",
                              hlo_types[q->given->type].name);
    return q->given;
}

/* Infers the tuple of new state and bits, or only the bits. */
const hlo_shape *hlo_infer_RNG_BITS(const hlo_inference *q) {
    const hlo_shape *state = hlo_infer_operand(q, 0), *given = hlo_infer_given(q);
    if (!given) return NULL;
    if (!hlo_shape_is_array(state) || hlo_types[state->type].class != HLO_CLASS_UNSIGNED ||
        state->rank != 1)
        return hlo_infer_fail(q, "the state must be a vector of unsigned integers");
    bool pair = given->type == HLO_TYPE_TUPLE && given->rank == 2;
    if (pair && !hlo_infer_fits(given->elements[0], state))
        return hlo_infer_fail(q,
                              "element 0 of the result is %s, expected the shape of the state, %s",
                              hlo_infer_text(q, given->elements[0]), hlo_infer_text(q, state));
    if (!hlo_shape_is_array(pair ? given->elements[1] : given))
        return hlo_infer_fail(q, "the result must be an array of random bits");
    return given;
}

const hlo_shape *hlo_infer_RNG_STATE(const hlo_inference *q) {
    return hlo_shape_array(q->module, HLO_TYPE_U64, 1, (const int64_t[]){2});
}
