/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the file that is compiled, and lookup of its words. */
#include "grammar/rules/compile.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

#include <stdarg.h>
#include <string.h>

void rules_fault(rules_parser *p, span where, const char *format, ...) {
    if (!hlo_error_budget_take(&p->faults, (uint32_t)where.first)) return;
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(p->owner, p->sink, HLO_ERROR, where.first,
                   where.last > where.first ? where.last - where.first : 1, format, args);
    va_end(args);
}

void *rules_new(rules_parser *p, size_t size) {
    return hlo_arena_zero(p->owner->arena, size);
}

node *rules_node(rules_parser *p, node_kind kind, size_t first, size_t last) {
    node *n = rules_new(p, sizeof *n);
    n->kind = kind;
    n->where = (span){first, last};
    return n;
}

const char *rules_name(rules_parser *p, span s) {
    return hlo_intern(p->owner, p->owner->source + s.first, s.last - s.first);
}

void *rules_push(rules_parser *p, buffer *b, size_t size) {
    hlo_arena_grow(p->owner->arena, &b->data, b->count, &b->capacity, size);
    void *item = (char *)b->data + b->count++ * size;
    memset(item, 0, size);
    return item;
}

int rules_find_function(const rules_parser *p, const char *name) {
    for (uint32_t i = 0; i < p->words->function_count; i++)
        if (!strcmp(p->words->functions[i].name, name)) return (int)i;
    return -1;
}

int rules_find_word(const char *const *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(list[i], name)) return (int)i;
    return -1;
}

const let_node *rules_find_let(rules_parser *p, span name) {
    const char *text = rules_name(p, name);
    for (const let_node *l = p->lets; l; l = l->next)
        if (rules_name(p, l->name) == text) return l;
    return NULL;
}

hlo_rule_term *rules_term_at(rules_parser *p, uint32_t index) {
    return (hlo_rule_term *)p->draft->terms.data + index;
}

uint32_t rules_new_term(rules_parser *p, hlo_term_kind kind) {
    hlo_rule_term *t = rules_push(p, &p->draft->terms, sizeof *t);
    t->kind = (uint8_t)kind;
    t->slot = -1;
    p->draft->size++;
    return p->draft->terms.count - 1;
}

/* True if there is no room for `size` terms more. */
bool rules_is_full(rules_parser *p, span where, uint32_t size) {
    if (p->draft->size + size <= MAX_TERMS) return false;
    if (!p->draft->full)
        rules_fault(p, where, "the definitions expand to more than %d terms", MAX_TERMS);
    p->draft->full = true;
    return true;
}

char hlo_rule_letter(const hlo_rule_function *function, uint32_t index) {
    const char *params = function->params;
    const size_t length = strlen(params);
    const bool many = length && params[length - 1] == '*';
    if (many && index >= length - 2) return params[length - 2];
    return index < length ? params[index] : 0;
}
