/* SPDX-License-Identifier: Apache-2.0 */
/* See clone.h. A deep copy of a module has no pointers into the original. */
#include <string.h>

#include "ir/intern.h"
#include "ir/module/clone.h"

static const char *copy_string(hlo_copier *c, const char *text) {
    return text ? hlo_intern(c->to, text, hlo_intern_length(text)) : NULL;
}

const hlo_shape *hlo_copy_shape(hlo_copier *c, const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE) return hlo_shape_intern(c->to, shape);
    const hlo_shape **elements = hlo_arena_array(c->to->arena, shape->rank, sizeof *elements);
    for (uint32_t i = 0; i < shape->rank; i++) elements[i] = hlo_copy_shape(c, shape->elements[i]);
    hlo_shape copy = *shape;
    copy.elements = elements;
    return hlo_shape_intern(c->to, &copy);
}

static const hlo_literal *copy_literal(hlo_copier *c, const hlo_literal *literal) {
    hlo_literal *copy = hlo_arena_copy(c->to->arena, literal, sizeof *literal);
    copy->shape = hlo_copy_shape(c, literal->shape);
    if (literal->data)
        copy->data =
            hlo_arena_copy(c->to->arena, literal->data, (size_t)hlo_shape_bytes(literal->shape));
    if (literal->elements) {
        copy->elements =
            hlo_arena_array(c->to->arena, literal->shape->rank, sizeof *copy->elements);
        for (uint32_t i = 0; i < literal->shape->rank; i++)
            copy->elements[i] = copy_literal(c, literal->elements[i]);
    }
    return copy;
}

#define COPIED(list) hlo_arena_copy(arena, list, sizeof *list + list->count * sizeof *list->v)

static hlo_attr copy_attr(hlo_copier *c, hlo_attr attr) {
    hlo_arena *arena = c->to->arena;
    switch (hlo_attrs_info[attr.id].kind) {
    case HLO_KIND_INT:
    case HLO_KIND_BOOL:
    case HLO_KIND_FLOAT: break;
    case HLO_KIND_WORD:
    case HLO_KIND_STRING:
    case HLO_KIND_BYTES:
    case HLO_KIND_FORM:
    case HLO_KIND_RAW: attr.u.str = copy_string(c, attr.u.str); break;
    case HLO_KIND_GROUPS:
    case HLO_KIND_SHARDING:
    case HLO_KIND_ALIASES: {
        const char *text = copy_string(c, attr.u.parsed->text);
        const hlo_attr *read = c->to->read(c->to, attr.id, text);
        if (!read) hlo_arena_exhausted(c->to->arena); /* canonical text can always be parsed */
        return *read;
    }
    case HLO_KIND_INTS:
    case HLO_KIND_SIZES:
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING:
        attr.u.ints = hlo_ints_new(c->to, attr.u.ints->count, attr.u.ints->v);
        break;
    case HLO_KIND_COMPUTATION: attr.u.comp = c->comps[attr.u.comp->id]; break;
    case HLO_KIND_COMPUTATIONS: {
        hlo_comps *list = COPIED(attr.u.comps);
        for (uint32_t i = 0; i < list->count; i++) list->v[i] = c->comps[list->v[i]->id];
        attr.u.comps = list;
        break;
    }
    case HLO_KIND_INSTRS: {
        hlo_instrs *list = COPIED(attr.u.instrs);
        for (uint32_t i = 0; i < list->count; i++) list->v[i] = c->instrs[list->v[i]->id];
        attr.u.instrs = list;
        break;
    }
    case HLO_KIND_SHAPES:
    case HLO_KIND_LAYOUT: {
        hlo_shapes *list = COPIED(attr.u.shapes);
        for (uint32_t i = 0; i < list->count; i++) list->v[i] = hlo_copy_shape(c, list->v[i]);
        attr.u.shapes = list;
        break;
    }
    case HLO_KIND_SHAPE: attr.u.shape = hlo_copy_shape(c, attr.u.shape); break;
    case HLO_KIND_LITERAL: attr.u.literal = copy_literal(c, attr.u.literal); break;
    case HLO_KIND_ATTRS: {
        hlo_attrs *list = COPIED(attr.u.attrs);
        for (uint32_t i = 0; i < list->count; i++) list->v[i] = copy_attr(c, list->v[i]);
        attr.u.attrs = list;
        break;
    }
    }
    return attr;
}

const hlo_attr *hlo_copy_attrs(hlo_copier *c, const hlo_attr *attrs, uint32_t count) {
    hlo_attr *copy = hlo_arena_array(c->to->arena, count, sizeof *copy);
    for (uint32_t i = 0; i < count; i++) copy[i] = copy_attr(c, attrs[i]);
    return copy;
}

hlo_copier hlo_copier_new(hlo_module *to, const hlo_module *from, hlo_arena *scratch) {
    hlo_copier c = {.to = to};
    c.instrs = hlo_arena_zero(scratch, from->next_id * sizeof *c.instrs);
    c.comps = hlo_arena_zero(scratch, from->next_computation_id * sizeof *c.comps);
    return c;
}

void hlo_copy_computations(hlo_copier *c, const hlo_module *from) {
    for (const hlo_computation *comp = from->first; comp; comp = comp->next) {
        hlo_computation *copy = hlo_comp_new(c->to, comp->name);
        c->comps[comp->id] = copy;
        copy->offset = comp->offset;
        copy->attrs = hlo_copy_attrs(c, comp->attrs, comp->attr_count);
        copy->attr_count = comp->attr_count;
    }
    for (const hlo_computation *comp = from->first; comp; comp = comp->next) {
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_instruction **operands =
                hlo_arena_array(c->to->arena, instr->operand_count, sizeof *operands);
            for (uint32_t i = 0; i < instr->operand_count; i++)
                operands[i] = c->instrs[hlo_instr_operand(instr, i)->id];
            hlo_instruction *copy =
                hlo_instr_new(c->comps[comp->id], NULL, instr->op, hlo_copy_shape(c, instr->shape),
                              instr->operand_count, operands, instr->name);
            c->instrs[instr->id] = copy;
            copy->offset = instr->offset;
            hlo_instr_take_attrs(copy, hlo_copy_attrs(c, instr->attrs, instr->attr_count),
                                 instr->attr_count);
            if (instr->op == HLO_OP_CONSTANT) copy->u.literal = copy_literal(c, instr->u.literal);
            if (instr->op == HLO_OP_PARAMETER) hlo_instr_set_parameter(copy, instr->u.parameter);
        }
        if (comp->root) hlo_comp_set_root(c->comps[comp->id], c->instrs[comp->root->id]);
    }
}

hlo_status hlo_module_clone(const hlo_module *from, hlo_module **out_clone) {
    *out_clone = NULL;
    jmp_buf recover;
    /* `made` is volatile because it is modified between setjmp() and longjmp(). */
    hlo_module *volatile made = NULL;
    if (setjmp(recover)) {
        hlo_module_free(made);
        return HLO_OUT_OF_MEMORY;
    }
    hlo_module *to = made = hlo_module_make(&recover);
    if (!to) return HLO_OUT_OF_MEMORY;
    hlo_copier c = hlo_copier_new(to, from, to->arena);
    to->read = from->read;
    to->name = copy_string(&c, from->name);
    to->file = copy_string(&c, from->file);
    to->source =
        from->source ? hlo_arena_copy(to->arena, from->source, from->source_size + 1) : NULL;
    to->source_size = from->source_size;
    to->source_line = from->source_line;
    hlo_tables *t = &to->tables;
    *t = from->tables;
    t->files = hlo_arena_array(to->arena, t->file_count, sizeof *t->files);
    for (uint32_t i = 0; i < t->file_count; i++)
        t->files[i] = copy_string(&c, from->tables.files[i]);
    t->functions = hlo_arena_array(to->arena, t->function_count, sizeof *t->functions);
    for (uint32_t i = 0; i < t->function_count; i++)
        t->functions[i] = copy_string(&c, from->tables.functions[i]);
    t->locations =
        hlo_arena_copy(to->arena, t->locations, t->location_count * sizeof *t->locations);
    t->frames = hlo_arena_copy(to->arena, t->frames, t->frame_count * sizeof *t->frames);
    hlo_deferred_error **end = &to->deferred;
    for (const hlo_deferred_error *d = from->deferred; d; d = d->next, end = &(*end)->next) {
        *end = hlo_arena_copy(to->arena, d, sizeof *d);
        (*end)->message = copy_string(&c, d->message);
    }
    to->verified = from->verified;
    to->recorded = from->recorded;
    if (to->recorded) atomic_fetch_add(&to->recorded->modules, 1);
    hlo_copy_computations(&c, from);
    to->entry = from->entry ? c.comps[from->entry->id] : NULL;
    to->attrs = hlo_copy_attrs(&c, from->attrs, from->attr_count);
    to->attr_count = from->attr_count;
    hlo_arena_set_recover(to->arena, NULL);
    *out_clone = to;
    return HLO_OK;
}

/* Instructions are created in the order of the text, and a loop over them is fast while neighbors
 * are contiguous. Passes append new instructions in each phase, and leave gaps where they remove
 * instructions. A loop then misses the cache at nearly every instruction, even if passes changed
 * few instructions. */

bool hlo_module_is_fragmented(const hlo_module *module) {
    const uint32_t made = module->next_id - module->relocated_ids;
    return module->instr_count < (module->relocated + made) / 3;
}

static hlo_use *moved_use(const hlo_use *use, hlo_instruction *const *relocated) {
    return use ? relocated[use->user->id]->operands + (use - use->user->operands) : NULL;
}

hlo_instruction **hlo_module_compact(hlo_module *module, hlo_arena *arena) {
    hlo_instruction **relocated = hlo_arena_zero(arena, module->next_id * sizeof *relocated);
    hlo_instruction **first = hlo_arena_zero(arena, module->next_computation_id * sizeof *first);
    /* Copy the instructions and their operands; attributes are not copied. */
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        size_t operand_count = 0;
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            operand_count += instr->operand_count;
        hlo_instruction *copy = hlo_arena_array(module->arena, comp->instr_count, sizeof *copy);
        hlo_use *uses = hlo_arena_array(module->arena, operand_count, sizeof *uses);
        first[comp->id] = copy;
        for (const hlo_instruction *instr = comp->first; instr;
             instr = hlo_instr_next(instr), copy++) {
            relocated[instr->id] = copy;
            *copy = *instr;
            if (!instr->operand_count) continue;
            copy->operands = uses;
            memcpy(uses, instr->operands, instr->operand_count * sizeof *uses);
            uses += instr->operand_count;
        }
    }
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        hlo_instruction *copies = first[comp->id];
        const uint32_t count = comp->instr_count;
        for (hlo_instruction *instr = copies; instr < copies + count; instr++) {
            instr->prev = instr > copies ? instr - 1 : NULL;
            instr->next = instr + 1 < copies + count ? instr + 1 : NULL;
            instr->uses = moved_use(instr->uses, relocated);
            for (uint32_t i = 0; i < instr->operand_count; i++) {
                hlo_use *use = &instr->operands[i];
                use->next = moved_use(use->next, relocated);
                use->prev = moved_use(use->prev, relocated);
                use->def = relocated[use->def->id];
                use->user = instr;
            }
            const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
            if (!control) continue;
            const uint32_t named_count = control->u.instrs->count;
            hlo_instrs *named =
                hlo_arena_alloc(module->arena, sizeof *named + named_count * sizeof *named->v);
            named->count = named_count;
            for (uint32_t i = 0; i < named_count; i++)
                named->v[i] = relocated[control->u.instrs->v[i]->id];
            hlo_instr_set_attr(instr,
                               (hlo_attr){.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = named});
        }
        comp->first = count ? copies : NULL;
        comp->last = count ? copies + count - 1 : NULL;
        if (comp->root) comp->root = relocated[comp->root->id];
        for (uint32_t i = 0; i < comp->parameter_count; i++)
            if (comp->parameters[i]) comp->parameters[i] = relocated[comp->parameters[i]->id];
    }
    module->relocated = module->instr_count;
    module->relocated_ids = module->next_id;
    return relocated;
}
