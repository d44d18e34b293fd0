/* SPDX-License-Identifier: Apache-2.0 */
/* Uses, operands, attributes and roots replaced; instructions removed. */
#include <stdlib.h>
#include <string.h>

#include "api/edit.h"
#include "hlo/suggest.h"
#include "ir/float/c_locale.h"
#include "ir/intern.h"

/* Reports an instruction that was removed. */
static hlo_status refuse_removed(const hlo_instr *instr, const hlo_diag_sink *sink) {
    const edit e = {.sink = sink};
    return edit_refuse(&e, NULL, "%%%s was removed", instr->name);
}

static edit edit_of(hlo_instr *instr, const hlo_diag_sink *sink) {
    return (edit){
        .module = instr->parent->module, .comp = instr->parent, .sink = sink, .instr = instr};
}

/* ----------------------------------------------------------------------------------------- uses */

/* Checks that `to` is before each user of `from`: if it is after `from`, no user is between them.
 */
static hlo_status check_users(const edit *e, const hlo_instr *from, const hlo_instr *to) {
    if (edit_is_before(to, from)) return HLO_OK;
    for (const hlo_instr *between = from->next; between != to; between = between->next)
        for (uint32_t i = 0; i < between->operand_count; i++)
            if (hlo_instr_operand(between, i) == from)
                return edit_refuse(e, between, "%%%s must be defined before %%%s, which uses %%%s",
                                   to->name, between->name, from->name);
    return HLO_OK;
}

static hlo_status replace(edit *e) {
    hlo_instr *from = e->instr, *to = e->other;
    hlo_status status = edit_check_operand(e, to, NULL, "the replacement");
    if (status != HLO_OK || from == to) return status;
    if (!hlo_shape_compatible(from->shape, to->shape)) {
        char is[128], was[128];
        hlo_shape_format(to->shape, false, is, sizeof is);
        hlo_shape_format(from->shape, false, was, sizeof was);
        edit_refuse(e, to, "%%%s is %s, but %%%s, which it replaces, is %s", to->name, is,
                    from->name, was);
        return HLO_INVALID_INPUT;
    }
    status = check_users(e, from, to);
    if (status != HLO_OK) return status;
    hlo_instr_replace_uses(from, to);
    edit_note_replaced(e, from, to);
    return HLO_OK;
}

hlo_status hlo_instruction_replace(hlo_instruction *from, hlo_instruction *to,
                                   const hlo_diag_sink *sink) {
    if (!from->parent) return refuse_removed(from, sink);
    edit e = edit_of(from, sink);
    e.other = to;
    return edit_run(&e, replace);
}

static hlo_status set_operand(edit *e) {
    hlo_status status = HLO_OK;
    if (e->index >= e->instr->operand_count)
        return edit_refuse(e, e->instr, "%%%s has %u operands, so index %u is out of range",
                           e->instr->name, e->instr->operand_count, e->index);
    status = edit_check_operand(e, e->other, e->instr, "the operand");
    if (status != HLO_OK) return status;
    hlo_instr *before = hlo_instr_operand(e->instr, e->index);
    hlo_instr_set_operand(e->instr, e->index, e->other);
    status = edit_check_instr(e, e->instr);
    if (status != HLO_OK) hlo_instr_set_operand(e->instr, e->index, before);
    return status;
}

hlo_status hlo_instruction_set_operand(hlo_instruction *instruction, size_t index,
                                       hlo_instruction *operand, const hlo_diag_sink *sink) {
    if (!instruction->parent) return refuse_removed(instruction, sink);
    edit e = edit_of(instruction, sink);
    e.index = index < UINT32_MAX ? (uint32_t)index : UINT32_MAX;
    e.other = operand;
    return edit_run(&e, set_operand);
}

/* ----------------------------------------------------------------------------------- attributes */

static hlo_status find_attribute(const edit *e, hlo_attr_id *out) {
    *out = hlo_attr_find(e->name, strlen(e->name));
    if (*out != HLO_ATTR_INVALID) return HLO_OK;
    hlo_suggestion s = hlo_suggest(e->name);
    for (int id = 0; id < HLO_ATTR_COUNT; id++) hlo_suggest_offer(&s, hlo_attrs_info[id].name);
    return edit_refuse(e, e->instr, "unknown attribute '%s'%s", e->name, hlo_suggest_meant(&s));
}

/* Prints the attributes of the instruction, with the new value of `id`. */
static const char *attributes_with(edit *e, hlo_attr_id id) {
    const hlo_instr *instr = e->instr;
    hlo_printer *o = &e->text;
    hlo_attr *kept = hlo_arena_array(e->scratch, instr->attr_count, sizeof *kept);
    uint32_t count = 0;
    for (uint32_t i = 0; i < instr->attr_count; i++)
        if (instr->attrs[i].id != id) kept[count++] = instr->attrs[i];
    if (!edit_open_text(e)) return NULL;
    if (e->value) {
        hlo_put_string(o, e->name);
        hlo_put_char(o, '=');
        hlo_put_string(o, e->value);
        hlo_put_attrs(o, kept, count, ", ", ", ");
    } else {
        hlo_put_attrs(o, kept, count, "", ", ");
    }
    hlo_put_char(o, '\0');
    const char *text = o->failed ? NULL : hlo_intern_string(e->module, o->buffer);
    free(o->buffer);
    o->buffer = NULL;
    return text;
}

static hlo_status set_attribute(edit *e) {
    hlo_instr *instr = e->instr;
    hlo_attr_id id;
    hlo_status status = find_attribute(e, &id);
    if (status != HLO_OK || (!e->value && !hlo_instr_attr(instr, id))) return status;
    const char *attributes = attributes_with(e, id);
    if (!attributes) return HLO_OUT_OF_MEMORY;
    size_t length = hlo_shape_format(instr->shape, true, NULL, 0) + 1;
    char *shape = hlo_arena_alloc(e->scratch, length);
    hlo_shape_format(instr->shape, true, shape, length);
    hlo_instr **operands = hlo_arena_array(e->scratch, instr->operand_count, sizeof *operands);
    for (uint32_t i = 0; i < instr->operand_count; i++) operands[i] = hlo_instr_operand(instr, i);
    const fragment f = {.opcode = hlo_ops[instr->op].name,
                        .literal = instr->op == HLO_OP_CONSTANT ? instr->u.literal : NULL,
                        .shape = shape,
                        .attributes = attributes,
                        .operands = operands,
                        .operand_count = instr->operand_count};
    fragment_parts parts;
    status = fragment_read(e, &f, &parts);
    if (status != HLO_OK) return status;
    const hlo_attr *before = instr->attrs;
    const uint32_t count = instr->attr_count;
    hlo_instr_take_attrs(instr, parts.attrs, parts.attr_count);
    status = edit_check_instr(e, instr);
    if (status != HLO_OK) hlo_instr_take_attrs(instr, before, count);
    return status;
}

hlo_status hlo_instruction_set_attribute(hlo_instruction *instruction, const char *name,
                                         const char *value, const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    if (!instruction->parent) return refuse_removed(instruction, sink);
    edit e = edit_of(instruction, sink);
    e.name = name;
    e.value = value;
    return edit_run(&e, set_attribute);
}

/* ---------------------------------------------------------------------------------------- roots */

static hlo_status replace_root(edit *e) {
    const hlo_status status = edit_check_operand(e, e->other, NULL, "the root");
    if (status != HLO_OK) return status;
    hlo_computation_set_root(e->comp, e->other);
    const hlo_module *module = e->module;
    const hlo_attr *attr =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    if (module->entry != e->comp || !attr) return HLO_OK;
    const hlo_shapes *old = attr->u.shapes;
    const size_t size = sizeof *old + old->count * sizeof *old->v;
    hlo_shapes *changed = hlo_arena_copy(module->arena, old, size);
    changed->v[old->count - 1] = e->other->shape;
    edit_set_layout(e, changed);
    return HLO_OK;
}

hlo_status hlo_computation_replace_root(hlo_computation *computation, hlo_instruction *root,
                                        const hlo_diag_sink *sink) {
    edit e = {.module = computation->module, .comp = computation, .sink = sink, .other = root};
    return edit_run(&e, replace_root);
}

/* ------------------------------------------------------------------------------------- removing */

static hlo_status refuse_predecessor(const edit *e) {
    if (!e->module->attrs_seen[HLO_ATTR_CONTROL_PREDECESSORS]) return HLO_OK;
    for (const hlo_instr *instr = e->comp->first; instr; instr = hlo_instr_next(instr)) {
        const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
        for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
            if (control->u.instrs->v[i] == e->instr)
                return edit_refuse(e, e->instr,
                                   "cannot remove %%%s: it is a control predecessor of %%%s",
                                   e->instr->name, instr->name);
    }
    return HLO_OK;
}

static hlo_status remove_instruction(edit *e) {
    hlo_instr *instr = e->instr;
    if (instr->uses)
        return edit_refuse(e, instr, "cannot remove %%%s: %%%s uses it", instr->name,
                           instr->uses->user->name);
    if (instr == e->comp->root)
        return edit_refuse(e, instr, "cannot remove %%%s: it is the root of %%%s", instr->name,
                           e->comp->name);
    if (instr->op == HLO_OP_PARAMETER)
        return edit_refuse(e, instr, "cannot remove %%%s: it is a parameter of %%%s", instr->name,
                           e->comp->name);
    const hlo_status status = refuse_predecessor(e);
    if (status == HLO_OK) hlo_instr_remove(instr);
    return status;
}

hlo_status hlo_instruction_remove(hlo_instruction *instruction, const hlo_diag_sink *sink) {
    if (!instruction->parent) return refuse_removed(instruction, sink);
    edit e = edit_of(instruction, sink);
    return edit_run(&e, remove_instruction);
}
