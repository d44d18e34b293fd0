/* Perturbation of results at random, within the rounding freedom of their operations. The method is
 * in docs/numerics.md. */
#include <math.h>

#include "ir/error/rules.h"
#include "ir/float/float.h"

/* Hashes a number: the finalizer of splitmix64 (G. L. Steele, D. Lea, C. H. Flood, Fast splittable
 * pseudorandom number generators, OOPSLA 2014). */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns the sum of four uniform numbers of 16 bits, scaled to mean 0 and variance 1: nearly
 * normal. */
static double deviate(uint64_t bits) {
    int64_t sum =
        (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return ((double)sum - 131070) * (1.7320508075688772 / 65536);
}

static double moved(double value, double sigma, double by) {
    return value + by * (isinf(sigma) ? 0x1p-20 * fabs(value) : sigma);
}

static void perturb_complex(hlo_type type, char *at, double sigma, double times, uint64_t random) {
    double parts[2];
    hlo_lane_load(type, at, 0, 1, parts);
    parts[0] = moved(parts[0], sigma, times * deviate(random));
    parts[1] = moved(parts[1], sigma, times * deviate(scramble(random)));
    hlo_lane_store(type, parts, 1, at, 0);
}

static void perturb_element(hlo_type type, char *at, double sigma, double times, uint64_t random) {
    if (!hlo_type_is_float(type)) {
        perturb_complex(type, at, sigma, times, random);
        return;
    }
    double value = hlo_number_load(type, at);
    if (isfinite(value)) hlo_number_store(type, at, moved(value, sigma, times * deviate(random)));
}

void hlo_error_perturb(const hlo_view *value, const float *sigma, double times, uint64_t stream) {
    if (!hlo_type_is_float(value->type) && hlo_lane_of(value->type) != HLO_LANE_C128) return;
    int64_t count = hlo_view_count(value), index[HLO_EVAL_MAX_RANK] = {0};
    uint64_t key = scramble(stream);
    for (int64_t i = 0; i < count; i++) {
        if (sigma[i] > 0)
            perturb_element(value->type, hlo_view_element(value, index), (double)sigma[i], times,
                            scramble(key ^ (uint64_t)i));
        hlo_dims_next(value->rank, value->dims, index);
    }
}
