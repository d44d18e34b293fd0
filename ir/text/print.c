/* HLO text out of a module, in XLA's long form, through a buffer of our own. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text.h"
#include "ir/float/float.h"
#include "ir/text/plain.h"
#include "ir/text/print_order.h"

static const hlo_print_options long_form = {
    .percent = true,
    .signature = true,
    .operand_index = true,
    .metadata = true,
    .control_predecessors = true,
    .backend_config = true,
    .large_constants = true,
};

/* The same shapes are printed again and again: the last text of each slot is kept. */
typedef struct shape_text {
    const hlo_shape *shape; /* NULL: none */
    bool layout;
    uint8_t length;
    char text[54];
} shape_text;

enum { SHAPE_TEXTS = 512 };

/* Where text goes when the buffer is full. */
typedef enum overflow { TO_FILE, INTO_MORE, NOWHERE } overflow;

typedef struct out {
    char *buffer, *at, *end;
    overflow overflow;
    FILE *file;     /* TO_FILE */
    size_t dropped; /* NOWHERE: bytes that did not fit */
    bool failed;
    shape_text *shapes; /* SHAPE_TEXTS of them; NULL: none are kept */
    const hlo_print_options *options;
    uint32_t *numbers; /* by instruction id: the N of tmp_N; of a canonical print */
    uint32_t depth;    /* of computations in place of their names */
    hlo_op op;         /* whose attributes are being printed */
    /* By instruction id: what each is shown to be the asynchronous form of, or NULL. NULL: none
     * is. */
    const hlo_instr **wrapped;
} out;

static void flush(out *o) {
    size_t size = (size_t)(o->at - o->buffer);
    if (size && fwrite(o->buffer, 1, size, o->file) != size) o->failed = true;
    o->at = o->buffer;
}

/* Makes room for so many bytes more; false when there is no memory. */
static bool grow(out *o, size_t size) {
    const size_t used = (size_t)(o->at - o->buffer), capacity = 2 * used + size;
    char *grown = used ? realloc(o->buffer, capacity) : hlo_memory_new(capacity);
    if (!grown) return false;
    o->buffer = grown;
    o->at = grown + used;
    o->end = grown + capacity;
    return true;
}

/* What does not fit at once. */
static void put_large(out *o, const char *bytes, size_t size) {
    size_t capacity = (size_t)(o->end - o->at);
    if (o->overflow == TO_FILE) {
        flush(o);
        capacity = (size_t)(o->end - o->at);
        if (size > capacity) o->failed |= fwrite(bytes, 1, size, o->file) != size;
    } else if (o->overflow == INTO_MORE) {
        o->failed |= !grow(o, size);
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

static inline void put(out *o, const char *bytes, size_t size) {
    if ((size_t)(o->end - o->at) < size) {
        put_large(o, bytes, size);
        return;
    }
    memcpy(o->at, bytes, size);
    o->at += size;
}

#define PUT(o, literal) put(o, literal, sizeof(literal) - 1)

static inline void put_string(out *o, const char *text) {
    put(o, text, strlen(text));
}

static inline void put_interned(out *o, const char *text) {
    put(o, text, hlo_intern_length(text));
}

static inline void put_char(out *o, char c) {
    put(o, &c, 1);
}

static void put_uint(out *o, uint64_t value) {
    char digits[20], *at = digits + sizeof digits;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    put(o, at, (size_t)(digits + sizeof digits - at));
}

static void put_int(out *o, int64_t value) {
    if (value < 0) put_char(o, '-');
    put_uint(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_name(out *o, const char *interned) {
    if (o->options->percent) put_char(o, '%');
    put_interned(o, interned);
}

static void put_instr_name(out *o, const hlo_instr *instr) {
    if (!o->numbers) {
        put_name(o, instr->name);
        return;
    }
    PUT(o, "tmp_");
    put_uint(o, o->numbers[instr->id]);
}

/* Between the items of a list: every fifth is numbered. */
static void put_comma(out *o, uint32_t index) {
    if (!index) return;
    PUT(o, ", ");
    if (index % 5) return;
    PUT(o, "/*index=");
    put_uint(o, index);
    PUT(o, "*/");
}

/* Bytes as C writes them. */
static void put_quoted(out *o, const char *interned) {
    put_char(o, '"');
    const size_t length = hlo_intern_length(interned);
    const char *from = interned, *end = interned + length;
    if (hlo_all_plain(interned, length)) {
        put(o, interned, length);
        from = end;
    }
    for (const char *at = from;; at++) {
        unsigned char c = at < end ? (unsigned char)*at : '"';
        if (hlo_is_plain(c)) continue;
        put(o, from, (size_t)(at - from));
        from = at + 1;
        if (at == end) break;
        const char *letter = memchr("\n\r\t\"'\\", c, 6);
        char escape[4] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
                          (char)('0' + (c & 7))};
        if (letter) escape[1] = "nrt\"'\\"[letter - "\n\r\t\"'\\"];
        put(o, escape, letter ? 2 : 4);
    }
    put_char(o, '"');
}

/* --------------------------------------------------------------------------------------- shapes */

/* In XLA's order E(n) and S(n) stand before what tells of splits and physical shapes. */
static size_t before_element_size(const char *rest) {
    static const char *const later[] = {"SC(", "P(", "M("};
    size_t length = strlen(rest);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        const char *found = strstr(rest, later[i]);
        if (found && (size_t)(found - rest) < length) length = (size_t)(found - rest);
    }
    return length;
}

static void put_layout(out *o, const hlo_shape *shape) {
    const hlo_layout *l = shape->layout;
    bool more = l && (l->rest || l->element_bits || l->memory_space);
    if (!l || (shape->rank == 0 && !more)) return;
    put_char(o, '{');
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (i) put_char(o, ',');
        put_int(o, l->minor_to_major[i]);
    }
    if (more) {
        const char *rest = l->rest ? l->rest : "";
        size_t head = before_element_size(rest);
        put_char(o, ':');
        put(o, rest, head);
        if (l->element_bits) {
            PUT(o, "E(");
            put_int(o, l->element_bits);
            put_char(o, ')');
        }
        if (l->memory_space) {
            PUT(o, "S(");
            put_int(o, l->memory_space);
            put_char(o, ')');
        }
        put_string(o, rest + head);
    }
    put_char(o, '}');
}

static void put_shape(out *o, const hlo_shape *shape, bool layout);

static void write_shape(out *o, const hlo_shape *shape, bool layout) {
    if (shape->buffer) PUT(o, "b(");
    if (shape->type == HLO_TYPE_TUPLE) {
        put_char(o, '(');
        for (uint32_t i = 0; i < shape->rank; i++) {
            put_comma(o, i);
            put_shape(o, shape->elements[i], layout);
        }
        put_char(o, ')');
    } else {
        put_string(o, hlo_types[shape->type].name);
        put_char(o, '[');
        for (uint32_t i = 0; i < shape->rank; i++) {
            if (i) put_char(o, ',');
            if (shape->dynamic && shape->dynamic[i]) PUT(o, "<=");
            if (shape->dims[i] < 0)
                put_char(o, '?');
            else
                put_int(o, shape->dims[i]);
        }
        put_char(o, ']');
        if (layout) put_layout(o, shape);
    }
    if (shape->buffer) put_char(o, ')');
}

static void put_shape(out *o, const hlo_shape *shape, bool layout) {
    if (!o->shapes || shape->type == HLO_TYPE_TUPLE) { /* a tuple is long; its elements are kept */
        write_shape(o, shape, layout);
        return;
    }
    shape_text *t = &o->shapes[((uintptr_t)shape / 8 * 2 + layout) % SHAPE_TEXTS];
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
    put(o, t->text, t->length);
}

/* Into `size` bytes at `text`, 0 of them at `none`. */
static out out_into(char *text, size_t size, char *none) {
    char *buffer = size ? text : none;
    return (out){.buffer = buffer,
                 .at = buffer,
                 .end = buffer + (size ? size - 1 : 0),
                 .overflow = NOWHERE,
                 .options = &long_form};
}

size_t hlo_shape_format(const hlo_shape *shape, bool layout, char *text, size_t size) {
    char none[1];
    out o = out_into(text, size, none);
    write_shape(&o, shape, layout);
    *o.at = '\0';
    return (size_t)(o.at - o.buffer) + o.dropped;
}

/* ------------------------------------------------------------------------------------- literals */

/* Enough digits to come back, as few as XLA gives: a float that is wide first tries as many as
 * every value of the type keeps. */
static void put_float(out *o, hlo_type type, uint64_t bits) {
    double value = hlo_float_decode(type, bits);
    char text[40];
    uint64_t payload;
    if (isnan(value)) {
        bool negative = bits >> (hlo_types[type].bits - 1) & 1;
        if (negative && type != HLO_TYPE_F8E8M0FNU) put_char(o, '-'); /* that has no sign */
        PUT(o, "nan");
        if ((payload = hlo_float_payload(type, bits)) != 0) {
            snprintf(text, sizeof text, "(0x%" PRIx64 ")", payload);
            put_string(o, text);
        }
    } else if (isinf(value)) {
        put_string(o, value < 0 ? "-inf" : "inf");
    } else if (value == 0) {
        put_string(o, signbit(value) ? "-0.0" : "0"); /* `-0` would be read as an integer */
    } else if (fabs(value) < 1e6 && value == nearbyint(value) && hlo_types[type].bits >= 32) {
        put_int(o, (int64_t)value);
    } else {
        int precision = hlo_float_precision(type);
        int most = (int)ceil(precision * 0.30103 + 1);
        int few = hlo_types[type].bits >= 32 ? (int)((precision - 1) * 0.30103) : most;
        int length = snprintf(text, sizeof text, "%.*g", few, value);
        if (few < most) {
            double back = type == HLO_TYPE_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
            if (back != value) length = snprintf(text, sizeof text, "%.*g", most, value);
        }
        /* XLA's two digits of 2^-127, a subnormal f32, are read as 2^-126. */
        while (type == HLO_TYPE_F8E8M0FNU && hlo_float_encode(type, strtod(text, NULL)) != bits)
            length = snprintf(text, sizeof text, "%.*g", ++most, value);
        put(o, text, (size_t)length);
    }
}

static uint64_t load_bits(const char *data, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, data, size);
    return bits;
}

static void put_element(out *o, const hlo_shape *shape, const char *data) {
    const hlo_type_info *info = &hlo_types[shape->type];
    uint64_t bits = load_bits(data, info->bytes <= 8 ? info->bytes : 8);
    switch ((hlo_type_class)info->class) {
    case HLO_CLASS_PRED:
        if (shape->rank)
            put_char(o, bits ? '1' : '0');
        else
            put_string(o, bits ? "true" : "false");
        break;
    case HLO_CLASS_SIGNED: {
        int unused = 64 - 8 * info->bytes;
        put_int(o, (int64_t)(bits << unused) >> unused);
        break;
    }
    case HLO_CLASS_UNSIGNED: put_uint(o, bits); break;
    case HLO_CLASS_FLOAT: put_float(o, shape->type, bits); break;
    case HLO_CLASS_COMPLEX: {
        hlo_type part = shape->type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64;
        size_t size = hlo_types[part].bytes;
        put_char(o, '(');
        put_float(o, part, load_bits(data, size));
        PUT(o, ", ");
        put_float(o, part, load_bits(data + size, size));
        put_char(o, ')');
        break;
    }
    case HLO_CLASS_NONE: break;
    }
}

/* The elements of dimension `dim` and those inside it; returns what comes after them. A vector's
 * braces stand close, as do those round at most one element; from four dimensions on, the outer
 * braces are numbered: this one is number `index` of those around it. */
static const char *put_dimension(out *o, const hlo_shape *shape, uint32_t dim, int64_t index,
                                 const char *data) {
    if (dim == shape->rank) {
        put_element(o, shape, data);
        return data + hlo_types[shape->type].bytes;
    }
    bool innermost = dim + 1 == shape->rank;
    bool close = innermost && (dim == 0 || shape->dims[dim] <= 1);
    put_string(o, close ? "{" : "{ ");
    if (shape->rank > 3 && dim > 0 && !innermost) {
        PUT(o, "/*i");
        put_uint(o, dim - 1);
        put_char(o, '=');
        put_int(o, index);
        PUT(o, "*/ ");
    }
    for (int64_t i = 0; i < shape->dims[dim] && !o->dropped; i++) {
        if (i) PUT(o, ", ");
        data = put_dimension(o, shape, dim + 1, i, data);
    }
    put_string(o, close ? "}" : " }");
    return data;
}

static void put_literal(out *o, const hlo_literal *literal) {
    if (literal->elided) {
        PUT(o, "{...}");
    } else if (literal->shape->type == HLO_TYPE_TUPLE) {
        PUT(o, "( ");
        for (uint32_t i = 0; i < literal->shape->rank; i++) {
            if (i) PUT(o, ", ");
            put_literal(o, literal->elements[i]);
        }
        PUT(o, " )");
    } else {
        put_dimension(o, literal->shape, 0, 0, literal->data);
    }
}

bool hlo_literal_format(const hlo_literal *literal, char *text, size_t size) {
    char none[1];
    out o = out_into(text, size, none);
    put_literal(&o, literal);
    *o.at = '\0';
    return o.dropped == 0;
}

/* ----------------------------------------------------------------------------------- attributes */

static void put_attrs(out *o, const hlo_attr *attrs, uint32_t count, const char *first,
                      const char *others);
static void put_called(out *o, const hlo_computation *comp);
static void put_line(out *o, uint32_t depth);

/* Each array behind its shape. */
static void put_shaped_literal(out *o, const hlo_literal *literal) {
    if (literal->shape->type != HLO_TYPE_TUPLE || literal->elided) {
        put_shape(o, literal->shape, true);
        put_char(o, ' ');
        put_literal(o, literal);
        return;
    }
    PUT(o, "( ");
    for (uint32_t i = 0; i < literal->shape->rank; i++) {
        if (i) PUT(o, ", ");
        put_shaped_literal(o, literal->elements[i]);
    }
    PUT(o, " )");
}

static void put_ints(out *o, const hlo_ints *ints) {
    put_char(o, '{');
    for (uint32_t i = 0; i < ints->count; i++) {
        if (i) put_char(o, ',');
        put_int(o, ints->v[i]);
    }
    put_char(o, '}');
}

static void put_slices(out *o, const hlo_ints *ints) {
    bool strides = false; /* all are shown, or none */
    for (uint32_t i = 2; i < ints->count; i += 3) strides |= ints->v[i] != 1;
    put_char(o, '{');
    for (uint32_t i = 0; i + 2 < ints->count; i += 3) {
        if (i) PUT(o, ", ");
        put_char(o, '[');
        put_int(o, ints->v[i]);
        put_char(o, ':');
        put_int(o, ints->v[i + 1]);
        if (strides) {
            put_char(o, ':');
            put_int(o, ints->v[i + 2]);
        }
        put_char(o, ']');
    }
    put_char(o, '}');
}

/* The padding between elements is shown of every dimension when one has some. */
static void put_padding(out *o, const hlo_ints *ints) {
    bool interior = false;
    for (uint32_t i = 0; i + 2 < ints->count; i += 3) interior |= ints->v[i + 2] != 0;
    for (uint32_t i = 0; i + 2 < ints->count; i += 3) {
        if (i) put_char(o, 'x');
        put_int(o, ints->v[i]);
        put_char(o, '_');
        put_int(o, ints->v[i + 1]);
        if (!interior) continue;
        put_char(o, '_');
        put_int(o, ints->v[i + 2]);
    }
}

static void put_double(out *o, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_float(o, HLO_TYPE_F64, bits);
}

/* Bytes of the string in quotes, or of the braces, that `at` begins with. */
static size_t enclosed_size(const char *at) {
    const char *from = at;
    int depth = 0;
    do {
        if (*at == '"' || *at == '\'') {
            for (char quote = *at++; *at && *at != quote; at++) at += *at == '\\' && at[1];
        } else {
            depth += (*at == '{') - (*at == '}');
        }
        at += *at != '\0';
    } while (depth && *at);
    return (size_t)(at - from);
}

/* A sharding, without the metadata in it. */
static void put_without_metadata(out *o, const char *text) {
    static const char name[] = "metadata={";
    for (const char *at = text; *at;) {
        const char *named = at + strspn(at, ", ");
        size_t size = *at == '"' || *at == '\'' ? enclosed_size(at) : 1;
        if (named != at && strncmp(named, name, sizeof name - 1) == 0) {
            at = named + sizeof name - 2;
            at += enclosed_size(at);
        } else {
            put(o, at, size);
            at += size;
        }
    }
}

static void put_value(out *o, const hlo_attr *attr) {
    switch (hlo_attrs_info[attr->id].kind) {
    case HLO_KIND_INT: put_int(o, attr->u.i); break;
    case HLO_KIND_BOOL: put_string(o, attr->u.i ? "true" : "false"); break;
    case HLO_KIND_FLOAT: put_double(o, attr->u.f); break;
    case HLO_KIND_FORM:
        if (attr->id == HLO_ATTR_DOMAIN ||
            (attr->id == HLO_ATTR_SHARDING && !o->options->metadata)) {
            put_without_metadata(o, attr->u.str);
            break;
        } /* fallthrough */
    case HLO_KIND_WORD:
    case HLO_KIND_RAW: put_interned(o, attr->u.str); break;
    case HLO_KIND_STRING: put_quoted(o, attr->u.str); break;
    case HLO_KIND_INTS: put_ints(o, attr->u.ints); break;
    case HLO_KIND_SLICES: put_slices(o, attr->u.ints); break;
    case HLO_KIND_PADDING: put_padding(o, attr->u.ints); break;
    case HLO_KIND_COMPUTATION:
        if (o->options->canonical) put_char(o, '\n');
        put_called(o, attr->u.comp);
        break;
    case HLO_KIND_COMPUTATIONS:
        put_string(o, o->options->canonical ? "{\n" : "{");
        for (uint32_t i = 0; i < attr->u.comps->count; i++) {
            if (i) put_string(o, o->options->canonical ? ",\n" : ", ");
            put_called(o, attr->u.comps->v[i]);
        }
        if (o->options->canonical) put_line(o, 0); /* however deep, as XLA has it */
        put_char(o, '}');
        break;
    case HLO_KIND_INSTRS:
        put_char(o, '{');
        for (uint32_t i = 0; i < attr->u.instrs->count; i++) {
            if (i) PUT(o, ", ");
            put_instr_name(o, attr->u.instrs->v[i]);
        }
        put_char(o, '}');
        break;
    case HLO_KIND_SHAPES:
        put_char(o, '{');
        for (uint32_t i = 0; i < attr->u.shapes->count; i++) {
            if (i) PUT(o, ", ");
            put_shape(o, attr->u.shapes->v[i], true);
        }
        put_char(o, '}');
        break;
    case HLO_KIND_SHAPE: put_shape(o, attr->u.shape, true); break;
    case HLO_KIND_LITERAL: put_shaped_literal(o, attr->u.literal); break;
    case HLO_KIND_LAYOUT: {
        uint32_t parameters = attr->u.shapes->count - 1;
        PUT(o, "{(");
        for (uint32_t i = 0; i < parameters; i++) {
            put_comma(o, i);
            put_shape(o, attr->u.shapes->v[i], true);
        }
        PUT(o, ")->");
        put_shape(o, attr->u.shapes->v[parameters], true);
        put_char(o, '}');
        break;
    }
    case HLO_KIND_ATTRS:
        put_char(o, '{');
        put_attrs(o, attr->u.attrs->v, attr->u.attrs->count, "", " ");
        put_char(o, '}');
        break;
    case HLO_KIND_BYTES: break;
    }
}

/* Some opcodes call their computation by another name where XLA shows it in place of that. */
static const char *attr_name(const out *o, hlo_attr_id id) {
    bool calls = o->options->canonical && id == HLO_ATTR_TO_APPLY &&
                 (o->op == HLO_OP_REDUCE_SCATTER || o->op == HLO_OP_SCAN);
    return hlo_attrs_info[calls ? HLO_ATTR_CALLS : id].name;
}

static void put_attr(out *o, const hlo_attr *attr) {
    put_string(o, attr_name(o, attr->id));
    put_char(o, '=');
    put_value(o, attr);
    if (attr->id == HLO_ATTR_ORIGIN_RECOVERY_TABLE) put_char(o, '\n');
}

/* Line numbers and the like alone are not shown. */
static bool is_worth_showing(const hlo_attrs *metadata) {
    for (uint32_t i = 0; i < metadata->count; i++) switch (metadata->v[i].id) {
        case HLO_ATTR_OP_TYPE:
        case HLO_ATTR_OP_NAME:
        case HLO_ATTR_SOURCE_FILE:
        case HLO_ATTR_SCHEDULING_NAME:
        case HLO_ATTR_METADATA_PAYLOAD:
        case HLO_ATTR_STACK_FRAME_ID: return true;
        default: break;
        }
    return false;
}

static bool is_left_out(const hlo_print_options *options, const hlo_attr *attr) {
    const hlo_attr_id id = attr->id;
    return (id == HLO_ATTR_METADATA && (!options->metadata || !is_worth_showing(attr->u.attrs))) ||
           (id == HLO_ATTR_BACKEND_CONFIG && !options->backend_config) ||
           (id == HLO_ATTR_CONTROL_PREDECESSORS && !options->control_predecessors);
}

/* Those with ids in (after, before), in the order of attr.def, with `first` in front of the first
 * and `others` in front of the others. There are few of them, so the next one is looked for anew
 * each time. */
static void put_attrs_between(out *o, const hlo_attr *attrs, uint32_t count, int after, int before,
                              const char *first, const char *others) {
    bool any = false;
    for (uint32_t done = 0; done < count; done++) {
        const hlo_attr *next = NULL;
        for (uint32_t i = 0; i < count; i++)
            if ((int)attrs[i].id > after && (int)attrs[i].id < before &&
                (!next || attrs[i].id < next->id))
                next = &attrs[i];
        if (!next || hlo_attrs_info[next->id].kind == HLO_KIND_BYTES) return;
        after = (int)next->id;
        if (is_left_out(o->options, next)) continue;
        put_string(o, any ? others : first);
        put_attr(o, next);
        any = true;
    }
}

static void put_attrs(out *o, const hlo_attr *attrs, uint32_t count, const char *first,
                      const char *others) {
    put_attrs_between(o, attrs, count, -1, HLO_ATTR_COUNT, first, others);
}

/* ------------------------------------------------------------------- instructions, computations */

/* Those of an `op`, each behind a comma. A reduce-scatter's dimensions come later than others'. */
static void put_op_attrs(out *o, hlo_op op, const hlo_attr *attrs, uint32_t count) {
    const int early = HLO_ATTR_DIMENSIONS, late = HLO_ATTR_USE_GLOBAL_DEVICE_IDS;
    o->op = op;
    if (op != HLO_OP_REDUCE_SCATTER) {
        put_attrs(o, attrs, count, ", ", ", ");
        return;
    }
    put_attrs_between(o, attrs, count, -1, early, ", ", ", ");
    put_attrs_between(o, attrs, count, early, late + 1, ", ", ", ");
    put_attrs_between(o, attrs, count, early - 1, early + 1, ", ", ", ");
    put_attrs_between(o, attrs, count, late, HLO_ATTR_COUNT, ", ", ", ");
}

/* An async-start's attributes and those of what it wraps, in one order. */
static void put_merged_attrs(out *o, const hlo_instr *start, const hlo_instr *wrapped) {
    hlo_attr all[HLO_ATTR_COUNT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < start->attr_count; i++)
        if (start->attrs[i].id != HLO_ATTR_CALLS ||
            (o->options->canonical && !hlo_op_has(wrapped->op, HLO_ATTR_CALLS)))
            all[count++] = start->attrs[i];
    for (uint32_t i = 0; i < wrapped->attr_count; i++) all[count++] = wrapped->attrs[i];
    put_op_attrs(o, wrapped->op, all, count);
}

static void put_opcode(out *o, const hlo_instr *instr, const hlo_instr *wrapped) {
    if (!wrapped) {
        put_string(o, hlo_ops[instr->op].name);
        return;
    }
    put_string(o, hlo_ops[wrapped->op].name);
    put_string(o, hlo_ops[instr->op].name + sizeof "async" - 1);
}

static void put_constant(out *o, const hlo_literal *literal) {
    enum { FEW = 10 };
    const hlo_shape *shape = literal->shape;
    if (o->options->large_constants || (hlo_shape_is_array(shape) && hlo_shape_count(shape) <= FEW))
        put_literal(o, literal);
    else
        PUT(o, "{...}");
}

static void put_instr(out *o, const hlo_instr *instr) {
    const hlo_instr *wrapped = o->wrapped ? o->wrapped[instr->id] : NULL;
    put_instr_name(o, instr);
    PUT(o, " = ");
    put_shape(o, instr->shape, true);
    put_char(o, ' ');
    put_opcode(o, instr, wrapped);
    put_char(o, '(');
    if (instr->op == HLO_OP_PARAMETER) put_int(o, instr->u.parameter);
    if (instr->op == HLO_OP_CONSTANT) put_constant(o, instr->u.literal);
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *operand = hlo_instr_operand(instr, i);
        if (o->options->operand_index)
            put_comma(o, i);
        else if (i)
            PUT(o, ", ");
        if (o->options->operand_shapes) {
            put_shape(o, operand->shape, true);
            put_char(o, ' ');
        }
        put_instr_name(o, operand);
    }
    put_char(o, ')');
    if (wrapped && instr->op == HLO_OP_ASYNC_START)
        put_merged_attrs(o, instr, wrapped);
    else
        put_op_attrs(o, instr->op, instr->attrs, instr->attr_count);
}

static void put_line(out *o, uint32_t depth) {
    put_char(o, '\n');
    for (uint32_t i = 0; i < depth; i++) PUT(o, "  ");
}

/* From the brace to the brace. */
static void put_body_line(out *o, const hlo_computation *comp, const hlo_instr *instr) {
    put_line(o, o->depth + 1);
    if (instr == comp->root) PUT(o, "ROOT ");
    put_instr(o, instr);
}

static void put_body(out *o, const hlo_computation *comp) {
    uint32_t number = 0;
    if (o->numbers)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            o->numbers[instr->id] = number++;
    put_char(o, '{');
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
        put_body_line(o, comp, instr);
    put_line(o, o->depth);
    put_char(o, '}');
}

/* In place of its name. */
static void put_inner_body(out *o, const hlo_computation *comp) {
    const hlo_instr **order = hlo_print_order(comp, o->numbers);
    o->failed |= !order;
    put_char(o, '{');
    for (uint32_t i = 0; order && i < comp->instr_count; i++) put_body_line(o, comp, order[i]);
    put_line(o, o->depth);
    put_char(o, '}');
    free(order);
}

static void put_called(out *o, const hlo_computation *comp) {
    if (!o->options->canonical) {
        put_name(o, comp->name);
        return;
    }
    o->depth++;
    for (uint32_t i = 0; i < o->depth; i++) PUT(o, "  ");
    put_inner_body(o, comp);
    put_attrs(o, comp->attrs, comp->attr_count, ", ", ", ");
    o->depth--;
}

static void put_computation(out *o, const hlo_computation *comp) {
    if (comp == comp->module->entry) PUT(o, "ENTRY ");
    put_name(o, comp->name);
    if (o->options->signature) {
        PUT(o, " (");
        for (uint32_t i = 0; i < comp->parameter_count; i++) {
            if (i) PUT(o, ", ");
            put_interned(o, comp->parameters[i]->name);
            PUT(o, ": ");
            put_shape(o, comp->parameters[i]->shape, false);
        }
        PUT(o, ") -> ");
        put_shape(o, comp->root->shape, false);
    }
    put_char(o, ' ');
    put_body(o, comp);
    put_attrs(o, comp->attrs, comp->attr_count, ", ", ", ");
    PUT(o, "\n\n");
}

/* ----------------------------------------------------------------------------------- the module */

static void put_strings(out *o, const char *title, const char *const *strings, uint32_t count) {
    put_string(o, title);
    for (uint32_t i = 0; i < count; i++) {
        put_uint(o, i + 1);
        put_char(o, ' ');
        put_quoted(o, strings[i]);
        put_char(o, '\n');
    }
}

static void put_field(out *o, char before, hlo_attr_id id, int64_t value) {
    put_char(o, before);
    put_attr(o, &(hlo_attr){.id = id, .u.i = value});
}

static void put_tables(out *o, const hlo_tables *t) {
    if (!t->file_count && !t->function_count && !t->location_count && !t->frame_count) return;
    put_strings(o, "FileNames\n", t->files, t->file_count);
    put_strings(o, "\nFunctionNames\n", t->functions, t->function_count);
    PUT(o, "\nFileLocations\n");
    for (uint32_t i = 0; i < t->location_count; i++) {
        const hlo_file_location *l = &t->locations[i];
        put_uint(o, i + 1);
        put_char(o, ' ');
        put_field(o, '{', HLO_ATTR_FILE_NAME_ID, l->file_name);
        put_field(o, ' ', HLO_ATTR_FUNCTION_NAME_ID, l->function_name);
        put_field(o, ' ', HLO_ATTR_LINE, l->line);
        put_field(o, ' ', HLO_ATTR_END_LINE, l->end_line);
        put_field(o, ' ', HLO_ATTR_COLUMN, l->column);
        put_field(o, ' ', HLO_ATTR_END_COLUMN, l->end_column);
        PUT(o, "}\n");
    }
    PUT(o, "\nStackFrames\n");
    for (uint32_t i = 0; i < t->frame_count; i++) {
        const hlo_stack_frame *f = &t->frames[i];
        put_uint(o, i + 1);
        put_char(o, ' ');
        put_field(o, '{', HLO_ATTR_FILE_LOCATION_ID, f->file_location);
        put_field(o, ' ', HLO_ATTR_PARENT_FRAME_ID, f->parent);
        PUT(o, "}\n");
    }
    PUT(o, "\n\n");
}

static void put_entry_layout(out *o, const hlo_computation *entry) {
    PUT(o, ", entry_computation_layout={(");
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        put_comma(o, i);
        put_shape(o, entry->parameters[i]->shape, true);
    }
    PUT(o, ")->");
    put_shape(o, entry->root->shape, true);
    put_char(o, '}');
}

typedef struct caller_count {
    uint32_t *callers; /* by computation id */
} caller_count;

static void count_call(void *user, hlo_computation *called) {
    ((caller_count *)user)->callers[called->id]++;
}

/* Which computations only one async-start calls, and it can be shown as what they do. The caller
 * frees; NULL when there are none, or no memory, and then all is shown. */
static bool *find_hidden(const hlo_module *module) {
    bool any = false;
    for (const hlo_computation *comp = module->first; comp && !any; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr && !any; instr = hlo_instr_next(instr))
            any = instr->op == HLO_OP_ASYNC_START;
    if (!any) return NULL;
    caller_count count = {calloc(module->next_computation_id, sizeof *count.callers)};
    bool *hidden = calloc(module->next_computation_id, sizeof *hidden);
    if (count.callers && hidden) {
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
                hlo_instr_visit_called(instr, count_call, &count);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
                const hlo_computation *called =
                    instr->op == HLO_OP_ASYNC_START ? hlo_instr_comp(instr, HLO_ATTR_CALLS) : NULL;
                if (called && count.callers[called->id] == 1 && called != module->entry)
                    hidden[called->id] = hlo_async_tells(instr, called);
            }
    }
    free(count.callers);
    return hidden;
}

/* See out.wrapped, of what calls a hidden computation. The caller frees; NULL when nothing does. */
static const hlo_instr **find_wrapped(const hlo_module *module, const bool *hidden) {
    const hlo_instr **wrapped = hidden ? calloc(module->next_id, sizeof *wrapped) : NULL;
    for (const hlo_computation *comp = wrapped ? module->first : NULL; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            const hlo_computation *called =
                instr->op == HLO_OP_ASYNC_START ? hlo_instr_comp(instr, HLO_ATTR_CALLS) : NULL;
            if (called && hidden[called->id]) wrapped[instr->id] = called->root;
            if (instr->op == HLO_OP_ASYNC_UPDATE || instr->op == HLO_OP_ASYNC_DONE)
                wrapped[instr->id] = wrapped[hlo_instr_operand(instr, 0)->id];
        }
    return wrapped;
}

static void put_module(out *o, const hlo_module *module) {
    bool layout = !module->entry;
    for (uint32_t i = 0; i < module->attr_count; i++)
        layout |= module->attrs[i].id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT;
    PUT(o, "HloModule ");
    put_interned(o, module->name);
    const int middle = HLO_ATTR_ENTRY_COMPUTATION_LAYOUT;
    put_attrs_between(o, module->attrs, module->attr_count, -1, middle + layout, ", ", ", ");
    if (!layout) put_entry_layout(o, module->entry);
    put_attrs_between(o, module->attrs, module->attr_count, middle, HLO_ATTR_COUNT, ", ", ", ");
    PUT(o, "\n\n");
    if (o->options->metadata) put_tables(o, &module->tables);
    bool *hidden = find_hidden(module);
    o->wrapped = find_wrapped(module, hidden);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        if (!o->wrapped || !hidden[comp->id]) put_computation(o, comp);
    free(o->wrapped);
    free(hidden);
}

void hlo_print_options_init(hlo_print_options *options, hlo_print_form form) {
    bool brief = form == HLO_PRINT_SHORT || form == HLO_PRINT_CANONICAL;
    bool canonical = form == HLO_PRINT_CANONICAL;
    *options = long_form;
    options->percent = options->signature = options->operand_index = !brief;
    options->control_predecessors = !brief;
    options->metadata = !brief && form != HLO_PRINT_NO_METADATA;
    options->operand_shapes = options->canonical = canonical;
    options->backend_config = !canonical;
    options->large_constants = !canonical && form != HLO_PRINT_NO_LARGE_CONSTANTS;
}

/* A canonical print repeats the body of a computation wherever it is called. */
typedef struct extent {
    uint32_t depth; /* of bodies in bodies */
    uint64_t instrs;
} extent;

enum { MOST_DEPTH = 1000, MOST_INSTRS = 1 << 26 };

typedef struct extents {
    extent *of; /* by computation id */
    extent now;
} extents;

static void add_called(void *user, hlo_computation *called) {
    extents *e = user;
    const extent *inner = &e->of[called->id];
    if (inner->depth >= e->now.depth) e->now.depth = inner->depth + 1;
    e->now.instrs += inner->instrs;
}

static hlo_status check_extent(const hlo_module *module) {
    extents e = {.of = calloc((size_t)module->next_computation_id + 1, sizeof *e.of)};
    bool fits = e.of != NULL;
    for (const hlo_computation *comp = module->first; fits && comp; comp = comp->next) {
        e.now = (extent){.depth = 1, .instrs = comp->instr_count};
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            hlo_instr_visit_called(instr, add_called, &e);
        e.of[comp->id] = e.now;
        fits = e.now.depth <= MOST_DEPTH && e.now.instrs <= MOST_INSTRS;
    }
    free(e.of);
    return fits ? HLO_OK : HLO_OUT_OF_MEMORY;
}

/* HLO_OUT_OF_MEMORY when there is none for what the print keeps. */
static hlo_status print(out *o, const hlo_module *module) {
    if (o->options->canonical && check_extent(module) != HLO_OK) return HLO_OUT_OF_MEMORY;
    const bool canonical = o->options->canonical;
    o->shapes = calloc(SHAPE_TEXTS, sizeof *o->shapes);
    o->numbers = canonical ? calloc((size_t)module->next_id + 1, sizeof *o->numbers) : NULL;
    const bool whole = o->shapes && (o->numbers || !canonical);
    if (whole) put_module(o, module);
    free(o->shapes);
    free(o->numbers);
    return whole ? HLO_OK : HLO_OUT_OF_MEMORY;
}

enum { BUFFER = 1 << 16 };

hlo_status hlo_module_print(const hlo_module *module, const hlo_print_options *options,
                            FILE *file) {
    out o = {.file = file, .options = options ? options : &long_form};
    const hlo_status status = grow(&o, BUFFER) ? print(&o, module) : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) flush(&o);
    free(o.buffer);
    if (status != HLO_OK) return status;
    if (fflush(file) != 0) o.failed = true;
    return o.failed ? HLO_INVALID_INPUT : HLO_OK;
}

hlo_status hlo_module_to_text(const hlo_module *module, const hlo_print_options *options,
                              char **out_text, size_t *out_size) {
    out o = {.overflow = INTO_MORE, .options = options ? options : &long_form};
    /* Short forms become long ones; what is not written to takes no memory. */
    o.failed = !grow(&o, BUFFER + module->source_size / 2 * 3);
    const hlo_status status = o.failed ? HLO_OUT_OF_MEMORY : print(&o, module);
    if (status == HLO_OK) put_char(&o, '\0');
    if (status != HLO_OK || o.failed) {
        free(o.buffer);
        *out_text = NULL;
        return HLO_OUT_OF_MEMORY;
    }
    *out_size = (size_t)(o.at - o.buffer) - 1;
    *out_text = o.buffer;
    return HLO_OK;
}
