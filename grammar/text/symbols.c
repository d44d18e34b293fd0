/* SPDX-License-Identifier: Apache-2.0 */
/* Names: rejects keywords, binds names to instructions and computations, hides and looks up names,
 * and makes names unique. */
#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/text/actions.h"
#include "ir/intern.h"

bool hlo_text_reserved(hlo_text *text, hlo_span at, const char *name, bool types_too) {
    if (!types_too && text->source[at.offset] == '%') return false;
    size_t length = hlo_intern_length(name), stem = length;
    while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9') stem--;
    if (stem && name[stem - 1] == '.') return false; /* most names end in `.N` */
    if (length > sizeof "last_tile_dim_replicate" - 1 || memchr(name, '.', length)) return false;
    const char *end = text->source + at.offset + at.length;
    bool plain = text->source[at.offset] != '%' && end[-1] != ':' && end[0] != ':';
    hlo_type type = hlo_type_find(name, length);
    bool reserved = type != HLO_TYPE_INVALID && type != HLO_TYPE_TUPLE && (plain || types_too);
    reserved |= plain && hlo_notation_is_keyword(name);
    if (reserved) hlo_text_error(text, at, "'%s' is a keyword, not a name", name);
    return reserved;
}

/* Returns how many of `wanted` bytes may still be searched. */
static size_t within_budget(const hlo_text *text, size_t wanted) {
    enum { MAX = 1 << 20 };
    size_t left = HLO_MAX_SEARCHED - text->searched, found = wanted < MAX ? wanted : MAX;
    return found < left ? found : left;
}

/* Returns the number of known names to compare with an unknown name. The limit bounds the time of
 * all searches. */
static size_t most_offers(hlo_text *text) {
    enum { MAX = 1000, BYTES = 64 };
    size_t count = within_budget(text, MAX * BYTES) / BYTES;
    text->searched += count * BYTES;
    return count;
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t");
}

/* Finds the definition of a computation, or of an instruction of the same computation, on a line
 * after `from`, in text that has not been parsed. */
static bool find_later(hlo_text *text, uint32_t from, const char *name, bool computation,
                       hlo_span *out) {
    const char *at = text->source + from, *end = at + within_budget(text, text->size - from);
    const char *keyword = computation ? "ENTRY " : "ROOT ";
    const size_t length = hlo_intern_length(name), keyword_length = strlen(keyword);
    for (;;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line = newline ? newline + 1 : end;
        text->searched += (size_t)(line - at);
        at = line;
        if (at >= end) return false;
        const char *word = computation ? at : skip_blanks(at);
        if (*word == '}' && !computation) return false;
        if (strncmp(word, keyword, keyword_length) == 0) word = skip_blanks(word + keyword_length);
        const char *bare = word + (*word == '%');
        if (strncmp(bare, name, length) != 0 || hlo_text_in_name(bare[length])) continue;
        const char next = *skip_blanks(bare + length);
        if (computation ? next != '{' && next != '(' : next != '=') continue;
        *out = (hlo_span){(uint32_t)(word - text->source), (uint32_t)(bare + length - word)};
        return true;
    }
}

hlo_computation *hlo_text_called(hlo_text *text, hlo_span at, const char *name) {
    if (hlo_text_reserved(text, at, name, false)) return NULL;
    hlo_computation *comp = hlo_intern_cache(text->module, name)->comp;
    if (comp || text->nameless) return comp;
    if (hlo_text_is_cut(text, at)) return NULL;
    hlo_suggestion s = hlo_suggest(name);
    size_t offers = most_offers(text);
    for (comp = text->module->last; comp && offers--; comp = comp->prev)
        if (hlo_intern_cache(text->module, comp->name)->comp) hlo_suggest_offer(&s, comp->name);
    hlo_text_error(text, at, "use of undefined computation '%s'%s", name, hlo_suggest_meant(&s));
    hlo_span defined;
    if (find_later(text, at.offset, name, true, &defined))
        hlo_text_note(text, defined, "it is defined here, after its use");
    return NULL;
}

hlo_attr hlo_text_comps(hlo_text *text, hlo_attr_id id, size_t from) {
    const size_t size = text->comps.used - from;
    uint32_t count = (uint32_t)(size / sizeof(hlo_computation *));
    hlo_comps *comps =
        hlo_arena_alloc(text->module->arena, sizeof *comps + count * sizeof *comps->v);
    comps->count = count;
    if (size) memcpy(comps->v, text->comps.items + from, size);
    text->comps.used = from;
    for (uint32_t i = 0; i < count; i++)
        if (!comps->v[i]) return (hlo_attr){.id = id};
    return (hlo_attr){.id = id, .u.comps = comps};
}

hlo_instruction *hlo_text_find_instr(hlo_text *text, const char *name) {
    const hlo_symbol_binding binding = hlo_intern_binding(name);
    return binding.scope == hlo_text_body(text)->comp->id + 1 ? binding.instr : NULL;
}

/* The outer binding of a name that an inline computation hides until its end. */
typedef struct hidden_name {
    const char *name;
    hlo_symbol_binding binding;
} hidden_name;

void hlo_text_bind(hlo_text *text, const char *name, hlo_instruction *instr) {
    hidden_name hidden = {name, hlo_intern_binding(name)};
    uint32_t scope = hlo_text_body(text)->comp->id + 1;
    if (text->bodies.used > sizeof(hlo_body) && hidden.binding.scope != scope)
        hlo_stack_push(text, &text->hidden, &hidden, sizeof hidden);
    hlo_intern_bind(name, (hlo_symbol_binding){instr, scope});
}

void hlo_text_unhide(hlo_text *text, size_t from) {
    while (text->hidden.used > from) {
        const hidden_name *hidden = hlo_stack_top(&text->hidden, sizeof *hidden);
        hlo_intern_bind(hidden->name, hidden->binding);
        text->hidden.used -= sizeof *hidden;
    }
}

hlo_instruction *hlo_text_named(hlo_text *text, hlo_span at, const char *name) {
    if (!text->bodies.used) {
        hlo_text_error(text, at, "an instruction cannot be named outside a computation");
        return &text->broken;
    }
    if (hlo_text_reserved(text, at, name, false)) return &text->broken;
    hlo_instruction *instr = hlo_text_find_instr(text, name);
    if (instr) return instr;
    if (hlo_text_body(text)->nameless) return &text->broken;
    if (hlo_text_is_cut(text, at)) return &text->broken;
    const hlo_computation *comp = hlo_text_body(text)->comp;
    hlo_suggestion s = hlo_suggest(name);
    size_t offers = most_offers(text);
    for (instr = comp->last; instr && offers--; instr = instr->prev)
        if (hlo_text_find_instr(text, instr->name) == instr) hlo_suggest_offer(&s, instr->name);
    hlo_text_error(text, at, "use of undefined instruction '%s' in computation '%s'%s", name,
                   comp->name, hlo_suggest_meant(&s));
    hlo_span defined;
    if (find_later(text, at.offset, name, false, &defined))
        hlo_text_note(text, defined, "it is defined here, after its use");
    return &text->broken;
}

void hlo_text_instr_named(hlo_text *text, hlo_span at, const char *name) {
    hlo_instruction *instr = hlo_text_named(text, at, name);
    hlo_stack_push(text, &text->instrs, &instr, sizeof(hlo_instruction *));
}

hlo_attr hlo_text_instrs(hlo_text *text, hlo_attr_id id) {
    uint32_t count = (uint32_t)(text->instrs.used / sizeof(hlo_instruction *));
    hlo_instrs *instrs =
        hlo_arena_alloc(text->module->arena, sizeof *instrs + count * sizeof *instrs->v);
    instrs->count = count;
    memcpy(instrs->v, text->instrs.items, text->instrs.used);
    text->instrs.used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (instrs->v[i] == &text->broken) return (hlo_attr){.id = id};
    return (hlo_attr){.id = id, .u.instrs = instrs};
}

/* An instruction whose name differs from the text, and its name in the text. */
typedef struct renamed {
    hlo_instruction *instr;
    const char *name;
} renamed;

void hlo_text_give_name(hlo_text *text, hlo_instruction *instr, const char *name) {
    instr->name = name;
    if (text->names_later) return;
    instr->name = hlo_unique_name(text->module, HLO_NAME_INSTR, name);
    if (instr->name == name) return;
    const renamed given = {instr, name};
    hlo_stack_push(text, &text->renamed, &given, sizeof given);
}

void hlo_text_names_later(hlo_text *text) {
    if (text->names_later) return;
    text->names_later = true;
    if (!text->bodies.used) return;
    const renamed *given = (const renamed *)text->renamed.items;
    size_t count = text->renamed.used / sizeof *given;
    for (hlo_instruction *instr = hlo_text_body(text)->comp->last; instr; instr = instr->prev) {
        const char *unique = instr->name;
        if (count && given[count - 1].instr == instr) instr->name = given[--count].name;
        hlo_name_release(text->module, HLO_NAME_INSTR, unique, instr->name);
    }
}

void hlo_text_names_now(hlo_text *text, hlo_computation *comp, bool bare) {
    if (!bare) comp->name = hlo_unique_name(text->module, HLO_NAME_COMPUTATION, comp->name);
    for (hlo_instruction *instr = text->names_later ? comp->first : NULL; instr;
         instr = hlo_instr_next(instr))
        instr->name = hlo_unique_name(text->module, HLO_NAME_INSTR, instr->name);
    if (text->bodies.used) return;
    text->names_later = false;
    text->renamed.used = 0;
}
