/* Windows: their words, and the elements that they read. */
#include "ir/kernel/kernel.h"

/* Returns number `dim` of a word such as 2x3 or 1_0x2_1, of a pair the first. */
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

hlo_window_reads hlo_window_reads_of(const hlo_window *w, int64_t at, int64_t in_dim,
                                     int64_t out_dim) {
    hlo_window_reads s = {.out_step = 1};
    int64_t shift = at * w->dilate - w->low;
    while (s.out_step < w->base && s.out_step * w->stride % w->base != 0) s.out_step++;
    s.in_step = s.out_step * w->stride / w->base;
    for (s.out = 0; s.out < out_dim; s.out++) {
        int64_t place = s.out * w->stride + shift;
        if (place >= 0 && place % w->base == 0) {
            s.in = place / w->base;
            break;
        }
    }
    if (s.out >= out_dim || s.in >= in_dim) return s;
    int64_t by_out = (out_dim - 1 - s.out) / s.out_step + 1;
    int64_t by_in = s.in_step ? (in_dim - 1 - s.in) / s.in_step + 1 : by_out;
    s.count = by_out < by_in ? by_out : by_in;
    return s;
}
