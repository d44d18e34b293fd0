/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the functions of hlo/ir.h and hlo/edit.h for shapes. */
#include <stdlib.h>
#include <string.h>

#include "api/edit.h"
#include "ir/float/c_locale.h"
#include "ir/text/diag.h"

hlo_element_type hlo_shape_type(const hlo_shape *shape) {
    return shape->type;
}

size_t hlo_shape_rank(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) ? shape->rank : 0;
}

const int64_t *hlo_shape_dims(const hlo_shape *shape) {
    return shape->dims;
}

const int64_t *hlo_shape_minor_to_major(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && shape->layout ? shape->layout->minor_to_major : NULL;
}

size_t hlo_shape_element_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 0;
}

const hlo_shape *hlo_shape_element(const hlo_shape *shape, size_t index) {
    return shape->elements[index];
}

/* ------------------------------------------------------------------------------------- creation */

/* A new shape. */
typedef struct shape_edit {
    edit e; /* must be first: an edit_step receives a pointer to this member */
    hlo_element_type type;
    size_t count; /* number of dimensions or elements */
    const int64_t *dims, *minor_to_major;
    const hlo_shape *const *elements;
} shape_edit;

static hlo_status make_array(edit *e) {
    const shape_edit *s = (const shape_edit *)e;
    if (!hlo_element_type_bits(s->type))
        return edit_refuse(e, NULL, "element type %d does not exist", (int)s->type);
    if (s->count > HLO_LARGEST_RANK)
        return edit_refuse(e, NULL, "an array of %zu dimensions exceeds the maximum of %d",
                           s->count, HLO_LARGEST_RANK);
    if (s->count && !s->dims) return edit_refuse(e, NULL, "dims must not be NULL");
    for (size_t i = 0; i < s->count; i++)
        if (s->dims[i] < 0)
            return edit_refuse(e, NULL, "dimension %zu is %lld, expected a non-negative size", i,
                               (long long)s->dims[i]);
    const hlo_layout layout = {.minor_to_major = s->minor_to_major};
    const hlo_shape shape = {.type = s->type,
                             .rank = (uint32_t)s->count,
                             .dims = s->dims,
                             .layout = s->minor_to_major ? &layout : NULL};
    if (!hlo_shape_is_ordered(&shape))
        return edit_refuse(e, NULL, "minor_to_major is not a permutation of the dimensions");
    e->shape =
        hlo_shape_with_layout(e->module, s->type, (uint32_t)s->count, s->dims, s->minor_to_major);
    return HLO_OK;
}

static hlo_status make_tuple(edit *e) {
    const shape_edit *s = (const shape_edit *)e;
    if (s->count > UINT16_MAX)
        return edit_refuse(e, NULL, "a tuple of %zu elements exceeds the maximum of %d", s->count,
                           UINT16_MAX);
    if (s->count && !s->elements) return edit_refuse(e, NULL, "elements must not be NULL");
    const hlo_shape **own = hlo_arena_array(e->scratch, s->count, sizeof *own);
    uint64_t size = 1;
    for (size_t i = 0; i < s->count; i++) {
        if (!s->elements[i]) return edit_refuse(e, NULL, "element %zu must not be NULL", i);
        if (s->elements[i]->depth + 1 >= HLO_DEEPEST_SHAPE)
            return edit_refuse(e, NULL, "the tuple nests more than %d tuples", HLO_DEEPEST_SHAPE);
        size += s->elements[i]->size;
    }
    if (size > HLO_LARGEST_SHAPE)
        return edit_refuse(e, NULL, "the tuple has more than %d arrays and tuples",
                           HLO_LARGEST_SHAPE);
    for (size_t i = 0; i < s->count; i++) own[i] = edit_shape(e, s->elements[i]);
    e->shape = hlo_shape_tuple(e->module, (uint32_t)s->count, own);
    return HLO_OK;
}

static hlo_status make_parsed(edit *e) {
    const fragment f = {.opcode = "parameter", .shape = e->value};
    fragment_parts parts;
    kept_error error = {.text = e->value};
    const hlo_diag_sink *sink = e->sink, own = {.emit = edit_keep_error, .user = &error};
    hlo_status status = HLO_INVALID_INPUT;
    if (edit_is_closed(e->value)) {
        e->sink = &own;
        status = edit_read(e, &f, &parts);
        e->sink = sink;
    }
    if (status == HLO_OK && parts.attr_count) status = HLO_INVALID_INPUT;
    if (status == HLO_OK) e->shape = parts.shape;
    if (status == HLO_INVALID_INPUT)
        hlo_diag_refuse(sink, HLO_DIAG_SYNTAX, NULL, 0, 0, "invalid shape '%.80s'%s", e->value,
                        error.message);
    return status;
}

/* Runs an edit that creates a shape. A new shape does not change the module. */
static hlo_status make_shape(edit *e, edit_step *step, const hlo_shape **out) {
    HLO_IN_C_LOCALE;
    const bool verified = e->module->verified;
    const uint64_t edits = e->module->edits;
    const hlo_status status = edit_run(e, step);
    e->module->verified = verified;
    e->module->edits = edits;
    *out = status == HLO_OK ? e->shape : NULL;
    return status;
}

hlo_status hlo_shape_new_array(hlo_module *module, hlo_element_type type, size_t rank,
                               const int64_t *dims, const int64_t *minor_to_major,
                               const hlo_diag_sink *sink, const hlo_shape **out_shape) {
    shape_edit s = {.e = {.module = module, .sink = sink},
                    .type = type,
                    .count = rank,
                    .dims = dims,
                    .minor_to_major = minor_to_major};
    return make_shape(&s.e, make_array, out_shape);
}

hlo_status hlo_shape_new_tuple(hlo_module *module, size_t count, const hlo_shape *const *elements,
                               const hlo_diag_sink *sink, const hlo_shape **out_shape) {
    shape_edit s = {.e = {.module = module, .sink = sink}, .count = count, .elements = elements};
    return make_shape(&s.e, make_tuple, out_shape);
}

hlo_status hlo_shape_parse(hlo_module *module, const char *text, const hlo_diag_sink *sink,
                           const hlo_shape **out_shape) {
    edit e = {.module = module, .sink = sink, .comp = module->entry, .value = text};
    return make_shape(&e, make_parsed, out_shape);
}
