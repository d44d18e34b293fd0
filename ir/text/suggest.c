/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean": finds the known word that is closest to an unknown one. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ir/text/suggest.h"

enum { LONGEST = 64 };

hlo_suggestion hlo_suggest(const char *word) {
    size_t length = strlen(word);
    unsigned most = length < 3 || length > LONGEST ? 0 : length < 6 ? 1 : length < 12 ? 2 : 3;
    return (hlo_suggestion){.word = word, .length = length, .distance = most + 1};
}

/* Computes the edit distance of two words: the number of letters to insert, drop, change or
 * exchange with a neighbor. A result of at least `limit` may be inexact. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length,
                         unsigned limit) {
    unsigned rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];
        unsigned least = row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && higher[j - 2] + 1 < best) best = higher[j - 2] + 1;
            row[j] = best;
            if (best < least) least = best;
        }
        if (least >= limit) return limit;
    }
    return rows[a_length % 3][b_length];
}

void hlo_suggest_offer(hlo_suggestion *s, const char *candidate) {
    size_t length = strlen(candidate);
    size_t apart = length > s->length ? length - s->length : s->length - length;
    if (length > LONGEST || apart >= s->distance) return;
    unsigned found = distance(s->word, s->length, candidate, length, s->distance);
    if (found >= s->distance) return;
    s->distance = found;
    s->best = candidate;
}

const char *hlo_suggest_meant(hlo_suggestion *s) {
    const bool same =
        s->best && strlen(s->best) == s->length && !memcmp(s->best, s->word, s->length);
    if (s->best && !same) snprintf(s->text, sizeof s->text, "; did you mean '%s'?", s->best);
    return s->text;
}
