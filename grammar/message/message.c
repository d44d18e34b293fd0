/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf messages of any type, by descriptor: fields, checks of bytes, and the text format. */
#include "grammar/message/message.h"

#include <inttypes.h>
#include <string.h>

#include "grammar/attr/bytes.h"

void *hlo_message_new(hlo_arena *arena, const ProtobufCMessageDescriptor *type) {
    ProtobufCMessage *message = hlo_arena_alloc(arena, type->sizeof_message);
    type->message_init(message);
    return message;
}

bool hlo_message_is_new(const ProtobufCMessage *message) {
    union {
        ProtobufCMessage message;
        char bytes[2048];
    } fresh;
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type->sizeof_message > sizeof fresh) return false;
    type->message_init(&fresh.message);
    return memcmp(message, &fresh, type->sizeof_message) == 0;
}

const ProtobufCFieldDescriptor *hlo_field_find(const ProtobufCMessageDescriptor *type,
                                               const char *name, size_t size) {
    char copy[64];
    if (size >= sizeof copy) return NULL;
    memcpy(copy, name, size);
    copy[size] = '\0';
    return protobuf_c_message_descriptor_get_field_by_name(type, copy);
}

void *hlo_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    return (char *)(uintptr_t)message + field->offset;
}

static void *quantifier(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    return (char *)(uintptr_t)message + field->quantifier_offset;
}

static size_t value_size(const ProtobufCFieldDescriptor *field) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return 4;
    }
}

static bool is_oneof(const ProtobufCFieldDescriptor *field) {
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

static uint32_t oneof_case(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    uint32_t id;
    memcpy(&id, quantifier(message, field), sizeof id);
    return id;
}

size_t hlo_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        const void *place = hlo_field_at(message, field);
        if (is_oneof(field)) return oneof_case(message, field) == field->id;
        switch (field->type) {
        case PROTOBUF_C_TYPE_MESSAGE: return *(void *const *)place != NULL;
        case PROTOBUF_C_TYPE_STRING: return *(char *const *)place && **(char *const *)place;
        case PROTOBUF_C_TYPE_BYTES: return ((const ProtobufCBinaryData *)place)->len != 0;
        case PROTOBUF_C_TYPE_FLOAT: return *(const float *)place != 0;
        case PROTOBUF_C_TYPE_DOUBLE: return *(const double *)place != 0;
        default: return hlo_field_load(field, place) != 0;
        }
    }
    return *(const size_t *)quantifier(message, field);
}

void *hlo_field_element(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        size_t index) {
    char *place = hlo_field_at(message, field);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) return place;
    char *first = *(char **)(void *)place;
    return first ? first + index * value_size(field) : NULL;
}

void *hlo_field_add(hlo_arena *arena, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field) {
    char *place = hlo_field_at(message, field);
    if (is_oneof(field)) memcpy(quantifier(message, field), &field->id, sizeof field->id);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) return place;
    size_t *count = quantifier(message, field), size = value_size(field);
    if ((*count & (*count - 1)) == 0) {
        char *grown = hlo_arena_array(arena, *count ? *count * 2 : 1, size);
        if (*count) memcpy(grown, *(char **)(void *)place, *count * size);
        *(char **)(void *)place = grown;
    }
    return memset(*(char **)(void *)place + (*count)++ * size, 0, size);
}

void *hlo_message_add(hlo_arena *arena, void *message, const char *name) {
    const ProtobufCMessageDescriptor *type = ((ProtobufCMessage *)message)->descriptor;
    const ProtobufCFieldDescriptor *field = hlo_field_find(type, name, strlen(name));
    return *(void **)hlo_field_add(arena, message, field) =
               hlo_message_new(arena, field->descriptor);
}

void hlo_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    if (is_oneof(field) && oneof_case(message, field) != field->id) return;
    bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (many)
        *(size_t *)quantifier(message, field) = 0;
    else if (is_oneof(field))
        memset(quantifier(message, field), 0, sizeof field->id);
    void *place = hlo_field_at(message, field);
    if (field->type == PROTOBUF_C_TYPE_STRING && !many)
        *(const char **)place = protobuf_c_empty_string;
    else
        memset(place, 0, many ? sizeof(void *) : value_size(field));
}

int64_t hlo_field_load(const ProtobufCFieldDescriptor *field, const void *place) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: return *(const uint32_t *)place;
    default: return value_size(field) == 8 ? *(const int64_t *)place : *(const int32_t *)place;
    }
}

bool hlo_field_store(const ProtobufCFieldDescriptor *field, void *place, int64_t value) {
    if (value_size(field) == 8) {
        *(int64_t *)place = value;
        return true;
    }
    if (value < INT32_MIN || value > INT32_MAX) return false;
    *(int32_t *)place = (int32_t)value;
    return true;
}

/* protobuf-c neither bounds nesting nor reports the position of an error, so this file checks the
 * bytes before protobuf-c reads them. */
enum { VARINT, FIXED64, DELIMITED, GROUP_BEGIN, GROUP_END, FIXED32 };

static bool read_varint(hlo_wire *w, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* Reads the value of `kind` at the start of `w` to `out`. */
static bool read_value(hlo_wire *w, int kind, hlo_wire *out) {
    uint64_t size = kind == FIXED64 ? 8 : 4;
    const uint8_t *from = w->at;
    switch (kind) {
    case VARINT:
        if (!read_varint(w, &size)) return false;
        *out = (hlo_wire){from, w->at, false};
        return true;
    case DELIMITED:
        if (!read_varint(w, &size)) return false;
        break;
    case FIXED64:
    case FIXED32: break;
    default: return false;
    }
    if (size > (uint64_t)(w->end - w->at)) return false;
    *out = (hlo_wire){w->at, w->at + size, false};
    w->at += size;
    return true;
}

static bool read_tag(hlo_wire *w, uint32_t *out_number, int *out_kind) {
    uint64_t tag;
    const uint8_t *from = w->at;
    if (!read_varint(w, &tag) || !(tag >> 3) || tag >> 3 >= 1 << 29) {
        w->at = from;
        return false;
    }
    *out_number = (uint32_t)(tag >> 3);
    *out_kind = (int)(tag & 7);
    return true;
}

bool hlo_wire_delimited(hlo_wire *w, hlo_wire *out) {
    return read_value(w, DELIMITED, out);
}

bool hlo_wire_next(hlo_wire *w, hlo_wire_field *out) {
    int kind;
    *out = (hlo_wire_field){0};
    if (!read_tag(w, &out->number, &kind) || !read_value(w, kind, &out->value)) return false;
    out->delimited = kind == DELIMITED;
    hlo_wire number = out->value;
    return kind != VARINT || read_varint(&number, &out->varint);
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

static bool check(const ProtobufCMessageDescriptor *type, hlo_wire *w, unsigned depth) {
    if (depth > HLO_WIRE_DEEPEST) return false;
    while (w->at < w->end) {
        uint64_t number;
        uint32_t id;
        int kind;
        hlo_wire value;
        if (!read_tag(w, &id, &kind)) return false;
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, id);
        w->unknown |= !field;
        const int wanted = field ? wire_type(field) : kind;
        bool packed = field && field->label == PROTOBUF_C_LABEL_REPEATED && kind == DELIMITED;
        if (kind != wanted && !packed) return false;
        if (!read_value(w, kind, &value)) return false;
        if (!field || kind != DELIMITED) continue;
        bool whole = true;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            whole = check(field->descriptor, &value, depth + 1);
            w->unknown |= value.unknown;
        } else if (wanted == VARINT) {
            while (whole && value.at < value.end) whole = read_varint(&value, &number);
        } else if (wanted != DELIMITED) {
            whole = (value.end - value.at) % (wanted == FIXED32 ? 4 : 8) == 0;
        }
        if (!whole) {
            w->at = value.at;
            return false;
        }
    }
    return true;
}

bool hlo_wire_check(const ProtobufCMessageDescriptor *type, const hlo_wire *message,
                    const uint8_t **out_at, bool *out_unknown) {
    hlo_wire w = {message->at, message->end, false};
    bool whole = check(type, &w, 0);
    *out_unknown = w.unknown;
    *out_at = w.at;
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

typedef struct pbtxt {
    hlo_bytes line;
    FILE *out;
} pbtxt;

static void flush(pbtxt *t) {
    fwrite(t->line.v, 1, t->line.size, t->out);
    t->line.size = 0;
}

static void print_scalar(pbtxt *t, const ProtobufCFieldDescriptor *field, const void *place) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)place;
        hlo_bytes_quote(&t->line, text, strlen(text));
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *data = place;
        hlo_bytes_quote(&t->line, (const char *)data->data, data->len);
        break;
    }
    case PROTOBUF_C_TYPE_FLOAT:
        hlo_bytes_double(&t->line, (double)*(const float *)place, true);
        break;
    case PROTOBUF_C_TYPE_DOUBLE: hlo_bytes_double(&t->line, *(const double *)place, false); break;
    case PROTOBUF_C_TYPE_BOOL:
        hlo_bytes_text(&t->line, hlo_field_load(field, place) ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        hlo_bytes_format(&t->line, "%" PRIu64, *(const uint64_t *)place);
        break;
    case PROTOBUF_C_TYPE_ENUM: {
        int64_t number = hlo_field_load(field, place);
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value(field->descriptor, (int)number);
        if (value)
            hlo_bytes_text(&t->line, value->name);
        else
            hlo_bytes_format(&t->line, "%" PRId64, number);
        break;
    }
    default: hlo_bytes_format(&t->line, "%" PRId64, hlo_field_load(field, place));
    }
}

/* Joins the lowest `bits` bits of each byte. The bits of the first byte become the lowest. */
static uint64_t joined_bits(const uint8_t *data, size_t size, unsigned bits) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && bits * i < 64; i++)
        value |= (uint64_t)(data[i] & ((1U << bits) - 1)) << (bits * i);
    return value;
}

static void print_message(pbtxt *t, const ProtobufCMessage *message, int depth) {
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &type->fields[f];
        size_t count = hlo_field_count(message, field);
        for (size_t i = 0; i < count; i++) {
            const void *place = hlo_field_element(message, field, i);
            hlo_bytes_format(&t->line, "%*s", 2 * depth, "");
            hlo_bytes_text(&t->line, field->name);
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                hlo_bytes_text(&t->line, " {\n");
                flush(t);
                print_message(t, *(ProtobufCMessage *const *)place, depth + 1);
                hlo_bytes_format(&t->line, "%*s}\n", 2 * depth, "");
            } else {
                hlo_bytes_text(&t->line, ": ");
                print_scalar(t, field, place);
                hlo_bytes_text(&t->line, "\n");
            }
            flush(t);
        }
    }
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *member = &message->unknown_fields[i];
        hlo_bytes_format(&t->line, "%*s%" PRIu32 ": ", 2 * depth, "", member->tag);
        switch (member->wire_type) {
        case PROTOBUF_C_WIRE_TYPE_VARINT:
            hlo_bytes_format(&t->line, "%" PRIu64, joined_bits(member->data, member->len, 7));
            break;
        case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED: {
            size_t prefix = 0;
            while (prefix < member->len && member->data[prefix] & 128) prefix++;
            if (prefix < member->len) prefix++;
            hlo_bytes_quote(&t->line, (const char *)member->data + prefix, member->len - prefix);
            break;
        }
        default:
            hlo_bytes_format(&t->line, "0x%0*" PRIx64, (int)(2 * member->len),
                             joined_bits(member->data, member->len, 8));
        }
        hlo_bytes_text(&t->line, "\n");
        flush(t);
    }
}

bool hlo_pbtxt_print(hlo_arena *scratch, const ProtobufCMessage *message, FILE *out) {
    pbtxt t = {.line.arena = scratch, .out = out};
    print_message(&t, message, 0);
    return !ferror(out);
}
