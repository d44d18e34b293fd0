/* SPDX-License-Identifier: Apache-2.0 */
/* Notations that are records of `name=value`: statistics, accuracy, sparsity, configs. */
#include "grammar/attr/notation.h"

#include <string.h>

/* Reads statistics. Writes nothing if they have only the index. */
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

/* Reads `{atol=0.5,rtol=1e-05,ulps=2}`, in any order; missing members are 0. */
static bool tolerance(hlo_notation *f) {
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

/* Reads `{sparsity=2x4 dimension=0 stride=1}`. */
static bool sparse_operand(hlo_notation *f, int64_t out[4]) {
    bool given[3] = {false};
    static const char *const names[] = {"sparsity", "dimension", "stride"};
    memset(out, 0, 4 * sizeof *out);
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        size_t n = 0;
        hlo_notation_skip(f);
        const char *from = f->at;
        while (n < 3 && !hlo_notation_take_name(f, names[n])) n++;
        if (n == 3)
            return hlo_notation_unexpected(f, "'sparsity=', 'dimension=', 'stride=' or '}'");
        if (given[n])
            return hlo_notation_fail(f, from, strlen(names[n]), "'%s' is repeated", names[n]);
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
        hlo_notation_skip(f);
        const char *from = f->at;
        size_t n = hlo_notation_take_name(f, "lhs") ? 0 : hlo_notation_take_name(f, "rhs") ? 1 : 2;
        if (n == 2) return hlo_notation_unexpected(f, "'lhs=', 'rhs=' or '}'");
        if (given[n]) return hlo_notation_fail(f, from, 3, "'%s' is repeated", names[n]);
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
