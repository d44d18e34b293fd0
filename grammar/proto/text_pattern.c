/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of messages as HLO text, taken apart. */
#include <stdlib.h>
#include <string.h>

#include "grammar/proto/text_pattern.h"

typedef struct notation {
    const ProtobufCMessageDescriptor *message;
    const char *pattern;
} notation;

static const notation notations[] = {
#define HLO_NOTATION(message, pattern) {&xla__##message##__descriptor, pattern},
#include "grammar/proto/text_pattern.def"
#undef HLO_NOTATION
};

size_t hlo_patterns_of(const ProtobufCMessageDescriptor *type, const char **out) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof notations / sizeof *notations; i++)
        if (notations[i].message == type && count < HLO_MOST_PATTERNS)
            out[count++] = notations[i].pattern;
    return count;
}

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

const char *hlo_pattern_next(const char *at, const char *end, hlo_pattern_piece *out) {
    *out = (hlo_pattern_piece){.body = ",", .body_size = 1};
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
    memcpy(out->path, at, size < HLO_LONGEST_FIELD_NAME ? size : HLO_LONGEST_FIELD_NAME);
    at += size;
    if (*at == '=' && out->kind != '$') out->number = strtol(at + 1, (char **)(uintptr_t)&at, 10);
    if (out->kind == '@') return take_between(at, '`', &out->body, &out->body_size);
    if (out->kind != '$') return at + 1;
    at = take_between(at, '|', &out->body, &out->body_size);
    return take_between(at, '%', &out->prefix, &out->prefix_size);
}

const ProtobufCFieldDescriptor *hlo_pattern_walk(const ProtobufCMessage **message,
                                                 const char *path) {
    ProtobufCMessage *at = (ProtobufCMessage *)(uintptr_t)*message;
    const ProtobufCFieldDescriptor *field = hlo_field_walk(NULL, &at, path);
    *message = at;
    return field;
}

/* True for `transpose_perm`, which is empty when it is the identity. */
static bool is_permutation(const ProtobufCFieldDescriptor *field) {
    size_t size = strlen(field->name);
    return size >= 14 && strcmp(field->name + size - 14, "transpose_perm") == 0;
}

size_t hlo_pattern_count(const ProtobufCMessage *message, const char *path) {
    const ProtobufCFieldDescriptor *field = hlo_pattern_walk(&message, path);
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
