/* Between which numbers a whole array lies, and its largest sigma. */
#include <math.h>

#include "ir/error/rules.h"

static const float zero_f32 = 0;
static const hlo_dims no_strides = {{0}};

/* Zeros of the dimensions of `like`. */
hlo_view hlo_error_zeros(const hlo_view *like) {
    return (hlo_view){HLO_TYPE_F32, like->rank, like->dims, no_strides.v, (void *)&zero_f32};
}

hlo_view hlo_error_sigma_or_zeros(const hlo_view *value, const hlo_view *sigma) {
    return sigma->data ? *sigma : hlo_error_zeros(value);
}

static void extend_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    hlo_extent *e = arg;
    double x[HLO_CHUNK];
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = count - done < HLO_CHUNK ? count - done : HLO_CHUNK;
        hlo_lane_load_f64(e->type, data[0] + done * steps[0], steps[0], n, x);
        for (int64_t i = 0; i < n; i++) {
            double s = (double)*(const float *)(data[1] + (done + i) * steps[1]);
            e->lowest = isnan(x[i]) ? -(double)INFINITY : fmin(e->lowest, x[i]);
            e->highest = isnan(x[i]) ? (double)INFINITY : fmax(e->highest, x[i]);
            e->sigma = fmax(e->sigma, s);
        }
    }
}

/* Widens `e` by an array of real numbers. */
void hlo_extent_add(hlo_extent *e, const hlo_view *value, const hlo_view *sigma) {
    hlo_view s = hlo_error_sigma_or_zeros(value, sigma);
    const hlo_view *views[] = {value, &s};
    hlo_strided_loop walk;
    e->type = value->type;
    hlo_strided_loop_init(&walk, value->rank, value->dims, 2, views);
    hlo_strided_loop_run(&walk, extend_row, e);
}

const hlo_extent hlo_extent_empty = {.lowest = (double)INFINITY, .highest = -(double)INFINITY};

void hlo_view_extent(const hlo_view *view, hlo_range *out_range) {
    hlo_view exact = {.data = NULL};
    hlo_extent e = hlo_extent_empty;
    hlo_extent_add(&e, view, &exact);
    *out_range = (hlo_range){e.lowest, e.highest};
}

bool hlo_error_is_exact(const hlo_view *sigma) {
    hlo_range range;
    if (!sigma->data) return true;
    hlo_view_extent(sigma, &range);
    return !(range.high > 0);
}
