/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of an edit. */
#include "api/edit.h"

#include <stdlib.h>

#include "ir/intern.h"
#include "ir/text/diag.h"
#include "ir/verify/verify.h"

static hlo_status run_caught(edit *e, edit_step *step) {
    jmp_buf recover;
    if (setjmp(recover)) {
        e->module->exhausted = true;
        return HLO_OUT_OF_MEMORY;
    }
    e->scratch = hlo_arena_new(&recover);
    if (!e->scratch) return HLO_OUT_OF_MEMORY;
    hlo_arena_set_recover(e->module->arena, &recover);
    return step(e);
}

hlo_status edit_run(edit *e, edit_step *step) {
    if (e->module->exhausted) return HLO_OUT_OF_MEMORY;
    jmp_buf *before = hlo_arena_set_recover(e->module->arena, NULL);
    const hlo_status status = run_caught(e, step);
    hlo_arena_set_recover(e->module->arena, before);
    if (status == HLO_OK) {
        e->module->verified = false;
        e->module->edits++;
    }
    hlo_module_free(e->read);
    free(e->text.buffer);
    hlo_arena_free(e->scratch);
    return status;
}

static void put_called(hlo_printer *o, const hlo_computation *comp) {
    hlo_put_name(o, comp->name);
}

bool edit_open_text(edit *e) {
    enum { FIRST = 1 << 10 };
    e->text = (hlo_printer){
        .overflow = HLO_OVERFLOW_GROW, .options = &hlo_print_long_form, .put_called = put_called};
    return hlo_printer_grow(&e->text, FIRST);
}

hlo_status edit_refuse(const edit *e, const hlo_instr *at, const char *format, ...) {
    const hlo_module *module = at && at->parent ? at->parent->module : NULL;
    va_list args;
    va_start(args, format);
    if (module) {
        hlo_diag_vemit(module, e->sink, HLO_ERROR, at->offset, hlo_intern_length(at->name), format,
                       args);
    } else {
        char message[512];
        vsnprintf(message, sizeof message, format, args);
        hlo_diag_refuse(e->sink, NULL, 0, 0, "%s", message);
    }
    va_end(args);
    return HLO_INVALID_USAGE;
}

bool edit_is_before(const hlo_instr *a, const hlo_instr *b) {
    const hlo_instr *after = a->next, *before = a;
    while (after && before) {
        if (after == b) return true;
        if (before == b) return false;
        after = after->next;
        before = before->prev;
    }
    while (after && after != b) after = after->next;
    return after != NULL;
}

hlo_status edit_check_operand(const edit *e, const hlo_instr *value, const hlo_instr *before,
                              const char *role) {
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

hlo_status edit_check_instr(const edit *e, const hlo_instr *instr) {
    const char *fault = hlo_instr_fault(instr, e->scratch);
    if (!fault) return HLO_OK;
    edit_refuse(e, NULL, "%%%s: %s", instr->name, fault);
    return HLO_INVALID_INPUT;
}

void edit_set_layout(const edit *e, const hlo_shapes *layout) {
    hlo_module *module = e->module;
    hlo_attr *changed =
        hlo_arena_copy(module->arena, module->attrs, module->attr_count * sizeof *changed);
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (changed[i].id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT) changed[i].u.shapes = layout;
    module->attrs = changed;
}

void edit_note_replaced(const edit *e, const hlo_instr *from, const hlo_instr *to) {
    hlo_module *module = e->module;
    if (!module->logs_replaced) return;
    hlo_arena_grow(module->arena, &module->replaced, module->replaced_count,
                   &module->replaced_capacity, sizeof *module->replaced);
    module->replaced[module->replaced_count++] = (hlo_replaced){from, to};
}
