/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that contain a module, and the inputs and the result that snapshots record. */
#include <stdlib.h>
#include <string.h>

#include "grammar/proto/proto.h"
#include "ir/intern.h"
#include "ir/memory.h"

static size_t size_of(const hlo_wire *w) {
    return (size_t)(w->end - w->at);
}

/* Reads the next field, if there is one. The bytes were checked. */
static bool next(hlo_wire *w, hlo_wire_field *out) {
    return w->at < w->end && hlo_wire_next(w, out);
}

/* Finds the first field `number` that is a message or a string. */
static bool find_field(const hlo_wire *message, uint32_t number, hlo_wire *out) {
    hlo_wire w = *message;
    for (hlo_wire_field field; next(&w, &field);) {
        if (field.number != number || !field.delimited) continue;
        *out = field.value;
        return true;
    }
    return false;
}

/* Returns the integer in field `number`, or 0. */
static uint64_t integer_of(const hlo_wire *message, uint32_t number) {
    uint64_t value = 0;
    hlo_wire w = *message;
    for (hlo_wire_field field; next(&w, &field);)
        if (field.number == number) value = field.varint;
    return value;
}

/* XLA writes an HloUnoptimizedSnapshot in a form that starts with the size of a message. The
 * message starts with its module, and the module with its name. A message with a module has more
 * bytes than SMALLEST, and no other form starts with a byte from SMALLEST on. */
static bool starts_with_size(const void *bytes, size_t size) {
    enum { FIRST_FIELD = 0x0a, LONGEST = 10, SMALLEST = 0x20 };
    hlo_wire w = {bytes, (const uint8_t *)bytes + size, false}, message, module;
    if (!size || *w.at < SMALLEST) return false;
    for (int i = 0; i < 2; i++) {
        size_t length = 0;
        while (w.at + length < w.end && length < LONGEST && w.at[length] > 127) length++;
        w.at += length + 1;
        if (w.at >= w.end || *w.at != FIRST_FIELD) return false;
        w.at++;
    }
    w.at = bytes;
    if (!hlo_wire_delimited(&w, &message)) return true; /* `bytes` end before the message */
    message.at++;
    return hlo_wire_delimited(&message, &module);
}

bool hlo_proto_recognize(const void *bytes, size_t size) {
    enum { LOOKED_AT = 1024 };
    const unsigned char *at = bytes;
    bool binary = false;
    for (size_t i = 0; i < size && i < LOOKED_AT && !binary; i++)
        binary = at[i] && at[i] < 0x20 && !strchr("\t\n\v\f\r", at[i]);
    /* The first field of a message with a module is not a number, as in a SavedModel. */
    if (!binary || memchr("\t\r\b", at[0], 3)) return false;
    return at[0] < 0x20 || starts_with_size(bytes, size);
}

/* ------------------------------------------------------------------------------------- messages */

/* True if the bytes are a module, and not its name or a message that contains it. */
static bool is_module(hlo_wire *bytes) {
    hlo_wire comp, instr;
    const uint8_t *at;
    return find_field(bytes, 3, &comp) && find_field(&comp, 2, &instr) &&
           hlo_wire_check(&Xla__HloModuleProto__type, bytes, &at, &bytes->unknown);
}

/* Distinguishes the messages whose first field is a module. Field 2 is an HloInputs, which has no
 * other fields than 1 and 2, or an HloModuleConfigProto, in which field 2 is a number, and XLA
 * always sets field 4. */
static const hlo_pb_type *type_around(const hlo_wire *message) {
    const hlo_pb_type *type = &Xla__HloProto__type;
    hlo_wire w = *message;
    for (hlo_wire_field field, inner; next(&w, &field);) {
        if (field.number == 3 && !field.delimited) return &Xla__HloUnoptimizedSnapshot__type;
        if (field.number != 2 || !field.delimited) continue;
        type = &Xla__HloUnoptimizedSnapshot__type;
        while (next(&field.value, &inner))
            if (inner.number > 2 || !inner.delimited) return &Xla__HloModuleProtoWithConfig__type;
    }
    return type;
}

/* Finds the module. Returns false if the file starts with a size, but the message is not a snapshot
 * of that size. */
static bool find_module(const void *bytes, size_t size, hlo_envelope *out) {
    hlo_wire outer;
    *out = (hlo_envelope){.type = &Xla__HloModuleProto__type,
                          .message = {bytes, (const uint8_t *)bytes + size, false}};
    if (starts_with_size(bytes, size)) {
        out->type = &Xla__HloUnoptimizedSnapshot__type;
        out->sized = true;
        out->rest = out->message;
        return hlo_wire_delimited(&out->rest, &out->message) &&
               find_field(&out->message, 1, &out->module) && is_module(&out->module);
    }
    if (find_field(&out->message, 1, &outer)) {
        out->module = outer;
        if (is_module(&out->module)) {
            out->type = type_around(&out->message);
            return true;
        }
        if (find_field(&outer, 1, &out->module) && is_module(&out->module)) {
            out->type = &Xla__HloSnapshot__type;
            return true;
        }
    }
    out->module = out->message;
    return true;
}

/* Checks that the arguments in the message of a snapshot have the sizes that the message declares.
 */
static void check_rest(hlo_proto *p, const hlo_envelope *e) {
    uint64_t left = size_of(&e->rest);
    hlo_wire w = e->message;
    for (hlo_wire_field partition, about; next(&w, &partition);) {
        if (partition.number != 2) continue;
        while (next(&partition.value, &about)) {
            if (about.number != 2) continue;
            if (integer_of(&about.value, 1))
                hlo_proto_fail(p, "this version of HloUnoptimizedSnapshot is not supported");
            const uint64_t size = integer_of(&about.value, 2);
            if (size > left)
                hlo_proto_fail(p,
                               "truncated HloUnoptimizedSnapshot: an argument has %llu bytes, "
                               "but only %llu bytes remain",
                               (unsigned long long)size, (unsigned long long)left);
            left -= size;
        }
    }
    if (left)
        hlo_proto_fail(p, "%llu bytes follow the last argument of this HloUnoptimizedSnapshot",
                       (unsigned long long)left);
}

hlo_envelope hlo_envelope_open(hlo_proto *p, const void *bytes, size_t size) {
    hlo_envelope e;
    const uint8_t *at;
    bool unknown;
    if (!find_module(bytes, size, &e))
        hlo_proto_fail(p, "invalid or truncated HloUnoptimizedSnapshot of %zu bytes", size);
    const bool bare = e.type == &Xla__HloModuleProto__type;
    if (!hlo_wire_check(e.type, &e.message, &at, bare ? &e.module.unknown : &unknown))
        hlo_proto_fail(p, "invalid or truncated %s: at byte %zu of %zu",
                       bare ? "binary HLO module" : e.type->name,
                       (size_t)(at - (const uint8_t *)bytes), size);
    p->unknown = e.module.unknown;
    bool seen = false;
    hlo_wire w = e.message;
    for (hlo_wire_field field; next(&w, &field); seen |= field.number == 1)
        if (field.number == 1 && seen)
            hlo_proto_fail(p,
                           "a second message starts before byte %zu of %zu: copy each message "
                           "to a file of its own",
                           (size_t)(field.value.at - (const uint8_t *)bytes), size);
    if (e.sized) check_rest(p, &e);
    return e;
}

bool hlo_envelope_records(const hlo_envelope *e) {
    hlo_wire inputs;
    return (e->type == &Xla__HloSnapshot__type || e->type == &Xla__HloUnoptimizedSnapshot__type) &&
           (find_field(&e->message, 2, &inputs) || find_field(&e->message, 3, &inputs));
}

uint32_t hlo_envelope_attrs(const hlo_envelope *e, hlo_attr *out) {
    hlo_wire config;
    uint32_t count = 0;
    if (e->type != &Xla__HloModuleProtoWithConfig__type || !find_field(&e->message, 2, &config))
        return 0;
    static const uint8_t ids[] = {HLO_ATTR_REPLICA_COUNT, HLO_ATTR_NUM_PARTITIONS};
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t value = (int64_t)integer_of(&config, 4 + i);
        if (value > 1) out[count++] = (hlo_attr){.id = ids[i], .u.i = value};
    }
    return count;
}

/* -------------------------------------------------------------------------------- recorded runs */

/* Makes the message of a constant from the bytes that XLA's Literal::Serialize() writes: the values
 * in memory order, those of fewer than 8 bits packed. */
static Xla__LiteralProto *unserialize(hlo_proto *p, Xla__ShapeProto *shape, hlo_wire *w) {
    Xla__LiteralProto *to = hlo_message_new(p->scratch, &Xla__LiteralProto__type);
    to->shape = shape;
    if (shape->element_type == Xla__PrimitiveType__TUPLE) {
        to->n_tuple_literals = shape->n_tuple_shapes;
        to->tuple_literals = hlo_arena_array(p->scratch, shape->n_tuple_shapes, sizeof(void *));
        for (size_t i = 0; i < shape->n_tuple_shapes; i++)
            to->tuple_literals[i] = unserialize(p, shape->tuple_shapes[i], w);
        return to;
    }
    const hlo_shape *own = hlo_shape_from_proto(p, shape);
    const hlo_type_info *type = &hlo_types[own->type];
    const unsigned bits = type->bits;
    const int64_t count = hlo_shape_count(own);
    char name[32];
    const int length = snprintf(name, sizeof name, "%ss", type->name);
    const hlo_pb_field *field = hlo_field_find(to->base.descriptor, name, (size_t)length);
    if (!field || !bits || (bits < 8 && 8 % bits))
        hlo_proto_fail(p, "type %s is not supported", type->name);
    if (count < 0 || (size_t)count > 8 * size_of(w) / bits)
        hlo_proto_fail(p, "it has %zu bytes, which are too few for its shape", size_of(w));
    const size_t elements = (size_t)count, bytes = (elements * bits + 7) / 8;
    const bool packed = bits < 8, flags = own->type == HLO_TYPE_PRED;
    void *values = (void *)(uintptr_t)w->at;
    if (packed) values = hlo_arena_alloc(p->scratch, elements * (flags ? sizeof(hlo_pb_bool) : 1));
    for (size_t i = 0; packed && i < elements; i++) {
        const unsigned value = w->at[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
        if (flags)
            ((hlo_pb_bool *)values)[i] = (hlo_pb_bool)value;
        else
            ((uint8_t *)values)[i] = (uint8_t)value;
    }
    void *place = hlo_field_at(&to->base, field);
    if (field->type == HLO_PB_BYTES) {
        *(hlo_pb_bytes *)place = (hlo_pb_bytes){.len = packed ? elements : bytes, .data = values};
    } else {
        *(void **)place = values;
        *(size_t *)(void *)((char *)to + field->extra) =
            type->class == HLO_CLASS_COMPLEX ? 2 * elements : elements;
    }
    w->at += bytes;
    return to;
}

/* The bytes of a recorded input or result. */
typedef struct record {
    hlo_wire bytes;
    bool serialized; /* by Literal::Serialize(); otherwise, the bytes are a LiteralProto */
    const char *kind;
    size_t index;
    const hlo_literal *literal; /* the values, after they are read */
} record;

static hlo_status read_record(hlo_proto *p, void *user) {
    record *from = user;
    Xla__LiteralProto *message;
    hlo_wire w = from->bytes;
    p->kind = from->kind;
    p->name = hlo_arena_format(p->scratch, "%zu", from->index);
    if (from->serialized) {
        uint64_t size = 0;
        for (size_t i = 0; i < sizeof size && w.at < w.end; i++) size |= (uint64_t)*w.at++ << 8 * i;
        hlo_wire about = w;
        const uint8_t *at;
        bool unknown;
        if (size <= size_of(&w)) about.end = w.at += size;
        if (size > size_of(&about) ||
            !hlo_wire_check(&Xla__ShapeProto__type, &about, &at, &unknown))
            hlo_proto_fail(p, "its shape is invalid");
        Xla__ShapeProto *shape =
            hlo_message_unpack(p->scratch, &Xla__ShapeProto__type, about.at, (size_t)size);
        message = shape ? unserialize(p, shape, &w) : NULL;
        if (w.at < w.end) hlo_proto_fail(p, "it has %zu bytes too many", size_of(&w));
    } else {
        message = hlo_message_unpack(p->scratch, &Xla__LiteralProto__type, w.at, size_of(&w));
    }
    if (!message || !message->shape) hlo_proto_fail(p, "its shape is missing");
    from->literal = hlo_literal_from_proto(p, message, hlo_shape_from_proto(p, message->shape));
    return HLO_OK;
}

/* State of hlo_proto_recorded(). */
typedef struct walk {
    const hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_recorded_sink *put;
    void *user;
} walk;

static hlo_status pass_on(const walk *to, uint32_t device, record *from) {
    hlo_proto p;
    hlo_status status = hlo_proto_read_into(&p, to->module->file, to->sink, read_record, from);
    if (status == HLO_OK) status = to->put(to->user, device, from->literal);
    hlo_free(p.owned);
    hlo_arena_free(p.scratch);
    hlo_module_free(p.module);
    return status;
}

hlo_status hlo_proto_recorded(const hlo_module *module, bool results, const hlo_diag_sink *sink,
                              hlo_recorded_sink *put, void *user) {
    const walk to = {module, sink, put, user};
    const hlo_recorded *recorded = module->recorded;
    hlo_envelope e;
    if (!recorded || !find_module(recorded->bytes, recorded->size, &e)) return HLO_OK;
    const bool snapshot = e.type == &Xla__HloSnapshot__type;
    record one = {.kind = results ? "result" : "argument", .serialized = e.sized};
    hlo_status status = snapshot && !results ? put(user, 0, NULL) : HLO_OK;
    uint32_t device = 0;
    hlo_wire w = e.message;
    for (hlo_wire_field field, inner; status == HLO_OK && next(&w, &field);) {
        if (snapshot && field.number == (results ? 3 : 2)) {
            one.bytes = field.value;
            status = pass_on(&to, 0, &one);
            one.index++;
        }
        if (snapshot || results || field.number != 2) continue;
        one.index = 0;
        status = put(user, device, NULL);
        while (status == HLO_OK && next(&field.value, &inner)) {
            if (inner.number != (e.sized ? 2 : 1)) continue;
            one.bytes = inner.value;
            if (e.sized) {
                one.bytes = e.rest;
                one.bytes.end = e.rest.at += integer_of(&inner.value, 2);
            }
            status = pass_on(&to, device, &one);
            one.index++;
        }
        device++;
    }
    return status;
}
