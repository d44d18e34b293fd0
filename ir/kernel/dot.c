/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of dot and ragged-dot. A dot converts both operands to matrices of one lane type, and
 * computes a matrix product per batch. A ragged-dot computes a dot for each group, with as many
 * rows or terms as the group has. */

#include "ir/kernel/kernel.h"

hlo_dot_dims hlo_dot_dims_of(const hlo_instruction *dot) {
    return (hlo_dot_dims){hlo_instr_ints(dot, HLO_ATTR_LHS_BATCH_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_RHS_BATCH_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS)};
}

typedef struct inner {
    int64_t n, k;
    const void *a, *b; /* dense arrays [m, k] and [n, k] */
    void *c;           /* [m, n] */
} inner;

#define INNER(name, T)                                                                             \
    static void name(void *arg, int64_t begin, int64_t end) {                                      \
        const inner *p = arg;                                                                      \
        for (int64_t i = begin; i < end; i++)                                                      \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                const T *a = (const T *)p->a + i * p->k;                                           \
                const T *b = (const T *)p->b + j * p->k;                                           \
                T sum = 0;                                                                         \
                for (int64_t l = 0; l < p->k; l++) sum += a[l] * b[l];                             \
                ((T *)p->c)[i * p->n + j] = sum;                                                   \
            }                                                                                      \
    }
INNER(inner_u64, uint64_t)
INNER(inner_c128, double _Complex)

/* An operand as [batch, free, contracting]: three groups of dimensions, each merged into one. */
typedef struct operand {
    hlo_dims dims, strides; /* dimensions and strides in that order */
    hlo_view view;
    uint32_t batch, open; /* number of dimensions in the groups `batch` and `free` */
    int64_t size[3], stride[3];
} operand;

static void arrange(operand *o, const hlo_view *view, const hlo_ints *batch,
                    const hlo_ints *contracting) {
    o->view = hlo_view_group(view, batch, contracting, &o->dims, &o->strides);
    o->batch = batch->count;
    o->open = view->rank - batch->count - contracting->count;
}

/* True if each group can be traversed with one nonnegative stride. */
static bool as_matrices(operand *o) {
    uint32_t ends[] = {o->batch, o->batch + o->open, o->view.rank}, d = 0;
    bool plain = true;
    for (int g = 0; g < 3; g++) {
        o->size[g] = 1;
        o->stride[g] = 0;
        for (; d < ends[g]; d++) {
            if (o->dims.v[d] == 1) continue;
            if (o->size[g] != 1 && o->stride[g] != o->strides.v[d] * o->dims.v[d]) plain = false;
            plain &= o->strides.v[d] >= 0;
            o->size[g] *= o->dims.v[d];
            o->stride[g] = o->strides.v[d];
        }
    }
    return plain;
}

static void pack(const hlo_eval_env *env, operand *o, hlo_type type, hlo_arena *scratch) {
    hlo_view dense = hlo_view_scratch(scratch, type, &o->view);
    hlo_view_convert(env, &o->view, &dense);
    o->view = dense;
    o->stride[2] = 1;
    o->stride[1] = o->size[2];
    o->stride[0] = o->size[1] * o->size[2];
}

static hlo_type lane_type(hlo_lane lane) {
    static const hlo_type types[HLO_LANE_COUNT] = {[HLO_LANE_F32] = HLO_TYPE_F32,
                                                   [HLO_LANE_F64] = HLO_TYPE_F64,
                                                   [HLO_LANE_S64] = HLO_TYPE_S64,
                                                   [HLO_LANE_U64] = HLO_TYPE_U64,
                                                   [HLO_LANE_C128] = HLO_TYPE_C128};
    return types[lane];
}

static bool is_float_lane(hlo_lane lane) {
    return lane == HLO_LANE_F32 || lane == HLO_LANE_F64;
}

/* True if a product reads the operand in place. */
static bool is_factor(hlo_lane lane, const operand *o, bool plain) {
    const hlo_lane own = hlo_lane_of(o->view.type);
    return plain && is_float_lane(lane) && (own == HLO_LANE_F32 || own == lane);
}

static hlo_factor factor_of(const operand *o) {
    return (hlo_factor){o->view.type, o->view.data, o->stride[0], o->stride[1], o->stride[2]};
}

hlo_status hlo_eval_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                              const hlo_view *rhs, const hlo_view *result, hlo_arena *scratch,
                              const char **why) {
    static const hlo_eval_env alone = {0};
    if (!env) env = &alone;
    /* The lane of a product is that of the result. But if the result has integers, floats are
     * summed as floats, and f64 is always summed as f64. Such sums are converted afterwards, as in
     * XLA. */
    const hlo_lane l = hlo_lane_of(lhs->type), r = hlo_lane_of(rhs->type);
    hlo_lane lane = hlo_lane_of(result->type);
    if (lane != HLO_LANE_C128 && (is_float_lane(l) || is_float_lane(r)))
        lane = l == HLO_LANE_F64 || r == HLO_LANE_F64 ? HLO_LANE_F64
               : is_float_lane(lane)                  ? lane
                                                      : HLO_LANE_F32;
    if (hlo_lane_of(result->type) == HLO_LANE_NONE || l == HLO_LANE_NONE || r == HLO_LANE_NONE) {
        *why = "the operands of a dot must be arrays";
        return HLO_INVALID_INPUT;
    }
    hlo_arena_mark mark = hlo_arena_here(scratch);
    operand a, b;
    arrange(&a, lhs, dims.lhs_batch, dims.lhs_contracting);
    arrange(&b, rhs, dims.rhs_batch, dims.rhs_contracting);
    hlo_type type = lane_type(lane);
    if (!is_factor(lane, &a, as_matrices(&a))) pack(env, &a, type, scratch);
    if (!is_factor(lane, &b, as_matrices(&b))) pack(env, &b, type, scratch);
    hlo_view c = *result;
    const bool in_place = result->type == type && hlo_view_is_dense(result);
    if (!in_place) c = hlo_view_scratch(scratch, type, result);
    if (is_float_lane(lane)) {
        const hlo_product product = {lane_type(lane), a.size[0],     a.size[1],     b.size[1],
                                     a.size[2],       factor_of(&a), factor_of(&b), c.data};
        hlo_product_run(env, &product, scratch);
    } else {
        int64_t m = a.size[1], n = b.size[1], k = a.size[2];
        int64_t size = (int64_t)hlo_lane_size(lane);
        void (*body)(void *, int64_t, int64_t) = lane == HLO_LANE_C128 ? inner_c128 : inner_u64;
        for (int64_t batch = 0; batch < a.size[0]; batch++) {
            inner p = {n, k, (const char *)a.view.data + batch * a.stride[0] * size,
                       (const char *)b.view.data + batch * b.stride[0] * size,
                       (char *)c.data + batch * m * n * size};
            if (env->parallel && m * n * k > 1 << 18)
                env->parallel(env->user, m, body, &p);
            else
                body(&p, 0, m);
        }
    }
    if (!in_place) hlo_view_convert(env, &c, result);
    hlo_arena_release(scratch, mark);
    return HLO_OK;
}

static hlo_status run_dot(hlo_call *call) {
    if (call->operand_count != 2) return hlo_call_refuse(call, "sparse dots are not supported");
    return hlo_eval_dot_views(call->env, hlo_dot_dims_of(call->instr), &call->operands[0],
                              &call->operands[1], &call->results[0], call->scratch, &call->why);
}
const hlo_kernel hlo_eval_dot = {.run = run_dot, .error = HLO_ERROR_DOT};

static int64_t bounded(int64_t value, int64_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/* Lists `dims`, which do not include `dim`, numbered as in an array that lacks `dim`. */
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
    /* Compute the end of each group, which is at most the extent. A negative size, which is
     * invalid, counts as 0, so that groups do not overlap. */
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

/* A part of an array: a range of elements along each dimension. The part lacks dimension `dropped`
 * (-1: none), along which it has one element. */
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

/* Restricts `c` to the index of the part along the prefix dimensions of the group sizes, except
 * those that differ between the part's pieces. `list` maps prefix dimensions to dimensions of the
 * array. If `list` is NULL, they are the dimensions starting at `first`. */
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
    const hlo_view *wide = &call->operands[side];
    const hlo_type from = wide->type, to = call->results[0].type;
    const bool holds = !hlo_type_is_float(from) || !hlo_type_is_float(to) || from == to ||
                       to == HLO_TYPE_F64 || (to == HLO_TYPE_F32 && from != HLO_TYPE_F64);
    if (holds) return *wide;
    hlo_view narrow = hlo_view_scratch(call->scratch, to, wide);
    hlo_view_convert(call->env, wide, &narrow);
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
