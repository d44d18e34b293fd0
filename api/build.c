/* SPDX-License-Identifier: Apache-2.0 */
/* New instructions, constants, parameters, computations. */
#include <string.h>

#include "api/edit.h"
#include "hlo/suggest.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/float/literal.h"
#include "ir/intern.h"
#include "ir/module/clone.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"

/* --------------------------------------------------------------------------------- instructions */

/* Removes an instruction that was just created with the name `interned`. */
static void unmake(hlo_instr *instr, const char *interned) {
    hlo_module *module = instr->parent->module;
    hlo_instr_remove(instr);
    hlo_name_release(module, HLO_NAME_INSTR, instr->name, interned);
}

/* Returns the source location for the new instruction: that of `like`, or of the instruction that
 * it is inserted before. */
static uint32_t place_of(const edit *e) {
    const hlo_instr *at = e->options.like ? e->options.like : e->options.before;
    return at ? at->offset : e->comp->offset;
}

static hlo_status check_before(const edit *e, const hlo_instr *before) {
    if (!before || before->parent == e->comp) return HLO_OK;
    if (!before->parent)
        return edit_refuse(e, before, "cannot insert before %%%s, which was removed", before->name);
    return edit_refuse(e, before,
                       "cannot insert before %%%s, which is in computation %%%s, not in %%%s",
                       before->name, before->parent->name, e->comp->name);
}

static hlo_status check_name(const edit *e, const char *name) {
    if (!name || fragment_is_name(name)) return HLO_OK;
    return edit_refuse(e, NULL,
                       "invalid name '%s': a name begins with a letter or one '_', consists of "
                       "letters, digits, '_', '.' and '-', and must not be an element type",
                       name);
}

static hlo_status check_instruction(const edit *e) {
    const hlo_instruction_options *o = &e->options;
    if (!o->opcode) return edit_refuse(e, NULL, "hlo_instruction_options.opcode must not be NULL");
    const hlo_op op = hlo_op_find(o->opcode, strlen(o->opcode));
    if (op == HLO_OP_INVALID) {
        hlo_suggestion s = hlo_suggest(o->opcode);
        for (int i = 0; i < HLO_OP_COUNT; i++) hlo_suggest_offer(&s, hlo_ops[i].name);
        return edit_refuse(e, NULL, "unknown opcode '%s'%s", o->opcode, hlo_suggest_meant(&s));
    }
    if (op == HLO_OP_PARAMETER || op == HLO_OP_CONSTANT)
        return edit_refuse(e, NULL, "create a %s with hlo_instruction_new_%s()", o->opcode,
                           o->opcode);
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
    hlo_status status = check_name(e, o->name);
    if (status == HLO_OK) status = check_before(e, o->before);
    for (size_t i = 0; status == HLO_OK && i < o->operand_count; i++) {
        char role[32];
        snprintf(role, sizeof role, "operand %zu", i);
        status = edit_check_operand(e, o->operands[i], o->before, role);
    }
    return status;
}

static hlo_status make_instruction(edit *e) {
    const hlo_instruction_options *o = &e->options;
    fragment_parts parts;
    hlo_status status = check_instruction(e);
    const fragment f = {.opcode = o->opcode,
                        .shape = o->shape,
                        .attributes = o->attributes,
                        .operands = o->operands,
                        .operand_count = (uint32_t)o->operand_count};
    if (status == HLO_OK) status = fragment_read(e, &f, &parts);
    if (status != HLO_OK) return status;
    const char *interned = hlo_intern_string(e->module, o->name ? o->name : o->opcode);
    e->made = hlo_instr_new_interned(e->comp, o->before, parts.op, parts.shape, f.operand_count,
                                     f.operands, interned);
    e->made->offset = place_of(e);
    hlo_instr_take_attrs(e->made, parts.attrs, parts.attr_count);
    if (o->like) hlo_instr_inherit(e->made, o->like);
    status = edit_check_instr(e, e->made);
    if (status != HLO_OK)
        unmake(e->made, interned);
    else if (o->like)
        edit_note_replaced(e, o->like, e->made);
    return status;
}

static hlo_status finish(edit *e, edit_step *step, hlo_instruction **out) {
    const hlo_status status = edit_run(e, step);
    if (out) *out = status == HLO_OK ? e->made : NULL;
    return status;
}

hlo_status hlo_instruction_new(hlo_computation *computation, const hlo_instruction_options *options,
                               const hlo_diag_sink *sink, hlo_instruction **out_instruction) {
    HLO_IN_C_LOCALE;
    edit e = {.module = computation->module, .sink = sink, .comp = computation};
    const hlo_status status =
        hlo_options_take("hlo_instruction_options", &e.options, sizeof e.options, options, sink);
    if (status == HLO_OK) return finish(&e, make_instruction, out_instruction);
    if (out_instruction) *out_instruction = NULL;
    return status;
}

/* ------------------------------------------------------------------------------------ constants */

/* The array that a constant holds. */
typedef struct constant {
    edit e; /* first: steps get a pointer to it */
    const char *type;
    size_t rank;
    const int64_t *dims;
    const void *data;
} constant;

/* Returns the number of an element that its type does not have; -1: there is none. An integer of
 * fewer than 8 bits is in a byte, sign-extended. */
static int64_t find_excess(hlo_type type, const void *data, int64_t count) {
    const hlo_type_info *info = &hlo_types[type];
    const int8_t *bytes = data;
    if (!data || info->bits >= 8) return -1;
    const int most =
        info->class == HLO_CLASS_SIGNED ? (1 << (info->bits - 1)) - 1 : (1 << info->bits) - 1;
    const int least = info->class == HLO_CLASS_SIGNED ? -most - 1 : 0;
    for (int64_t i = 0; i < count; i++)
        if (bytes[i] < least || bytes[i] > most) return i;
    return -1;
}

static hlo_status make_constant(edit *e) {
    const constant *c = (const constant *)e;
    const hlo_type type = hlo_type_find(c->type, strlen(c->type));
    hlo_status status = check_before(e, e->options.before);
    if (status != HLO_OK) return status;
    if (type == HLO_TYPE_INVALID || !hlo_types[type].bytes)
        return edit_refuse(e, NULL, "unknown element type '%s'", c->type);
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
    const int64_t excess = find_excess(type, c->data, hlo_shape_count(shape));
    if (excess >= 0)
        return edit_refuse(e, NULL, "element %lld is not a valid %s", (long long)excess, c->type);
    hlo_literal *literal = hlo_literal_new(e->module, shape);
    if (c->data)
        memcpy(literal->data, c->data, (size_t)size);
    else
        memset(literal->data, 0, (size_t)size);
    e->made = hlo_constant_new(e->comp, e->options.before, literal);
    e->made->offset = place_of(e);
    return HLO_OK;
}

hlo_status hlo_instruction_new_constant(hlo_computation *computation, hlo_instruction *before,
                                        const char *type, size_t rank, const int64_t *dims,
                                        const void *data, const hlo_diag_sink *sink,
                                        hlo_instruction **out_instruction) {
    constant c = {.e = {.module = computation->module,
                        .sink = sink,
                        .comp = computation,
                        .options = {.before = before}},
                  .type = type,
                  .rank = rank,
                  .dims = dims,
                  .data = data};
    return finish(&c.e, make_constant, out_instruction);
}

/* ----------------------------------------------------------------------------------- parameters */

/* Adds the shape of a new parameter to the layout of the entry. */
static void extend_layout(const edit *e, const hlo_shape *shape) {
    hlo_module *module = e->module;
    const hlo_attr *attr =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    if (module->entry != e->comp || !attr) return;
    const hlo_shapes *old = attr->u.shapes;
    hlo_shapes *grown =
        hlo_arena_alloc(module->arena, sizeof *grown + (old->count + 1) * sizeof *grown->v);
    memcpy(grown, old, sizeof *old + old->count * sizeof *old->v);
    grown->v[old->count] = old->v[old->count - 1];
    grown->v[old->count - 1] = shape;
    grown->count = old->count + 1;
    edit_set_layout(e, grown);
}

static hlo_status make_parameter(edit *e) {
    const uint32_t number = e->comp->parameter_count;
    fragment_parts parts;
    const fragment f = {.opcode = "parameter", .shape = e->value};
    hlo_status status = check_name(e, e->name);
    if (status == HLO_OK) status = fragment_read(e, &f, &parts);
    if (status != HLO_OK) return status;
    const char *interned = hlo_intern_string(e->module, e->name ? e->name : "parameter");
    e->made =
        hlo_instr_new_interned(e->comp, e->comp->first, parts.op, parts.shape, 0, NULL, interned);
    e->made->offset = e->comp->offset;
    hlo_instr_set_parameter(e->made, number);
    extend_layout(e, parts.shape);
    return HLO_OK;
}

hlo_status hlo_instruction_new_parameter(hlo_computation *computation, const char *shape,
                                         const char *name, const hlo_diag_sink *sink,
                                         hlo_instruction **out_instruction) {
    edit e = {.module = computation->module,
              .sink = sink,
              .comp = computation,
              .name = name,
              .value = shape};
    return finish(&e, make_parameter, out_instruction);
}

/* --------------------------------------------------------------------------------- computations */

/* Moves the computations behind `last` in front of the others. */
static void move_to_front(hlo_module *module, hlo_computation *last) {
    hlo_computation *first = last->next;
    last->next = NULL;
    first->prev = NULL;
    module->last->next = module->first;
    module->first->prev = module->last;
    module->first = first;
    module->last = last;
}

static hlo_status make_computation(edit *e) {
    const hlo_module *read = e->read;
    if (read->tables.frame_count || read->tables.location_count)
        return edit_refuse(e, NULL,
                           "the text has stack frame tables, which cannot be added to a module");
    hlo_computation *last = e->module->last;
    hlo_copier copier = hlo_copier_new(e->module, read, e->scratch);
    if (!e->module->read) e->module->read = read->read;
    hlo_copy_computations(&copier, read);
    if (last) move_to_front(e->module, last);
    e->made_comp = copier.comps[read->entry->id];
    for (const hlo_computation *comp = read->first; comp; comp = comp->next) {
        hlo_computation *made = copier.comps[comp->id];
        made->offset = 0; /* it has another source text */
        for (hlo_instr *instr = made->first; instr; instr = instr->next) instr->offset = 0;
    }
    return HLO_OK;
}

hlo_status hlo_computation_new_text(hlo_module *module, const char *text, size_t size,
                                    const hlo_diag_sink *sink, hlo_computation **out_computation) {
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
