/* SPDX-License-Identifier: Apache-2.0 */
/* See mlir.h. Source of the notation: MLIR's language reference: "Dictionary Attribute" and the
 * attributes that it refers to. */
#include "matmul/mlir.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

/* Moves *at past white space and `word`. Returns false, with *at unchanged, if another token
 * follows. */
static bool take(const char **at, const char *word) {
    const char *from = skip_space(*at);
    if (strncmp(from, word, strlen(word)) != 0) return false;
    *at = from + strlen(word);
    return true;
}

static size_t name_length(const char *at) {
    size_t length = 0;
    if (!isalpha((unsigned char)*at) && *at != '_') return 0;
    while (isalnum((unsigned char)at[length]) || (at[length] && strchr("_$.", at[length])))
        length++;
    return length;
}

static int digit_of(char c) {
    const char digits[] = "0123456789abcdef", *found = strchr(digits, tolower((unsigned char)c));
    return c && found ? (int)(found - digits) : -1;
}

/* Reads the text between quotes. `\` precedes a character that means itself or its C escape, or two
 * hexadecimal digits other than 00, because texts contain no NUL. The caller frees the result.
 * NULL: the text is invalid, or memory ran out. */
static char *read_quoted(const char **at) {
    static const char escapes[] = "\"\"\\\\n\nt\t";
    char *text = malloc(strlen(*at) + 1), *to = text;
    const char *from = *at + 1;
    for (; text && *from && *from != '"'; from++) {
        const char *escape = strchr(escapes, from[1]);
        if (*from != '\\') {
            *to++ = *from;
        } else if (from[1] && escape && (escape - escapes) % 2 == 0) {
            *to++ = escape[1];
            from++;
        } else if (digit_of(from[1]) >= 0 && digit_of(from[2]) >= 0 &&
                   digit_of(from[1]) + digit_of(from[2]) > 0) {
            *to++ = (char)(16 * digit_of(from[1]) + digit_of(from[2]));
            from += 2;
        } else {
            break;
        }
    }
    if (text && *from == '"') {
        *to = '\0';
        *at = from + 1;
        return text;
    }
    free(text);
    return NULL;
}

/* Skips the type after a number, `: f64`; false if a `:` has no type after it. */
static bool take_type(const char **at) {
    if (!take(at, ":")) return true;
    *at = skip_space(*at);
    size_t length = name_length(*at);
    *at += length;
    return length > 0;
}

/* Reads an integer of at most 18 digits, which fits in 64 bits. errno cannot detect overflow,
 * because hlo_json_starved() uses it. */
static json_t *read_integer(const char **at) {
    const char *digits = *at + (**at == '-');
    char *end;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 18) return NULL;
    long long value = strtoll(*at, &end, 10);
    *at = end;
    return json_integer(value);
}

static json_t *read_value(const char **at) {
    *at = skip_space(*at);
    if (take(at, "array<")) {
        /* A type, then a colon and the elements. */
        *at = skip_space(*at);
        size_t length = name_length(*at);
        json_t *array = length ? json_array() : NULL;
        *at += length;
        for (bool more = array && take(at, ":"); more; more = take(at, ",")) {
            *at = skip_space(*at);
            json_t *element = read_integer(at);
            if (!element || json_array_append_new(array, element) != 0) {
                json_decref(array);
                return NULL;
            }
        }
        if (array && take(at, ">")) return array;
        json_decref(array);
        return NULL;
    }
    if (take(at, "true")) return json_true();
    if (take(at, "false")) return json_false();
    if (**at != '"') {
        if (strncmp(*at, "0x", 2) == 0) {
            /* `0x` and 16 digits, the bits of a double, before `: f64`. */
            char *end;
            uint64_t bits = strtoull(*at, &end, 16);
            if (end - *at != 18) return NULL;
            *at = end;
            double value;
            memcpy(&value, &bits, sizeof value);
            if (!take(at, ":") || !take(at, "f64")) return NULL;
            if (isnan(value)) return json_string("NaN");
            if (isinf(value)) return json_string(value < 0 ? "-Infinity" : "Infinity");
            return json_real(value);
        }
        size_t length = strspn(*at, "+-0123456789.eE");
        json_t *number;
        if (memchr(*at, '.', length)) {
            char *end;
            number = json_real(strtod(*at, &end));
            if (end != *at + length) {
                json_decref(number);
                return NULL;
            }
            *at = end;
        } else {
            number = read_integer(at);
        }
        if (number && take_type(at)) return number;
        json_decref(number);
        return NULL;
    }
    char *text = read_quoted(at);
    json_t *string = text ? json_string(text) : NULL;
    free(text);
    return string;
}

/* Reads a key, a name or a quoted string. The caller frees it. */
static char *read_key(const char **at) {
    *at = skip_space(*at);
    if (**at == '"') return read_quoted(at);
    size_t length = name_length(*at);
    char *name = length ? strndup(*at, length) : NULL;
    *at += length;
    return name;
}

static const char no_dictionary[] =
    "backend_config is not a dictionary of strings, flags, numbers and arrays of integers";

/* Reads `key = value`. Returns NULL, or the error. */
static const char *read_entry(const char **at, json_t *into) {
    char *key = read_key(at);
    const char *fault = NULL;
    if (!key || !take(at, "="))
        fault = no_dictionary;
    else if (json_object_get(into, key))
        fault = "backend_config has a repeated attribute";
    json_t *value = fault ? NULL : read_value(at);
    if (!fault && !value)
        fault = "an attribute in backend_config is not a string, flag, number or array of integers";
    if (fault)
        json_decref(value);
    else if (json_object_set_new(into, key, value) != 0)
        fault = no_dictionary; /* out of memory, or invalid UTF-8 */
    free(key);
    return fault;
}

const char *hlo_mlir_read(const char *text, json_t **out, bool *out_starved) {
    hlo_json_watch();
    json_t *object = *out = json_object();
    const char *at = text, *fault = object && take(&at, "{") ? NULL : no_dictionary;
    if (!fault && !take(&at, "}")) {
        do fault = read_entry(&at, object);
        while (!fault && take(&at, ","));
        if (!fault && !take(&at, "}")) fault = no_dictionary;
    }
    if (!fault && *skip_space(at)) fault = no_dictionary;
    *out_starved = hlo_json_starved();
    if (!fault && !*out_starved) return NULL;
    json_decref(object);
    *out = NULL;
    return fault;
}

char *hlo_mlir_number(hlo_arena *arena, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!isfinite(value))
        return hlo_arena_format(arena, "0x%016llX : f64", (unsigned long long)bits);
    char *text = hlo_arena_format(arena, "%e : f64", value);
    return strtod(text, NULL) == value ? text : hlo_arena_format(arena, "%.16e : f64", value);
}
