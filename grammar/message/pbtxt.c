/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in protobuf's text format, by descriptor. */
#include <inttypes.h>
#include <string.h>

#include "grammar/attr/bytes.h"
#include "grammar/message/message.h"

typedef struct pbtxt {
    hlo_bytes line;
    FILE *out;
} pbtxt;

static void print_message(pbtxt *t, const ProtobufCMessage *message, int depth);

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

static void print_field(pbtxt *t, const ProtobufCFieldDescriptor *field, const void *place,
                        int depth) {
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

static uint64_t fixed(const uint8_t *data, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)data[i] << (8 * i);
    return value;
}

static uint64_t varint(const uint8_t *data, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && i < 10; i++) value |= (uint64_t)(data[i] & 127) << (7 * i);
    return value;
}

static void print_unknown(pbtxt *t, const ProtobufCMessageUnknownField *field, int depth) {
    hlo_bytes_format(&t->line, "%*s%" PRIu32 ": ", 2 * depth, "", field->tag);
    switch (field->wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        hlo_bytes_format(&t->line, "%" PRIu64, varint(field->data, field->len));
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED: {
        size_t prefix = 0;
        while (prefix < field->len && field->data[prefix] & 128) prefix++;
        if (prefix < field->len) prefix++;
        hlo_bytes_quote(&t->line, (const char *)field->data + prefix, field->len - prefix);
        break;
    }
    default:
        hlo_bytes_format(&t->line, "0x%0*" PRIx64, (int)(2 * field->len),
                         fixed(field->data, field->len));
    }
    hlo_bytes_text(&t->line, "\n");
    flush(t);
}

static void print_message(pbtxt *t, const ProtobufCMessage *message, int depth) {
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &type->fields[f];
        size_t count = hlo_field_count(message, field);
        for (size_t i = 0; i < count; i++)
            print_field(t, field, hlo_field_element(message, field, i), depth);
    }
    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        print_unknown(t, &message->unknown_fields[i], depth);
}

bool hlo_pbtxt_print(hlo_arena *scratch, const ProtobufCMessage *message, FILE *out) {
    pbtxt t = {.line.arena = scratch, .out = out};
    print_message(&t, message, 0);
    return !ferror(out);
}
