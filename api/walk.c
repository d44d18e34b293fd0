/* SPDX-License-Identifier: Apache-2.0 */
/* Implements include/hlo/ir.h: walks a module. */
#include "hlo/ir.h"

#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/text/options.h"
#include "ir/text/printer.h"

/* ---------------------------------------------------------------------------- module attributes */

int64_t hlo_module_replica_count(const hlo_module *module) {
    return hlo_module_int(module, HLO_ATTR_REPLICA_COUNT, 1);
}

int64_t hlo_module_partition_count(const hlo_module *module) {
    return hlo_module_int(module, HLO_ATTR_NUM_PARTITIONS, 1);
}

bool hlo_module_is_scheduled(const hlo_module *module) {
    return hlo_module_int(module, HLO_ATTR_IS_SCHEDULED, 0) != 0;
}

static const hlo_shapes *layout_of(const hlo_module *module) {
    const hlo_attr *attr =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    return attr && attr->u.shapes->count ? attr->u.shapes : NULL;
}

const hlo_shape *hlo_module_parameter_layout(const hlo_module *module, size_t number) {
    const hlo_shapes *layout = layout_of(module); /* the parameters, then the result */
    if (layout) return number < layout->count - 1 ? layout->v[number] : NULL;
    const hlo_computation *entry = module->entry;
    return number < entry->parameter_count ? entry->parameters[number]->shape : NULL;
}

const hlo_shape *hlo_module_result_layout(const hlo_module *module) {
    const hlo_shapes *layout = layout_of(module);
    return layout ? layout->v[layout->count - 1] : module->entry->root->shape;
}

static const hlo_aliases *aliases_of(const hlo_module *module, hlo_attr_id id) {
    static const hlo_aliases none;
    const hlo_attr *attr = hlo_attrs_find(module->attrs, module->attr_count, id);
    return attr ? attr->u.aliases : &none;
}

size_t hlo_module_alias_count(const hlo_module *module) {
    return (size_t)aliases_of(module, HLO_ATTR_INPUT_OUTPUT_ALIAS)->count +
           aliases_of(module, HLO_ATTR_BUFFER_DONOR)->count;
}

hlo_status hlo_module_alias_at(const hlo_module *module, size_t index, hlo_module_alias *out) {
    const hlo_aliases *aliases = aliases_of(module, HLO_ATTR_INPUT_OUTPUT_ALIAS);
    hlo_module_alias own;
    if (hlo_options_take("hlo_module_alias", &own, sizeof own, out, NULL) != HLO_OK)
        return HLO_INVALID_USAGE;
    if (index >= aliases->count) {
        index -= aliases->count;
        aliases = aliases_of(module, HLO_ATTR_BUFFER_DONOR);
    }
    if (index >= aliases->count) return HLO_INVALID_USAGE;
    const hlo_alias *alias = &aliases->v[index];
    own = (hlo_module_alias){.parameter = alias->number,
                             .parameter_index = alias->part ? alias->part->v : NULL,
                             .parameter_index_size = alias->part ? alias->part->count : 0,
                             .output_index = alias->output ? alias->output->v : NULL,
                             .output_index_size = alias->output ? alias->output->count : 0,
                             .any_output = !alias->output,
                             .must_alias = alias->mode && strcmp(alias->mode, "must") == 0};
    hlo_options_fill(out, out->struct_size, &own, sizeof own);
    return HLO_OK;
}

/* --------------------------------------------------------------------------------- computations */

const hlo_computation *hlo_module_first_computation(const hlo_module *module) {
    return module->first;
}

const hlo_computation *hlo_computation_next(const hlo_computation *computation) {
    return computation->next;
}

const hlo_computation *hlo_module_entry(const hlo_module *module) {
    return module->entry;
}

const hlo_computation *hlo_module_find_computation(const hlo_module *module, const char *name) {
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        if (strcmp(comp->name, name) == 0) return comp;
    return NULL;
}

const char *hlo_computation_name(const hlo_computation *computation) {
    return computation->name;
}

const hlo_module *hlo_computation_module(const hlo_computation *computation) {
    return computation->module;
}

const hlo_instruction *hlo_computation_root(const hlo_computation *computation) {
    return computation->root;
}

size_t hlo_computation_parameter_count(const hlo_computation *computation) {
    return computation->parameter_count;
}

const hlo_instruction *hlo_computation_parameter(const hlo_computation *computation,
                                                 size_t number) {
    return computation->parameters[number];
}

const hlo_instruction *hlo_computation_first(const hlo_computation *computation) {
    return computation->first;
}

const hlo_instruction *hlo_computation_last(const hlo_computation *computation) {
    return computation->last;
}

const hlo_instruction *hlo_instruction_next(const hlo_instruction *instruction) {
    return hlo_instr_next(instruction);
}

const hlo_instruction *hlo_instruction_previous(const hlo_instruction *instruction) {
    return hlo_instr_prev(instruction);
}

const hlo_instruction *hlo_computation_find(const hlo_computation *computation, const char *name) {
    for (const hlo_instruction *instr = computation->first; instr; instr = hlo_instr_next(instr))
        if (strcmp(instr->name, name) == 0) return instr;
    return NULL;
}

const char *hlo_instruction_name(const hlo_instruction *instruction) {
    return instruction->name;
}

hlo_opcode hlo_instruction_opcode(const hlo_instruction *instruction) {
    return instruction->op;
}

const hlo_shape *hlo_instruction_shape(const hlo_instruction *instruction) {
    return instruction->shape;
}

const hlo_computation *hlo_instruction_computation(const hlo_instruction *instruction) {
    return instruction->parent;
}

size_t hlo_instruction_operand_count(const hlo_instruction *instruction) {
    return instruction->operand_count;
}

const hlo_instruction *hlo_instruction_operand(const hlo_instruction *instruction, size_t index) {
    return hlo_instr_operand(instruction, (uint32_t)index);
}

const hlo_use *hlo_instruction_first_use(const hlo_instruction *instruction) {
    return instruction->uses;
}

const hlo_use *hlo_use_next(const hlo_use *use) {
    return use->next;
}

const hlo_instruction *hlo_use_instruction(const hlo_use *use) {
    return use->user;
}

size_t hlo_use_index(const hlo_use *use) {
    return (size_t)(use - use->user->operands);
}

size_t hlo_instruction_use_count(const hlo_instruction *instruction) {
    return instruction->use_count;
}

typedef struct called_at {
    size_t index, count;
    hlo_computation *found;
} called_at;

static void note_called(void *user, hlo_computation *called) {
    called_at *at = user;
    if (at->count++ == at->index) at->found = called;
}

size_t hlo_instruction_called_count(const hlo_instruction *instruction) {
    called_at at = {.index = SIZE_MAX};
    hlo_instr_visit_called(instruction, note_called, &at);
    return at.count;
}

const hlo_computation *hlo_instruction_called(const hlo_instruction *instruction, size_t index) {
    called_at at = {.index = index};
    hlo_instr_visit_called(instruction, note_called, &at);
    return at.found;
}

int64_t hlo_instruction_parameter_number(const hlo_instruction *instruction) {
    return instruction->op == HLO_OP_PARAMETER ? instruction->u.parameter : -1;
}

const void *hlo_instruction_constant(const hlo_instruction *instruction, size_t *out_size) {
    const hlo_literal *literal = instruction->op == HLO_OP_CONSTANT ? instruction->u.literal : NULL;
    *out_size = 0;
    if (!literal || !literal->data) return NULL;
    *out_size = (size_t)hlo_shape_bytes(literal->shape);
    return literal->data;
}

/* Returns the element of a constant at a row-major index, or NULL. */
static const void *element_at(const hlo_instruction *instr, size_t index, hlo_type *out_type) {
    size_t size;
    const char *data = hlo_instruction_constant(instr, &size);
    *out_type = instr->shape->type;
    const size_t each = hlo_types[*out_type].bytes;
    return data && index < size / each ? data + index * each : NULL;
}

bool hlo_instruction_constant_number(const hlo_instruction *instruction, size_t index,
                                     double *out_real, double *out_imaginary) {
    hlo_type type;
    const char *at = element_at(instruction, index, &type);
    if (!at) return false;
    const bool is_complex = hlo_types[type].class == HLO_CLASS_COMPLEX;
    const hlo_type part = type == HLO_TYPE_C64 ? HLO_TYPE_F32 : is_complex ? HLO_TYPE_F64 : type;
    *out_real = hlo_number_load(part, at);
    if (out_imaginary)
        *out_imaginary = is_complex ? hlo_number_load(part, at + hlo_types[part].bytes) : 0;
    return true;
}

bool hlo_instruction_constant_integer(const hlo_instruction *instruction, size_t index,
                                      int64_t *out_value) {
    hlo_type type;
    const void *at = element_at(instruction, index, &type);
    if (!at || (type != HLO_TYPE_PRED && !hlo_type_is_integer(type))) return false;
    const size_t size = hlo_types[type].bytes;
    const bool negative =
        hlo_types[type].class == HLO_CLASS_SIGNED && ((const unsigned char *)at)[size - 1] >= 0x80;
    uint64_t bits = negative ? UINT64_MAX : 0;
    memcpy(&bits, at, size);
    if (hlo_types[type].class != HLO_CLASS_SIGNED && bits > INT64_MAX) return false;
    *out_value = (int64_t)bits;
    return true;
}

bool hlo_instruction_constant_is_splat(const hlo_instruction *instruction) {
    return instruction->op == HLO_OP_CONSTANT && hlo_literal_is_splat(instruction->u.literal);
}

size_t hlo_instruction_attribute_count(const hlo_instruction *instruction) {
    return instruction->attr_count;
}

const char *hlo_instruction_attribute_name(const hlo_instruction *instruction, size_t index) {
    return hlo_attrs_info[instruction->attrs[index].id].name;
}

static const hlo_attr *find_attr(const hlo_instruction *instr, const char *name) {
    const hlo_attr_id id = hlo_attr_find_of(instr->op, name);
    return id == HLO_ATTR_INVALID ? NULL : hlo_instr_attr(instr, id);
}

hlo_status hlo_instruction_attribute(const hlo_instruction *instruction, const char *name,
                                     const char **out_value) {
    HLO_IN_C_LOCALE;
    const hlo_attr *attr = find_attr(instruction, name);
    *out_value = NULL;
    if (!attr || hlo_attrs_info[attr->id].kind == HLO_KIND_BYTES) return HLO_OK;
    jmp_buf recover;
    hlo_module *module = instruction->parent->module;
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    const hlo_status status = setjmp(recover) ? HLO_OUT_OF_MEMORY : HLO_OK;
    if (status == HLO_OK) *out_value = hlo_print_interned(module, hlo_put_attr, attr);
    hlo_arena_set_recover(module->arena, before);
    if (*out_value) *out_value += strlen(name) + 1;
    return status;
}

const int64_t *hlo_instruction_integers(const hlo_instruction *instruction, const char *name,
                                        size_t *out_count) {
    const hlo_attr *attr = find_attr(instruction, name);
    *out_count = 0;
    if (!attr) return NULL;
    switch (hlo_attrs_info[attr->id].kind) {
    case HLO_KIND_INT:
    case HLO_KIND_BOOL: *out_count = 1; return &attr->u.i;
    case HLO_KIND_INTS:
    case HLO_KIND_SIZES:
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING: *out_count = attr->u.ints->count; return attr->u.ints->v;
    default: return NULL;
    }
}

const char *hlo_instruction_op_name(const hlo_instruction *instruction) {
    return hlo_instr_op_name(instruction);
}

const char *hlo_instruction_source(const hlo_instruction *instruction, int64_t *out_line) {
    return hlo_instr_source(instruction, out_line);
}
