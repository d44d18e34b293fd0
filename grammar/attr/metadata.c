/* SPDX-License-Identifier: Apache-2.0 */
/* Origins of values: metadata, and the arrays of an original module. */
#include "grammar/attr/notation.h"

#include <string.h>

#include "hlo/suggest.h"

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
    } else {
        size_t open = 0; /* tuples; no recursion, because their depth is unbounded */
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
    }
    hlo_notation_put(f, "}");
    return hlo_notation_expect(f, "}");
}

enum {
    FIRST_FIELD = HLO_ATTR_OP_TYPE,
    LAST_FIELD = HLO_ATTR_STACK_FRAME_ID,
    FIELDS = LAST_FIELD - FIRST_FIELD + 1
};

static bool metadata(hlo_notation *f) {
    const char *values[FIELDS] = {NULL};
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        hlo_notation_skip(f);
        const char *from = f->at, *name = hlo_notation_name(f);
        if (!name) return false;
        size_t size = strlen(name);
        hlo_attr_id id = hlo_attr_find(name, size);
        if ((int)id < FIRST_FIELD || (int)id > LAST_FIELD) {
            hlo_suggestion s = hlo_suggest(name);
            for (int which = FIRST_FIELD; which <= LAST_FIELD; which++)
                hlo_suggest_offer(&s, hlo_attrs_info[which].name);
            return hlo_notation_fail(f, from, size, "metadata has no attribute '%s'%s", name,
                                     hlo_suggest_meant(&s));
        }
        if (values[id - FIRST_FIELD])
            return hlo_notation_fail(f, from, size, "'%s' is repeated", name);
        hlo_bytes outer = f->out;
        f->out = (hlo_bytes){.arena = f->scratch};
        const char *text;
        size_t length;
        int64_t number;
        bool read = false;
        switch (hlo_attrs_info[id].kind) {
        case HLO_KIND_STRING:
            read = hlo_notation_string(f, &text, &length);
            if (read && length) hlo_bytes_quote(&f->out, text, length);
            break;
        case HLO_KIND_INT:
            read = hlo_notation_int(f, &number);
            if (read && number) hlo_notation_put_int(f, number);
            break;
        default: read = hlo_notation_profile_types(f);
        }
        values[id - FIRST_FIELD] = f->out.size ? f->out.v : ""; /* empty: the default */
        f->out = outer;
        if (!read) return false;
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
