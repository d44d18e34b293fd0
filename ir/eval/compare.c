/* Comparing two arrays under a bound. */
#include <math.h>
#include <string.h>

#include "ir/eval/kernel.h"

typedef struct element {
    double a, b, bound;
    bool same;
} element;

static double part(const hlo_view *view, int64_t offset, bool imaginary) {
    hlo_chunk lane, wide;
    hlo_lane_load(view->type, hlo_view_at(view, offset), 0, 1, &lane);
    if (imaginary) return ((const double *)&lane)[1];
    hlo_lane_cast(hlo_lane_of(view->type), HLO_LANE_F64, &lane, 1, &wide);
    return wide.f64[0];
}

/* Whether there is no value of the fp8 type between the two: by their codes, in order of value. */
static bool neighbours(hlo_type type, const unsigned char *a, const unsigned char *b) {
    int x = *a & 0x80 ? -(*a & 0x7f) : *a, y = *b & 0x80 ? -(*b & 0x7f) : *b;
    if (type == HLO_TYPE_F8E8M0FNU) x = *a, y = *b;
    return x - y == 1 || y - x == 1;
}

static bool same_number(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static double excess(element e) {
    double distance = fabs(e.a - e.b);
    return isnan(distance) || isinf(distance) ? (double)INFINITY
           : e.bound > 0                      ? distance / e.bound
           : distance > 0                     ? (double)INFINITY
                                              : 0;
}

/* Counts one element (or one part of a complex one). */
static void judge(hlo_bound_comparison *c, element e, bool step, int64_t index, double *worst) {
    if (e.same) {
        c->equal++;
        return;
    }
    bool finite = isfinite(e.a) && isfinite(e.b);
    double ratio = excess(e);
    if (finite && e.bound > 0 && ratio > c->largest) c->largest = ratio;
    if (isinf(e.bound) || (finite && ratio <= 1 + 1e-6)) {
        c->within += !step;
        c->steps += step;
        return;
    }
    c->violations++;
    c->nonfinite += !finite;
    if (c->worst_index >= 0 && ratio <= *worst) return;
    *worst = ratio;
    c->worst_index = index;
    c->worst_a = e.a;
    c->worst_b = e.b;
    c->worst_bound = e.bound;
}

void hlo_bound_compare(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                       hlo_bound_comparison *out_comparison) {
    hlo_bound_comparison c = {.worst_index = -1};
    int64_t count = hlo_view_count(a), index[HLO_EVAL_MAX_RANK] = {0};
    bool complex = hlo_lane_of(a->type) == HLO_LANE_C128, fp8 = hlo_type_is_fp8(a->type);
    bool integer = hlo_lane_of(a->type) == HLO_LANE_S64 || hlo_lane_of(a->type) == HLO_LANE_U64;
    size_t size = hlo_types[a->type].bytes;
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at_a = 0, at_b = 0, at_sigma = 0;
        for (uint32_t d = 0; d < a->rank; d++) {
            at_a += index[d] * a->strides[d];
            at_b += index[d] * b->strides[d];
            if (sigma && sigma->data) at_sigma += index[d] * sigma->strides[d];
        }
        element e = {.a = part(a, at_a, false), .b = part(b, at_b, false)};
        if (complex && same_number(e.a, e.b)) {
            e.a = part(a, at_a, true);
            e.b = part(b, at_b, true);
        }
        e.same = integer ? memcmp(hlo_view_at(a, at_a), hlo_view_at(b, at_b), size) == 0
                         : same_number(e.a, e.b);
        if (sigma && sigma->data)
            e.bound = (fp8 ? HLO_BOUND_FLIP : HLO_BOUND_LAMBDA) *
                      (double)((const float *)sigma->data)[at_sigma];
        bool step = fp8 && neighbours(a->type, (const void *)hlo_view_at(a, at_a),
                                      (const void *)hlo_view_at(b, at_b));
        judge(&c, e, step, i, &worst);
        for (uint32_t d = a->rank; d-- > 0;) {
            if (++index[d] < a->dims[d]) break;
            index[d] = 0;
        }
    }
    *out_comparison = c;
}
