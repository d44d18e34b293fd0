/* SPDX-License-Identifier: Apache-2.0 */
/* Finds bytes that need no escape in quoted text. */
#ifndef HLO_IR_TEXT_PLAIN_H
#define HLO_IR_TEXT_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool hlo_is_plain(unsigned char c) {
    return (c >= 0x20) & (c < 0x7f) & (c != '"') & (c != '\'') & (c != '\\');
}

/* A word with `byte` in each of its bytes. */
#define HLO_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* In the result, the highest bit of some byte is set if and only if a byte of `word` is 0. The
 * lower bits of the result's bytes have no meaning. */
static inline uint64_t hlo_zeros(uint64_t word) {
    return (word - HLO_EACH(1)) & ~word;
}

/* True if hlo_is_plain() holds for all bytes; tests eight at a time. */
static inline bool hlo_all_plain(const char *bytes, size_t size) {
    uint64_t odd = 0, word;
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        odd |= word | (word + HLO_EACH(1)) | ((word - HLO_EACH(0x20)) & ~word);
        odd |= hlo_zeros(word ^ HLO_EACH('"')) | hlo_zeros(word ^ HLO_EACH('\'')) |
               hlo_zeros(word ^ HLO_EACH('\\'));
    }
    bool plain = !(odd & HLO_EACH(0x80));
    while (size--) plain &= hlo_is_plain((unsigned char)*bytes++);
    return plain;
}

#undef HLO_EACH

#endif
