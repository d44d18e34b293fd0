/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in the size and layout of a shape. XLA's parser makes the same checks, but only for shapes
 * within tuples. */
#include <stdlib.h>
#include <string.h>

#include "ir/verify/context.h"

/* Checks `(1:2,4)`: dimension 1 is split before its elements 2 and 4. */
static const char *split_fault(const char **at, const hlo_shape *shape, bool *split) {
    char *end;
    const int64_t dim = strtoll(*at + 1, &end, 10);
    if (dim < 0 || dim >= shape->rank) return "layout splits a dimension that does not exist";
    if (split[dim]) return "layout splits a dimension twice";
    split[dim] = true;
    for (int64_t last = 0, index; *end != ')'; last = index) {
        const char *from = end + 1;
        index = strtoll(from, &end, 10);
        if (end == from) break; /* empty */
        if (index <= last || index >= shape->dims[dim])
            return "layout splits a dimension at an invalid position";
    }
    *at = end + strspn(end, ":)");
    return NULL;
}

const char *hlo_verify_shape_fault(hlo_arena *scratch, const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        const char *fault = NULL;
        for (uint32_t i = 0; i < shape->rank && !fault; i++)
            fault = hlo_verify_shape_fault(scratch, shape->elements[i]);
        return fault;
    }
    /* An unbounded dimension counts as one element. */
    int64_t bytes = hlo_types[shape->type].bytes;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < shape->rank && !empty; i++) {
        empty = shape->dims[i] == 0;
        fits &= shape->dims[i] < 0 || !__builtin_mul_overflow(bytes, shape->dims[i], &bytes);
    }
    if (!fits && !empty) return "size exceeds 2^63 bytes";
    if (!shape->layout) return NULL;
    if (shape->layout->element_bits < 0) return "negative element size";
    if (shape->layout->memory_space != (int8_t)shape->layout->memory_space)
        return "memory space exceeds 8 bits";
    bool *named = hlo_arena_zero(scratch, shape->rank * sizeof *named);
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->layout->minor_to_major[i];
        if (dim < 0 || dim >= shape->rank) return "layout is not a permutation of the dimensions";
        if (named[dim]) return "layout has a dimension twice";
        named[dim] = true;
    }
    if (!shape->layout->rest) return NULL;
    bool *split = hlo_arena_zero(scratch, shape->rank * sizeof *split);
    for (const char *at = shape->layout->rest; *at;) {
        const char *name = at;
        if (*name == '#' || *name == '*') return "layout index types are not supported";
        for (at += strcspn(at, "("); *at == '(';)
            if (*name == 'T') { /* a tile, `(8,128)` */
                if (at[1] == ')') return "layout has a tile without dimensions";
                while (*at != ')') {
                    at++;
                    if (*at == '0' || *at == '-') return "layout has a tile of size 0";
                    at += strcspn(at, ",)");
                }
                at++;
            } else if (*name == 'S') {
                const char *fault = split_fault(&at, shape, split);
                if (fault) return fault;
            } else {
                at += strcspn(at, ")") + 1;
            }
    }
    return NULL;
}
