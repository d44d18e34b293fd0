/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the readers of notations: errors, tokens, lists. */
#include "grammar/attr/notation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/text/suggest.h"

bool hlo_notation_fail(hlo_notation *f, const char *at, size_t length, const char *format, ...) {
    if (f->why) return false;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->why = hlo_arena_copy(f->scratch, text, strlen(text) + 1);
    f->fault = (size_t)(at - f->from);
    f->fault_length = length;
    return false;
}

void hlo_notation_skip(hlo_notation *f) {
    while (f->at < f->end) {
        const char *end;
        if (strchr(" \t\r\n", *f->at) && *f->at) {
            f->at++;
        } else if (f->at[0] == '/' && f->at + 1 < f->end && f->at[1] == '*') {
            for (end = f->at + 2; end + 1 < f->end && (end[0] != '*' || end[1] != '/');) end++;
            if (end + 1 >= f->end) return;
            f->at = end + 2;
        } else if (f->at[0] == '/' && f->at + 1 < f->end && f->at[1] == '/') {
            end = memchr(f->at, '\n', (size_t)(f->end - f->at));
            f->at = end ? end : f->end;
        } else {
            return;
        }
    }
}

bool hlo_notation_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* Returns the length of the name that follows, or 0. */
static size_t name_size(hlo_notation *f) {
    size_t size = 0;
    hlo_notation_skip(f);
    if (f->at < f->end && strchr("0123456789-.", *f->at)) return 0;
    while (f->at + size < f->end && hlo_notation_in_name(f->at[size])) size++;
    return size;
}

bool hlo_notation_unexpected(hlo_notation *f, const char *wanted) {
    return hlo_notation_unknown(f, wanted, wanted);
}

bool hlo_notation_unknown(hlo_notation *f, const char *wanted, const char *words) {
    enum { MAX = 40 };
    hlo_notation_skip(f);
    size_t size = 0;
    while (f->at + size < f->end && hlo_notation_in_name(f->at[size])) size++;
    if (f->at == f->end)
        return hlo_notation_fail(f, f->at, 1, "unexpected end of the value, expected %s", wanted);
    if (!size) size = 1;
    const char *found = hlo_arena_format(f->scratch, "%.*s", (int)(size < MAX ? size : MAX), f->at);
    hlo_suggestion s = hlo_suggest(found);
    for (const char *from = words; (from = strchr(from, '\''));) {
        size_t length = strcspn(++from, "'");
        hlo_suggest_offer(&s, hlo_arena_format(f->scratch, "%.*s",
                                               (int)(length - (length && from[length - 1] == '=')),
                                               from));
        from += length + 1;
    }
    return hlo_notation_fail(f, f->at, size, "expected %s, found '%s'%s", wanted, found,
                             hlo_suggest_meant(&s));
}

bool hlo_notation_next(hlo_notation *f, char c) {
    hlo_notation_skip(f);
    return f->at < f->end && *f->at == c;
}

bool hlo_notation_take(hlo_notation *f, const char *mark) {
    size_t size = strlen(mark);
    hlo_notation_skip(f);
    if ((size_t)(f->end - f->at) < size || memcmp(f->at, mark, size) != 0) return false;
    f->at += size;
    return true;
}

bool hlo_notation_expect(hlo_notation *f, const char *mark) {
    char wanted[16];
    if (hlo_notation_take(f, mark)) return true;
    snprintf(wanted, sizeof wanted, "'%s'", mark);
    return hlo_notation_unexpected(f, wanted);
}

bool hlo_notation_take_word(hlo_notation *f, const char *word) {
    size_t size = name_size(f);
    bool ends = f->at + size == f->end || f->at[size] != '=';
    if (!ends || size != strlen(word) || memcmp(f->at, word, size) != 0) return false;
    f->at += size;
    return true;
}

bool hlo_notation_take_name(hlo_notation *f, const char *name) {
    size_t size = name_size(f);
    if (size != strlen(name) || memcmp(f->at, name, size) != 0 || f->at + size == f->end ||
        f->at[size] != '=')
        return false;
    f->at += size + 1;
    return true;
}

bool hlo_notation_expect_name(hlo_notation *f, const char *name) {
    char wanted[40];
    if (hlo_notation_take_name(f, name)) return true;
    snprintf(wanted, sizeof wanted, "'%s='", name);
    return hlo_notation_unexpected(f, wanted);
}

const char *hlo_notation_name(hlo_notation *f) {
    size_t size = name_size(f);
    if (!size || f->at + size == f->end || f->at[size] != '=') {
        hlo_notation_unexpected(f, "a name and '='");
        return NULL;
    }
    const char *name = hlo_arena_format(f->scratch, "%.*s", (int)size, f->at);
    f->at += size + 1;
    return name;
}

/* Returns the length of the number that follows: digits and, with `point`, a fraction and an
 * exponent. */
static size_t number_size(hlo_notation *f, bool point) {
    hlo_notation_skip(f);
    const char *at = f->at, *digits;
    if (at < f->end && *at == '-') at++;
    for (digits = at; at < f->end && *at >= '0' && *at <= '9';) at++;
    if (at == digits) return 0;
    if (!point) return (size_t)(at - f->at);
    if (at < f->end && *at == '.')
        for (at++; at < f->end && *at >= '0' && *at <= '9';) at++;
    const char *power = at;
    if (at + 1 < f->end && (*at == 'e' || *at == 'E')) {
        at += at[1] == '-' || at[1] == '+' ? 2 : 1;
        for (digits = at; at < f->end && *at >= '0' && *at <= '9';) at++;
        if (at == digits) at = power;
    }
    return (size_t)(at - f->at);
}

bool hlo_notation_int(hlo_notation *f, int64_t *out) {
    char text[24];
    size_t size = number_size(f, false);
    if (!size) return hlo_notation_unexpected(f, "an integer");
    const size_t kept = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, f->at, kept);
    text[kept] = '\0';
    errno = 0;
    *out = strtoll(text, NULL, 10);
    if (errno || size >= sizeof text)
        return hlo_notation_fail(f, f->at, size, "the number %s%s does not fit in 64 bits", text,
                                 size < sizeof text ? "" : "...");
    f->at += size;
    return true;
}

bool hlo_notation_number(hlo_notation *f, double *out) {
    size_t size = number_size(f, true);
    if (!size) return hlo_notation_unexpected(f, "a number");
    const char *text = hlo_arena_format(f->scratch, "%.*s", (int)size, f->at);
    *out = strtod(text, NULL);
    f->at += size;
    return true;
}

bool hlo_notation_bool(hlo_notation *f, bool *out) {
    *out = hlo_notation_take_word(f, "true");
    return *out || hlo_notation_take_word(f, "false") ||
           hlo_notation_unexpected(f, "'true' or 'false'");
}

bool hlo_notation_string(hlo_notation *f, const char **out, size_t *out_size) {
    if (!hlo_notation_next(f, '"') && !hlo_notation_next(f, '\''))
        return hlo_notation_unexpected(f, "a string");
    const char *from = f->at;
    *out = hlo_unquote(f->scratch, &f->at, f->end, out_size);
    return *out || hlo_notation_fail(f, from, 1, "unterminated string");
}

void *hlo_notation_grow(hlo_notation *f, void *list, size_t count, size_t size) {
    if (count & (count - 1)) return list;
    void *grown = hlo_arena_array(f->scratch, count ? 2 * count : 1, size);
    return count ? memcpy(grown, list, count * size) : grown;
}

void hlo_notation_add(hlo_notation *f, hlo_notation_ints *list, int64_t value) {
    list->v = hlo_notation_grow(f, list->v, list->count, sizeof *list->v);
    list->v[list->count++] = value;
}

/* Reports "expected ',' or CLOSE" if `close` does not follow. */
bool hlo_notation_expect_end(hlo_notation *f, const char *close) {
    char wanted[24];
    if (hlo_notation_take(f, close)) return true;
    snprintf(wanted, sizeof wanted, "',' or '%s'", close);
    return hlo_notation_unexpected(f, wanted);
}

bool hlo_notation_item(hlo_notation *f, char close, size_t count) {
    return count ? hlo_notation_take(f, ",") : !hlo_notation_next(f, close);
}

bool hlo_notation_int_list(hlo_notation *f, const char *close, size_t least,
                           hlo_notation_ints *out) {
    *out = (hlo_notation_ints){0};
    return hlo_notation_more_ints(f, close, least, out);
}

bool hlo_notation_more_ints(hlo_notation *f, const char *close, size_t least,
                            hlo_notation_ints *out) {
    if (!least && hlo_notation_take(f, close)) return true;
    do {
        int64_t value;
        if (!hlo_notation_int(f, &value)) return false;
        hlo_notation_add(f, out, value);
    } while (hlo_notation_take(f, ","));
    return hlo_notation_expect_end(f, close);
}

bool hlo_notation_made(hlo_notation *f, hlo_attr_id id, const hlo_parsed *value, size_t size) {
    hlo_attr *read = &hlo_intern_cache(f->module, value->text)->read;
    if (read->id != id)
        *read = (hlo_attr){id, {.parsed = hlo_arena_copy(f->module->arena, value, size)}};
    f->value.u = read->u;
    return true;
}

const hlo_ints *hlo_notation_keep(hlo_notation *f, const hlo_notation_ints *list) {
    return hlo_ints_new(f->module, (uint32_t)list->count, list->v);
}

void hlo_notation_put(hlo_notation *f, const char *text) {
    hlo_bytes_text(&f->out, text);
}

void hlo_notation_put_int(hlo_notation *f, int64_t value) {
    hlo_bytes_format(&f->out, "%lld", (long long)value);
}

void hlo_notation_put_index(hlo_notation *f, const char *before, const hlo_notation_ints *list) {
    hlo_notation_put(f, before);
    hlo_notation_put(f, "{");
    for (size_t i = 0; i < list->count; i++) {
        if (i) hlo_notation_put(f, ",");
        hlo_notation_put_int(f, list->v[i]);
    }
    hlo_notation_put(f, "}");
}

void hlo_notation_put_double(hlo_notation *f, double value) {
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    hlo_notation_put(f, text);
}

/* Takes the first `count` items off *rest and sorts them; equal items keep their order. */
static hlo_notation_link *sort_first(hlo_notation_link **rest, size_t count,
                                     hlo_notation_order *order) {
    hlo_notation_link *sorted, **end = &sorted;
    if (count < 2) {
        sorted = *rest;
        if (sorted) *rest = sorted->next, sorted->next = NULL;
        return sorted;
    }
    hlo_notation_link *a = sort_first(rest, count / 2, order),
                      *b = sort_first(rest, count - count / 2, order);
    while (a && b) {
        hlo_notation_link **least = order(b, a) < 0 ? &b : &a;
        *end = *least;
        end = &(*least)->next;
        *least = *end;
    }
    *end = a ? a : b;
    return sorted;
}

hlo_notation_link *hlo_notation_sort(hlo_notation_link *list, hlo_notation_order *order) {
    size_t count = 0;
    for (const hlo_notation_link *l = list; l; l = l->next) count++;
    return sort_first(&list, count, order);
}

int hlo_notation_compare_ints(const hlo_notation_ints *a, const hlo_notation_ints *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

bool hlo_notation_is_keyword(const char *name) {
    static const char *const words[] = {
        "inf",        "nan",           "true",          "false",      "manual",
        "replicated", "maximal",       "unknown",       "unreduced",  "ROOT",
        "ENTRY",      "HloModule",     "shard_as",      "shard_like", "last_tile_dim_replicate",
        "FileNames",  "FunctionNames", "FileLocations", "StackFrames"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (*name == *words[i] && strcmp(name, words[i]) == 0) return true;
    return false;
}
