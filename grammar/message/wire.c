/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that bytes are a message before protobuf-c reads them: protobuf-c neither bounds nesting
 * nor reports the position of an error. */
#include <string.h>

#include "grammar/message/message.h"

enum { VARINT, FIXED64, DELIMITED, GROUP_BEGIN, GROUP_END, FIXED32 };

typedef struct wire {
    const uint8_t *begin, *at, *end;
    bool unknown;
} wire;

static bool read_varint(wire *w, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool skip_bytes(wire *w, uint64_t size) {
    if (size > (uint64_t)(w->end - w->at)) return false;
    w->at += size;
    return true;
}

static int wire_type(const ProtobufCFieldDescriptor *field) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return DELIMITED;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return FIXED64;
    default: return VARINT;
    }
}

static bool check(const ProtobufCMessageDescriptor *type, wire *w, unsigned depth);

/* Checks the contents of a length-delimited field. */
static bool check_inside(const ProtobufCFieldDescriptor *field, wire *w, uint64_t size,
                         unsigned depth) {
    const uint8_t *end = w->end;
    if (size > (uint64_t)(end - w->at)) return false;
    w->end = w->at + size;
    bool whole = true;
    int element = field ? wire_type(field) : DELIMITED;
    uint64_t value;
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
        whole = check(field->descriptor, w, depth + 1);
    else if (element == VARINT)
        while (whole && w->at < w->end) whole = read_varint(w, &value);
    else if (element != DELIMITED)
        whole = size % (element == FIXED32 ? 4 : 8) == 0;
    if (!whole) return false;
    w->at = w->end;
    w->end = end;
    return true;
}

static bool check(const ProtobufCMessageDescriptor *type, wire *w, unsigned depth) {
    if (depth > HLO_WIRE_DEEPEST) return false;
    while (w->at < w->end) {
        uint64_t tag, value;
        const uint8_t *from = w->at;
        bool whole = read_varint(w, &tag) && tag >> 3 && tag >> 3 < 1 << 29;
        if (!whole) {
            w->at = from;
            return false;
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        w->unknown |= !field;
        int wanted = field ? wire_type(field) : (int)(tag & 7), is = (int)(tag & 7);
        bool packed = field && field->label == PROTOBUF_C_LABEL_REPEATED && is == DELIMITED;
        if (is != wanted && !packed) return false;
        switch (is) {
        case VARINT: whole = read_varint(w, &value); break;
        case FIXED64: whole = skip_bytes(w, 8); break;
        case FIXED32: whole = skip_bytes(w, 4); break;
        case DELIMITED:
            whole = read_varint(w, &value) && check_inside(field, w, value, depth);
            break;
        default: whole = false;
        }
        if (!whole) return false;
    }
    return true;
}

bool hlo_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                    size_t *out_offset, bool *out_unknown) {
    wire w = {.begin = bytes, .at = bytes, .end = bytes + size};
    bool whole = check(type, &w, 0);
    *out_unknown = w.unknown;
    *out_offset = (size_t)(w.at - bytes);
    return whole;
}

static void *allocate(void *arena, size_t size) {
    return hlo_arena_alloc(arena, size);
}

static void give_back(void *arena, void *memory) {
    (void)arena;
    (void)memory;
}

ProtobufCAllocator hlo_wire_allocator(hlo_arena *arena) {
    return (ProtobufCAllocator){.alloc = allocate, .free = give_back, .allocator_data = arena};
}
