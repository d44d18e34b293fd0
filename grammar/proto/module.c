/* SPDX-License-Identifier: Apache-2.0 */
/* Converts modules, computations and instructions between the IR and messages. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/proto/proto.h"
#include "hlo/proto.h"
#include "ir/intern.h"
#include "ir/memory.h"
#include "ir/text/diag.h"

enum { MAX_ATTRS = 64 };

static hlo_proto_ids new_ids(hlo_proto *p, size_t count) {
    return (hlo_proto_ids){hlo_arena_array(p->scratch, count, sizeof(hlo_proto_id)), count};
}

/* Makes a name that the text form accepts. Bytes other than letters, digits, `_`, `.` and `-`
 * become `_`, as in XLA, and so do digits, `.` and `-` at the start. `__` at the start becomes
 * `a_`, unless the name starts with `__xla_`. A name that is a type gets the suffix `_`. */
static const char *name_of(hlo_proto *p, const char *name, const char *fallback) {
    size_t size = strlen(name);
    if (!size) return hlo_intern_string(p->module, fallback);
    char *clean = hlo_arena_copy(p->scratch, name, size);
    for (size_t i = 0; i < size; i++) {
        const bool begins = !strchr("0123456789.-", clean[i]);
        if (!hlo_notation_in_name(clean[i]) || (i == 0 && !begins)) clean[i] = '_';
    }
    if (size > 1 && clean[0] == '_' && clean[1] == '_' && strncmp(name, "__xla_", 6) != 0)
        clean[0] = 'a';
    const char *made = hlo_intern(p->module, clean, size);
    const hlo_type type = hlo_type_find(made, size);
    if (type == HLO_TYPE_INVALID || type == HLO_TYPE_TUPLE) return made;
    return hlo_intern_string(p->module, hlo_arena_format(p->scratch, "%s_", made));
}

/* --------------------------------------------------------------------------------- instructions */

/* Returns the bytes of a payload, which are inline or stored in the module by their index. */
static hlo_pb_bytes payload(hlo_proto *p, const Xla__Payload *from) {
    if (from->value.len) return from->value;
    if (from->id < 0 || (size_t)from->id >= p->payloads->n_payloads)
        hlo_proto_fail(p, "payload %lld does not exist", (long long)from->id);
    return p->payloads->payloads[from->id];
}

static hlo_instruction *read_instr(hlo_proto *p, Xla__HloInstructionProto *from,
                                   hlo_computation *comp) {
    p->kind = "instruction";
    p->name = from->name;
    hlo_op op = hlo_op_find(from->opcode, strlen(from->opcode));
    if (op == HLO_OP_INVALID) hlo_proto_fail(p, "unknown opcode '%.40s'", from->opcode);
    const hlo_op_info *info = &hlo_ops[op];
    const size_t count = from->n_operand_ids;
    if (count < info->min_operands || (info->max_operands != HLO_ANY && count > info->max_operands))
        hlo_proto_fail(p, "%s takes %s%u operands, found %zu", info->name,
                       info->max_operands == info->min_operands ? ""
                       : count < info->min_operands             ? "at least "
                                                                : "at most ",
                       count < info->min_operands ? info->min_operands : info->max_operands, count);
    if (from->metadata && from->metadata->metadata_payload)
        from->metadata->metadata_payload->value = payload(p, from->metadata->metadata_payload);
    if (from->backend_config_payload && !from->backend_config.len) {
        from->backend_config = payload(p, from->backend_config_payload);
        from->backend_config_payload = NULL;
    }
    hlo_instruction **operands = hlo_arena_array(p->scratch, count, sizeof *operands);
    for (size_t i = 0; i < count; i++)
        operands[i] = hlo_proto_operand(p, from->operand_ids[i], "operand");
    p->operand = count ? operands[0]->shape : NULL;
    if (op == HLO_OP_COMPARE && count && !*from->comparison_type) {
        const char *type = hlo_compare_type_of_order(from->comparison_order, p->operand);
        if (type) from->comparison_type = (char *)(uintptr_t)type;
        if (type) from->comparison_order = (char *)(uintptr_t) "";
    }
    const hlo_shape *shape = hlo_shape_from_proto(p, from->shape);
    hlo_instruction *instr = hlo_instr_new_interned(comp, NULL, op, shape, (uint32_t)count,
                                                    operands, name_of(p, from->name, info->name));
    instr->offset = instr->id;
    if (op == HLO_OP_CONSTANT) instr->u.literal = hlo_literal_from_proto(p, from->literal, shape);
    if (op == HLO_OP_PARAMETER) instr->u.parameter = from->parameter_number;

    hlo_pb *message = &from->base;
    hlo_attr attrs[3 * MAX_ATTRS], unknown_fields;
    bool has_unknown = hlo_unknown_fields_from_proto(p, message, &unknown_fields);
    if (op == HLO_OP_CUSTOM_CALL && !from->constrain_layout) from->n_operand_shapes_with_layout = 0;
    uint32_t found = hlo_attrs_from_proto(p, message, info->required, op, true, attrs);
    found += hlo_attrs_from_proto(p, message, info->allowed, op, false, attrs + found);
    found += hlo_attrs_from_proto(p, message, hlo_common_attrs, op, false, attrs + found);
    /* Clear the fields that hlo_instruction stores, and redundant ones that XLA writes. */
    static const uint8_t held[] = {HLO_ATTR_CALLS, HLO_ATTR_COUNT};
    hlo_attrs_clear(p, message, info->required, op);
    hlo_attrs_clear(p, message, info->allowed, op);
    hlo_attrs_clear(p, message, hlo_common_attrs, op);
    hlo_attrs_clear(p, message, held, op);
    from->name = from->opcode = (char *)(uintptr_t) "";
    from->shape = NULL;
    from->id = 0;
    from->n_operand_ids = 0;
    from->operand_ids = NULL;
    if (op == HLO_OP_PARAMETER) from->parameter_number = 0;
    if (op == HLO_OP_CONSTANT) from->literal = NULL;
    if (op == HLO_OP_CUSTOM_CALL) from->constrain_layout = 0;
    if (from->frontend_attributes && !from->frontend_attributes->n_map)
        from->frontend_attributes = NULL;
    found += hlo_unmapped_from_proto(p, message, &attrs[found]);
    if (has_unknown) attrs[found++] = unknown_fields;
    hlo_instr_take_attrs(instr, hlo_arena_copy(p->module->arena, attrs, found * sizeof *attrs),
                         found);
    return instr;
}

/* --------------------------------------------------------------------------------- computations */

/* Puts the instructions in the order of the schedule, if the schedule contains computation
 * `number`. */
static void schedule(hlo_proto *p, int64_t number, hlo_computation *comp) {
    const Xla__HloScheduleProto__InstructionSequence *order =
        hlo_proto_find(&p->ids->sequences, number);
    bool *placed = p->ids->placed;
    if (!order) return;
    if (order->n_instruction_ids != comp->instr_count)
        hlo_proto_fail(p, "the schedule has %zu instructions, but the computation has %u",
                       order->n_instruction_ids, comp->instr_count);
    for (size_t i = 0; i < order->n_instruction_ids; i++) {
        hlo_instruction *instr = hlo_proto_find(&p->ids->instrs, order->instruction_ids[i]);
        if (!instr || placed[instr->id])
            hlo_proto_fail(p, "the schedule has id %lld%s", (long long)order->instruction_ids[i],
                           instr ? " twice" : ", which is not an instruction of the computation");
        for (uint32_t k = 0; k < instr->operand_count; k++)
            if (!placed[hlo_instr_operand(instr, k)->id])
                hlo_proto_fail(p, "the schedule has '%.100s' before its operand '%.100s'",
                               instr->name, hlo_instr_operand(instr, k)->name);
        const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
        for (uint32_t k = 0; control && k < control->u.instrs->count; k++)
            if (!placed[control->u.instrs->v[k]->id])
                hlo_proto_fail(p,
                               "the schedule has '%.100s' before its control predecessor '%.100s'",
                               instr->name, control->u.instrs->v[k]->name);
        placed[instr->id] = true;
        hlo_instr_move(instr, NULL);
    }
}

static void read_computation(hlo_proto *p, struct hlo_ids *known, Xla__HloComputationProto *from) {
    const char *name = from->name;
    p->kind = "computation";
    p->name = name;
    if (!from->n_instructions) hlo_proto_fail(p, "has no instructions");
    known->instrs = new_ids(p, from->n_instructions);
    for (size_t i = 0; i < from->n_instructions; i++)
        known->instrs.v[i] = (hlo_proto_id){.number = from->instructions[i]->id};
    hlo_proto_sort_ids(p, &known->instrs, "instructions");
    hlo_computation *comp = hlo_comp_new(p->module, name_of(p, name, "computation"));
    for (size_t i = 0; i < from->n_instructions; i++) {
        int64_t number = from->instructions[i]->id;
        void *made = read_instr(p, from->instructions[i], comp);
        hlo_proto_find_id(&known->instrs, number)->is = made;
    }
    p->kind = "computation";
    p->name = name;
    hlo_instruction *root = hlo_proto_find(&known->instrs, from->root_id);
    if (!root)
        hlo_proto_fail(p, "the root has id %lld, which is not an instruction of the computation",
                       (long long)from->root_id);
    hlo_comp_set_root(comp, root);
    schedule(p, from->id, comp);
    int64_t parameters = 0;
    for (hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
        parameters += i->op == HLO_OP_PARAMETER;
    comp->parameters =
        hlo_arena_zero(p->module->arena, (size_t)parameters * sizeof *comp->parameters);
    comp->parameter_count = (uint32_t)parameters;
    for (hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
        if (i->op != HLO_OP_PARAMETER) continue;
        int64_t number = i->u.parameter;
        if (number < 0 || number >= parameters || comp->parameters[number])
            hlo_proto_fail(p, "parameter '%.100s' has number %lld, %s", i->name, (long long)number,
                           number >= 0 && number < parameters ? "as another parameter"
                                                              : "which is out of range");
        comp->parameters[number] = i;
    }
    hlo_proto_find_id(&known->computations, from->id)->is = comp;
    static const uint8_t thread[] = {HLO_ATTR_EXECUTION_THREAD, HLO_ATTR_COUNT};
    hlo_attr attrs[3], unknown_fields;
    bool has_unknown = hlo_unknown_fields_from_proto(p, &from->base, &unknown_fields);
    uint32_t count = hlo_attrs_from_proto(p, &from->base, thread, HLO_OP_COUNT, false, attrs);
    if (count && strcmp(from->execution_thread, hlo_main_thread) == 0) count = 0;
    from->name = from->execution_thread = "";
    from->n_instructions = 0;
    from->program_shape = NULL;
    from->id = from->root_id = from->is_fusion_computation = 0;
    count += hlo_unmapped_from_proto(p, &from->base, &attrs[count]);
    if (has_unknown) attrs[count++] = unknown_fields;
    comp->attrs = hlo_arena_copy(p->module->arena, attrs, count * sizeof *attrs);
    comp->attr_count = count;
}

/* ----------------------------------------------------------------------------------- the module */

static const char **read_strings(hlo_proto *p, const hlo_pb_bytes *from, size_t count) {
    const char **strings = hlo_arena_array(p->module->arena, count, sizeof *strings);
    for (size_t i = 0; i < count; i++)
        strings[i] = hlo_intern(p->module, (const char *)from[i].data, from[i].len);
    return strings;
}

static void read_tables(hlo_proto *p, const Xla__StackFrameIndexProto *from) {
    hlo_tables *to = &p->module->tables;
    if (!from) return;
    to->file_count = (uint32_t)from->n_file_names;
    to->files = read_strings(p, from->file_names, from->n_file_names);
    to->function_count = (uint32_t)from->n_function_names;
    to->functions = read_strings(p, from->function_names, from->n_function_names);
    to->location_count = (uint32_t)from->n_file_locations;
    to->locations =
        hlo_arena_array(p->module->arena, from->n_file_locations, sizeof *to->locations);
    for (size_t i = 0; i < from->n_file_locations; i++) {
        const Xla__StackFrameIndexProto__FileLocation *l = from->file_locations[i];
        to->locations[i] = (hlo_file_location){.file_name = l->file_name_id,
                                               .function_name = l->function_name_id,
                                               .line = l->line,
                                               .end_line = l->end_line,
                                               .column = l->column,
                                               .end_column = l->end_column};
    }
    to->frame_count = (uint32_t)from->n_stack_frames;
    to->frames = hlo_arena_array(p->module->arena, from->n_stack_frames, sizeof *to->frames);
    for (size_t i = 0; i < from->n_stack_frames; i++) {
        const Xla__StackFrameIndexProto__StackFrame *f = from->stack_frames[i];
        to->frames[i] = (hlo_stack_frame){.file_location = f->file_location_id,
                                          .parent = (int64_t)f->parent_frame_id + 1};
    }
}

static void read_module(hlo_proto *p, Xla__HloModuleProto *from, const hlo_envelope *envelope) {
    struct hlo_ids known = {.computations = new_ids(p, from->n_computations)};
    size_t instrs = 0;
    for (size_t i = 0; i < from->n_computations; i++)
        instrs += from->computations[i]->n_instructions;
    known.placed = hlo_arena_zero(p->scratch, instrs);
    if (from->schedule) {
        known.sequences = new_ids(p, from->schedule->n_sequences);
        for (size_t i = 0; i < known.sequences.count; i++)
            known.sequences.v[i] = (hlo_proto_id){.number = from->schedule->sequences[i]->key,
                                                  .is = from->schedule->sequences[i]->value};
        hlo_proto_sort_ids(p, &known.sequences, "sequences of the schedule");
    }
    p->ids = &known;
    p->payloads = from;
    p->module->name = name_of(p, from->name, "module");
    if (hlo_notation_is_keyword(p->module->name)) /* the text has no `%` before the name */
        p->module->name =
            hlo_intern_string(p->module, hlo_arena_format(p->scratch, "%s_", p->module->name));
    read_tables(p, from->stack_frame_index);
    for (size_t i = 0; i < from->n_computations; i++)
        known.computations.v[i] = (hlo_proto_id){.number = from->computations[i]->id};
    hlo_proto_sort_ids(p, &known.computations, "computations");
    int64_t entry = from->entry_computation_id;
    for (size_t i = 0; i < from->n_computations; i++)
        read_computation(p, &known, from->computations[i]);
    p->kind = NULL;
    p->module->entry = hlo_proto_find(&known.computations, entry);
    if (!p->module->entry)
        hlo_proto_fail(p, "the entry computation has id %lld, which does not exist",
                       (long long)entry);
    static const uint8_t header[] = {HLO_ATTR_INPUT_OUTPUT_ALIAS, HLO_ATTR_BUFFER_DONOR,
                                     HLO_ATTR_FRONTEND_ATTRIBUTES, HLO_ATTR_ORIGIN_RECOVERY_TABLE,
                                     HLO_ATTR_COUNT};
    hlo_attr attrs[10], unknown_fields;
    bool has_unknown = hlo_unknown_fields_from_proto(p, &from->base, &unknown_fields);
    uint32_t count = hlo_attrs_from_proto(p, &from->base, header, HLO_OP_COUNT, false, attrs);
    count += hlo_envelope_attrs(envelope, &attrs[count]);
    if (from->schedule && from->schedule->n_sequences)
        attrs[count++] = (hlo_attr){.id = HLO_ATTR_IS_SCHEDULED, .u.i = 1};
    const Xla__ProgramShapeProto *program = from->host_program_shape;
    if (program && program->result) {
        const size_t last = program->n_parameters;
        hlo_shapes *shapes =
            hlo_arena_alloc(p->module->arena, sizeof *shapes + (last + 1) * sizeof *shapes->v);
        shapes->count = (uint32_t)last + 1;
        for (size_t i = 0; i < last; i++)
            shapes->v[i] = hlo_shape_from_proto(p, program->parameters[i]);
        shapes->v[last] = hlo_shape_from_proto(p, program->result);
        attrs[count++] = (hlo_attr){.id = HLO_ATTR_ENTRY_COMPUTATION_LAYOUT, .u.shapes = shapes};
    }
    hlo_attrs_clear(p, &from->base, header, HLO_OP_COUNT);
    from->name = from->entry_computation_name = "";
    from->n_computations = 0;
    from->entry_computation_id = 0;
    from->host_program_shape = NULL;
    from->schedule = NULL;
    from->stack_frame_index = NULL;
    count += hlo_unmapped_from_proto(p, &from->base, &attrs[count]);
    if (has_unknown) attrs[count++] = unknown_fields;
    p->module->attrs = hlo_arena_copy(p->module->arena, attrs, count * sizeof *attrs);
    p->module->attr_count = count;
}

/* The arguments of hlo_proto_read(). */
typedef struct reading {
    hlo_content *content;
    const hlo_module_io *io;
} reading;

static hlo_status read_bytes(hlo_proto *p, void *user) {
    const reading *r = user;
    hlo_content *content = r->content;
    hlo_module *module = p->module;
    p->io = r->io;
    module->read = hlo_notation_read;
    const hlo_envelope envelope = hlo_envelope_open(p, content->bytes, content->size);
    Xla__HloModuleProto *message =
        hlo_message_unpack(p->scratch, &Xla__HloModuleProto__type, envelope.module.at,
                           (size_t)(envelope.module.end - envelope.module.at));
    if (!message) hlo_proto_fail(p, "invalid binary HLO module");
    read_module(p, message, &envelope);
    hlo_arena_set_recover(module->arena, NULL);
    if (!hlo_envelope_records(&envelope)) return HLO_OK;
    hlo_recorded *recorded = module->recorded = hlo_calloc(1, sizeof *recorded);
    if (!recorded) return HLO_OUT_OF_MEMORY;
    recorded->modules = 1;
    recorded->size = content->size;
    recorded->bytes = content->capacity ? content->bytes : hlo_malloc(content->size);
    if (!recorded->bytes) return HLO_OUT_OF_MEMORY;
    if (content->capacity)
        content->bytes = NULL;
    else
        memcpy(recorded->bytes, content->bytes, content->size);
    return HLO_OK;
}

hlo_status hlo_proto_read(hlo_content *content, const char *name, const hlo_module_io *io,
                          const hlo_diag_sink *sink, hlo_module **out_module) {
    hlo_proto p;
    reading r = {content, io};
    hlo_status status = hlo_proto_read_into(&p, name, sink, read_bytes, &r);
    hlo_free(p.owned);
    hlo_arena_free(p.scratch);
    if (status != HLO_OK) {
        hlo_module_free(p.module);
        p.module = NULL;
    }
    *out_module = p.module;
    return status;
}

/* -------------------------------------------------------------------------------------- writing */

static char *string_of(const char *interned) {
    return (char *)(uintptr_t)interned;
}

/* Writes the shapes of the parameters and the result: those of `layout` or, if it is NULL, of the
 * computation. `named`: also writes the names of the parameters. */
static Xla__ProgramShapeProto *program_shape(hlo_proto *p, const hlo_computation *comp,
                                             const hlo_shapes *layout, bool named) {
    const uint32_t count = layout ? layout->count - 1 : comp->parameter_count;
    Xla__ProgramShapeProto *to = hlo_message_new(p->scratch, &Xla__ProgramShapeProto__type);
    to->n_parameters = to->n_parameter_names = count;
    to->parameters = hlo_arena_array(p->scratch, count, sizeof(void *));
    to->parameter_names = hlo_arena_array(p->scratch, count, sizeof(void *));
    for (uint32_t i = 0; i < count; i++) {
        to->parameters[i] =
            hlo_shape_to_proto(p, layout ? layout->v[i] : comp->parameters[i]->shape);
        to->parameter_names[i] =
            named ? string_of(comp->parameters[i]->name) : hlo_arena_format(p->scratch, "p%u", i);
    }
    to->result = hlo_shape_to_proto(p, layout ? layout->v[count] : comp->root->shape);
    return to;
}

static Xla__HloComputationProto *write_computation(hlo_proto *p, const hlo_computation *comp,
                                                   bool fused) {
    Xla__HloComputationProto *to =
        hlo_unmapped_to_proto(p, &Xla__HloComputationProto__type, comp->attrs, comp->attr_count);
    to->name = string_of(comp->name);
    to->id = p->computations[comp->id];
    to->root_id = p->instrs[comp->root->id];
    to->is_fusion_computation = fused;
    to->program_shape = program_shape(p, comp, NULL, true);
    to->instructions = hlo_arena_array(p->scratch, comp->instr_count, sizeof(void *));
    p->kind = "instruction";
    for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
        p->name = instr->name;
        p->offset = instr->offset;
        p->operand = instr->operand_count ? hlo_instr_operand(instr, 0)->shape : NULL;
        Xla__HloInstructionProto *made = hlo_unmapped_to_proto(p, &Xla__HloInstructionProto__type,
                                                               instr->attrs, instr->attr_count);
        made->name = string_of(instr->name);
        made->opcode = string_of(hlo_ops[instr->op].name);
        made->shape = hlo_shape_to_proto(p, instr->shape);
        made->id = p->instrs[instr->id];
        made->n_operand_ids = instr->operand_count;
        made->operand_ids =
            hlo_arena_array(p->scratch, instr->operand_count, sizeof *made->operand_ids);
        for (uint32_t i = 0; i < instr->operand_count; i++)
            made->operand_ids[i] = p->instrs[hlo_instr_operand(instr, i)->id];
        if (instr->op == HLO_OP_PARAMETER) made->parameter_number = instr->u.parameter;
        if (instr->op == HLO_OP_CONSTANT) made->literal = hlo_literal_to_proto(p, instr->u.literal);
        hlo_attrs_to_proto(p, instr->attrs, instr->attr_count, instr->op, &made->base);
        to->instructions[to->n_instructions++] = made;
    }
    p->kind = "computation";
    p->name = comp->name;
    hlo_attrs_to_proto(p, comp->attrs, comp->attr_count, HLO_OP_COUNT, &to->base);
    return to;
}

static hlo_pb_bytes *strings_of(hlo_proto *p, const char *const *from, uint32_t count) {
    hlo_pb_bytes *to = hlo_arena_array(p->scratch, count, sizeof *to);
    for (uint32_t i = 0; i < count; i++)
        to[i] = (hlo_pb_bytes){hlo_intern_length(from[i]), (uint8_t *)string_of(from[i])};
    return to;
}

static void write_tables(hlo_proto *p, const hlo_tables *from, Xla__HloModuleProto *module) {
    Xla__StackFrameIndexProto *to = hlo_message_add(p->scratch, module, "stack_frame_index");
    to->n_file_names = from->file_count;
    to->file_names = strings_of(p, from->files, from->file_count);
    to->n_function_names = from->function_count;
    to->function_names = strings_of(p, from->functions, from->function_count);
    for (uint32_t i = 0; i < from->location_count; i++) {
        const hlo_file_location *l = &from->locations[i];
        Xla__StackFrameIndexProto__FileLocation *row =
            hlo_message_add(p->scratch, to, "file_locations");
        row->file_name_id = (int32_t)l->file_name;
        row->function_name_id = (int32_t)l->function_name;
        row->line = (int32_t)l->line;
        row->end_line = (int32_t)l->end_line;
        row->column = (int32_t)l->column;
        row->end_column = (int32_t)l->end_column;
    }
    for (uint32_t i = 0; i < from->frame_count; i++) {
        Xla__StackFrameIndexProto__StackFrame *row =
            hlo_message_add(p->scratch, to, "stack_frames");
        row->file_location_id = (int32_t)from->frames[i].file_location;
        row->parent_frame_id = (int32_t)(from->frames[i].parent - 1);
    }
}

/* Writes the header: the schedule (without fused computations), the entry layout, and the
 * attributes with separate fields. */
static Xla__HloModuleProto *write_module(hlo_proto *p, const hlo_module *module) {
    Xla__HloModuleProto *to =
        hlo_unmapped_to_proto(p, &Xla__HloModuleProto__type, module->attrs, module->attr_count);
    bool *fused = hlo_arena_zero(p->scratch, module->next_computation_id);
    int64_t count = 0;
    p->computations =
        hlo_arena_array(p->scratch, module->next_computation_id, sizeof *p->computations);
    p->instrs = hlo_arena_array(p->scratch, module->next_id, sizeof *p->instrs);
    /* Number as XLA does: computations by their index in the module, instructions by their index,
     * with the computation's number in the upper 32 bits. */
    for (const hlo_computation *comp = module->first; comp; comp = comp->next, count++) {
        int64_t instrs = 0;
        p->computations[comp->id] = count;
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            p->instrs[i->id] = count << 32 | instrs++;
            if (i->op == HLO_OP_FUSION) hlo_instr_visit_called(i, hlo_mark_called, fused);
        }
    }
    to->computations = hlo_arena_array(p->scratch, (size_t)count, sizeof(void *));
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        to->computations[to->n_computations++] = write_computation(p, comp, fused[comp->id]);
    p->kind = NULL;
    p->offset = 0;
    to->name = string_of(module->name);
    to->entry_computation_name = string_of(module->entry->name);
    to->entry_computation_id = p->computations[module->entry->id];
    const hlo_tables *t = &module->tables;
    if (t->file_count || t->function_count || t->location_count || t->frame_count)
        write_tables(p, t, to);
    hlo_attr others[HLO_ATTR_COUNT];
    uint32_t other_count = 0;
    const hlo_shapes *layout = NULL;
    bool scheduled = false;
    for (uint32_t i = 0; i < module->attr_count; i++) {
        const hlo_attr *attr = &module->attrs[i];
        if (attr->id == HLO_ATTR_IS_SCHEDULED)
            scheduled = attr->u.i;
        else if (attr->id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT)
            layout = attr->u.shapes;
        else
            others[other_count++] = *attr;
    }
    Xla__HloScheduleProto *schedule =
        scheduled ? hlo_message_add(p->scratch, to, "schedule") : NULL;
    for (size_t i = 0; schedule && i < to->n_computations; i++) {
        const Xla__HloComputationProto *comp = to->computations[i];
        if (comp->is_fusion_computation) continue;
        Xla__HloScheduleProto__SequencesEntry *each =
            hlo_message_add(p->scratch, schedule, "sequences");
        Xla__HloScheduleProto__InstructionSequence *order =
            hlo_message_add(p->scratch, each, "value");
        each->key = comp->id;
        order->n_instruction_ids = comp->n_instructions;
        order->instruction_ids =
            hlo_arena_array(p->scratch, comp->n_instructions, sizeof *order->instruction_ids);
        for (size_t k = 0; k < comp->n_instructions; k++)
            order->instruction_ids[k] = comp->instructions[k]->id;
    }
    to->host_program_shape = program_shape(p, module->entry, layout, false);
    hlo_attrs_to_proto(p, others, other_count, HLO_OP_COUNT, &to->base);
    return to;
}

static hlo_status print_proto(hlo_proto *p, const hlo_module *module, hlo_proto_format format,
                              FILE *out) {
    jmp_buf recover, failed;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    if (setjmp(failed)) return HLO_INVALID_INPUT;
    p->scratch = hlo_arena_new(&recover);
    if (!p->scratch) return HLO_OUT_OF_MEMORY;
    p->failed = &failed;
    const hlo_pb *message = &write_module(p, module)->base;
    bool written;
    if (format == HLO_PROTO_BINARY) {
        const uint8_t *at;
        bool unknown;
        const hlo_wire packed = hlo_message_pack(p->scratch, message);
        const size_t size = (size_t)(packed.end - packed.at);
        if (!hlo_wire_check(message->descriptor, &packed, &at, &unknown))
            hlo_proto_fail(p, HLO_WIRE_TOO_DEEP, HLO_WIRE_DEEPEST);
        written = fwrite(packed.at, 1, size, out) == size;
    } else {
        written = hlo_pbtxt_print(p->scratch, message, out);
    }
    return written && fflush(out) == 0 ? HLO_OK : HLO_INVALID_INPUT;
}

hlo_status hlo_proto_write(const hlo_module *module, hlo_proto_format format,
                           const hlo_module_io *io, const hlo_diag_sink *sink, FILE *out) {
    hlo_proto p = {.module = (hlo_module *)(uintptr_t)module, .io = io, .sink = sink};
    hlo_status status = print_proto(&p, module, format, out);
    hlo_free(p.owned);
    hlo_arena_free(p.scratch);
    return status;
}
