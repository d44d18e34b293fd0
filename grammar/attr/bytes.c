/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to growing byte arrays; parses text in quotes and braces. */
#include "grammar/attr/bytes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hlo_bytes_put(hlo_bytes *out, const void *bytes, size_t size) {
    if (out->capacity - out->size <= size) {
        size_t capacity = (out->size + size + 32) * 2;
        char *grown = hlo_arena_alloc(out->arena, capacity);
        if (out->size) memcpy(grown, out->v, out->size);
        out->v = grown;
        out->capacity = capacity;
    }
    if (size) memcpy(out->v + out->size, bytes, size);
    out->size += size;
    out->v[out->size] = '\0';
}

void hlo_bytes_text(hlo_bytes *out, const char *text) {
    hlo_bytes_put(out, text, strlen(text));
}

void hlo_bytes_format(hlo_bytes *out, const char *format, ...) {
    char text[128];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hlo_bytes_put(out, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

void hlo_bytes_quote(hlo_bytes *out, const char *bytes, size_t size) {
    static const char plain[] = "\n\r\t\"'\\", letter[] = "nrt\"'\\";
    hlo_bytes_put(out, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const char *known = c ? strchr(plain, c) : NULL;
        if (known)
            hlo_bytes_format(out, "\\%c", letter[known - plain]);
        else if (c >= 0x20 && c < 0x7f)
            hlo_bytes_put(out, &bytes[i], 1);
        else
            hlo_bytes_format(out, "\\%03o", c);
    }
    hlo_bytes_put(out, "\"", 1);
}

void hlo_bytes_double(hlo_bytes *out, double value, bool single) {
    char text[40];
    int most = single ? 9 : 17;
    for (int digits = 1; digits <= most; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if ((single ? (double)strtof(text, NULL) : strtod(text, NULL)) == value) break;
    }
    hlo_bytes_text(out, isnan(value) ? "nan" : text);
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes the escape after a backslash and returns the position after it. */
static const char *unescape(const char *from, const char *end, char *out) {
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    const char *letter = *from ? strchr(letters, *from) : NULL;
    unsigned value = 0;
    if (letter) {
        *out = values[letter - letters];
        return from + 1;
    }
    if (*from >= '0' && *from <= '7') {
        const char *stop = end - from > 3 ? from + 3 : end;
        while (from < stop && *from >= '0' && *from <= '7')
            value = value * 8 + (unsigned)(*from++ - '0');
    } else if (*from == 'x' && from + 1 < end && hex_digit(from[1]) >= 0) {
        for (from++; from < end && hex_digit(*from) >= 0; from++)
            value = value * 16 + (unsigned)hex_digit(*from);
    } else {
        value = (unsigned char)*from++;
    }
    *out = (char)value;
    return from;
}

char *hlo_unquote(hlo_arena *arena, const char **at, const char *end, size_t *out_size) {
    const char *quote = *at + 1;
    for (; quote < end && *quote != **at; quote++)
        if (*quote == '\\') quote++;
    if (quote >= end) return NULL;
    char *text = hlo_arena_alloc(arena, (size_t)(quote - *at)), *to = text;
    for (const char *from = *at + 1; from < quote;) {
        if (*from == '\\')
            from = unescape(from + 1, quote, to++);
        else
            *to++ = *from++;
    }
    *to = '\0';
    *out_size = (size_t)(to - text);
    *at = quote + 1;
    return text;
}

size_t hlo_braced_size(const char *bytes, size_t size) {
    size_t depth = 0;
    if (!size || *bytes != '{') return 0;
    for (size_t i = 0; i < size; i++) {
        char c = bytes[i];
        if (c == '"') {
            for (i++; i < size && bytes[i] != '"';) i += bytes[i] == '\\' ? 2 : 1;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

bool hlo_is_braced(const char *bytes, size_t size) {
    return size && !memchr(bytes, 0, size) && hlo_braced_size(bytes, size) == size;
}
