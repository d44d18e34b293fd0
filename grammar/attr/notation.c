/* The dispatch from an attribute to the reader of its notation, by notation.def. */
#include "grammar/attr/notation.h"
#include "ir/intern.h"

static bool read_value(hlo_notation *f, hlo_attr *out) {
    static hlo_notation_reader *const readers[HLO_ATTR_COUNT] = {
#define HLO_NOTATION(attr, reader) [HLO_ATTR_##attr] = hlo_notation_##reader,
#include "grammar/attr/notation.def"
#undef HLO_NOTATION
    };
    if (!readers[out->id](f)) return false;
    hlo_notation_skip(f);
    if (f->at < f->end) return hlo_notation_unexpected(f, "the end of the value");
    if (f->parsed)
        out->u.parsed = f->parsed;
    else
        out->u.str = hlo_intern(f->module, f->out.size ? f->out.v : "", f->out.size);
    return true;
}

const hlo_attr *hlo_notation_of(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                                const char *interned, hlo_module_parser *parse_module,
                                hlo_notation *out_form) {
    const hlo_attr *known = hlo_intern_read(module, interned, id);
    if (known) return known;
    hlo_attr attr = {.id = id};
    *out_form = (hlo_notation){.module = module,
                               .scratch = scratch,
                               .parse_module = parse_module,
                               .from = interned,
                               .at = interned,
                               .end = interned + hlo_intern_length(interned),
                               .out = {.arena = scratch}};
    if (!read_value(out_form, &attr)) return NULL;
    if (out_form->parsed && (known = hlo_intern_read(module, attr.u.parsed->text, id)))
        attr = *known;
    else if (out_form->parsed && attr.u.parsed->text != interned)
        hlo_intern_keep_read(module, attr.u.parsed->text, attr);
    return hlo_intern_keep_read(module, interned, attr);
}
