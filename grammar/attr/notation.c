/* Reading values that have a notation of their own: tokens, and the values that are short. */
#include "grammar/attr/notation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/suggest.h"

/* --------------------------------------------------------------------------------------- errors */

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

static void skip(hlo_notation *f) {
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

static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* Bytes of the name that stands next; 0: none does. */
static size_t name_size(hlo_notation *f) {
    size_t size = 0;
    skip(f);
    if (f->at < f->end && strchr("0123456789-.", *f->at)) return 0;
    while (f->at + size < f->end && in_name(f->at[size])) size++;
    return size;
}

/* Of the words in quotes in `words` the one that `word` may have been meant to be. */
static hlo_suggestion suggest(hlo_notation *f, const char *word, const char *words) {
    hlo_suggestion s = hlo_suggest(word);
    for (const char *from = words; (from = strchr(from, '\''));) {
        size_t size = strcspn(++from, "'");
        hlo_suggest_offer(&s,
                          hlo_arena_format(f->scratch, "%.*s",
                                           (int)(size - (size && from[size - 1] == '=')), from));
        from += size + 1;
    }
    return s;
}

bool hlo_notation_unexpected(hlo_notation *f, const char *wanted) {
    return hlo_notation_unknown(f, wanted, wanted);
}

bool hlo_notation_unknown(hlo_notation *f, const char *wanted, const char *words) {
    enum { MOST = 40 };
    skip(f);
    size_t size = 0;
    while (f->at + size < f->end && in_name(f->at[size])) size++;
    if (f->at == f->end)
        return hlo_notation_fail(f, f->at, 1, "the value ends too early, expected %s", wanted);
    if (!size) size = 1;
    const char *found =
        hlo_arena_format(f->scratch, "%.*s", (int)(size < MOST ? size : MOST), f->at);
    hlo_suggestion s = suggest(f, found, words);
    return hlo_notation_fail(f, f->at, size, "expected %s, found '%s'%s", wanted, found,
                             hlo_suggest_meant(&s));
}

/* --------------------------------------------------------------------------------------- tokens */

bool hlo_notation_next(hlo_notation *f, char c) {
    skip(f);
    return f->at < f->end && *f->at == c;
}

bool hlo_notation_take(hlo_notation *f, const char *mark) {
    size_t size = strlen(mark);
    skip(f);
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

/* Bytes of the number that stands next: digits, and, with `point`, a fraction and an exponent. */
static size_t number_size(hlo_notation *f, bool point) {
    skip(f);
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

/* With a point or an exponent, or an integer. */
static bool take_number(hlo_notation *f, double *out) {
    size_t size = number_size(f, true);
    if (!size) return hlo_notation_unexpected(f, "a number");
    const char *text = hlo_arena_format(f->scratch, "%.*s", (int)size, f->at);
    *out = strtod(text, NULL);
    f->at += size;
    return true;
}

static bool take_bool(hlo_notation *f, bool *out) {
    *out = hlo_notation_take_word(f, "true");
    return *out || hlo_notation_take_word(f, "false") ||
           hlo_notation_unexpected(f, "'true' or 'false'");
}

bool hlo_notation_string(hlo_notation *f, const char **out, size_t *out_size) {
    if (!hlo_notation_next(f, '"') && !hlo_notation_next(f, '\''))
        return hlo_notation_unexpected(f, "a string");
    const char *from = f->at;
    *out = hlo_unquote(f->scratch, &f->at, f->end, out_size);
    return *out || hlo_notation_fail(f, from, 1, "this string has no end");
}

/* ---------------------------------------------------------------------------------------- lists */

static void add(hlo_notation *f, hlo_notation_ints *list, size_t *capacity, int64_t value) {
    if (list->count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 8;
        int64_t *grown = hlo_arena_array(f->scratch, *capacity, sizeof *grown);
        if (list->count) memcpy(grown, list->v, list->count * sizeof *grown);
        list->v = grown;
    }
    list->v[list->count++] = value;
}

/* `expected ',' or CLOSE`. */
bool hlo_notation_expect_end(hlo_notation *f, const char *close) {
    char wanted[24];
    if (hlo_notation_take(f, close)) return true;
    snprintf(wanted, sizeof wanted, "',' or '%s'", close);
    return hlo_notation_unexpected(f, wanted);
}

bool hlo_notation_int_list(hlo_notation *f, const char *close, size_t least,
                           hlo_notation_ints *out) {
    size_t capacity = 0;
    *out = (hlo_notation_ints){0};
    if (!least && hlo_notation_take(f, close)) return true;
    do {
        int64_t value;
        if (!hlo_notation_int(f, &value)) return false;
        add(f, out, &capacity, value);
    } while (hlo_notation_take(f, ","));
    return hlo_notation_expect_end(f, close);
}

void hlo_notation_put(hlo_notation *f, const char *text) {
    hlo_bytes_text(&f->out, text);
}

void hlo_notation_put_int(hlo_notation *f, int64_t value) {
    hlo_bytes_format(&f->out, "%lld", (long long)value);
}

void hlo_notation_put_ints(hlo_notation *f, const int64_t *v, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i) hlo_notation_put(f, ",");
        hlo_notation_put_int(f, v[i]);
    }
}

void hlo_notation_put_index(hlo_notation *f, const char *before, const hlo_notation_ints *list) {
    hlo_notation_put(f, before);
    hlo_notation_put(f, "{");
    hlo_notation_put_ints(f, list->v, list->count);
    hlo_notation_put(f, "}");
}

/* As many digits as XLA prints, and more where the value needs them. */
static void put_double(hlo_notation *f, double value) {
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    hlo_notation_put(f, text);
}

/* `{{0,1},{2}}`; `pair`: each of two. */
static bool int_lists(hlo_notation *f, bool pair) {
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    if (!hlo_notation_next(f, '}')) {
        bool more = false;
        do {
            hlo_notation_ints list;
            if (!hlo_notation_expect(f, "{")) return false;
            const char *from = f->at - 1;
            if (!hlo_notation_int_list(f, "}", 0, &list)) return false;
            if (pair && list.count != 2)
                return hlo_notation_fail(f, from, 1, "expected a pair, found %zu number%s",
                                         list.count, list.count == 1 ? "" : "s");
            hlo_notation_put(f, more ? ",{" : "{");
            hlo_notation_put_ints(f, list.v, list.count);
            hlo_notation_put(f, "}");
            more = true;
        } while (hlo_notation_take(f, ","));
    }
    hlo_notation_put(f, "}");
    return hlo_notation_expect_end(f, "}");
}

bool hlo_notation_pairs(hlo_notation *f) {
    return int_lists(f, true);
}

bool hlo_notation_listed(hlo_notation *f) {
    return int_lists(f, false);
}

/* Nothing when there is none. */
bool hlo_notation_size_lists(hlo_notation *f) {
    if (!int_lists(f, false)) return false;
    if (strcmp(f->out.v, "{}") == 0) f->out.size = 0;
    return true;
}

/* `{true,false}`; *out_any: one of them is true. */
static bool bools(hlo_notation *f, bool *out_any) {
    *out_any = false;
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    for (bool more = false; more || !hlo_notation_next(f, '}'); more = true) {
        bool value;
        if (more && !hlo_notation_take(f, ",")) break;
        if (!take_bool(f, &value)) return false;
        if (more) hlo_notation_put(f, ",");
        hlo_notation_put(f, value ? "true" : "false");
        *out_any |= value;
    }
    hlo_notation_put(f, "}");
    return hlo_notation_expect_end(f, "}");
}

bool hlo_notation_replication(hlo_notation *f) {
    bool any;
    return bools(f, &any);
}

/* The list, or one word for a list of it; nothing when that is `{false}`. */
bool hlo_notation_propagation(hlo_notation *f) {
    bool value;
    if (hlo_notation_next(f, '{')) {
        if (!bools(f, &value)) return false;
    } else if (hlo_notation_next(f, 't') || hlo_notation_next(f, 'f')) {
        if (!take_bool(f, &value)) return false;
        hlo_notation_put(f, value ? "{true}" : "{false}");
    } else {
        return hlo_notation_unexpected(f, "'{', 'true' or 'false'");
    }
    if (strcmp(f->out.v, "{}") == 0 || strcmp(f->out.v, "{false}") == 0) f->out.size = 0;
    return true;
}

/* ---------------------------------------------------------------------------------------- words */

/* `{high,default}`, in either case; nothing when all are the default. */
bool hlo_notation_precision(hlo_notation *f) {
    static const char *const words[][2] = {
        {"default", "DEFAULT"}, {"high", "HIGH"}, {"highest", "HIGHEST"}};
    bool other = false;
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    for (bool more = false; more || !hlo_notation_next(f, '}'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        size_t w = 0;
        while (w < 3 && !hlo_notation_take_word(f, words[w][0]) &&
               !hlo_notation_take_word(f, words[w][1]))
            w++;
        if (w == 3) return hlo_notation_unexpected(f, "'default', 'high' or 'highest'");
        if (more) hlo_notation_put(f, ",");
        hlo_notation_put(f, words[w][0]);
        other |= w > 0;
    }
    hlo_notation_put(f, "}");
    if (!other) f->out.size = 0;
    return hlo_notation_expect_end(f, "}");
}

enum { MOST_LABELS = 64 };

/* One of the three parts of dim_labels: two letters and the numbers from 0 on, each once, with `?`
 * for dimensions that have no name. */
static bool label_part(hlo_notation *f, const char *letters, const char *what,
                       size_t *out_spatial) {
    const char *from = f->at;
    uint64_t seen = 0;
    size_t largest = 0, spatial = 0;
    for (; f->at < f->end && (in_name(*f->at) || *f->at == '?') && !strchr("_-", *f->at); f->at++) {
        const char *letter = strchr(letters, *f->at);
        bool digit = *f->at >= '0' && *f->at <= '9';
        if (*f->at == '?') continue;
        if (!digit && !letter)
            return hlo_notation_fail(f, f->at, 1,
                                     "the labels of the %s are %c, %c, digits and ?, not %c", what,
                                     letters[0], letters[1], *f->at);
        unsigned bit = digit ? (unsigned)(*f->at - '0') : 10 + (unsigned)(letter - letters);
        if (seen >> bit & 1)
            return hlo_notation_fail(f, f->at, 1, "the %s has two dimensions %c", what, *f->at);
        seen |= (uint64_t)1 << bit;
        if (digit && bit >= largest) largest = bit + 1;
        spatial += digit;
    }
    for (size_t i = 0; i < 2; i++)
        if (!(seen >> (10 + i) & 1))
            return hlo_notation_fail(f, from, (size_t)(f->at - from), "the %s has no dimension %c",
                                     what, letters[i]);
    if (largest != spatial)
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "the %s has %zu spatial dimensions, but one is called %zu", what,
                                 spatial, largest - 1);
    const char *last = f->at;
    while (last > from && last[-1] == '?') last--;
    hlo_bytes_put(&f->out, from, (size_t)(last - from));
    *out_spatial = spatial;
    return true;
}

bool hlo_notation_labels(hlo_notation *f) {
    static const struct {
        const char *letters, *what, *behind;
    } parts[] = {{"bf", "input", "_"}, {"io", "kernel", "->"}, {"bf", "output", ""}};
    size_t spatial[3];
    for (size_t i = 0; i < 3; i++) {
        const char *from = f->at;
        if (!label_part(f, parts[i].letters, parts[i].what, &spatial[i])) return false;
        if (spatial[i] != spatial[0])
            return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                     "the %s has %zu spatial dimensions, the input %zu",
                                     parts[i].what, spatial[i], spatial[0]);
        size_t size = strlen(parts[i].behind);
        if ((size_t)(f->end - f->at) < size || memcmp(f->at, parts[i].behind, size) != 0)
            return hlo_notation_expect(f, parts[i].behind);
        f->at += size;
        hlo_notation_put(f, parts[i].behind);
    }
    return true;
}

/* -------------------------------------------------------------------------------------- windows */

/* The parts of a word, with `x` between: a number, or a pair with `_` between. */
static bool window_word(hlo_notation *f, bool pair, bool negative) {
    bool more = false;
    do {
        int64_t number;
        for (int i = 0; i <= pair; i++) {
            const char *from = f->at;
            if (i && (f->at == f->end || *f->at != '_')) return hlo_notation_unexpected(f, "'_'");
            f->at += i;
            if (!hlo_notation_int(f, &number)) return false;
            if (number < 0 && !negative)
                return hlo_notation_fail(f, from, (size_t)(f->at - from), "this is negative");
            hlo_notation_put(f, i ? "_" : more ? "x" : "");
            hlo_notation_put_int(f, number);
        }
        more = true;
    } while (f->at < f->end && *f->at == 'x' && f->at++);
    return true;
}

bool hlo_notation_sizes(hlo_notation *f) {
    return window_word(f, false, false);
}

bool hlo_notation_pads(hlo_notation *f) {
    return window_word(f, true, true);
}

/* Every number but 1 is 0. */
bool hlo_notation_reversals(hlo_notation *f) {
    if (!window_word(f, false, false)) return false;
    char *to = f->out.v;
    for (const char *from = f->out.v; *from; from++) {
        if (*from == 'x') {
            *to++ = 'x';
            continue;
        }
        const char *number = from + strspn(from, "0");
        *to++ = *number == '1' && strchr("x", number[1]) ? '1' : '0';
        from += strcspn(from, "x") - 1;
    }
    *to = '\0';
    f->out.size = (size_t)(to - f->out.v);
    return true;
}

/* ----------------------------------------------------------------------------- names and values */

/* Nothing when there is no value besides the index. */
bool hlo_notation_statistics(hlo_notation *f) {
    int64_t index;
    bool any = false;
    if (!hlo_notation_expect(f, "{")) return false;
    if (hlo_notation_take(f, "}")) return true;
    if (!hlo_notation_expect_name(f, "visualizing_index") || !hlo_notation_int(f, &index))
        return false;
    hlo_notation_put(f, "{visualizing_index=");
    hlo_notation_put_int(f, index);
    while (hlo_notation_take(f, ",")) {
        const char *name = hlo_notation_name(f);
        double value = 0;
        if (!name || !take_number(f, &value)) return false;
        hlo_notation_put(f, ",");
        hlo_notation_put(f, name);
        hlo_notation_put(f, "=");
        put_double(f, value);
        any = true;
    }
    hlo_notation_put(f, "}");
    if (!any) f->out.size = 0;
    return hlo_notation_expect_end(f, "}");
}

/* `{atol=0.5,rtol=1e-05,ulps=2}`, in any order; what is not given is 0. */
static bool tolerance(hlo_notation *f) {
    static const char *const names[] = {"atol", "rtol", "ulps"};
    double value[3] = {0};
    if (!hlo_notation_expect(f, "{")) return false;
    for (bool more = false; more || !hlo_notation_next(f, '}'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        size_t n = 0;
        while (n < 3 && !hlo_notation_take_name(f, names[n])) n++;
        if (n == 3) return hlo_notation_unexpected(f, "'atol=', 'rtol=' or 'ulps='");
        skip(f);
        const char *from = f->at;
        if (!take_number(f, &value[n])) return false;
        if (value[n] < 0)
            return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                     "a tolerance is not negative");
    }
    if (!hlo_notation_expect_end(f, "}")) return false;
    hlo_notation_put(f, "{tolerance={atol=");
    put_double(f, value[0]);
    hlo_notation_put(f, ",rtol=");
    put_double(f, value[1]);
    hlo_bytes_format(&f->out, ",ulps=%.0f}}", value[2] < 9e15 ? (double)(int64_t)value[2] : 9e15);
    return true;
}

bool hlo_notation_accuracy(hlo_notation *f) {
    if (!hlo_notation_expect(f, "{")) return false;
    if (hlo_notation_take_name(f, "tolerance")) {
        if (!tolerance(f)) return false;
    } else if (!hlo_notation_take_name(f, "mode")) {
        return hlo_notation_unexpected(f, "'mode=' or 'tolerance='");
    } else if (hlo_notation_take_word(f, "highest") || hlo_notation_take_word(f, "HIGHEST")) {
        hlo_notation_put(f, "{mode=highest}");
    } else if (!hlo_notation_take_word(f, "default") && !hlo_notation_take_word(f, "DEFAULT")) {
        return hlo_notation_unexpected(f, "'default' or 'highest'");
    }
    return hlo_notation_expect(f, "}");
}

/* `{sparsity=2x4 dimension=0 stride=1}` */
static bool sparse_operand(hlo_notation *f, int64_t out[4]) {
    bool given[3] = {false};
    static const char *const names[] = {"sparsity", "dimension", "stride"};
    memset(out, 0, 4 * sizeof *out);
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        size_t n = 0;
        skip(f);
        const char *from = f->at;
        while (n < 3 && !hlo_notation_take_name(f, names[n])) n++;
        if (n == 3)
            return hlo_notation_unexpected(f, "'sparsity=', 'dimension=', 'stride=' or '}'");
        if (given[n])
            return hlo_notation_fail(f, from, strlen(names[n]), "'%s' is given twice", names[n]);
        given[n] = true;
        if (!hlo_notation_int(f, n ? &out[n + 1] : &out[0])) return false;
        if (n) continue;
        if (f->at == f->end || *f->at != 'x') return hlo_notation_unexpected(f, "'x'");
        f->at++;
        if (!hlo_notation_int(f, &out[1])) return false;
    }
    return true;
}

bool hlo_notation_sparsity(hlo_notation *f) {
    static const char *const names[] = {"lhs", "rhs"};
    int64_t sides[2][4];
    bool given[2] = {false};
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        skip(f);
        const char *from = f->at;
        size_t n = hlo_notation_take_name(f, "lhs") ? 0 : hlo_notation_take_name(f, "rhs") ? 1 : 2;
        if (n == 2) return hlo_notation_unexpected(f, "'lhs=', 'rhs=' or '}'");
        if (given[n]) return hlo_notation_fail(f, from, 3, "'%s' is given twice", names[n]);
        given[n] = true;
        if (!sparse_operand(f, sides[n])) return false;
    }
    for (size_t n = 0; n < 2; n++)
        if (given[n])
            hlo_bytes_format(&f->out, "%s%s={sparsity=%lldx%lld dimension=%lld stride=%lld}",
                             f->out.size ? " " : "{", names[n], (long long)sides[n][0],
                             (long long)sides[n][1], (long long)sides[n][2],
                             (long long)sides[n][3]);
    if (f->out.size) hlo_notation_put(f, "}");
    return true;
}

/* -------------------------------------------------------------------------------------- origins */

bool hlo_notation_origin_array(hlo_notation *f, hlo_notation_array *out) {
    *out = (hlo_notation_array){.name = NULL};
    if (hlo_notation_next(f, '}')) return hlo_notation_expect(f, "}");
    if (!hlo_notation_string(f, &out->name, &out->size)) return false;
    if (hlo_notation_take(f, "{") && !hlo_notation_int_list(f, "}", 0, &out->index)) return false;
    return hlo_notation_expect(f, "}");
}

void hlo_notation_put_array(hlo_notation *f, const hlo_notation_array *array) {
    hlo_notation_put(f, "{");
    if (array->name) hlo_bytes_quote(&f->out, array->name, array->size);
    if (array->index.count) hlo_notation_put_index(f, " ", &array->index);
    hlo_notation_put(f, "}");
}

/* Tuples may be nested without end, so none waits for those within it. */
static bool origin_tree(hlo_notation *f) {
    size_t open = 0;
    do {
        if (hlo_notation_take(f, "(")) {
            hlo_notation_put(f, "(");
            open++;
            if (!hlo_notation_next(f, ')')) continue;
        } else {
            hlo_notation_array array;
            if (!hlo_notation_take(f, "{")) return hlo_notation_unexpected(f, "'{' or '('");
            if (!hlo_notation_origin_array(f, &array)) return false;
            hlo_notation_put_array(f, &array);
        }
        while (open) {
            const bool more = hlo_notation_take(f, ",");
            if (more && !hlo_notation_next(f, ')')) {
                hlo_notation_put(f, ", ");
                break;
            }
            if (!(more ? hlo_notation_expect(f, ")") : hlo_notation_expect_end(f, ")")))
                return false;
            hlo_notation_put(f, ")");
            open--;
        }
    } while (open);
    return true;
}

bool hlo_notation_origin(hlo_notation *f) {
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    if (hlo_notation_take(f, "[")) {
        if (!hlo_notation_take_word(f, "synthetic_call"))
            return hlo_notation_unexpected(f, "'synthetic_call'");
        if (!hlo_notation_expect(f, "]")) return false;
        hlo_notation_put(f, "[synthetic_call]");
    } else if (hlo_notation_next(f, '}')) {
        hlo_notation_put(f, "()");
    } else if (!origin_tree(f)) {
        return false;
    }
    hlo_notation_put(f, "}");
    return hlo_notation_expect(f, "}");
}

/* ------------------------------------------------------------------------------------- metadata */

bool hlo_notation_profile_types(hlo_notation *f) {
    enum { LAST = 3 };
    hlo_notation_ints list;
    if (!hlo_notation_expect(f, "{")) return false;
    const char *from = f->at;
    if (!hlo_notation_int_list(f, "}", 0, &list)) return false;
    for (size_t i = 0; i < list.count; i++)
        if (list.v[i] < 0 || list.v[i] > LAST)
            return hlo_notation_fail(f, from, 1, "there is no profile type %lld",
                                     (long long)list.v[i]);
    if (list.count) hlo_notation_put_index(f, "", &list);
    return true;
}

enum {
    FIRST_FIELD = HLO_ATTR_OP_TYPE,
    LAST_FIELD = HLO_ATTR_STACK_FRAME_ID,
    FIELDS = LAST_FIELD - FIRST_FIELD + 1
};

/* The value of one field as text; empty: it says nothing. */
static bool metadata_value(hlo_notation *f, hlo_attr_id id, const char **out) {
    hlo_bytes outer = f->out;
    f->out = (hlo_bytes){.arena = f->scratch};
    const char *text;
    size_t size;
    int64_t number;
    bool read = false;
    switch (hlo_attrs_info[id].kind) {
    case HLO_KIND_STRING:
        read = hlo_notation_string(f, &text, &size);
        if (read && size) hlo_bytes_quote(&f->out, text, size);
        break;
    case HLO_KIND_INT:
        read = hlo_notation_int(f, &number);
        if (read && number) hlo_notation_put_int(f, number);
        break;
    default: read = hlo_notation_profile_types(f);
    }
    *out = f->out.size ? f->out.v : "";
    f->out = outer;
    return read;
}

static bool unknown_field(hlo_notation *f, const char *at, const char *name) {
    hlo_suggestion s = hlo_suggest(name);
    for (int id = FIRST_FIELD; id <= LAST_FIELD; id++)
        hlo_suggest_offer(&s, hlo_attrs_info[id].name);
    return hlo_notation_fail(f, at, strlen(name), "metadata has no attribute '%s'%s", name,
                             hlo_suggest_meant(&s));
}

static bool metadata(hlo_notation *f) {
    const char *values[FIELDS] = {NULL};
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        skip(f);
        const char *from = f->at, *name = hlo_notation_name(f);
        if (!name) return false;
        size_t size = strlen(name);
        hlo_attr_id id = hlo_attr_find(name, size);
        if ((int)id < FIRST_FIELD || (int)id > LAST_FIELD) return unknown_field(f, from, name);
        if (values[id - FIRST_FIELD])
            return hlo_notation_fail(f, from, size, "'%s' is given twice", name);
        if (!metadata_value(f, id, &values[id - FIRST_FIELD])) return false;
        hlo_notation_take(f, ",");
    }
    hlo_notation_put(f, "{");
    bool any = false;
    for (int i = 0; i < FIELDS; i++) {
        if (!values[i] || !*values[i]) continue;
        hlo_notation_put(f, any ? " " : "");
        hlo_notation_put(f, hlo_attrs_info[FIRST_FIELD + i].name);
        hlo_notation_put(f, "=");
        hlo_notation_put(f, values[i]);
        any = true;
    }
    hlo_notation_put(f, "}");
    return true;
}

bool hlo_notation_metadata(hlo_notation *f, bool list) {
    hlo_notation ahead = *f;
    bool many = hlo_notation_take(&ahead, "{") && hlo_notation_next(&ahead, '{');
    hlo_bytes outer = f->out;
    f->out = (hlo_bytes){.arena = f->scratch};
    size_t count = 0;
    bool read = !many || hlo_notation_expect(f, "{");
    while (read) {
        if (count++) hlo_notation_put(f, ", ");
        read = metadata(f);
        if (!many || !read || !hlo_notation_take(f, ",")) break;
    }
    if (read && many) read = hlo_notation_expect_end(f, "}");
    const char *text = f->out.size ? f->out.v : "";
    f->out = outer;
    bool braces = list || count > 1;
    hlo_notation_put(f, braces ? "{" : "");
    hlo_notation_put(f, text);
    hlo_notation_put(f, braces ? "}" : "");
    return read;
}

/* --------------------------------------------------------------------------------------- others */

/* A string whose content is a braced text is that text. */
bool hlo_notation_config(hlo_notation *f) {
    const char *text = f->from;
    size_t size = (size_t)(f->end - f->from);
    if (*text == '{') {
        f->at = f->end;
    } else if (*text != '"' && *text != '\'') {
        return hlo_notation_unexpected(f, "a string or '{'");
    } else if (!hlo_notation_string(f, &text, &size)) {
        return false;
    }
    if (hlo_is_braced(text, size))
        hlo_bytes_put(&f->out, text, size);
    else if (size)
        hlo_bytes_quote(&f->out, text, size);
    return true;
}

bool hlo_notation_domain(hlo_notation *f) {
    static const char *const names[] = {"entry", "exit"};
    hlo_bytes values[2] = {{0}};
    bool kind = false;
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        skip(f);
        const char *from = f->at, *text;
        size_t size, n = hlo_notation_take_name(f, "entry")  ? 0
                         : hlo_notation_take_name(f, "exit") ? 1
                                                             : 2;
        if (n < 2) {
            if (values[n].size)
                return hlo_notation_fail(f, from, strlen(names[n]), "'%s' is given twice",
                                         names[n]);
            f->out = (hlo_bytes){.arena = f->scratch};
            if (!hlo_notation_sharding(f)) return false;
            values[n] = f->out;
        } else if (kind || !hlo_notation_take_name(f, "kind")) {
            return hlo_notation_unexpected(f, "'kind=', 'entry=' or 'exit='");
        } else {
            skip(f);
            from = f->at;
            if (!hlo_notation_string(f, &text, &size)) return false;
            if (size != 8 || memcmp(text, "sharding", 8) != 0)
                return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                         "the kind of a domain is \"sharding\"");
            kind = true;
        }
        hlo_notation_take(f, ",");
    }
    for (size_t n = 0; n < 2; n++)
        if (!values[n].size)
            return hlo_notation_fail(f, f->from, 1, "the domain has no '%s='", names[n]);
    if (!kind) return hlo_notation_fail(f, f->from, 1, "the domain has no 'kind='");
    f->out = (hlo_bytes){.arena = f->scratch};
    hlo_notation_put(f, "{kind=\"sharding\", entry=");
    hlo_bytes_put(&f->out, values[0].v, values[0].size);
    hlo_notation_put(f, ", exit=");
    hlo_bytes_put(&f->out, values[1].v, values[1].size);
    hlo_notation_put(f, "}");
    return true;
}

/* ---------------------------------------------------------------------------------- all of them */

static const char *read_value(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                              const char *text, hlo_notation *out_form) {
    static hlo_notation_reader *const readers[HLO_ATTR_COUNT] = {
#define HLO_NOTATION(attr, reader) [HLO_ATTR_##attr] = hlo_notation_##reader,
#include "grammar/attr/notation.def"
#undef HLO_NOTATION
    };
    *out_form = (hlo_notation){.scratch = scratch,
                               .from = text,
                               .at = text,
                               .end = text + hlo_intern_length(text),
                               .out = {.arena = scratch}};
    if (!readers[id](out_form)) return NULL;
    skip(out_form);
    if (out_form->at < out_form->end) {
        hlo_notation_unexpected(out_form, "the end of the value");
        return NULL;
    }
    return hlo_intern(module, out_form->out.size ? out_form->out.v : "", out_form->out.size);
}

const char *hlo_notation_of(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                            const char *interned, hlo_notation *out_form) {
    hlo_string_cache *memo = hlo_intern_cache(module, interned);
    if (memo->formed && memo->formed_as == id) return memo->formed;
    const char *formed = read_value(module, scratch, id, interned, out_form);
    memo->formed = formed;
    memo->formed_as = (uint8_t)id;
    return formed;
}
