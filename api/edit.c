/* SPDX-License-Identifier: Apache-2.0 */
/* Implements hlo/edit.h: adds instructions, constants, parameters and computations; replaces uses,
 * operands, attributes and roots; removes instructions. */
#include "api/edit.h"

#include <stdlib.h>
#include <string.h>

#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/float/literal.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/memory.h"
#include "ir/module/clone.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/suggest.h"
#include "ir/verify/verify.h"

/* If e->comp is the entry and the module has an entry_computation_layout, sets the result in this
 * layout to `shape` or, with `parameter`, adds a parameter of that shape. */
static void set_layout(const edit *e, const hlo_shape *shape, bool parameter) {
    hlo_module *module = e->module;
    const hlo_attr *attr =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    if (module->entry != e->comp || !attr) return;
    const hlo_shapes *old = attr->u.shapes;
    const uint32_t count = old->count + parameter;
    hlo_shapes *layout = hlo_arena_alloc(module->arena, sizeof *layout + count * sizeof *layout->v);
    memcpy(layout, old, sizeof *old + old->count * sizeof *old->v);
    layout->count = count;
    layout->v[count - 1] = old->v[old->count - 1];
    layout->v[parameter ? count - 2 : count - 1] = shape;
    hlo_attr *changed =
        hlo_arena_copy(module->arena, module->attrs, module->attr_count * sizeof *changed);
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (changed[i].id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT) changed[i].u.shapes = layout;
    module->attrs = changed;
}

static void note_replaced(const edit *e, const hlo_instruction *from, const hlo_instruction *to) {
    hlo_module *module = e->module;
    if (!module->logs_replaced) return;
    hlo_arena_grow(module->arena, &module->replaced, module->replaced_count,
                   &module->replaced_capacity, sizeof *module->replaced);
    module->replaced[module->replaced_count++] = (hlo_replaced){from, to};
}

/* --------------------------------------------------------------------------------- instructions */

static hlo_status make_instruction(edit *e) {
    const hlo_instruction_options *o = &e->options;
    fragment_parts parts;
    const char *opcode = hlo_opcode_name(o->opcode);
    if (!opcode) return edit_refuse(e, NULL, "opcode %d does not exist", (int)o->opcode);
    if (o->opcode == HLO_OP_PARAMETER || o->opcode == HLO_OP_CONSTANT)
        return edit_refuse(e, NULL, "create a %s with hlo_instruction_new_%s()", opcode, opcode);
    if (o->operand_count && !o->operands)
        return edit_refuse(e, NULL, "hlo_instruction_options.operands must not be NULL");
    if (o->operand_count > UINT16_MAX)
        return edit_refuse(e, NULL, "%zu operands exceed the maximum of %d", o->operand_count,
                           UINT16_MAX);
    if (o->like && !o->like->parent)
        return edit_refuse(e, NULL, "hlo_instruction_options.like, %%%s, was removed",
                           o->like->name);
    if (o->like && o->like->parent->module != e->module)
        return edit_refuse(e, NULL, "hlo_instruction_options.like, %%%s, is in another module",
                           o->like->name);
    hlo_status status = edit_check_name(e, o->name);
    if (status == HLO_OK) status = edit_check_before(e, o->before);
    for (size_t i = 0; status == HLO_OK && i < o->operand_count; i++) {
        char role[32];
        snprintf(role, sizeof role, "operand %zu", i);
        status = edit_check_operand(e, o->operands[i], o->before, role);
    }
    const fragment f = {.opcode = opcode,
                        .shape = o->shape ? hlo_shape_copy_text(e->scratch, o->shape, true) : NULL,
                        .attributes = o->attributes,
                        .operands = (hlo_instruction *const *)(uintptr_t)o->operands,
                        .operand_count = (uint32_t)o->operand_count};
    if (status == HLO_OK) status = edit_read(e, &f, &parts);
    if (status != HLO_OK) return status;
    const char *interned = hlo_intern_string(e->module, o->name ? o->name : opcode);
    e->made = hlo_instr_new_interned(e->comp, edit_own_instr(o->before), parts.op, parts.shape,
                                     f.operand_count, f.operands, interned);
    e->made->offset = edit_place_of(e);
    hlo_instr_take_attrs(e->made, parts.attrs, parts.attr_count);
    if (o->like) hlo_instr_inherit(e->made, o->like);
    status = edit_check_fault(e, e->made);
    if (status != HLO_OK) {
        const char *name = e->made->name;
        hlo_instr_remove(e->made);
        hlo_name_release(e->module, HLO_NAME_INSTR, name, interned);
    } else if (o->like)
        note_replaced(e, o->like, e->made);
    return status;
}

hlo_status hlo_instruction_new(hlo_module *module, const hlo_computation *computation,
                               const hlo_instruction_options *options, const hlo_diag_sink *sink,
                               const hlo_instruction **out_instruction) {
    HLO_IN_C_LOCALE;
    edit e = {.module = module, .sink = sink, .comp = edit_own_comp(computation)};
    const hlo_status status =
        hlo_options_take("hlo_instruction_options", &e.options, sizeof e.options, options, sink);
    if (status == HLO_OK) return edit_finish(&e, make_instruction, out_instruction);
    if (out_instruction) *out_instruction = NULL;
    return status;
}

/* The value of a new constant. */
typedef struct constant {
    edit e; /* must be first: an edit_step receives a pointer to this member */
    hlo_element_type type;
    size_t rank;
    const int64_t *dims;
    const void *data;
} constant;

static hlo_status make_constant(edit *e) {
    const constant *c = (const constant *)e;
    const hlo_type type = c->type;
    hlo_status status = edit_check_before(e, e->options.before);
    if (status != HLO_OK) return status;
    if (!hlo_element_type_bits(type))
        return edit_refuse(e, NULL, "element type %d does not exist", (int)type);
    if (c->rank > HLO_LARGEST_RANK)
        return edit_refuse(e, NULL, "an array of %zu dimensions exceeds the maximum of %d", c->rank,
                           HLO_LARGEST_RANK);
    if (c->rank && !c->dims) return edit_refuse(e, NULL, "dims must not be NULL");
    for (size_t i = 0; i < c->rank; i++)
        if (c->dims[i] < 0)
            return edit_refuse(e, NULL, "dimension %zu is %lld, expected a non-negative size", i,
                               (long long)c->dims[i]);
    const hlo_shape *shape = hlo_shape_array(e->module, type, (uint32_t)c->rank, c->dims);
    const int64_t size = hlo_shape_bytes(shape);
    if (size < 0) return edit_refuse(e, NULL, "the constant is too large");
    /* The caller stores an integer of fewer than 8 bits sign-extended in a byte. */
    const hlo_type_info *info = &hlo_types[type];
    const bool is_signed = info->class == HLO_CLASS_SIGNED;
    const int values = info->bits < 8 ? 1 << info->bits : 0, least = is_signed ? -values / 2 : 0;
    for (int64_t i = 0; c->data && values && i < size; i++) {
        const int value = ((const int8_t *)c->data)[i];
        if (value < least || value >= least + values)
            return edit_refuse(e, NULL, "element %lld is not a valid %s", (long long)i, info->name);
    }
    hlo_literal *literal = hlo_literal_new(e->module, shape);
    if (c->data)
        memcpy(literal->data, c->data, (size_t)size);
    else
        memset(literal->data, 0, (size_t)size);
    e->made = hlo_constant_new(e->comp, edit_own_instr(e->options.before), literal);
    e->made->offset = edit_place_of(e);
    return HLO_OK;
}

hlo_status hlo_instruction_new_constant(hlo_module *module, const hlo_computation *computation,
                                        const hlo_instruction *before, hlo_element_type type,
                                        size_t rank, const int64_t *dims, const void *data,
                                        const hlo_diag_sink *sink,
                                        const hlo_instruction **out_instruction) {
    constant c = {.e = {.module = module,
                        .sink = sink,
                        .comp = edit_own_comp(computation),
                        .options = {.before = before}},
                  .type = type,
                  .rank = rank,
                  .dims = dims,
                  .data = data};
    return edit_finish(&c.e, make_constant, out_instruction);
}

static hlo_status make_parameter(edit *e) {
    const uint32_t number = e->comp->parameter_count;
    fragment_parts parts;
    const fragment f = {.opcode = "parameter",
                        .shape = hlo_shape_copy_text(e->scratch, e->shape, true)};
    hlo_status status = edit_check_name(e, e->name);
    if (status == HLO_OK) status = edit_read(e, &f, &parts);
    if (status != HLO_OK) return status;
    const char *interned = hlo_intern_string(e->module, e->name ? e->name : "parameter");
    e->made =
        hlo_instr_new_interned(e->comp, e->comp->first, parts.op, parts.shape, 0, NULL, interned);
    e->made->offset = e->comp->offset;
    hlo_instr_set_parameter(e->made, number);
    set_layout(e, parts.shape, true);
    return HLO_OK;
}

hlo_status hlo_instruction_new_parameter(hlo_module *module, const hlo_computation *computation,
                                         const hlo_shape *shape, const char *name,
                                         const hlo_diag_sink *sink,
                                         const hlo_instruction **out_instruction) {
    edit e = {.module = module,
              .sink = sink,
              .comp = edit_own_comp(computation),
              .name = name,
              .shape = shape};
    return edit_finish(&e, make_parameter, out_instruction);
}

/* --------------------------------------------------------------------------------- computations */

static hlo_status make_computation(edit *e) {
    const hlo_module *read = e->read;
    if (read->tables.frame_count || read->tables.location_count)
        return edit_refuse(e, NULL,
                           "the text has stack frame tables, which cannot be added to a module");
    hlo_computation *last = e->module->last;
    hlo_copier copier = hlo_copier_new(e->module, read, e->scratch);
    if (!e->module->read) e->module->read = read->read;
    hlo_copy_computations(&copier, read);
    if (last) { /* move the new computations before the existing ones */
        hlo_module *module = e->module;
        hlo_computation *first = last->next;
        last->next = first->prev = NULL;
        module->last->next = module->first;
        module->first->prev = module->last;
        module->first = first;
        module->last = last;
    }
    e->made_comp = copier.comps[read->entry->id];
    for (const hlo_computation *comp = read->first; comp; comp = comp->next) {
        hlo_computation *made = copier.comps[comp->id];
        made->offset = 0; /* the offset refers to the text of another module */
        for (hlo_instruction *instr = made->first; instr; instr = instr->next) instr->offset = 0;
    }
    return HLO_OK;
}

hlo_status hlo_computation_new_text(hlo_module *module, const char *text, size_t size,
                                    const hlo_diag_sink *sink,
                                    const hlo_computation **out_computation) {
    HLO_IN_C_LOCALE;
    edit e = {.module = module, .sink = sink};
    if (out_computation) *out_computation = NULL;
    hlo_status status = hlo_module_parse(text, size, "computation", sink, &e.read);
    if (status == HLO_OK) status = hlo_module_verify(e.read, NULL, sink);
    if (status != HLO_OK) {
        hlo_module_free(e.read);
        return status;
    }
    status = edit_run(&e, make_computation);
    if (out_computation && status == HLO_OK) *out_computation = e.made_comp;
    return status;
}

/* -------------------------------------------------------------------------------------- changes */

static hlo_status replace(edit *e) {
    hlo_instruction *from = e->instr, *to = e->other;
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
    /* `to` must be before each user of `from`. If `to` is after `from`, no user of `from` may be
     * between them. */
    const hlo_instruction *between = edit_is_before(to, from) ? to : from->next;
    for (; between != to; between = between->next)
        for (uint32_t i = 0; i < between->operand_count; i++)
            if (hlo_instr_operand(between, i) == from)
                return edit_refuse(e, between, "%%%s must be defined before %%%s, which uses %%%s",
                                   to->name, between->name, from->name);
    hlo_instr_replace_uses(from, to);
    note_replaced(e, from, to);
    return HLO_OK;
}

hlo_status hlo_instruction_replace(hlo_module *module, const hlo_instruction *from,
                                   const hlo_instruction *to, const hlo_diag_sink *sink) {
    edit e = {
        .module = module, .sink = sink, .instr = edit_own_instr(from), .other = edit_own_instr(to)};
    return edit_run(&e, replace);
}

static hlo_status set_operand(edit *e) {
    hlo_status status = HLO_OK;
    if (e->index >= e->instr->operand_count)
        return edit_refuse(e, e->instr, "%%%s has %u operands, so index %u is out of range",
                           e->instr->name, e->instr->operand_count, e->index);
    status = edit_check_operand(e, e->other, e->instr, "the operand");
    if (status != HLO_OK) return status;
    hlo_instruction *before = hlo_instr_operand(e->instr, e->index);
    hlo_instr_set_operand(e->instr, e->index, e->other);
    status = edit_check_fault(e, e->instr);
    if (status != HLO_OK) hlo_instr_set_operand(e->instr, e->index, before);
    return status;
}

hlo_status hlo_instruction_set_operand(hlo_module *module, const hlo_instruction *instruction,
                                       size_t index, const hlo_instruction *operand,
                                       const hlo_diag_sink *sink) {
    edit e = {.module = module,
              .sink = sink,
              .instr = edit_own_instr(instruction),
              .other = edit_own_instr(operand),
              .index = index < UINT32_MAX ? (uint32_t)index : UINT32_MAX};
    return edit_run(&e, set_operand);
}

/* Finds the attribute e->name. Emits an error and returns HLO_INVALID_USAGE if it does not exist.
 */
static hlo_status find_attribute(const edit *e, hlo_attr_id *out) {
    *out = e->instr ? hlo_attr_find_of(e->instr->op, e->name)
                    : hlo_attr_find(e->name, strlen(e->name));
    if (*out != HLO_ATTR_INVALID) return HLO_OK;
    hlo_suggestion s = hlo_suggest(e->name);
    for (int i = 0; i < HLO_ATTR_COUNT; i++) hlo_suggest_offer(&s, hlo_attrs_info[i].name);
    return edit_refuse(e, e->instr, "unknown attribute '%s'%s", e->name, hlo_suggest_meant(&s));
}

static hlo_status refuse_value(const edit *e) {
    edit_refuse(e, e->instr, "the text for '%s' of %%%s is not a single value", e->name,
                e->instr->name);
    return HLO_INVALID_INPUT;
}

static hlo_status set_attribute(edit *e) {
    hlo_instruction *instr = e->instr;
    hlo_attr_id id;
    hlo_status status = find_attribute(e, &id);
    if (status != HLO_OK) return status;
    if (!e->value && !hlo_instr_attr(instr, id)) return HLO_OK;
    if (e->value && !edit_is_closed(e->value)) return refuse_value(e);
    /* Print the other attributes after the new one. */
    hlo_printer *o = &e->text;
    hlo_attr *kept = hlo_arena_array(e->scratch, instr->attr_count, sizeof *kept);
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < instr->attr_count; i++)
        if (instr->attrs[i].id != id) kept[kept_count++] = instr->attrs[i];
    if (!edit_open_text(e)) return HLO_OUT_OF_MEMORY;
    if (e->value) {
        hlo_put_string(o, e->name);
        hlo_put_char(o, '=');
        hlo_put_string(o, e->value);
    }
    hlo_put_attrs(o, kept, kept_count, e->value ? ", " : "", ", ");
    hlo_put_char(o, '\0');
    if (o->failed) return HLO_OUT_OF_MEMORY;
    const char *attributes = hlo_intern_string(e->module, o->buffer);
    hlo_free(o->buffer);
    o->buffer = NULL;
    hlo_instruction **operands =
        hlo_arena_array(e->scratch, instr->operand_count, sizeof *operands);
    for (uint32_t i = 0; i < instr->operand_count; i++) operands[i] = hlo_instr_operand(instr, i);
    const fragment f = {.opcode = hlo_ops[instr->op].name,
                        .literal = instr->op == HLO_OP_CONSTANT ? instr->u.literal : NULL,
                        .shape = hlo_shape_copy_text(e->scratch, instr->shape, true),
                        .attributes = attributes,
                        .operands = operands,
                        .operand_count = instr->operand_count};
    fragment_parts parts;
    status = edit_read(e, &f, &parts);
    if (status != HLO_OK) return status;
    /* Only the attribute itself may be added, and no other one may be lost. */
    uint32_t others = 0;
    for (uint32_t i = 0; i < parts.attr_count; i++) others += parts.attrs[i].id != id;
    if (others != kept_count) return refuse_value(e);
    const hlo_attr *before = instr->attrs;
    const uint32_t count = instr->attr_count;
    hlo_instr_take_attrs(instr, parts.attrs, parts.attr_count);
    status = edit_check_fault(e, instr);
    if (status != HLO_OK) hlo_instr_take_attrs(instr, before, count);
    return status;
}

hlo_status hlo_instruction_set_attribute(hlo_module *module, const hlo_instruction *instruction,
                                         const char *name, const char *value,
                                         const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    edit e = {.module = module,
              .sink = sink,
              .instr = edit_own_instr(instruction),
              .name = name,
              .value = value};
    return edit_run(&e, set_attribute);
}

/* Parses e->value as an attribute in the header of a module, e->read, that has nothing else. */
static hlo_status read_header(edit *e, hlo_attr_id id) {
    hlo_printer *o = &e->text;
    kept_error error = {.text = hlo_arena_format(e->scratch, "%s=%s", e->name, e->value)};
    const hlo_diag_sink own = {.emit = edit_keep_error, .user = &error};
    hlo_status status = HLO_INVALID_INPUT;
    if (!edit_open_text(e)) return HLO_OUT_OF_MEMORY;
    HLO_PUT(o, "HloModule m, ");
    hlo_put_string(o, error.text);
    HLO_PUT(o, "\n\nENTRY main { ROOT tuple = () tuple() }");
    if (o->failed) return HLO_OUT_OF_MEMORY;
    if (edit_is_closed(e->value))
        status = hlo_module_parse(o->buffer, (size_t)(o->at - o->buffer), "header", &own, &e->read);
    if (status != HLO_OK && status != HLO_INVALID_INPUT) return status;
    const hlo_module *read = e->read;
    if (read && read->attr_count <= 1 && (!read->attr_count || read->attrs->id == id) &&
        read->first == read->last && read->instr_count == 1 &&
        !(read->tables.file_count + read->tables.function_count + read->tables.location_count +
          read->tables.frame_count))
        return HLO_OK;
    edit_refuse(e, NULL, "invalid value of '%s'%s", e->name, error.message);
    return HLO_INVALID_INPUT;
}

static hlo_status set_header(edit *e) {
    hlo_module *module = e->module;
    hlo_attr_id id;
    hlo_status status = find_attribute(e, &id);
    if (status == HLO_OK && e->value) status = read_header(e, id);
    if (status != HLO_OK) return status;
    hlo_attr *attrs = hlo_arena_array(module->arena, module->attr_count + 1, sizeof *attrs);
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id != id) attrs[count++] = module->attrs[i];
    if (e->value && e->read->attr_count) { /* attributes with default values are not stored */
        hlo_copier copier = hlo_copier_new(module, e->read, e->scratch);
        if (!module->read) module->read = e->read->read;
        attrs[count++] = *hlo_copy_attrs(&copier, e->read->attrs, 1);
    }
    module->attrs = attrs;
    module->attr_count = count;
    return HLO_OK;
}

hlo_status hlo_module_set_attribute(hlo_module *module, const char *name, const char *value,
                                    const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    edit e = {.module = module, .sink = sink, .name = name, .value = value};
    return edit_run(&e, set_header);
}

static hlo_status replace_root(edit *e) {
    const hlo_status status = edit_check_operand(e, e->other, NULL, "the root");
    if (status != HLO_OK) return status;
    hlo_comp_set_root(e->comp, e->other);
    set_layout(e, e->other->shape, false);
    return HLO_OK;
}

hlo_status hlo_computation_set_root(hlo_module *module, const hlo_computation *computation,
                                    const hlo_instruction *root, const hlo_diag_sink *sink) {
    edit e = {.module = module,
              .comp = edit_own_comp(computation),
              .sink = sink,
              .other = edit_own_instr(root)};
    return edit_run(&e, replace_root);
}

static hlo_status remove_instruction(edit *e) {
    hlo_instruction *instr = e->instr;
    if (instr->uses)
        return edit_refuse(e, instr, "cannot remove %%%s: %%%s uses it", instr->name,
                           instr->uses->user->name);
    if (instr == e->comp->root)
        return edit_refuse(e, instr, "cannot remove %%%s: it is the root of %%%s", instr->name,
                           e->comp->name);
    if (instr->op == HLO_OP_PARAMETER)
        return edit_refuse(e, instr, "cannot remove %%%s: it is a parameter of %%%s", instr->name,
                           e->comp->name);
    const bool controls = e->module->attrs_seen[HLO_ATTR_CONTROL_PREDECESSORS];
    for (const hlo_instruction *after = controls ? e->comp->first : NULL; after;
         after = hlo_instr_next(after)) {
        const hlo_attr *control = hlo_instr_attr(after, HLO_ATTR_CONTROL_PREDECESSORS);
        for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
            if (control->u.instrs->v[i] == instr)
                return edit_refuse(e, instr,
                                   "cannot remove %%%s: it is a control predecessor of %%%s",
                                   instr->name, after->name);
    }
    hlo_instr_remove(instr);
    return HLO_OK;
}

hlo_status hlo_instruction_remove(hlo_module *module, const hlo_instruction *instruction,
                                  const hlo_diag_sink *sink) {
    edit e = {.module = module, .sink = sink, .instr = edit_own_instr(instruction)};
    return edit_run(&e, remove_instruction);
}
