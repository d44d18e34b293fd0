/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches an attribute to the reader of its notation (notation.def). */
#include "grammar/attr/notation.h"
#include "ir/intern.h"

const hlo_attr *hlo_notation_of(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                                const char *interned, hlo_module_parser *parse_module,
                                hlo_notation *out_form) {
    hlo_attr *read = &hlo_intern_cache(module, interned)->read;
    if (read->id == id) return read;
    *out_form = (hlo_notation){.value.id = id,
                               .module = module,
                               .scratch = scratch,
                               .parse_module = parse_module,
                               .from = interned,
                               .at = interned,
                               .end = interned + hlo_intern_length(interned),
                               .out = {.arena = scratch}};
    static hlo_notation_reader *const readers[HLO_ATTR_COUNT] = {
#define HLO_NOTATION(attr, reader) [HLO_ATTR_##attr] = hlo_notation_##reader,
#include "grammar/attr/notation.def"
#undef HLO_NOTATION
    };
    hlo_notation *f = out_form;
    if (!readers[id](f)) return NULL;
    hlo_notation_skip(f);
    if (f->at < f->end) return hlo_notation_unexpected(f, "the end of the value"), NULL;
    if (hlo_attrs_info[id].kind == HLO_KIND_FORM)
        f->value.u.str = hlo_intern(module, f->out.size ? f->out.v : "", f->out.size);
    *read = f->value;
    return read;
}

const hlo_attr *hlo_notation_read(hlo_module *module, hlo_attr_id id, const char *interned) {
    hlo_notation form;
    return hlo_notation_of(module, module->arena, id, interned, NULL, &form);
}
