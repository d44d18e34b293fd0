/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the digest of a text. */
#ifndef HLO_TESTS_DIGESTS_DIGEST_H
#define HLO_TESTS_DIGESTS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, truncated to three bytes, which distinguish texts well enough. */
static inline uint32_t digest_of(const char *text, size_t size) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    return (uint32_t)(hash ^ hash >> 24 ^ hash >> 48) & 0xffffff;
}

#endif
