/* SPDX-License-Identifier: Apache-2.0 */
/* See library_call.h. */
#include "runtime/calls/library_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void *call_refuse(const library_call *c, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return expand_refuse(c->x, "of \"%s\"%s%s", c->target, *text == ':' ? "" : " ", text);
}

hlo_instruction *call_operand(const library_call *c, uint32_t index) {
    return hlo_instr_operand(c->b->at, index);
}

bool call_is_float_array(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && hlo_type_is_float(shape->type) && !shape->dynamic;
}

hlo_type call_computed(hlo_type type) {
    return type == HLO_TYPE_F64 ? type : HLO_TYPE_F32;
}

hlo_instruction *call_widen(const library_call *c, hlo_instruction *value) {
    return hlo_build_convert(c->b, value, call_computed(value->shape->type));
}

hlo_instruction *call_binary(const library_call *c, hlo_op op, hlo_instruction *x,
                             hlo_instruction *y) {
    return hlo_build_binary(c->b, op, x, y);
}

hlo_instruction *call_with(const library_call *c, hlo_op op, hlo_instruction *x, double number) {
    return hlo_build_by_number(c->b, op, x, number);
}

/* Lists the dimensions of x that are not among `count` dimensions. */
static uint32_t other_dims(const hlo_instruction *x, uint32_t count, const int64_t *dims,
                           int64_t *out_dims) {
    uint32_t others = 0;
    for (uint32_t d = 0; d < x->shape->rank; d++) {
        bool listed = false;
        for (uint32_t i = 0; i < count; i++) listed |= dims[i] == d;
        if (!listed) out_dims[others++] = d;
    }
    return others;
}

hlo_instruction *call_reduce(const library_call *c, hlo_op op, hlo_instruction *x, uint32_t count,
                             const int64_t *dims) {
    int64_t kept[HLO_LARGEST_RANK], sizes[HLO_LARGEST_RANK];
    const uint32_t rank = other_dims(x, count, dims, kept);
    for (uint32_t i = 0; i < rank; i++) sizes[i] = x->shape->dims[kept[i]];
    const hlo_shape *shape = hlo_shape_array(c->x->module, x->shape->type, rank, sizes);
    hlo_instruction *made = hlo_build_reduce(c->b, op, x, shape, count, dims, NULL);
    if (op == HLO_OP_MAXIMUM)
        hlo_instr_set_operand(made, 1, hlo_build_number(c->b, x->shape->type, -(double)INFINITY));
    return made;
}

hlo_instruction *call_reduce_along(const library_call *c, hlo_op op, hlo_instruction *x,
                                   uint32_t count, const int64_t *dims) {
    int64_t kept[HLO_LARGEST_RANK];
    const uint32_t rank = other_dims(x, count, dims, kept);
    return hlo_build_broadcast_like(c->b, call_reduce(c, op, x, count, dims), x->shape, rank, kept);
}

hlo_instruction *call_broadcast(const library_call *c, hlo_instruction *value,
                                const hlo_shape *like) {
    const hlo_shape *shape = value->shape;
    int64_t kept[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    uint32_t count = 0;
    if (!call_is_float_array(shape) || shape->rank > like->rank) return NULL;
    const uint32_t skipped = like->rank - shape->rank;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == 1) continue;
        if (shape->dims[d] != like->dims[skipped + d]) return NULL;
        kept[count] = skipped + d;
        dims[count++] = shape->dims[d];
    }
    value = hlo_build_reshape(c->b, hlo_build_convert(c->b, value, like->type), count, dims);
    return hlo_build_broadcast_like(c->b, value, like, count, kept);
}

hlo_instruction *call_activation(const library_call *c, const char *name, hlo_instruction *x) {
    if (!strcasecmp(name, "RELU")) return call_with(c, HLO_OP_MAXIMUM, x, 0);
    if (!strcasecmp(name, "RELU6"))
        return call_with(c, HLO_OP_MINIMUM, call_with(c, HLO_OP_MAXIMUM, x, 0), 6);
    if (!strcasecmp(name, "TANH")) return hlo_build_unary(c->b, HLO_OP_TANH, x);
    if (!strcasecmp(name, "SIGMOID")) return hlo_build_unary(c->b, HLO_OP_LOGISTIC, x);
    if (strcasecmp(name, "ELU") != 0) return NULL;
    hlo_instruction *negative =
        hlo_build_unary(c->b, HLO_OP_EXPM1, call_with(c, HLO_OP_MINIMUM, x, 0));
    hlo_instruction *zero = hlo_build_filled(c->b, x->shape, 0);
    return hlo_build_select(c->b, hlo_build_compare(c->b, x, "GT", zero), x, negative);
}

const json_t *call_member(const char **wrong, const json_t *object, const char *key,
                          json_type type) {
    const json_t *value = json_object_get(object, key);
    if (!value) return NULL;
    const char *text = json_string_value(value);
    bool fits = json_typeof(value) == type || (type == JSON_TRUE && json_is_false(value)) ||
                (type == JSON_REAL && json_is_integer(value));
    if (type == JSON_INTEGER && text) fits = *text && !text[strspn(text, "-0123456789")];
    if (!fits) *wrong = key;
    return fits ? value : NULL;
}

int64_t call_integer(const char **wrong, const json_t *object, const char *key) {
    const json_t *value = call_member(wrong, object, key, JSON_INTEGER);
    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                 : json_integer_value(value);
}

int64_t call_index(const json_t *value) {
    const char *text = json_string_value(value);
    if (text) return *text && !text[strspn(text, "0123456789")] ? strtoll(text, NULL, 10) : -1;
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

double call_number(const char **wrong, const json_t *object, const char *key) {
    return json_number_value(call_member(wrong, object, key, JSON_REAL));
}

bool call_flag(const char **wrong, const json_t *object, const char *key) {
    return json_is_true(call_member(wrong, object, key, JSON_TRUE));
}

uint32_t call_choice(const char **wrong, const json_t *object, const char *key, uint32_t count,
                     const char *const *names) {
    const json_t *value = json_object_get(object, key);
    for (uint32_t i = 0; i < count && json_is_string(value); i++)
        if (strcmp(json_string_value(value), names[i]) == 0) return i;
    const int64_t number = call_integer(wrong, object, key);
    if (number >= 0 && number < count) return (uint32_t)number;
    *wrong = key;
    return 0;
}

json_t *call_config(const library_call *c, const char *key, const char **wrong) {
    const char *text = hlo_instr_str(c->b->at, HLO_ATTR_BACKEND_CONFIG);
    json_t *whole = hlo_json_config(c->b->at);
    if (text && *text && !json_is_object(whole)) *wrong = key;
    return whole;
}

bool call_config_fits(const library_call *c, const char *wrong) {
    if (wrong) call_refuse(c, "has an invalid backend_config: %s has another type or value", wrong);
    return !wrong;
}
