/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown fields of messages nested in the message of a module, a computation or an instruction:
 * reading removes and stores them with their paths, and writing puts them back into the messages
 * that are then at these paths.
 *
 * The attribute is a list of entries, each followed by its steps and by its fields as on the wire.
 */
#include <string.h>

#include "grammar/proto/proto.h"
#include "ir/intern.h"

enum { MOST_STEPS = 100 }; /* the maximum nesting of messages */

typedef struct step {
    uint32_t field, index; /* field number; index of the element of a repeated field */
} step;

typedef struct unknown_entry {
    uint32_t steps, size;
    uint32_t alone; /* the message sets no other field, and may be missing for that reason */
} unknown_entry;

typedef struct taking {
    hlo_arena *scratch;
    hlo_bytes out;
    step path[MOST_STEPS];
} taking;

/* True if no field is set, except to lists of defaults. */
static bool says_nothing(const ProtobufCMessage *message) {
    for (unsigned f = 0; f < message->descriptor->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[f];
        const size_t count = hlo_field_count(message, field);
        const bool words =
            field->label == PROTOBUF_C_LABEL_REPEATED && field->type == PROTOBUF_C_TYPE_ENUM;
        if (count && !words) return false;
        for (size_t i = 0; i < count; i++)
            if (hlo_field_load(field, hlo_field_element(message, field, i))) return false;
    }
    return true;
}

static void take_fields(taking *t, ProtobufCMessage *message, uint32_t steps) {
    Xla__UnknownFields only = XLA__UNKNOWN_FIELDS__INIT;
    only.base.n_unknown_fields = message->n_unknown_fields;
    only.base.unknown_fields = message->unknown_fields;
    message->n_unknown_fields = 0;
    message->unknown_fields = NULL;
    const size_t size = protobuf_c_message_get_packed_size(&only.base);
    uint8_t *bytes = hlo_arena_alloc(t->scratch, size);
    protobuf_c_message_pack(&only.base, bytes);
    const unknown_entry head = {
        .steps = steps, .size = (uint32_t)size, .alone = says_nothing(message)};
    hlo_bytes_put(&t->out, &head, sizeof head);
    hlo_bytes_put(&t->out, t->path, steps * sizeof *t->path);
    hlo_bytes_put(&t->out, bytes, size);
}

/* True if a message in the field keeps its own unknown fields: computations, instructions. */
static bool has_own(const ProtobufCFieldDescriptor *field) {
    return field->descriptor == &xla__hlo_computation_proto__descriptor ||
           field->descriptor == &xla__hlo_instruction_proto__descriptor;
}

static void take_from(taking *t, ProtobufCMessage *message, uint32_t steps) {
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields && steps < MOST_STEPS; f++) {
        const ProtobufCFieldDescriptor *field = &type->fields[f];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || (!steps && has_own(field))) continue;
        const size_t count = hlo_field_count(message, field);
        for (size_t i = 0; i < count; i++) {
            t->path[steps] = (step){.field = field->id, .index = (uint32_t)i};
            take_from(t, *(ProtobufCMessage **)hlo_field_element(message, field, i), steps + 1);
        }
    }
    if (steps && message->n_unknown_fields) take_fields(t, message, steps);
}

bool hlo_unknown_fields_from_proto(hlo_proto *p, ProtobufCMessage *message, hlo_attr *out) {
    if (!p->unknown) return false;
    taking t = {.scratch = p->scratch, .out.arena = p->scratch};
    take_from(&t, message, 0);
    if (!t.out.size) return false;
    *out = (hlo_attr){.id = HLO_ATTR_STRAYS, .u.str = hlo_intern(p->module, t.out.v, t.out.size)};
    return true;
}

/* Finds the message at the end of the path; NULL: the module has changed and does not have it. */
static ProtobufCMessage *find(hlo_proto *p, ProtobufCMessage *message, const unknown_entry *of,
                              const char *path) {
    for (uint32_t i = 0; i < of->steps; i++) {
        step at;
        memcpy(&at, path + i * sizeof at, sizeof at);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(message->descriptor, at.field);
        const bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
        if (many && at.index >= hlo_field_count(message, field)) return NULL;
        ProtobufCMessage **next = hlo_field_element(message, field, at.index);
        if (!*next && of->alone && i + 1 == of->steps)
            *next = hlo_message_new(p->scratch, field->descriptor);
        if (!*next) return NULL;
        message = *next;
    }
    return message;
}

void hlo_unknown_fields_to_proto(hlo_proto *p, const hlo_attr *attrs, uint32_t count,
                                 ProtobufCMessage *message) {
    ProtobufCAllocator allocator = hlo_wire_allocator(p->scratch);
    const char *bytes = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (attrs[i].id == HLO_ATTR_STRAYS) bytes = attrs[i].u.str;
    const char *end = bytes ? bytes + hlo_intern_length(bytes) : NULL;
    for (unknown_entry head; bytes < end; bytes += head.size) {
        memcpy(&head, bytes, sizeof head);
        const char *path = bytes + sizeof head;
        bytes = path + head.steps * sizeof(step);
        ProtobufCMessage *to = find(p, message, &head, path);
        if (!to) continue;
        const ProtobufCMessage *fields = protobuf_c_message_unpack(
            &xla__unknown_fields__descriptor, &allocator, head.size, (const uint8_t *)bytes);
        to->n_unknown_fields = fields->n_unknown_fields;
        to->unknown_fields = fields->unknown_fields;
    }
}
