/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf messages of any type: fields, the binary format, and the text format. */
#include "grammar/message/message.h"

#include <inttypes.h>
#include <string.h>

#include "grammar/attr/bytes.h"

void hlo_message_init(void *message, const hlo_pb_type *type) {
    memset(message, 0, type->size);
    ((hlo_pb *)message)->descriptor = type;
    for (unsigned f = 0; f < type->n_fields; f++)
        if (type->fields[f].type == HLO_PB_STRING && type->fields[f].label != HLO_PB_REPEATED)
            *(const char **)hlo_field_at(message, &type->fields[f]) = "";
}

void *hlo_message_new(hlo_arena *arena, const hlo_pb_type *type) {
    void *message = hlo_arena_alloc(arena, type->size);
    hlo_message_init(message, type);
    return message;
}

bool hlo_message_is_new(const hlo_pb *message) {
    const hlo_pb_type *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields; f++)
        if (hlo_field_count(message, &type->fields[f])) return false;
    return !message->n_unknown_fields;
}

const hlo_pb_field *hlo_field_find(const hlo_pb_type *type, const char *name, size_t size) {
    for (unsigned f = 0; f < type->n_fields; f++)
        if (strncmp(type->fields[f].name, name, size) == 0 && !type->fields[f].name[size])
            return &type->fields[f];
    return NULL;
}

const hlo_pb_field *hlo_field_numbered(const hlo_pb_type *type, uint32_t id) {
    unsigned from = 0, end = type->n_fields;
    while (from < end) {
        const unsigned middle = (from + end) / 2;
        if (type->fields[middle].id == id) return &type->fields[middle];
        if (type->fields[middle].id < id)
            from = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

const hlo_pb_value *hlo_enum_value(const hlo_pb_enum *type, int64_t number) {
    for (size_t i = 0; i < type->n_values; i++)
        if (type->values[i].value == number) return &type->values[i];
    return NULL;
}

void *hlo_field_at(const hlo_pb *message, const hlo_pb_field *field) {
    return (char *)(uintptr_t)message + field->offset;
}

static void *extra(const hlo_pb *message, const hlo_pb_field *field) {
    return (char *)(uintptr_t)message + field->extra;
}

static size_t value_size(const hlo_pb_field *field) {
    switch (field->type) {
    case HLO_PB_INT64:
    case HLO_PB_UINT64:
    case HLO_PB_DOUBLE: return 8;
    case HLO_PB_STRING:
    case HLO_PB_MESSAGE: return sizeof(void *);
    case HLO_PB_BYTES: return sizeof(hlo_pb_bytes);
    default: return 4;
    }
}

static bool is_oneof(const hlo_pb_field *field) {
    return field->label == HLO_PB_ONEOF;
}

static uint32_t oneof_case(const hlo_pb *message, const hlo_pb_field *field) {
    uint32_t id;
    memcpy(&id, extra(message, field), sizeof id);
    return id;
}

size_t hlo_field_count(const hlo_pb *message, const hlo_pb_field *field) {
    if (field->label != HLO_PB_REPEATED) {
        const void *place = hlo_field_at(message, field);
        if (is_oneof(field)) return oneof_case(message, field) == field->id;
        switch (field->type) {
        case HLO_PB_MESSAGE: return *(void *const *)place != NULL;
        case HLO_PB_STRING: return *(char *const *)place && **(char *const *)place;
        case HLO_PB_BYTES: return ((const hlo_pb_bytes *)place)->len != 0;
        case HLO_PB_FLOAT:
        case HLO_PB_DOUBLE:
            return memcmp(place, &(double){0}, value_size(field)) != 0; /* -0: set */
        default: return hlo_field_load(field, place) != 0;
        }
    }
    return *(const size_t *)extra(message, field);
}

void *hlo_field_element(const hlo_pb *message, const hlo_pb_field *field, size_t index) {
    char *place = hlo_field_at(message, field);
    if (field->label != HLO_PB_REPEATED) return place;
    char *first = *(char **)(void *)place;
    return first ? first + index * value_size(field) : NULL;
}

/* Returns the capacity of a repeated field with `count` elements: a power of two, or 0. */
static size_t capacity(size_t count) {
    size_t power = count > 0;
    while (power < count) power *= 2;
    return power;
}

/* Appends `added` elements to a repeated field, and returns the first one. */
static char *append(hlo_arena *arena, hlo_pb *message, const hlo_pb_field *field, size_t added) {
    char **elements = hlo_field_at(message, field);
    size_t *count = extra(message, field);
    const size_t size = value_size(field), before = *count;
    if (capacity(before + added) > capacity(before)) {
        char *grown = hlo_arena_array(arena, capacity(before + added), size);
        if (before) memcpy(grown, *elements, before * size);
        *elements = grown;
    }
    *count += added;
    return added ? memset(*elements + before * size, 0, added * size) : NULL;
}

void *hlo_field_add(hlo_arena *arena, hlo_pb *message, const hlo_pb_field *field) {
    if (is_oneof(field)) memcpy(extra(message, field), &field->id, sizeof field->id);
    return field->label == HLO_PB_REPEATED ? append(arena, message, field, 1)
                                           : hlo_field_at(message, field);
}

void *hlo_message_add(hlo_arena *arena, void *message, const char *name) {
    const hlo_pb_type *type = ((hlo_pb *)message)->descriptor;
    const hlo_pb_field *field = hlo_field_find(type, name, strlen(name));
    return *(void **)hlo_field_add(arena, message, field) =
               hlo_message_new(arena, field->descriptor);
}

void hlo_field_clear(hlo_pb *message, const hlo_pb_field *field) {
    if (is_oneof(field) && oneof_case(message, field) != field->id) return;
    bool many = field->label == HLO_PB_REPEATED;
    if (many)
        *(size_t *)extra(message, field) = 0;
    else if (is_oneof(field))
        memset(extra(message, field), 0, sizeof field->id);
    void *place = hlo_field_at(message, field);
    if (field->type == HLO_PB_STRING && !many)
        *(const char **)place = "";
    else
        memset(place, 0, many ? sizeof(void *) : value_size(field));
}

int64_t hlo_field_load(const hlo_pb_field *field, const void *place) {
    if (field->type == HLO_PB_UINT32) return *(const uint32_t *)place;
    return value_size(field) == 8 ? *(const int64_t *)place : *(const int32_t *)place;
}

bool hlo_field_store(const hlo_pb_field *field, void *place, int64_t value) {
    if (value_size(field) == 8) {
        *(int64_t *)place = value;
        return true;
    }
    if (value < INT32_MIN || value > INT32_MAX) return false;
    *(int32_t *)place = (int32_t)value;
    return true;
}

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

static int wire_type(const hlo_pb_field *field) {
    switch (field->type) {
    case HLO_PB_STRING:
    case HLO_PB_BYTES:
    case HLO_PB_MESSAGE: return DELIMITED;
    case HLO_PB_FLOAT: return FIXED32;
    case HLO_PB_DOUBLE: return FIXED64;
    default: return VARINT;
    }
}

static bool check(const hlo_pb_type *type, hlo_wire *w, unsigned depth) {
    if (depth > HLO_WIRE_DEEPEST) return false;
    while (w->at < w->end) {
        uint64_t number;
        uint32_t id;
        int kind;
        hlo_wire value;
        if (!read_tag(w, &id, &kind)) return false;
        const hlo_pb_field *field = hlo_field_numbered(type, id);
        w->unknown |= !field;
        const int wanted = field ? wire_type(field) : kind;
        bool packed = field && field->label == HLO_PB_REPEATED && kind == DELIMITED;
        if (kind != wanted && !packed) return false;
        if (!read_value(w, kind, &value)) return false;
        if (!field || kind != DELIMITED) continue;
        bool whole = true;
        if (field->type == HLO_PB_MESSAGE) {
            whole = check(field->descriptor, &value, depth + 1);
            w->unknown |= value.unknown;
        } else if (field->type == HLO_PB_STRING) {
            whole = value.at == value.end || !memchr(value.at, 0, (size_t)(value.end - value.at));
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

bool hlo_wire_check(const hlo_pb_type *type, const hlo_wire *message, const uint8_t **out_at,
                    bool *out_unknown) {
    hlo_wire w = {message->at, message->end, false};
    bool whole = check(type, &w, 0);
    *out_unknown = w.unknown;
    *out_at = w.at;
    return whole;
}

/* Returns the number of elements of a packed repeated field. */
static size_t packed_count(const hlo_pb_field *field, const hlo_wire *value) {
    const size_t size = (size_t)(value->end - value->at);
    if (wire_type(field) != VARINT) return size / value_size(field);
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += value->at[i] < 128;
    return count;
}

static bool unpack(hlo_arena *arena, hlo_pb *to, hlo_wire w, unsigned depth);

/* Reads one value from the start of `from`. A delimited value is all of `from`. */
static bool unpack_value(hlo_arena *arena, const hlo_pb_field *field, hlo_wire *from, void *place,
                         unsigned depth) {
    const size_t size = (size_t)(from->end - from->at);
    uint64_t number;
    switch (field->type) {
    case HLO_PB_MESSAGE: {
        hlo_pb **message = place;
        if (!*message) *message = hlo_message_new(arena, field->descriptor);
        return unpack(arena, *message, *from, depth + 1);
    }
    case HLO_PB_STRING: {
        if (size && memchr(from->at, 0, size)) return false;
        char *text = hlo_arena_alloc(arena, size + 1);
        memcpy(text, from->at, size);
        text[size] = '\0';
        *(char **)place = text;
        return true;
    }
    case HLO_PB_BYTES:
        *(hlo_pb_bytes *)place = (hlo_pb_bytes){size, hlo_arena_copy(arena, from->at, size)};
        return true;
    case HLO_PB_FLOAT:
    case HLO_PB_DOUBLE: /* the machine is little-endian, as the wire */
        if (size < value_size(field)) return false;
        memcpy(place, from->at, value_size(field));
        from->at += value_size(field);
        return true;
    default:
        if (!read_varint(from, &number)) return false;
        if (field->type == HLO_PB_BOOL) number = number != 0;
        memcpy(place, &number, value_size(field));
        return true;
    }
}

static void keep_unknown(hlo_arena *arena, hlo_pb *to, uint32_t number, int kind,
                         const hlo_wire *value) {
    const size_t count = to->n_unknown_fields, size = (size_t)(value->end - value->at);
    if (capacity(count + 1) > capacity(count)) {
        hlo_pb_unknown *grown = hlo_arena_array(arena, capacity(count + 1), sizeof *grown);
        if (count) memcpy(grown, to->unknown_fields, count * sizeof *grown);
        to->unknown_fields = grown;
    }
    to->unknown_fields[to->n_unknown_fields++] =
        (hlo_pb_unknown){number, (uint32_t)kind, size, hlo_arena_copy(arena, value->at, size)};
}

/* Merges the fields in `w` into a message. */
static bool unpack(hlo_arena *arena, hlo_pb *to, hlo_wire w, unsigned depth) {
    if (depth > HLO_WIRE_DEEPEST) return false;
    while (w.at < w.end) {
        uint32_t number;
        int kind;
        if (!read_tag(&w, &number, &kind)) return false;
        const hlo_pb_field *field = hlo_field_numbered(to->descriptor, number);
        hlo_wire value, raw = {w.at, w.at, false};
        if (!read_value(&w, kind, &value)) return false;
        raw.end = w.at;
        if (!field) {
            keep_unknown(arena, to, number, kind, &raw);
        } else if (kind == wire_type(field)) {
            void *place = hlo_field_add(arena, to, field);
            if (!unpack_value(arena, field, &value, place, depth)) return false;
        } else if (field->label == HLO_PB_REPEATED && kind == DELIMITED) {
            const size_t count = packed_count(field, &value);
            char *place = append(arena, to, field, count);
            for (size_t i = 0; i < count; i++, place += value_size(field))
                if (!unpack_value(arena, field, &value, place, depth)) return false;
            if (value.at < value.end) return false;
        } else {
            return false;
        }
    }
    return true;
}

void *hlo_message_unpack(hlo_arena *arena, const hlo_pb_type *type, const void *bytes,
                         size_t size) {
    hlo_pb *message = hlo_message_new(arena, type);
    const hlo_wire w = {bytes, (const uint8_t *)bytes + size, false};
    return unpack(arena, message, w, 0) ? message : NULL;
}

/* A message is packed from its end, so that the length of a nested message is known when it is
 * written. `left` is the number of unused bytes at the start. */
typedef struct packer {
    hlo_arena *arena;
    uint8_t *bytes;
    size_t size, left;
} packer;

static void put(packer *p, const void *bytes, size_t size) {
    if (size > p->left) {
        const size_t used = p->size - p->left, grown = 2 * p->size + size;
        uint8_t *to = hlo_arena_alloc(p->arena, grown);
        if (used) memcpy(to + grown - used, p->bytes + p->left, used);
        p->bytes = to;
        p->size = grown;
        p->left = grown - used;
    }
    p->left -= size;
    if (size) memcpy(p->bytes + p->left, bytes, size);
}

static void put_varint(packer *p, uint64_t value) {
    uint8_t bytes[10];
    size_t size = 0;
    do bytes[size++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
    while (value >>= 7);
    put(p, bytes, size);
}

static void pack(packer *p, const hlo_pb *message);

static void pack_value(packer *p, const hlo_pb_field *field, const void *place) {
    const size_t used = p->size - p->left;
    switch (field->type) {
    case HLO_PB_MESSAGE: pack(p, *(const hlo_pb *const *)place); break;
    case HLO_PB_STRING: {
        const char *text = *(const char *const *)place;
        put(p, text, strlen(text));
        break;
    }
    case HLO_PB_BYTES:
        put(p, ((const hlo_pb_bytes *)place)->data, ((const hlo_pb_bytes *)place)->len);
        break;
    case HLO_PB_FLOAT:
    case HLO_PB_DOUBLE: put(p, place, value_size(field)); return;
    default: put_varint(p, (uint64_t)hlo_field_load(field, place)); return;
    }
    put_varint(p, p->size - p->left - used);
}

static void pack(packer *p, const hlo_pb *message) {
    const hlo_pb_type *type = message->descriptor;
    for (size_t i = message->n_unknown_fields; i-- > 0;) {
        const hlo_pb_unknown *member = &message->unknown_fields[i];
        put(p, member->data, member->len);
        put_varint(p, (uint64_t)member->tag << 3 | member->wire_type);
    }
    for (unsigned f = type->n_fields; f-- > 0;) {
        const hlo_pb_field *field = &type->fields[f];
        const size_t count = hlo_field_count(message, field), used = p->size - p->left;
        const bool packed = field->label == HLO_PB_REPEATED && wire_type(field) != DELIMITED;
        const uint64_t tag = (uint64_t)field->id << 3;
        for (size_t i = count; i-- > 0;) {
            pack_value(p, field, hlo_field_element(message, field, i));
            if (!packed) put_varint(p, tag | (uint64_t)wire_type(field));
        }
        if (!packed || !count) continue;
        put_varint(p, p->size - p->left - used);
        put_varint(p, tag | DELIMITED);
    }
}

hlo_wire hlo_message_pack(hlo_arena *arena, const hlo_pb *message) {
    enum { FIRST = 256 };
    packer p = {arena, hlo_arena_alloc(arena, FIRST), FIRST, FIRST};
    pack(&p, message);
    return (hlo_wire){p.bytes + p.left, p.bytes + p.size, false};
}

typedef struct pbtxt {
    hlo_bytes line;
    FILE *out;
} pbtxt;

static void flush(pbtxt *t) {
    fwrite(t->line.v, 1, t->line.size, t->out);
    t->line.size = 0;
}

static void print_scalar(pbtxt *t, const hlo_pb_field *field, const void *place) {
    switch (field->type) {
    case HLO_PB_STRING: {
        const char *text = *(const char *const *)place;
        hlo_bytes_quote(&t->line, text, strlen(text));
        break;
    }
    case HLO_PB_BYTES: {
        const hlo_pb_bytes *data = place;
        hlo_bytes_quote(&t->line, (const char *)data->data, data->len);
        break;
    }
    case HLO_PB_FLOAT: hlo_bytes_double(&t->line, (double)*(const float *)place, true); break;
    case HLO_PB_DOUBLE: hlo_bytes_double(&t->line, *(const double *)place, false); break;
    case HLO_PB_BOOL:
        hlo_bytes_text(&t->line, hlo_field_load(field, place) ? "true" : "false");
        break;
    case HLO_PB_UINT64: hlo_bytes_format(&t->line, "%" PRIu64, *(const uint64_t *)place); break;
    case HLO_PB_ENUM: {
        int64_t number = hlo_field_load(field, place);
        const hlo_pb_value *value = hlo_enum_value(field->descriptor, number);
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

static void print_message(pbtxt *t, const hlo_pb *message, int depth) {
    const hlo_pb_type *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields; f++) {
        const hlo_pb_field *field = &type->fields[f];
        size_t count = hlo_field_count(message, field);
        for (size_t i = 0; i < count; i++) {
            const void *place = hlo_field_element(message, field, i);
            hlo_bytes_format(&t->line, "%*s", 2 * depth, "");
            hlo_bytes_text(&t->line, field->name);
            if (field->type == HLO_PB_MESSAGE) {
                hlo_bytes_text(&t->line, " {\n");
                flush(t);
                print_message(t, *(hlo_pb *const *)place, depth + 1);
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
        const hlo_pb_unknown *member = &message->unknown_fields[i];
        hlo_bytes_format(&t->line, "%*s%" PRIu32 ": ", 2 * depth, "", member->tag);
        switch (member->wire_type) {
        case VARINT:
            hlo_bytes_format(&t->line, "%" PRIu64, joined_bits(member->data, member->len, 7));
            break;
        case DELIMITED: {
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

bool hlo_pbtxt_print(hlo_arena *scratch, const hlo_pb *message, FILE *out) {
    pbtxt t = {.line.arena = scratch, .out = out};
    print_message(&t, message, 0);
    return !ferror(out);
}
