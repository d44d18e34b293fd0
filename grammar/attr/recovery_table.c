/* SPDX-License-Identifier: Apache-2.0 */
/* The header's origin_recovery_table, which contains modules: each is parsed, and printed
 * indented. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "hlo/text.h"

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

/* The first error in a module. */
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

/* Writes the module's text, and always frees it. */
static bool put_and_free(hlo_bytes *out, char *text) {
    jmp_buf recover;
    jmp_buf *before = hlo_arena_set_recover(out->arena, &recover);
    const bool put = !setjmp(recover);
    if (put) hlo_notation_put_module(out, text);
    hlo_arena_set_recover(out->arena, before);
    free(text);
    return put;
}

typedef struct entry {
    struct entry *next;
    hlo_notation_array from, to;
    hlo_bytes module; /* may be empty */
} entry;

static int entry_order(const hlo_notation_link *a, const hlo_notation_link *b) {
    const hlo_notation_array *first = &((const entry *)a)->from,
                             *second = &((const entry *)b)->from;
    const size_t both = first->size < second->size ? first->size : second->size;
    const int order = memcmp(first->name, second->name, both);
    if (order) return order;
    if (first->size != second->size) return first->size < second->size ? -1 : 1;
    return hlo_notation_compare_ints(&first->index, &second->index);
}

/* Reads an array; an array without a name has an empty name. */
static bool read_array(hlo_notation *f, hlo_notation_array *out) {
    if (!hlo_notation_expect(f, "{") || !hlo_notation_origin_array(f, out)) return false;
    if (!out->name) out->name = "";
    return true;
}

/* Reads entries `{"a"} : {"b"}, "module"`; the first entry of an array counts. */
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
        hlo_notation_put_array(f, &e->from);
        hlo_notation_put(f, " : ");
        hlo_notation_put_array(f, &e->to);
        if (e->module.size) hlo_notation_put(f, ",\n  ");
        if (e->module.size) hlo_bytes_put(&f->out, e->module.v, e->module.size);
        last = e;
    }
    if (last) hlo_notation_put(f, "\n}");
    return true;
}
