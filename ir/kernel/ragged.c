/* SPDX-License-Identifier: Apache-2.0 */
/* ragged-dot: a dot for each group, with as many rows or terms as the group has. */
#include "ir/kernel/ragged.h"

static int64_t bounded(int64_t value, int64_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/* Lists the dimensions without `dim`, which precede or follow it. */
static const hlo_ints *without(hlo_arena *scratch, const hlo_ints *dims, int64_t dim) {
    hlo_ints *out = hlo_ints_in(scratch, dims->count, NULL);
    for (uint32_t i = 0; i < dims->count; i++) out->v[i] = dims->v[i] - (dims->v[i] > dim);
    return out;
}

const char *hlo_ragged_begin(hlo_ragged_parts *p, const hlo_call *call) {
    *p = (hlo_ragged_parts){.env = call->env, .scratch = call->scratch, .at = 0};
    hlo_ragged *r = &p->dims;
    if (!hlo_ragged_read(call->instr, r)) return "the operands of a ragged-dot must be arrays";
    p->dot = hlo_dot_dims_of(call->instr);
    p->rhs_batch = p->dot.rhs_batch;
    if (r->mode == HLO_RAGGED_FREE) {
        p->dot.rhs_batch = without(call->scratch, p->dot.rhs_batch, r->partner);
        p->dot.rhs_contracting = without(call->scratch, p->dot.rhs_contracting, r->partner);
    }
    p->pieces = p->parts = 1;
    for (uint32_t i = 0; i < r->prefix_count; i++) {
        int64_t size = p->sizes[i] = call->operands[0].dims[r->prefix[i]];
        *(r->mode == HLO_RAGGED_CONTRACTING && i >= r->batch_count ? &p->pieces : &p->parts) *=
            size;
    }
    if (r->mode != HLO_RAGGED_BATCH) p->parts *= r->groups;
    /* Compute where each group ends, at most at the extent. A negative size, which is invalid,
     * counts as 0, so that no group begins before another ends. */
    const hlo_view *sizes = &call->operands[2];
    hlo_view wide = hlo_view_scratch(call->scratch, HLO_TYPE_S64, sizes);
    hlo_view_convert(call->env, sizes, &wide);
    int64_t *ends = wide.data, total = hlo_view_count(sizes), sum = 0;
    for (int64_t i = 0; i < total; i++) {
        if (i % r->groups == 0) sum = 0;
        if (sizes->type == HLO_TYPE_U64 && ends[i] < 0) ends[i] = INT64_MAX;
        ends[i] = sum = bounded(sum + bounded(ends[i], r->extent), r->extent);
    }
    p->ends = ends;
    return NULL;
}

/* Finds the range of piece `piece` of the part along the ragged dimension. */
static void find_piece(const hlo_ragged_parts *p, int64_t piece, int64_t *out_start,
                       int64_t *out_size) {
    const int64_t groups = p->dims.groups;
    *out_start = *out_size = 0;
    if (!groups) return;
    if (p->dims.mode == HLO_RAGGED_BATCH) {
        *out_size = p->ends[p->at * groups + groups - 1];
        return;
    }
    const int64_t group = p->at % groups,
                  *ends = p->ends + (p->at / groups * p->pieces + piece) * groups;
    *out_start = group ? ends[group - 1] : 0;
    *out_size = ends[group] - *out_start;
}

int64_t hlo_ragged_size(const hlo_ragged_parts *p) {
    int64_t total = 0, start, size;
    for (int64_t i = 0; i < p->pieces; i++) {
        find_piece(p, i, &start, &size);
        total += size;
    }
    return total;
}

/* A part of an array: some elements along each dimension, without dimension `dropped` (-1: none),
 * which has one element. */
typedef struct cut {
    hlo_dims start, size;
    int64_t dropped;
} cut;

static cut whole_of(const hlo_view *view) {
    cut c = {.dropped = -1};
    for (uint32_t d = 0; d < view->rank; d++) {
        c.start.v[d] = 0;
        c.size.v[d] = view->dims[d];
    }
    return c;
}

static void take(cut *c, int64_t dim, int64_t start, int64_t size) {
    c->start.v[dim] = start;
    c->size.v[dim] = size;
}

static hlo_view view_of(hlo_arena *scratch, const hlo_view *view, const cut *c) {
    hlo_dims *dims = hlo_arena_alloc(scratch, 2 * sizeof *dims);
    hlo_view part = {view->type, 0, dims[0].v, dims[1].v, view->data};
    int64_t count = 1;
    for (uint32_t d = 0; d < view->rank; d++) {
        count *= c->size.v[d];
        if (d == c->dropped) continue;
        dims[0].v[part.rank] = c->size.v[d];
        dims[1].v[part.rank++] = view->strides[d];
    }
    if (view->data && count) part.data = hlo_view_element(view, c->start.v);
    return part;
}

/* Selects the part's index in each dimension of the group sizes that belongs to one part. `list`
 * maps these dimensions to the array's; NULL: they are the dimensions starting at `first`. */
static void take_index(const hlo_ragged_parts *p, const int64_t *list, uint32_t listed,
                       int64_t first, cut *c) {
    const hlo_ragged *r = &p->dims;
    const bool summed = r->mode == HLO_RAGGED_CONTRACTING;
    int64_t rest = r->mode == HLO_RAGGED_BATCH ? p->at : p->at / r->groups;
    for (uint32_t i = summed ? r->batch_count : r->prefix_count; i-- > 0;) {
        const int64_t size = p->sizes[i];
        if (i < listed) take(c, list ? list[i] : first + i, rest % size, 1);
        rest /= size;
    }
}

/* Selects piece `piece` of an operand. */
static void take_piece(const hlo_ragged_parts *p, unsigned side, int64_t piece, cut *c) {
    const hlo_ragged *r = &p->dims;
    int64_t start, size;
    find_piece(p, piece, &start, &size);
    const bool by_group = side && r->mode == HLO_RAGGED_FREE;
    if (by_group)
        take(c, r->partner, p->at % r->groups, 1);
    else
        take(c, side ? r->partner : r->dim, start, size);
    if (by_group) c->dropped = r->partner;
    const hlo_ints *summed = side ? p->dot.rhs_contracting : p->dot.lhs_contracting;
    for (uint32_t i = r->prefix_count; r->mode == HLO_RAGGED_CONTRACTING && i-- > r->batch_count;) {
        take(c, summed->v[i - r->batch_count], piece % p->sizes[i], 1);
        piece /= p->sizes[i];
    }
}

hlo_view hlo_ragged_operand(const hlo_ragged_parts *p, unsigned side, const hlo_view *whole) {
    const hlo_ragged *r = &p->dims;
    cut c = whole_of(whole);
    take_index(p, side ? p->rhs_batch->v : r->prefix, side ? r->batch_count : r->prefix_count, 0,
               &c);
    if (p->pieces != 1) {
        /* Concatenate the pieces of a part along the ragged dimension. */
        const int64_t dim = side ? p->dims.partner : p->dims.dim;
        take_piece(p, side, 0, &c);
        c.size.v[dim] = hlo_ragged_size(p);
        hlo_dims *dims = hlo_arena_alloc(p->scratch, sizeof *dims);
        *dims = c.size;
        const hlo_view shape = {whole->type, whole->rank, dims->v, NULL, NULL};
        hlo_view joined = hlo_view_scratch(p->scratch, whole->type, &shape);
        cut to = whole_of(&joined);
        for (int64_t i = 0; i < p->pieces; i++) {
            take_piece(p, side, i, &c);
            to.size.v[dim] = c.size.v[dim];
            hlo_view in = view_of(p->scratch, whole, &c), out = view_of(p->scratch, &joined, &to);
            hlo_view_copy(p->env, &in, &out);
            to.start.v[dim] += to.size.v[dim];
        }
        return joined;
    }
    take_piece(p, side, 0, &c);
    return view_of(p->scratch, whole, &c);
}

hlo_view hlo_ragged_result(const hlo_ragged_parts *p, const hlo_view *whole) {
    const hlo_ragged *r = &p->dims;
    const bool summed = r->mode == HLO_RAGGED_CONTRACTING;
    cut c = whole_of(whole);
    int64_t start, size;
    take_index(p, NULL, r->prefix_count, summed, &c);
    if (summed) {
        take(&c, r->place, p->at % r->groups, 1);
        c.dropped = r->place;
    } else {
        find_piece(p, 0, &start, &size);
        take(&c, r->place, start, size);
    }
    return view_of(p->scratch, whole, &c);
}

hlo_view hlo_ragged_narrowed(const hlo_call *call, unsigned side) {
    const hlo_view *operand = &call->operands[side];
    const hlo_type from = operand->type, to = call->results[0].type;
    const bool holds = !hlo_type_is_float(from) || !hlo_type_is_float(to) || from == to ||
                       to == HLO_TYPE_F64 || (to == HLO_TYPE_F32 && from != HLO_TYPE_F64);
    if (holds) return *operand;
    hlo_view narrow = hlo_view_scratch(call->scratch, to, operand);
    hlo_view_convert(call->env, operand, &narrow);
    return narrow;
}

static hlo_status run_ragged_dot(hlo_call *call) {
    static const char zero[16];
    const hlo_view none = {call->results[0].type, 0, NULL, NULL, (void *)(uintptr_t)zero};
    hlo_ragged_parts p;
    const char *why = hlo_ragged_begin(&p, call);
    if (why) return hlo_call_refuse(call, why);
    const hlo_view lhs = hlo_ragged_narrowed(call, 0), rhs = hlo_ragged_narrowed(call, 1);
    hlo_view_copy(call->env, &none, &call->results[0]);
    hlo_status status = HLO_OK;
    for (; status == HLO_OK && p.at < p.parts; p.at++) {
        if (!hlo_ragged_size(&p)) continue;
        hlo_arena_mark mark = hlo_arena_here(call->scratch);
        hlo_view a = hlo_ragged_operand(&p, 0, &lhs), b = hlo_ragged_operand(&p, 1, &rhs),
                 out = hlo_ragged_result(&p, &call->results[0]);
        status = hlo_eval_dot_views(call->env, p.dot, &a, &b, &out, call->scratch, &call->why);
        hlo_arena_release(call->scratch, mark);
    }
    return status;
}
const hlo_kernel hlo_eval_ragged_dot = {.run = run_ragged_dot, .error = HLO_ERROR_RAGGED_DOT};
