/* Batch normalization: batch-norm-training, -inference, -grad, in f64, rounded once. For each
 * feature f with n elements x: mean = sum x / n, variance = sum (x - mean)^2 / n, y = (x - mean) /
 * sqrt(variance + epsilon) * scale
 * + offset. Source: XLA's operation semantics. */
#include "ir/kernel/kernel.h"

/* Arrays of f64, row-major, and how to walk over the elements of a feature. */
typedef struct batch {
    int64_t features, outer, inner; /* sizes of the feature's dimension, before it and behind it */
    double epsilon;
    double *operand[5];
} batch;

static batch batch_of(const hlo_call *call) {
    const hlo_view *in = &call->operands[0];
    uint32_t dim = (uint32_t)hlo_instr_int(call->instr, HLO_ATTR_FEATURE_INDEX, 0);
    batch b = {.features = in->dims[dim], .outer = 1, .inner = 1};
    b.epsilon = (double)(float)hlo_instr_attr(call->instr, HLO_ATTR_EPSILON)->u.f; /* as in XLA */
    for (uint32_t d = 0; d < in->rank; d++) {
        if (d < dim) b.outer *= in->dims[d];
        if (d > dim) b.inner *= in->dims[d];
    }
    for (uint32_t i = 0; i < call->operand_count; i++) {
        hlo_view wide = hlo_view_scratch(call->scratch, HLO_TYPE_F64, &call->operands[i]);
        hlo_view_convert(call->env, &call->operands[i], &wide);
        b.operand[i] = wide.data;
    }
    return b;
}

#define FOR_FEATURE(b, f, at)                                                                      \
    for (int64_t o_ = 0; o_ < (b)->outer; o_++)                                                    \
        for (int64_t at = (o_ * (b)->features + (f)) * (b)->inner, end_ = at + (b)->inner;         \
             at < end_; at++)

/* Applies y = (x - mean) / sqrt(variance + epsilon) * scale + offset to a feature. */
static void normalize(const batch *b, int64_t f, double mean, double variance, double *out) {
    double factor = b->operand[1][f] / sqrt(variance + b->epsilon);
    FOR_FEATURE(b, f, at) out[at] = (b->operand[0][at] - mean) * factor + b->operand[2][f];
}

static double *result(const hlo_call *call, uint32_t i, hlo_view *out) {
    *out = hlo_view_scratch(call->scratch, HLO_TYPE_F64, &call->results[i]);
    return out->data;
}

static hlo_status run_training(hlo_call *call) {
    batch b = batch_of(call);
    hlo_view views[3];
    double *out[3], count = (double)(b.outer * b.inner);
    for (uint32_t i = 0; i < 3; i++) out[i] = result(call, i, &views[i]);
    for (int64_t f = 0; f < b.features; f++) {
        double sum = 0, squares = 0;
        FOR_FEATURE(&b, f, at) sum += b.operand[0][at];
        double mean = sum / count;
        FOR_FEATURE(&b, f, at) {
            double apart = b.operand[0][at] - mean;
            squares += apart * apart;
        }
        out[1][f] = mean;
        out[2][f] = squares / count;
        normalize(&b, f, mean, squares / count, out[0]);
    }
    for (uint32_t i = 0; i < 3; i++) hlo_view_convert(call->env, &views[i], &call->results[i]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_batch_norm_training = {.run = run_training, .error = HLO_ERROR_MOVED};

static hlo_status run_inference(hlo_call *call) {
    batch b = batch_of(call);
    hlo_view view;
    double *out = result(call, 0, &view);
    for (int64_t f = 0; f < b.features; f++)
        normalize(&b, f, b.operand[3][f], b.operand[4][f], out);
    hlo_view_convert(call->env, &view, &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_batch_norm_inference = {.run = run_inference, .error = HLO_ERROR_MOVED};

/* Computes the gradients of operand, scale and offset from those of the result (operand 4). */
static hlo_status run_grad(hlo_call *call) {
    batch b = batch_of(call);
    const double *x = b.operand[0], *gradient = b.operand[4];
    hlo_view views[3];
    double *out[3], count = (double)(b.outer * b.inner);
    for (uint32_t i = 0; i < 3; i++) out[i] = result(call, i, &views[i]);
    for (int64_t f = 0; f < b.features; f++) {
        double mean = b.operand[2][f], inverse = 1 / sqrt(b.operand[3][f] + b.epsilon);
        double sum = 0, product = 0;
        FOR_FEATURE(&b, f, at) {
            sum += gradient[at];
            product += gradient[at] * (x[at] - mean);
        }
        out[1][f] = product * inverse;
        out[2][f] = sum;
        FOR_FEATURE(&b, f, at)
        out[0][at] =
            b.operand[1][f] * inverse *
            (gradient[at] - sum / count - (x[at] - mean) * inverse * inverse * product / count);
    }
    for (uint32_t i = 0; i < 3; i++) hlo_view_convert(call->env, &views[i], &call->results[i]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_batch_norm_grad = {.run = run_grad, .error = HLO_ERROR_MOVED};
