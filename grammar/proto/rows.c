/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of proto.def, and the fields that they name: looked up by name once in a conversion. */
#include <string.h>

#include "grammar/proto/proto.h"

static const hlo_proto_row rows[] = {
#define ALWAYS HLO_PROTO_ALWAYS
#define HLO_PROTO(attr, op, missing, path) {HLO_ATTR_##attr, HLO_OP_##op, missing, path, NULL},
#define HLO_PROTO_TEXT(attr, op, path, text) {HLO_ATTR_##attr, HLO_OP_##op, 0, path, text},
#include "grammar/proto/proto.def"
#undef HLO_PROTO_TEXT
#undef HLO_PROTO
#undef ALWAYS
};

enum { ROWS = sizeof rows / sizeof *rows };

struct hlo_rows {
    uint16_t first[HLO_ATTR_COUNT]; /* the attribute's first row; ROWS: none */
    hlo_row_fields fields[ROWS];
};

static struct hlo_rows *rows_in(hlo_proto *p) {
    if (p->rows) return p->rows;
    struct hlo_rows *all = hlo_arena_zero(p->scratch, sizeof *all);
    for (size_t id = 0; id < HLO_ATTR_COUNT; id++) all->first[id] = ROWS;
    for (size_t i = ROWS; i-- > 0;) all->first[rows[i].attr] = (uint16_t)i;
    return p->rows = all;
}

const hlo_proto_row *hlo_rows_of(hlo_proto *p, hlo_attr_id attr, hlo_op op, size_t *out_count) {
    size_t first = rows_in(p)->first[attr];
    while (first < ROWS && rows[first].attr == attr && rows[first].op != op &&
           rows[first].op != HLO_OP_COUNT)
        first++;
    size_t last = first;
    while (last < ROWS && rows[last].attr == attr && rows[last].op == rows[first].op) last++;
    *out_count = last - first;
    return &rows[first];
}

const hlo_row_fields *hlo_row_fields_of(hlo_proto *p, const hlo_proto_row *row,
                                        const ProtobufCMessageDescriptor *type) {
    hlo_row_fields *fields = &rows_in(p)->fields[row - rows];
    if (fields->of == type) return fields;
    *fields = (hlo_row_fields){.of = type};
    for (const char *path = row->path; type && fields->depth < HLO_LONGEST_PATH;) {
        const size_t size = strcspn(path, ".");
        const ProtobufCFieldDescriptor *field = hlo_field_find(type, path, size);
        if (!field) break;
        fields->path[fields->depth++] = field;
        if (!path[size]) return fields;
        type = field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
        path += size + 1;
    }
    fields->depth = 0;
    return fields;
}

const ProtobufCFieldDescriptor *hlo_row_walk(hlo_arena *arena, const hlo_row_fields *fields,
                                             ProtobufCMessage **message) {
    for (unsigned i = 0; i < fields->depth; i++) {
        if (i + 1u == fields->depth) return fields->path[i];
        ProtobufCMessage **next = hlo_field_at(*message, fields->path[i]);
        if (!*next && arena) *next = hlo_message_new(arena, fields->path[i]->descriptor);
        if (!*next) return NULL;
        *message = *next;
    }
    return NULL;
}
