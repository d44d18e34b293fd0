/* Messages as HLO text and back, by the patterns of notation.def. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grammar/proto/proto.h"

typedef struct notation {
    const ProtobufCMessageDescriptor *message;
    const char *pattern;
} notation;

static const notation notations[] = {
#define HLO_NOTATION(message, pattern) {&xla__##message##__descriptor, pattern},
#include "grammar/proto/text_pattern.def"
#undef HLO_NOTATION
};

enum { MOST_PATTERNS = 16, DEEPEST = 100, LONGEST_NAME = 63 };

static size_t patterns_of(const ProtobufCMessageDescriptor *type, const char **out) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof notations / sizeof *notations; i++)
        if (notations[i].message == type && count < MOST_PATTERNS)
            out[count++] = notations[i].pattern;
    return count;
}

/* ------------------------------------------------------------------------------------- patterns */

/* One piece of a pattern: a character that stands for itself, or a field. */
typedef struct pattern_piece {
    char kind;  /* `$`, `@`, `?`, `!`, `&`, `~`; 0: `c` itself; -1: the end */
    char style; /* of a `$`: `^`, `'`, `*`, `#`, or 0 */
    char c;
    char path[LONGEST_NAME + 1];
    const char *body; /* of a `@`: its X; of a `$`: the separator */
    size_t body_size;
    const char *prefix;
    size_t prefix_size;
    long number; /* of a `!` or `@`; 0: none */
} pattern_piece;

static const char *take_between(const char *at, char mark, const char **out, size_t *out_size) {
    if (*at != mark) return at;
    *out = ++at;
    *out_size = strcspn(at, (const char[]){mark, '\0'});
    return at + *out_size + 1;
}

static size_t path_size(const char *at) {
    size_t size = 0;
    while ((at[size] >= 'a' && at[size] <= 'z') || (at[size] >= '0' && at[size] <= '9') ||
           at[size] == '_' || at[size] == '.')
        size++;
    return size;
}

static const char *next_piece(const char *at, const char *end, pattern_piece *out) {
    *out = (pattern_piece){.body = ",", .body_size = 1};
    if (at >= end) {
        out->kind = -1;
        return at;
    }
    if (*at == '~') {
        out->kind = '~';
        return at + 1;
    }
    if (*at == '\\')
        at++;
    else if (strchr("$@?!&", *at))
        out->kind = *at;
    out->c = *at++;
    if (!out->kind) return at;
    if (out->kind == '$' && strchr("^'*#", *at)) out->style = *at++;
    size_t size = path_size(at);
    memcpy(out->path, at, size < LONGEST_NAME ? size : LONGEST_NAME);
    at += size;
    if (*at == '=' && out->kind != '$') out->number = strtol(at + 1, (char **)(uintptr_t)&at, 10);
    if (out->kind == '@') return take_between(at, '`', &out->body, &out->body_size);
    if (out->kind != '$') return at + 1;
    at = take_between(at, '|', &out->body, &out->body_size);
    return take_between(at, '%', &out->prefix, &out->prefix_size);
}

static const ProtobufCFieldDescriptor *walk(hlo_arena *arena, const ProtobufCMessage **message,
                                            const char *path) {
    ProtobufCMessage *at = (ProtobufCMessage *)(uintptr_t)*message;
    const ProtobufCFieldDescriptor *field = hlo_field_walk(arena, &at, path);
    *message = at;
    return field;
}

/* `transpose_perm` and the dimensions that it permutes. */
static bool is_permutation(const ProtobufCFieldDescriptor *field) {
    size_t size = strlen(field->name);
    return size >= 14 && strcmp(field->name + size - 14, "transpose_perm") == 0;
}

/* Elements of the field at a path, as patterns count them. */
static size_t count_at(const ProtobufCMessage *message, const char *path) {
    const ProtobufCFieldDescriptor *field = walk(NULL, &message, path);
    size_t count = field ? hlo_field_count(message, field) : 0, plain = 0;
    if (!field || field->label != PROTOBUF_C_LABEL_REPEATED) return count;
    bool permutation = is_permutation(field);
    if (!permutation && field->type != PROTOBUF_C_TYPE_ENUM) return count;
    for (size_t i = 0; i < count; i++) {
        int64_t wanted = permutation ? (int64_t)i : 0;
        plain += hlo_field_load(field, hlo_field_element(message, field, i)) == wanted;
    }
    return plain == count ? 0 : count;
}

/* ------------------------------------------------------------------------------------- printing */

typedef struct printer {
    hlo_proto *p;
    hlo_bytes *out;
    unsigned depth;
    bool space; /* a `~` waits for what comes next */
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
    if (++w->depth > DEEPEST) hlo_proto_fail(w->p, "nested too deeply");
    for (size_t i = 0; i < count && !printed; i++)
        printed = print_pattern(w, message, patterns[i], patterns[i] + strlen(patterns[i]));
    w->depth--;
    return printed;
}

static void print_axis(printer *w, const Xla__AxisRefProto *axis) {
    const Xla__MeshProto *mesh = w->p->mesh;
    if (!mesh || axis->mesh_axis_index < 0 || (size_t)axis->mesh_axis_index >= mesh->n_axes)
        hlo_proto_fail(w->p, "the mesh has no axis %lld", (long long)axis->mesh_axis_index);
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

/* The values of a nested tuple, each with its path: `({"a" {0}}, ({}, {"b"}))`. */
static void print_origin(printer *w, Xla__OriginalValueElementProto *const *elements, size_t count,
                         size_t level) {
    if (!count && !level) {
        put(w, "()", 2);
        return;
    }
    if (!count || level > DEEPEST) hlo_proto_fail(w->p, "its origin is no tuple");
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
            if (elements[i]->n_shape_index <= level) hlo_proto_fail(w->p, "its origin is no tuple");
        for (to = from + 1; to < count; to++)
            if (elements[to]->shape_index[level] != elements[from]->shape_index[level]) break;
        if (from) put(w, ", ", 2);
        print_origin(w, elements + from, to - from, level + 1);
    }
    put(w, ")", 1);
}

/* `{"a"} : {"b"}, "module"` and so on, line by line. */
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
    const char *patterns[MOST_PATTERNS];
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
        size_t count = patterns_of(message->descriptor, patterns);
        if (!print_any(w, message, patterns, count))
            hlo_proto_fail(w->p, "HLO text has no form for this %s",
                           message->descriptor->short_name);
    }
}

static void print_word(printer *w, const pattern_piece *piece,
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

static void print_value(printer *w, const pattern_piece *piece,
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

static void print_field(printer *w, const pattern_piece *piece, const ProtobufCMessage *message) {
    const ProtobufCFieldDescriptor *field = walk(NULL, &message, piece->path);
    if (!field) return;
    bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
    size_t count = many ? hlo_field_count(message, field) : 1;
    if (!many && field->type == PROTOBUF_C_TYPE_MESSAGE && !hlo_field_count(message, field)) return;
    for (size_t i = 0; i < count; i++) {
        if (i) put(w, piece->body, piece->body_size);
        print_value(w, piece, field, hlo_field_element(message, field, i));
    }
}

static bool wanted(const pattern_piece *piece, size_t count) {
    return piece->number == 1 ? count == 1 : piece->number == 2 ? count > 1 : count > 0;
}

static bool guards_hold(const ProtobufCMessage *message, const char *at, const char *end) {
    pattern_piece piece;
    while (at = next_piece(at, end, &piece), piece.kind != -1) {
        if (piece.kind == '?' && !count_at(message, piece.path)) return false;
        if (piece.kind != '!') continue;
        const ProtobufCMessage *of = message;
        const ProtobufCFieldDescriptor *field = walk(NULL, &of, piece.path);
        if (!field || hlo_field_load(field, hlo_field_at(of, field)) != piece.number) return false;
    }
    return true;
}

static bool print_pattern(printer *w, const ProtobufCMessage *message, const char *at,
                          const char *end) {
    pattern_piece piece;
    if (!guards_hold(message, at, end)) return false;
    while (at = next_piece(at, end, &piece), piece.kind != -1) {
        if (piece.kind == '$')
            print_field(w, &piece, message);
        else if (piece.kind == '~')
            w->space = true;
        else if (piece.kind == '@' && wanted(&piece, count_at(message, piece.path)))
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

/* -------------------------------------------------------------------------------------- reading */

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

static bool read_string(scanner *r, const pattern_piece *piece, char **out) {
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

static bool read_word(scanner *r, const pattern_piece *piece, const ProtobufCFieldDescriptor *field,
                      void *place) {
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
    if (!mesh || !read_string(r, &(pattern_piece){.style = '\''}, &name)) return false;
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
    if (!read_string(r, &(pattern_piece){.style = '*'}, &entry->key) || !take(r, '=')) return false;
    skip_space(r);
    if (*r->at != '{') return read_string(r, &(pattern_piece){0}, &entry->value);
    size_t size = hlo_braced_size(r->at, strlen(r->at));
    entry->value = copy(r, r->at, size);
    r->at += size;
    return size > 0;
}

static ProtobufCMessage *read_message(scanner *r, const ProtobufCMessageDescriptor *type);

/* A leaf, or a tuple of them, at `path`. */
static bool read_origin(scanner *r, Xla__OriginalValueProto *origin, int64_t *path, size_t level) {
    if (level >= DEEPEST) hlo_proto_fail(r->p, "nested too deeply");
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
    int64_t path[DEEPEST];
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
        if (!read_string(r, &(pattern_piece){0}, &text)) return false;
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
    const char *patterns[MOST_PATTERNS], *from = r->at;
    size_t count = patterns_of(type, patterns);
    if (r->depth >= DEEPEST) hlo_proto_fail(r->p, "nested too deeply");
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

static bool read_value(scanner *r, const pattern_piece *piece,
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

static bool read_separator(scanner *r, const pattern_piece *piece) {
    for (size_t i = 0; i < piece->body_size; i++)
        if (piece->body[i] != ' ' && !take(r, piece->body[i])) return false;
    return true;
}

static bool read_field(scanner *r, const pattern_piece *piece, ProtobufCMessage *message) {
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

/* Reads what stands in the text only when a field is there; then it must be. */
static void read_group(scanner *r, const pattern_piece *piece, ProtobufCMessage *message) {
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
    pattern_piece piece;
    while (at = next_piece(at, end, &piece), piece.kind != -1) {
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
