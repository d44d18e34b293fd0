/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. */
#include "matmul/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hlo_json_watch(void) {
    errno = 0;
}

bool hlo_json_starved(void) {
    return errno == ENOMEM;
}

/* Nested values of a text: jansson reads them recursively, and accepts 2048. */
enum { MOST_NESTED = 100 };

typedef struct reader {
    const char *at, *end;
    bool starved;
} reader;

/* True if brackets outside strings nest deeper than MOST_NESTED. */
static bool is_too_deep(const char *text, size_t size) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size && depth <= MOST_NESTED; i++) {
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
    return depth > MOST_NESTED;
}

/* Hands out one byte at a time, so that what has become of the last one is known; nothing behind
 * one that there was no memory for. */
static size_t next_byte(void *to, size_t capacity, void *user) {
    reader *r = user;
    r->starved |= hlo_json_starved();
    if (r->starved || r->at == r->end || !capacity) return 0;
    *(char *)to = *r->at++;
    return 1;
}

/* Counts the bytes from one quote to the next where these are farthest apart: no token has more. */
static size_t longest_token(const char *text, size_t size) {
    size_t longest = 0, from = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\' && ++i < size) continue;
        if (i + 1 < size && text[i] != '"') continue;
        if (i + 1 - from > longest) longest = i + 1 - from;
        from = i;
    }
    return longest;
}

static size_t skip_space(const char *text, size_t size, size_t at) {
    while (at < size && strchr(" \t\r\n", text[at]) && text[at]) at++;
    return at;
}

/* A text as it is read: with an item more. NULL: out of memory. */
typedef struct filled {
    char *text, *key; /* NULL: none is added */
    size_t size, at, added;
} filled;

/* jansson collects a token in a buffer of 16 bytes, which it doubles. Without memory for that it
 * drops a byte: next_byte() notices, but not where that byte ends the token, which jansson then
 * looks for behind the buffer, or aborts. So the first item of an object or array is a string of
 * spaces, which no token is longer than, and whose end is no place where the buffer grows. Of any
 * other text, which jansson refuses at its first token, a few bytes will do. */
static filled fill(const char *text, size_t size) {
    enum { BUFFER = 16, FEW = 8 };
    filled f = {.size = size, .at = skip_space(text, size, 0)};
    const char open = f.at < size ? text[f.at] : 0;
    size_t token = longest_token(text, size);
    token += (token & (token - 1)) == 0;
    if (open != '{' && open != '[') {
        if (f.at + FEW < size) f.size = f.at + FEW;
    } else if (++f.at, token >= BUFFER) {
        const size_t next = skip_space(text, size, f.at);
        const bool empty = next < size && text[next] == (open == '{' ? '}' : ']');
        f.added = token + (open == '{' ? strlen(":0") : 0) + !empty;
    }
    f.text = malloc(f.size + f.added + 1);
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

static void take_out(json_t *json, filled *f) {
    *strchr(f->key + 1, '"') = 0;
    if (json_is_object(json))
        json_object_del(json, f->key + 1);
    else
        json_array_remove(json, 0);
}

json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved) {
    *out_starved = false;
    if (is_too_deep(text, size)) {
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
        take_out(json, &f);
    } else if (error && error->line == 1 && error->column > (int)f.at) {
        error->column -= (int)f.added;
    }
    free(f.text);
    return json;
}

json_t *hlo_json_text(hlo_arena *arena, const char *text) {
    bool starved;
    json_t *json = hlo_json_read(text, strlen(text), 0, NULL, &starved);
    if (starved) hlo_arena_exhausted(arena);
    return json;
}

json_t *hlo_json_config(const hlo_instr *instr) {
    const char *config = hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG);
    return config ? hlo_json_text(instr->parent->module->arena, config) : NULL;
}
