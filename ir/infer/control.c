/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of tuples, calls, loops and branches, dimension sizes, random numbers, tokens,
 * and of asynchronous starts, updates and dones. */
#include "ir/infer/rules.h"
#include "ir/ir.h"

const hlo_shape *hlo_infer_GIVEN(const hlo_inference *q) {
    return hlo_infer_given(q);
}

const hlo_shape *hlo_infer_FIRST(const hlo_inference *q) {
    return hlo_infer_operand(q, 0);
}

const hlo_shape *hlo_infer_TUPLE(const hlo_inference *q) {
    return hlo_shape_tuple(q->module, q->count, hlo_infer_operands(q));
}

const hlo_shape *hlo_infer_CALL(const hlo_inference *q) {
    hlo_attr_id id = q->op == HLO_OP_FUSION ? HLO_ATTR_CALLS : HLO_ATTR_TO_APPLY;
    const hlo_computation *comp = hlo_infer_called(q, id, q->count, hlo_infer_operands(q), NULL);
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

/* Infers the tuple of the new state and the bits, or only the bits. */
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

static const hlo_shape *token(const hlo_inference *q) {
    return hlo_shape_intern(q->module, &(hlo_shape){.type = HLO_TYPE_TOKEN});
}

static bool is_token(const hlo_inference *q, uint32_t i) {
    hlo_type type = hlo_infer_operand(q, i)->type;
    return type == HLO_TYPE_TOKEN ||
           hlo_infer_fail_at(q, q->operands[i]->offset, "operand %u is not a token", i);
}

static const hlo_shape *given_tuple(const hlo_inference *q, uint32_t least) {
    const hlo_shape *given = hlo_infer_given(q);
    if (!given || (given->type == HLO_TYPE_TUPLE && given->rank >= least)) return given;
    return hlo_infer_fail(q, "the result is %s, expected a tuple of at least %u elements",
                          hlo_infer_text(q, given), least);
}

static const hlo_shape *element(const hlo_inference *q, int64_t index) {
    const hlo_shape *tuple = hlo_infer_operand(q, 0);
    if (tuple->type != HLO_TYPE_TUPLE) return hlo_infer_fail(q, "the operand is not a tuple");
    if (index < 0 || index >= tuple->rank)
        return hlo_infer_fail(q, "the tuple has %u elements, so index %lld is out of range",
                              tuple->rank, (long long)index);
    return tuple->elements[index];
}

const hlo_shape *hlo_infer_TUPLE_ELEMENT(const hlo_inference *q) {
    return element(q, hlo_infer_int(q, HLO_ATTR_INDEX, 0));
}

const hlo_shape *hlo_infer_TOKEN(const hlo_inference *q) {
    for (uint32_t i = 0; i < q->count; i++)
        if (!is_token(q, i)) return NULL;
    return token(q);
}

const hlo_shape *hlo_infer_ADD_DEPENDENCY(const hlo_inference *q) {
    return is_token(q, 1) ? hlo_infer_operand(q, 0) : NULL;
}

const hlo_shape *hlo_infer_INFEED(const hlo_inference *q) {
    if (!is_token(q, 0)) return NULL;
    const hlo_shape *given = given_tuple(q, 2);
    if (!given) return NULL;
    return hlo_shape_tuple(q->module, 2, (const hlo_shape *[]){given->elements[0], token(q)});
}

const hlo_shape *hlo_infer_OUTFEED(const hlo_inference *q) {
    if (!is_token(q, 1)) return NULL;
    const hlo_attr *shape = hlo_infer_attr(q, HLO_ATTR_OUTFEED_SHAPE);
    if (shape && !hlo_infer_fits(shape->u.shape, hlo_infer_operand(q, 0)))
        return hlo_infer_fail_at(
            q, q->operands[0]->offset, "outfeed_shape is %s, but the operand is %s",
            hlo_infer_text(q, shape->u.shape), hlo_infer_text(q, hlo_infer_operand(q, 0)));
    return token(q);
}

static const hlo_shape *in_flight(const hlo_inference *q, const hlo_shape *data) {
    const hlo_shape *context = hlo_shape_array(q->module, HLO_TYPE_U32, 0, NULL);
    return hlo_shape_tuple(q->module, 3, (const hlo_shape *[]){data, context, token(q)});
}

const hlo_shape *hlo_infer_SEND(const hlo_inference *q) {
    return is_token(q, 1) ? in_flight(q, hlo_infer_operand(q, 0)) : NULL;
}

const hlo_shape *hlo_infer_RECV(const hlo_inference *q) {
    if (!is_token(q, 0)) return NULL;
    const hlo_shape *given = given_tuple(q, 3);
    return given ? in_flight(q, given->elements[0]) : NULL;
}

/* True if both instructions of a transfer have the same channel, and either both or neither
 * transfer data with the host. */
static bool same_channel(const hlo_inference *q) {
    const hlo_instruction *start = q->operands[0];
    const hlo_attr *ends[] = {hlo_infer_attr(q, HLO_ATTR_CHANNEL_ID),
                              hlo_instr_attr(start, HLO_ATTR_CHANNEL_ID)};
    if (!ends[0] != !ends[1])
        return hlo_infer_fail_at(q, start->offset, "has %s channel_id, but %%%s has %s",
                                 ends[0] ? "a" : "no", start->name, ends[1] ? "one" : "none");
    static const hlo_attr_id ids[] = {HLO_ATTR_CHANNEL_ID, HLO_ATTR_IS_HOST_TRANSFER};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        int64_t here = hlo_infer_int(q, ids[i], 0), there = hlo_instr_int(start, ids[i], 0);
        if (here != there)
            return hlo_infer_fail_at(q, start->offset, "%s is %lld, but %%%s has %lld",
                                     hlo_attrs_info[ids[i]].name, (long long)here, start->name,
                                     (long long)there);
    }
    return true;
}

const hlo_shape *hlo_infer_SEND_DONE(const hlo_inference *q) {
    return same_channel(q) ? token(q) : NULL;
}

const hlo_shape *hlo_infer_RECV_DONE(const hlo_inference *q) {
    const hlo_shape *data = same_channel(q) ? element(q, 0) : NULL;
    if (!data) return NULL;
    return hlo_shape_tuple(q->module, 2, (const hlo_shape *[]){data, token(q)});
}

const hlo_shape *hlo_infer_COPY_START(const hlo_inference *q) {
    const hlo_shape *shape = hlo_infer_operand(q, 0);
    const hlo_shape *context = hlo_shape_array(q->module, HLO_TYPE_U32, 0, NULL);
    return hlo_shape_tuple(q->module, 3, (const hlo_shape *[]){shape, shape, context});
}

const hlo_shape *hlo_infer_COPY_DONE(const hlo_inference *q) {
    return element(q, 0);
}

const hlo_shape *hlo_infer_DONE(const hlo_inference *q) {
    return element(q, 1);
}

/* Returns the computation that an asynchronous operation calls; NULL if it is missing or has no
 * root. */
static const hlo_computation *called_by(const hlo_inference *q) {
    const hlo_instruction *start =
        q->op == HLO_OP_ASYNC_START ? NULL : hlo_async_start(q->operands[0]);
    const hlo_attr *calls = hlo_infer_attr(q, HLO_ATTR_CALLS);
    if (start) calls = hlo_instr_attr(start, HLO_ATTR_CALLS);
    return calls && calls->u.comp->root ? calls->u.comp : NULL;
}

static bool is_nothing(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE && shape->rank == 0;
}

/* True if an async-start may have the result `shape`. `before`: NULL or, for an async-update, the
 * previous result in its chain. */
static bool is_result(const hlo_inference *q, const hlo_shape *shape, const hlo_shape *before) {
    const hlo_computation *comp = called_by(q);
    if (before && !is_nothing(before))
        return hlo_infer_fits(shape, before) ||
               hlo_infer_fail(q,
                              "element 1 of the result is %s, but element 1 of the operand is %s",
                              hlo_infer_text(q, shape), hlo_infer_text(q, before));
    return !comp || is_nothing(shape) || hlo_infer_fits(shape, comp->root->shape) ||
           hlo_infer_fail(q, "element 1 of the result is %s, but the called computation returns %s",
                          hlo_infer_text(q, shape), hlo_infer_text(q, comp->root->shape));
}

static bool fail_bound(const hlo_inference *q, const hlo_computation *comp, uint32_t bound) {
    return hlo_infer_fail_at(q, comp->offset, "%%%s has %u parameter%s, but %u operands are bound",
                             comp->name, comp->parameter_count,
                             comp->parameter_count == 1 ? "" : "s", bound);
}

/* True if operands starting at `first` match the parameters after the first `bound` ones. */
static bool are_bound(const hlo_inference *q, uint32_t first, uint32_t bound) {
    const hlo_computation *comp = called_by(q);
    uint32_t count = q->count - first;
    if (!comp) return true;
    if (bound + count > comp->parameter_count) return fail_bound(q, comp, bound + count);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_instruction *parameter = comp->parameters[bound + i];
        if (parameter && !hlo_infer_fits(parameter->shape, hlo_infer_operand(q, first + i)))
            return hlo_infer_fail_at(q, parameter->offset,
                                     "parameter %u of %%%s is %s, expected %s", bound + i,
                                     comp->name, hlo_infer_text(q, parameter->shape),
                                     hlo_infer_text(q, hlo_infer_operand(q, first + i)));
    }
    return true;
}

/* Infers the tuple ((operands), result of the called computation, further elements that the backend
 * adds). Later updates may bind further parameters; the result may be `()` until all parameters are
 * bound. */
const hlo_shape *hlo_infer_ASYNC_START(const hlo_inference *q) {
    const hlo_shape *given = given_tuple(q, 2);
    if (!given) return NULL;
    const hlo_shape *operands = hlo_infer_TUPLE(q);
    if (!hlo_infer_fits(given->elements[0], operands))
        return hlo_infer_fail(q, "element 0 of the result is %s, but the operands are %s",
                              hlo_infer_text(q, given->elements[0]), hlo_infer_text(q, operands));
    return are_bound(q, 0, 0) && is_result(q, given->elements[1], NULL) ? given : NULL;
}

/* Infers the tuple ((operands), result, ...) of the first operand, with the shapes of the other
 * operands appended to element 0, and with element 1 of the given shape, if any. */
const hlo_shape *hlo_infer_ASYNC_UPDATE(const hlo_inference *q) {
    const hlo_shape *before = hlo_infer_operand(q, 0), *given = q->given;
    if (!given) given = before;
    if (q->count == 1 && hlo_infer_fits(given, before)) return before;
    if (before->type != HLO_TYPE_TUPLE || before->rank < 2 ||
        before->elements[0]->type != HLO_TYPE_TUPLE)
        return hlo_infer_fail(q, "the operand must be a tuple ((operands), result, ...)");
    const hlo_shape *old = before->elements[0];
    const hlo_shape **shapes = hlo_infer_scratch(q, old->rank + q->count, sizeof *shapes);
    const hlo_shape **all = hlo_infer_scratch(q, before->rank, sizeof *all);
    for (uint32_t i = 0; i < old->rank; i++) shapes[i] = old->elements[i];
    for (uint32_t i = 1; i < q->count; i++) shapes[old->rank + i - 1] = hlo_infer_operand(q, i);
    for (uint32_t i = 0; i < before->rank; i++) all[i] = before->elements[i];
    all[0] = hlo_shape_tuple(q->module, old->rank + q->count - 1, shapes);
    if (!are_bound(q, 1, old->rank)) return NULL;
    if (given->type == HLO_TYPE_TUPLE && given->rank >= 2) {
        if (!is_result(q, given->elements[1], before->elements[1])) return NULL;
        all[1] = given->elements[1];
    }
    return hlo_shape_tuple(q->module, before->rank, all);
}

const hlo_shape *hlo_infer_ASYNC_DONE(const hlo_inference *q) {
    const hlo_computation *comp = called_by(q);
    const hlo_shape *result = element(q, 1), *bound = result ? element(q, 0) : NULL;
    if (!bound || !comp || bound->type != HLO_TYPE_TUPLE) return result;
    if (bound->rank < comp->parameter_count) return fail_bound(q, comp, bound->rank), NULL;
    return is_nothing(result) ? comp->root->shape : result;
}
