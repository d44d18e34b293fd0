/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word that is closest to an unknown one. */
#ifndef HLO_SUGGEST_H
#define HLO_SUGGEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A search for the closest word. It owns nothing; `word` and candidates are borrowed. */
typedef struct hlo_suggestion {
    const char *word; /* borrowed */
    size_t length;
    const char *best;  /* the closest candidate; NULL while none is close enough */
    unsigned distance; /* edits between `word` and `best` */
    char text[96];
} hlo_suggestion;

/* Starts a search for a word close to `word`. */
hlo_suggestion hlo_suggest(const char *word);
/* Makes `candidate` the best one if it is closer than all candidates before it. */
void hlo_suggest_offer(hlo_suggestion *s, const char *candidate);
/* The text `; did you mean 'BEST'?`, or "" without a close candidate; borrowed from *s. */
const char *hlo_suggest_meant(hlo_suggestion *s);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
