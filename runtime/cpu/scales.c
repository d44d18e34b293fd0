/* SPDX-License-Identifier: Apache-2.0 */
/* Scales of matmul operands per row and per block. Scales that vary along the contracting dimension
 * multiply the product of each of its ranges before these are summed, all in f32. */
#include <math.h>

#include "ir/kernel/kernel.h"
#include "runtime/cpu/cpu.h"

bool cpu_scales_scalar(const cpu_scales *s) {
    return s->a_mode == HLO_SCALE_SCALAR && s->b_mode == HLO_SCALE_SCALAR;
}

bool cpu_scales_inside(const cpu_scales *s) {
    return hlo_scale_modes[s->a_mode].along || hlo_scale_modes[s->b_mode].along;
}

static float at(const float *values, int64_t index, float absent) {
    return values ? values[index] : absent;
}

cpu_scale cpu_scale_at(const cpu_scales *s, int64_t element, int64_t along) {
    int64_t a = hlo_scale_index(s->a_mode, s->size.m, s->size.k, element / s->size.n, along);
    int64_t column = element / (s->size.m * s->size.n) * s->size.n + element % s->size.n;
    int64_t b = hlo_scale_index(s->b_mode, s->size.n, s->size.k, column, along);
    double x = (double)at(s->a, a, 1), y = (double)at(s->b, b, 1);
    double x_sigma = (double)at(s->a_sigma, a, 0), y_sigma = (double)at(s->b_sigma, b, 0);
    const bool narrow =
        hlo_scale_modes[s->a_mode].type != HLO_TYPE_F32; /* their signs are ignored */
    return (cpu_scale){.value = narrow ? fabs(x * y) : (double)((float)x * (float)y),
                       .sigma = hypot(x_sigma * y, y_sigma * x)};
}

/* A range of the contracting dimension with constant scales. */
typedef struct stretch {
    const cpu_scales *scales;
    int64_t start;
    const float *part, *part_sigma; /* product of the range */
    float *product;
    double *variance; /* NULL: not requested */
} stretch;

static void add_stretch(void *arg, int64_t begin, int64_t end) {
    const stretch *s = arg;
    const double unit = 0x1p-24;
    for (int64_t i = begin; i < end; i++) {
        cpu_scale scale = cpu_scale_at(s->scales, i, s->start);
        float term = (float)(scale.value * (double)s->part[i]);
        s->product[i] += term;
        if (!s->variance) continue;
        double errors[] = {scale.value * (double)s->part_sigma[i], scale.sigma * (double)s->part[i],
                           2 * unit * (double)term, unit * (double)s->product[i]};
        for (int e = 0; e < 4; e++) s->variance[i] += errors[e] * errors[e];
    }
}

/* Views `count` elements, starting at `start`, along dimension `dim`. */
static hlo_view part_of(const hlo_view *view, int64_t dim, int64_t start, int64_t count,
                        hlo_dims *dims, hlo_dims *strides) {
    hlo_dims from = {{0}};
    for (uint32_t d = 0; d < view->rank; d++) dims->v[d] = view->dims[d];
    from.v[dim] = start;
    dims->v[dim] = count;
    return hlo_view_part(view, from.v, dims->v, NULL, strides);
}

typedef struct side {
    const hlo_view *value, *sigma;
    int64_t dim; /* the contracting dimension */
    hlo_view part, part_sigma;
    hlo_dims dims, strides, sigma_strides;
} side;

static void take(side *s, int64_t start, int64_t count) {
    s->part = part_of(s->value, s->dim, start, count, &s->dims, &s->strides);
    s->part_sigma = (hlo_view){.data = NULL};
    if (s->sigma && s->sigma->data)
        s->part_sigma = part_of(s->sigma, s->dim, start, count, &s->dims, &s->sigma_strides);
}

hlo_status cpu_scales_multiply(const cpu_device *cpu, const cpu_scales *scales, hlo_dot_dims dims,
                               const hlo_view *a, const hlo_view *a_sigma, const hlo_view *b,
                               const hlo_view *b_sigma, const hlo_view *product, double *variance,
                               const hlo_error_options *options, const char **why) {
    const int64_t a_step = hlo_scale_modes[scales->a_mode].along;
    const int64_t step = a_step ? a_step : hlo_scale_modes[scales->b_mode].along;
    int64_t count = hlo_view_count(product), k = scales->size.k;
    side left = {.value = a, .sigma = a_sigma, .dim = dims.lhs_contracting->v[0]};
    side right = {.value = b, .sigma = b_sigma, .dim = dims.rhs_contracting->v[0]};
    stretch s = {.scales = scales, .product = product->data, .variance = variance};
    for (int64_t i = 0; i < count; i++) s.product[i] = 0;
    for (int64_t i = 0; variance && i < count; i++) variance[i] = 0;
    hlo_status status = HLO_OK;
    for (s.start = 0; s.start < k && status == HLO_OK; s.start += step) {
        hlo_arena_mark mark = hlo_arena_here(cpu->scratch);
        hlo_view part = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, product), sigma = part;
        take(&left, s.start, k - s.start < step ? k - s.start : step);
        take(&right, s.start, k - s.start < step ? k - s.start : step);
        status =
            hlo_eval_dot_views(&cpu->env, dims, &left.part, &right.part, &part, cpu->scratch, why);
        if (status == HLO_OK && variance) {
            sigma = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, product);
            status =
                hlo_error_dot_views(&cpu->env, dims, &left.part, &left.part_sigma, &right.part,
                                    &right.part_sigma, &part, &sigma, options, cpu->scratch, why);
        }
        s.part = part.data;
        s.part_sigma = sigma.data;
        if (status == HLO_OK) cpu->env.parallel(cpu->env.user, count, add_stretch, &s);
        hlo_arena_release(cpu->scratch, mark);
    }
    return status;
}
