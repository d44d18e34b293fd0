/* The dispatch from an attribute to the reader of its notation, by notation.def. */
#include "grammar/attr/notation.h"
#include "ir/intern.h"

static const char *read_value(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                              const char *text, hlo_module_parser *parse_module,
                              hlo_notation *out_form) {
    static hlo_notation_reader *const readers[HLO_ATTR_COUNT] = {
#define HLO_NOTATION(attr, reader) [HLO_ATTR_##attr] = hlo_notation_##reader,
#include "grammar/attr/notation.def"
#undef HLO_NOTATION
    };
    *out_form = (hlo_notation){.scratch = scratch,
                               .parse_module = parse_module,
                               .from = text,
                               .at = text,
                               .end = text + hlo_intern_length(text),
                               .out = {.arena = scratch}};
    if (!readers[id](out_form)) return NULL;
    hlo_notation_skip(out_form);
    if (out_form->at < out_form->end) {
        hlo_notation_unexpected(out_form, "the end of the value");
        return NULL;
    }
    return hlo_intern(module, out_form->out.size ? out_form->out.v : "", out_form->out.size);
}

const char *hlo_notation_of(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                            const char *interned, hlo_module_parser *parse_module,
                            hlo_notation *out_form) {
    hlo_string_cache *cache = hlo_intern_cache(module, interned);
    if (cache->formed && cache->formed_as == id) return cache->formed;
    const char *formed = read_value(module, scratch, id, interned, parse_module, out_form);
    cache->formed = formed;
    cache->formed_as = (uint8_t)id;
    return formed;
}
