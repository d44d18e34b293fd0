/* SPDX-License-Identifier: Apache-2.0 */
/* Runs edits and checks their arguments. */
#include <ctype.h>
#include <string.h>

#include "api/edit.h"
#include "ir/intern.h"
#include "ir/memory.h"
#include "ir/module/clone.h"
#include "ir/text/diag.h"
#include "ir/verify/verify.h"

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

bool edit_is_name(const char *name) {
    bool plain = isalpha((unsigned char)*name) || *name == '_';
    for (const char *at = name; *at; at++) plain &= is_word(*at);
    const bool reserved = strncmp(name, "__", 2) == 0 && strncmp(name, "__xla_", 6) != 0;
    return plain && !reserved && hlo_type_find(name, strlen(name)) == HLO_TYPE_INVALID;
}

hlo_status edit_refuse(const edit *e, const hlo_instruction *at, const char *format, ...) {
    const hlo_module *module = at && at->parent ? at->parent->module : NULL;
    va_list args;
    va_start(args, format);
    if (module) {
        hlo_diag_vemit(module, e->sink, HLO_ERROR, HLO_DIAG_EDIT, at->offset,
                       hlo_intern_length(at->name), format, args);
    } else {
        char message[512];
        vsnprintf(message, sizeof message, format, args);
        hlo_diag_refuse(e->sink, HLO_DIAG_EDIT, NULL, 0, 0, "%s", message);
    }
    va_end(args);
    return HLO_INVALID_USAGE;
}

hlo_status edit_run(edit *e, edit_step *step) {
    if (e->instr && !e->instr->parent)
        return edit_refuse(e, NULL, "%%%s was removed", e->instr->name);
    if (e->instr && !e->comp) e->comp = e->instr->parent;
    if (e->comp && !e->comp->module) return edit_refuse(e, NULL, "%%%s was removed", e->comp->name);
    if (e->comp && e->comp->module != e->module)
        return edit_refuse(e, NULL, "%%%s is in another module, %s",
                           e->instr ? e->instr->name : e->comp->name, e->comp->module->name);
    if (e->module->exhausted) {
        hlo_module_free(e->read);
        return HLO_OUT_OF_MEMORY;
    }
    jmp_buf recover, *before = hlo_arena_set_recover(e->module->arena, NULL);
    hlo_status status = HLO_OUT_OF_MEMORY;
    if (setjmp(recover)) {
        e->module->exhausted = true;
    } else if ((e->scratch = hlo_arena_new(&recover))) {
        hlo_arena_set_recover(e->module->arena, &recover);
        status = step(e);
    }
    hlo_arena_set_recover(e->module->arena, before);
    if (status == HLO_OK) {
        e->module->verified = false;
        e->module->edits++;
    }
    hlo_module_free(e->read);
    hlo_free(e->text.buffer);
    hlo_arena_free(e->scratch);
    return status;
}

bool edit_open_text(edit *e) {
    enum { FIRST = 1 << 10 };
    e->text = (hlo_printer){.overflow = HLO_OVERFLOW_GROW, .options = &hlo_print_long_form};
    return hlo_printer_grow(&e->text, FIRST);
}

bool edit_is_before(const hlo_instruction *a, const hlo_instruction *b) {
    const hlo_instruction *after = a->next, *before = a;
    while (after && before) {
        if (after == b) return true;
        if (before == b) return false;
        after = after->next;
        before = before->prev;
    }
    while (after && after != b) after = after->next;
    return after != NULL;
}

hlo_status edit_check_operand(const edit *e, const hlo_instruction *value,
                              const hlo_instruction *before, const char *role) {
    if (!value) return edit_refuse(e, NULL, "%s must not be NULL", role);
    if (!value->parent) return edit_refuse(e, NULL, "%s, %%%s, was removed", role, value->name);
    if (value->parent->module != e->module)
        return edit_refuse(e, NULL, "%s, %%%s, is in another module, %s", role, value->name,
                           value->parent->module->name);
    if (value->parent != e->comp)
        return edit_refuse(e, value, "%s, %%%s, is in computation %%%s, not in %%%s", role,
                           value->name, value->parent->name, e->comp->name);
    if (before && !edit_is_before(value, before))
        return edit_refuse(e, value, "%s, %%%s, must be defined before %%%s", role, value->name,
                           before->name);
    return HLO_OK;
}

hlo_status edit_check_fault(const edit *e, const hlo_instruction *instr) {
    const char *fault = hlo_instr_fault(instr, e->scratch);
    if (!fault) return HLO_OK;
    edit_refuse(e, NULL, "%%%s: %s", instr->name, fault);
    return HLO_INVALID_INPUT;
}

uint32_t edit_place_of(const edit *e) {
    const hlo_instruction *at = e->options.like ? e->options.like : e->options.before;
    return at ? at->offset : e->comp->offset;
}

hlo_status edit_check_before(const edit *e, const hlo_instruction *before) {
    if (!before || before->parent == e->comp) return HLO_OK;
    if (!before->parent)
        return edit_refuse(e, before, "cannot insert before %%%s, which was removed", before->name);
    return edit_refuse(e, before,
                       "cannot insert before %%%s, which is in computation %%%s, not in %%%s",
                       before->name, before->parent->name, e->comp->name);
}

const hlo_shape *edit_shape(edit *e, const hlo_shape *shape) {
    hlo_copier copier = {.to = e->module};
    return hlo_copy_shape(&copier, shape);
}

hlo_status edit_check_name(const edit *e, const char *name) {
    if (!name || edit_is_name(name)) return HLO_OK;
    return edit_refuse(e, NULL,
                       "invalid name '%s': a name begins with a letter or '_' but not with '__', "
                       "consists of letters, digits, '_', '.' and '-', and is not an element type",
                       name);
}

hlo_status edit_finish(edit *e, edit_step *step, const hlo_instruction **out) {
    const hlo_status status = edit_run(e, step);
    if (out) *out = status == HLO_OK ? e->made : NULL;
    return status;
}
