/* SPDX-License-Identifier: Apache-2.0 */
/* HLO text as messages, by their patterns. */
#include "grammar/proto/text_pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct scanner {
    hlo_proto *p;
    const char *at; /* ends with a NUL */
    unsigned depth;
} scanner;

static bool read_pattern(scanner *r, ProtobufCMessage *message, const char *at, const char *end);

static void skip_space(scanner *r) {
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r') r->at++;
}

static bool take(scanner *r, char c) {
    skip_space(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static bool read_int(scanner *r, int64_t *out) {
    char *end;
    skip_space(r);
    if (*r->at == '*') {
        *out = INT64_MIN;
        r->at++;
        return true;
    }
    if (*r->at != '-' && (*r->at < '0' || *r->at > '9')) return false;
    errno = 0;
    *out = strtoll(r->at, &end, 10);
    if (end == r->at || errno) return false;
    r->at = end;
    return true;
}

static char *copy(scanner *r, const char *from, size_t size) {
    char *text = hlo_arena_alloc(r->p->scratch, size + 1);
    memcpy(text, from, size);
    text[size] = '\0';
    return text;
}

static bool read_string(scanner *r, const hlo_pattern_piece *piece, char **out) {
    size_t size;
    skip_space(r);
    if (piece->style == '*') {
        size = strcspn(r->at, "=,{}[]() \t\r\n");
        *out = copy(r, r->at, size);
        r->at += size;
        return size > 0;
    }
    if (*r->at != '"' && *r->at != '\'') return false;
    *out = hlo_unquote(r->p->scratch, &r->at, r->at + strlen(r->at), &size);
    return *out != NULL;
}

static bool read_word(scanner *r, const hlo_pattern_piece *piece,
                      const ProtobufCFieldDescriptor *field, void *place) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const ProtobufCEnumDescriptor *words = field->descriptor;
    int64_t number;
    skip_space(r);
    if (read_int(r, &number)) return hlo_field_store(field, place, number);
    size_t size = strspn(r->at, letters);
    for (unsigned i = 0; i < words->n_values && size; i++) {
        const char *name = words->values[i].name;
        if (piece->prefix && strncmp(name, piece->prefix, piece->prefix_size) == 0)
            name += piece->prefix_size;
        if (strlen(name) != size || strncasecmp(name, r->at, size) != 0) continue;
        r->at += size;
        return hlo_field_store(field, place, words->values[i].value);
    }
    return false;
}

static bool read_axis(scanner *r, Xla__AxisRefProto *axis) {
    const Xla__MeshProto *mesh = r->p->mesh;
    char *name;
    if (!mesh || !read_string(r, &(hlo_pattern_piece){.style = '\''}, &name)) return false;
    size_t i = 0;
    while (i < mesh->n_axes && strcmp(mesh->axes[i]->name, name) != 0) i++;
    if (i == mesh->n_axes) return false;
    axis->mesh_axis_index = (int64_t)i;
    if (*r->at != ':') return true;
    r->at++;
    Xla__AxisRefProto__SubAxis *sub = hlo_arena_alloc(r->p->scratch, sizeof *sub);
    xla__axis_ref_proto__sub_axis__init(sub);
    axis->sub_axis_info = sub;
    return take(r, '(') && read_int(r, &sub->pre_size) && take(r, ')') && read_int(r, &sub->size);
}

static bool read_entry(scanner *r, Xla__FrontendAttributes__MapEntry *entry) {
    if (!read_string(r, &(hlo_pattern_piece){.style = '*'}, &entry->key) || !take(r, '='))
        return false;
    skip_space(r);
    if (*r->at != '{') return read_string(r, &(hlo_pattern_piece){0}, &entry->value);
    size_t size = hlo_braced_size(r->at, strlen(r->at));
    entry->value = copy(r, r->at, size);
    r->at += size;
    return size > 0;
}

static ProtobufCMessage *read_message(scanner *r, const ProtobufCMessageDescriptor *type);

/* Reads a leaf, or a tuple of leaves, at `path`. */
static bool read_origin(scanner *r, Xla__OriginalValueProto *origin, int64_t *path, size_t level) {
    if (level >= HLO_DEEPEST_PATTERN) hlo_proto_fail(r->p, "nested too deeply");
    if (take(r, '(')) {
        path[level] = 0;
        do {
            if (!read_origin(r, origin, path, level + 1)) return false;
            path[level]++;
        } while (take(r, ','));
        return take(r, ')');
    }
    const ProtobufCFieldDescriptor *field = hlo_field_find(origin->base.descriptor, "elements", 8);
    Xla__OriginalValueElementProto *element = hlo_arena_alloc(r->p->scratch, sizeof *element);
    xla__original_value_element_proto__init(element);
    element->n_shape_index = level;
    element->shape_index = hlo_arena_copy(r->p->scratch, path, level * sizeof *path);
    *(void **)hlo_field_add(r->p->scratch, &origin->base, field) = element;
    const char *from = r->at;
    if (take(r, '{') && take(r, '}')) return true;
    r->at = from;
    element->original_array =
        (Xla__OriginalArrayProto *)read_message(r, &xla__original_array_proto__descriptor);
    return element->original_array != NULL;
}

static bool read_original_value(scanner *r, Xla__OriginalValueProto *origin) {
    static const char synthetic[] = "[synthetic_call]";
    int64_t path[HLO_DEEPEST_PATTERN];
    if (!take(r, '{')) return false;
    skip_space(r);
    if (strncmp(r->at, synthetic, sizeof synthetic - 1) == 0) {
        origin->is_synthetic_call = 1;
        r->at += sizeof synthetic - 1;
    } else if (strncmp(r->at, "()", 2) == 0) {
        r->at += 2;
    } else if (!read_origin(r, origin, path, 0)) {
        return false;
    }
    return take(r, '}');
}

static Xla__OriginalArrayProto *read_array(scanner *r) {
    return (Xla__OriginalArrayProto *)read_message(r, &xla__original_array_proto__descriptor);
}

static bool read_recovery(scanner *r, Xla__OriginalValueRecoveryTableProto *table) {
    const ProtobufCFieldDescriptor *field = hlo_field_find(table->base.descriptor, "entries", 7);
    if (!take(r, '{')) return false;
    while (!take(r, '}')) {
        char *text;
        Xla__OriginalValueRecoveryTableProto__Entry *entry =
            hlo_arena_alloc(r->p->scratch, sizeof *entry);
        xla__original_value_recovery_table_proto__entry__init(entry);
        *(void **)hlo_field_add(r->p->scratch, &table->base, field) = entry;
        entry->old_original_array = read_array(r);
        if (!entry->old_original_array || !take(r, ':')) return false;
        entry->new_original_array = read_array(r);
        if (!entry->new_original_array) return false;
        if (!take(r, ',')) continue;
        skip_space(r);
        if (!read_string(r, &(hlo_pattern_piece){0}, &text)) return false;
        entry->recovery_module = hlo_recovery_read(r->p, text);
        if (!entry->recovery_module) return false;
    }
    return true;
}

/* Fills in a permutation that the text leaves out. */
static void complete(scanner *r, ProtobufCMessage *message) {
    const ProtobufCFieldDescriptor *perm = hlo_field_find(message->descriptor,
                                                          "iota_transpose_perm", 19),
                                   *dims =
                                       hlo_field_find(message->descriptor, "iota_reshape_dims", 17);
    if (!perm || !dims || hlo_field_count(message, perm)) return;
    for (size_t i = 0; i < hlo_field_count(message, dims); i++)
        hlo_field_store(perm, hlo_field_add(r->p->scratch, message, perm), (int64_t)i);
}

static ProtobufCMessage *read_message(scanner *r, const ProtobufCMessageDescriptor *type) {
    const char *patterns[HLO_MOST_PATTERNS], *from = r->at;
    size_t count = hlo_patterns_of(type, patterns);
    if (r->depth >= HLO_DEEPEST_PATTERN) hlo_proto_fail(r->p, "nested too deeply");
    ProtobufCMessage *message = hlo_message_new(r->p->scratch, type), *found = NULL;
    if (type == &xla__axis_ref_proto__descriptor)
        return read_axis(r, (Xla__AxisRefProto *)message) ? message : NULL;
    if (type == &xla__frontend_attributes__map_entry__descriptor)
        return read_entry(r, (Xla__FrontendAttributes__MapEntry *)message) ? message : NULL;
    if (type == &xla__original_value_proto__descriptor)
        return read_original_value(r, (Xla__OriginalValueProto *)message) ? message : NULL;
    if (type == &xla__original_value_recovery_table_proto__descriptor)
        return read_recovery(r, (Xla__OriginalValueRecoveryTableProto *)message) ? message : NULL;
    r->depth++;
    for (size_t i = 0; i < count && !found; i++) {
        r->at = from;
        message = hlo_message_new(r->p->scratch, type);
        if (read_pattern(r, message, patterns[i], patterns[i] + strlen(patterns[i])))
            found = message;
    }
    r->depth--;
    if (!found) return NULL;
    complete(r, found);
    if (type == &xla__mesh_proto__descriptor) r->p->mesh = (const Xla__MeshProto *)found;
    return found;
}

/* A value in the memory of one element. */
typedef union any_value {
    int64_t i;
    int32_t word;
    double f;
    char *str;
    ProtobufCMessage *message;
} any_value;

static bool read_value(scanner *r, const hlo_pattern_piece *piece,
                       const ProtobufCFieldDescriptor *field, any_value *out, size_t *out_size) {
    int64_t number;
    *out_size = sizeof(int64_t);
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return (out->message = read_message(r, field->descriptor)) != NULL;
    case PROTOBUF_C_TYPE_STRING: return read_string(r, piece, &out->str);
    case PROTOBUF_C_TYPE_DOUBLE: {
        char *end;
        skip_space(r);
        out->f = strtod(r->at, &end);
        bool any = end != r->at;
        r->at = end;
        return any;
    }
    case PROTOBUF_C_TYPE_INT64: return read_int(r, &out->i);
    case PROTOBUF_C_TYPE_ENUM:
        *out_size = sizeof out->word;
        return read_word(r, piece, field, &out->word);
    case PROTOBUF_C_TYPE_BOOL: {
        bool is = (skip_space(r), strncmp(r->at, "true", 4) == 0);
        if (!is && strncmp(r->at, "false", 5) != 0) return false;
        r->at += is ? 4 : 5;
        *out_size = sizeof out->word;
        out->word = is;
        return true;
    }
    default:
        *out_size = sizeof out->word;
        return read_int(r, &number) && hlo_field_store(field, &out->word, number);
    }
}

static bool read_separator(scanner *r, const hlo_pattern_piece *piece) {
    for (size_t i = 0; i < piece->body_size; i++)
        if (piece->body[i] != ' ' && !take(r, piece->body[i])) return false;
    return true;
}

static bool read_field(scanner *r, const hlo_pattern_piece *piece, ProtobufCMessage *message) {
    const ProtobufCFieldDescriptor *field = hlo_field_walk(r->p->scratch, &message, piece->path);
    bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
    for (size_t i = 0;; i++) {
        const char *from = r->at;
        any_value value;
        size_t size;
        bool read = (!i || read_separator(r, piece)) && read_value(r, piece, field, &value, &size);
        if (!read) r->at = from;
        if (!read) return many;
        memcpy(hlo_field_add(r->p->scratch, message, field), &value, size);
        if (!many) return true;
    }
}

/* Reads the part of a text that is there exactly when a field is. */
static void read_group(scanner *r, const hlo_pattern_piece *piece, ProtobufCMessage *message) {
    const char *from = r->at;
    bool read = read_pattern(r, message, piece->body, piece->body + piece->body_size);
    const ProtobufCFieldDescriptor *field = hlo_field_walk(r->p->scratch, &message, piece->path);
    if (read && field->label == PROTOBUF_C_LABEL_REPEATED)
        read = hlo_field_count(message, field) > 0;
    else if (read && field->type == PROTOBUF_C_TYPE_BOOL)
        hlo_field_store(field, hlo_field_add(r->p->scratch, message, field), 1);
    if (!read) r->at = from;
}

static void name_all_axes(scanner *r, ProtobufCMessage *message,
                          const ProtobufCFieldDescriptor *field) {
    for (size_t i = 0; r->p->mesh && i < r->p->mesh->n_axes; i++) {
        Xla__AxisRefProto *axis = hlo_arena_alloc(r->p->scratch, sizeof *axis);
        xla__axis_ref_proto__init(axis);
        axis->mesh_axis_index = (int64_t)i;
        *(void **)hlo_field_add(r->p->scratch, message, field) = axis;
    }
}

static bool read_pattern(scanner *r, ProtobufCMessage *message, const char *at, const char *end) {
    hlo_pattern_piece piece;
    while (at = hlo_pattern_next(at, end, &piece), piece.kind != -1) {
        ProtobufCMessage *of = message;
        if (piece.kind == '$' && !read_field(r, &piece, message)) return false;
        if (piece.kind == '@') read_group(r, &piece, message);
        if (piece.kind == '&')
            name_all_axes(r, message, hlo_field_walk(r->p->scratch, &of, piece.path));
        if (piece.kind == '!') {
            const ProtobufCFieldDescriptor *field = hlo_field_walk(r->p->scratch, &of, piece.path);
            hlo_field_store(field, hlo_field_add(r->p->scratch, of, field), piece.number);
        }
        if (!piece.kind && piece.c != ' ' && !take(r, piece.c)) return false;
    }
    return true;
}

bool hlo_text_pattern_read(hlo_proto *p, const char *text, ProtobufCMessage *message,
                           const char *const *patterns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        scanner r = {.p = p, .at = text};
        bool read = read_pattern(&r, message, patterns[i], patterns[i] + strlen(patterns[i]));
        skip_space(&r);
        if (read && !*r.at) return true;
    }
    return false;
}
