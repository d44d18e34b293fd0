/* SPDX-License-Identifier: Apache-2.0 */
/* Implements json.h. Source of the notation of dictionaries: MLIR's language reference, "Dictionary
 * Attribute" and the attributes that this section refers to. */
#include "matmul/json.h"
#include "ir/memory.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void hlo_json_watch(void) {
    errno = 0;
}

bool hlo_json_starved(void) {
    return errno == ENOMEM;
}

/* Maximum nesting of values. jansson reads nested values recursively and would accept 2048
 * levels. */
enum { MAX_NESTED = 100 };

typedef struct reader {
    const char *at, *end;
    bool starved;
} reader;

/* Passes one byte at a time to jansson, so that a failed allocation is attributed to the byte that
 * caused it. Passes no bytes after a failed allocation. */
static size_t next_byte(void *to, size_t capacity, void *user) {
    reader *r = user;
    r->starved |= hlo_json_starved();
    if (r->starved || r->at == r->end || !capacity) return 0;
    *(char *)to = *r->at++;
    return 1;
}

static size_t skip_space(const char *text, size_t size, size_t at) {
    while (at < size && strchr(" \t\r\n", text[at]) && text[at]) at++;
    return at;
}

/* A text to read, with an additional first item. `text` is NULL if memory ran out. */
typedef struct filled {
    char *text, *key; /* `key` is NULL if no item is added */
    size_t size, at, added;
} filled;

/* jansson collects a token in a buffer of 16 bytes, which it doubles. If this allocation fails,
 * jansson drops a byte. next_byte() detects the failure unless the byte ends the token: then
 * jansson reads past the buffer, or aborts. Therefore a first item is added to the object or array:
 * a string of spaces that is at least as long as any token and does not end where the buffer grows.
 * Any text other than an object or array needs only a few bytes, because jansson rejects its first
 * token. */
static filled fill(const char *text, size_t size) {
    enum { BUFFER = 16, FEW = 8 };
    filled f = {.size = size, .at = skip_space(text, size, 0)};
    const char open = f.at < size ? text[f.at] : 0;
    /* The largest distance between two quotes is an upper bound on the length of a token. */
    size_t longest = 0, from = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\' && ++i < size) continue;
        if (i + 1 < size && text[i] != '"') continue;
        if (i + 1 - from > longest) longest = i + 1 - from;
        from = i;
    }
    size_t token = longest;
    token += (token & (token - 1)) == 0;
    if (open != '{' && open != '[') {
        if (f.at + FEW < size) f.size = f.at + FEW;
    } else if (++f.at, token >= BUFFER) {
        const size_t next = skip_space(text, size, f.at);
        const bool empty = next < size && text[next] == (open == '{' ? '}' : ']');
        f.added = token + (open == '{' ? strlen(":0") : 0) + !empty;
    }
    f.text = hlo_malloc(f.size + f.added + 1);
    if (!f.text) return f;
    memcpy(f.text, text, f.added ? f.at : f.size);
    if (!f.added) return f;
    f.size += f.added;
    f.key = f.text + f.at;
    memset(f.key, ' ', token);
    f.key[0] = f.key[token - 1] = '"';
    memcpy(f.key + token, open == '{' ? ":0," : ",", f.added - token);
    memcpy(f.key + f.added, text + f.at, size - f.at);
    return f;
}

json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved) {
    *out_starved = false;
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size && depth <= MAX_NESTED; i++) {
        const char c = text[i];
        if (c == '\\' && quoted)
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            depth++;
        else if (!quoted && (c == ']' || c == '}') && depth)
            depth--;
    }
    if (depth > MAX_NESTED) {
        if (error) *error = (json_error_t){.line = 1, .column = 1, .text = "nested too deeply"};
        return NULL;
    }
    filled f = fill(text, size);
    *out_starved = !f.text;
    if (!f.text) return NULL;
    reader r = {.at = f.text, .end = f.text + f.size};
    hlo_json_watch();
    json_t *json = json_load_callback(next_byte, &r, flags, error);
    *out_starved = r.starved || hlo_json_starved();
    if (*out_starved) {
        json_decref(json);
        json = NULL;
    } else if (json && f.key) {
        *strchr(f.key + 1, '"') = 0;
        if (json_is_object(json))
            json_object_del(json, f.key + 1);
        else
            json_array_remove(json, 0);
    } else if (error && error->line == 1 && error->column > (int)f.at) {
        error->column -= (int)f.added;
    }
    hlo_free(f.text);
    return json;
}

json_t *hlo_json_text(hlo_arena *arena, const char *text) {
    bool starved;
    json_t *json = hlo_json_read(text, strlen(text), 0, NULL, &starved);
    if (starved) hlo_arena_exhausted(arena);
    return json;
}

json_t *hlo_json_config(const hlo_instruction *instr) {
    const char *config = hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG);
    return config ? hlo_json_text(instr->parent->module->arena, config) : NULL;
}

static const char *after_space(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

/* Moves *at past white space and `word`. If another token follows, returns false and does not
 * change *at. */
static bool take(const char **at, const char *word) {
    const char *from = after_space(*at);
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

/* Reads the text between quotes. After a `\`, a character stands for itself or for a C escape, and
 * two hexadecimal digits stand for a byte. The digits 00 are invalid, because texts contain no NUL.
 * The caller frees the result. Returns NULL if the text is invalid or memory ran out. */
static char *read_quoted(const char **at) {
    static const char escapes[] = "\"\"\\\\n\nt\t";
    char *text = hlo_malloc(strlen(*at) + 1), *to = text;
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
    hlo_free(text);
    return NULL;
}

/* Reads an integer of at most 18 digits, which fits in 64 bits. Overflow cannot be detected by
 * errno, because hlo_json_starved() uses errno. */
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
    *at = after_space(*at);
    if (take(at, "array<")) {
        /* Read a type, then a colon and the elements. */
        *at = after_space(*at);
        size_t length = name_length(*at);
        json_t *array = length ? json_array() : NULL;
        *at += length;
        for (bool more = array && take(at, ":"); more; more = take(at, ",")) {
            *at = after_space(*at);
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
            /* Read the bits of a double: `0x` and 16 digits, before `: f64`. */
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
        /* Read the type after a number, such as `: f64`. */
        size_t type = 1;
        if (number && take(at, ":")) {
            *at = after_space(*at);
            type = name_length(*at);
            *at += type;
        }
        if (number && type) return number;
        json_decref(number);
        return NULL;
    }
    char *text = read_quoted(at);
    json_t *string = text ? json_string(text) : NULL;
    hlo_free(text);
    return string;
}

static const char no_dictionary[] =
    "backend_config is not a dictionary of strings, flags, numbers and arrays of integers";

const char *hlo_mlir_read(const char *text, json_t **out, bool *out_starved) {
    hlo_json_watch();
    json_t *object = *out = json_object();
    const char *at = text, *fault = object && take(&at, "{") ? NULL : no_dictionary;
    if (!fault && !take(&at, "}")) {
        do {
            at = after_space(at);
            const size_t length = name_length(at); /* 0 if the key is quoted */
            char *key = *at == '"' ? read_quoted(&at) : length ? hlo_strndup(at, length) : NULL;
            at += length;
            if (!key || !take(&at, "="))
                fault = no_dictionary;
            else if (json_object_get(object, key))
                fault = "backend_config has a repeated attribute";
            json_t *value = fault ? NULL : read_value(&at);
            if (!fault && !value)
                fault = "an attribute in backend_config is not a string, flag, number or array of "
                        "integers";
            if (fault)
                json_decref(value);
            else if (json_object_set_new(object, key, value) != 0)
                fault = no_dictionary; /* out of memory, or invalid UTF-8 */
            hlo_free(key);
        } while (!fault && take(&at, ","));
        if (!fault && !take(&at, "}")) fault = no_dictionary;
    }
    if (!fault && *after_space(at)) fault = no_dictionary;
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
