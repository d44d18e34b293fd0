/* SPDX-License-Identifier: Apache-2.0 */
/* The generator of numpy.random.default_rng(seed), bit for bit. */
#ifndef HLO_RUNTIME_IO_RANDOM_H
#define HLO_RUNTIME_IO_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

enum { HLO_ZIGGURAT_LAYERS = 256 };

/* PCG64 (XSL-RR output of a 128-bit congruential state; M. O'Neill, "PCG", HMC-CS-2014-0905),
 * seeded through numpy's SeedSequence. */
typedef struct hlo_random {
    uint64_t state[2], increment[2]; /* high half, low half */
    bool has_half;                   /* a 32-bit draw uses half of a 64-bit one, low half first */
    uint32_t half;
    /* The ziggurat of the normal distribution (J. Doornik, "An improved ziggurat method", 2005,
     * after G. Marsaglia and W. Tsang): layer 0 is the base with the tail, layer 255 the widest
     * above it, layer 1 the top. */
    uint64_t accept[HLO_ZIGGURAT_LAYERS]; /* a 52-bit draw below this is inside the layer */
    double width[HLO_ZIGGURAT_LAYERS];    /* width of the layer, over 2^52 */
    double height[HLO_ZIGGURAT_LAYERS];   /* density at the layer's right edge */
} hlo_random;

void hlo_random_seed(hlo_random *random, uint64_t seed);
/* Draws like Generator.standard_normal(). */
double hlo_random_normal(hlo_random *random);
/* Draws like Generator.integers(0, bound), 2 <= bound (D. Lemire, "Fast random integer generation
 * in an interval", 2019). */
uint32_t hlo_random_below(hlo_random *random, uint32_t bound);

#endif
