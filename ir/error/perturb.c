/* SPDX-License-Identifier: Apache-2.0 */
/* Perturbs results at random, within the rounding freedom of their operations. The method is in
 * docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"
#include "ir/float/clones.h"

/* Hashes a number: the finalizer of splitmix64 (G. L. Steele, D. Lea, C. H. Flood, Fast splittable
 * pseudorandom number generators, OOPSLA 2014). */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns the sum of four uniform 16-bit numbers, scaled to mean 0 and variance 1: approximately
 * normal. */
static double deviate(uint64_t bits) {
    int64_t sum =
        (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return ((double)sum - 131070) * (1.7320508075688772 / 65536);
}

static double moved(double value, double sigma, double by) {
    return value + by * (isinf(sigma) ? 0x1p-20 * fabs(value) : sigma);
}

/* A row of an array: elements `step` bytes apart, the first with index `index`. */
typedef struct row {
    hlo_type type;
    char *at;
    int64_t step, index, count;
    const float *sigma;
    double times;
    uint64_t key;
    bool by_value; /* equal values are moved by equal amounts */
} row;

static uint64_t random_of(const row *r, int64_t i, double value) {
    uint64_t bits = (uint64_t)(r->index + i);
    if (r->by_value) memcpy(&bits, &value, sizeof bits);
    return scramble(r->key ^ bits);
}

/* Moves the finite elements of a chunk that have a nonzero sigma. Returns false if there are no
 * such elements, or an element is NaN. */
HLO_CLONED static bool move_all(const row *r, double *value) {
    int64_t erring = 0, nans = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const double sigma = (double)r->sigma[i], v = value[i];
        const double to = moved(v, sigma, r->times * deviate(random_of(r, i, v)));
        value[i] = (sigma > 0) & isfinite(v) ? to : v;
        erring += sigma > 0;
        nans += isnan(v);
    }
    return erring && !nans;
}

/* Moves the elements of a chunk one by one, if they are complex or move_all() returns false. Stores
 * only elements that move, so that a NaN keeps all its bits. */
static void move_each(const row *r) {
    for (int64_t i = 0; i < r->count; i++) {
        double value;
        char *at = r->at + i * r->step;
        if (!(r->sigma[i] > 0)) continue;
        if (!hlo_type_is_float(r->type)) {
            const double sigma = (double)r->sigma[i];
            const uint64_t random = random_of(r, i, 0);
            double parts[2];
            hlo_lane_load(r->type, at, 0, 1, parts);
            parts[0] = moved(parts[0], sigma, r->times * deviate(random));
            parts[1] = moved(parts[1], sigma, r->times * deviate(scramble(random)));
            hlo_lane_store(r->type, parts, 1, at, 0);
            continue;
        }
        hlo_lane_load_f64(r->type, at, r->step, 1, &value);
        if (!isfinite(value)) continue;
        value = moved(value, (double)r->sigma[i], r->times * deviate(random_of(r, i, value)));
        hlo_lane_convert(HLO_TYPE_F64, r->type, &value, 1, at, r->step);
    }
}

void hlo_error_perturb(const hlo_view *value, const float *sigma, double times, uint64_t stream,
                       bool by_value) {
    if (!hlo_type_is_float(value->type) && hlo_lane_of(value->type) != HLO_LANE_C128) return;
    const int64_t count = hlo_view_count(value), bytes = hlo_types[value->type].bytes;
    const bool dense = hlo_view_is_dense(value);
    const uint32_t inner = dense ? 0 : value->rank - 1;
    const int64_t length = dense ? count : value->dims[inner];
    const int64_t step = dense ? bytes : value->strides[inner] * bytes;
    hlo_dims index = {{0}};
    for (int64_t done = 0; done < count; done += length) {
        row r = {.type = value->type,
                 .at = hlo_view_element(value, index.v),
                 .step = step,
                 .index = done,
                 .sigma = sigma + done,
                 .times = times,
                 .key = scramble(stream),
                 .by_value = by_value};
        for (int64_t left = length; left > 0; left -= r.count) {
            double chunk[HLO_CHUNK];
            r.count = hlo_chunk_size(left);
            const bool real = hlo_type_is_float(r.type);
            if (real) hlo_lane_load_f64(r.type, r.at, r.step, r.count, chunk);
            if (real && move_all(&r, chunk))
                hlo_lane_convert(HLO_TYPE_F64, r.type, chunk, r.count, r.at, r.step);
            else
                move_each(&r);
            r.at += r.count * r.step;
            r.sigma += r.count;
            r.index += r.count;
        }
        hlo_dims_next(inner, value->dims, index.v);
    }
}
