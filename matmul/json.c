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

/* Maximum nesting of values: jansson reads them recursively, and accepts 2048. */
enum { MOST_NESTED = 100 };

typedef struct reader {
    const char *at, *end;
    bool starved;
} reader;

/* Passes one byte at a time to jansson, so that a failed allocation is attributed to its byte.
 * Passes no bytes after a failed allocation. */
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

/* A text to read, with an additional first item. NULL: out of memory. */
typedef struct filled {
    char *text, *key; /* NULL: no item is added */
    size_t size, at, added;
} filled;

/* jansson collects a token in a buffer of 16 bytes, which it doubles. If that allocation fails, it
 * drops a byte. next_byte() detects this except where that byte ends the token: then jansson reads
 * past the buffer, or aborts. Therefore the first item of an object or array is a string of spaces
 * that is at least as long as any token, and that does not end where the buffer grows. Any other
 * text needs only a few bytes, because jansson rejects its first token. */
static filled fill(const char *text, size_t size) {
    enum { BUFFER = 16, FEW = 8 };
    filled f = {.size = size, .at = skip_space(text, size, 0)};
    const char open = f.at < size ? text[f.at] : 0;
    size_t longest = 0, from = 0; /* the longest token */
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

json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved) {
    *out_starved = false;
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
    if (depth > MOST_NESTED) {
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
