/* "Did you mean": the known word that is closest to one that is not known. */
#ifndef HLO_SUGGEST_H
#define HLO_SUGGEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hlo_suggestion {
    const char *word; /* borrowed */
    size_t length;
    const char *best; /* the closest of those offered; NULL while none is close enough */
    unsigned distance;
    char text[96];
} hlo_suggestion;

/* Begins to look for what `word` may have been meant to be. */
hlo_suggestion hlo_suggest(const char *word);
/* Keeps `candidate`, which is borrowed, if it is closer than all before it. */
void hlo_suggest_offer(hlo_suggestion *s, const char *candidate);
/* `; did you mean 'BEST'?`, or nothing; lives as long as *s. */
const char *hlo_suggest_meant(hlo_suggestion *s);

#ifdef __cplusplus
}
#endif

#endif
