/* SPDX-License-Identifier: Apache-2.0 */
/* Draws random choices that depend only on a seed. */
#ifndef HLO_TESTS_RANDOM_MODULE_DRAW_H
#define HLO_TESTS_RANDOM_MODULE_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dice {
    uint64_t state;
} dice;

/* Returns the next number of the generator splitmix64 (Steele, Lea, Flood, 2014). */
static inline uint64_t dice_next(dice *d) {
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Returns a number from 0 to n - 1; n is at least 1. */
static inline int dice_below(dice *d, size_t n) {
    return (int)(dice_next(d) % n);
}

/* Returns true with a probability of `percent` percent. */
static inline bool dice_chance(dice *d, int percent) {
    return dice_below(d, 100) < percent;
}

/* Selects a random element of an array. */
#define DICE_PICK(d, list) ((list)[dice_below((d), sizeof(list) / sizeof *(list))])

#endif
