/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of elementwise operations. */
#include "ir/infer/rules.h"

enum { /* Classes of types that an opcode accepts. */
       ON_PRED = 1 << HLO_CLASS_PRED,
       ON_SIGNED = 1 << HLO_CLASS_SIGNED,
       ON_UNSIGNED = 1 << HLO_CLASS_UNSIGNED,
       ON_FLOAT = 1 << HLO_CLASS_FLOAT,
       ON_COMPLEX = 1 << HLO_CLASS_COMPLEX,
       ON_INTEGER = ON_SIGNED | ON_UNSIGNED,
       ON_ALL = ON_PRED | ON_INTEGER | ON_FLOAT | ON_COMPLEX
};

static bool check_class(const hlo_inference *q, hlo_type type, int classes) {
    if (1 << hlo_types[type].class & classes) return true;
    return hlo_infer_fail(q, "not defined for %s", hlo_types[type].name);
}

/* Checks that all operands are arrays of one shape and of accepted types. */
static const hlo_shape *elementwise(const hlo_inference *q, int classes) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    if (!check_class(q, first->type, classes)) return NULL;
    for (uint32_t i = 1; i < q->count; i++) {
        const hlo_shape *other = hlo_infer_operand(q, i);
        if (other->type != first->type)
            return hlo_infer_fail_at(q, q->operands[i]->offset,
                                     "the operands have different element types");
        if (!hlo_infer_dims_fit(first, other))
            return hlo_infer_fail_at(q, q->operands[i]->offset,
                                     "the operands have different dimensions");
    }
    return first;
}

#define ELEMENTWISE(name, classes)                                                                 \
    const hlo_shape *hlo_infer_##name(const hlo_inference *q) {                                    \
        return elementwise(q, classes);                                                            \
    }
ELEMENTWISE(SAME, ON_ALL)
ELEMENTWISE(ARITHMETIC, ON_INTEGER | ON_FLOAT | ON_COMPLEX)
ELEMENTWISE(SIGNED, ON_SIGNED | ON_FLOAT | ON_COMPLEX)
ELEMENTWISE(ANALYTIC, ON_FLOAT | ON_COMPLEX)
ELEMENTWISE(FLOAT, ON_FLOAT)
ELEMENTWISE(INTEGER, ON_INTEGER)
ELEMENTWISE(LOGICAL, ON_PRED | ON_INTEGER)

static const hlo_shape *retyped(const hlo_inference *q, const hlo_shape *shape, hlo_type type) {
    return shape ? hlo_shape_retype(q->module, shape, type) : NULL;
}

static hlo_type part_type(hlo_type type) {
    return type == HLO_TYPE_C64 ? HLO_TYPE_F32 : type == HLO_TYPE_C128 ? HLO_TYPE_F64 : type;
}

const hlo_shape *hlo_infer_ABS(const hlo_inference *q) {
    const hlo_shape *shape = elementwise(q, ON_SIGNED | ON_FLOAT | ON_COMPLEX);
    return shape ? retyped(q, shape, part_type(shape->type)) : NULL;
}

const hlo_shape *hlo_infer_PART(const hlo_inference *q) {
    const hlo_shape *shape = elementwise(q, ON_FLOAT | ON_COMPLEX);
    return shape ? retyped(q, shape, part_type(shape->type)) : NULL;
}

const hlo_shape *hlo_infer_COMPLEX(const hlo_inference *q) {
    const hlo_shape *shape = elementwise(q, ON_FLOAT);
    if (!shape) return NULL;
    if (shape->type != HLO_TYPE_F32 && shape->type != HLO_TYPE_F64)
        return hlo_infer_fail(q, "not defined for %s", hlo_types[shape->type].name);
    return retyped(q, shape, shape->type == HLO_TYPE_F64 ? HLO_TYPE_C128 : HLO_TYPE_C64);
}

const hlo_shape *hlo_infer_FINITE(const hlo_inference *q) {
    return retyped(q, elementwise(q, ON_FLOAT), HLO_TYPE_PRED);
}

const hlo_shape *hlo_infer_COMPARE(const hlo_inference *q) {
    return retyped(q, elementwise(q, ON_ALL), HLO_TYPE_PRED);
}

const hlo_shape *hlo_infer_REDUCE_PRECISION(const hlo_inference *q) {
    if (hlo_infer_int(q, HLO_ATTR_EXPONENT_BITS, 0) < 1)
        return hlo_infer_fail(q, "exponent_bits must be at least 1");
    if (hlo_infer_int(q, HLO_ATTR_MANTISSA_BITS, 0) < 0)
        return hlo_infer_fail(q, "mantissa_bits must be at least 0");
    return elementwise(q, ON_FLOAT);
}

const hlo_shape *hlo_infer_CONVERT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0), *to = hlo_infer_given(q);
    if (!to) return NULL;
    if (!hlo_shape_is_array(to)) return hlo_infer_fail(q, "the result is not an array");
    return retyped(q, from, to->type);
}

const hlo_shape *hlo_infer_STOCHASTIC_CONVERT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0), *random = hlo_infer_operand(q, 1);
    if (!check_class(q, from->type, ON_FLOAT)) return NULL;
    if (hlo_types[random->type].class != HLO_CLASS_UNSIGNED ||
        hlo_types[random->type].bits != hlo_types[from->type].bits)
        return hlo_infer_fail(q,
                              "the random bits must be unsigned and have the width of the operand");
    if (!hlo_infer_dims_fit(from, random))
        return hlo_infer_fail(q, "the operands have different dimensions");
    return hlo_infer_given(q) ? retyped(q, from, q->given->type) : NULL;
}

const hlo_shape *hlo_infer_CLAMP(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 3)) return NULL;
    const hlo_shape *low = hlo_infer_operand(q, 0), *shape = hlo_infer_operand(q, 1),
                    *high = hlo_infer_operand(q, 2);
    if (low->type != shape->type || high->type != shape->type)
        return hlo_infer_fail(q, "the operands have different element types");
    if (!check_class(q, shape->type, ON_ALL & ~ON_COMPLEX)) return NULL;
    if ((low->rank && !hlo_infer_dims_fit(low, shape)) ||
        (high->rank && !hlo_infer_dims_fit(high, shape)))
        return hlo_infer_fail(q, "each bound must be a scalar or have the dimensions of operand 1");
    return shape;
}

/* Infers the layout of the predicate if the predicate is not a scalar, as XLA's inference does. */
const hlo_shape *hlo_infer_SELECT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 3)) return NULL;
    const hlo_shape *p = hlo_infer_operand(q, 0), *a = hlo_infer_operand(q, 1),
                    *b = hlo_infer_operand(q, 2);
    if (p->type != HLO_TYPE_PRED) return hlo_infer_fail(q, "operand 0 must be pred");
    if (a->type != b->type) return hlo_infer_fail(q, "the choices have different element types");
    if (!hlo_infer_dims_fit(a, b))
        return hlo_infer_fail(q, "the choices have different dimensions");
    if (p->rank == 0) return a;
    if (!hlo_infer_dims_fit(p, a))
        return hlo_infer_fail(
            q, "the predicate must be a scalar or have the dimensions of the choices");
    return retyped(q, p, a->type);
}
