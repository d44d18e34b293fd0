/* SPDX-License-Identifier: Apache-2.0 */
/* See undo.h. */
#include "ir/module/undo.h"

#include <string.h>
#include <xxhash.h>

#include "ir/intern.h"
#include "ir/link.h"

hlo_journal *hlo_journal_new(hlo_arena *arena) {
    hlo_journal *j = hlo_arena_zero(arena, sizeof *j);
    j->arena = arena;
    return j;
}

void hlo_journal_open(hlo_journal *journal, hlo_module *module) {
    journal->count = 0;
    module->journal = journal;
}

void hlo_journal_close(hlo_module *module) {
    module->journal = NULL;
}

void hlo_journal_undo(hlo_module *module) {
    for (hlo_journal *j = module->journal; j->count;) {
        const hlo_made *made = &j->v[--j->count];
        const hlo_namespace space = made->instr ? HLO_NAME_INSTR : HLO_NAME_COMPUTATION;
        const char *name = made->instr ? made->instr->name : made->comp->name;
        if (made->instr) {
            hlo_computation *comp = made->instr->parent;
            if (comp->root == made->instr) comp->root = NULL;
            hlo_instr_remove(made->instr);
        } else {
            hlo_comp_remove(made->comp);
        }
        if (made->interned) hlo_name_release(module, space, name, made->interned);
    }
}

typedef struct instr_record {
    struct instr_record *next;
    hlo_instruction *instr;
    const char *name;
    const hlo_shape *shape;
    const hlo_attr *attrs;
    uint32_t attr_count, operand_count;
    hlo_use *operands; /* address of the operands; not read if there are none */
    hlo_instruction *defs[];
} instr_record;

typedef struct computation_record {
    struct computation_record *next;
    hlo_computation *comp;
    const char *name;
    hlo_instruction *root;
    hlo_instruction **parameters;
    const hlo_attr *attrs;
    hlo_instruction **own_parameters; /* the array of the computation */
    uint32_t parameter_count, parameter_capacity, attr_count;
    instr_record *instrs;
} computation_record;

struct hlo_snapshot {
    computation_record *comps;
    hlo_computation *entry;
    const hlo_attr *attrs;
    uint32_t attr_count;
};

const hlo_snapshot *hlo_snapshot_take(const hlo_module *module, hlo_arena *arena) {
    hlo_snapshot *s = hlo_arena_alloc(arena, sizeof *s);
    *s = (hlo_snapshot){
        .entry = module->entry, .attrs = module->attrs, .attr_count = module->attr_count};
    computation_record **end = &s->comps;
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        computation_record *r = *end = hlo_arena_alloc(arena, sizeof *r);
        *r = (computation_record){.comp = comp,
                                  .name = comp->name,
                                  .root = comp->root,
                                  .attrs = comp->attrs,
                                  .attr_count = comp->attr_count,
                                  .parameter_count = comp->parameter_count,
                                  .parameter_capacity = comp->parameter_capacity,
                                  .own_parameters = comp->parameters};
        r->parameters =
            hlo_arena_copy(arena, comp->parameters, comp->parameter_count * sizeof *r->parameters);
        instr_record **last = &r->instrs;
        for (hlo_instruction *instr = comp->first; instr;
             instr = hlo_instr_next(instr), last = &(*last)->next) {
            const uint32_t count = instr->operand_count;
            instr_record *i = *last = hlo_arena_alloc(arena, sizeof *i + count * sizeof *i->defs);
            *i = (instr_record){.instr = instr,
                                .name = instr->name,
                                .shape = instr->shape,
                                .attrs = instr->attrs,
                                .attr_count = instr->attr_count,
                                .operand_count = count,
                                .operands = count ? instr->operands : NULL};
            for (uint32_t o = 0; o < count; o++) i->defs[o] = hlo_instr_operand(instr, o);
        }
        end = &r->next;
    }
    return s;
}

void hlo_snapshot_restore(hlo_module *module, const hlo_snapshot *snapshot) {
    hlo_strings_free_names(module->strings);
    module->instr_count = 0;
    memset(module->op_counts, 0, sizeof module->op_counts);
    module->first = module->last = NULL;
    module->entry = snapshot->entry;
    module->attrs = snapshot->attrs;
    module->attr_count = snapshot->attr_count;
    for (const computation_record *r = snapshot->comps; r; r = r->next) {
        hlo_computation *comp = r->comp;
        comp->module = module; /* NULL if it was removed */
        comp->name = r->name;
        hlo_computation_place(comp, NULL);
        comp->first = comp->last = NULL;
        comp->instr_count = 0;
        for (const instr_record *i = r->instrs; i; i = i->next) {
            hlo_instruction *instr = i->instr;
            instr->name = i->name;
            instr->shape = i->shape;
            instr->operand_count = i->operand_count;
            instr->uses = NULL;
            instr->use_count = 0;
            instr->queued = false;
            hlo_instr_place(instr, comp, NULL);
            hlo_instr_take_attrs(instr, i->attrs, i->attr_count);
            if (i->operand_count) instr->operands = i->operands;
            for (uint32_t j = 0; j < i->operand_count; j++)
                hlo_use_link(&instr->operands[j], i->defs[j], instr);
            hlo_unique_name(module, HLO_NAME_INSTR, instr->name);
        }
        comp->root = r->root;
        comp->attrs = r->attrs;
        comp->attr_count = r->attr_count;
        comp->parameters = r->own_parameters;
        comp->parameter_capacity = r->parameter_capacity;
        comp->parameter_count = r->parameter_count;
        for (uint32_t i = 0; i < r->parameter_count; i++) {
            comp->parameters[i] = r->parameters[i];
            comp->parameters[i]->u.parameter = i;
        }
        hlo_unique_name(module, HLO_NAME_COMPUTATION, comp->name);
    }
}

/* Inlined, since checks of the engine compute a fingerprint before and after most rewrites. */
static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t mixed_pointer(uint64_t hash, const void *pointer) {
    return mixed(hash, (uintptr_t)pointer);
}

uint64_t hlo_module_fingerprint(const hlo_module *module) {
    uint64_t hash = XXH3_64bits(module->op_counts, sizeof module->op_counts);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        const void *pointers[] = {comp, comp->root, comp->name, comp->first, comp->last};
        for (size_t p = 0; p < sizeof pointers / sizeof *pointers; p++)
            hash = mixed_pointer(hash, pointers[p]);
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            hash = mixed(hash, (uint64_t)i->op << 32 | i->id);
            hash = mixed(hash, (uint64_t)i->attr_count << 32 | i->operand_count);
            hash = mixed(hash, i->use_count);
            const void *fields[] = {i, i->shape, i->attrs, i->parent, i->name};
            for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
                hash = mixed_pointer(hash, fields[f]);
            for (uint32_t o = 0; o < i->operand_count; o++)
                hash = mixed_pointer(hash, i->operands[o].def);
            for (const hlo_use *use = i->uses; use; use = use->next)
                hash = mixed_pointer(hash, use);
        }
    }
    return hash;
}
