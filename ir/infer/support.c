/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of shape rules: attributes, checks and messages. */
#include <stdio.h>
#include <string.h>

#include "ir/infer/infer.h"
#include "ir/infer/rules.h"

enum { SHAPE_TEXT = 160, SHOWN_OPERANDS = 4 };

const char *hlo_infer_text(const hlo_inference *q, const hlo_shape *shape) {
    char *text = hlo_arena_alloc(q->scratch, SHAPE_TEXT);
    if (hlo_shape_format(shape, false, text, SHAPE_TEXT) >= SHAPE_TEXT)
        memcpy(text + SHAPE_TEXT - 4, "...", 4);
    return text;
}

const hlo_shape *hlo_infer_fail_at(const hlo_inference *q, uint32_t blamed, const char *format,
                                   ...) {
    if (q->blamed) *q->blamed = blamed;
    if (!q->why || q->why_size == 0) return NULL;
    FILE *out = fmemopen(q->why, q->why_size, "w");
    if (!out) return NULL;
    fputs(hlo_ops[q->op].name, out);
    for (uint32_t i = 0; i < q->count && i < SHOWN_OPERANDS; i++)
        fprintf(out, "%s%s",
                i == 0              ? " of "
                : i + 1 == q->count ? " and "
                                    : ", ",
                hlo_infer_text(q, hlo_infer_operand(q, i)));
    if (q->count > SHOWN_OPERANDS) fprintf(out, " and %u more", q->count - SHOWN_OPERANDS);
    fputs(": ", out);
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fclose(out);
    q->why[q->why_size - 1] = '\0';
    return NULL;
}

const hlo_attr *hlo_infer_attr(const hlo_inference *q, hlo_attr_id id) {
    return hlo_attrs_find(q->attrs, q->attr_count, id);
}

const hlo_ints *hlo_infer_ints(const hlo_inference *q, hlo_attr_id id) {
    static const hlo_ints none = {.count = 0};
    const hlo_attr *attr = hlo_infer_attr(q, id);
    return attr ? attr->u.ints : &none;
}

int64_t hlo_infer_int(const hlo_inference *q, hlo_attr_id id, int64_t missing) {
    const hlo_attr *attr = hlo_infer_attr(q, id);
    return attr ? attr->u.i : missing;
}

void *hlo_infer_scratch(const hlo_inference *q, size_t count, size_t size) {
    return hlo_arena_array(q->scratch, count, size);
}

const hlo_shape *const *hlo_infer_operands(const hlo_inference *q) {
    const hlo_shape **shapes = hlo_infer_scratch(q, q->count, sizeof *shapes);
    for (uint32_t i = 0; i < q->count; i++) shapes[i] = hlo_infer_operand(q, i);
    return shapes;
}

const hlo_shape *hlo_infer_given(const hlo_inference *q) {
    return q->given ? q->given : hlo_infer_fail(q, "the shape of the result must be given");
}

bool hlo_infer_arrays(const hlo_inference *q, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        if (!hlo_shape_is_array(hlo_infer_operand(q, i))) {
            hlo_infer_fail_at(q, q->operands[i]->offset, "operand %u is not an array", i);
            return false;
        }
    return true;
}

bool hlo_infer_dims(const hlo_inference *q, const hlo_ints *dims, uint32_t rank, const char *what) {
    bool *named = memset(hlo_infer_scratch(q, rank, sizeof *named), 0, rank * sizeof *named);
    for (uint32_t i = 0; i < dims->count; i++) {
        const int64_t dim = dims->v[i];
        if (dim < 0 || dim >= rank)
            return hlo_infer_fail(q, "%s %lld is out of range for rank %u", what, (long long)dim,
                                  rank);
        if (named[dim]) return hlo_infer_fail(q, "%s %lld is repeated", what, (long long)dim);
        named[dim] = true;
    }
    return true;
}

bool hlo_infer_has_each(const hlo_inference *q, hlo_attr_id id, uint32_t each, uint32_t rank) {
    const uint32_t count = hlo_infer_ints(q, id)->count;
    return count == each * rank ||
           hlo_infer_fail(q, "'%s' has %u %s, but the operand has rank %u", hlo_attrs_info[id].name,
                          count / each, each == 1 ? "elements" : "dimensions", rank);
}

bool hlo_infer_one_dim(const hlo_inference *q, const hlo_shape *shape) {
    const hlo_ints *dims = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (dims->count != 1) return hlo_infer_fail(q, "'dimensions' must name one dimension");
    return hlo_infer_dims(q, dims, shape->rank, "dimension");
}

bool hlo_infer_dims_fit(const hlo_shape *a, const hlo_shape *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!hlo_infer_dim_fits(a->dims[i], b->dims[i])) return false;
    return true;
}

bool hlo_infer_fits(const hlo_shape *a, const hlo_shape *b) {
    if (a == b) return true;
    if (a->type != b->type || a->rank != b->rank || a->buffer != b->buffer) return false;
    if (a->type != HLO_TYPE_TUPLE) return hlo_infer_dims_fit(a, b);
    for (uint32_t i = 0; i < a->rank; i++)
        if (!hlo_infer_fits(a->elements[i], b->elements[i])) return false;
    return true;
}

bool hlo_infer_takes(const hlo_inference *q, const hlo_computation *comp, uint32_t count,
                     const hlo_shape *const *parameters, const hlo_shape *result) {
    if (comp->parameter_count != count)
        return hlo_infer_fail_at(q, comp->offset, "%%%s has %u parameters, expected %u", comp->name,
                                 comp->parameter_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_instruction *parameter = comp->parameters[i];
        if (parameter && !hlo_infer_fits(parameter->shape, parameters[i]))
            return hlo_infer_fail_at(
                q, parameter->offset, "parameter %u of %%%s is %s, expected %s", i, comp->name,
                hlo_infer_text(q, parameter->shape), hlo_infer_text(q, parameters[i]));
    }
    if (!comp->root) return hlo_infer_fail(q, "%%%s has no root", comp->name);
    if (result && !hlo_infer_fits(comp->root->shape, result))
        return hlo_infer_fail_at(q, comp->root->offset, "%%%s returns %s, expected %s", comp->name,
                                 hlo_infer_text(q, comp->root->shape), hlo_infer_text(q, result));
    return true;
}

const hlo_computation *hlo_infer_called(const hlo_inference *q, hlo_attr_id id, uint32_t count,
                                        const hlo_shape *const *parameters,
                                        const hlo_shape *result) {
    const hlo_computation *comp = hlo_infer_attr(q, id)->u.comp;
    return hlo_infer_takes(q, comp, count, parameters, result) ? comp : NULL;
}

bool hlo_infer_combiner(const hlo_inference *q, uint32_t count, const hlo_type *types) {
    const hlo_shape **scalars = hlo_infer_scratch(q, (size_t)count * 2, sizeof *scalars);
    for (uint32_t i = 0; i < count; i++)
        scalars[i] = scalars[count + i] = hlo_shape_array(q->module, types[i], 0, NULL);
    return hlo_infer_called(q, HLO_ATTR_TO_APPLY, count * 2, scalars,
                            hlo_infer_tuple(q, count, scalars));
}

const hlo_shape *hlo_infer_tuple(const hlo_inference *q, uint32_t count,
                                 const hlo_shape *const *elements) {
    return count == 1 ? elements[0] : hlo_shape_tuple(q->module, count, elements);
}

bool hlo_infer_reduced_operands(const hlo_inference *q, uint32_t count, hlo_type *out_types) {
    if (q->count != 2 * count) return hlo_infer_fail(q, "requires an even number of operands");
    if (!hlo_infer_arrays(q, 0, q->count)) return false;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *array = hlo_infer_operand(q, i), *init = hlo_infer_operand(q, count + i);
        if (!hlo_infer_dims_fit(array, first))
            return hlo_infer_fail(q, "operands 0 and %u have different dimensions", i);
        if (init->rank != 0) return hlo_infer_fail(q, "initial value %u is not a scalar", i);
        if (init->type != array->type)
            return hlo_infer_fail(q, "initial value %u and its array have different element types",
                                  i);
        out_types[i] = array->type;
    }
    return true;
}

const hlo_shape *hlo_infer_reduced(const hlo_inference *q, uint32_t count, const hlo_type *types,
                                   uint32_t rank, const int64_t *dims) {
    const hlo_shape **results = hlo_infer_scratch(q, count, sizeof *results);
    for (uint32_t i = 0; i < count; i++)
        results[i] = hlo_shape_array(q->module, types[i], rank, dims);
    return hlo_infer_tuple(q, count, results);
}
