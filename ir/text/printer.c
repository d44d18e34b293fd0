/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the output buffer of text, and prints shapes and literals. */
#include "ir/text/printer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "ir/float/float.h"
#include "ir/intern.h"
#include "ir/memory.h"
#include "ir/text/plain.h"

void hlo_printer_flush(hlo_printer *o) {
    size_t size = (size_t)(o->at - o->buffer);
    if (size && !o->out.write(o->out.user, o->buffer, size)) o->failed = true;
    o->at = o->buffer;
}

bool hlo_printer_grow(hlo_printer *o, size_t size) {
    const size_t used = (size_t)(o->at - o->buffer), capacity = 2 * used + size;
    char *grown = used ? hlo_realloc(o->buffer, capacity) : hlo_memory_new(capacity);
    if (!grown) return false;
    o->buffer = grown;
    o->at = grown + used;
    o->end = grown + capacity;
    return true;
}

void hlo_put_large(hlo_printer *o, const char *bytes, size_t size) {
    size_t capacity = (size_t)(o->end - o->at);
    if (o->overflow == HLO_OVERFLOW_FLUSH) {
        hlo_printer_flush(o);
        capacity = (size_t)(o->end - o->at);
        if (size > capacity) o->failed |= !o->out.write(o->out.user, bytes, size);
    } else if (o->overflow == HLO_OVERFLOW_GROW) {
        o->failed |= !hlo_printer_grow(o, size);
        capacity = (size_t)(o->end - o->at);
    } else {
        memcpy(o->at, bytes, capacity);
        o->at += capacity;
        o->dropped += size - capacity;
        return;
    }
    if (size > capacity) return;
    memcpy(o->at, bytes, size);
    o->at += size;
}

const char *hlo_print_interned(hlo_module *module, void (*put)(hlo_printer *o, const void *value),
                               const void *value) {
    char few[256];
    hlo_printer o = {.buffer = few, .at = few, .end = few + sizeof few};
    o.overflow = HLO_OVERFLOW_DROP;
    o.options = &hlo_print_long_form;
    put(&o, value);
    const size_t size = (size_t)(o.at - o.buffer) + o.dropped;
    if (o.dropped) {
        o.at = o.buffer = hlo_arena_alloc(module->arena, size);
        o.end = o.buffer + size;
        put(&o, value);
    }
    return hlo_intern(module, o.buffer, size);
}

void hlo_put_uint(hlo_printer *o, uint64_t value) {
    char digits[20], *at = digits + sizeof digits;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    hlo_put(o, at, (size_t)(digits + sizeof digits - at));
}

void hlo_put_int(hlo_printer *o, int64_t value) {
    if (value < 0) hlo_put_char(o, '-');
    hlo_put_uint(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void hlo_put_comma(hlo_printer *o, uint32_t index) {
    if (!index) return;
    HLO_PUT(o, ", ");
    if (index % 5) return;
    HLO_PUT(o, "/*index=");
    hlo_put_uint(o, index);
    HLO_PUT(o, "*/");
}

void hlo_put_quoted(hlo_printer *o, const char *interned) {
    hlo_put_char(o, '"');
    const size_t length = hlo_intern_length(interned);
    const char *from = interned, *end = interned + length;
    if (hlo_all_plain(interned, length)) {
        hlo_put(o, interned, length);
        from = end;
    }
    for (const char *at = from;; at++) {
        unsigned char c = at < end ? (unsigned char)*at : '"';
        if (hlo_is_plain(c)) continue;
        hlo_put(o, from, (size_t)(at - from));
        from = at + 1;
        if (at == end) break;
        const char *letter = memchr("\n\r\t\"'\\", c, 6);
        char escape[4] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
                          (char)('0' + (c & 7))};
        if (letter) escape[1] = "nrt\"'\\"[letter - "\n\r\t\"'\\"];
        hlo_put(o, escape, letter ? 2 : 4);
    }
    hlo_put_char(o, '"');
}

const hlo_print_options hlo_print_long_form = {
    .struct_size = sizeof hlo_print_long_form,
    .percent = true,
    .signature = true,
    .operand_index = true,
    .metadata = true,
    .control_predecessors = true,
    .backend_config = true,
    .large_constants = true,
};

void hlo_put_name(hlo_printer *o, const char *interned) {
    if (o->options->percent) hlo_put_char(o, '%');
    hlo_put_interned(o, interned);
}

void hlo_put_instr_name(hlo_printer *o, const hlo_instruction *instr) {
    if (!o->numbers) {
        hlo_put_name(o, instr->name);
        return;
    }
    HLO_PUT(o, "tmp_");
    hlo_put_uint(o, o->numbers[instr->id]);
}

void hlo_put_line(hlo_printer *o, uint32_t depth) {
    hlo_put_char(o, '\n');
    for (uint32_t i = 0; i < depth; i++) HLO_PUT(o, "  ");
}

static void put_property(hlo_printer *o, const char *name, int64_t value) {
    if (!value) return;
    hlo_put_string(o, name);
    hlo_put_int(o, value);
    hlo_put_char(o, ')');
}

static void put_layout(hlo_printer *o, const hlo_shape *shape) {
    const hlo_layout *l = shape->layout;
    bool more = l && (l->rest || l->element_bits || l->memory_space);
    if (!l || (shape->rank == 0 && !more)) return;
    hlo_put_char(o, '{');
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (i) hlo_put_char(o, ',');
        hlo_put_int(o, l->minor_to_major[i]);
    }
    if (more) {
        const char *rest = l->rest ? l->rest : "";
        static const char *const later[] = {"SC(", "P(", "M("};
        size_t head = strlen(rest);
        for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
            const char *found = strstr(rest, later[i]);
            if (found && (size_t)(found - rest) < head) head = (size_t)(found - rest);
        }
        hlo_put_char(o, ':');
        hlo_put(o, rest, head);
        put_property(o, "E(", l->element_bits);
        put_property(o, "S(", l->memory_space);
        hlo_put_string(o, rest + head);
    }
    hlo_put_char(o, '}');
}

static void write_shape(hlo_printer *o, const hlo_shape *shape, bool layout) {
    if (shape->buffer) HLO_PUT(o, "b(");
    if (shape->type == HLO_TYPE_TUPLE) {
        hlo_put_char(o, '(');
        for (uint32_t i = 0; i < shape->rank; i++) {
            hlo_put_comma(o, i);
            hlo_put_shape(o, shape->elements[i], layout);
        }
        hlo_put_char(o, ')');
    } else {
        hlo_put_string(o, hlo_types[shape->type].name);
        hlo_put_char(o, '[');
        for (uint32_t i = 0; i < shape->rank; i++) {
            if (i) hlo_put_char(o, ',');
            if (shape->dynamic && shape->dynamic[i]) HLO_PUT(o, "<=");
            if (shape->dims[i] < 0)
                hlo_put_char(o, '?');
            else
                hlo_put_int(o, shape->dims[i]);
        }
        hlo_put_char(o, ']');
        if (layout) put_layout(o, shape);
    }
    if (shape->buffer) hlo_put_char(o, ')');
}

void hlo_put_shape(hlo_printer *o, const hlo_shape *shape, bool layout) {
    if (!o->shapes ||
        shape->type == HLO_TYPE_TUPLE) { /* a tuple is long; only its elements are cached */
        write_shape(o, shape, layout);
        return;
    }
    hlo_shape_text *t = &o->shapes[((uintptr_t)shape / 8 * 2 + layout) % HLO_SHAPE_TEXTS];
    if (t->shape != shape || t->layout != layout) {
        const size_t length = hlo_shape_format(shape, layout, t->text, sizeof t->text);
        if (length >= sizeof t->text) {
            t->shape = NULL;
            write_shape(o, shape, layout);
            return;
        }
        t->shape = shape;
        t->layout = layout;
        t->length = (uint8_t)length;
    }
    hlo_put(o, t->text, t->length);
}

/* Creates a printer that writes into `size` bytes at `text`, or into `none` if `size` is 0. */
static hlo_printer printer_into(char *text, size_t size, char *none) {
    char *buffer = size ? text : none;
    return (hlo_printer){.buffer = buffer,
                         .at = buffer,
                         .end = buffer + (size ? size - 1 : 0),
                         .overflow = HLO_OVERFLOW_DROP,
                         .options = &hlo_print_long_form};
}

size_t hlo_shape_format(const hlo_shape *shape, bool layout, char *text, size_t size) {
    char none[1];
    hlo_printer o = printer_into(text, size, none);
    write_shape(&o, shape, layout);
    *o.at = '\0';
    return (size_t)(o.at - o.buffer) + o.dropped;
}

const char *hlo_shape_copy_text(hlo_arena *arena, const hlo_shape *shape, bool layout) {
    const size_t size = hlo_shape_format(shape, layout, NULL, 0) + 1;
    char *text = hlo_arena_alloc(arena, size);
    hlo_shape_format(shape, layout, text, size);
    return text;
}

/* Writes as many digits as XLA does, which are enough to read the same value back. For a wide
 * float, first tries the number of digits that every value of its type preserves. */
void hlo_put_float(hlo_printer *o, hlo_type type, uint64_t bits) {
    double value = hlo_float_decode(type, bits);
    char text[40];
    uint64_t payload;
    if (isnan(value)) {
        bool negative = bits >> (hlo_types[type].bits - 1) & 1;
        if (negative && type != HLO_TYPE_F8E8M0FNU) hlo_put_char(o, '-'); /* a type without sign */
        HLO_PUT(o, "nan");
        if ((payload = hlo_float_payload(type, bits)) != 0) {
            snprintf(text, sizeof text, "(0x%" PRIx64 ")", payload);
            hlo_put_string(o, text);
        }
    } else if (isinf(value)) {
        hlo_put_string(o, value < 0 ? "-inf" : "inf");
    } else if (value == 0) {
        hlo_put_string(o, signbit(value) ? "-0.0" : "0"); /* `-0` would be read as an integer */
    } else if (fabs(value) < 1e6 && value == nearbyint(value) && hlo_types[type].bits >= 32) {
        hlo_put_int(o, (int64_t)value);
    } else {
        int precision = hlo_float_precision(type);
        int most = (int)ceil(precision * 0.30103 + 1);
        int few = hlo_types[type].bits >= 32 ? (int)((precision - 1) * 0.30103) : most;
        int length = snprintf(text, sizeof text, "%.*g", few, value);
        if (few < most) {
            double back = type == HLO_TYPE_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
            if (back != value) length = snprintf(text, sizeof text, "%.*g", most, value);
        }
        /* Add digits: XLA prints 2^-127, a subnormal f32, with two digits that would be read as
         * 2^-126. */
        while (type == HLO_TYPE_F8E8M0FNU && hlo_float_encode(type, strtod(text, NULL)) != bits)
            length = snprintf(text, sizeof text, "%.*g", ++most, value);
        hlo_put(o, text, (size_t)length);
    }
}

static uint64_t load_bits(const char *data, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, data, size);
    return bits;
}

/* Writes the elements of dimension `dim` and of the dimensions inside it. Returns the address of
 * the data after them. There are no spaces inside the braces of a vector, nor inside braces with at
 * most one element. From rank 4 on, outer braces are annotated with `index`, their number within
 * the enclosing braces. */
static const char *put_dimension(hlo_printer *o, const hlo_shape *shape, uint32_t dim,
                                 int64_t index, const char *data) {
    if (dim == shape->rank) {
        const hlo_type_info *info = &hlo_types[shape->type];
        uint64_t bits = load_bits(data, info->bytes <= 8 ? info->bytes : 8);
        switch ((hlo_type_class)info->class) {
        case HLO_CLASS_PRED:
            if (shape->rank)
                hlo_put_char(o, bits ? '1' : '0');
            else
                hlo_put_string(o, bits ? "true" : "false");
            break;
        case HLO_CLASS_SIGNED: {
            int unused = 64 - 8 * info->bytes;
            hlo_put_int(o, (int64_t)(bits << unused) >> unused);
            break;
        }
        case HLO_CLASS_UNSIGNED: hlo_put_uint(o, bits); break;
        case HLO_CLASS_FLOAT: hlo_put_float(o, shape->type, bits); break;
        case HLO_CLASS_COMPLEX: {
            hlo_type part = shape->type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64;
            size_t size = hlo_types[part].bytes;
            hlo_put_char(o, '(');
            hlo_put_float(o, part, load_bits(data, size));
            HLO_PUT(o, ", ");
            hlo_put_float(o, part, load_bits(data + size, size));
            hlo_put_char(o, ')');
            break;
        }
        case HLO_CLASS_NONE: break;
        }
        return data + hlo_types[shape->type].bytes;
    }
    bool innermost = dim + 1 == shape->rank;
    bool close = innermost && (dim == 0 || shape->dims[dim] <= 1);
    hlo_put_string(o, close ? "{" : "{ ");
    if (shape->rank > 3 && dim > 0 && !innermost) {
        HLO_PUT(o, "/*i");
        hlo_put_uint(o, dim - 1);
        hlo_put_char(o, '=');
        hlo_put_int(o, index);
        HLO_PUT(o, "*/ ");
    }
    for (int64_t i = 0; i < shape->dims[dim] && !o->dropped; i++) {
        if (i) HLO_PUT(o, ", ");
        data = put_dimension(o, shape, dim + 1, i, data);
    }
    hlo_put_string(o, close ? "}" : " }");
    return data;
}

void hlo_put_literal(hlo_printer *o, const hlo_literal *literal) {
    if (literal->elided) {
        HLO_PUT(o, "{...}");
    } else if (literal->shape->type == HLO_TYPE_TUPLE) {
        HLO_PUT(o, "( ");
        for (uint32_t i = 0; i < literal->shape->rank; i++) {
            if (i) HLO_PUT(o, ", ");
            hlo_put_literal(o, literal->elements[i]);
        }
        HLO_PUT(o, " )");
    } else {
        put_dimension(o, literal->shape, 0, 0, literal->data);
    }
}

bool hlo_literal_format(const hlo_literal *literal, char *text, size_t size) {
    char none[1];
    hlo_printer o = printer_into(text, size, none);
    hlo_put_literal(&o, literal);
    *o.at = '\0';
    return o.dropped == 0;
}
