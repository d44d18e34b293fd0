/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the types in which cuBLASLt computes a dot whose own types it does not support. */
#include "ir/float/float.h"
#include "runtime/cuda/cublaslt/matmul.h"

static bool is_integer(hlo_type type) {
    return hlo_types[type].class == HLO_CLASS_SIGNED || hlo_types[type].class == HLO_CLASS_UNSIGNED;
}

/* Returns n such that the integers of a type have magnitudes of at most 2^n. */
static int magnitude(hlo_type type) {
    return hlo_types[type].bits - (hlo_types[type].class == HLO_CLASS_SIGNED);
}

/* True if the second float type represents every value of the first. */
static bool holds(hlo_type from, hlo_type to) {
    if (from == to) return true;
    if (is_integer(from)) return magnitude(from) <= hlo_float_precision(to);
    if (!hlo_type_is_float(from) || hlo_types[from].bits >= hlo_types[to].bits) return false;
    return to != HLO_TYPE_F16 || from != HLO_TYPE_F8E8M0FNU;
}

/* True if every sum of `k` products of two integers is representable in the type `d`, and exact
 * in floats of type `sum` in any order of summing. A conversion to `d` does not wrap, but a dot
 * does. */
static bool sums_exactly(hlo_type a, hlo_type b, int64_t k, hlo_type d, hlo_type sum) {
    const bool is_signed = hlo_types[d].class == HLO_CLASS_SIGNED;
    if (!is_integer(a) || !is_integer(b) || !is_integer(d)) return false;
    if (!is_signed &&
        (hlo_types[a].class != hlo_types[d].class || hlo_types[b].class != hlo_types[d].class))
        return false;
    int bits = magnitude(a) + magnitude(b);
    for (int64_t terms = 1; terms < k && bits < 64; terms *= 2) bits++;
    return bits <= hlo_float_precision(sum) && bits <= hlo_types[d].bits - 2 * is_signed;
}

const hlo_wide_types *lt_dot_types(const hlo_matmul *dot) {
    const hlo_type a = dot->a->shape->type, b = dot->b->shape->type, d = dot->d->type;
    const int64_t k = hlo_matmul_extents(dot).k;
    const hlo_wide_types *row;
    for (int exact = 1; exact >= 0; exact--)
        for (uint32_t i = 0; (row = hlo_matmul_wide_types(i)); i++)
            if (holds(a, row->operands) && holds(b, row->operands) &&
                (exact ? row->d == d
                       : hlo_types[row->d].bits >= 32 &&
                             (hlo_type_is_float(d) || sums_exactly(a, b, k, d, row->d))))
                return row;
    return NULL;
}
