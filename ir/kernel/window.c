/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: their attributes, and the elements that they read. */
#include <stdlib.h>

#include "ir/kernel/kernel.h"

/* Returns number `dim` of a window attribute such as 2x3 or 1_0x2_1; the first number of a pair. */
static int64_t number_at(const hlo_attr *window, hlo_attr_id id, uint32_t dim, int64_t missing) {
    const hlo_attr *word = hlo_window_word(window, id);
    if (id == HLO_ATTR_PAD) dim *= 2;
    return word && dim < word->u.ints->count ? word->u.ints->v[dim] : missing;
}

hlo_window hlo_window_of(const hlo_instr *instr, uint32_t dim) {
    const hlo_attr *window = hlo_instr_attr(instr, HLO_ATTR_WINDOW);
    return (hlo_window){.size = number_at(window, HLO_ATTR_SIZE, dim, 1),
                        .stride = number_at(window, HLO_ATTR_STRIDE, dim, 1),
                        .low = number_at(window, HLO_ATTR_PAD, dim, 0),
                        .base = number_at(window, HLO_ATTR_LHS_DILATE, dim, 1),
                        .dilate = number_at(window, HLO_ATTR_RHS_DILATE, dim, 1),
                        .reversed = number_at(window, HLO_ATTR_RHS_REVERSAL, dim, 0) != 0};
}

/* Returns the quotient, rounded up, and at least 0; `by` is positive. */
static int64_t quotient_up(int64_t value, int64_t by) {
    return value > 0 ? (value - 1) / by + 1 : 0;
}

hlo_window_reads hlo_window_reads_of(const hlo_window *w, int64_t at, int64_t in_dim,
                                     int64_t out_dim) {
    int64_t a = w->stride, b = w->base;
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    const int64_t common = a;
    hlo_window_reads s = {.out_step = w->base / common, .in_step = w->stride / common};
    int64_t shift = at * w->dilate - w->low;
    /* Remainders of positions modulo the dilation repeat after out_step results. */
    const int64_t first = quotient_up(-shift, w->stride);
    s.out = first;
    while (s.out < out_dim && s.out - first < s.out_step &&
           (s.out * w->stride + shift) % w->base != 0)
        s.out++;
    if (s.out >= out_dim || s.out - first >= s.out_step) return s;
    s.in = (s.out * w->stride + shift) / w->base;
    if (s.in >= in_dim) return s;
    int64_t by_out = (out_dim - 1 - s.out) / s.out_step + 1;
    int64_t by_in = s.in_step ? (in_dim - 1 - s.in) / s.in_step + 1 : by_out;
    s.count = by_out < by_in ? by_out : by_in;
    return s;
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

hlo_window_positions hlo_window_positions_of(const hlo_window *w, int64_t in_dim, int64_t out_dim,
                                             hlo_arena *arena) {
    hlo_window_positions p = {.count = 0};
    if (in_dim < 1 || out_dim < 1) return p;
    const int64_t first = quotient_up(w->low - (out_dim - 1) * w->stride, w->dilate);
    const int64_t end = w->low + (in_dim - 1) * w->base;
    const int64_t last = end / w->dilate < w->size ? end / w->dilate : w->size - 1;
    if (end < 0 || last < first) return p;
    const int64_t most = in_dim * out_dim, span = last - first + 1;
    int64_t *v = hlo_arena_array(arena, (size_t)(span < most ? span : most), sizeof *v);
    p.v = v;
    if (span > most) {
        /* List the positions at which a result reads an element, in ascending order. */
        uint64_t count = 0, kept = 0;
        for (int64_t o = 0; o < out_dim; o++)
            for (int64_t i = 0; i < in_dim; i++) {
                const int64_t place = w->low + i * w->base - o * w->stride;
                if (place >= 0 && place % w->dilate == 0 && place / w->dilate < w->size)
                    v[count++] = place / w->dilate;
            }
        qsort(v, count, sizeof *v, by_number);
        for (uint64_t i = 0; i < count; i++)
            if (!i || v[i] != v[i - 1]) v[kept++] = v[i];
        p.count = (int64_t)kept;
        return p;
    }
    for (int64_t at = first; at <= last; at++)
        if (hlo_window_reads_of(w, at, in_dim, out_dim).count) v[p.count++] = at;
    return p;
}
