/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the origins of values: metadata, the arrays of an original module, and the modules that
 * recover these arrays. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "hlo/text.h"
#include "ir/memory.h"
#include "ir/text/suggest.h"

/* The origin of one array: `"name" {0,1}}` after a brace. `name` may be NULL. */
typedef struct array {
    const char *name;
    size_t size;
    hlo_notation_ints index;
} array;

static bool origin_array(hlo_notation *f, array *out) {
    *out = (array){.name = NULL};
    if (hlo_notation_next(f, '}')) return hlo_notation_expect(f, "}");
    if (!hlo_notation_string(f, &out->name, &out->size)) return false;
    if (hlo_notation_take(f, "{") && !hlo_notation_int_list(f, "}", 0, &out->index)) return false;
    return hlo_notation_expect(f, "}");
}

static void put_array(hlo_notation *f, const array *a) {
    hlo_notation_put(f, "{");
    if (a->name) hlo_bytes_quote(&f->out, a->name, a->size);
    if (a->index.count) hlo_notation_put_index(f, " ", &a->index);
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
        size_t open = 0; /* number of open tuples: a recursion would be too deep */
        do {
            if (hlo_notation_take(f, "(")) {
                hlo_notation_put(f, "(");
                open++;
                if (!hlo_notation_next(f, ')')) continue;
            } else {
                array one;
                if (!hlo_notation_take(f, "{")) return hlo_notation_unexpected(f, "'{' or '('");
                if (!origin_array(f, &one)) return false;
                put_array(f, &one);
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
        values[id - FIRST_FIELD] = f->out.size ? f->out.v : ""; /* an empty text is the default */
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

void hlo_notation_put_module(hlo_bytes *out, const char *text) {
    hlo_bytes_text(out, "\"\n");
    for (const char *next; *text; text = next) {
        const size_t line = strcspn(text, "\n");
        next = text + line + (text[line] != '\0');
        if (line) hlo_bytes_text(out, "    ");
        for (size_t i = 0; i < line; i++) {
            if (strchr("\"\\", text[i])) hlo_bytes_put(out, "\\", 1);
            hlo_bytes_put(out, &text[i], 1);
        }
        hlo_bytes_text(out, "\n");
    }
    hlo_bytes_text(out, "\n  \"");
}

typedef struct first_error {
    uint32_t line;
    char message[160];
} first_error;

static void keep_first(void *user, const hlo_diag *diag) {
    first_error *first = user;
    if (diag->severity != HLO_ERROR || first->line) return;
    first->line = diag->line;
    snprintf(first->message, sizeof first->message, "%s", diag->message);
}

static bool put_and_free(hlo_bytes *out, char *text) {
    jmp_buf recover;
    jmp_buf *before = hlo_arena_set_recover(out->arena, &recover);
    const bool put = !setjmp(recover);
    if (put) hlo_notation_put_module(out, text);
    hlo_arena_set_recover(out->arena, before);
    hlo_free(text);
    return put;
}

typedef struct entry {
    struct entry *next;
    array from, to;
    hlo_bytes module; /* text of the module that recovers the array; may be empty */
} entry;

static int entry_order(const hlo_notation_link *a, const hlo_notation_link *b) {
    const array *first = &((const entry *)a)->from, *second = &((const entry *)b)->from;
    const size_t both = first->size < second->size ? first->size : second->size;
    const int order = memcmp(first->name, second->name, both);
    if (order) return order;
    if (first->size != second->size) return first->size < second->size ? -1 : 1;
    return hlo_notation_compare_ints(&first->index, &second->index);
}

/* Reads an array. The name is empty if the text has none. */
static bool read_array(hlo_notation *f, array *out) {
    if (!hlo_notation_expect(f, "{") || !origin_array(f, out)) return false;
    if (!out->name) out->name = "";
    return true;
}

/* Reads entries `{"a"} : {"b"}, "module"`. Of several entries for one array, the first counts. */
bool hlo_notation_recovery(hlo_notation *f) {
    entry *list = NULL, **end = &list;
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        entry *item = hlo_arena_zero(f->scratch, sizeof *item);
        item->module.arena = f->scratch;
        if (!read_array(f, &item->from) || !hlo_notation_expect(f, ":") ||
            !read_array(f, &item->to))
            return false;
        if (hlo_notation_take(f, ",")) { /* a string that contains a module */
            hlo_notation_skip(f);
            const char *start = f->at, *text;
            size_t size;
            if (!hlo_notation_string(f, &text, &size)) return false;
            first_error first = {0};
            const hlo_diag_sink sink = {keep_first, &first};
            hlo_module *module;
            char *printed = NULL;
            hlo_status status = f->parse_module(text, size, "", &sink, &module);
            if (status == HLO_OK) status = hlo_module_to_text(module, NULL, &printed, &size);
            hlo_module_free(module);
            if (status == HLO_OK && !put_and_free(&item->module, printed))
                status = HLO_OUT_OF_MEMORY;
            if (status == HLO_OUT_OF_MEMORY) return hlo_notation_fail(f, start, 1, "out of memory");
            if (status != HLO_OK)
                return hlo_notation_fail(f, start, 1, "in this module: %s", first.message);
        }
        *end = item;
        end = &item->next;
    }
    list = (entry *)hlo_notation_sort((hlo_notation_link *)list, entry_order);
    const entry *last = NULL;
    for (const entry *e = list; e; e = e->next) {
        if (last && entry_order((const hlo_notation_link *)last, (const hlo_notation_link *)e) == 0)
            continue;
        hlo_notation_put(f, last ? "\n  " : "{\n  ");
        put_array(f, &e->from);
        hlo_notation_put(f, " : ");
        put_array(f, &e->to);
        if (e->module.size) hlo_notation_put(f, ",\n  ");
        if (e->module.size) hlo_bytes_put(&f->out, e->module.v, e->module.size);
        last = e;
    }
    if (last) hlo_notation_put(f, "\n}");
    return true;
}

/* Reads the attributes of each element of a tuple, in parentheses. */
static bool debug_tree(hlo_notation *f) {
    size_t open = 0;
    do {
        if (hlo_notation_take(f, "(")) {
            open++;
            if (!hlo_notation_next(f, ')')) continue;
        } else {
            /* Skip `name=word` pairs, separated by commas. */
            if (!hlo_notation_expect(f, "{")) return false;
            for (bool more = false; !hlo_notation_take(f, "}"); more = true) {
                if (more && !hlo_notation_expect(f, ",")) return false;
                if (!hlo_notation_name(f)) return false;
                const size_t size =
                    strspn(f->at, "-_.0123456789"
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
                if (!size) return hlo_notation_unexpected(f, "a word");
                f->at += size;
            }
        }
        while (open && !hlo_notation_take(f, ",")) {
            if (!hlo_notation_expect_end(f, ")")) return false;
            open--;
        }
    } while (open);
    return true;
}

/* Copies a value such as `{"name" {0}}:({log_mode=default,callback_id=1})` verbatim. */
bool hlo_notation_debug(hlo_notation *f) {
    if (!hlo_notation_expect(f, "{")) return false;
    for (bool more = false; !hlo_notation_next(f, '}'); more = true) {
        array one;
        if (more && !hlo_notation_expect(f, ",")) return false;
        if (!hlo_notation_expect(f, "{") || !origin_array(f, &one) ||
            !hlo_notation_expect(f, ":") || !debug_tree(f))
            return false;
    }
    hlo_bytes_put(&f->out, f->from, (size_t)(f->at - f->from) + 1);
    return hlo_notation_expect(f, "}");
}
