/* Batch normalization as reductions and elementwise operations, in the order of XLA's
 * batchnorm_expander.cc: the variance is E[x^2] - E[x]^2. Error bounds thus cover its cancellation.
 */
#include "ir/expand/expansion.h"

/* The operation at x->at. Arrays are computed in `type`. */
typedef struct norm {
    expansion *x;
    hlo_type type;
    const hlo_shape *whole, *vector; /* shapes of `type`: the data's, and one number per feature */
    int64_t feature, count;          /* the feature's dimension; elements per feature */
    hlo_computation *add;
} norm;

static bool computes(hlo_type type) {
    return type == HLO_TYPE_F64 || type == HLO_TYPE_F32 || type == HLO_TYPE_F16;
}

/* XLA computes bf16 in f32. */
static hlo_type type_of(hlo_type data, hlo_type vector) {
    if (data == vector && computes(data)) return data;
    return data == HLO_TYPE_F64 || vector == HLO_TYPE_F64 ? HLO_TYPE_F64 : HLO_TYPE_F32;
}

static norm norm_of(expansion *x) {
    const hlo_shape *data = hlo_instr_operand(x->at, 0)->shape;
    const hlo_shape *scale = hlo_instr_operand(x->at, 1)->shape;
    norm n = {.x = x, .type = type_of(data->type, scale->type), .count = 1};
    n.feature = hlo_instr_int(x->at, HLO_ATTR_FEATURE_INDEX, 0);
    n.whole = hlo_shape_retype(x->module, data, n.type);
    n.vector = hlo_shape_retype(x->module, scale, n.type);
    for (uint32_t d = 0; d < data->rank; d++)
        if (d != n.feature) n.count *= data->dims[d];
    n.add = hlo_combiner_new(x->at->parent, HLO_OP_ADD, n.type, "add");
    return n;
}

static hlo_instr *converted(const norm *n, hlo_instr *value, hlo_type type) {
    if (value->shape->type == type) return value;
    const hlo_shape *shape = hlo_shape_retype(n->x->module, value->shape, type);
    return expand_make(n->x, HLO_OP_CONVERT, shape, 1, &value);
}

static hlo_instr *operand(const norm *n, uint32_t index) {
    return converted(n, hlo_instr_operand(n->x->at, index), n->type);
}

static hlo_instr *number(const norm *n, double value, const hlo_shape *like) {
    return expand_splat(n->x, hlo_constant_scalar(n->x->at->parent, n->x->at, n->type, value),
                        like);
}

static hlo_instr *spread(const norm *n, hlo_instr *vector) {
    hlo_instr *made = expand_make(n->x, HLO_OP_BROADCAST, n->whole, 1, &vector);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, 1, &n->feature);
    return made;
}

/* Sums over all dimensions but the feature's. */
static hlo_instr *sum(const norm *n, hlo_instr *whole) {
    int64_t others[HLO_LARGEST_RANK];
    uint32_t count = 0;
    for (int64_t d = 0; d < n->whole->rank; d++)
        if (d != n->feature) others[count++] = d;
    hlo_instr *operands[] = {whole, expand_zero(n->x, n->type)};
    hlo_instr *made = expand_make(n->x, HLO_OP_REDUCE, n->vector, 2, operands);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, count, others);
    hlo_instr_set_comp(made, HLO_ATTR_TO_APPLY, n->add);
    return made;
}

static hlo_instr *mean_of(const norm *n, hlo_instr *whole) {
    hlo_instr *divisor = number(n, (double)n->count, n->vector);
    return expand_binary(n->x, HLO_OP_DIVIDE, sum(n, whole), divisor);
}

static hlo_instr *above_zero(const norm *n, hlo_instr *variance) {
    /* f32, as in XLA. */
    const double epsilon = (double)(float)hlo_instr_attr(n->x->at, HLO_ATTR_EPSILON)->u.f;
    return expand_binary(n->x, HLO_OP_ADD, variance, number(n, epsilon, n->vector));
}

static hlo_instr *inverse_of(const norm *n, hlo_instr *variance) {
    hlo_instr *raised = above_zero(n, variance);
    return expand_make(n->x, HLO_OP_RSQRT, n->vector, 1, &raised);
}

static hlo_instr *times(const norm *n, hlo_instr *a, hlo_instr *b) {
    return expand_binary(n->x, HLO_OP_MULTIPLY, a, b);
}

static hlo_instr *minus(const norm *n, hlo_instr *a, hlo_instr *b) {
    return expand_binary(n->x, HLO_OP_SUBTRACT, a, b);
}

/* Makes (data - mean) / sqrt(variance + epsilon) * scale + offset. */
static hlo_instr *normalized(const norm *n, hlo_instr *mean, hlo_instr *variance) {
    hlo_instr *apart = minus(n, operand(n, 0), spread(n, mean));
    hlo_instr *unit = times(n, apart, spread(n, inverse_of(n, variance)));
    hlo_instr *scaled = times(n, unit, spread(n, operand(n, 1)));
    return expand_binary(n->x, HLO_OP_ADD, scaled, spread(n, operand(n, 2)));
}

static void finish(const norm *n, hlo_instr **results, uint32_t count) {
    const hlo_shape *shape = n->x->at->shape;
    const bool many = shape->type == HLO_TYPE_TUPLE;
    for (uint32_t i = 0; i < count; i++)
        results[i] = converted(n, results[i], many ? shape->elements[i]->type : shape->type);
    expand_replace(n->x, many ? HLO_OP_TUPLE : HLO_OP_COPY, shape, count, results);
}

static void expand_training(const norm *n) {
    hlo_instr *data = operand(n, 0), *mean = mean_of(n, data);
    hlo_instr *squares = mean_of(n, times(n, data, data));
    hlo_instr *variance = minus(n, squares, times(n, mean, mean));
    hlo_instr *results[] = {normalized(n, mean, variance), mean, variance};
    finish(n, results, 3);
}

static void expand_inference(const norm *n) {
    hlo_instr *result = normalized(n, operand(n, 3), operand(n, 4));
    finish(n, &result, 1);
}

/* Makes the gradients of data, scale and offset from the gradient of the result. */
static void expand_grad(const norm *n) {
    hlo_instr *gradient = operand(n, 4), *variance = operand(n, 3);
    hlo_instr *apart = minus(n, operand(n, 0), spread(n, operand(n, 2)));
    hlo_instr *inverse = inverse_of(n, variance);
    hlo_instr *offsets = sum(n, gradient), *products = sum(n, times(n, gradient, apart));
    hlo_instr *part = times(n, spread(n, products), apart);
    part = expand_binary(n->x, HLO_OP_DIVIDE, part, spread(n, above_zero(n, variance)));
    hlo_instr *data = times(n, gradient, number(n, (double)n->count, n->whole));
    data = minus(n, minus(n, data, spread(n, offsets)), part);
    hlo_instr *factor = times(n, operand(n, 1), inverse);
    hlo_instr *divisor = number(n, (double)n->count, n->vector);
    factor = expand_binary(n->x, HLO_OP_DIVIDE, factor, divisor);
    hlo_instr *results[] = {times(n, data, spread(n, factor)), times(n, products, inverse),
                            offsets};
    finish(n, results, 3);
}

static bool is_dynamic(const hlo_shape *shape) {
    for (uint32_t d = 0; d < shape->rank; d++)
        if (dynamic_declares(shape, d)) return true;
    return false;
}

static void expand_one(expansion *x) {
    const hlo_op op = x->at->op;
    const norm n = norm_of(x);
    if (op == HLO_OP_BATCH_NORM_TRAINING) expand_training(&n);
    if (op == HLO_OP_BATCH_NORM_INFERENCE) expand_inference(&n);
    if (op == HLO_OP_BATCH_NORM_GRAD) expand_grad(&n);
}

static bool is_batch_norm(hlo_op op) {
    return op == HLO_OP_BATCH_NORM_TRAINING || op == HLO_OP_BATCH_NORM_INFERENCE ||
           op == HLO_OP_BATCH_NORM_GRAD;
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
        for (hlo_instr *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            x.at = instr;
            if (is_batch_norm(instr->op) && !is_dynamic(hlo_instr_operand(instr, 0)->shape))
                expand_one(&x);
        }
}
