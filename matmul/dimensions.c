/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the dimension numbers of a matmul. */
#include "matmul/call.h"

/* True if the numbers are different dimensions of `shape`. */
static bool dims_valid(const hlo_shape *shape, const hlo_ints *batch, const hlo_ints *contracting) {
    uint64_t seen = 0;
    const hlo_ints *lists[] = {batch, contracting};
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->count; i++) {
            int64_t dim = lists[l]->v[i];
            if (dim < 0 || dim >= shape->rank || dim >= 64 || (seen >> dim & 1)) return false;
            seen |= UINT64_C(1) << dim;
        }
    return true;
}

static bool sizes_agree(const hlo_shape *a, const hlo_ints *a_dims, const hlo_shape *b,
                        const hlo_ints *b_dims) {
    if (a_dims->count != b_dims->count) return false;
    for (uint32_t i = 0; i < a_dims->count; i++)
        if (a->dims[a_dims->v[i]] != b->dims[b_dims->v[i]]) return false;
    return true;
}

/* True if the dimensions of D from `*at` on are the dimensions of `shape` that are in no list. */
static bool free_dims_stand(const hlo_shape *shape, const hlo_ints *batch,
                            const hlo_ints *contracting, const hlo_shape *d, uint32_t *at) {
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (hlo_ints_contain(batch, i) || hlo_ints_contain(contracting, i)) continue;
        if (*at >= d->rank || d->dims[(*at)++] != shape->dims[i]) return false;
    }
    return true;
}

const char *hlo_matmul_dimension_fault(const hlo_matmul *matmul) {
    const hlo_matmul *m = matmul;
    const hlo_shape *a = m->a->shape, *b = m->b->shape, *d = m->d;
    if (!dims_valid(a, m->a_batch, m->a_contracting) ||
        !dims_valid(b, m->b_batch, m->b_contracting))
        return "the dimension numbers are invalid for the operands";
    if (!sizes_agree(a, m->a_batch, b, m->b_batch))
        return "the batch dimensions of the operands have different sizes";
    if (!sizes_agree(a, m->a_contracting, b, m->b_contracting))
        return "the contracting dimensions of the operands have different sizes";
    uint32_t at = m->a_batch->count;
    bool fits = d->rank >= at;
    for (uint32_t i = 0; fits && i < at; i++) fits = d->dims[i] == a->dims[m->a_batch->v[i]];
    if (!fits || !free_dims_stand(a, m->a_batch, m->a_contracting, d, &at) ||
        !free_dims_stand(b, m->b_batch, m->b_contracting, d, &at) || at != d->rank)
        return "the dimensions of the result do not match the operands";
    return NULL;
}
