/* SPDX-License-Identifier: Apache-2.0 */
/* Factors that other executions may apply elsewhere; elementwise operations on complex numbers. */
#include <math.h>

#include "ir/error/row.h"
#include "ir/module/known.h"

static bool only_moves(const hlo_instr *value) {
    return value->op == HLO_OP_CONVERT || hlo_instr_moves(value);
}

/* True if the value is one number, repeated along some dimension, or computed elementwise from such
 * values. Searches to `depth`, over at most `*steps` instructions. */
static bool is_scale_at(const hlo_instr *value, int depth, int *steps) {
    if (--*steps < 0) return false;
    if (hlo_shape_count(value->shape) == 1 || value->op == HLO_OP_BROADCAST) return true;
    bool moves = only_moves(value);
    if (!depth || !value->operand_count || !(moves || hlo_op_is(value->op, HLO_ELEMENTWISE)))
        return false;
    for (uint32_t o = 0; o < (moves ? 1 : value->operand_count); o++)
        if (!is_scale_at(hlo_instr_operand(value, o), depth - 1, steps)) return false;
    return true;
}

static bool is_scale(const hlo_instr *value, int *steps) {
    enum { DEPTH = 8 };
    return is_scale_at(value, DEPTH, steps);
}

/* True if the value is repeated, or thin, directly or after movement and scaling, so that one of
 * its elements may scale a row. */
static bool comes_to_rows(const hlo_instr *value, int *steps) {
    bool thin = value->shape->rank == 1;
    for (uint32_t d = 0; d < value->shape->rank; d++) thin |= value->shape->dims[d] == 1;
    if (thin) return true;
    for (const hlo_use *use = value->uses; use && --*steps > 0; use = use->next) {
        hlo_op op = use->user->op;
        if (op == HLO_OP_BROADCAST) return true;
        bool on = only_moves(use->user) || op == HLO_OP_MULTIPLY || op == HLO_OP_DIVIDE;
        if (on && comes_to_rows(use->user, steps)) return true;
    }
    return false;
}

bool hlo_error_scales(const hlo_instr *instr, uint32_t o) {
    int uses = 64, steps = 256; /* maximum number of instructions to visit, so that a chain takes
                                 * linear time */
    if (instr->op != HLO_OP_MULTIPLY && (instr->op != HLO_OP_DIVIDE || o != 1)) return false;
    const hlo_instr *scale = hlo_instr_operand(instr, o), *other = hlo_instr_operand(instr, 1 - o);
    if (is_scale(scale, &steps)) return true;
    /* The other operand must be computed from quantized values, scaled or not. If both come from
     * fp8, either may be the scale. */
    while (!hlo_type_is_fp8(other->shape->type)) {
        if (--steps < 0) return false;
        bool scaled = other->op == HLO_OP_MULTIPLY || other->op == HLO_OP_DIVIDE;
        if (!scaled && !only_moves(other)) return false;
        other = hlo_instr_operand(other, scaled && is_scale(hlo_instr_operand(other, 0), &steps));
    }
    return comes_to_rows(instr, &uses);
}

/* ------------------------------------------------------------------------------ complex numbers */

static double size_of(hlo_type type, const char *at) {
    hlo_chunk value;
    hlo_lane_load(type, at, 0, 1, &value);
    if (hlo_lane_of(type) == HLO_LANE_C128) return hypot(value.f64[0], value.f64[1]);
    hlo_lane_load_f64(type, at, 0, 1, value.f64);
    return fabs(value.f64[0]);
}

/* Returns the variance due to the operands' errors; infinity: unknown. */
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
        *(float *)(void *)(data[1] + i * steps[1]) = isnan(s) ? INFINITY : (float)s;
    }
}

bool hlo_error_complex_call(const hlo_call *call) {
    if (hlo_lane_of(call->results[0].type) == HLO_LANE_C128) return true;
    for (uint32_t o = 0; o < call->operand_count; o++)
        if (hlo_lane_of(call->operands[o].type) == HLO_LANE_C128) return true;
    return false;
}
