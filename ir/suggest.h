/* Suggestions for words that are not known. */
#ifndef HLO_IR_SUGGEST_H
#define HLO_IR_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hlo_suggestion {
    const char *word; /* borrowed */
    size_t length;
    const char *best; /* the closest of those offered; NULL while none is close enough */
    unsigned distance;
} hlo_suggestion;

/* Begins to look for what `word` may have been meant to be. */
hlo_suggestion hlo_suggest(const char *word);
/* Keeps `candidate`, which is borrowed, if it is closer than all before it. */
void hlo_suggest_offer(hlo_suggestion *s, const char *candidate);

#endif
