/* SPDX-License-Identifier: Apache-2.0 */
/* Notations that are lists of numbers or words. */
#include "grammar/attr/notation.h"

#include <string.h>

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

/* Reads `{true,false}`. *out_any: an element is true. */
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

/* Reads a list, or a word instead of a list of one. Writes nothing for `{}` and `{false}`. */
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

/* Reads `{high,default}`, in either case. Writes nothing if all words are the default. */
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
