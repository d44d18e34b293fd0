/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that append to growing byte arrays, and parse text in quotes and braces. */
#ifndef HLO_GRAMMAR_ATTR_BYTES_H
#define HLO_GRAMMAR_ATTR_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/arena.h"

/* A growing byte array in the scratch arena, NUL-terminated after the first append. */
typedef struct hlo_bytes {
    hlo_arena *arena;
    char *v;
    size_t size, capacity;
} hlo_bytes;

void hlo_bytes_put(hlo_bytes *out, const void *bytes, size_t size);
void hlo_bytes_text(hlo_bytes *out, const char *text);
void hlo_bytes_format(hlo_bytes *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends a quoted string, with C's escapes. */
void hlo_bytes_quote(hlo_bytes *out, const char *bytes, size_t size);
/* Appends a number with enough digits to read back the same value. */
void hlo_bytes_double(hlo_bytes *out, double value, bool single);

/* Returns the size of the `{...}` at the start of `bytes`; 0 if there is no brace or it is not
 * closed. */
size_t hlo_braced_size(const char *bytes, size_t size);
/* True for `{...}` with balanced braces, without NUL, and with nothing after it. HLO text does not
 * quote such a value. */
bool hlo_is_braced(const char *bytes, size_t size);
/* Decodes a quoted string and moves *at past it. Returns NULL if the string is not terminated. */
char *hlo_unquote(hlo_arena *arena, const char **at, const char *end, size_t *out_size);

#endif
