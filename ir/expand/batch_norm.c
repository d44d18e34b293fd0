/* SPDX-License-Identifier: Apache-2.0 */
/* Expands batch normalization to reductions and elementwise operations, in the order of XLA's
 * batchnorm_expander.cc. The variance is E[x^2] - E[x]^2, so error bounds cover the cancellation in
 * that difference. */
#include "ir/expand/expansion.h"

/* The batch normalization at x->build->at. Arrays are computed in `type`. */
typedef struct norm {
    expansion *x;
    hlo_type type;
    const hlo_shape *whole, *vector; /* shapes of `type`: the data's, and one number per feature */
    int64_t feature, count;          /* the feature's dimension; elements per feature */
    hlo_computation **add;           /* the reducer, created on demand */
} norm;

static hlo_instruction *operand(const norm *n, uint32_t index) {
    return hlo_build_convert(n->x->build, hlo_instr_operand(n->x->build->at, index), n->type);
}

static hlo_instruction *number(const norm *n, double value, const hlo_shape *like) {
    return hlo_build_filled(n->x->build, like, value);
}

static hlo_instruction *broadcast(const norm *n, hlo_instruction *vector) {
    return hlo_build_broadcast_like(n->x->build, vector, n->whole, 1, &n->feature);
}

/* Sums over all dimensions except the feature dimension. */
static hlo_instruction *sum(const norm *n, hlo_instruction *whole) {
    int64_t others[HLO_LARGEST_RANK];
    uint32_t count = 0;
    for (int64_t d = 0; d < n->whole->rank; d++)
        if (d != n->feature) others[count++] = d;
    return hlo_build_reduce(n->x->build, HLO_OP_ADD, whole, n->vector, count, others, n->add);
}

static hlo_instruction *mean_of(const norm *n, hlo_instruction *whole) {
    hlo_instruction *divisor = number(n, (double)n->count, n->vector);
    return hlo_build_binary(n->x->build, HLO_OP_DIVIDE, sum(n, whole), divisor);
}

static hlo_instruction *above_zero(const norm *n, hlo_instruction *variance) {
    /* Round epsilon to f32, as XLA does. */
    const double epsilon = (double)(float)hlo_instr_attr(n->x->build->at, HLO_ATTR_EPSILON)->u.f;
    return hlo_build_binary(n->x->build, HLO_OP_ADD, variance, number(n, epsilon, n->vector));
}

static hlo_instruction *inverse_of(const norm *n, hlo_instruction *variance) {
    return hlo_build_unary(n->x->build, HLO_OP_RSQRT, above_zero(n, variance));
}

static hlo_instruction *times(const norm *n, hlo_instruction *a, hlo_instruction *b) {
    return hlo_build_binary(n->x->build, HLO_OP_MULTIPLY, a, b);
}

static hlo_instruction *minus(const norm *n, hlo_instruction *a, hlo_instruction *b) {
    return hlo_build_binary(n->x->build, HLO_OP_SUBTRACT, a, b);
}

/* Builds (data - mean) / sqrt(variance + epsilon) * scale + offset. */
static hlo_instruction *normalized(const norm *n, hlo_instruction *mean,
                                   hlo_instruction *variance) {
    hlo_instruction *apart = minus(n, operand(n, 0), broadcast(n, mean));
    hlo_instruction *unit = times(n, apart, broadcast(n, inverse_of(n, variance)));
    hlo_instruction *scaled = times(n, unit, broadcast(n, operand(n, 1)));
    return hlo_build_binary(n->x->build, HLO_OP_ADD, scaled, broadcast(n, operand(n, 2)));
}

static void finish(const norm *n, hlo_instruction **results, uint32_t count) {
    const hlo_shape *shape = n->x->build->at->shape;
    const bool many = shape->type == HLO_TYPE_TUPLE;
    for (uint32_t i = 0; i < count; i++)
        results[i] = hlo_build_convert(n->x->build, results[i],
                                       many ? shape->elements[i]->type : shape->type);
    expand_replace(n->x, many ? HLO_OP_TUPLE : HLO_OP_COPY, shape, count, results);
}

static void expand_one(expansion *x) {
    const hlo_op op = x->build->at->op;
    hlo_computation *add = NULL;
    const hlo_shape *whole = hlo_instr_operand(x->build->at, 0)->shape;
    const hlo_shape *vector = hlo_instr_operand(x->build->at, 1)->shape;
    norm n = {.x = x,
              .type = whole->type == vector->type &&
                              (whole->type == HLO_TYPE_F64 || whole->type == HLO_TYPE_F32 ||
                               whole->type == HLO_TYPE_F16)
                          ? whole->type
                      : whole->type == HLO_TYPE_F64 || vector->type == HLO_TYPE_F64 ? HLO_TYPE_F64
                                                                                    : HLO_TYPE_F32,
              .count = 1,
              .add = &add};
    n.feature = hlo_instr_int(x->build->at, HLO_ATTR_FEATURE_INDEX, 0);
    n.whole = hlo_shape_retype(x->module, whole, n.type);
    n.vector = hlo_shape_retype(x->module, vector, n.type);
    for (uint32_t d = 0; d < whole->rank; d++)
        if (d != n.feature) n.count *= whole->dims[d];
    if (op == HLO_OP_BATCH_NORM_TRAINING) {
        hlo_instruction *data = operand(&n, 0), *mean = mean_of(&n, data);
        hlo_instruction *squares = mean_of(&n, times(&n, data, data));
        hlo_instruction *variance = minus(&n, squares, times(&n, mean, mean));
        hlo_instruction *results[] = {normalized(&n, mean, variance), mean, variance};
        finish(&n, results, 3);
    } else if (op == HLO_OP_BATCH_NORM_INFERENCE) {
        hlo_instruction *result = normalized(&n, operand(&n, 3), operand(&n, 4));
        finish(&n, &result, 1);
    } else {
        /* Build the gradients of data, scale and offset from the gradient of the result. */
        hlo_instruction *gradient = operand(&n, 4), *variance = operand(&n, 3);
        hlo_instruction *apart = minus(&n, operand(&n, 0), broadcast(&n, operand(&n, 2)));
        hlo_instruction *inverse = inverse_of(&n, variance);
        hlo_instruction *offsets = sum(&n, gradient),
                        *products = sum(&n, times(&n, gradient, apart));
        hlo_instruction *part = times(&n, broadcast(&n, products), apart);
        part = hlo_build_binary(n.x->build, HLO_OP_DIVIDE, part,
                                broadcast(&n, above_zero(&n, variance)));
        hlo_instruction *data = times(&n, gradient, number(&n, (double)n.count, n.whole));
        data = minus(&n, minus(&n, data, broadcast(&n, offsets)), part);
        hlo_instruction *factor = times(&n, operand(&n, 1), inverse);
        hlo_instruction *divisor = number(&n, (double)n.count, n.vector);
        factor = hlo_build_binary(n.x->build, HLO_OP_DIVIDE, factor, divisor);
        hlo_instruction *results[] = {times(&n, data, broadcast(&n, factor)),
                                      times(&n, products, inverse), offsets};
        finish(&n, results, 3);
    }
}

bool hlo_batch_norm_any(const hlo_module *module) {
    return module->op_counts[HLO_OP_BATCH_NORM_TRAINING] ||
           module->op_counts[HLO_OP_BATCH_NORM_INFERENCE] ||
           module->op_counts[HLO_OP_BATCH_NORM_GRAD];
}

void hlo_batch_norm_expand(hlo_module *module) {
    expansion x = {.module = module};
    if (!hlo_batch_norm_any(module)) return;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            x.build->at = instr;
            if (instr->op != HLO_OP_BATCH_NORM_TRAINING &&
                instr->op != HLO_OP_BATCH_NORM_INFERENCE && instr->op != HLO_OP_BATCH_NORM_GRAD)
                continue;
            const hlo_shape *shape = hlo_instr_operand(instr, 0)->shape;
            bool dynamic = false;
            for (uint32_t d = 0; d < shape->rank; d++) dynamic |= dynamic_declares(shape, d);
            if (!dynamic) expand_one(&x);
        }
}
