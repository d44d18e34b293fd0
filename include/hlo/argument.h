/* How what a user says is written: words with commas between them, and numbers. */
#ifndef HLO_ARGUMENT_H
#define HLO_ARGUMENT_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The word at *at, which is moved past it and its comma, or to NULL behind the last word; NULL when
 * *at is. A list that ends in a comma ends in an empty word, and an empty list is one. */
static inline const char *hlo_next_word(const char **at, size_t *out_length) {
    const char *word = *at;
    if (!word) return NULL;
    *out_length = strcspn(word, ",");
    *at = word[*out_length] ? word + *out_length + 1 : NULL;
    return word;
}

/* Reads decimal digits, perhaps with a point and more digits behind: none of the other forms that
 * strtod() takes. Returns what follows them; NULL: there are none. */
static inline const char *hlo_read_decimal(const char *text, double *out) {
    static const char digits[] = "0123456789";
    const char *end = text + strspn(text, digits);
    if (end == text) return NULL;
    const size_t fraction = *end == '.' ? strspn(end + 1, digits) : 0;
    if (fraction) end += 1 + fraction;
    *out = strtod(text, NULL);
    return end;
}

#ifdef __cplusplus
}
#endif

#endif
