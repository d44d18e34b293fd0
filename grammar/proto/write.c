/* SPDX-License-Identifier: Apache-2.0 */
/* The IR to binary modules. */
#include <stdlib.h>
#include <string.h>

#include "grammar/proto/proto.h"
#include "hlo/proto.h"

static char *string_of(const char *interned) {
    return (char *)(uintptr_t)interned;
}

/* Numbers computations and instructions as XLA does: computations by their index in the module,
 * instructions by their index, with the computation's number in the upper 32 bits. */
static void number(hlo_proto *p, const hlo_module *module) {
    int64_t comps = 0;
    p->computations =
        hlo_arena_array(p->scratch, module->next_computation_id, sizeof *p->computations);
    p->instrs = hlo_arena_array(p->scratch, module->next_id, sizeof *p->instrs);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next, comps++) {
        int64_t instrs = 0;
        p->computations[comp->id] = comps;
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            p->instrs[instr->id] = comps << 32 | instrs++;
    }
}

static Xla__HloInstructionProto *write_instr(hlo_proto *p, const hlo_instr *instr) {
    p->kind = "instruction";
    p->name = instr->name;
    p->offset = instr->offset;
    p->operand = instr->operand_count ? hlo_instr_operand(instr, 0)->shape : NULL;
    Xla__HloInstructionProto *to = hlo_unmapped_to_proto(p, &xla__hlo_instruction_proto__descriptor,
                                                         instr->attrs, instr->attr_count);
    to->name = string_of(instr->name);
    to->opcode = string_of(hlo_ops[instr->op].name);
    to->shape = hlo_shape_to_proto(p, instr->shape);
    to->id = p->instrs[instr->id];
    to->n_operand_ids = instr->operand_count;
    to->operand_ids = hlo_arena_array(p->scratch, instr->operand_count, sizeof *to->operand_ids);
    for (uint32_t i = 0; i < instr->operand_count; i++)
        to->operand_ids[i] = p->instrs[hlo_instr_operand(instr, i)->id];
    if (instr->op == HLO_OP_PARAMETER) to->parameter_number = instr->u.parameter;
    if (instr->op == HLO_OP_CONSTANT) to->literal = hlo_literal_to_proto(p, instr->u.literal);
    hlo_attrs_to_proto(p, instr->attrs, instr->attr_count, instr->op, &to->base);
    hlo_unknown_fields_to_proto(p, instr->attrs, instr->attr_count, &to->base);
    return to;
}

/* Writes shapes of parameters and result; `layout` NULL: those of the computation. `named`: with
 * the names of the parameters. */
static Xla__ProgramShapeProto *program_shape(hlo_proto *p, const hlo_computation *comp,
                                             const hlo_shapes *layout, bool named) {
    const uint32_t count = layout ? layout->count - 1 : comp->parameter_count;
    Xla__ProgramShapeProto *to = hlo_message_new(p->scratch, &xla__program_shape_proto__descriptor);
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
    Xla__HloComputationProto *to = hlo_unmapped_to_proto(p, &xla__hlo_computation_proto__descriptor,
                                                         comp->attrs, comp->attr_count);
    to->name = string_of(comp->name);
    to->id = p->computations[comp->id];
    to->root_id = p->instrs[comp->root->id];
    to->is_fusion_computation = fused;
    to->program_shape = program_shape(p, comp, NULL, true);
    to->instructions = hlo_arena_array(p->scratch, comp->instr_count, sizeof(void *));
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
        to->instructions[to->n_instructions++] = write_instr(p, instr);
    p->kind = "computation";
    p->name = comp->name;
    hlo_attrs_to_proto(p, comp->attrs, comp->attr_count, HLO_OP_COUNT, &to->base);
    hlo_unknown_fields_to_proto(p, comp->attrs, comp->attr_count, &to->base);
    return to;
}

static char **strings_of(hlo_proto *p, const char *const *from, uint32_t count) {
    char **to = hlo_arena_array(p->scratch, count, sizeof *to);
    for (uint32_t i = 0; i < count; i++) to[i] = string_of(from[i]);
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

/* Writes the instructions of every computation but those of fusions, in order. */
static void write_schedule(hlo_proto *p, Xla__HloModuleProto *module) {
    Xla__HloScheduleProto *to = hlo_message_add(p->scratch, module, "schedule");
    for (size_t i = 0; i < module->n_computations; i++) {
        const Xla__HloComputationProto *comp = module->computations[i];
        if (comp->is_fusion_computation) continue;
        Xla__HloScheduleProto__SequencesEntry *each = hlo_message_add(p->scratch, to, "sequences");
        Xla__HloScheduleProto__InstructionSequence *order =
            hlo_message_add(p->scratch, each, "value");
        each->key = comp->id;
        order->n_instruction_ids = comp->n_instructions;
        order->instruction_ids =
            hlo_arena_array(p->scratch, comp->n_instructions, sizeof *order->instruction_ids);
        for (size_t k = 0; k < comp->n_instructions; k++)
            order->instruction_ids[k] = comp->instructions[k]->id;
    }
}

/* Writes the header: schedule, layout, and the attributes with separate fields. */
static void write_header(hlo_proto *p, const hlo_module *module, Xla__HloModuleProto *to) {
    hlo_attr others[HLO_ATTR_COUNT];
    uint32_t count = 0;
    const hlo_shapes *layout = NULL;
    for (uint32_t i = 0; i < module->attr_count; i++) {
        const hlo_attr *attr = &module->attrs[i];
        if (attr->id == HLO_ATTR_IS_SCHEDULED && attr->u.i)
            write_schedule(p, to);
        else if (attr->id == HLO_ATTR_IS_SCHEDULED)
            continue;
        else if (attr->id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT)
            layout = attr->u.shapes;
        else
            others[count++] = *attr;
    }
    to->host_program_shape = program_shape(p, module->entry, layout, false);
    hlo_attrs_to_proto(p, others, count, HLO_OP_COUNT, &to->base);
    hlo_unknown_fields_to_proto(p, others, count, &to->base);
}

static Xla__HloModuleProto *write_module(hlo_proto *p, const hlo_module *module) {
    Xla__HloModuleProto *to = hlo_unmapped_to_proto(p, &xla__hlo_module_proto__descriptor,
                                                    module->attrs, module->attr_count);
    bool *fused = hlo_arena_zero(p->scratch, module->next_computation_id);
    size_t count = 0;
    number(p, module);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next, count++)
        for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i))
            if (i->op == HLO_OP_FUSION) hlo_instr_visit_called(i, hlo_mark_called, fused);
    to->computations = hlo_arena_array(p->scratch, count, sizeof(void *));
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
    write_header(p, module, to);
    return to;
}

static bool write_binary(hlo_proto *p, const ProtobufCMessage *message, FILE *out) {
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = hlo_arena_alloc(p->scratch, size);
    protobuf_c_message_pack(message, bytes);
    size_t at;
    bool unknown;
    if (!hlo_wire_check(message->descriptor, bytes, size, &at, &unknown))
        hlo_proto_fail(p, HLO_WIRE_TOO_DEEP, HLO_WIRE_DEEPEST);
    return fwrite(bytes, 1, size, out) == size;
}

static hlo_status print_proto(hlo_proto *p, const hlo_module *module, hlo_proto_format format,
                              FILE *out) {
    jmp_buf recover, failed;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    if (setjmp(failed)) return HLO_INVALID_INPUT;
    p->scratch = hlo_arena_new(&recover);
    if (!p->scratch) return HLO_OUT_OF_MEMORY;
    p->failed = &failed;
    const Xla__HloModuleProto *message = write_module(p, module);
    bool written = format == HLO_PROTO_BINARY ? write_binary(p, &message->base, out)
                                              : hlo_pbtxt_print(p->scratch, &message->base, out);
    return written && fflush(out) == 0 ? HLO_OK : HLO_INVALID_INPUT;
}

hlo_status hlo_proto_write(const hlo_module *module, hlo_proto_format format,
                           const hlo_module_io *io, const hlo_diag_sink *sink, FILE *out) {
    hlo_proto p = {.module = (hlo_module *)(uintptr_t)module, .io = io, .sink = sink};
    hlo_status status = print_proto(&p, module, format, out);
    free(p.owned);
    hlo_arena_free(p.scratch);
    return status;
}
