/* SPDX-License-Identifier: Apache-2.0 */
/* Notations with a part for each dimension: dim_labels, and the words of a window. */
#include "grammar/attr/notation.h"

#include <string.h>

/* Reads a part of dim_labels: two letters and the digits from 0, each once, and `?` for unnamed
 * dimensions. */
static bool label_part(hlo_notation *f, const char *letters, const char *what,
                       size_t *out_spatial) {
    const char *from = f->at;
    uint64_t seen = 0;
    size_t largest = 0, spatial = 0;
    for (;
         f->at < f->end && (hlo_notation_in_name(*f->at) || *f->at == '?') && !strchr("_-", *f->at);
         f->at++) {
        const char *letter = strchr(letters, *f->at);
        bool digit = *f->at >= '0' && *f->at <= '9';
        if (*f->at == '?') continue;
        if (!digit && !letter)
            return hlo_notation_fail(f, f->at, 1,
                                     "expected a label %c, %c, digit or ? for the %s, found %c",
                                     letters[0], letters[1], what, *f->at);
        unsigned bit = digit ? (unsigned)(*f->at - '0') : 10 + (unsigned)(letter - letters);
        if (seen >> bit & 1)
            return hlo_notation_fail(f, f->at, 1, "the %s repeats dimension %c", what, *f->at);
        seen |= (uint64_t)1 << bit;
        if (digit && bit >= largest) largest = bit + 1;
        spatial += digit;
    }
    for (size_t i = 0; i < 2; i++)
        if (!(seen >> (10 + i) & 1))
            return hlo_notation_fail(f, from, (size_t)(f->at - from), "the %s lacks dimension %c",
                                     what, letters[i]);
    if (largest != spatial)
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "the %s has %zu spatial dimensions, so label %zu is out of range",
                                 what, spatial, largest - 1);
    const char *last = f->at;
    while (last > from && last[-1] == '?') last--;
    hlo_bytes_put(&f->out, from, (size_t)(last - from));
    *out_spatial = spatial;
    return true;
}

bool hlo_notation_labels(hlo_notation *f) {
    static const struct {
        const char *letters, *what, *behind;
    } parts[] = {{"bf", "input", "_"}, {"io", "kernel", "->"}, {"bf", "output", ""}};
    size_t spatial[3];
    for (size_t i = 0; i < 3; i++) {
        const char *from = f->at;
        if (!label_part(f, parts[i].letters, parts[i].what, &spatial[i])) return false;
        if (spatial[i] != spatial[0])
            return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                     "the %s has %zu spatial dimensions, but the input has %zu",
                                     parts[i].what, spatial[i], spatial[0]);
        size_t size = strlen(parts[i].behind);
        if ((size_t)(f->end - f->at) < size || memcmp(f->at, parts[i].behind, size) != 0)
            return hlo_notation_expect(f, parts[i].behind);
        f->at += size;
        hlo_notation_put(f, parts[i].behind);
    }
    return true;
}

/* Reads the parts of a window attribute, separated by `x`: a number or, for a pad, a pair joined by
 * `_`. A reversal is 1. */
bool hlo_notation_sizes(hlo_notation *f) {
    const bool pair = f->value.id == HLO_ATTR_PAD, reversal = f->value.id == HLO_ATTR_RHS_REVERSAL;
    hlo_notation_ints all = {0};
    do {
        int64_t number;
        for (int i = 0; i <= pair; i++) {
            const char *from = f->at;
            if (i && (f->at == f->end || *f->at != '_')) return hlo_notation_unexpected(f, "'_'");
            f->at += i;
            if (!hlo_notation_int(f, &number)) return false;
            if (number < 0 && !pair)
                return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                         "expected a non-negative number");
            hlo_notation_add(f, &all, reversal ? number == 1 : number);
        }
    } while (f->at < f->end && *f->at == 'x' && f->at++);
    f->value.u.ints = hlo_notation_keep(f, &all);
    return true;
}
