/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two arrays under a bound. */
#include <math.h>

#include "ir/error/rules.h"
#include "ir/float/float.h"

typedef struct element {
    double a, b, distance, bound;
    bool same;
} element;

static double part(hlo_type type, const void *at, bool imaginary) {
    hlo_chunk lane, wide;
    hlo_lane_load(type, at, 0, 1, &lane);
    if (imaginary) return ((const double *)&lane)[1];
    hlo_lane_cast(hlo_lane_of(type), HLO_LANE_F64, &lane, 1, &wide);
    return wide.f64[0];
}

static double distance_of(double a, double b) {
    return hlo_error_same(a, b) ? 0 : fabs(a - b);
}

/* Loads two elements; for complex elements, the part that differs more. */
static element element_at(hlo_type type, const void *a, const void *b) {
    const hlo_lane lane = hlo_lane_of(type);
    element e = {.a = part(type, a, false), .b = part(type, b, false)};
    e.distance = distance_of(e.a, e.b);
    if (lane == HLO_LANE_S64 || lane == HLO_LANE_U64) {
        /* The distance of integers is computed exactly and then rounded to f64. */
        hlo_chunk x, y;
        hlo_lane_load(type, a, 0, 1, &x);
        hlo_lane_load(type, b, 0, 1, &y);
        const bool below = lane == HLO_LANE_S64 ? x.s64[0] < y.s64[0] : x.u64[0] < y.u64[0];
        e.distance = (double)(below ? y.u64[0] - x.u64[0] : x.u64[0] - y.u64[0]);
    }
    if (lane == HLO_LANE_C128) {
        const element i = {.a = part(type, a, true), .b = part(type, b, true)};
        const double real = e.distance, imaginary = distance_of(i.a, i.b);
        if (!isnan(real) && !(imaginary <= real)) e = i;
        e.distance = isnan(real) || isnan(imaginary) ? (double)NAN : hypot(real, imaginary);
    }
    e.same = e.distance == 0;
    return e;
}

double hlo_error_distance(hlo_type type, const void *a, const void *b) {
    return element_at(type, a, b).distance;
}

/* True if `sigma` is the sigma of a probable tie that moves the element by `change`. The element's
 * sigma before rounding was below 1/HLO_ERROR_FINE of a step. */
static bool is_tie(double change, double sigma) {
    return fabs(sigma * HLO_ERROR_FLIP_TIE / change - 1) < 0.5e-5;
}

static double excess(element e) {
    return isnan(e.distance) || isinf(e.distance) ? (double)INFINITY
           : e.bound > 0                          ? e.distance / e.bound
           : e.distance > 0                       ? (double)INFINITY
                                                  : 0;
}

/* Counts one element in `c` and returns its excess. */
static double judge(hlo_error_comparison *c, element e, bool step, int64_t index, double *worst) {
    if (e.same) {
        c->equal++;
        return 0;
    }
    bool finite = isfinite(e.a) && isfinite(e.b);
    double ratio = excess(e);
    if (finite && e.bound > 0 && ratio > c->largest) c->largest = ratio;
    /* An infinite bound allows any difference except between a NaN and an infinity. Sigma NaN
     * allows that, too. */
    bool turned = (isinf(e.a) && isnan(e.b)) || (isnan(e.a) && isinf(e.b));
    if (isnan(e.bound) || (isinf(e.bound) && !turned) || (finite && ratio <= 1 + 1e-6)) {
        c->within += !step;
        c->steps += step;
        return finite && isfinite(e.bound) ? fmin(ratio, 1) : 0;
    }
    c->violations++;
    c->nonfinite += !finite;
    if (c->worst_index >= 0 && ratio <= *worst) return ratio;
    *worst = ratio;
    c->worst_index = index;
    c->worst_a = e.a;
    c->worst_b = e.b;
    c->worst_bound = e.bound;
    return ratio;
}

/* Compares arrays; `excess` may be NULL. */
static void compare(const hlo_view *a, const hlo_view *b, const hlo_view *sigma, float *excess,
                    hlo_error_comparison *out_comparison) {
    hlo_error_comparison c = {.worst_index = -1};
    int64_t count = hlo_view_count(a), index[HLO_EVAL_MAX_RANK] = {0};
    bool fp8 = hlo_type_is_fp8(a->type);
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double s = 0;
        element e = element_at(a->type, hlo_view_element(a, index), hlo_view_element(b, index));
        if (sigma && sigma->data)
            s = (double)*(const float *)(const void *)hlo_view_element(sigma, index);
        bool numbers = isfinite(e.a) && isfinite(e.b), step = false;
        if (hlo_error_overflowed(e.a, s)) {
            e.same |= hlo_type_is_fp8(a->type) && fabs(e.b) == hlo_float_max(a->type) &&
                      (isnan(e.a) || signbit(e.a) == signbit(e.b));
        } else if (fp8 && numbers && isfinite(s) && !e.same) {
            double unit = hlo_error_step(a->type, e.a), flip = unit / HLO_ERROR_FLIP;
            double inwards = fabs(hlo_error_neighbor(a->type, e.a, 0) - e.a);
            double before = is_tie(unit, s) || is_tie(inwards, s) ? unit / HLO_ERROR_FINE
                            : s > flip                            ? sqrt((s - flip) * (s + flip))
                                       : 0; /* the sigma before rounding */
            double halves = fabs(hlo_error_neighbor(a->type, e.a, e.b) - e.a) / 2 +
                            fabs(hlo_error_neighbor(a->type, e.b, e.a) - e.b) / 2;
            e.bound = s > 0 ? HLO_ERROR_LAMBDA * before + halves : 0;
            step = hlo_error_neighbor(a->type, e.a, e.b) == e.b;
        } else {
            /* Rounding both numbers to a 16-bit type adds a difference of up to one last place. A
             * sigma of a few last places includes this difference. A larger sigma hardly grows when
             * the error of the rounding is added in quadrature, so the difference is added here. */
            const bool half = a->type == HLO_TYPE_BF16 || a->type == HLO_TYPE_F16;
            double places =
                half ? (hlo_error_last_place(a->type, e.a) + hlo_error_last_place(a->type, e.b)) / 2
                     : 0;
            e.bound = HLO_ERROR_LAMBDA * s + (s > 4 * places ? places : 0);
        }
        double beyond = judge(&c, e, step, i, &worst);
        if (excess) excess[i] = beyond > 1 ? fmaxf((float)beyond, 1.0001f) : (float)beyond;
        hlo_dims_next(a->rank, a->dims, index);
    }
    *out_comparison = c;
}

void hlo_error_compare(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                       hlo_error_comparison *out_comparison) {
    compare(a, b, sigma, NULL, out_comparison);
}

void hlo_error_excess(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                      float *out_excess) {
    hlo_error_comparison ignored;
    compare(a, b, sigma, out_excess, &ignored);
}
