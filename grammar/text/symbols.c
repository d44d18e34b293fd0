/* Symbols: names bound to instructions and computations, hidden and looked up. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/intern.h"

hlo_computation *hlo_text_called(hlo_text *text, hlo_span at, const char *name) {
    if (hlo_text_reserved(text, at, name, false)) return NULL;
    hlo_computation *comp = hlo_intern_cache(text->module, name)->comp;
    if (comp || text->nameless) return comp;
    if (hlo_text_is_cut(text, at)) return NULL;
    hlo_suggestion s = hlo_suggest(name);
    size_t offers = hlo_text_offers(text);
    for (comp = text->module->last; comp && offers--; comp = comp->prev)
        if (hlo_intern_cache(text->module, comp->name)->comp) hlo_suggest_offer(&s, comp->name);
    hlo_text_error(text, at, "no computation '%s' stands before this%s", name,
                   hlo_suggest_meant(&s));
    hlo_span defined;
    if (hlo_text_defined_computation(text, at.offset, name, &defined))
        hlo_text_note(text, defined, "it is defined here, behind its use");
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

hlo_instr *hlo_text_find_instr(hlo_text *text, const char *name) {
    const hlo_symbol_binding binding = hlo_intern_binding(name);
    return binding.scope == hlo_text_body(text)->comp->id + 1 ? binding.instr : NULL;
}

/* The outer binding of a name that an inline computation hides until its end. */
typedef struct hidden_name {
    const char *name;
    hlo_symbol_binding binding;
} hidden_name;

void hlo_text_bind(hlo_text *text, const char *name, hlo_instr *instr) {
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

hlo_instr *hlo_text_named(hlo_text *text, hlo_span at, const char *name) {
    if (!text->bodies.used) {
        hlo_text_error(text, at, "an instruction cannot be named outside a computation");
        return &text->broken;
    }
    if (hlo_text_reserved(text, at, name, false)) return &text->broken;
    hlo_instr *instr = hlo_text_find_instr(text, name);
    if (instr) return instr;
    if (hlo_text_body(text)->nameless) return &text->broken;
    if (hlo_text_is_cut(text, at)) return &text->broken;
    const hlo_computation *comp = hlo_text_body(text)->comp;
    hlo_suggestion s = hlo_suggest(name);
    size_t offers = hlo_text_offers(text);
    for (instr = comp->last; instr && offers--; instr = instr->prev)
        if (hlo_text_find_instr(text, instr->name) == instr) hlo_suggest_offer(&s, instr->name);
    hlo_text_error(text, at, "no instruction '%s' stands before this in computation '%s'%s", name,
                   comp->name, hlo_suggest_meant(&s));
    hlo_span defined;
    if (hlo_text_defined(text, at.offset, name, &defined))
        hlo_text_note(text, defined, "it is defined here, behind its use");
    return &text->broken;
}

void hlo_text_instr_named(hlo_text *text, hlo_span at, const char *name) {
    hlo_instr *instr = hlo_text_named(text, at, name);
    hlo_stack_push(text, &text->instrs, &instr, sizeof(hlo_instr *));
}

hlo_attr hlo_text_instrs(hlo_text *text, hlo_attr_id id) {
    uint32_t count = (uint32_t)(text->instrs.used / sizeof(hlo_instr *));
    hlo_instrs *instrs =
        hlo_arena_alloc(text->module->arena, sizeof *instrs + count * sizeof *instrs->v);
    instrs->count = count;
    memcpy(instrs->v, text->instrs.items, text->instrs.used);
    text->instrs.used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (instrs->v[i] == &text->broken) return (hlo_attr){.id = id};
    return (hlo_attr){.id = id, .u.instrs = instrs};
}
