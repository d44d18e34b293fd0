/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the arguments of options: lists of words separated by commas, and decimal numbers. */
#ifndef HLO_ARGUMENT_H
#define HLO_ARGUMENT_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes one word off a list. Returns the word at *at, borrowed and not NUL-terminated, with its
 * length; moves *at past the word and its comma, or to NULL after the last word. NULL when *at is
 * NULL. A list that ends in a comma ends in an empty word; an empty list is one empty word. */
static inline const char *hlo_next_word(const char **at, size_t *out_length) {
    const char *word = *at;
    if (!word) return NULL;
    *out_length = strcspn(word, ",");
    *at = word[*out_length] ? word + *out_length + 1 : NULL;
    return word;
}

/* Reads decimal digits, optionally followed by a point and more digits; other forms that strtod()
 * accepts are not read. Returns the text after the number; NULL if `text` begins with no digit, and
 * *out is unchanged then. */
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
