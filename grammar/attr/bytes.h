/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow, and text in quotes and braces. */
#ifndef HLO_GRAMMAR_ATTR_BYTES_H
#define HLO_GRAMMAR_ATTR_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/arena.h"

/* Bytes that grow, in the scratch arena; always NUL-terminated once something was put. */
typedef struct hlo_bytes {
    hlo_arena *arena;
    char *v;
    size_t size, capacity;
} hlo_bytes;

/* Appends bytes. */
void hlo_bytes_put(hlo_bytes *out, const void *bytes, size_t size);
/* Appends a NUL-terminated text. */
void hlo_bytes_text(hlo_bytes *out, const char *text);
/* Appends text formatted as by printf(). */
void hlo_bytes_format(hlo_bytes *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends a quoted string, with C's escapes. */
void hlo_bytes_quote(hlo_bytes *out, const char *bytes, size_t size);
/* Appends a number with enough digits to read the same value back. */
void hlo_bytes_double(hlo_bytes *out, double value, bool single);

/* Returns the bytes up to the brace that closes the first one; 0: there is none. */
size_t hlo_braced_size(const char *bytes, size_t size);
/* True for `{...}` with balanced braces and nothing behind it: HLO text has such a value without
 * quotes. */
bool hlo_is_braced(const char *bytes, size_t size);
/* Decodes a quoted string and moves *at behind it; NULL: it has no end. */
char *hlo_unquote(hlo_arena *arena, const char **at, const char *end, size_t *out_size);

#endif
