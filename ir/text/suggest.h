/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for misspelled words ("did you mean"). */
#ifndef HLO_IR_TEXT_SUGGEST_H
#define HLO_IR_TEXT_SUGGEST_H

#include <stddef.h>

/* A search for the known word that is closest to a given word. Create it with hlo_suggest(). It
 * does not own memory and need not be freed. The fields are private. */
typedef struct hlo_suggestion {
    const char *word;  /* The given word, borrowed. */
    size_t length;     /* The length of `word` in bytes. */
    const char *best;  /* The closest candidate, borrowed, or NULL if none is close enough. */
    unsigned distance; /* The edit distance of `word` and `best`. */
    char text[96];     /* The result of hlo_suggest_meant(). */
} hlo_suggestion;

/* Starts a search for a word that is close to `word`. `word` must remain valid until the search
 * ends. */
hlo_suggestion hlo_suggest(const char *word);

/* Adds a candidate. The search keeps the candidate if it is closer than all previous candidates.
 * `candidate` must remain valid until the search ends. */
void hlo_suggest_offer(hlo_suggestion *s, const char *candidate);

/* Returns the text `; did you mean 'BEST'?` for the closest candidate, or an empty string if no
 * candidate is close enough. The string is borrowed from *s. */
const char *hlo_suggest_meant(hlo_suggestion *s);

#endif
