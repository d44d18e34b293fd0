/* SPDX-License-Identifier: Apache-2.0 */
/* Notations that are lists with a specific order: aliases, donors, frontend attributes. */
#include <string.h>

#include "grammar/attr/devices.h"
#include "ir/text/printer.h"

/* -------------------------------------------------------------------------------------- aliases */

static bool index_list(hlo_notation *f, hlo_notation_ints *out) {
    return hlo_notation_expect(f, "{") && hlo_notation_int_list(f, "}", 0, out);
}

static int compare_aliases(const hlo_alias_item *a, const hlo_alias_item *b) {
    const int order = hlo_notation_compare_ints(&a->output, &b->output);
    if (order) return order;
    return a->is.number != b->is.number ? (a->is.number < b->is.number ? -1 : 1)
                                        : hlo_notation_compare_ints(&a->part, &b->part);
}

static int alias_order(const hlo_notation_link *a, const hlo_notation_link *b) {
    return compare_aliases((const hlo_alias_item *)a, (const hlo_alias_item *)b);
}

bool hlo_aliases_keep(hlo_notation *f, hlo_alias_item *list, size_t count) {
    const bool donors = f->value.id == HLO_ATTR_BUFFER_DONOR;
    const bool sorted = f->value.id != HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING;
    const size_t size = sizeof(hlo_aliases) + count * sizeof(hlo_alias);
    hlo_aliases *made = hlo_arena_zero(f->scratch, size);
    /* Of equal entries the last comes first. */
    if (sorted) list = (hlo_alias_item *)hlo_notation_sort((hlo_notation_link *)list, alias_order);
    for (hlo_alias_item *a = list, *next; a; a = next) {
        next = (hlo_alias_item *)a->link.next;
        if (donors && next && compare_aliases(a, next) == 0) continue;
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
    /* Among entries with one name, only the first counts: it was read last. */
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

/* ----------------------------------------------------------------------------- debug attributes */

/* Reads the attributes of each element of a tuple, in parentheses. */
static bool debug_tree(hlo_notation *f) {
    size_t open = 0;
    do {
        if (hlo_notation_take(f, "(")) {
            open++;
            if (!hlo_notation_next(f, ')')) continue;
        } else {
            /* `name=word` pairs, separated by commas. */
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
        hlo_notation_array array;
        if (more && !hlo_notation_expect(f, ",")) return false;
        if (!hlo_notation_expect(f, "{") || !hlo_notation_origin_array(f, &array) ||
            !hlo_notation_expect(f, ":") || !debug_tree(f))
            return false;
    }
    hlo_bytes_put(&f->out, f->from, (size_t)(f->at - f->from) + 1);
    return hlo_notation_expect(f, "}");
}
