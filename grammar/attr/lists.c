/* SPDX-License-Identifier: Apache-2.0 */
/* Reads notations that are lists of numbers or words, have a part for each dimension, or are
 * records of `name=value`. Also reads lists that XLA sorts: aliases, donors, frontend
 * attributes. */
#include <string.h>

#include "grammar/attr/devices.h"
#include "grammar/attr/notation.h"
#include "ir/text/printer.h"

/* ---------------------------------------------------------------------------------------- lists */

/* Reads `{{0,1},{2}}`. Writes nothing for an empty list. */
bool hlo_notation_size_lists(hlo_notation *f) {
    if (!hlo_notation_expect(f, "{")) return false;
    if (hlo_notation_take(f, "}")) return true;
    do {
        hlo_notation_ints list;
        if (!hlo_notation_expect(f, "{") || !hlo_notation_int_list(f, "}", 0, &list)) return false;
        hlo_notation_put_index(f, f->out.size ? "," : "{", &list);
    } while (hlo_notation_take(f, ","));
    hlo_notation_put(f, "}");
    return hlo_notation_expect_end(f, "}");
}

/* Reads `{true,false}`. Sets *out_any if an element is true. */
static bool bools(hlo_notation *f, bool *out_any) {
    *out_any = false;
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    for (size_t i = 0; hlo_notation_item(f, '}', i); i++) {
        bool value;
        if (!hlo_notation_bool(f, &value)) return false;
        if (i) hlo_notation_put(f, ",");
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

/* Reads a list of booleans, or one without braces. Writes nothing for `{}` and `{false}`. */
bool hlo_notation_propagation(hlo_notation *f) {
    bool value;
    if (hlo_notation_next(f, '{')) {
        if (!bools(f, &value)) return false;
    } else if (hlo_notation_next(f, 't') || hlo_notation_next(f, 'f')) {
        if (!hlo_notation_bool(f, &value)) return false;
        hlo_notation_put(f, value ? "{true}" : "{false}");
    } else {
        return hlo_notation_unexpected(f, "'{', 'true' or 'false'");
    }
    if (strcmp(f->out.v, "{}") == 0 || strcmp(f->out.v, "{false}") == 0) f->out.size = 0;
    return true;
}

/* Reads `{high,default}`, in upper or lower case. Writes nothing if all words are the default. */
bool hlo_notation_precision(hlo_notation *f) {
    static const char *const words[][2] = {
        {"default", "DEFAULT"}, {"high", "HIGH"}, {"highest", "HIGHEST"}};
    bool other = false;
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    for (size_t i = 0; hlo_notation_item(f, '}', i); i++) {
        size_t w = 0;
        while (w < 3 && !hlo_notation_take_word(f, words[w][0]) &&
               !hlo_notation_take_word(f, words[w][1]))
            w++;
        if (w == 3) return hlo_notation_unexpected(f, "'default', 'high' or 'highest'");
        if (i) hlo_notation_put(f, ",");
        hlo_notation_put(f, words[w][0]);
        other |= w > 0;
    }
    hlo_notation_put(f, "}");
    if (!other) f->out.size = 0;
    return hlo_notation_expect_end(f, "}");
}

bool hlo_notation_profile_types(hlo_notation *f) {
    enum { LAST = 3 };
    hlo_notation_ints list;
    if (!hlo_notation_expect(f, "{")) return false;
    const char *from = f->at;
    if (!hlo_notation_int_list(f, "}", 0, &list)) return false;
    for (size_t i = 0; i < list.count; i++)
        if (list.v[i] < 0 || list.v[i] > LAST)
            return hlo_notation_fail(f, from, 1, "unknown profile type %lld", (long long)list.v[i]);
    if (list.count) hlo_notation_put_index(f, "", &list);
    return true;
}

/* ------------------------------------------------------------------------- parts for dimensions */

/* Reads dim_labels. Each part has two letters and the digits from 0, each once. `?` is an unnamed
 * dimension. */
bool hlo_notation_labels(hlo_notation *f) {
    static const struct {
        const char *letters, *what, *after;
    } parts[] = {{"bf", "input", "_"}, {"io", "kernel", "->"}, {"bf", "output", ""}};
    size_t input_spatial = 0;
    for (size_t i = 0; i < 3; i++) {
        const char *from = f->at, *letters = parts[i].letters, *what = parts[i].what;
        uint64_t seen = 0;
        size_t largest = 0, spatial = 0;
        for (; f->at < f->end && (hlo_notation_in_name(*f->at) || *f->at == '?') &&
               !strchr("_-", *f->at);
             f->at++) {
            const char *letter = strchr(letters, *f->at);
            bool digit = *f->at >= '0' && *f->at <= '9';
            if (*f->at == '?') continue;
            if (!digit && !letter)
                return hlo_notation_fail(f, f->at, 1,
                                         "expected a label %c, %c, digit or ? for the %s, found %c",
                                         letters[0], letters[1], what, *f->at);
            unsigned bit = digit ? (unsigned)(*f->at - '0') : 10 + (unsigned)(letter - letters);
            if (seen >> bit & 1)
                return hlo_notation_fail(f, f->at, 1, "the %s repeats dimension %c", what, *f->at);
            seen |= (uint64_t)1 << bit;
            if (digit && bit >= largest) largest = bit + 1;
            spatial += digit;
        }
        const size_t length = (size_t)(f->at - from);
        for (size_t k = 0; k < 2; k++)
            if (!(seen >> (10 + k) & 1))
                return hlo_notation_fail(f, from, length, "the %s lacks dimension %c", what,
                                         letters[k]);
        if (largest != spatial)
            return hlo_notation_fail(f, from, length,
                                     "the %s has %zu spatial dimensions, so label %zu is out of "
                                     "range",
                                     what, spatial, largest - 1);
        const char *last = f->at;
        while (last > from && last[-1] == '?') last--;
        hlo_bytes_put(&f->out, from, (size_t)(last - from));
        if (!i) input_spatial = spatial;
        if (spatial != input_spatial)
            return hlo_notation_fail(f, from, length,
                                     "the %s has %zu spatial dimensions, but the input has %zu",
                                     what, spatial, input_spatial);
        size_t size = strlen(parts[i].after);
        if ((size_t)(f->end - f->at) < size || memcmp(f->at, parts[i].after, size) != 0)
            return hlo_notation_expect(f, parts[i].after);
        f->at += size;
        hlo_notation_put(f, parts[i].after);
    }
    return true;
}

/* Reads the parts of a window attribute, separated by `x`: numbers or, for `pad`, pairs joined by
 * `_`. In `rhs_reversal`, 1 means that the dimension is reversed. */
bool hlo_notation_sizes(hlo_notation *f) {
    const bool pair = f->value.id == HLO_ATTR_PAD, reversal = f->value.id == HLO_ATTR_RHS_REVERSAL;
    hlo_notation_ints all = {0};
    do {
        int64_t number;
        for (int i = 0; i <= pair; i++) {
            const char *from = f->at;
            if (i && (f->at == f->end || *f->at != '_')) return hlo_notation_unexpected(f, "'_'");
            f->at += i;
            if (!hlo_notation_int(f, &number)) return false;
            if (number < 0 && !pair)
                return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                         "expected a non-negative number");
            hlo_notation_add(f, &all, reversal ? number == 1 : number);
        }
    } while (f->at < f->end && *f->at == 'x' && f->at++);
    f->value.u.ints = hlo_notation_keep(f, &all);
    return true;
}

/* -------------------------------------------------------------------------------------- records */

/* Reads statistics. Writes nothing if they contain only the index. */
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
        if (!name || !hlo_notation_number(f, &value)) return false;
        hlo_notation_put(f, ",");
        hlo_notation_put(f, name);
        hlo_notation_put(f, "=");
        hlo_notation_put_double(f, value);
        any = true;
    }
    hlo_notation_put(f, "}");
    if (!any) f->out.size = 0;
    return hlo_notation_expect_end(f, "}");
}

bool hlo_notation_accuracy(hlo_notation *f) {
    if (!hlo_notation_expect(f, "{")) return false;
    if (hlo_notation_take_name(f, "tolerance")) {
        /* Reads `{atol=0.5,rtol=1e-05,ulps=2}`, in any order; missing members are 0. */
        static const char *const names[] = {"atol", "rtol", "ulps"};
        double value[3] = {0};
        if (!hlo_notation_expect(f, "{")) return false;
        for (size_t i = 0; hlo_notation_item(f, '}', i); i++) {
            size_t n = 0;
            while (n < 3 && !hlo_notation_take_name(f, names[n])) n++;
            if (n == 3) return hlo_notation_unexpected(f, "'atol=', 'rtol=' or 'ulps='");
            hlo_notation_skip(f);
            const char *from = f->at;
            if (!hlo_notation_number(f, &value[n])) return false;
            if (value[n] < 0)
                return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                         "expected a non-negative tolerance");
        }
        if (!hlo_notation_expect_end(f, "}")) return false;
        hlo_notation_put(f, "{tolerance={atol=");
        hlo_notation_put_double(f, value[0]);
        hlo_notation_put(f, ",rtol=");
        hlo_notation_put_double(f, value[1]);
        hlo_bytes_format(&f->out, ",ulps=%.0f}}",
                         value[2] < 9e15 ? (double)(int64_t)value[2] : 9e15);
    } else if (!hlo_notation_take_name(f, "mode")) {
        return hlo_notation_unexpected(f, "'mode=' or 'tolerance='");
    } else if (hlo_notation_take_word(f, "highest") || hlo_notation_take_word(f, "HIGHEST")) {
        hlo_notation_put(f, "{mode=highest}");
    } else if (!hlo_notation_take_word(f, "default") && !hlo_notation_take_word(f, "DEFAULT")) {
        return hlo_notation_unexpected(f, "'default' or 'highest'");
    }
    return hlo_notation_expect(f, "}");
}

/* Reads `{lhs={sparsity=2x4 dimension=0 stride=1} rhs=...}`. */
bool hlo_notation_sparsity(hlo_notation *f) {
    static const char *const names[] = {"lhs", "rhs"};
    static const char *const members[] = {"sparsity", "dimension", "stride"};
    int64_t sides[2][4] = {{0}};
    bool given[2] = {false};
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        hlo_notation_skip(f);
        const char *from = f->at;
        size_t n = hlo_notation_take_name(f, "lhs") ? 0 : hlo_notation_take_name(f, "rhs") ? 1 : 2;
        if (n == 2) return hlo_notation_unexpected(f, "'lhs=', 'rhs=' or '}'");
        if (given[n]) return hlo_notation_fail(f, from, 3, "'%s' is repeated", names[n]);
        given[n] = true;
        int64_t *side = sides[n];
        bool has[3] = {false};
        if (!hlo_notation_expect(f, "{")) return false;
        while (!hlo_notation_take(f, "}")) {
            size_t m = 0;
            hlo_notation_skip(f);
            from = f->at;
            while (m < 3 && !hlo_notation_take_name(f, members[m])) m++;
            if (m == 3)
                return hlo_notation_unexpected(f, "'sparsity=', 'dimension=', 'stride=' or '}'");
            if (has[m])
                return hlo_notation_fail(f, from, strlen(members[m]), "'%s' is repeated",
                                         members[m]);
            has[m] = true;
            if (!hlo_notation_int(f, m ? &side[m + 1] : &side[0])) return false;
            if (m) continue;
            if (f->at == f->end || *f->at != 'x') return hlo_notation_unexpected(f, "'x'");
            f->at++;
            if (!hlo_notation_int(f, &side[1])) return false;
        }
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

/* Reads a config. A string that contains a braced text becomes that text. */
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

/* -------------------------------------------------------------------------------------- aliases */

static bool index_list(hlo_notation *f, hlo_notation_ints *out) {
    return hlo_notation_expect(f, "{") && hlo_notation_int_list(f, "}", 0, out);
}

static int alias_order(const hlo_notation_link *x, const hlo_notation_link *y) {
    const hlo_alias_item *a = (const hlo_alias_item *)x, *b = (const hlo_alias_item *)y;
    const int order = hlo_notation_compare_ints(&a->output, &b->output);
    if (order) return order;
    return a->is.number != b->is.number ? (a->is.number < b->is.number ? -1 : 1)
                                        : hlo_notation_compare_ints(&a->part, &b->part);
}

bool hlo_aliases_keep(hlo_notation *f, hlo_alias_item *list, size_t count) {
    const bool donors = f->value.id == HLO_ATTR_BUFFER_DONOR;
    const bool sorted = f->value.id != HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING;
    const size_t size = sizeof(hlo_aliases) + count * sizeof(hlo_alias);
    hlo_aliases *made = hlo_arena_zero(f->scratch, size);
    /* The sort is stable, so of equal entries, the one that was read last comes first. */
    if (sorted) list = (hlo_alias_item *)hlo_notation_sort((hlo_notation_link *)list, alias_order);
    for (hlo_alias_item *a = list, *next; a; a = next) {
        next = (hlo_alias_item *)a->link.next;
        if (donors && next && alias_order(&a->link, &next->link) == 0) continue;
        hlo_alias *to = &made->v[sorted ? made->count : --count];
        made->count++;
        *to = a->is;
        if (!donors) to->output = hlo_notation_keep(f, &a->output);
        to->part = hlo_notation_keep(f, &a->part);
        to->text = hlo_print_interned(f->module, hlo_put_alias, to);
    }
    made->parsed.text = hlo_print_interned(f->module, hlo_put_aliases, made);
    return hlo_notation_made(f, f->value.id, &made->parsed, size);
}

/* Reads `{ {0}: (0, {1}, may-alias), ... }`, sorted if XLA sorts it. */
bool hlo_notation_aliases(hlo_notation *f) {
    hlo_alias_item *list = NULL;
    size_t count = 0;
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_next(f, '}')) {
        hlo_alias_item *item = hlo_arena_zero(f->scratch, sizeof *item);
        if (f->value.id != HLO_ATTR_BUFFER_DONOR &&
            (!index_list(f, &item->output) || !hlo_notation_expect(f, ":")))
            return false;
        if (!hlo_notation_expect(f, "(") || !hlo_notation_int(f, &item->is.number) ||
            !hlo_notation_expect(f, ",") || !index_list(f, &item->part))
            return false;
        const bool modes = f->value.id == HLO_ATTR_INPUT_OUTPUT_ALIAS;
        if (modes) item->is.mode = "may";
        if (modes && hlo_notation_take(f, ",")) {
            if (hlo_notation_take_word(f, "must-alias"))
                item->is.mode = "must";
            else if (!hlo_notation_take_word(f, "may-alias"))
                return hlo_notation_unexpected(f, "'may-alias' or 'must-alias'");
        }
        if (!hlo_notation_expect(f, ")")) return false;
        item->link.next = (hlo_notation_link *)list;
        list = item;
        count++;
        if (!hlo_notation_take(f, ",")) break;
    }
    return hlo_notation_expect_end(f, "}") && hlo_aliases_keep(f, list, count);
}

/* ----------------------------------------------------------------------------- names and values */

typedef struct entry {
    struct entry *next;
    const char *name, *value;
    size_t size;
} entry;

static int entry_order(const hlo_notation_link *a, const hlo_notation_link *b) {
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

bool hlo_notation_entries(hlo_notation *f) {
    entry *list = NULL;
    if (!hlo_notation_expect(f, "{")) return false;
    for (size_t i = 0; hlo_notation_item(f, '}', i); i++) {
        entry *item = hlo_arena_zero(f->scratch, sizeof *item);
        if (!(item->name = hlo_notation_name(f))) return false;
        if (hlo_notation_next(f, '{')) {
            item->size = hlo_braced_size(f->at, (size_t)(f->end - f->at));
            item->value = f->at;
            f->at += item->size;
            if (!item->size) return hlo_notation_fail(f, item->value, 1, "unmatched '{'");
        } else if (!hlo_notation_next(f, '"') && !hlo_notation_next(f, '\'')) {
            return hlo_notation_unexpected(f, "a string or '{'");
        } else if (!hlo_notation_string(f, &item->value, &item->size)) {
            return false;
        }
        item->next = list;
        list = item;
    }
    if (!hlo_notation_expect_end(f, "}")) return false;
    list = (entry *)hlo_notation_sort((hlo_notation_link *)list, entry_order);
    /* Of several entries with the same name, write only the first: it was read last. */
    const char *last = NULL;
    for (const entry *e = list; e; e = e->next) {
        if (last && strcmp(last, e->name) == 0) continue;
        last = e->name;
        hlo_notation_put(f, e == list ? "{" : ",");
        hlo_notation_put(f, e->name);
        hlo_notation_put(f, "=");
        if (hlo_is_braced(e->value, e->size))
            hlo_bytes_put(&f->out, e->value, e->size);
        else
            hlo_bytes_quote(&f->out, e->value, e->size);
    }
    if (list) hlo_notation_put(f, "}");
    return true;
}
