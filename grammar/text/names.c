/* Names: keywords, which are refused, and names made unique. */
#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/text/actions.h"
#include "ir/intern.h"

bool hlo_text_reserved(hlo_text *text, hlo_span at, const char *name, bool types_too) {
    if (!types_too && text->source[at.offset] == '%') return false;
    size_t length = hlo_intern_length(name), stem = length;
    while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9') stem--;
    if (stem && name[stem - 1] == '.') return false; /* as most names end */
    if (length > sizeof "last_tile_dim_replicate" - 1 || memchr(name, '.', length)) return false;
    const char *end = text->source + at.offset + at.length;
    bool plain = text->source[at.offset] != '%' && end[-1] != ':' && end[0] != ':';
    hlo_type type = hlo_type_find(name, length);
    bool reserved = type != HLO_TYPE_INVALID && type != HLO_TYPE_TUPLE && (plain || types_too);
    reserved |= plain && hlo_notation_is_keyword(name);
    if (reserved) hlo_text_error(text, at, "'%s' is a keyword, not a name", name);
    return reserved;
}

/* An instruction, and its name in the text. */
typedef struct renamed {
    hlo_instr *instr;
    const char *name;
} renamed;

void hlo_text_give_name(hlo_text *text, hlo_instr *instr, const char *name) {
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
    for (hlo_instr *instr = hlo_text_body(text)->comp->last; instr; instr = instr->prev) {
        const char *unique = instr->name;
        if (count && given[count - 1].instr == instr) instr->name = given[--count].name;
        hlo_name_release(text->module, HLO_NAME_INSTR, unique, instr->name);
    }
}

void hlo_text_names_now(hlo_text *text, hlo_computation *comp, bool bare) {
    if (!bare) comp->name = hlo_unique_name(text->module, HLO_NAME_COMPUTATION, comp->name);
    for (hlo_instr *instr = text->names_later ? comp->first : NULL; instr;
         instr = hlo_instr_next(instr))
        instr->name = hlo_unique_name(text->module, HLO_NAME_INSTR, instr->name);
    if (text->bodies.used) return;
    text->names_later = false;
    text->renamed.used = 0;
}
