/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and changes fields of messages by their descriptors. */
#include <string.h>

#include "grammar/message/message.h"

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

static bool is_there(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
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

size_t hlo_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    if (field->label != PROTOBUF_C_LABEL_REPEATED) return is_there(message, field);
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
