/* SPDX-License-Identifier: Apache-2.0 */
/* select-and-scatter: the gradient of a reduce-window that selects one element of each window. */
#include "ir/eval/apply.h"

typedef struct selecting {
    const hlo_view *in;
    hlo_window windows[HLO_EVAL_MAX_RANK];
    hlo_window_positions positions[HLO_EVAL_MAX_RANK];
    hlo_dims sizes; /* numbers of positions */
    const hlo_region *select;
} selecting;

/* Finds the element at the positions `offset` of the window at `place`. Returns false for padding
 * and for the gaps between dilated elements. */
static bool element_at(const selecting *s, const int64_t *place, const int64_t *offset,
                       int64_t *index) {
    for (uint32_t d = 0; d < s->in->rank; d++) {
        const hlo_window *w = &s->windows[d];
        int64_t at = place[d] * w->stride + s->positions[d].v[offset[d]] * w->dilate - w->low;
        if (at < 0 || at % w->base || at / w->base >= s->in->dims[d]) return false;
        index[d] = at / w->base;
    }
    return true;
}

/* Finds the element of a window that the computation selects over all previous ones. Returns false
 * if the window contains no element. */
static bool select_element(const selecting *s, const int64_t *place, int64_t *out_index) {
    static const int64_t steps[2] = {0};
    hlo_dims offset = {0}, index;
    bool found = false;
    do {
        if (!element_at(s, place, offset.v, index.v)) continue;
        bool keeps = false;
        if (found) {
            char *in[] = {hlo_view_element(s->in, out_index), hlo_view_element(s->in, index.v)};
            hlo_region_run(s->select, 1, in, steps, (char *[]){(char *)&keeps}, steps);
        }
        found = true;
        for (uint32_t d = 0; d < s->in->rank && !keeps; d++) out_index[d] = index.v[d];
    } while (hlo_dims_next(s->in->rank, s->sizes.v, offset.v));
    return found;
}

static hlo_status run_select_and_scatter(hlo_call *call) {
    static const int64_t steps[2] = {0};
    const hlo_view *in = &call->operands[0], *source = &call->operands[1], *out = &call->results[0];
    selecting s = {.in = in,
                   .select = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_SELECT))};
    const hlo_region *scatter = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_SCATTER));
    if (!s.select || !scatter) return HLO_INVALID_INPUT;
    bool empty = false;
    for (uint32_t d = 0; d < in->rank; d++) {
        s.windows[d] = hlo_window_of(call->instr, d);
        s.positions[d] =
            hlo_window_positions_of(&s.windows[d], in->dims[d], source->dims[d], call->scratch);
        s.sizes.v[d] = s.positions[d].count;
        empty |= !s.sizes.v[d];
    }
    hlo_view_copy(call->env, &call->operands[2], out);
    hlo_dims place = {0}, index;
    if (empty) return HLO_OK;
    do {
        if (!select_element(&s, place.v, index.v)) continue;
        char *to = hlo_view_element(out, index.v);
        char *pair[] = {hlo_view_element(source, place.v), to};
        hlo_region_run(scatter, 1, pair, steps, &to, steps);
    } while (hlo_dims_next(in->rank, source->dims, place.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_select_and_scatter = {.run = run_select_and_scatter,
                                                .error = HLO_ERROR_MOVED};
