/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as HLO text, by their patterns. */
#include "grammar/proto/text_pattern.h"

#include <stdlib.h>
#include <string.h>

typedef struct printer {
    hlo_proto *p;
    hlo_bytes *out;
    unsigned depth;
    bool space; /* a `~` waits for the next bytes */
} printer;

static bool print_pattern(printer *w, const ProtobufCMessage *message, const char *at,
                          const char *end);

static void print_message(printer *w, const ProtobufCMessage *message);

static void put(printer *w, const char *bytes, size_t size) {
    if (w->space && size && *bytes != '}') hlo_bytes_put(w->out, " ", 1);
    w->space = w->space && !size;
    hlo_bytes_put(w->out, bytes, size);
}

static bool print_any(printer *w, const ProtobufCMessage *message, const char *const *patterns,
                      size_t count) {
    bool printed = false;
    if (++w->depth > HLO_DEEPEST_PATTERN) hlo_proto_fail(w->p, "nested too deeply");
    for (size_t i = 0; i < count && !printed; i++)
        printed = print_pattern(w, message, patterns[i], patterns[i] + strlen(patterns[i]));
    w->depth--;
    return printed;
}

static void print_axis(printer *w, const Xla__AxisRefProto *axis) {
    const Xla__MeshProto *mesh = w->p->mesh;
    if (!mesh || axis->mesh_axis_index < 0 || (size_t)axis->mesh_axis_index >= mesh->n_axes)
        hlo_proto_fail(w->p, "mesh axis %lld does not exist", (long long)axis->mesh_axis_index);
    const char *name = mesh->axes[axis->mesh_axis_index]->name;
    put(w, "'", 1);
    put(w, name, strlen(name));
    put(w, "'", 1);
    const Xla__AxisRefProto__SubAxis *sub = axis->sub_axis_info;
    if (sub)
        hlo_bytes_format(w->out, ":(%lld)%lld", (long long)sub->pre_size, (long long)sub->size);
}

static void print_entry(printer *w, const Xla__FrontendAttributes__MapEntry *entry) {
    put(w, entry->key, strlen(entry->key));
    put(w, "=", 1);
    size_t size = strlen(entry->value);
    if (hlo_is_braced(entry->value, size))
        put(w, entry->value, size);
    else
        hlo_bytes_quote(w->out, entry->value, size);
}

/* Prints the values of a nested tuple, each with its path: `({"a" {0}}, ({}, {"b"}))`. */
static void print_origin(printer *w, Xla__OriginalValueElementProto *const *elements, size_t count,
                         size_t level) {
    if (!count && !level) {
        put(w, "()", 2);
        return;
    }
    if (!count || level > HLO_DEEPEST_PATTERN)
        hlo_proto_fail(w->p, "the origin does not form a tuple");
    if (count == 1 && elements[0]->n_shape_index <= level) {
        if (elements[0]->original_array)
            print_message(w, &elements[0]->original_array->base);
        else
            put(w, "{}", 2);
        return;
    }
    put(w, "(", 1);
    for (size_t from = 0, to; from < count; from = to) {
        for (size_t i = from; i < count; i++)
            if (elements[i]->n_shape_index <= level)
                hlo_proto_fail(w->p, "the origin does not form a tuple");
        for (to = from + 1; to < count; to++)
            if (elements[to]->shape_index[level] != elements[from]->shape_index[level]) break;
        if (from) put(w, ", ", 2);
        print_origin(w, elements + from, to - from, level + 1);
    }
    put(w, ")", 1);
}

/* Prints entries `{"a"} : {"b"}, "module"`, one a line. */
static void print_recovery(printer *w, const Xla__OriginalValueRecoveryTableProto *table) {
    static const Xla__OriginalArrayProto none = XLA__ORIGINAL_ARRAY_PROTO__INIT;
    put(w, "{", 1);
    for (size_t i = 0; i < table->n_entries; i++) {
        const Xla__OriginalValueRecoveryTableProto__Entry *entry = table->entries[i];
        const Xla__OriginalArrayProto *from = entry->old_original_array,
                                      *to = entry->new_original_array;
        put(w, "\n  ", 3);
        print_message(w, from ? &from->base : &none.base);
        put(w, " : ", 3);
        print_message(w, to ? &to->base : &none.base);
        if (!entry->recovery_module) continue;
        put(w, ",\n  ", 4);
        hlo_recovery_print(w->p, w->out, entry->recovery_module);
    }
    put(w, "\n}", 2);
}

static void print_message(printer *w, const ProtobufCMessage *message) {
    const char *patterns[HLO_MOST_PATTERNS];
    if (message->descriptor == &xla__axis_ref_proto__descriptor) {
        print_axis(w, (const Xla__AxisRefProto *)message);
    } else if (message->descriptor == &xla__frontend_attributes__map_entry__descriptor) {
        print_entry(w, (const Xla__FrontendAttributes__MapEntry *)message);
    } else if (message->descriptor == &xla__original_value_proto__descriptor) {
        const Xla__OriginalValueProto *origin = (const Xla__OriginalValueProto *)message;
        put(w, "{", 1);
        if (origin->is_synthetic_call)
            put(w, "[synthetic_call]", 16);
        else
            print_origin(w, origin->elements, origin->n_elements, 0);
        put(w, "}", 1);
    } else if (message->descriptor == &xla__original_value_recovery_table_proto__descriptor) {
        print_recovery(w, (const Xla__OriginalValueRecoveryTableProto *)message);
    } else {
        if (message->descriptor == &xla__mesh_proto__descriptor)
            w->p->mesh = (const Xla__MeshProto *)message;
        size_t count = hlo_patterns_of(message->descriptor, patterns);
        if (!print_any(w, message, patterns, count))
            hlo_proto_fail(w->p, "this %s has no form in HLO text",
                           message->descriptor->short_name);
    }
}

static void print_word(printer *w, const hlo_pattern_piece *piece,
                       const ProtobufCFieldDescriptor *field, int64_t number) {
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(field->descriptor, (int)number);
    char word[64], text[24];
    if (!value || piece->style == '#') {
        int size = snprintf(text, sizeof text, "%lld", (long long)number);
        put(w, text, (size_t)size);
        return;
    }
    const char *name = value->name;
    if (piece->prefix && strncmp(name, piece->prefix, piece->prefix_size) == 0)
        name += piece->prefix_size;
    size_t size = 0;
    for (; name[size] && size < sizeof word; size++) {
        char c = name[size];
        word[size] = c >= 'A' && c <= 'Z' && piece->style != '^' ? (char)(c - 'A' + 'a') : c;
    }
    put(w, word, size);
}

static void print_value(printer *w, const hlo_pattern_piece *piece,
                        const ProtobufCFieldDescriptor *field, const void *place) {
    put(w, "", 0);
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE: print_message(w, *(ProtobufCMessage *const *)place); break;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)place;
        if (piece->style == '\'') put(w, "'", 1);
        if (piece->style)
            put(w, text, strlen(text));
        else
            hlo_bytes_quote(w->out, text, strlen(text));
        if (piece->style == '\'') put(w, "'", 1);
        break;
    }
    case PROTOBUF_C_TYPE_DOUBLE: hlo_bytes_double(w->out, *(const double *)place, false); break;
    case PROTOBUF_C_TYPE_ENUM: print_word(w, piece, field, hlo_field_load(field, place)); break;
    case PROTOBUF_C_TYPE_BOOL:
        hlo_bytes_text(w->out, hlo_field_load(field, place) ? "true" : "false");
        break;
    default: {
        char text[24];
        int64_t number = hlo_field_load(field, place);
        int size = number == INT64_MIN ? snprintf(text, sizeof text, "*")
                                       : snprintf(text, sizeof text, "%lld", (long long)number);
        put(w, text, (size_t)size);
    }
    }
}

static void print_field(printer *w, const hlo_pattern_piece *piece,
                        const ProtobufCMessage *message) {
    const ProtobufCFieldDescriptor *field = hlo_pattern_walk(&message, piece->path);
    if (!field) return;
    bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
    size_t count = many ? hlo_field_count(message, field) : 1;
    if (!many && field->type == PROTOBUF_C_TYPE_MESSAGE && !hlo_field_count(message, field)) return;
    for (size_t i = 0; i < count; i++) {
        if (i) put(w, piece->body, piece->body_size);
        print_value(w, piece, field, hlo_field_element(message, field, i));
    }
}

static bool wanted(const hlo_pattern_piece *piece, size_t count) {
    return piece->number == 1 ? count == 1 : piece->number == 2 ? count > 1 : count > 0;
}

static bool guards_hold(const ProtobufCMessage *message, const char *at, const char *end) {
    hlo_pattern_piece piece;
    while (at = hlo_pattern_next(at, end, &piece), piece.kind != -1) {
        if (piece.kind == '?' && !hlo_pattern_count(message, piece.path)) return false;
        if (piece.kind != '!') continue;
        const ProtobufCMessage *of = message;
        const ProtobufCFieldDescriptor *field = hlo_pattern_walk(&of, piece.path);
        if (!field || hlo_field_load(field, hlo_field_at(of, field)) != piece.number) return false;
    }
    return true;
}

static bool print_pattern(printer *w, const ProtobufCMessage *message, const char *at,
                          const char *end) {
    hlo_pattern_piece piece;
    if (!guards_hold(message, at, end)) return false;
    while (at = hlo_pattern_next(at, end, &piece), piece.kind != -1) {
        if (piece.kind == '$')
            print_field(w, &piece, message);
        else if (piece.kind == '~')
            w->space = true;
        else if (piece.kind == '@' && wanted(&piece, hlo_pattern_count(message, piece.path)))
            print_pattern(w, message, piece.body, piece.body + piece.body_size);
        else if (!piece.kind)
            put(w, &piece.c, 1);
    }
    return true;
}

bool hlo_text_pattern_print(hlo_proto *p, hlo_bytes *out, const ProtobufCMessage *message,
                            const char *const *patterns, size_t count) {
    printer w = {.p = p, .out = out};
    return print_any(&w, message, patterns, count);
}
