/* The sigmas of elementwise operations on complex numbers. The method is in docs/numerics.md. */
#include <math.h>

#include "ir/error/row.h"

static double size_of(hlo_type type, const char *at) {
    hlo_chunk value;
    hlo_lane_load(type, at, 0, 1, &value);
    if (hlo_lane_of(type) == HLO_LANE_C128) return hypot(value.f64[0], value.f64[1]);
    hlo_lane_load_f64(type, at, 0, 1, value.f64);
    return fabs(value.f64[0]);
}

/* Returns the variance that the operands' errors make; infinity: not known. */
static double complex_variance(hlo_op op, const double *size, const double *sigma, uint32_t arity) {
    double variance = 0;
    for (uint32_t o = 0; o < arity; o++) variance += sigma[o] * sigma[o];
    if (variance == 0) return 0;
    switch (op) {
    case HLO_OP_ABS:
    case HLO_OP_ADD:
    case HLO_OP_COMPLEX:
    case HLO_OP_IMAG:
    case HLO_OP_NEGATE:
    case HLO_OP_REAL:
    case HLO_OP_SUBTRACT: return variance;
    case HLO_OP_MULTIPLY:
        variance = hypot(size[0] * sigma[1], size[1] * sigma[0]);
        return variance * variance + sigma[0] * sigma[0] * sigma[1] * sigma[1];
    default: return (double)INFINITY;
    }
}

void hlo_error_complex_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_error_row *r = arg;
    const bool rounds = hlo_type_is_float(r->result) || hlo_lane_of(r->result) == HLO_LANE_C128;
    for (int64_t i = 0; i < count; i++) {
        double size[3] = {0}, sigma[3] = {0};
        for (uint32_t o = 0; o < r->arity; o++) {
            const uint32_t v = 2 + 2 * o;
            size[o] = size_of(r->types[o], data[v] + i * steps[v]);
            sigma[o] = (double)*(const float *)(data[v + 1] + i * steps[v + 1]);
        }
        const double own = rounds
                               ? (r->op ? (double)r->op->ulps : 1) * hlo_error_roundoff(r->result) *
                                     size_of(r->result, data[0] + i * steps[0])
                               : 0;
        const double variance = complex_variance(r->instr->op, size, sigma, r->arity);
        const double s = variance == 0 ? own : sqrt(variance + own * own);
        hlo_error_store(&s, NULL, 1, data[1] + i * steps[1], steps[1]);
    }
}

bool hlo_error_complex_call(const hlo_call *call) {
    if (hlo_lane_of(call->results[0].type) == HLO_LANE_C128) return true;
    for (uint32_t o = 0; o < call->operand_count; o++)
        if (hlo_lane_of(call->operands[o].type) == HLO_LANE_C128) return true;
    return false;
}
