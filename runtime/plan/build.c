/* SPDX-License-Identifier: Apache-2.0 */
/* Reports errors, checks shapes and results, and copies arrays from one memory order to another. */
#include <string.h>

#include "ir/text/diag.h"
#include "runtime/plan/build.h"

void build_refuse(build *b, const hlo_instr *instr, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(b->plan->module, b->sink, HLO_ERROR, instr->offset, strlen(instr->name), format,
                   args);
    va_end(args);
    b->failed = true;
}

bool build_is_static(const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++)
            if (!build_is_static(shape->elements[i])) return false;
        return true;
    }
    return !shape->dynamic && shape->rank <= HLO_EVAL_MAX_RANK &&
           (!hlo_types[shape->type].bytes || hlo_shape_is_addressable(shape));
}

bool plan_makes_result(const plan_comp *comp, uint32_t index) {
    const plan_slot *slot = &comp->slots[comp->results[index]];
    return slot->kind == SLOT_RESULT && slot->index == index;
}

enum { MAX_RANK = 64 };

static void reorder(size_t width, uint32_t rank, const int64_t *dims, void *to,
                    const int64_t *to_strides, const void *from, const int64_t *from_strides) {
    for (uint32_t d = 0; d < rank; d++)
        if (dims[d] == 0) return;
    int64_t index[MAX_RANK] = {0};
    char *out = to;
    const char *in = from;
    for (;;) {
        memcpy(out, in, width);
        uint32_t d = rank;
        for (; d > 0; d--) {
            out += to_strides[d - 1] * (int64_t)width;
            in += from_strides[d - 1] * (int64_t)width;
            if (++index[d - 1] < dims[d - 1]) break;
            out -= to_strides[d - 1] * dims[d - 1] * (int64_t)width;
            in -= from_strides[d - 1] * dims[d - 1] * (int64_t)width;
            index[d - 1] = 0;
        }
        if (d == 0) return;
    }
}

static void row_major_strides(const hlo_shape *shape, int64_t *out) {
    hlo_shape plain = *shape;
    plain.layout = NULL;
    hlo_shape_strides(&plain, out);
}

void plan_to_physical(const hlo_shape *shape, size_t width, void *to, const void *row_major) {
    int64_t physical[MAX_RANK], logical[MAX_RANK];
    hlo_shape_strides(shape, physical);
    row_major_strides(shape, logical);
    reorder(width, shape->rank, shape->dims, to, physical, row_major, logical);
}

void plan_to_row_major(const hlo_shape *shape, size_t width, void *row_major, const void *from) {
    int64_t physical[MAX_RANK], logical[MAX_RANK];
    hlo_shape_strides(shape, physical);
    row_major_strides(shape, logical);
    reorder(width, shape->rank, shape->dims, row_major, logical, from, physical);
}

void plan_fetch(const hlo_plan *plan, const hlo_shape *shape, size_t width, void *out,
                const void *from, size_t size, void *staging) {
    bool plain = hlo_shape_is_row_major(shape);
    plan->backend->copy_out(plan->device, plain ? out : staging, from, size);
    if (!plain) plan_to_row_major(shape, width, out, staging);
}
