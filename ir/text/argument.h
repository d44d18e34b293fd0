/* SPDX-License-Identifier: Apache-2.0 */
/* Parses option arguments: comma-separated lists and decimal numbers. */
#ifndef HLO_IR_TEXT_ARGUMENT_H
#define HLO_IR_TEXT_ARGUMENT_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Returns the next word of a comma-separated list, or NULL if *at is NULL. Call it repeatedly, with
 * *at set to the list before the first call. It stores the length of the word in *out_length, and
 * moves *at past the comma after the word, or sets it to NULL after the last word.
 *
 * The word is borrowed from the list and not NUL-terminated. The empty list contains one empty
 * word, and a list that ends with a comma ends with an empty word. */
static inline const char *hlo_next_word(const char **at, size_t *out_length) {
    const char *word = *at;
    if (!word) return NULL;
    *out_length = strcspn(word, ",");
    *at = word[*out_length] ? word + *out_length + 1 : NULL;
    return word;
}

/* Parses a non-negative decimal number: digits, optionally followed by a point and more digits.
 * Signs, exponents and other forms that strtod() accepts are not supported. Stores the number in
 * *out, and returns a pointer to the first character after it. If `text` does not begin with a
 * digit, returns NULL and does not change *out. */
static inline const char *hlo_read_decimal(const char *text, double *out) {
    static const char digits[] = "0123456789";
    const char *end = text + strspn(text, digits);
    if (end == text) return NULL;
    const size_t fraction = *end == '.' ? strspn(end + 1, digits) : 0;
    if (fraction) end += 1 + fraction;
    *out = strtod(text, NULL);
    return end;
}

#endif
