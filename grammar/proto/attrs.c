/* SPDX-License-Identifier: Apache-2.0 */
/* Converts attributes between the IR and messages, by the rows of proto.def. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/proto/proto.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

/* ---------------------------------------------------------------------------- rows of proto.def */

/* The field of an attribute: a row of proto.def. */
typedef struct proto_row {
    uint8_t attr; /* hlo_attr_id */
    uint8_t op;   /* hlo_op; HLO_OP_COUNT: any */
    int8_t missing;
    const char *path, *pattern;
} proto_row;
enum { HLO_PROTO_ALWAYS = -1, LONGEST_PATH = 4 };

/* The fields of a row in a message of one type, found by name once per conversion. */
typedef struct row_fields {
    const hlo_pb_type *of;
    uint8_t depth; /* number of nested fields; 0 if the message does not have them */
    const hlo_pb_field *path[LONGEST_PATH];
} row_fields;

static const proto_row rows[] = {
#define ALWAYS HLO_PROTO_ALWAYS
#define HLO_PROTO(attr, op, missing, path) {HLO_ATTR_##attr, HLO_OP_##op, missing, path, NULL},
#define HLO_PROTO_TEXT(attr, op, missing, path, text)                                              \
    {HLO_ATTR_##attr, HLO_OP_##op, missing, path, text},
#include "grammar/proto/proto.def"
#undef HLO_PROTO_TEXT
#undef HLO_PROTO
#undef ALWAYS
    {.attr = HLO_ATTR_COUNT}};

enum { ROWS = sizeof rows / sizeof *rows - 1 };

struct hlo_rows {
    uint16_t first[HLO_ATTR_COUNT]; /* index of each attribute's first row; ROWS if it has no row */
    row_fields fields[ROWS];
};

static struct hlo_rows *rows_in(hlo_proto *p) {
    if (p->rows) return p->rows;
    struct hlo_rows *all = hlo_arena_zero(p->scratch, sizeof *all);
    for (size_t id = 0; id < HLO_ATTR_COUNT; id++) all->first[id] = ROWS;
    for (size_t i = ROWS; i-- > 0;) all->first[rows[i].attr] = (uint16_t)i;
    return p->rows = all;
}

/* Finds the first row of an attribute on an opcode; NULL if the attribute has no row. */
static const proto_row *row_of(hlo_proto *p, hlo_attr_id attr, hlo_op op) {
    const proto_row *row = &rows[rows_in(p)->first[attr]];
    while (row->attr == attr && row->op != op && row->op != HLO_OP_COUNT) row++;
    return row->attr == attr ? row : NULL;
}

static const row_fields *fields_of(hlo_proto *p, const proto_row *row, const hlo_pb_type *type) {
    row_fields *fields = &rows_in(p)->fields[row - rows];
    if (fields->of == type) return fields;
    *fields = (row_fields){.of = type};
    for (const char *path = row->path; type && fields->depth < LONGEST_PATH;) {
        const size_t size = strcspn(path, ".");
        const hlo_pb_field *field = hlo_field_find(type, path, size);
        if (!field) break;
        fields->path[fields->depth++] = field;
        if (!path[size]) return fields;
        type = field->type == HLO_PB_MESSAGE ? field->descriptor : NULL;
        path += size + 1;
    }
    fields->depth = 0;
    return fields;
}

/* Finds the field of a row, and sets *message to the message that contains the field. If a message
 * on the path is missing, creates it in `arena`, or returns NULL if `arena` is NULL. */
static const hlo_pb_field *find_field(hlo_proto *p, const proto_row *row, hlo_arena *arena,
                                      hlo_pb **message) {
    const row_fields *fields = fields_of(p, row, (*message)->descriptor);
    for (unsigned i = 0; i < fields->depth; i++) {
        if (i + 1u == fields->depth) return fields->path[i];
        hlo_pb **next = hlo_field_at(*message, fields->path[i]);
        if (!*next && arena) *next = hlo_message_new(arena, fields->path[i]->descriptor);
        if (!*next) return NULL;
        *message = *next;
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- reading */

static const hlo_ints *read_ints(hlo_proto *p, const hlo_pb *message, const hlo_pb_field *field) {
    size_t count = hlo_field_count(message, field);
    int64_t *values = hlo_arena_array(p->scratch, count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = hlo_field_load(field, hlo_field_element(message, field, i));
    return hlo_ints_new(p->module, (uint32_t)count, values);
}

/* Reads three numbers from each message of a list: slices and padding. */
static const hlo_ints *read_triples(hlo_proto *p, const hlo_pb *message,
                                    const hlo_pb_field *field) {
    size_t count = hlo_field_count(message, field);
    int64_t *values = hlo_arena_array(p->scratch, count, 3 * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        hlo_pb *const *each = hlo_field_element(message, field, i);
        for (unsigned k = 0; k < 3; k++)
            values[3 * i + k] =
                hlo_field_load(&(*each)->descriptor->fields[k],
                               hlo_field_at(*each, &(*each)->descriptor->fields[k]));
    }
    return hlo_ints_new(p->module, (uint32_t)(3 * count), values);
}

static const hlo_shapes *read_shapes(hlo_proto *p, const hlo_pb *message,
                                     const hlo_pb_field *field) {
    size_t count = hlo_field_count(message, field);
    hlo_shapes *shapes =
        hlo_arena_alloc(p->module->arena, sizeof *shapes + count * sizeof *shapes->v);
    shapes->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        shapes->v[i] = hlo_shape_from_proto(
            p, *(Xla__ShapeProto *const *)hlo_field_element(message, field, i));
    return shapes;
}

static const char *read_string(hlo_proto *p, const hlo_pb_field *field, const void *place) {
    if (field->type == HLO_PB_STRING) {
        const char *text = *(const char *const *)place;
        return hlo_intern_string(p->module, text ? text : "");
    }
    const hlo_pb_bytes *data = place;
    return hlo_intern(p->module, data->len ? (const char *)data->data : "", data->len);
}

/* Reads a string. If the string is braced, HLO text does not quote it. */
static const char *read_config(hlo_proto *p, const void *place) {
    const hlo_pb_bytes *data = place;
    const char *bytes = (const char *)data->data;
    if (hlo_is_braced(bytes, data->len)) return hlo_intern(p->module, bytes, data->len);
    hlo_bytes quoted = {.arena = p->scratch};
    hlo_bytes_quote(&quoted, bytes, data->len);
    return hlo_intern(p->module, quoted.v, quoted.size);
}

static const hlo_attrs *read_metadata(hlo_proto *p, hlo_pb *message) {
    enum { FIRST = HLO_ATTR_OP_TYPE, FIELDS = HLO_ATTR_STACK_FRAME_ID - FIRST + 1 };
    uint8_t ids[FIELDS + 1] = {[FIELDS] = HLO_ATTR_COUNT};
    for (int i = 0; i < FIELDS; i++) ids[i] = (uint8_t)(FIRST + i);
    hlo_attrs *attrs = hlo_arena_alloc(p->module->arena, sizeof *attrs + FIELDS * sizeof *attrs->v);
    attrs->count = hlo_attrs_from_proto(p, message, ids, HLO_OP_COUNT, false, attrs->v);
    return attrs->count ? attrs : NULL;
}

/* Reads one attribute by its row. Returns false if the attribute is absent. `given`: the attribute
 * is present, even if its field is empty. */
static bool read_typed(hlo_proto *p, hlo_pb *message, const proto_row *row, bool given,
                       hlo_attr *out) {
    const hlo_pb_field *field = find_field(p, row, NULL, &message);
    if (!field && !given) return false;
    size_t count = field ? hlo_field_count(message, field) : 0;
    void *place = field && (count || field->label != HLO_PB_REPEATED)
                      ? hlo_field_element(message, field, 0)
                      : NULL;
    bool oneof = field && field->label == HLO_PB_ONEOF;
    switch (hlo_attrs_info[out->id].kind) {
    case HLO_KIND_INT:
        out->u.i = place ? hlo_field_load(field, place) : 0;
        if (field && (oneof || field->label == HLO_PB_REPEATED)) return given || count;
        return given || (out->u.i != row->missing && out->u.i != 0);
    case HLO_KIND_BOOL:
        /* In a field that is an enum with three values, 1 means true. */
        out->u.i = place && hlo_field_load(field, place) == 1;
        return given || count;
    case HLO_KIND_FLOAT:
        out->u.f = place ? (double)*(const float *)place : 0;
        return given || count;
    case HLO_KIND_STRING:
        out->u.str = place ? read_string(p, field, place) : hlo_intern_string(p->module, "");
        return given || count;
    case HLO_KIND_FORM:
        if (count) out->u.str = read_config(p, place);
        return count;
    case HLO_KIND_INTS:
        out->u.ints = field ? read_ints(p, message, field) : hlo_ints_new(p->module, 0, NULL);
        return given || count;
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING:
        out->u.ints = field ? read_triples(p, message, field) : hlo_ints_new(p->module, 0, NULL);
        return given || count;
    case HLO_KIND_SHAPES:
        if (field) out->u.shapes = read_shapes(p, message, field);
        return field && (given || count);
    case HLO_KIND_SHAPE:
        if (count) out->u.shape = hlo_shape_from_proto(p, *(Xla__ShapeProto **)place);
        return count;
    case HLO_KIND_LITERAL:
        if (count) {
            const Xla__LiteralProto *literal = *(Xla__LiteralProto **)place;
            out->u.literal =
                hlo_literal_from_proto(p, literal, hlo_shape_from_proto(p, literal->shape));
        }
        return count;
    case HLO_KIND_COMPUTATION:
        if (!given && (int)count <= row->missing) return false;
        out->u.comp = hlo_proto_called(p, message, (size_t)row->missing);
        return true;
    case HLO_KIND_COMPUTATIONS:
        out->u.comps = hlo_proto_all_called(p, message);
        return out->u.comps->count;
    case HLO_KIND_INSTRS:
        if (count) out->u.instrs = hlo_proto_instrs(p, count, place);
        return count;
    case HLO_KIND_GROUPS:
        hlo_groups_from_proto(p, (const Xla__HloInstructionProto *)message, out);
        return true;
    case HLO_KIND_SHARDING:
        return hlo_sharding_from_proto(p, (const Xla__HloInstructionProto *)message, out);
    case HLO_KIND_ALIASES:
        if (count) hlo_aliases_from_proto(p, message, field, out);
        return count;
    case HLO_KIND_ATTRS:
        if (!count) return false;
        if (out->id == HLO_ATTR_WINDOW) {
            *out = hlo_window_from_proto(p, *(Xla__Window **)place);
            return out->id == HLO_ATTR_WINDOW;
        }
        return (out->u.attrs = read_metadata(p, *(hlo_pb **)place)) != NULL;
    default: return false;
    }
}

static bool read_text(hlo_proto *p, hlo_pb *message, const proto_row *row, bool given,
                      hlo_attr *out) {
    hlo_bytes text = {.arena = p->scratch};
    const hlo_pb_field *field = find_field(p, row, NULL, &message);
    if (!field || !(given || hlo_field_count(message, field))) return false;
    hlo_bytes_put(&text, "", 0);
    hlo_text_pattern_print(p, &text, message, row->pattern);
    out->u.str = hlo_intern(p->module, text.v, text.size);
    const hlo_attr_kind kind = hlo_attrs_info[out->id].kind;
    if (kind == HLO_KIND_WORD || kind == HLO_KIND_RAW) return true;
    hlo_notation form;
    const hlo_attr *read =
        hlo_notation_of(p->module, p->scratch, out->id, out->u.str, p->io->parse_text, &form);
    if (!read) hlo_proto_fail(p, "%s=%.60s: %s", hlo_attrs_info[out->id].name, text.v, form.why);
    *out = *read;
    return true;
}

/* True if the instruction uses another attribute that is equivalent to `id`. */
static bool is_other(hlo_proto *p, hlo_attr_id id, hlo_op op) {
    if (op == HLO_OP_CUSTOM_CALL) return id == HLO_ATTR_TO_APPLY;
    if (op != HLO_OP_CONDITIONAL) return false;
    bool two = p->operand->type == HLO_TYPE_PRED;
    return two ? id == HLO_ATTR_BRANCH_COMPUTATIONS
               : id == HLO_ATTR_TRUE_COMPUTATION || id == HLO_ATTR_FALSE_COMPUTATION;
}

/* Reads the slice sizes of a collective-permute as text. The message has a flat sequence of sizes;
 * the ranks of the sent array, or of the arrays of a sent tuple in turn, divide it into lists. */
static bool read_size_lists(hlo_proto *p, const Xla__HloInstructionProto *instr, hlo_attr *out) {
    const hlo_shape *sent = p->operand;
    bool tuple = sent && sent->type == HLO_TYPE_TUPLE;
    hlo_bytes text = {.arena = p->scratch};
    uint32_t element = 0, left = 0;
    for (size_t i = 0; i < instr->n_dynamic_slice_sizes; i++) {
        bool first = left == 0;
        if (first && tuple && sent->rank)
            left = sent->elements[element++ % sent->rank]->rank;
        else if (first && sent)
            left = sent->rank;
        if (!left) left = 1;
        hlo_bytes_format(&text, "%s%lld%s", first ? i ? ",{" : "{{" : ",",
                         (long long)instr->dynamic_slice_sizes[i], left == 1 ? "}" : "");
        left--;
    }
    hlo_bytes_text(&text, left ? "}}" : "}");
    out->u.str = hlo_intern(p->module, text.v, text.size);
    return instr->n_dynamic_slice_sizes > 0;
}

uint32_t hlo_attrs_from_proto(hlo_proto *p, hlo_pb *message, const uint8_t *ids, hlo_op op,
                              bool required, hlo_attr *out) {
    uint32_t found = 0;
    for (const uint8_t *id = ids; *id != HLO_ATTR_COUNT; id++) {
        hlo_attr *attr = &out[found];
        const proto_row *row = row_of(p, (hlo_attr_id)*id, op);
        if (!row || is_other(p, (hlo_attr_id)*id, op)) continue;
        *attr = (hlo_attr){.id = (hlo_attr_id)*id};
        bool given = required || row->missing == HLO_PROTO_ALWAYS, there;
        if (*id == HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS)
            given = ((Xla__HloInstructionProto *)message)->constrain_layout;
        if (*id == HLO_ATTR_DIM_LABELS) {
            Xla__HloInstructionProto *instr = (Xla__HloInstructionProto *)message;
            there = instr->convolution_dimension_numbers != NULL;
            if (there) attr->u.str = hlo_labels_from_proto(p, instr->convolution_dimension_numbers);
        } else if (*id == HLO_ATTR_SLICE_SIZE_LISTS) {
            there = read_size_lists(p, (Xla__HloInstructionProto *)message, attr);
        } else if (row->pattern) {
            there = read_text(p, message, row, given, attr);
        } else {
            there = read_typed(p, message, row, given, attr);
        }
        if (there && !hlo_attr_is_default(attr, op, p->operand)) found++;
    }
    return found;
}

void hlo_attrs_clear(hlo_proto *p, hlo_pb *message, const uint8_t *ids, hlo_op op) {
    for (const uint8_t *id = ids; *id != HLO_ATTR_COUNT; id++) {
        const proto_row *first = row_of(p, (hlo_attr_id)*id, op), *row = first;
        for (; row && row->attr == first->attr && row->op == first->op; row++) {
            const row_fields *fields = fields_of(p, row, message->descriptor);
            if (fields->depth) hlo_field_clear(message, fields->path[0]);
        }
    }
}

bool hlo_unmapped_from_proto(hlo_proto *p, const hlo_pb *message, hlo_attr *out) {
    if (hlo_message_is_new(message)) return false;
    const hlo_wire bytes = hlo_message_pack(p->scratch, message);
    const size_t size = (size_t)(bytes.end - bytes.at);
    if (!size) return false;
    *out = (hlo_attr){.id = HLO_ATTR_UNMAPPED,
                      .u.str = hlo_intern(p->module, (const char *)bytes.at, size)};
    return true;
}

/* ------------------------------------------------------------------------------- unknown fields */

/* Unknown fields of messages that are nested in the message of a module, a computation or an
 * instruction. Reading moves them to an attribute, with their paths. Writing restores them in the
 * messages that are then at these paths. The attribute is a list of entries, each followed by its
 * steps and by its fields as on the wire. */
enum { MAX_STEPS = 100 }; /* the maximum nesting of messages */

typedef struct step {
    uint32_t field, index; /* field number; index of the element of a repeated field */
} step;

typedef struct unknown_entry {
    uint32_t steps, size;
    uint32_t alone; /* the message sets no other field, so it may be missing when fields are
                     * restored */
} unknown_entry;

typedef struct taking {
    hlo_arena *scratch;
    hlo_bytes out;
    step path[MAX_STEPS];
} taking;

/* True if no field is set, apart from repeated enum fields whose elements are all 0. */
static bool says_nothing(const hlo_pb *message) {
    for (unsigned f = 0; f < message->descriptor->n_fields; f++) {
        const hlo_pb_field *field = &message->descriptor->fields[f];
        const size_t count = hlo_field_count(message, field);
        const bool words = field->label == HLO_PB_REPEATED && field->type == HLO_PB_ENUM;
        if (count && !words) return false;
        for (size_t i = 0; i < count; i++)
            if (hlo_field_load(field, hlo_field_element(message, field, i))) return false;
    }
    return true;
}

static void take_from(taking *t, hlo_pb *message, uint32_t steps) {
    const hlo_pb_type *type = message->descriptor;
    for (unsigned f = 0; f < type->n_fields && steps < MAX_STEPS; f++) {
        const hlo_pb_field *field = &type->fields[f];
        /* Skip computations and instructions: they store their own unknown fields. */
        if (field->type != HLO_PB_MESSAGE ||
            (!steps && (field->descriptor == &Xla__HloComputationProto__type ||
                        field->descriptor == &Xla__HloInstructionProto__type)))
            continue;
        const size_t count = hlo_field_count(message, field);
        for (size_t i = 0; i < count; i++) {
            t->path[steps] = (step){.field = field->id, .index = (uint32_t)i};
            take_from(t, *(hlo_pb **)hlo_field_element(message, field, i), steps + 1);
        }
    }
    if (!steps || !message->n_unknown_fields) return;
    const Xla__UnknownFields only = {{.descriptor = &Xla__UnknownFields__type,
                                      .n_unknown_fields = message->n_unknown_fields,
                                      .unknown_fields = message->unknown_fields}};
    message->n_unknown_fields = 0;
    message->unknown_fields = NULL;
    const hlo_wire bytes = hlo_message_pack(t->scratch, &only.base);
    const size_t size = (size_t)(bytes.end - bytes.at);
    const unknown_entry head = {
        .steps = steps, .size = (uint32_t)size, .alone = says_nothing(message)};
    hlo_bytes_put(&t->out, &head, sizeof head);
    hlo_bytes_put(&t->out, t->path, steps * sizeof *t->path);
    hlo_bytes_put(&t->out, bytes.at, size);
}

bool hlo_unknown_fields_from_proto(hlo_proto *p, hlo_pb *message, hlo_attr *out) {
    if (!p->unknown) return false;
    taking t = {.scratch = p->scratch, .out.arena = p->scratch};
    take_from(&t, message, 0);
    if (!t.out.size) return false;
    *out = (hlo_attr){.id = HLO_ATTR_STRAYS, .u.str = hlo_intern(p->module, t.out.v, t.out.size)};
    return true;
}

/* Finds the message at the end of the path. Returns NULL if the module has changed and no longer
 * has that message. */
static hlo_pb *find(hlo_proto *p, hlo_pb *message, const unknown_entry *of, const char *path) {
    for (uint32_t i = 0; i < of->steps; i++) {
        step at;
        memcpy(&at, path + i * sizeof at, sizeof at);
        const hlo_pb_field *field = hlo_field_numbered(message->descriptor, at.field);
        const bool many = field->label == HLO_PB_REPEATED;
        if (many && at.index >= hlo_field_count(message, field)) return NULL;
        hlo_pb **next = hlo_field_element(message, field, at.index);
        if (!*next && of->alone && i + 1 == of->steps)
            *next = hlo_message_new(p->scratch, field->descriptor);
        if (!*next) return NULL;
        message = *next;
    }
    return message;
}

static void restore_unknown_fields(hlo_proto *p, const hlo_attr *attrs, uint32_t count,
                                   hlo_pb *message) {
    const hlo_attr *strays = hlo_attrs_find(attrs, count, HLO_ATTR_STRAYS);
    const char *bytes = strays ? strays->u.str : NULL;
    const char *end = bytes ? bytes + hlo_intern_length(bytes) : NULL;
    for (unknown_entry head; bytes < end; bytes += head.size) {
        memcpy(&head, bytes, sizeof head);
        const char *path = bytes + sizeof head;
        bytes = path + head.steps * sizeof(step);
        hlo_pb *to = find(p, message, &head, path);
        if (!to) continue;
        const hlo_pb *fields =
            hlo_message_unpack(p->scratch, &Xla__UnknownFields__type, bytes, head.size);
        to->n_unknown_fields = fields->n_unknown_fields;
        to->unknown_fields = fields->unknown_fields;
    }
}

/* -------------------------------------------------------------------------------------- writing */

void *hlo_unmapped_to_proto(hlo_proto *p, const hlo_pb_type *type, const hlo_attr *attrs,
                            uint32_t count) {
    const hlo_attr *attr = hlo_attrs_find(attrs, count, HLO_ATTR_UNMAPPED);
    const char *bytes = attr ? attr->u.str : NULL;
    hlo_pb *message =
        bytes ? hlo_message_unpack(p->scratch, type, bytes, hlo_intern_length(bytes)) : NULL;
    return message ? message : hlo_message_new(p->scratch, type);
}

static void add_int(hlo_proto *p, hlo_pb *message, const hlo_pb_field *field, int64_t value) {
    if (!hlo_field_store(field, hlo_field_add(p->scratch, message, field), value))
        hlo_proto_fail(p, "%lld is out of range for field '%s'", (long long)value, field->name);
}

static void add_triples(hlo_proto *p, hlo_pb *message, const hlo_pb_field *field,
                        const hlo_ints *ints) {
    for (uint32_t i = 0; i + 2 < ints->count; i += 3) {
        hlo_pb *each = hlo_message_new(p->scratch, field->descriptor);
        for (unsigned k = 0; k < 3; k++)
            add_int(p, each, &each->descriptor->fields[k], ints->v[i + k]);
        *(hlo_pb **)hlo_field_add(p->scratch, message, field) = each;
    }
}

static void write_string(hlo_proto *p, const hlo_pb_field *field, void *place, const char *bytes,
                         size_t size) {
    char *text = hlo_arena_alloc(p->scratch, size + 1);
    if (field->type == HLO_PB_STRING && memchr(bytes, 0, size))
        hlo_proto_fail(p, "a NUL character in '%s' has no binary form", field->name);
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (field->type == HLO_PB_STRING)
        *(char **)place = text;
    else
        *(hlo_pb_bytes *)place = (hlo_pb_bytes){.len = size, .data = (uint8_t *)text};
}

static void write_typed(hlo_proto *p, const hlo_attr *attr, const proto_row *row, hlo_pb *message) {
    const hlo_pb_field *field = find_field(p, row, p->scratch, &message);
    hlo_attr_kind kind = hlo_attrs_info[attr->id].kind;
    bool list = field->label == HLO_PB_REPEATED;
    void *place = list || kind == HLO_KIND_INT ? NULL : hlo_field_add(p->scratch, message, field);
    switch (kind) {
    case HLO_KIND_INT: add_int(p, message, field, attr->u.i); break;
    case HLO_KIND_BOOL:
        hlo_field_store(field, place, field->type == HLO_PB_ENUM && !attr->u.i ? 2 : attr->u.i);
        break;
    case HLO_KIND_FLOAT: *(float *)place = (float)attr->u.f; break;
    case HLO_KIND_STRING:
        write_string(p, field, place, attr->u.str, hlo_intern_length(attr->u.str));
        break;
    case HLO_KIND_FORM: {
        size_t size = hlo_intern_length(attr->u.str);
        const char *at = attr->u.str;
        const char *plain =
            strchr("\"'", *at) ? hlo_unquote(p->scratch, &at, at + size, &size) : NULL;
        write_string(p, field, place, plain ? plain : attr->u.str, size);
        break;
    }
    case HLO_KIND_INTS:
        for (uint32_t i = 0; i < attr->u.ints->count; i++)
            add_int(p, message, field, attr->u.ints->v[i]);
        break;
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING: add_triples(p, message, field, attr->u.ints); break;
    case HLO_KIND_SHAPES:
        for (uint32_t i = 0; i < attr->u.shapes->count; i++)
            *(Xla__ShapeProto **)hlo_field_add(p->scratch, message, field) =
                hlo_shape_to_proto(p, attr->u.shapes->v[i]);
        break;
    case HLO_KIND_SHAPE: *(Xla__ShapeProto **)place = hlo_shape_to_proto(p, attr->u.shape); break;
    case HLO_KIND_LITERAL:
        *(Xla__LiteralProto **)place = hlo_literal_to_proto(p, attr->u.literal);
        break;
    case HLO_KIND_COMPUTATION:
        while (hlo_field_count(message, field) <= (size_t)row->missing)
            add_int(p, message, field, 0);
        hlo_field_store(field, hlo_field_element(message, field, (size_t)row->missing),
                        p->computations[attr->u.comp->id]);
        break;
    case HLO_KIND_COMPUTATIONS:
        for (uint32_t i = 0; i < attr->u.comps->count; i++)
            add_int(p, message, field, p->computations[attr->u.comps->v[i]->id]);
        break;
    case HLO_KIND_INSTRS:
        for (uint32_t i = 0; i < attr->u.instrs->count; i++)
            add_int(p, message, field, p->instrs[attr->u.instrs->v[i]->id]);
        break;
    case HLO_KIND_ATTRS:
        if (attr->id == HLO_ATTR_WINDOW) {
            *(Xla__Window **)place = hlo_window_to_proto(p, attr->u.attrs);
        } else {
            hlo_pb *nested = hlo_message_new(p->scratch, field->descriptor);
            hlo_attrs_to_proto(p, attr->u.attrs->v, attr->u.attrs->count, HLO_OP_COUNT, nested);
            *(hlo_pb **)place = nested;
        }
        break;
    case HLO_KIND_GROUPS: hlo_groups_to_proto(p, attr, (Xla__HloInstructionProto *)message); break;
    case HLO_KIND_SHARDING:
        hlo_sharding_to_proto(p, attr, (Xla__HloInstructionProto *)message);
        break;
    case HLO_KIND_ALIASES: hlo_aliases_to_proto(p, attr->u.aliases, message, field); break;
    default: break;
    }
}

/* Writes the default values of absent attributes whose fields a binary module requires. */
static void write_missing(hlo_proto *p, const hlo_attr *attrs, uint32_t count, hlo_op op,
                          hlo_pb *message) {
    if (op == HLO_OP_COUNT) return;
    Xla__HloInstructionProto *instr = (Xla__HloInstructionProto *)message;
    if (hlo_op_allows(op, HLO_ATTR_FEATURE_GROUP_COUNT)) {
        if (!instr->feature_group_count) instr->feature_group_count = 1;
        if (!instr->batch_group_count) instr->batch_group_count = 1;
    }
    if (op == HLO_OP_CONVOLUTION && !instr->window)
        instr->window = hlo_message_new(p->scratch, &Xla__Window__type);
    if (op == HLO_OP_CUSTOM_CALL && !instr->custom_call_api_version)
        instr->custom_call_api_version = Xla__CustomCallApiVersion__API_VERSION_ORIGINAL;
    if (op == HLO_OP_TOPK && !hlo_attrs_find(attrs, count, HLO_ATTR_LARGEST)) instr->largest = 1;
    if (op == HLO_OP_COMPARE && !*instr->comparison_type)
        instr->comparison_type = (char *)(uintptr_t)hlo_compare_default_type(p->operand);
    if (hlo_op_allows(op, HLO_ATTR_LHS_CONTRACTING_DIMS)) {
        hlo_pb *at = message;
        find_field(p, row_of(p, HLO_ATTR_LHS_CONTRACTING_DIMS, op), p->scratch, &at);
    }
    if (hlo_op_allows(op, HLO_ATTR_REPLICA_GROUPS) && !instr->iota_collective_device_list &&
        !instr->mesh_axes_replica_group_list && !instr->collective_device_list)
        hlo_message_add(p->scratch, message, "collective_device_list");
}

void hlo_attrs_to_proto(hlo_proto *p, const hlo_attr *attrs, uint32_t count, hlo_op op,
                        hlo_pb *message) {
    for (uint32_t i = 0; i < count; i++) {
        const hlo_attr *attr = &attrs[i];
        const proto_row *row = row_of(p, attr->id, op);
        if (hlo_attrs_info[attr->id].kind == HLO_KIND_BYTES) continue;
        if (!row) {
            hlo_diag_emit(p->module, p->sink, HLO_WARNING, HLO_DIAG_UNSUPPORTED, p->offset, 1,
                          "attribute '%s' has no binary form and is omitted",
                          hlo_attrs_info[attr->id].name);
        } else if (attr->id == HLO_ATTR_DIM_LABELS) {
            Xla__HloInstructionProto *instr = (Xla__HloInstructionProto *)message;
            instr->convolution_dimension_numbers = hlo_labels_to_proto(p, attr->u.str);
        } else if (attr->id == HLO_ATTR_SLICE_SIZE_LISTS) {
            const hlo_pb_field *field =
                hlo_field_find(message->descriptor, "dynamic_slice_sizes", 19);
            const char *text = attr->u.str;
            for (char *end; *(text += strspn(text, "{,}")); text = end)
                add_int(p, message, field, strtoll(text, &end, 10));
        } else if (row->pattern) {
            hlo_pb *at = message;
            find_field(p, row, p->scratch, &at);
            if (!hlo_text_pattern_read(p, attr->u.str, at, row->pattern))
                hlo_proto_fail(p, "%s=%.60s has no binary form", hlo_attrs_info[attr->id].name,
                               attr->u.str);
        } else {
            write_typed(p, attr, row, message);
        }
        if (attr->id == HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS)
            ((Xla__HloInstructionProto *)message)->constrain_layout = 1;
    }
    write_missing(p, attrs, count, op, message);
    restore_unknown_fields(p, attrs, count, message);
}
