/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/random.h"

#include <math.h>
#include <stddef.h>

__extension__ typedef unsigned __int128 u128;

/* --------------------------------------------------------------------------------- SeedSequence */

/* Entropy is spread over a pool of four words by a hash whose multiplier changes at every use
 * (numpy.random.SeedSequence, after M. O'Neill's randutils::seed_seq_fe). */
enum { POOL = 4, HASH_SHIFT = 16 };

typedef struct hash {
    uint32_t constant, multiplier;
} hash;

static uint32_t hash_word(hash *h, uint32_t word) {
    word ^= h->constant;
    h->constant *= h->multiplier;
    word *= h->constant;
    return word ^ (word >> HASH_SHIFT);
}

/* ---------------------------------------------------------------------------------------- PCG64 */

static u128 join(const uint64_t half[2]) {
    return (u128)half[0] << 64 | half[1];
}

static void split(u128 value, uint64_t out[2]) {
    out[0] = (uint64_t)(value >> 64);
    out[1] = (uint64_t)value;
}

static void step(hlo_random *r) {
    static const uint64_t multiplier[2] = {2549297995355413924u, 4865540595714422341u};
    split(join(r->state) * join(multiplier) + join(r->increment), r->state);
}

static uint64_t next64(hlo_random *r) {
    step(r);
    uint64_t folded = r->state[0] ^ r->state[1];
    unsigned turn = (unsigned)(r->state[0] >> 58);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t next32(hlo_random *r) {
    if (r->has_half) {
        r->has_half = false;
        return r->half;
    }
    uint64_t both = next64(r);
    r->has_half = true;
    r->half = (uint32_t)(both >> 32);
    return (uint32_t)both;
}

static double next_double(hlo_random *r) {
    return (double)(next64(r) >> 11) * 0x1p-53;
}

/* ------------------------------------------------------------------------------------- ziggurat */

/* Right edge of the base layer, and the area of each layer, including the tail. The area is 4
 * ulp below the exact one: numpy's tables were computed in doubles, and these must have the same
 * bits. */
static const double edge = 3.6541528853610088;
static const double area = 0.0049286732339746519;

/* Returns the density at x, each double operation of the recursion correctly rounded, independently
 * of libm, except for one value within 0.0003 ulp of a tie, where numpy's table has the other
 * neighbor. */
static double density(int layer, double x) {
    double f = (double)expl(-0.5 * x * x);
    return layer == 38 ? nextafter(f, 1) : f;
}

double hlo_random_normal(hlo_random *r) {
    for (;;) {
        uint64_t bits = next64(r);
        unsigned layer = bits & 0xff;
        bool negative = bits >> 8 & 1;
        uint64_t magnitude = bits >> 9 & 0xfffffffffffff;
        double x = (double)magnitude * r->width[layer];
        if (negative) x = -x;
        if (magnitude < r->accept[layer]) return x;
        if (layer == 0) {
            /* Draw from the tail, by Marsaglia's method of two exponentials. */
            for (;;) {
                x = -(1 / edge) * log1p(-next_double(r));
                double y = -log1p(-next_double(r));
                if (y + y > x * x) return (magnitude >> 8 & 1) ? -(edge + x) : edge + x;
            }
        }
        double low = r->height[layer], high = r->height[layer - 1];
        if ((high - low) * next_double(r) + low < exp(-0.5 * x * x)) return x;
    }
}

uint32_t hlo_random_below(hlo_random *r, uint32_t bound) {
    uint64_t product = (uint64_t)next32(r) * bound;
    if ((uint32_t)product < bound) {
        uint32_t threshold = -bound % bound;
        while ((uint32_t)product < threshold) product = (uint64_t)next32(r) * bound;
    }
    return (uint32_t)(product >> 32);
}

void hlo_random_seed(hlo_random *r, uint64_t seed) {
    uint32_t words[8];
    hash in = {0x43b0d7e5u, 0x931e8875u};
    uint32_t pool[POOL];
    for (int i = 0; i < POOL; i++) pool[i] = hash_word(&in, i < 2 ? (uint32_t)(seed >> 32 * i) : 0);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to) {
                const uint32_t mixed =
                    0xca01f9ddu * pool[to] - 0x4973f715u * hash_word(&in, pool[from]);
                pool[to] = mixed ^ (mixed >> HASH_SHIFT);
            }
    hash next = {0x8b51f9ddu, 0x58f38dedu};
    for (int i = 0; i < 8; i++) words[i] = hash_word(&next, pool[i % POOL]);
    uint64_t wide[4];
    for (int i = 0; i < 4; i++) wide[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
    split(join(&wide[2]) << 1 | 1, r->increment);
    split(0, r->state);
    step(r);
    split(join(r->state) + join(&wide[0]), r->state);
    step(r);
    r->has_half = false;
    r->half = 0;
    const double scale = 0x1p52;
    int last = HLO_ZIGGURAT_LAYERS - 1;
    double x = edge, f = density(last, x);
    r->accept[0] = (uint64_t)(x * f / area * scale);
    r->width[0] = area / f / scale;
    r->height[0] = 1;
    r->width[last] = x / scale;
    r->height[last] = f;
    for (int i = last - 1; i >= 1; i--) {
        double wider = x;
        x = sqrt(-2 * (double)logl(area / x + f));
        f = density(i, x);
        r->accept[i + 1] = (uint64_t)rint(x / wider * scale);
        r->width[i] = x / scale;
        r->height[i] = f;
    }
    r->accept[1] = 0;
}
