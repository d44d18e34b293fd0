/* SPDX-License-Identifier: Apache-2.0 */
/* Converts shapes, constants, windows and dimension labels between the IR and messages. */
#include <string.h>

#include "grammar/proto/proto.h"
#include "ir/float/literal.h"
#include "ir/intern.h"

enum { MAX_LABELS = 64 };

#define Xla__PrimitiveType__OPAQUE Xla__PrimitiveType__OPAQUE_TYPE
static const int numbers[HLO_TYPE_COUNT] = {
#define HLO_TYPE(id, name, bits, class) [HLO_TYPE_##id] = Xla__PrimitiveType__##id,
#include "ir/table/type.def"
#undef HLO_TYPE
};

/* Counts an open tuple, whose elements are nested messages; the caller decrements the count after
 * the tuple. Fails if protobuf parsers would reject the depth. The check precedes the elements,
 * because a constant repeats the shape of each element. */
static void open_tuple(hlo_proto *p) {
    if (++p->tuples > HLO_WIRE_DEEPEST) hlo_proto_fail(p, HLO_WIRE_TOO_DEEP, HLO_WIRE_DEEPEST);
}

/* --------------------------------------------------------------------------------------- shapes */

/* The pattern of the properties of a layout, without E(n) and S(n). */
static const char properties[] =
    "@tiles`T$tiles||`@tail_padding_alignment_in_elements`L($tail_padding_alignment_in_elements)`"
    "@index_primitive_type`#($index_primitive_type)`"
    "@pointer_primitive_type`*($pointer_primitive_type)`"
    "@split_configs`SC$split_configs||`"
    "@dynamic_shape_metadata_prefix_bytes`M($dynamic_shape_metadata_prefix_bytes)`";

static void read_layout(hlo_proto *p, const Xla__LayoutProto *from, hlo_layout *out) {
    if (!from) return;
    Xla__LayoutProto rest = *from;
    if (rest.tail_padding_alignment_in_elements == 1) rest.tail_padding_alignment_in_elements = 0;
    out->element_bits = rest.element_size_in_bits;
    out->memory_space = rest.memory_space;
    rest.n_minor_to_major = 0;
    rest.minor_to_major = NULL;
    rest.element_size_in_bits = rest.memory_space = 0;
    if (hlo_message_is_new(&rest.base)) return;
    hlo_bytes text = {.arena = p->scratch};
    hlo_text_pattern_print(p, &text, &rest.base, properties);
    if (text.size) out->rest = hlo_intern(p->module, text.v, text.size);
}

const hlo_shape *hlo_shape_from_proto(hlo_proto *p, const Xla__ShapeProto *from) {
    int64_t dims[HLO_LARGEST_RANK], order[HLO_LARGEST_RANK];
    bool dynamic[HLO_LARGEST_RANK], seen[HLO_LARGEST_RANK] = {false}, any = false;
    if (!from) hlo_proto_fail(p, "a shape is missing");
    if (from->element_type == Xla__PrimitiveType__BUFFER) {
        if (from->n_tuple_shapes != 1) hlo_proto_fail(p, "a buffer must have exactly one array");
        hlo_shape buffer = *hlo_shape_from_proto(p, from->tuple_shapes[0]);
        buffer.buffer = true;
        return hlo_shape_intern(p->module, &buffer);
    }
    hlo_type type = 0;
    while (type < HLO_TYPE_COUNT && numbers[type] != (int)from->element_type) type++;
    if (type == HLO_TYPE_COUNT)
        hlo_proto_fail(p, "unknown element type %d", (int)from->element_type);
    if (type == HLO_TYPE_TUPLE) {
        const hlo_shape **elements =
            hlo_arena_array(p->scratch, from->n_tuple_shapes, sizeof *elements);
        for (size_t i = 0; i < from->n_tuple_shapes; i++)
            elements[i] = hlo_shape_from_proto(p, from->tuple_shapes[i]);
        return hlo_shape_tuple(p->module, (uint32_t)from->n_tuple_shapes, elements);
    }
    if (from->n_dimensions > HLO_LARGEST_RANK)
        hlo_proto_fail(p, "a shape has %zu dimensions, but the maximum is %d", from->n_dimensions,
                       HLO_LARGEST_RANK);
    uint32_t rank = (uint32_t)from->n_dimensions;
    for (uint32_t i = 0; i < rank; i++) {
        const bool unbounded = from->dimensions[i] == INT64_MIN || from->dimensions[i] == -1;
        dims[i] = unbounded ? -1 : from->dimensions[i];
        if (dims[i] < -1) hlo_proto_fail(p, "a shape has dimension size %lld", (long long)dims[i]);
        dynamic[i] =
            dims[i] >= 0 && i < from->n_is_dynamic_dimension && from->is_dynamic_dimension[i];
        any |= dynamic[i];
    }
    const size_t ordered = from->layout ? from->layout->n_minor_to_major : 0;
    if (ordered && ordered != rank)
        hlo_proto_fail(p, "a layout has %zu dimensions, but its shape has %u", ordered, rank);
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = ordered ? from->layout->minor_to_major[i] : rank - 1 - i;
        if (order[i] < 0 || order[i] >= rank || seen[order[i]])
            hlo_proto_fail(p, "a layout has dimension %lld, which is out of range or repeated",
                           (long long)order[i]);
        seen[order[i]] = true;
    }
    hlo_layout layout = {.minor_to_major = order};
    read_layout(p, from->layout, &layout);
    hlo_shape shape = {.type = type,
                       .rank = rank,
                       .dims = dims,
                       .dynamic = any ? dynamic : NULL,
                       .layout = hlo_types[type].bits ? &layout : NULL};
    return hlo_shape_intern(p->module, &shape);
}

Xla__ShapeProto *hlo_shape_to_proto(hlo_proto *p, const hlo_shape *shape) {
    Xla__ShapeProto *to = hlo_message_new(p->scratch, &Xla__ShapeProto__type);
    hlo_shape array = *shape;
    array.buffer = false;
    uint32_t elements = shape->buffer ? 1 : shape->type == HLO_TYPE_TUPLE ? shape->rank : 0;
    to->element_type =
        shape->buffer ? Xla__PrimitiveType__BUFFER : (Xla__PrimitiveType)numbers[shape->type];
    to->n_tuple_shapes = elements;
    to->tuple_shapes = hlo_arena_array(p->scratch, elements, sizeof(void *));
    open_tuple(p);
    for (uint32_t i = 0; i < elements; i++)
        to->tuple_shapes[i] = hlo_shape_to_proto(p, shape->buffer ? &array : shape->elements[i]);
    p->tuples--;
    if (shape->buffer || shape->type == HLO_TYPE_TUPLE) return to;
    to->n_dimensions = to->n_is_dynamic_dimension = shape->rank;
    to->dimensions = hlo_arena_array(p->scratch, shape->rank, sizeof *to->dimensions);
    to->is_dynamic_dimension =
        hlo_arena_array(p->scratch, shape->rank, sizeof *to->is_dynamic_dimension);
    for (uint32_t i = 0; i < shape->rank; i++) {
        bool unbounded = shape->dims[i] < 0;
        to->dimensions[i] = unbounded ? INT64_MIN : shape->dims[i];
        to->is_dynamic_dimension[i] = unbounded || (shape->dynamic && shape->dynamic[i]);
    }
    if (!hlo_types[shape->type].bits) return to;
    const hlo_layout *layout = shape->layout;
    Xla__LayoutProto *l = to->layout = hlo_message_new(p->scratch, &Xla__LayoutProto__type);
    if (layout && layout->rest && !hlo_text_pattern_read(p, layout->rest, &l->base, properties))
        hlo_proto_fail(p, "layout property '%.40s' has no binary form", layout->rest);
    if (!l->tail_padding_alignment_in_elements) l->tail_padding_alignment_in_elements = 1;
    if (!layout) return to;
    l->n_minor_to_major = shape->rank;
    l->minor_to_major = hlo_arena_copy(p->scratch, layout->minor_to_major,
                                       shape->rank * sizeof *layout->minor_to_major);
    l->element_size_in_bits = layout->element_bits;
    l->memory_space = layout->memory_space;
    return to;
}

/* ------------------------------------------------------------------------------------ constants */

/* The elements of a constant in a message, in memory order. */
typedef struct values {
    const hlo_pb_field *field;
    size_t size; /* bytes of one element */
    size_t elements;
} values;

static values plan_values(hlo_proto *p, const Xla__LiteralProto *literal, const hlo_shape *shape) {
    const hlo_type_info *type = &hlo_types[shape->type];
    char name[32]; /* name of the field, such as `f32s` */
    int size = snprintf(name, sizeof name, "%ss", type->name);
    values v = {.field = hlo_field_find(literal->base.descriptor, name, (size_t)size)};
    if (!v.field) hlo_proto_fail(p, "constants of type %s are not supported", type->name);
    v.size = shape->type == HLO_TYPE_PRED ? sizeof(hlo_pb_bool) : type->bytes;
    int64_t count = hlo_shape_count(shape);
    if (count < 0)
        hlo_proto_fail(p, "the shape of a constant has unbounded dimensions or too many elements");
    v.elements = (size_t)count;
    return v;
}

/* A loop over the elements in logical order. */
typedef struct walk {
    const hlo_shape *shape;
    int64_t strides[HLO_LARGEST_RANK], index[HLO_LARGEST_RANK];
    int64_t place; /* index of the element in memory order */
} walk;

static void walk_begin(walk *w, const hlo_shape *shape) {
    *w = (walk){.shape = shape};
    hlo_shape_strides(shape, w->strides);
}

static void walk_next(walk *w) {
    for (uint32_t d = w->shape->rank; d-- > 0;) {
        w->place += w->strides[d];
        if (++w->index[d] < w->shape->dims[d]) return;
        w->place -= w->strides[d] * w->index[d];
        w->index[d] = 0;
    }
}

const hlo_literal *hlo_literal_from_proto(hlo_proto *p, const Xla__LiteralProto *from,
                                          const hlo_shape *shape) {
    if (!from) return hlo_literal_elided(p->module, shape);
    if (shape->type == HLO_TYPE_TUPLE) {
        if (from->n_tuple_literals != shape->rank)
            hlo_proto_fail(p, "a constant tuple has %zu elements, but its shape has %u",
                           from->n_tuple_literals, shape->rank);
        hlo_literal *tuple = hlo_literal_tuple(p->module, shape);
        for (uint32_t i = 0; i < shape->rank; i++)
            tuple->elements[i] =
                hlo_literal_from_proto(p, from->tuple_literals[i], shape->elements[i]);
        return tuple;
    }
    const hlo_shape *stored = from->shape ? hlo_shape_from_proto(p, from->shape) : shape;
    if (!hlo_shape_compatible(stored, shape))
        hlo_proto_fail(p, "the shape of the constant differs from the shape of its value");
    values v = plan_values(p, from, shape);
    const char *bytes;
    size_t parts = hlo_types[shape->type].class == HLO_CLASS_COMPLEX ? 2 : 1, found, given;
    if (v.field->type == HLO_PB_BYTES) {
        const hlo_pb_bytes *data = hlo_field_at(&from->base, v.field);
        bytes = (const char *)data->data;
        given = data->len;
        found = data->len / v.size;
    } else {
        given = hlo_field_count(&from->base, v.field);
        found = given / parts;
        bytes = hlo_field_element(&from->base, v.field, 0);
    }
    /* XLA omits the values in the message that it keeps of an executable. */
    if (!given && v.elements) return hlo_literal_elided(p->module, shape);
    if (found != v.elements)
        hlo_proto_fail(p, "a constant has %zu values, but its shape has %zu elements", found,
                       v.elements);
    hlo_literal *literal = hlo_literal_new(p->module, shape);
    const hlo_type_info *info = &hlo_types[shape->type];
    char *to = literal->data;
    walk w;
    walk_begin(&w, stored);
    for (size_t i = 0; i < v.elements; i++, walk_next(&w), to += info->bytes) {
        const char *element = bytes + (size_t)w.place * v.size;
        memcpy(to, element, info->bytes);
        if (shape->type == HLO_TYPE_PRED) {
            *to = *(const hlo_pb_bool *)(const void *)element != 0;
        } else if (info->bits < 8) { /* extend the low bits */
            unsigned low = (unsigned char)*element & ((1u << info->bits) - 1);
            bool negative = info->class == HLO_CLASS_SIGNED && low >> (info->bits - 1);
            *to = (char)(negative ? low | ~((1u << info->bits) - 1) : low);
        }
    }
    return literal;
}

Xla__LiteralProto *hlo_literal_to_proto(hlo_proto *p, const hlo_literal *literal) {
    if (literal->elided) return NULL;
    const hlo_shape *shape = literal->shape;
    Xla__LiteralProto *to = hlo_message_new(p->scratch, &Xla__LiteralProto__type);
    to->shape = hlo_shape_to_proto(p, shape);
    if (shape->type == HLO_TYPE_TUPLE) {
        to->n_tuple_literals = shape->rank;
        to->tuple_literals = hlo_arena_array(p->scratch, shape->rank, sizeof(void *));
        open_tuple(p);
        for (uint32_t i = 0; i < shape->rank; i++) {
            to->tuple_literals[i] = hlo_literal_to_proto(p, literal->elements[i]);
            if (!to->tuple_literals[i])
                hlo_proto_fail(p, "a constant tuple with an elided element has no binary form");
        }
        p->tuples--;
        return to;
    }
    values v = plan_values(p, to, shape);
    char *bytes = hlo_arena_array(p->scratch, v.elements, v.size);
    const char *from = literal->data;
    const hlo_type_info *info = &hlo_types[shape->type];
    walk w;
    walk_begin(&w, shape);
    for (size_t i = 0; i < v.elements; i++, walk_next(&w), from += info->bytes) {
        char *element = bytes + (size_t)w.place * v.size;
        if (shape->type == HLO_TYPE_PRED) {
            *(hlo_pb_bool *)(void *)element = *from;
            continue;
        }
        memcpy(element, from, info->bytes);
        if (info->bits < 8) *element = (char)(*element & ((1 << info->bits) - 1));
    }
    void *place = hlo_field_at(&to->base, v.field);
    if (v.field->type == HLO_PB_BYTES) {
        *(hlo_pb_bytes *)place =
            (hlo_pb_bytes){.len = v.elements * v.size, .data = (uint8_t *)bytes};
        return to;
    }
    size_t parts = hlo_types[shape->type].class == HLO_CLASS_COMPLEX ? 2 : 1;
    *(size_t *)(void *)((char *)to + v.field->extra) = v.elements * parts;
    *(void **)place = bytes;
    return to;
}

/* -------------------------------------------------------------------------------------- windows */

/* A part of `window={...}`: a number per dimension, two for the padding. */
typedef struct window_part {
    hlo_attr_id attr;
    int default_value; /* the default; a part is printed unless all its numbers are the default */
    size_t first, second;
} window_part;

#define AT(member) offsetof(Xla__WindowDimension, member)
static const window_part parts[] = {
    {HLO_ATTR_SIZE, -1, AT(size), 0},
    {HLO_ATTR_STRIDE, 1, AT(stride), 0},
    {HLO_ATTR_PAD, 0, AT(padding_low), AT(padding_high)},
    {HLO_ATTR_LHS_DILATE, 1, AT(base_dilation), 0},
    {HLO_ATTR_RHS_DILATE, 1, AT(window_dilation), 0},
    {HLO_ATTR_RHS_REVERSAL, 0, AT(window_reversal), 0},
};
#undef AT
enum { PARTS = sizeof parts / sizeof *parts };

/* Returns the address of number `i` of a part, an int64_t or, for the reversal, a
 * hlo_pb_bool. */
static void *part_at(const window_part *part, const Xla__Window *window, size_t i) {
    const size_t each = part->second ? 2 : 1;
    return (char *)window->dimensions[i / each] + (i % each ? part->second : part->first);
}

hlo_attr hlo_window_from_proto(hlo_proto *p, const Xla__Window *from) {
    hlo_attrs *window =
        hlo_arena_alloc(p->module->arena, sizeof *window + PARTS * sizeof *window->v);
    window->count = 0;
    for (size_t k = 0; k < PARTS; k++) {
        const window_part *part = &parts[k];
        const size_t each = part->second ? 2 : 1;
        hlo_ints *ints = hlo_ints_new(p->module, (uint32_t)(each * from->n_dimensions), NULL);
        bool all_default = true;
        for (size_t i = 0; i < ints->count; i++) {
            const void *at = part_at(part, from, i);
            ints->v[i] = part->attr == HLO_ATTR_RHS_REVERSAL ? *(const hlo_pb_bool *)at
                                                             : *(const int64_t *)at;
            all_default &= ints->v[i] == part->default_value;
        }
        if (!all_default) window->v[window->count++] = (hlo_attr){part->attr, {.ints = ints}};
    }
    return (hlo_attr){.id = window->count ? HLO_ATTR_WINDOW : HLO_ATTR_INVALID, .u.attrs = window};
}

Xla__Window *hlo_window_to_proto(hlo_proto *p, const hlo_attrs *window) {
    Xla__Window *to = hlo_message_new(p->scratch, &Xla__Window__type);
    size_t dims = window->count ? window->v[0].u.ints->count : 0;
    if (dims && window->v[0].id == HLO_ATTR_PAD) dims /= 2;
    while (to->n_dimensions < dims) {
        Xla__WindowDimension *dim = hlo_message_add(p->scratch, to, "dimensions");
        dim->size = dim->stride = dim->base_dilation = dim->window_dilation = 1;
    }
    for (uint32_t a = 0; a < window->count; a++) {
        const window_part *part = parts;
        const hlo_ints *ints = window->v[a].u.ints;
        while (part < parts + PARTS && part->attr != window->v[a].id) part++;
        if (part == parts + PARTS) continue;
        if (ints->count != (part->second ? 2 : 1) * to->n_dimensions)
            hlo_proto_fail(p, "the size, stride, padding and dilation lists of the window have "
                              "different lengths");
        for (size_t i = 0; i < ints->count; i++) {
            void *at = part_at(part, to, i);
            if (part->attr == HLO_ATTR_RHS_REVERSAL)
                *(hlo_pb_bool *)at = ints->v[i] != 0;
            else
                *(int64_t *)at = ints->v[i];
        }
    }
    return to;
}

/* ----------------------------------------------------------------------------- dimension labels */

/* One of the three groups of labels: `b01f`. */
typedef struct labels {
    char first, second; /* b and f, i and o */
    int64_t *places[2];
    size_t *count;
    int64_t **spatial;
} labels;

enum { GROUPS = 3 };

static void groups_of(Xla__ConvolutionDimensionNumbers *n, labels *out) {
    out[0] = (labels){'b',
                      'f',
                      {&n->input_batch_dimension, &n->input_feature_dimension},
                      &n->n_input_spatial_dimensions,
                      &n->input_spatial_dimensions};
    out[1] = (labels){'i',
                      'o',
                      {&n->kernel_input_feature_dimension, &n->kernel_output_feature_dimension},
                      &n->n_kernel_spatial_dimensions,
                      &n->kernel_spatial_dimensions};
    out[2] = (labels){'b',
                      'f',
                      {&n->output_batch_dimension, &n->output_feature_dimension},
                      &n->n_output_spatial_dimensions,
                      &n->output_spatial_dimensions};
}

static void put_label(hlo_proto *p, char *text, size_t *size, int64_t place, char label) {
    if (place < 0 || place >= MAX_LABELS)
        hlo_proto_fail(p, "a convolution has invalid dimension number %lld", (long long)place);
    text[place] = label;
    if ((size_t)place >= *size) *size = (size_t)place + 1;
}

const char *hlo_labels_from_proto(hlo_proto *p, const Xla__ConvolutionDimensionNumbers *from) {
    static const char *const between[GROUPS] = {"_", "->", ""};
    Xla__ConvolutionDimensionNumbers numbered = *from;
    labels groups[GROUPS];
    groups_of(&numbered, groups);
    hlo_bytes out = {.arena = p->scratch};
    for (int g = 0; g < GROUPS; g++) {
        char text[MAX_LABELS];
        size_t size = 0;
        memset(text, '?', sizeof text);
        put_label(p, text, &size, *groups[g].places[0], groups[g].first);
        put_label(p, text, &size, *groups[g].places[1], groups[g].second);
        for (size_t i = 0; i < *groups[g].count; i++) {
            if (i > 9) hlo_proto_fail(p, "a convolution has more than ten spatial dimensions");
            put_label(p, text, &size, (*groups[g].spatial)[i], (char)('0' + i));
        }
        hlo_bytes_put(&out, text, size);
        hlo_bytes_text(&out, between[g]);
    }
    return hlo_intern(p->module, out.v, out.size);
}

Xla__ConvolutionDimensionNumbers *hlo_labels_to_proto(hlo_proto *p, const char *text) {
    Xla__ConvolutionDimensionNumbers *to =
        hlo_message_new(p->scratch, &Xla__ConvolutionDimensionNumbers__type);
    labels groups[GROUPS];
    groups_of(to, groups);
    const char *at = text;
    for (int g = 0; g < GROUPS; g++) {
        int64_t *spatial = hlo_arena_zero(p->scratch, 10 * sizeof *spatial);
        for (int64_t place = 0; *at && !strchr("_-", *at); at++, place++) {
            if (*at == groups[g].first) *groups[g].places[0] = place;
            if (*at == groups[g].second) *groups[g].places[1] = place;
            if (*at < '0' || *at > '9') continue;
            spatial[*at - '0'] = place;
            ++*groups[g].count;
        }
        if (*groups[g].count > 10)
            hlo_proto_fail(p, "the labels '%.40s' have a repeated label", text);
        *groups[g].spatial = spatial;
        at += strspn(at, "_->");
    }
    return to;
}
